"""Paillier against plain integers and against the textbook, the encrypted methods against the clear ones, and what is refused."""

import math
import sys
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.draws import CounterDraws, Stream
from sottovoce.errors import NotInstalled, ParameterError, Refused, RunError
from sottovoce.fixed import Fixed, real, signed
from sottovoce.paillier import Paillier, number
from sottovoce.simulate import compiled, threads
from sottovoce.simulate.task import prepare
from sottovoce.view import view_of

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
LINKS = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
WEAK = {"mode": "encrypted", "key_bits": 256, "weak_keys": True}
METHODS = ("paillier", "paillier-admm")
SMALL = Paillier(256)


def words(count, rows=1, seed=0, call=0):
    """Drawn words (row, count, 1)."""
    nodes = np.arange(rows)
    return CounterDraws(seed).four(np, "words", Stream(3, call), 0, nodes, nodes, count, (0,))[0]


def played(method, **given):
    given = {"iterations": 40, "record": True, **given}
    return sv.run(method, P, LINKS, **given)


def of_threads(method, problem=P, graph=LINKS, iterations=10, stepsize=0.25, **parameters):
    task = prepare(
        method, problem, graph, stepsize=stepsize, iterations=iterations, runs=1, seed=0, mechanisms=(), record=True, x0=None,
        every=1, tolerance=None, parameters=parameters,
    )  # fmt: skip
    return np.moveaxis(threads.play(task).answers, -1, 1)


# fixed point ---------------------------------------------------------------------------------------------------------


def test_fixed_point_keeps_every_number_to_half_a_step():
    x = np.random.default_rng(0).normal(size=(3, 4, 2)) * 10.0 ** np.arange(-4, 4).reshape(1, 4, 2)
    fixed = Fixed(30, 1e5)
    whole = fixed.integers(x)
    assert all(type(v) is int for v in whole.flat)
    assert all(abs(Fraction(v, 2**30) - Fraction(float(u))) <= Fraction(1, 2**31) for v, u in zip(whole.flat, x.flat, strict=True))
    assert np.array_equal(real(whole, 30), np.rint(x * 2**30) / 2**30)
    assert signed(7 - 3, 7) == -3
    assert signed(3, 7) == 3


def test_words_wrap_and_are_the_same_bits_in_jax():
    x = np.random.default_rng(1).normal(size=(3, 5, 2)) * 1e4
    fixed = Fixed.words(40, 3)
    mine = fixed.to_words(np, x)
    assert mine.dtype == np.uint64
    assert [int(w) for w in mine.flat] == [round(Fraction(float(v)) * 2**40) % 2**64 for v in x.flat]
    total = mine.sum(0, dtype=np.uint64)
    assert np.abs(fixed.from_words(np, total) - x.sum(0)).max() <= 3 * 2.0**-41 + 1e-11
    with compiled.float64():
        import jax.numpy as jnp

        theirs = np.asarray(fixed.to_words(jnp, jnp.asarray(x)))
        assert np.array_equal(mine, theirs)
        assert np.array_equal(fixed.from_words(np, mine), np.asarray(fixed.from_words(jnp, jnp.asarray(theirs))))


def test_what_does_not_fit_is_told():
    fixed = Fixed.words(32, 4)
    largest = (2.0**31 - 1) / 4
    x = np.array([largest, -largest, np.nextafter(largest, 1e9), -1e9, np.nan, np.inf, 0.0])
    assert fixed.outside(x).tolist() == [False, False, True, True, True, True, False]
    four = np.array([fixed.to_words(np, np.array(largest))] * 4).sum(dtype=np.uint64)
    assert abs(fixed.from_words(np, four) - 4 * largest) < 2.0**-30  # four of the largest do not wrap
    assert "5.36871e+08 either way (32 bits" in fixed.refusal


# the cipher ----------------------------------------------------------------------------------------------------------


