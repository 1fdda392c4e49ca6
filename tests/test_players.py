"""The same seed gives the same trajectory on every player, for every algorithm that is there."""

import itertools
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.simulate import compiled, eager, threads, weigh
from sottovoce.simulate.task import prepare

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference.py"))))

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
B = sv.graphs.paper_b()
UNEQUAL = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1, 3), (2, 0)])  # of the same size: compiled once
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
GRAPHS = {"paper-b": B, "unequal": UNEQUAL, "two-way": TWO_WAY}
SEQUENCE = sv.GraphSequence([sv.Graph(5, UNEQUAL.edges[i::2]) for i in range(2)])
MEAN = sv.problems.average(np.random.default_rng(5).normal(size=(5, 2)))
METHODS = sv.registry.algorithms()
TRACKING = [name for name, a in METHODS.items() if set(a.weights) == set("RACB")]
CHECKED = 100  # iterations with a thread a node


def problem_of(method):
    """What shows that a method works: costs to minimise, or values to average."""
    return P if sv.registry.algorithm(method).minimises else MEAN


def task_of(method, graph, *, stepsize=0.02, iterations=CHECKED, problem=None, runs=1, **parameters):
    problem = problem or problem_of(method)
    return prepare(
        method, problem, graph, stepsize=stepsize, iterations=iterations, runs=runs, seed=0, mechanisms=(), record=True,
        x0=None, every=1, tolerance=None, parameters=parameters,
    )  # fmt: skip


def fits(method, graph):
    try:
        task_of(method, graph)
    except sv.errors.InputError:
        return False
    return True


def options(name):
    return {"K": 3} if "K" in METHODS[name].parameters else {}


CASES = [(name, graph) for name in METHODS for graph in GRAPHS if fits(name, GRAPHS[graph]) and (
    graph != "two-way" or not fits(name, B))]  # fmt: skip


def gap(a, b, so_far=False):
    """The largest difference of two trajectories (k, run, node, coordinate), in units of the largest entry at each k and run."""
    return gaps(a, b, so_far).max()


def gaps(a, b, so_far=False):
    size = np.abs(a).max((2, 3))
    size = np.maximum.accumulate(size) if so_far else size
    return (np.abs(a - b).max((2, 3)) / size).max(0)


def played(method, graph, backend="eager", **given):
    given = {"stepsize": 0.02, "iterations": 200, "runs": 4, "record": True, **given}
    return sv.run(method, given.pop("problem", problem_of(method)), graph, backend=backend, **given)


def of_threads(task):
    return np.moveaxis(threads.play(task).answers, -1, 1)


def test_every_algorithm_has_a_case():
    assert {name for name, _ in CASES} == set(METHODS)
    assert len(TRACKING) >= 10
    assert not np.array_equal(UNEQUAL.indegree, UNEQUAL.outdegree)


@pytest.mark.parametrize(("name", "graph"), CASES)
def test_players_agree(name, graph):
    method, network = METHODS[name], GRAPHS[graph]
    given = options(name) if method.takes is None else {"iterations": min(2 * method.takes, CHECKED)}
    one = played(name, network, **given)
    if "compiled" in method.players:
        two = played(name, network, "compiled", **given)
        assert gap(one.trajectory, two.trajectory) < 1e-12
        assert np.abs(one.error - two.error).max() <= 1e-12 * one.error.max()
    if "peer" in method.players:
        assert gap(one.trajectory[: CHECKED + 1, :1], of_threads(task_of(name, network, **given))) < 1e-12
    assert np.array_equal(one.trajectory, played(name, network, **given).trajectory)


SEQUENCED = [("ab-tv", {"R": "paper", "C": "paper"}), ("push-diging", {}), ("subgradient-push", {})]


@pytest.mark.parametrize(("name", "rules"), SEQUENCED)
def test_a_graph_an_iteration(name, rules):
    assert not any(g.strongly_connected for g in SEQUENCE.distinct)
    one = played(name, SEQUENCE, **rules)
    assert gap(one.trajectory[:, :1], of_threads(task_of(name, SEQUENCE, iterations=200, **rules))) < 1e-12
    assert gap(one.trajectory, played(name, SEQUENCE, "compiled", **rules).trajectory) < 1e-12


