"""Philox against its published answers; draws alike on NumPy and JAX, in any batch, block or order; laws against SciPy."""

from __future__ import annotations

import hashlib
import inspect

import numpy as np
import pytest
from scipy import stats

from sottovoce import draws as house
from sottovoce.draws import SETUP, START, STEP, STEPSIZE, UNIT, WEIGHTS, WORDS, CounterDraws, OsDraws, Stream
from sottovoce.errors import ParameterError, UnknownName
from sottovoce.laws import LAWS, Law, law, normal_upper, sample
from sottovoce.philox import philox

ALL = [UNIT, WORDS, *(Law(name, 1.5) for name in LAWS)]
STREAM = Stream(STEP)
EDGES = (np.array([0, 1, 2, 3]), np.array([1, 2, 0, 3]))
REFERENCE = {  # SciPy's own, by the name of the law
    "normal": stats.norm,
    "laplace": stats.laplace,
    "uniform": stats.uniform(-1, 2),
    "cauchy": stats.cauchy,
}
# sha256 of base and slope: a platform that rounds a logarithm otherwise, and so draws other numbers, shows here
GOLDEN = {
    "normal": "1c290c07230209b52ae0040c527f64052f2dbfb7f621d3578506a2cded124322",
    "laplace": "220158eb2a2bfa4db4d25b8d4dfd120f44100f9f5cd3f60de6d7172b6ae5d228",
    "uniform": "b657dbfb39f4f897af7beb54092ad8eac5fbf8aabab55fb1f75db1480fe79d70",
    "cauchy": "987d8071244d95de0c1fea8b019c4fb6d13bf7b750f6e9e8c41c8fd01845fd85",
    "log-laplace": "e3a183e24b6e074e842eb9cd467b56d67295d8898024497a6955902ac338a22e",
}


def numbers(law=UNIT, seed=0, runs=3, stream=STREAM, k=0, ends=EDGES, d=2, which=(0, 1, 2, 3), xp=np):
    return CounterDraws(seed, runs).four(xp, law, stream, k, *ends, d, which)


def many(law, seed=7):
    """200,000 draws, all four words of a block."""
    nodes = np.arange(50)
    return np.concatenate([a.ravel() for a in numbers(law, seed, 500, ends=(nodes, nodes))])


def same(a, b):
    return len(a) == len(b) and all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_published_answers(counter, key, answer):
    read = lambda text: tuple(int(word, 16) for word in text.split())
    words = philox(np, read(counter), read(key))
    assert tuple(int(w) for w in words) == read(answer)
    assert all(w.dtype == np.uint64 for w in words)


@pytest.mark.parametrize("law", ALL, ids=str)
def test_numpy_and_jax_give_the_same_bits(law):
    jax = pytest.importorskip("jax")
    nodes = np.arange(40)
    table = law.table() if isinstance(law, Law) else None
    with jax.enable_x64(True):
        traced = jax.jit(lambda k, seed, runs: CounterDraws.traced(seed, runs).four(
            jax.numpy, law, Stream(WEIGHTS, 1), k, nodes, nodes[::-1], 3
        ))  # fmt: skip
        theirs = tuple(np.asarray(a) for a in traced(np.arange(-1, 4), np.uint64(12345), np.arange(60, dtype=np.uint64)))
    ours = numbers(law, 12345, 60, Stream(WEIGHTS, 1), np.arange(-1, 4), (nodes, nodes[::-1]), 3)
    assert same(ours, theirs)
    assert table is None or len(np.unique(ours[0])) > 0.99 * ours[0].size


@pytest.mark.parametrize("law", [Law(name) for name in LAWS], ids=str)
def test_extreme_words_give_the_same_finite_numbers(law):
    jax = pytest.importorskip("jax")
    words = np.concatenate([np.arange(2000), 2 ** np.arange(32), 2**32 - 1 - np.arange(2000)]).astype(np.uint64)
    ours = sample(np, law, words)
    with jax.enable_x64(True):
        theirs = np.asarray(jax.jit(lambda w: sample(jax.numpy, law, w))(words))
    assert np.array_equal(ours, theirs)
    assert np.isfinite(ours).all()