def keys(cipher=SMALL, seed=0, rows=1):
    public, secret = cipher.keys(words(cipher.key_words, rows, seed))
    return public, secret


def textbook(cipher, secret, c):
    """Paillier's own decryption, L(c^lambda mod N^2) mu mod N, in plain Python."""
    half = len(secret) // 2
    p, q = number(secret[:half]), number(secret[half:])
    n, order = p * q, math.lcm(p - 1, q - 1)
    of = lambda u: (pow(u, order, n * n) - 1) // n
    return signed(of(c) * pow(of(n + 1), -1, n) % n, n)


def test_keys_come_from_the_drawn_words_alone():
    import gmpy2

    public, secret = keys(rows=4)
    assert public.shape == (4, 32, 1)
    assert secret.dtype == np.uint8
    again = keys(rows=4)
    assert np.array_equal(again[0], public)
    assert not np.array_equal(keys(rows=4, seed=1)[0], public)
    for row in range(4):
        p, q = number(secret[row, :16].tobytes()), number(secret[row, 16:].tobytes())
        assert gmpy2.is_prime(p)
        assert gmpy2.is_prime(q)
        assert number(public[row].tobytes()) == p * q
        assert (p * q).bit_length() == 256


def test_sums_and_multiples_are_those_of_plain_integers():
    public, secret = keys(rows=3)
    rng = np.random.default_rng(2)
    a, b = (np.array([int(v) for v in rng.integers(-(2**62), 2**62, 6)], object).reshape(3, 2, 1) for _ in range(2))
    factor = np.array([1, 65536, 40001], object).reshape(3, 1, 1)
    size = 2 * SMALL.cipher_words
    sealed = SMALL.encrypted(public, a, words(size, 3, call=1))
    assert sealed.shape == (3, 128, 1)
    for row in range(3):
        for part in range(2):
            c = number(sealed[row, 64 * part : 64 * part + 64].tobytes())
            assert textbook(SMALL, secret[row].tobytes(), c) == a[row, part, 0]
    mixed = SMALL.combined(public, sealed, factor, b, words(size, 3, call=2), str)
    opened = SMALL.decrypted(secret, mixed, 2**90, lambda row: f"row {row}")
    assert np.array_equal(opened, factor * a + b)
    other = SMALL.encrypted(public, a, words(size, 3, call=3))
    assert not np.array_equal(other, sealed)  # another draw, another ciphertext of the same numbers
    assert np.array_equal(SMALL.encrypted(public, a, words(size, 3, call=1)), sealed)


def test_keys_of_2048_bits():
    cipher = Paillier()
    public, secret = keys(cipher)
    m = np.array([-(2**200) + 1], object).reshape(1, 1, 1)
    sealed = cipher.encrypted(public, m, words(cipher.cipher_words, call=1))
    assert (public.shape[1], sealed.shape[1]) == (256, 512)
    assert textbook(cipher, secret[0].tobytes(), number(sealed.tobytes())) == m.item()
    assert cipher.decrypted(secret, sealed, 2**210, str).item() == m.item()


def test_another_key_and_altered_bytes_are_refused():
    public, secret = keys(rows=2)
    m = np.array([12345, -678], object).reshape(1, 2, 1)
    sealed = SMALL.encrypted(public[:1], m, words(2 * SMALL.cipher_words))
    opened = lambda c, key: SMALL.decrypted(key, c, 2**86, lambda row: "node 3, iteration 9")
    assert np.array_equal(opened(sealed, secret[:1]), m)
    with pytest.raises(RunError, match="node 3, iteration 9: a ciphertext was altered, or is for another key"):
        opened(sealed, secret[1:])
    for at in range(sealed.shape[1]):
        altered = sealed.copy()
        altered[0, at] ^= 1
        with pytest.raises(RunError, match="altered"):
            opened(altered, secret[:1])
    n = number(public[0].tobytes())
    for none in (0, n, n * n, n * n + 5, 2 * n):
        raw = np.frombuffer(none.to_bytes(64, "big"), np.uint8).reshape(1, 64, 1)
        with pytest.raises(RunError, match="no number that this key encrypts to"):
            opened(raw, secret[:1])
        with pytest.raises(RunError, match="no number that this key encrypts to"):
            SMALL.combined(public[:1], raw, m[:, :1], m[:, :1], words(SMALL.cipher_words), str)
    with pytest.raises(RunError, match="public key of 256 bits, got one of 2"):
        SMALL.public(b"\0" + public[0].tobytes()[1:])