@pytest.mark.parametrize(("name", "graph"), [case for case in CASES if case[0] in TRACKING])
def test_tracking_follows_the_dense_reference(name, graph):
    result = played(name, GRAPHS[graph], **options(name))
    H, b, _ = P.data
    for run in (0, 3):
        rounds = reference.recorded(result.transcript, METHODS[name].weights, result.stepsize, 5, run)
        xs = reference.eq4(rounds, reference.quadratic(H, b), result.trajectory[0, run])
        assert len(xs) == 201
        assert gap(xs[:, None], result.trajectory[:, run : run + 1]) < 1e-12


def test_heterogeneous_stepsizes_and_your_own_weights_follow_the_reference_too():
    steps, late = np.linspace(0.01, 0.03, 5), {"R": "paper", "A": "identity", "C": "paper", "B": "identity"}
    method = METHODS["gradient-tracking"]
    result = played("gradient-tracking", UNEQUAL, stepsize=steps, **late)
    weights = dict.fromkeys("RACB")
    rounds = reference.recorded(result.transcript, weights, steps, 5)
    xs = reference.eq4(rounds, P.gradient, result.trajectory[0, 0])
    assert gap(xs[:, None], result.trajectory[:, :1]) < 1e-12
    assert gap(result.trajectory[: CHECKED + 1, :1], of_threads(task_of(method, UNEQUAL, stepsize=steps, **late))) < 1e-12


PRIVATE: dict[str, Any] = {"stepsize": 0.06, "iterations": 80, "runs": 1000}


@pytest.mark.parametrize("K", [3, 30])
def test_a_thousand_runs_agree(K):
    one, two = (played("private-gradient-tracking", B, backend, K=K, **PRIVATE).trajectory for backend in ("eager", "compiled"))
    everyone = lambda x: x.reshape(len(x), 1, -1, 2)
    assert gap(everyone(one), everyone(two), so_far=K > 3) < 1e-12
    each = gaps(one, two, so_far=True)  # each run by its own largest entry: after thirty random products rounding has grown
    assert each.max() < (1e-12 if K == 3 else 2e-11)
    assert (each < 1e-12).mean() > 0.98


PLAIN = sv.Problem(gradient=lambda x, h: (h[0] * x).sum(1) - h[1], data=list(zip(*P.data[:2], strict=True)), d=2)


@pytest.mark.parametrize("late", ["fresh", "fixed"])
def test_one_run_alone_is_the_same(late):
    """The same bits where the gradient gives them: a matrix product of many columns rounds otherwise than that of one."""
    given = {"K": 3, "late": late}
    ten, alone = (played("private-gradient-tracking", B, problem=PLAIN, runs=runs, **given) for runs in (10, [7]))
    assert np.array_equal(alone.trajectory[:, 0], ten.trajectory[:, 7])
    assert np.allclose(alone.error[0], ten.error[7], rtol=1e-14, atol=0)
    ten, alone = (played("private-gradient-tracking", B, runs=runs, **given) for runs in (10, [7]))
    assert gap(ten.trajectory[:, 7:8], alone.trajectory) < 1e-12
    for key, draw in ten.transcript.draws.items():
        same = draw.value[..., 7:8] if draw.value.shape[-1] > 1 else draw.value
        assert np.array_equal(same, alone.transcript.draws[key].value)
    other = played("private-gradient-tracking", B, runs=[7], seed=1, **given)
    assert not np.allclose(alone.trajectory[5], other.trajectory[5])


