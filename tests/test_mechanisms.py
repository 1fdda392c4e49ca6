"""Each mechanism on several algorithms and all players: what it changes, what it leaves as it was, and what it refuses."""

import os
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import NotInstalled, ParameterError, RunError
from sottovoce.layout import layout
from sottovoce.mechanisms import encrypted_links
from sottovoce.simulate import threads, weigh
from sottovoce.simulate.task import prepare
from sottovoce.view import view_of

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
MEAN = sv.problems.average(np.random.default_rng(5).normal(size=(5, 2)))
B = sv.graphs.paper_b()
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
TURNS = sv.GraphSequence([sv.Graph(5, sv.graphs.paper_b().edges[i::2]) for i in range(2)])
PGT, GT = "private-gradient-tracking", "gradient-tracking"
DRAWN = {"R": "paper", "C": "paper:eta=0.2"}
SCALAR, COORDINATE = "secret-late-weights", "secret-late-weights:each=coordinate"
NOISE, SEALED = "message-noise", "encrypted-links"
EDGES = len(B.edges)


class Said(NamedTuple):
    x: Any
    seed: Any


def begin(node, x):
    seed = node.draw("normal", like=x, known="edge")
    return Said(x, node.gather(node.exchange(seed)))


def say(node, s):
    """An exchange of its own on each edge, one to all, words, and a tuple pulled with two weights and an own share."""
    edge, one = node.exchange((0.1 * node.spread(s.x), node.spread(s.seed))), node.hear(s.x)
    came = node.hear(node.draw("words", like=s.x[:, :1]))
    small = node.gather((came >> np.uint64(40)) * 2.0**-30)
    w = node.weights
    x, seed = node.pull((w.R, (s.x, s.seed)), (-0.5 * w.R, (0 * s.x, 0.1 * s.seed)), (w.I, (s.x, s.seed)))
    grown = node.gather(edge[0] + 0.1 * edge[1] + 0.1 * one)
    return Said(0.3 * x + 0.05 * grown + small - w.stepsize * node.gradient(s.x), 0.3 * seed)


TALKATIVE = sv.Algorithm(
    "talkative", begin, say, source="a test", leaks="all", exchanges=4, weights={"R": sv.rows("paper"), "I": sv.rows("identity")}
)


def played(method, graph=B, backend="eager", **given):
    given = {"stepsize": 0.02, "iterations": 60, "runs": 2, "record": True, **given}
    problem = P if sv.registry.algorithm(method).minimises else MEAN
    return sv.run(method, problem, graph, backend=backend, **given)


def of_threads(method, graph=B, mechanisms=(), iterations=60, **given):
    task = prepare(
        sv.registry.algorithm(method), P, graph, stepsize=0.02, iterations=iterations, runs=1, seed=0, mechanisms=mechanisms,
        record=True, x0=None, every=1, tolerance=None, parameters=given,
    )  # fmt: skip
    return np.moveaxis(threads.play(task).answers, -1, 1)


def gap(a, b):
    """The largest difference of two trajectories, in units of the largest entry at each k and run."""
    return (np.abs(a - b).max((2, 3)) / np.abs(a).max((2, 3))).max()


def all_players_agree(method, graph=B, **given):
    one = played(method, graph, **given)
    two = played(method, graph, "compiled", **given)
    assert gap(one.trajectory, two.trajectory) < 1e-12
    assert gap(one.trajectory[:, :1], of_threads(method, graph, **given)) < 1e-12
    assert list(one.transcript.sent) == list(two.transcript.sent)
    for key, message in one.transcript.sent.items():
        assert np.allclose(message, two.transcript.sent[key], rtol=1e-11, atol=1e-11, equal_nan=True)
    return one, two


def refused(words, method, mechanisms, error=ParameterError, **given):
    with pytest.raises(error, match=words):
        played(method, mechanisms=mechanisms, **given)


# secret late weights -------------------------------------------------------------------------------------------------