def test_what_no_check_can_find_since_the_cipher_is_malleable():
    """Whoever may alter a message adds to what is inside; only a sealed link finds that. The documentation says so."""
    public, secret = keys()
    sealed = SMALL.encrypted(public, np.array([100], object).reshape(1, 1, 1), words(SMALL.cipher_words))
    n = number(public[0].tobytes())
    plus = number(sealed.tobytes()) * (1 + 5 * n) % n**2
    raw = np.frombuffer(plus.to_bytes(64, "big"), np.uint8).reshape(1, 64, 1)
    assert SMALL.decrypted(secret, raw, 2**86, str).item() == 105


# Paillier between neighbours -----------------------------------------------------------------------------------------


def drawn_b(transcript, k, run=0):
    """b_i->j b_j->i of iteration k as a matrix, from the recorded draws."""
    u = transcript.draws["draw-0", k].value[:, 0, run]
    found = np.zeros((5, 5))
    for (i, j), one in zip(LINKS.edges, u, strict=True):
        found[i, j] = np.rint((0.5 + 0.5 * one) * 65536) / 65536
    return found * found.T


def test_gradient_descent_follows_dense_matrices():
    result = played("paillier", stepsize=0.2, decay=0.6, iterations=30)
    H, b, _ = P.data
    degree = LINKS.outdegree
    w = np.array([[1 / (1 + max(degree[i], degree[j])) if (i, j) in set(LINKS.edges) else 0 for j in range(5)] for i in range(5)])
    x = result.trajectory[0, 0]
    for k in range(30):
        B = w * drawn_b(result.transcript, k)
        x = x + B @ x - B.sum(1)[:, None] * x - 0.2 / (k + 1) ** 0.6 * (np.einsum("nij,nj->ni", H, x) - b)
        assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13


def test_a_set_keeps_the_iterates_inside():
    given = {"within": "box:-1.2..1.2", "stepsize": 0.5, "decay": 0.5, "iterations": 40, "x0": np.full((5, 2), 2.0)}
    clear, sealed = played("paillier", **given), played("paillier", **given, **WEAK)
    assert np.abs(clear.trajectory).max() == 1.2
    assert (np.abs(clear.trajectory[1:]) == 1.2).any()
    assert np.abs(clear.trajectory - sealed.trajectory).max() < 1e-12