def test_chunks_blocks_batches_and_every_change_nothing(monkeypatch):
    given = {"K": 3, "runs": 4, "iterations": 200, "record": False}
    one = played("private-gradient-tracking", B, **given)
    two = played("private-gradient-tracking", B, "compiled", **given)
    for place, name, value in ((eager, "CHUNK", 7), (weigh, "BLOCK", 1e4), (compiled, "BATCH", 2)):
        monkeypatch.setattr(place, name, value)
    again = played("private-gradient-tracking", B, **given)
    assert np.array_equal(one.error, again.error)
    assert np.array_equal(one.x, again.x)
    batched = played("private-gradient-tracking", B, "compiled", **given)
    assert np.abs(batched.x - two.x).max() < 1e-13
    for backend, full in (("eager", one), ("compiled", two)):
        seventh = played("private-gradient-tracking", B, backend, every=7, **given)
        assert seventh.recorded.tolist() == [*range(0, 200, 7), 200]
        assert np.abs(seventh.error - full.error[:, seventh.recorded]).max() <= 1e-12 * full.error.max()
    monkeypatch.setattr(weigh, "LIMIT", 1000)  # every weight piece by piece
    pieces = played("private-gradient-tracking", B, **given)
    assert np.abs(pieces.error - one.error).max() <= 1e-12 * one.error.max()


NEW = '''
"""Gradient tracking that forgets a little: a test."""
from typing import Any, NamedTuple
from ..registry import Algorithm, Parameter, columns, register, rows

class State(NamedTuple):
    x: Any
    y: Any
    g: Any

def start(node, x):
    return State(x, node.gradient(x), node.gradient(x))

def step(node, s):
    w = node.weights
    x = node.pull((w.R, s.x)) - w.stepsize * node.parameters.pace * s.y
    g = node.gradient(x)
    return State(x, node.push((w.C, s.y + g - s.g), total=g), g)

register(Algorithm("newcomer", start, step, source="a test", leaks="everything", exchanges=2,
    weights={"R": rows("paper"), "C": columns("paper")}, parameters={"pace": Parameter(0.5, "how fast")}))
'''


def test_one_new_file_is_all_that_an_algorithm_takes(tmp_path, monkeypatch):
    (tmp_path / "newcomer.py").write_text(NEW)
    monkeypatch.setattr(sv.registry, "_ALGORITHMS", dict(METHODS))
    folder = sys.modules["sottovoce.algorithms"]
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    sv.registry._discover.cache_clear()
    try:
        assert "newcomer" in sv.registry.algorithms()
        one, two = (played("newcomer", B, backend, pace=0.7) for backend in ("eager", "compiled"))
        assert gap(one.trajectory, two.trajectory) < 1e-12
        assert gap(one.trajectory[: CHECKED + 1, :1], of_threads(task_of("newcomer", B, pace=0.7))) < 1e-12
        assert played("newcomer", B, iterations=1500, stepsize=0.2, record=False).final.max() < 1e-10
    finally:
        sys.modules.pop("sottovoce.algorithms.newcomer", None)


class Everything(NamedTuple):
    x: Any
    z: Any
    echo: Any  # what came back of x, less x: zero
    pair: Any  # what the two ends of a link drew, one less the other: zero


def begin_everything(node, x):
    seeds = node.exchange(node.draw("normal", like=x, known="edge"))
    return Everything(x, node.gather(seeds), 0 * x, 0 * x)


def everything(node, s):
    """Every verb that gradient tracking does without."""
    xp = node.xp
    mine, ours = node.draw("laplace", like=s.x), node.draw("uniform", like=s.x, known="all", shared=True)
    words = node.draw("words", like=s.x[:, :1])
    pair = node.draw("normal", like=s.x, known="pair")
    edge = node.draw("normal", like=s.x[:, :1], known="edge")
    x_in, z_in = node.hear((s.x, s.z))
    came = node.hear(words)
    back = node.exchange(node.turn(x_in))
    apart = node.turn(node.exchange(pair)) - pair
    out, inbox = node.shared("normal", like=s.x)
    both = node.exchange(out) - inbox
    lengths = node.gather(node.exchange(edge * node.spread(s.z))) / node.public.n
    p = node.prox(node.gradient(s.x) - node.value, 2.0 + node.degree)
    bent = xp.sum(node.hessian(s.x), axis=1)
    small = node.gather((came >> np.uint64(40)) * 2.0**-24)
    w = node.weights
    mixed = node.pull((w.W, (s.x, s.z)), (-w.W, (0.1 * s.z, mine)))
    pushed, ones = node.push((w.C, (s.z, 0 * s.x[:, :1] + 1)))
    x = 0.5 * mixed[0] + 0.1 * p + 0.01 * bent + 0.01 * node.me + 0.1 * node.gather(x_in + z_in) / node.degree + 0.1 * small
    z = 0.2 * mixed[1] + 0.2 * ours + 0.2 * lengths + 0.1 * pushed / ones + node.parameters.pull / (node.k + node.public.diameter)
    return Everything(x, z, node.gather(back) - node.degree * s.x, node.collect(apart) + node.gather(both))