@pytest.mark.parametrize("law", ALL, ids=str)
def test_a_run_of_a_thousand_can_be_had_alone(law):
    whole = numbers(law, 3, 1000)
    part = numbers(law, 3, [17, 999, 0])
    assert same([a[..., [17, 999, 0]] for a in whole], part)


@pytest.mark.parametrize("law", ALL, ids=str)
def test_iterations_together_or_one_by_one(law):
    ks = np.array([-1, 0, 1, 5, 1000, 2**31])
    together = numbers(law, k=ks)
    assert together[0].shape == (6, 4, 2, 3)
    for t, k in enumerate(ks):
        assert same([a[t] for a in together], numbers(law, k=int(k)))


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("law", [UNIT, WORDS, Law("cauchy")], ids=str)
def test_the_size_of_a_piece_does_not_matter(law, size, monkeypatch):
    nodes, ks = np.arange(11), np.arange(5)
    whole = numbers(law, k=ks, ends=(nodes, nodes), runs=4), numbers(law, k=3, ends=(nodes, nodes), runs=4)
    monkeypatch.setattr(house, "BLOCK", size)
    pieces = numbers(law, k=ks, ends=(nodes, nodes), runs=4), numbers(law, k=3, ends=(nodes, nodes), runs=4)
    assert same(whole[0], pieces[0])
    assert same(whole[1], pieces[1])


def test_entries_coordinates_and_words_can_be_had_alone():
    whole = numbers(Law(), d=5)
    some = tuple(end[[3, 1]] for end in EDGES)
    assert same([a[[3, 1]] for a in whole], numbers(Law(), ends=some, d=5))
    assert same([a[:, :2] for a in whole], numbers(Law(), d=2))
    assert same([whole[2], whole[0]], numbers(Law(), d=5, which=(2, 0)))


def test_whatever_differs_gives_other_numbers():
    seen = [numbers(WORDS)]
    kinds = [Stream(kind) for kind in (START, WEIGHTS, STEPSIZE, SETUP)]
    seen += [numbers(WORDS, stream=s) for s in (*kinds, Stream(STEP, 1), Stream(STEP, 255))]
    seen += [numbers(WORDS, seed=s) for s in (1, 2**32, 2**63, 2**64 - 1)]
    seen += [numbers(WORDS, k=k) for k in (-1, 1, 2**32 - 2)]
    seen += [numbers(WORDS, runs=[3, 4, 5]), numbers(WORDS, ends=EDGES[::-1])]
    values = np.concatenate([a.ravel() for four in seen for a in four])
    ordered = np.unique(values)  # the loop (3, 3) is the same both ways round: its 2 x 3 x 4 numbers occur twice
    assert len(ordered) == values.size - 24


def test_iterations_beyond_two_to_the_32_do_not_repeat():
    assert not same(numbers(WORDS, k=2**32), numbers(WORDS, k=0))


def test_runs_beyond_two_to_the_32_do_not_repeat():
    assert not same(numbers(WORDS, runs=[2**32]), numbers(WORDS, runs=[0]))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed):
    with pytest.raises(ParameterError, match=r"whole number from 0 to 2\^64 - 1, not"):
        CounterDraws(seed)


@pytest.mark.parametrize("seed", [1.5, "7", float("nan"), None])
def test_seeds_that_are_no_whole_numbers_are_refused(seed):
    with pytest.raises(ParameterError, match="whole number"):
        CounterDraws(seed)


# laws ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_the_tables_are_the_same_everywhere(name):
    base, slope = Law(name).table()
    assert hashlib.sha256(base.tobytes() + slope.tobytes()).hexdigest() == GOLDEN[name]


@pytest.mark.parametrize("name", LAWS)
def test_quantiles(name):
    """The magnitude that word gives against SciPy's quantile at the very same probability."""
    words = (np.random.default_rng(1).integers(0, 2**32, 20_000, dtype=np.uint64) >> np.uint64(2)) << np.uint64(2)
    v = ((words >> np.uint64(1)) + 0.5) / 2.0**31
    ours = sample(np, Law(name), words)
    exact = stats.laplace.isf(v / 2) if name == "log-laplace" else REFERENCE[name].isf(v / 2)
    if name == "log-laplace":
        exact = np.exp(8 * exact)
    close = 2e-4 if name == "log-laplace" else 5e-6
    assert np.allclose(ours, exact, rtol=close, atol=close)