def test_admm_follows_its_definition_with_a_dual_variable_an_edge():
    result = played("paillier-admm", stepsize=0.5, iterations=30)
    H, b, _ = P.data
    x, c = result.trajectory[0, 0], 2 * LINKS.outdegree / 0.5
    B, dual = drawn_b(result.transcript, -1) / 0.5, np.zeros((5, 5, 2))
    for k in range(30):
        gamma, new = c - B.sum(1), np.empty_like(x)
        for i in range(5):  # the gradient of what is minimised is zero: (H + gamma + sum b) x = b + gamma x_i + sum b x_j - sum l
            left = H[i] + (gamma[i] + B[i].sum()) * np.eye(2)
            new[i] = np.linalg.solve(left, b[i] + gamma[i] * x[i] + B[i] @ x - dual[i].sum(0))
        x, B = new, drawn_b(result.transcript, k) / 0.5
        dual += B[..., None] * (x[:, None] - x)
        assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13
    assert played("paillier-admm", stepsize=1.0, iterations=600, record=False).final.max() < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_encrypted_and_clear_agree_to_the_encoding(method):
    clear, sealed = played(method), played(method, **WEAK)
    assert 0 < np.abs(clear.trajectory - sealed.trajectory).max() < 1e-12
    coarse = played(method, fraction_bits=20, **WEAK)
    assert 1e-8 < np.abs(clear.trajectory - coarse.trajectory).max() < 1e-4
    assert np.array_equal(played(method, **WEAK).trajectory, sealed.trajectory)
    assert np.array_equal(sealed.trajectory[:11], of_threads(method, stepsize=sealed.stepsize[0], **WEAK))
    assert sealed.parameters["mode"] == "encrypted"
    crossings = 2 * len(LINKS.edges)
    assert (clear.bytes[1], sealed.bytes[1]) == (crossings * 2 * 8, crossings * 2 * 64)
    two = played(method, runs=2, iterations=5, **WEAK)
    assert np.abs(two.trajectory[:, 0] - sealed.trajectory[:6, 0]).max() < 1e-13


def test_the_mean_over_paillier():
    values = np.random.default_rng(3).normal(size=(5, 2))
    problem = sv.problems.average(values)
    clear = sv.run("paillier-consensus", problem, LINKS, iterations=400, record=True)
    assert np.array_equal(clear.trajectory[0, 0], values)
    assert np.abs(clear.x[0] - values.mean(0)).max() < 1e-13
    sealed = sv.run("paillier-consensus", problem, LINKS, iterations=30, record=True, **WEAK)
    assert 0 < np.abs(sealed.trajectory - clear.trajectory[:31]).max() < 1e-12
    assert np.abs(sealed.x[0].mean(0) - values.mean(0)).max() < 30 * 10 * 2.0**-48
    assert np.array_equal(sealed.trajectory[:11], of_threads("paillier-consensus", problem, LINKS, **WEAK))
    with pytest.raises(sv.errors.ProblemError, match="they hold none"):
        sv.run("paillier-consensus", P, LINKS, iterations=3)


def test_a_neighbour_reads_the_product_and_nobody_else_reads_anything():
    sealed, clear = (played("paillier", iterations=4, **given).transcript for given in (WEAK, {}))
    kinds = {m.dtype for m in sealed.sent.values()}
    assert kinds == {np.dtype(np.uint8)}
    edge = LINKS.edges.index((1, 2))
    secret, answer = sealed.states[0]["secret"], sealed.sent[3, 1]
    read = SMALL.decrypted(secret[2:3], answer[edge : edge + 1], 2**90, str)
    assert np.abs(real(read, 64) - clear.sent[3, 1][edge]).max() < 1e-13
    with pytest.raises(RunError, match="altered, or is for another key"):
        SMALL.decrypted(secret[1:2], answer[edge : edge + 1], 2**90, str)
    b = np.rint((0.5 + 0.5 * sealed.draws["draw-0", 3].value[edge, 0, 0]) * 65536)
    assert any(v % int(b) for v in read.flat)  # blurred: b does not divide what is read
    view = view_of(sealed, {2})
    assert not any(np.array_equal(view.states[3]["secret"][i], secret[i]) for i in (0, 1, 3, 4))
    assert np.array_equal(view.states[3]["secret"][2], secret[2])
    theirs = view.states[3]["theirs"]
    assert all(theirs[e].any() == (s == 2) for e, (s, _) in enumerate(LINKS.edges))
    assert set(view_of(sealed, "wire").sent) == set(sealed.sent)
    answers = np.stack([sealed.sent[k, 1] for k in range(4)]).reshape(-1, 64)[:, 1:]  # the first byte knows how large N^2 is
    histogram = np.bincount(answers.ravel(), minlength=256)
    assert ((histogram - histogram.mean()) ** 2 / histogram.mean()).sum() < 360  # chi-squared, 255 degrees: 1e-5 beyond


