"""sv.run and what it gives back: shapes, counts, files, transcripts recomputed by hand, divergence, changing graphs."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import Diverged, GraphError, InputError, ParameterError
from sottovoce.progress import Bar

PROBLEM = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
GRAPH = sv.graphs.paper_b()
PGT = "private-gradient-tracking"
PIECES = [  # no graph alone is connected, all together are
    sv.Graph(5, [(0, 1), (2, 3)]),
    sv.Graph(5, [(1, 2), (4, 0)]),
    sv.Graph(5, [(3, 4), (0, 2), (2, 0)]),
]
LINKS = [sv.Graph(5, [(a, b), (b, a)]) for a, b in [(0, 1), (1, 2), (2, 3), (3, 4)]]


def play(method="ab", graph=GRAPH, problem=PROBLEM, **options):
    return sv.run(method, problem, graph, **{"stepsize": 0.1, "iterations": 20, **options})


def dense(entries):
    """A weight's numbers (entries, c, runs) as (n, n, c, runs): sorted by receiver, then sender, loops among them."""
    places = sorted([*((r, s) for s, r in GRAPH.edges), *((i, i) for i in range(5))])
    W = np.zeros((5, 5, *entries.shape[1:]))
    for (i, j), w in zip(places, entries, strict=True):
        W[i, j] = w
    return W


# Result --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "compiled"])
def test_shapes(backend):
    result = play(PGT, runs=3, K=2, iterations=7, every=3, record=True, backend=backend)
    assert result.x.shape == (3, 5, 2)
    assert result.recorded.tolist() == [0, 3, 6, 7]
    assert result.error.shape == (3, 4)
    assert result.trajectory.shape == (4, 3, 5, 2)
    assert result.messages.shape == result.bytes.shape == (8,)
    assert (result.iterations, result.backend, result.seed, result.spent, result.audit) == (7, backend, 0, None, None)
    assert result.parameters["K"] == 2
    assert result.optimum.shape == (2,)
    assert np.array_equal(result.final, result.error[:, -1])
    assert np.array_equal(result.trajectory[-1], result.x)
    assert np.allclose(result.error, np.linalg.norm(result.trajectory - PROBLEM.optimum, axis=(2, 3)).T, rtol=1e-12)
    assert all(type(a) is np.ndarray for a in (result.x, result.error, result.trajectory, result.messages))
    for word in (PGT, "5 nodes", "d = 2", "7 iterations", backend, "3 runs", "bytes sent"):
        assert word in repr(result)


def test_nothing_is_recorded_unless_asked():
    result = play()
    assert result.trajectory is None
    assert result.transcript is None


def test_x0_is_honoured_and_otherwise_normal():
    one, each = np.arange(10.0).reshape(5, 2), np.random.default_rng(0).normal(size=(3, 5, 2))
    assert np.array_equal(play(x0=one, runs=3, record=True).trajectory[0], np.stack([one] * 3))
    assert np.array_equal(play(x0=each, runs=3, record=True).trajectory[0], each)
    drawn = play(runs=400, iterations=1, record=True).trajectory[0]
    assert abs(drawn.mean()) < 0.1
    assert abs(drawn.std() - 1) < 0.05


def test_runs_can_be_played_alone_and_seeds_differ():
    whole, part = play(PGT, runs=20, K=3, stepsize=0.06), play(PGT, runs=[17, 3], K=3, stepsize=0.06)
    assert np.array_equal(whole.error[[17, 3]], part.error)
    assert np.array_equal(whole.error, play(PGT, runs=20, K=3, stepsize=0.06).error)
    assert (play(PGT, runs=20, K=3, stepsize=0.06, seed=1).error != whole.error).all()