SECRET = [
    (PGT, B, SCALAR, {"K": 3}),
    (PGT, B, COORDINATE, {"K": 3}),
    (GT, B, COORDINATE, DRAWN),
    ("push-diging", B, SCALAR, {"C": "paper"}),
    ("ab-tv", TURNS, COORDINATE, {"R": "paper", "C": "paper"}),
]


@pytest.mark.parametrize(("method", "graph", "secret", "given"), SECRET)
def test_secret_weights_on_all_players(method, graph, secret, given):
    one, two = all_players_agree(method, graph, mechanisms=secret, **given)
    for transcript in (one.transcript, two.transcript):
        late = {name: d for (name, k), d in transcript.draws.items() if k == 40}
        assert {d.known for d in late.values() if d.law == "unit"} == {"me"}
        assert {d.known for d in late.values() if d.law == "constant"} <= {"all"}
        assert all(d.value.shape[1] == (2 if secret == COORDINATE else 1) for d in late.values() if d.law == "unit")
    assert {d.known for (_, k), d in played(method, graph, **given).transcript.draws.items() if k == 40} == {"all"}


@pytest.mark.parametrize(("method", "given"), [(PGT, {"K": 3}), (PGT, {"K": 0, "eta": 0.1}), (GT, DRAWN), (TALKATIVE, {})])
def test_scalar_secrets_are_the_same_numbers(method, given):
    for backend in ("eager", "compiled")[: 2 if given == {"K": 3} else 1]:
        plain, secret = played(method, backend=backend, **given), played(method, backend=backend, mechanisms=SCALAR, **given)
        assert np.array_equal(plain.trajectory, secret.trajectory)


def test_one_weight_a_coordinate_follows_the_sampler():
    runs = {name: played(PGT, K=3, eta=0.15, mechanisms=name, iterations=400).transcript for name in (SCALAR, COORDINATE)}
    entries = layout(B)
    for name, index in (("R", entries.target), ("A", entries.target), ("C", entries.source), ("B", entries.source)):
        scalar, each = (np.stack([t.draws[name, k].value for k in range(3, 400)]) for t in runs.values())
        assert np.array_equal(scalar[:, :, 0], each[:, :, 0])  # the first coordinate has the scalar's words
        assert each.min() >= 0.15
        assert each.max() < 1
        groups = np.zeros((397, 5, 2, 2))
        np.add.at(groups, (slice(None), index), each)
        assert np.abs(groups - 1).max() < 1e-14
        loose = [np.corrcoef(each[:, e, 0, 0], each[:, e, 1, 0])[0, 1] for e in range(len(index))]
        assert np.abs(loose).max() < 0.25  # 397 pairs: five standard deviations
        assert np.allclose(each.mean(0), 1 / np.bincount(index)[index][:, None, None], atol=0.05)


def test_the_random_start_rules_until_it_ends():
    plain, secret = (played(PGT, K=3, mechanisms=name).transcript for name in ((), COORDINATE))
    given = played(GT, mechanisms=("random-start:K=3", COORDINATE), **dict.fromkeys("RACB", "paper")).transcript
    for k in range(3):
        for name, leaf in plain.states[k].items():
            assert np.array_equal(leaf, secret.states[k][name])
            assert np.array_equal(leaf, given.states[k][name])
        assert {secret.draws[name, k].law for name in "RACB"} == {"normal(scale 1)"}
    assert not np.array_equal(plain.states[3]["x"], secret.states[3]["x"])
    assert np.array_equal(given.states[30]["x"], secret.states[30]["x"])


@pytest.mark.parametrize("secret", [SCALAR, COORDINATE])
def test_secret_weights_keep_the_optimum(secret):
    for given in ({"K": 3}, {"K": 0}):
        result = played(PGT, mechanisms=secret, stepsize=0.06, iterations=2500, runs=5, record=False, **given)
        assert result.final.max() < 1e-12
        assert result.invariant < 1e3


QUIET = [(GT, {}), (GT, DRAWN), ("ab", {}), (PGT, {"K": 2}), (PGT, {"K": 1, "mechanisms": (SCALAR, "quiet")})]