@pytest.mark.parametrize(("phase", "edge", "who"), [(1, (1, 2), 2), (0, (2, 1), 2), (0, (1, 2), 1)])
def test_a_message_altered_on_its_way_ends_the_run(phase, edge, who, monkeypatch):
    """An answer: its reader refuses. A question: whoever asked refuses the answer, which is for no plaintext of his."""

    class Altered(threads.Mail):
        def send(self, to, key, payload):
            if (to, key) == (edge, (3, phase)):
                payload = (payload[0].copy(),)
                payload[0][0, -3, 0] ^= 4
            super().send(to, key, payload)

    monkeypatch.setattr(threads, "Mail", Altered)
    with pytest.raises(RunError, match=f"iteration 4, node {who}: a ciphertext was altered"):
        of_threads("paillier", **WEAK)


def refused(words, error=ParameterError, method="paillier", graph=LINKS, problem=P, **given):
    with pytest.raises(error, match=words):
        sv.run(method, problem, graph, **{"iterations": 5, **given})


@pytest.mark.parametrize("method", METHODS)
def test_what_the_encrypted_methods_refuse(method, monkeypatch):
    refused("512 bits can be broken; take 2048 or more, or say weak_keys=True", method=method, mode="encrypted", key_bits=512)
    refused("multiple of 128, at least 256, not 1000", method=method, mode="encrypted", key_bits=1000, weak_keys=True)
    refused("lack 42 bits for this range", method=method, largest=1e50, **WEAK)
    refused(r"(set-up|iteration \d), node \d: .* does not fit the .* range of 0.1", Refused, method=method, largest=0.1, **WEAK)
    refused("does not run on the compiled player", method=method, backend="compiled", **WEAK)
    refused("two-way graph", sv.errors.GraphError, method=method, graph=sv.graphs.paper_b())
    refused("mode must be one of clear, encrypted", method=method, mode="secret")
    monkeypatch.setitem(sys.modules, "phe", None)
    refused(r"pip install 'sottovoce\[crypto\]'", NotInstalled, method=method, **WEAK)
    assert played(method, iterations=3).iterations == 3  # the clear mode needs nothing


def test_kinds_and_players_go_with_the_parameters():
    method = sv.registry.algorithm("paillier")
    clear, sealed = (method.settled_for({"mode": mode}) for mode in ("clear", "encrypted"))
    assert clear is method
    assert sealed.kinds == ("bytes", "bytes")
    assert sealed.players == ("eager", "peer")
    assert method.players == ("eager", "compiled", "peer")


# helpers, and two servers --------------------------------------------------------------------------------------------

B = sv.graphs.paper_b()
SERVERS = "two-servers"


class Held(NamedTuple):
    x: Any
    seen: Any


def lean(node, s):
    """Every verb beside two helpers, on a digraph: they answer with what they heard, and have no cost."""
    w, xp = node.weights, node.xp
    heard = node.gather(node.exchange(xp.where(node.to_helper == 1, node.spread(s.x), 0.0)))
    back = node.gather(node.hear(xp.where(node.helper == 1, heard, 0.0)))
    mixed = node.pull((w.R, s.x))
    bent = 0.01 * xp.sum(node.hessian(s.x), axis=1) + 0.01 * node.prox(node.gradient(s.x), 5.0 + node.degree) + 0.01 * node.value
    x = xp.where(node.helper < 0, 0.9 * mixed + 0.02 * back / node.public.n + bent, 0.5 * s.x)
    return Held(x, node.gradient(s.x))


LEAN = sv.Algorithm(
    "lean", lambda node, x: Held(x, 0 * x), lean, source="a test", leaks="all", exchanges=3, helpers=2,
    weights={"R": sv.rows("paper")},
)  # fmt: skip


def gap(a, b):
    return np.abs(a - b).max()