def recursion(stepsize, R, C):
    """AB: x+ = R x - s y, y+ = C y + H (x+ - x), as one matrix."""
    H = np.zeros((10, 10))
    for i, block in enumerate(PROBLEM.hessian(PROBLEM.optimum)):
        H[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    R, C, I = np.kron(R, np.eye(2)), np.kron(C, np.eye(2)), np.eye(10)
    return np.block([[R, -stepsize * I], [H @ (R - I), C - stepsize * H]])


def test_rate_is_the_spectral_radius():
    result = play(iterations=600)
    A = GRAPH.adjacency() + np.eye(5)
    sizes = np.abs(np.linalg.eigvals(recursion(0.1, A / A.sum(1, keepdims=True), A / A.sum(0))))
    slowest = np.sort(sizes[np.abs(sizes - 1) > 1e-9])[-1]  # the ones at 1 are sum y = sum g, kept
    assert result.rate() == pytest.approx(slowest, abs=1e-3)
    assert result.final[0] < 1e-11


@pytest.mark.parametrize(
    ("method", "numbers", "exchanges"), [("ab", 4, 2), ("push-pull", 4, 2), (PGT, 6, 2), ("add-opt", 5, 1), ("dgd", 2, 1)]
)
def test_messages_and_bytes(method, numbers, exchanges):
    """Eight edges. AB: x, then one sum of gradients; private: x, Lambda y and one sum; ADD-OPT: x, v, y together."""
    result = play(method, iterations=6, **({"K": 3, "stepsize": 0.06} if method == PGT else {}))
    assert result.messages.tolist() == [0] + [8 * exchanges] * 6
    assert result.bytes.tolist() == [0] + [8 * 8 * numbers] * 6


def test_messages_of_a_sequence_follow_its_graphs():
    assert play("push-diging", PIECES, iterations=4).messages.tolist() == [0, 2, 2, 3, 2]
    assert play("ab-tv", PIECES, iterations=4).messages.tolist() == [0, 4, 4, 6, 4]


def test_tolerance_stops_where_nothing_moves_by_more():
    long = play(iterations=400, record=True, runs=2)
    moves = np.abs(np.diff(long.trajectory, axis=0)).max((1, 2, 3))
    expected = int((moves <= 1e-6).argmax()) + 1
    for backend in ("eager", "compiled"):
        short = play(iterations=400, tolerance=1e-6, backend=backend, runs=2)
        assert short.iterations == short.recorded[-1] == expected
        assert len(short.messages) == expected + 1
        assert np.allclose(short.x, long.trajectory[expected], atol=1e-13)
    assert play(iterations=400, tolerance=1e-6, every=50, runs=2).iterations == expected


def test_the_last_error_is_that_of_the_last_iterate_after_a_tolerance():
    result = play(iterations=400, tolerance=1e-6, every=50)
    assert result.recorded[-1] == result.iterations
    assert result.final[0] == pytest.approx(np.linalg.norm(result.x[0] - PROBLEM.optimum), rel=1e-12)


def test_a_tolerance_does_not_stop_inside_the_random_start():
    result = play(PGT, K=6, tolerance=1e9, stepsize=0.06)
    assert result.iterations == 7


def test_own_stepsizes():
    steps = np.array([0.05, 0.1, 0.08, 0.02, 0.12])
    assert play("gradient-tracking", stepsize=steps, iterations=800).final[0] < 1e-11
    one = play("gradient-tracking", stepsize=[0.1] * 5, record=True)
    assert np.allclose(one.trajectory, play("gradient-tracking", record=True).trajectory, rtol=1e-13)
    with pytest.raises(ParameterError, match="one stepsize for all nodes"):
        play("ab", stepsize=steps)


# files ---------------------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    result = play(PGT, runs=2, K=3, record=True, stepsize=0.06)
    loaded = sv.Result.load(result.save(tmp_path / "new" / "folder"))
    for name in ("x", "error", "recorded", "messages", "bytes", "stepsize", "optimum", "trajectory"):
        assert np.array_equal(getattr(loaded, name), getattr(result, name)), name
    for name in ("algorithm", "iterations", "invariant", "seed", "backend", "spent", "mechanisms", "provenance"):
        assert getattr(loaded, name) == getattr(result, name), name
    assert loaded.parameters["K"] == 3
    assert repr(loaded) == repr(result)
    same_transcript(loaded.transcript, result.transcript)


def test_parameters_come_back_as_they_were(tmp_path):
    result = play(PGT, iterations=2)
    assert sv.Result.load(result.save(tmp_path)).parameters == result.parameters


def test_seeds_beyond_two_to_the_63_come_back(tmp_path):
    assert sv.Result.load(play(seed=2**64 - 1, iterations=2).save(tmp_path)).seed == 2**64 - 1


def test_saving_without_a_record_leaves_no_older_transcript(tmp_path):
    play(record=True).save(tmp_path)
    assert sv.Result.load(play().save(tmp_path)).transcript is None


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected a folder with result.toml"):
        sv.Result.load(tmp_path)


def test_half_a_folder_is_refused(tmp_path):
    (play(iterations=2, record=True).save(tmp_path) / "result.npz").unlink()
    with pytest.raises(InputError):
        sv.Result.load(tmp_path)
    (tmp_path / "transcript" / "transcript.toml").unlink()
    with pytest.raises(InputError):
        sv.Transcript.load(tmp_path / "transcript")


def same_transcript(a, b):
    assert a.header == b.header
    assert a.edges == b.edges == GRAPH.edges
    assert a.iterations == b.iterations
    assert set(a.sent) == set(b.sent)
    assert all(np.array_equal(a.sent[key], b.sent[key]) for key in b.sent)
    assert set(a.draws) == set(b.draws)
    for key, draw in b.draws.items():
        assert tuple(a.draws[key][:3]) == tuple(draw[:3])
        assert np.array_equal(a.draws[key].value, draw.value)
    assert set(a.states) == set(b.states)
    assert all(np.array_equal(a.states[k][name], v) for k in b.states for name, v in b.states[k].items())


# Transcript ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "compiled"])
def test_messages_of_the_private_method_recomputed(backend):
    """(x, Lambda y) to all out-neighbours; C_ij y_j + B_ij (g_j+ - g_j) from j to i; then lines (a) to (d)."""
    t = play(PGT, runs=2, K=3, iterations=6, stepsize=0.06, record=True, backend=backend).transcript
    sender, receiver = np.array(t.edges).T
    for k in range(6):
        before, after = t.states[k - 1], t.states[k]
        R, A, C, B = (dense(t.draws[name, k].value) for name in "RACB")
        step = t.draws["stepsize", k].value if k < 3 else 0.06
        pulled = np.concatenate([before["x"], step * before["y"]], axis=1)[sender]
        assert np.allclose(t.sent[k, 0], pulled, rtol=1e-12, atol=1e-12)
        g = np.stack([PROBLEM.gradient(x) for x in np.moveaxis(after["x"], -1, 0)], axis=-1)
        assert np.allclose(after["g"], g, rtol=1e-10, atol=1e-10)
        jump = after["g"] - before["g"]
        pushed = C[receiver, sender] * before["y"][sender] + B[receiver, sender] * jump[sender]
        assert np.allclose(t.sent[k, 1], pushed, rtol=1e-11, atol=1e-11)
        mixed = (R * before["x"]).sum(1) - (A * (step * before["y"])).sum(1)
        assert np.allclose(after["x"], mixed, rtol=1e-10, atol=1e-10)
        assert np.allclose(after["y"], (C * before["y"] + B * jump).sum(1), rtol=1e-10, atol=1e-9)



def test_who_knows_what():
    t = play(PGT, K=3, iterations=6, stepsize=0.06, record=True).transcript
    for k in range(6):
        owners = {name: t.draws[name, k].owner for name in "RACB"}
        assert owners == {"R": "receiver", "A": "receiver", "C": "sender", "B": "sender"}
        assert {t.draws[name, k].known for name in "RACB"} == {"me" if k < 3 else "all"}
        assert (("stepsize", k) in t.draws) == (k < 3)
    assert t.draws["stepsize", 0][:2] == ("node", "me")
    assert "normal" in t.draws["R", 0].law
    assert t.iterations == 6
    assert t.header["settled"] == 3
    assert set(t.states) == set(range(-1, 6))
    with pytest.raises(KeyError, match="no exchange 2 in iteration 0"):
        t.sent[0, 2]
    with pytest.raises(KeyError):
        t.sent[6, 0]


def test_a_transcript_goes_through_files(tmp_path):
    t = play(PGT, runs=2, K=2, iterations=4, stepsize=0.06, record=True).transcript
    same_transcript(sv.Transcript.load(t.save(tmp_path / "t")), t)


def test_ab_sends_x_and_one_sum():
    t = play(iterations=3, record=True).transcript
    sender = np.array(t.edges)[:, 0]
    C = 1 / (1 + GRAPH.outdegree)
    for k in range(3):
        before, after = t.states[k - 1], t.states[k]
        assert np.array_equal(t.sent[k, 0], before["x"][sender])
        inside = before["y"] + after["g"] - before["g"]
        assert np.allclose(t.sent[k, 1], (C[:, None, None] * inside)[sender], rtol=1e-13)


# compare -------------------------------------------------------------------------------------------------------------


def test_compare_names_its_results():
    found = sv.compare(["ab", ("push-pull", {"stepsize": 0.05})], PROBLEM, GRAPH, stepsize=0.1, iterations=30)
    assert list(found) == ["ab", "push-pull (stepsize=0.05)"]
    assert [r.stepsize.item() for r in found.values()] == [0.1, 0.05]
    table = found.table()
    assert [row["name"] for row in table] == list(found)
    assert table[0]["error"] == found["ab"].final[0]
    assert table[0]["bytes"] == 30 * 256
    assert "ab: <ab" in repr(found)
    named = sv.compare({"K = 3": (PGT, {"K": 3}), "K = 0": (PGT, {"K": 0})}, PROBLEM, GRAPH, stepsize=0.05, iterations=5)
    assert list(named) == ["K = 3", "K = 0"]


def test_compare_wants_different_names():
    with pytest.raises(ParameterError, match="two of the methods would be called 'ab'; give names"):
        sv.compare(["ab", "ab"], PROBLEM, GRAPH, stepsize=0.1, iterations=2)


def test_reaching_counts_iterations_also_when_not_each_is_recorded():
    row = sv.compare(["ab"], PROBLEM, GRAPH, stepsize=0.1, iterations=400, every=10).table()[0]
    error = play(iterations=400).error[0]
    first = int((error < 1e-6).argmax())
    assert first <= row["to 1e-6"] < first + 10


# divergence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "compiled"])
def test_divergence_says_where_and_what_to_do(backend):
    with pytest.raises(Diverged, match=r"ab diverged: at iteration \d+ run .* \([123] of 3\).*the stepsize was 5; ") as caught:
        play(stepsize=5.0, runs=3, iterations=5000, backend=backend)
    advised = float(str(caught.value).split("the advised one is ")[1].split(",")[0])
    assert play(stepsize=advised, iterations=400).final[0] < 1e-11
    partial = caught.value.result
    assert isinstance(partial, sv.Result)
    assert partial.iterations < 5000
    assert len(partial.recorded) == partial.error.shape[1]
    assert (partial.error[:, 0] < 10).all()
    assert not (partial.final < 1e6).any()


def test_the_random_start_may_be_as_large_as_it_likes():
    result = play(PGT, K=12, stepsize=0.06, iterations=1500, runs=5, scale=30.0)
    assert result.error.max() > 1e15
    assert np.isfinite(result.final).all()


@pytest.mark.parametrize("away", [0.0, 1e-12, 1e-9])
def test_a_start_at_the_optimum_is_no_divergence(away):
    """The x leave it at first, for each y is one node's own gradient, and come back."""
    result = play(x0=np.tile(PROBLEM.optimum + away, (5, 1)), iterations=600)
    assert result.final[0] < 1e-11


def test_the_heaviest_law_is_no_divergence():
    """After the random start the y are far larger than the x, which then leap once; all runs converge in the end."""
    result = play(PGT, K=5, law="log-laplace", stepsize=0.19, iterations=3000, runs=50)
    assert (result.final < 1e-10).all()


def test_mechanisms_given_once_over_are_not_lost():
    """A generator can be read only once: the adviser must not eat it."""
    result = sv.run("ab", PROBLEM, GRAPH, iterations=30, mechanisms=(m for m in ["random-start:K=2"]))
    assert len(result.mechanisms) == 1


def test_divergence_with_a_record_keeps_what_there_was():
    with pytest.raises(Diverged) as caught:
        play(stepsize=5.0, iterations=600, record=True)
    partial = caught.value.result
    assert partial.trajectory.shape[0] == len(partial.recorded)
    assert np.array_equal(partial.trajectory[-1], partial.x, equal_nan=True)


# the progress bar ----------------------------------------------------------------------------------------------------


def test_the_bar_is_silent_off_a_terminal(capfd, monkeypatch):
    monkeypatch.setattr("sottovoce.progress.PATIENCE", 0.0)
    play()
    assert tuple(capfd.readouterr()) == ("", "")


def test_the_bar_shows_in_a_terminal(capfd, monkeypatch):
    monkeypatch.setattr("sottovoce.progress.PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Bar("what", 10) as watch:
        watch(5)
        assert watch.progress is not None
        assert watch.progress.tasks[0].completed == 5


def test_an_audit_shows_how_far_it_has_come_one_bar_at_a_time(monkeypatch):
    shown, told = [], []

    class Watched(Bar):
        def __call__(self, done):
            super().__call__(done)
            shown.append(self.progress is not None)
            told.append((self.what, done, self.total))

    monkeypatch.setattr("sottovoce.progress.PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for room in ("auditing", "advice"):
        monkeypatch.setattr(f"sottovoce.{room}.Bar", Watched)
    with Bar("around it", 1) as around:
        around(0)
        sv.audit("ab", PROBLEM, GRAPH, iterations=10, stepsize=0.05, at_most=1, advise=False)
        assert told == [("audit: who looks", i, 5) for i in range(1, 6)]
        assert not any(shown)
    sv.audit("ab", PROBLEM, GRAPH, iterations=10, stepsize=0.05, curious=[{1}], victims=[0])
    assert told[-1][:2] == ("audit: what would help", told[-1][2])
    assert any(shown)
    assert not Bar.showing


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert play(iterations=2).iterations == 2


# a graph an iteration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "graph", "step", "iterations", "below"),
    [
        ("ab-tv", PIECES, 0.03, 2500, 1e-10),
        ("push-diging", PIECES, 0.03, 2500, 1e-10),
        ("diging-tv", LINKS, 0.03, 4000, 1e-10),
        ("subgradient-push", PIECES, 0.5, 4000, 0.1),
    ],
)
def test_graphs_that_are_connected_only_together(method, graph, step, iterations, below):
    assert not any(g.strongly_connected for g in graph)
    problem = sv.problems.rendezvous(np.random.default_rng(0).normal(size=(5, 2)))
    result = play(method, graph, problem, stepsize=step, iterations=iterations)
    assert result.final[0] < below
    function = play(method, lambda k: graph[k % len(graph)], problem, stepsize=step, iterations=50)
    assert np.array_equal(function.error, result.error[:, :51])


def test_a_sequence_of_one_graph_is_that_graph():
    one, many = play("ab-tv", record=True), play("ab-tv", [GRAPH, GRAPH], record=True)
    assert np.allclose(one.trajectory, many.trajectory, rtol=1e-13, atol=1e-14)
    assert np.allclose(one.trajectory, play("ab", R="uniform", B="identity", record=True).trajectory, rtol=1e-13, atol=1e-14)


def test_sequences_agree_on_both_players():
    a, b = (play("push-diging", PIECES, stepsize=0.03, runs=2, backend=x, record=True) for x in ("eager", "compiled"))
    assert np.abs(a.trajectory - b.trajectory).max() < 1e-12 * np.abs(a.trajectory).max()
    assert a.messages.tolist() == b.messages.tolist()


@pytest.mark.parametrize("method", ["ab", "push-pull", PGT, "add-opt", "dgd", "gradient-tracking", "extra"])
def test_methods_for_one_graph_refuse_a_sequence(method):
    with pytest.raises(GraphError, match=f"{method} runs on one graph.*ab-tv and push-diging take those"):
        play(method, PIECES)


def test_two_way_links_are_asked_of_every_graph():
    with pytest.raises(InputError, match="two-way"):
        play("diging-tv", PIECES)