@pytest.mark.parametrize(("method", "given"), QUIET)
def test_one_vector_on_all_players(method, given):
    all_players_agree(method, **{"mechanisms": "quiet", **given})


def test_one_vector_is_half_of_two_from_the_first_iteration_on():
    loud, quiet = (played(PGT, K=2, mechanisms=layer, runs=1, iterations=1200, stepsize=0.06) for layer in ((), "quiet"))
    for k in (0, 1, 2, 700):
        assert loud.transcript.sent[k, 0].shape[1] == 4
        assert quiet.transcript.sent[k, 0].shape[1] == 2
        assert ("A", k) in loud.transcript.draws
        assert ("A", k) not in quiet.transcript.draws
    before = quiet.transcript.states[7]
    for e, (s, _) in enumerate(B.edges):  # x - u, and nothing else
        assert np.array_equal(quiet.transcript.sent[8, 0][e], (before["x"] - 0.06 * before["y"])[s])
    assert max(loud.final[0], quiet.final[0]) < 1e-9
    assert quiet.parameters["A"] == "R"
    same, one = (played(GT, mechanisms=layer) for layer in ((), "quiet"))  # which has A = R anyhow
    assert np.array_equal(same.trajectory, one.trajectory)


def test_one_vector_is_refused_where_there_are_no_two():
    refused("has no such weights", "dgd", "quiet", graph=TWO_WAY)
    refused("must come before it", GT, ("quiet", "random-start"))
    refused("makes A the same as R", GT, "quiet", A="uniform")
    refused("makes A the same as R", GT, "quiet", A=np.eye(5))
    assert played(GT, mechanisms="quiet", A="R", iterations=2).parameters["A"] == "R"


def test_weights_that_are_not_sampled_stay_public():
    draws = played(GT, C="paper", mechanisms=SCALAR).transcript.draws
    assert draws["C", 7][:3] == ("sender", "me", "unit")
    assert draws["R", 7][:3] == ("receiver", "all", "constant")


@pytest.mark.parametrize("mechanisms", [(), SCALAR, COORDINATE])
def test_pieces_are_the_whole(mechanisms, monkeypatch):
    for given in ({"R": "uniform", "C": "paper"}, DRAWN):
        whole = played(GT, mechanisms=mechanisms, **given)
        with monkeypatch.context() as patch:
            patch.setattr(weigh, "LIMIT", 10)
            assert gap(whole.trajectory, played(GT, mechanisms=mechanisms, record=True, **given).trajectory) < 1e-12


def test_secret_weights_are_refused_with_a_reason():
    refused("drawn afresh.*none is: take private-gradient-tracking with late='fresh'", "ab", SCALAR)
    refused("drawn afresh", PGT, SCALAR, late="fixed")
    refused("drawn afresh", GT, SCALAR, backend="compiled")
    refused("vectors of d numbers", "push-diging", COORDINATE, C="paper")
    refused("random start must come before it", GT, (SCALAR, "random-start"), R="paper")
    refused("both change weights", PGT, (SCALAR, COORDINATE))
    refused("each must be one of scalar, coordinate, not 'entry'", PGT, "secret-late-weights:each=entry")
    refused("the weight rule 'paper' takes", GT, (), R="paper:known=me", error=sv.errors.WeightError)


# noise on messages ---------------------------------------------------------------------------------------------------

NOISY = [
    (PGT, B, {"K": 3}),
    ("aug-dgm", B, {}),
    ("add-opt", B, {}),
    ("asyn-dgm", TWO_WAY, {}),
    (TALKATIVE, B, {}),
]


@pytest.mark.parametrize(("method", "graph", "given"), NOISY)
def test_noise_on_all_players(method, graph, given):
    noisy, _ = all_players_agree(method, graph, mechanisms=f"{NOISE}:law=laplace,scale=0.01", **given)
    assert gap(noisy.trajectory, played(method, graph, **given).trajectory) > 1e-6
    assert np.ptp(noisy.trajectory[-1], axis=0).min() > 1e-6  # runs differ