@pytest.mark.parametrize("method", [LEAN, SERVERS])
def test_helpers_on_all_players(method):
    problem = sv.problems.rendezvous(np.arange(10.0).reshape(5, 2) / 8)
    given = {"stepsize": 0.25, "iterations": 25, "record": True, "runs": 2}
    one, two = (sv.run(method, problem, B, backend=backend, **given) for backend in ("eager", "compiled"))
    three = of_threads(method, problem, B, 25)
    assert one.x.shape == (2, 5, 2)
    assert one.trajectory.shape == (26, 2, 5, 2)
    if method is LEAN:
        assert gap(one.trajectory, two.trajectory) < 1e-12
        assert gap(one.trajectory[:, :1], three) < 1e-12
        assert not any(one.transcript.states[k]["seen"][5:].any() for k in range(25))  # a zero gradient
        assert one.transcript.states[4]["seen"][:5].any()
    else:  # the same bits: sums mod 2^64 have no order
        assert np.array_equal(one.trajectory, two.trajectory)
        assert np.array_equal(one.trajectory[:, :1], three)
    graph = one.transcript.graph
    own = set() if method is SERVERS else set(B.edges)
    assert set(graph.edges) == own | {e for h in (5, 6) for i in range(5) for e in ((i, h), (h, i))}
    assert (graph.n, one.transcript.header["helpers"], one.stepsize.shape) == (7, 2, (1,))
    assert one.messages[1] == len(graph.edges) * (3 if method is LEAN else 2)


def test_two_servers_are_gradient_descent_to_the_step_of_the_encoding():
    bits, size = 30, 0.2
    result = sv.run(SERVERS, P, B, stepsize=size, iterations=60, record=True, fraction_bits=bits)
    H, b, _ = P.data
    total = lambda u: float(Fraction(sum(round(Fraction(float(v)) * 2**bits) for v in u), 2**bits))
    x = np.array([total(u) for u in drawn_starts(result).T])
    for k in range(61):
        assert np.ptp(result.trajectory[k, 0], axis=0).max() == 0  # all have the same x
        assert np.abs(result.trajectory[k, 0, 0] - x).max() < 2.0**-bits / 100
        g = np.einsum("nij,j->ni", H, result.trajectory[k, 0, 0]) - b
        x = result.trajectory[k, 0, 0] - np.array([total(u) for u in (size / 5 * g).T])
    exact = sv.run(SERVERS, P, B, stepsize=size, iterations=400)
    coarse = sv.run(SERVERS, P, B, stepsize=size, iterations=400, fraction_bits=20)
    assert exact.final[0] < 1e-10
    assert 1e-9 < coarse.final[0] < 1e-5


def drawn_starts(result):
    """What the parties brought: the shares of the set-up, put together."""
    sent, edges = result.transcript.sent[-1, 0][:, :, 0], result.transcript.edges
    words = [sent[edges.index((i, 5))] + sent[edges.index((i, 6))] for i in range(5)]
    return np.stack(words).astype(np.int64) / 2**30


def test_one_server_sees_uniform_words_and_both_see_everything():
    result = sv.run(SERVERS, P, B, stepsize=0.2, iterations=300, record=True)
    t, inbound = result.transcript, lambda h: [t.edges.index((i, h)) for i in range(5)]
    for server in (5, 6):
        view = view_of(t, {server})
        words = np.concatenate([view.sent[k, 0][inbound(server)].ravel() for k in range(300)])
        assert words.dtype == np.uint64
        assert not any(view.sent[k, 1][inbound(server)].any() for k in range(300))  # nothing comes back
        assert not any(view.sent[k, 0][inbound(11 - server)].any() for k in range(300))
        assert not any(np.nan_to_num(view.states[k]["x"]).any() for k in range(300))
        u = np.sort(words.astype(float) / 2.0**64)
        distance = np.abs(u - (np.arange(len(u)) + 0.5) / len(u)).max()
        assert distance * np.sqrt(len(u)) < 1.95  # Kolmogorov and Smirnov: 1e-3 beyond
        bits = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
        assert np.abs(bits - 0.5).max() * 2 * np.sqrt(len(words)) < 4.5
    both = view_of(t, {5, 6})
    u = both.sent[9, 0][inbound(5)] + both.sent[9, 0][inbound(6)]
    assert np.abs(u.astype(np.int64)[:, :, 0] / 2.0**40 - 0.2 / 5 * P.gradient(result.trajectory[9, 0])).max() <= 2.0**-40
    assert {d.known for d in t.draws.values()} == {"me"}
    assert not view_of(t, {5}).draws["draw-0", 3].value[:5].any()