def test_normal_quantiles_to_rounding():
    p = np.concatenate([np.linspace(1e-3, 0.5, 500), np.geomspace(1e-300, 1e-3, 500)])
    assert np.allclose(normal_upper(p), stats.norm.isf(p), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", REFERENCE)
def test_distribution(name):
    assert stats.kstest(many(Law(name)), REFERENCE[name].cdf).pvalue > 1e-3


def test_uniforms_and_words():
    u = many(UNIT)
    assert stats.kstest(u, stats.uniform.cdf).pvalue > 1e-3
    assert u.min() > 0
    assert u.max() < 1
    words = many(WORDS)
    assert words.dtype == np.uint64
    bits = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
    assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(len(words))


@pytest.mark.parametrize("name", LAWS)
def test_symmetry_and_scale(name):
    one, three = many(Law(name)), many(Law(name, 3.0))
    assert np.allclose(three, 3 * one, rtol=1e-15)
    assert abs((one > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(one.size)
    positive, negative = one[one > 0], -one[one < 0]
    assert stats.ks_2samp(positive, negative).pvalue > 1e-3


def test_log_laplace_is_laplace_in_its_logarithm():
    logs = np.log(np.abs(many(Law("log-laplace", 1.0, 5.0))))
    assert stats.kstest(logs / 5, stats.laplace.cdf).pvalue > 1e-3


def test_moments():
    for name, variance in (("normal", 1.0), ("laplace", 2.0), ("uniform", 1 / 3)):
        x = many(Law(name))
        assert abs(x.mean()) < 5 * np.sqrt(variance / x.size)
        assert abs(x.var() / variance - 1) < 0.03
    assert abs(np.mean(many(Law()) ** 4) / 3 - 1) < 0.05


def test_words_of_a_block_are_uncorrelated():
    four = np.stack([a.ravel() for a in numbers(Law(), 5, 5000)])
    assert np.abs(np.corrcoef(four) - np.eye(4)).max() < 5 / np.sqrt(four.shape[1])


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_scales_and_spreads_are_checked(bad):
    with pytest.raises(ParameterError, match="scale of a law must be positive and finite, not"):
        Law("normal", bad)
    with pytest.raises(ParameterError, match="spread of a law must be positive and finite, not"):
        Law("log-laplace", 1.0, bad)


def test_laws_by_name():
    assert law("cauchy", 2.0) == Law("cauchy", 2.0)
    assert law("log_laplace:12") == Law("log-laplace", 1.0, 12.0)
    with pytest.raises(UnknownName, match="did you mean 'cauchy'"):
        law("caucy")
    with pytest.raises(ParameterError, match="not a number"):
        law("log-laplace:wide")
    with pytest.raises(ParameterError, match="not a number"):
        law("log-laplace:1e")


# the operating system's ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ALL, ids=str)
@pytest.mark.parametrize("k", [3, np.arange(4)])
def test_os_draws_have_the_same_shapes_and_never_repeat(law, k):
    ask = lambda: OsDraws().four(np, law, Stream(STEP), k, *EDGES, 2, (0, 2))
    ours, again = ask(), ask()
    counted = numbers(law, runs=1, k=k, which=(0, 2))
    assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in counted]
    pool = np.concatenate([a.ravel() for a in (*ours, *again)])
    assert len(np.unique(pool)) == pool.size


@pytest.mark.parametrize("name", REFERENCE)
def test_os_draws_follow_the_law(name):
    (x,) = OsDraws().four(np, Law(name), Stream(STEP), 0, np.arange(20_000), np.arange(20_000), 1, (0,))
    assert stats.kstest(x.ravel(), REFERENCE[name].cdf).pvalue > 1e-6


def test_os_draws_take_no_seed_and_cannot_be_compiled():
    assert "seed" not in inspect.signature(OsDraws.__init__).parameters
    with pytest.raises(TypeError):
        OsDraws(0)  # type: ignore[call-arg]
    jax = pytest.importorskip("jax")
    with pytest.raises(ParameterError, match="cannot be compiled; use the eager player"):
        OsDraws().four(jax.numpy, UNIT, Stream(STEP), 0, *EDGES, 1)