@pytest.mark.parametrize("name", sv.registry.algorithms())
def test_hardly_any_noise_changes_hardly_anything(name):
    method = sv.registry.algorithm(name)
    graph = B if method.graphs != "two-way" and "metropolis" not in str(method.weights) else TWO_WAY
    given = {"K": 3} if "K" in method.parameters else {}
    plain, noisy = (played(name, graph, mechanisms=m, **given) for m in ((), f"{NOISE}:scale=1e-200"))
    assert gap(plain.trajectory, noisy.trajectory) < 1e-11
    for key, message in plain.transcript.sent.items():
        assert np.allclose(message, noisy.transcript.sent[key], rtol=1e-9, atol=1e-11)


def test_what_is_sent_is_what_is_read():
    """x^1 and y^1 of gradient tracking from the messages, the weights and the own values alone."""
    t = played(GT, mechanisms=NOISE, iterations=1, B="identity", runs=1).transcript
    R, C = (t.draws[name, 0].value[:, :, 0] for name in "RC")
    before, after, entries = t.states[-1], t.states[0], layout(B)
    x, y = (before[name][:, :, 0] for name in "xy")
    pulled, pushed = (t.sent[0, e][:, :, 0] for e in (0, 1))
    add = lambda base, rows: [np.add.at(base, entries.receiver, rows), base][1]
    said, step = R[entries.edges] * pulled, 0.02 * y
    assert np.allclose(add(R[entries.loops] * (x - step), said), after["x"][:, :, 0], rtol=1e-13, atol=1e-14)
    kept = C[entries.loops] * y + (after["g"] - before["g"])[:, :, 0]
    assert np.allclose(add(kept, pushed), after["y"][:, :, 0], rtol=1e-13, atol=1e-14)
    to_all, to_each = t.draws["draw-0", 0], t.draws["draw-1", 0]
    assert to_all[:3] == ("node", "me", "normal(scale 0.001)")
    assert to_each[:3] == ("edge", "me", "normal(scale 0.001)")
    assert np.allclose(pulled - (x - step)[entries.sender], to_all.value[entries.sender, :, 0], atol=1e-15)
    assert np.allclose(pushed - C[entries.edges] * y[entries.sender], to_each.value[:, :, 0], atol=1e-15)
    assert len(np.unique(to_each.value)) == 2 * EDGES


def test_what_threads_send_is_what_the_transcript_says(monkeypatch):
    sent: dict = {}

    class Copied(threads.Mail):
        def send(self, edge, key, payload):
            sent[edge, key] = np.concatenate(payload, -2)[0]
            super().send(edge, key, payload)

    monkeypatch.setattr(threads, "Mail", Copied)
    of_threads(TALKATIVE, mechanisms=NOISE, iterations=5)
    t = played(TALKATIVE, mechanisms=NOISE, iterations=5, runs=1).transcript
    assert len(sent) == len(t.sent) * EDGES
    assert all(np.allclose(t.sent[key][B.edges.index(edge)], value, rtol=1e-12) for (edge, key), value in sent.items())
    assert t.sent[3, 2].dtype == np.uint64  # words are left as they are
    first = np.array([B.sender.tolist().index(sender) for sender in B.sender])
    assert np.array_equal(t.sent[3, 1], t.sent[3, 1][first])  # said to all: the same noise to all
    assert len(np.unique(t.sent[-1, 0])) == 2 * EDGES
    assert np.ptp(t.sent[3, 0] - t.sent[3, 0][first]) > 1e-4
    clean = played(TALKATIVE, iterations=5, runs=1).transcript
    assert all(t.sent[key].dtype == message.dtype for key, message in clean.sent.items())


def test_the_floor_is_proportional_to_the_scale():
    final = {}
    for scale in (1e-3, 1e-5, 1e-7):
        noise = f"{NOISE}:scale={scale}"
        final[scale] = played("ab", mechanisms=noise, iterations=1500, runs=20, record=False, stepsize=0.06).final
    assert np.median(final[1e-3]) > 5e-3  # many times the scale
    assert np.allclose(final[1e-3] / final[1e-5], 100, rtol=1e-3)
    assert np.allclose(final[1e-5] / final[1e-7], 100, rtol=1e-2)