def test_what_two_servers_refuse_and_who_may_be_curious():
    far = np.full((5, 2), 1e8)
    refused(r"set-up, node 0: a number does not fit the fixed-point range of 1.67772e\+06", Refused, SERVERS, B, x0=far)
    steep = sv.problems.rendezvous(np.array([0, 0, 0, 1e8, 0]))
    for backend in ("eager", "compiled"):
        refused("iteration 1, node 3: a number does not fit", Refused, SERVERS, B, problem=steep, stepsize=0.25, backend=backend)
    with pytest.raises(Refused, match="iteration 1, node 3: a number does not fit"):
        of_threads(SERVERS, steep, B)
    report = sv.audit(SERVERS, P, B, iterations=10, curious=[{5}, {5, 6}])
    assert {v.adversary for v in report.verdicts} == {(5,), (5, 6)}
    assert {v.node for v in report.verdicts} == set(range(5))  # a helper has nothing to hide
    with pytest.raises(ParameterError, match="no node 5"):
        sv.audit(SERVERS, P, B, iterations=10, victims=[5])
    assert main(["audit", SERVERS, "--iterations", "5", "--curious", "5,6", "--victims", "0"]) == 0
    apart = sv.Graph(5, [(0, 1), (1, 0)])
    assert sv.run(SERVERS, P, apart, iterations=300).final[0] < 1e-9  # only the nodes of the graph count
    with pytest.raises(ParameterError, match="does not go with helpers=0"):
        sv.Algorithm("none", lean, lean, source="a test", leaks="all", graphs="helpers")


# Remark 7: Paillier on the links -------------------------------------------------------------------------------------

ROUND = "paillier-links:key_bits=256,weak_keys=true"
PGT = "private-gradient-tracking"


def secrets(transcript, cipher=SMALL):
    """Every node's secret key, from what it drew."""
    drawn = transcript.draws["draw-0", -1]
    assert drawn.known == "me"
    return cipher.keys(drawn.value)[1]