EVERYTHING = sv.Algorithm(
    "everything", begin_everything, everything, source="a test", leaks="everything", graphs="two-way", exchanges=8,
    weights={"W": sv.doubly("links"), "C": sv.columns("paper")}, parameters={"pull": sv.Parameter(0.3, "a number")},
    floods=True, answer=lambda s: s.x + s.z,
)  # fmt: skip


def test_all_verbs_on_all_players():
    one, two = (played(EVERYTHING, TWO_WAY, backend, problem=MEAN, iterations=60) for backend in ("eager", "compiled"))
    assert gap(one.trajectory, two.trajectory) < 1e-12
    assert gap(one.trajectory[:, :1], of_threads(task_of(EVERYTHING, TWO_WAY, problem=MEAN, iterations=60))) < 1e-12
    assert np.ptp(one.trajectory[-1], axis=0).min() > 1e-6  # runs differ
    for k in range(60):
        assert not one.transcript.states[k]["pair"].any()
        assert np.abs(one.transcript.states[k]["echo"]).max() < 1e-12
    (same,) = {one.transcript.draws["draw-1", k].value.shape[0] for k in range(60)}
    assert same == 1


SPOKEN = [("private-gradient-tracking", "paper-b"), ("asyn-dgm", "two-way"), ("add-opt", "unequal")]


@pytest.mark.parametrize(("name", "graph"), SPOKEN)
def test_what_threads_send_is_what_the_transcript_says(name, graph, monkeypatch):
    sent: dict[Any, Any] = {}

    class Copied(threads.Mail):
        def send(self, edge, key, payload):
            sent[edge, key] = np.concatenate(payload, -2)[0]
            super().send(edge, key, payload)

    monkeypatch.setattr(threads, "Mail", Copied)
    threads.play(task_of(name, GRAPHS[graph], iterations=20, **options(name)))
    recorded = played(name, GRAPHS[graph], runs=1, iterations=20, **options(name)).transcript
    assert {key for _, key in sent} == set(recorded.sent)
    for key, e in itertools.product(recorded.sent, range(len(recorded.edges))):
        told = recorded.sent[key][e]
        assert np.abs(sent[recorded.edges[e], key] - told).max() <= 1e-11 * np.abs(recorded.sent[key]).max()


def altered(**changes):
    tracking = METHODS["gradient-tracking"]
    kept = {name: getattr(tracking, name) for name in ("start", "step", "weights")}
    return sv.Algorithm(**{"name": "altered", "source": "a test", "leaks": "all", **kept, **changes})


def test_a_node_that_fails_ends_all():
    def step(node, s):
        if node.k == 3 and (node.me == 2).all():
            raise ZeroDivisionError("node 2 had enough")
        return METHODS["gradient-tracking"].step(node, s)

    with pytest.raises(ZeroDivisionError, match="node 2"):
        threads.play(task_of(altered(step=step), B))


def test_nodes_out_of_step_are_told_apart():
    def step(node, s):
        if node.k == 2 and (node.me == 0).all():
            node.hear(s.x)
        return METHODS["gradient-tracking"].step(node, s)

    with pytest.raises(sv.errors.RunError, match=r"expected message|waited"):
        threads.play(task_of(altered(step=step), B), patience=2.0)


def test_a_node_does_not_weigh_for_others():
    drawn_by_receivers = altered(weights={"R": sv.rows("paper"), "A": "R", "C": "R", "B": "C"})
    with pytest.raises(sv.errors.WeightError, match="others draw"):
        threads.play(task_of(drawn_by_receivers, B))