def test_the_drift_is_reported_and_raises_nothing():
    for backend in ("eager", "compiled"):
        noisy = played(PGT, backend=backend, K=3, mechanisms=f"{NOISE}:law=laplace,scale=0.01")
        states = [noisy.transcript.states[k] for k in range(60)]
        units = lambda s: 5 * np.finfo(float).eps * np.maximum(np.abs(s["y"]).max((0, 1)), np.abs(s["g"]).max((0, 1)))
        drift = max((np.abs((s["g"] - s["y"]).sum(0) / 5).max(0) / units(s)).max() for s in states)
        assert drift > 1e9
        assert np.isclose(noisy.invariant, drift, rtol=1e-6)
    assert played(PGT, K=3).invariant < 1e3
    assert played("push-diging", mechanisms=NOISE).invariant > 1e9


def test_noise_has_its_law():
    for law, moment in (("normal", np.std), ("laplace", lambda v: np.abs(v).mean())):
        t = played("ab", mechanisms=f"{NOISE}:law={law},scale=0.02", iterations=400).transcript
        for call in range(2):
            values = np.stack([t.draws[f"draw-{call}", k].value for k in range(400)])
            assert abs(moment(values) / 0.02 - 1) < 0.05
            assert abs(values.mean()) < 2e-3
    refused("law must be one of normal, laplace, not 'cauchy'", "ab", f"{NOISE}:law=cauchy")
    refused("scale must be a number above 0, not 0", "ab", f"{NOISE}:scale=0")
    refused("both change pull, push|both change exchange", "ab", (NOISE, f"{NOISE}:scale=1"))


# encrypted links -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "given", "backend"),
    [(PGT, {"K": 3}, "eager"), (PGT, {"K": 3}, "compiled"), ("add-opt", {}, "eager"), (TALKATIVE, {}, "eager")],
)
def test_the_wire_carries_ciphertext_and_the_ends_read_plain(method, given, backend):
    plain = played(method, backend=backend, iterations=8, **given)
    sealed = played(method, backend=backend, iterations=8, mechanisms=SEALED, **given)
    assert np.array_equal(plain.trajectory, sealed.trajectory)
    sent, wire = sealed.transcript.sent, sealed.transcript.wire
    assert list(wire) == list(sent) == list(plain.transcript.sent)
    assert len(wire) == len(sent) >= 8
    assert len(plain.transcript.wire) == 0
    seen = set()
    for key, payload in sent.items():
        bytes_ = wire[key]
        assert bytes_.dtype == np.uint8
        assert bytes_.shape == (EDGES, 8 * payload.shape[1] + 16, payload.shape[2])
        assert np.array_equal(bytes_, wire[key])  # sealed once: the same nonce never has another message
        for edge, run in np.ndindex(EDGES, payload.shape[2]):
            message = bytes_[edge, :, run].tobytes()
            assert np.array_equal(wire.opened(key, edge, message, run), payload[edge, :, run])
            assert all(np.array(number).tobytes() not in message for number in payload[edge, :, run])
            seen.add(message)
    assert len(seen) == sum(m.shape[0] * m.shape[2] for m in sent.values())


def test_a_marker_does_not_appear():
    marker = np.frombuffer(b"A MARKER", float)[0]
    t = played("ab", mechanisms=SEALED, iterations=2, x0=np.full((5, 2), marker), runs=3).transcript
    open_ = played("ab", iterations=2, x0=np.full((5, 2), marker), runs=3, stepsize=1e-300).transcript
    assert b"A MARKER" in open_.sent[0, 0].tobytes()
    everything = b"".join(m.tobytes() + np.moveaxis(m, -1, 0).tobytes() for m in t.wire.values())
    assert b"MARKER" not in everything
    firsts = t.wire[0, 0]
    assert len({firsts[e, :, r].tobytes() for e in range(EDGES) for r in range(3)}) == 3 * EDGES  # a key each
    histogram = np.bincount(np.frombuffer(everything, np.uint8), minlength=256)
    assert ((histogram - histogram.mean()) ** 2 / histogram.mean()).sum() < 2 * 600  # each byte stands there twice