@pytest.mark.parametrize(("method", "graph", "backend"), [(PGT, B, "eager"), ("ab", B, "compiled"), (SERVERS, B, "eager")])
def test_links_carry_ciphertext_and_the_ends_read_exactly(method, graph, backend):
    given = {"stepsize": 0.05, "iterations": 6, "record": True, "runs": 2, "backend": backend}
    plain, round_ = sv.run(method, P, graph, **given), sv.run(method, P, graph, mechanisms=ROUND, **given)
    if method != SERVERS:  # which draws at its start
        assert np.array_equal(plain.trajectory, round_.trajectory)
    t = round_.transcript
    sent, wire, keys = t.sent, t.wire, secrets(t)
    assert list(wire) == list(sent)
    rounds = [key for key in sent if key[0] == -1][: t.graph.diameter]
    assert all(np.array_equal(wire[key], sent[key]) for key in rounds)  # public keys are public
    for key in ((0, 0), (5, 1)):
        seen = wire[key]
        blocks = -(-8 * sent[key].shape[1] // 16)
        assert (seen.dtype, seen.shape) == (np.uint8, (len(t.edges), 64 * blocks, 2))
        assert np.array_equal(seen, wire[key])  # one message, one ciphertext
        for e, (_, receiver) in enumerate(t.edges):
            for run in range(2):
                message, secret = seen[e, :, run].tobytes(), keys[receiver, :, run].tobytes()
                assert np.array_equal(wire.opened(key, e, message, secret), sent[key][e, :, run])
                assert sent[key][e, :, run].tobytes() not in message
    view = view_of(t, "wire")
    assert not view.sent
    assert set(view.wire) == set(sent)


def test_another_key_or_byte_does_not_open_but_anybody_can_write():
    t = sv.run("ab", P, B, stepsize=0.02, iterations=3, record=True, mechanisms=ROUND).transcript
    keys, receiver = secrets(t), t.edges[0][1]
    message, own = t.wire[1, 0][0, :, 0].tobytes(), keys[receiver, :, 0].tobytes()
    other = keys[(receiver + 1) % 5, :, 0].tobytes()
    with pytest.raises(RunError, match="altered, or is for another key"):
        t.wire.opened((1, 0), 0, message, other)
    for at in range(0, 64, 7):
        with pytest.raises(RunError, match="altered, or is for another key"):
            t.wire.opened((1, 0), 0, bytes(b ^ (i == at) for i, b in enumerate(message)), own)
    forged = SMALL.encrypt(SMALL.private(own).public_key, number(np.array([7.0, 8.0]).tobytes()), words(6)[0, :, 0])
    assert t.wire.opened((1, 0), 0, forged.to_bytes(64, "big"), own).tolist() == [7.0, 8.0]


def test_flooded_tables_reach_everybody_and_their_bytes_are_counted():
    line = sv.graphs.cycle(6)
    problem = sv.problems.rendezvous(np.arange(6.0))
    result = sv.run("ab", problem, line, stepsize=0.1, iterations=2, record=True, mechanisms=ROUND)
    assert line.diameter == 5
    first, last = (result.transcript.sent[-1, e][:, :, 0].reshape(6, 6, 32) for e in (0, 4))  # edge, whose key, bytes
    own = {s: first[e, s] for e, (s, _) in enumerate(line.edges)}
    for e, (sender, receiver) in enumerate(line.edges):
        assert first[e].any(1).tolist() == [i == sender for i in range(6)]
        assert last[e].any(1).tolist() == [i != receiver for i in range(6)]  # after four rounds only the receiver's is missing
        assert all(np.array_equal(last[e, i], own[i]) for i in range(6) if i != receiver)
    assert result.bytes[0] == sum(m.nbytes for (k, _), m in result.transcript.sent.items() if k == -1) == 5 * 6 * 6 * 32
    task = prepare(
        "ab", problem, line, stepsize=0.1, iterations=2, runs=1, seed=0, mechanisms=ROUND, record=True, x0=None, every=1,
        tolerance=None, parameters={},
    )  # fmt: skip
    assert np.array_equal(np.moveaxis(threads.play(task).answers, -1, 1), result.trajectory)


def test_what_paillier_links_refuse(monkeypatch):
    refused("keys of 1024 bits can be broken", method="ab", graph=B, mechanisms="paillier-links:key_bits=1024")
    refused("both change wire", method="ab", graph=B, mechanisms=("encrypted-links", ROUND))
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    refused(r"pip install 'sottovoce\[crypto\]'", NotInstalled, method="ab", graph=B, mechanisms=ROUND)


# the command line ----------------------------------------------------------------------------------------------------


def test_the_command_line_encrypts(capsys):
    line = ["run", "paillier-admm:mode=encrypted,key_bits=256,weak_keys=true", "--problem", "estimation:n=3,d=1"]
    assert main([*line, "--graph", "star:n=3", "--iterations", "3"]) == 0
    assert "paillier-admm" in capsys.readouterr().out
    assert main(["run", "paillier:mode=encrypted,key_bits=256", "--graph", "star:n=3"]) == 2
    assert "can be broken" in capsys.readouterr().err