def test_another_key_place_or_byte_does_not_open():
    one, two = (played("ab", mechanisms=SEALED, iterations=3, runs=1).transcript for _ in range(2))
    assert np.array_equal(one.sent[1, 0], two.sent[1, 0])
    message = one.wire[1, 0][0, :, 0].tobytes()
    assert message != two.wire[1, 0][0, :, 0].tobytes()
    assert np.array_equal(one.wire.opened((1, 0), 0, message), one.sent[1, 0][0, :, 0])
    for wire, key, edge in ((two.wire, (1, 0), 0), (one.wire, (2, 0), 0), (one.wire, (1, 1), 0), (one.wire, (1, 0), 1)):
        with pytest.raises(RunError, match="altered, or sealed with another key"):
            wire.opened(key, edge, message)
    for at in range(len(message)):
        altered = bytes(b ^ (i == at) for i, b in enumerate(message))
        with pytest.raises(RunError, match=r"\(1, 0\).*edge 0 was altered"):
            one.wire.opened((1, 0), 0, altered)


def test_no_nonce_twice():
    keys = [(k, e) for k in range(-1, 400) for e in range(20)]
    assert len({encrypted_links.nonce(key) for key in keys}) == len(keys)
    assert {len(encrypted_links.nonce(key)) for key in keys} == {12}


def test_keys_stay_where_they_are(tmp_path, monkeypatch):
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    keys: list[bytes] = []
    made = lambda: [keys.append(os.urandom(32)), ChaCha20Poly1305(keys[-1])][1]
    monkeypatch.setattr(encrypted_links, "new_cipher", made)
    result = played("ab", mechanisms=SEALED, iterations=4, runs=1)
    t = result.transcript
    assert not keys  # nothing is sealed before somebody looks
    t.save(tmp_path)
    assert len(keys) == EDGES
    with np.load(tmp_path / "transcript.npz") as stored:
        written = b"".join(stored[name].tobytes() for name in stored.files)
    copied = pickle.dumps(t.wire)
    written += b"".join(f.read_bytes() for f in tmp_path.iterdir()) + copied + f"{t!r} {t.header} {result!r}".encode()
    for key in keys:
        assert key not in written
        assert key.hex().encode() not in written
    assert t.header["mechanisms"] == ["encrypted-links()"]
    loaded = sv.Transcript.load(tmp_path)
    for kept in (loaded.wire, pickle.loads(copied)):
        assert type(kept) is dict
        assert set(kept) == set(t.wire)
        assert all(np.array_equal(kept[key], t.wire[key]) for key in kept)


def test_a_wire_tapper_is_given_no_plaintext():
    for stack in ((SEALED,), (NOISE, SEALED), (SEALED, COORDINATE)):
        t = played(PGT, K=2, mechanisms=stack, iterations=5, runs=1).transcript
        view = view_of(t, "wire")
        assert not view.sent
        assert set(view.wire) == set(t.sent)
        assert all(type(m) is np.ndarray and m.dtype == np.uint8 for m in view.wire.values())
        node = view_of(t, {1})
        assert not node.wire
        assert np.array_equal(node.sent[3, 0][B.edges.index((0, 1))], t.sent[3, 0][B.edges.index((0, 1))])
    assert view_of(played(PGT, iterations=5).transcript, "wire").sent


def test_sealed_links_keep_the_optimum_and_say_what_they_need(monkeypatch):
    result = played(PGT, K=3, mechanisms=SEALED, stepsize=0.06, iterations=2500, record=False)
    assert result.final.max() < 1e-12
    assert of_threads("ab", mechanisms=SEALED).shape == (61, 1, 5, 2)
    refused("both change wire", "ab", (SEALED, SEALED))
    monkeypatch.setitem(sys.modules, "cryptography", None)
    refused(r"encrypted-links needs the extra \[node\]", "ab", SEALED, error=NotInstalled)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(NotInstalled, match=r"pip install 'sottovoce\[node\]'"):
        encrypted_links.new_cipher()
