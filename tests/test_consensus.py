"""Means that nobody gives a value for: exact, by their equations, and who reads a value all the same."""

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.errors import GraphError, ParameterError, ProblemError, UnknownName, WeightError

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference.py"))))

VALUES = np.random.default_rng(5).normal(size=(5, 2))
EXACT = VALUES.mean(0)
B = sv.graphs.paper_b()
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
TURNS = sv.GraphSequence([sv.Graph(5, B.edges[i::2]) for i in range(2)])
MEANS = ("push-sum", "manitara", "mo-murray", "state-decomposition")

SETTINGS = [
    ("push-sum", B, {}),
    ("push-sum", B, {"K": 0, "C": "paper"}),
    ("push-sum", B, {"K": 20, "law": "cauchy"}),
    ("push-sum", B, {"K": 1, "messages": "drawn", "scale": 1e6}),
    ("push-sum", B, {"K": 5, "messages": "drawn", "scale": 1e-12}),
    ("push-sum", TURNS, {"K": 3}),
    ("manitara", B, {"K": 2, "scale": 1e6}),
    ("manitara", B, {"C": "doubly", "law": "laplace"}),
    ("mo-murray", TWO_WAY, {}),
    ("mo-murray", TWO_WAY, {"phi": 0.3, "law": "uniform", "scale": 100.0}),
    ("state-decomposition", TWO_WAY, {}),
    ("state-decomposition", TWO_WAY, {"eta": 0.5, "law": "log-laplace:2"}),
]


def mean(graph, by, **options):
    return sv.average(VALUES, graph, by=by, **{"iterations": 400, "runs": 3, **options})


@pytest.mark.parametrize(("by", "graph", "given"), SETTINGS)
def test_the_mean_is_exact(by, graph, given):
    result = mean(graph, by, record=True, iterations=1200 if by == "state-decomposition" else 400, **given)
    size = max(1, *(np.nanmax(np.abs(m)) for m in result.transcript.sent.values()))
    kept = "sum" in by or by == "manitara"  # those promise their sums: large masks cost them nothing
    assert np.abs(result.x - EXACT).max() < 1e-14 * (1 if kept else size)
    assert np.nanmax(np.ptp(result.transcript.sent[1, 0], axis=-1)) > 0 or given.get("K") == 0  # runs differ
    assert np.array_equal(result.optimum, sv.problems.average(VALUES).optimum)


@pytest.mark.parametrize(("messages", "scale"), [("weighted", 2.0), ("drawn", 50.0)])
def test_push_sum_by_its_equations(messages, scale):
    t = mean(B, "push-sum", K=3, messages=messages, scale=scale, iterations=12, record=True).transcript
    for run in range(3):
        s, v = VALUES, np.ones((5, 1))
        for k in range(12):
            C = reference.dense(t.edges, 5, t.draws["C", k].value[..., min(run, t.draws["C", k].value.shape[-1] - 1)])
            assert np.allclose(C.sum(1), 1)
            sent = t.sent[k, 0][..., run]
            for (i, l), message in zip(t.edges, sent, strict=True):
                expected = C[:, l, i] * (s[i] if k >= 3 or messages == "weighted" else 50.0)
                assert np.allclose(message[:2], expected, atol=1e-13)
            given = reference.times(C, s) if k >= 3 or messages == "weighted" else s + 50 * (C.sum(2).T - 1)
            s, v = given, v if k < 3 else C[0] @ v
            assert np.allclose(t.states[k]["x"][..., run], s / v, atol=1e-12)
        assert sent.shape[1] == 3
        assert t.sent[0, 0].shape[1] == 2  # v stays at home before K


def test_each_node_takes_all_its_offsets_back():
    t = mean(B, "manitara", K=4, scale=10.0, iterations=8, record=True).transcript
    C = reference.dense(t.edges, 5, t.draws["C", 0].value[..., 0])[0]
    s, offsets = VALUES, []
    for k in range(8):
        after = t.states[k]["s"][..., 0]
        offsets.append(np.linalg.solve(C, after) - s)
        s = after
    assert np.abs(offsets[:3]).min() > 1e-3
    assert np.abs(np.sum(offsets[:4], 0)).max() < 1e-12
    assert np.abs(offsets[4:]).max() < 1e-12


def test_the_noise_of_mo_and_murray_vanishes_as_it_should():
    result = mean(TWO_WAY, "mo-murray", phi=0.7, iterations=60, record=True)
    t = result.transcript
    for k in range(60):
        noise = 0.7**k * t.draws["draw-0", k].value
        assert np.allclose(t.states[k]["x"].sum(0), VALUES.sum(0)[:, None] + noise.sum(0), atol=1e-12)
    W = reference.dense(t.edges, 5, t.draws["W", 0].value[..., 0])[0]
    second = np.sort(np.abs(np.linalg.eigvalsh(W)))[-2]
    for phi in (0.5, 0.95):
        assert abs(mean(TWO_WAY, "mo-murray", phi=phi, iterations=250).rate() - max(phi, second)) < 0.02


def test_the_visible_half_says_nothing_of_the_value_at_first():
    one, other = (
        sv.average(v, TWO_WAY, by="state-decomposition", iterations=3, record=True).transcript for v in (VALUES, VALUES + 7)
    )
    assert np.array_equal(one.sent[0, 0], other.sent[0, 0])
    assert not np.allclose(one.sent[1, 0], other.sent[1, 0])
    for k in range(3):
        halves = one.states[k]["x"] + one.states[k]["hidden"]
        assert np.allclose(halves.mean(0)[:, 0] / 2, EXACT, atol=1e-14)
    share = one.states[0]["share"]
    assert ((share > 0.1) & (share < 0.9)).all()
    assert len(np.unique(share)) == 5


@pytest.mark.parametrize(("by", "graph", "given"), [("push-sum", B, {"K": 4}), ("push-sum", B, {"K": 4, "messages": "drawn"})])
def test_who_hears_all_links_of_a_node_reads_its_value(by, graph, given):
    """What the file says that it leaks: what I hold late is what I held, plus what came, less what went."""
    t = mean(graph, by, iterations=6, record=True, runs=1, **given).transcript
    for i in range(5):
        c = t.draws["C", 5].value[:, 0, 0]
        out = next(e for e, edge in enumerate(t.edges) if edge[0] == i)
        entries = sorted([*t.edges, *((j, j) for j in range(5))], key=lambda e: e[::-1])
        late = t.sent[5, 0][out, :2, 0] / c[entries.index(t.edges[out])]
        value = late
        for k, (e, edge) in itertools.product(range(5), enumerate(t.edges)):
            value = value + t.sent[k, 0][e, :2, 0] * ((edge[0] == i) - 1.0 * (edge[1] == i))
        assert np.allclose(value, VALUES[i], atol=1e-11)


def test_two_iterations_of_all_neighbours_give_the_hidden_half():
    t = mean(TWO_WAY, "state-decomposition", iterations=4, record=True, runs=1).transcript
    W = reference.dense(t.edges, 5, t.draws["W", 0].value[..., 0])[0]
    a = [t.states[k]["x"][..., 0] for k in range(-1, 3)]  # all of it was heard
    flow = [a[k + 1] - W @ a[k] for k in range(2)]
    change = (flow[0] - flow[1]) / (flow[0] + a[1] - a[0])  # c, from flow_k = c (b_k - a_k) and b_1 = b_0 - flow_0
    assert np.allclose((a[0] + a[0] + flow[0] / change) / 2, VALUES, atol=1e-8)


def test_any_method_finds_the_mean():
    assert np.abs(sv.average(VALUES[:, 0], B, by="private-gradient-tracking", iterations=600).x - EXACT[0]).max() < 1e-11
    result = sv.average(VALUES, B, by="push-sum", tolerance=1e-13)
    assert result.iterations < 200
    assert np.abs(result.x - EXACT).max() < 1e-11
    with pytest.raises(UnknownName, match="did you mean 'push-sum'"):
        sv.average(VALUES, B, by="pushsum")


@pytest.mark.parametrize(
    ("error", "words", "by", "graph", "given"),
    [
        (GraphError, "mo-murray needs a two-way graph", "mo-murray", B, {}),
        (GraphError, "state-decomposition needs a two-way graph", "state-decomposition", B, {}),
        (ParameterError, "phi must be above 0 and below 1, or it never vanishes, not 1", "mo-murray", TWO_WAY, {"phi": 1}),
        (ParameterError, "law must be one of normal, laplace, uniform, not 'cauchy'", "mo-murray", TWO_WAY, {"law": "cauchy"}),
        (ParameterError, "K must be a whole number, at least 2, not 1", "manitara", B, {"K": 1}),
        (ParameterError, "eta must be in", "state-decomposition", TWO_WAY, {"eta": 0.6}),
        (ParameterError, "scale must be a number above 0", "push-sum", B, {"scale": -1}),
        (ParameterError, "messages must be one of weighted, drawn", "push-sum", B, {"messages": "sealed"}),
        (UnknownName, "no law named 'gauss'", "push-sum", B, {"law": "gauss"}),
        (UnknownName, "no law named 'gauss'", "manitara", B, {"law": "gauss"}),
        (WeightError, "positive own weight", "state-decomposition", sv.graphs.ring(5, two_way=True), {"W": "half"}),
    ],
)
def test_what_breaks_the_theory_is_refused(error, words, by, graph, given):
    if given.get("W") == "half":
        given = {"W": (np.roll(np.eye(5), 1, 1) + np.roll(np.eye(5), -1, 1)) / 2}
    with pytest.raises(error, match=words):
        mean(graph, by, **given)


def test_offsets_and_noise_are_added_up_by_who_hears_everything_that_comes_in():
    """s_i + u_i is what a node says; its next s follows from what it heard; all u together are nothing."""
    t = mean(B, "manitara", K=4, iterations=6, record=True, runs=1).transcript
    C = reference.dense(t.edges, 5, t.draws["C", 0].value[..., 0])[0]
    said = np.array([[t.sent[k, 0][e, :2, 0] / C[l, i] for e, (i, l) in enumerate(t.edges)] for k in range(6)])
    own = [[i for i, _ in t.edges].index(node) for node in range(5)]
    said = said[:, own]
    assert np.allclose(said[0] + sum(said[k] - C @ said[k - 1] for k in range(1, 4)), VALUES, atol=1e-12)
    t = mean(TWO_WAY, "mo-murray", phi=0.5, iterations=60, record=True, runs=1).transcript
    W = reference.dense(t.edges, 5, t.draws["W", 0].value[..., 0])[0]
    own = [[i for i, _ in t.edges].index(node) for node in range(5)]
    said = np.array([t.sent[k, 0][own, :, 0] for k in range(60)])
    assert np.allclose(said[0] + sum(said[k] - W @ said[k - 1] for k in range(1, 60)), VALUES, atol=1e-12)


@pytest.mark.parametrize("by", MEANS)
def test_a_mean_needs_values_and_is_no_sum(by):
    with pytest.raises(ProblemError, match=r"averages the nodes' values.*hold none"):
        sv.run(by, sv.problems.estimation(n=5, d=2), TWO_WAY)
    with pytest.raises(ProblemError, match="finds the mean of the values, and 'total' asks for their sum"):
        sv.run(by, sv.problems.total(VALUES), TWO_WAY)
    with pytest.raises(ParameterError, match="starts at the nodes' values, so x0 would do nothing"):
        sv.average(VALUES, TWO_WAY, by=by, x0=VALUES)
    assert "takes no steps" in str(sv.stepsize(by, sv.problems.average(VALUES), TWO_WAY))


@pytest.mark.parametrize(
    "words",
    [
        "push-sum --problem average:n=5,d=2 --graph paper-b --set K=3 --set messages=drawn",
        "mo-murray --problem rendezvous --graph star:n=5 --set law=laplace",
        "pdmm --problem average --graph star:n=5 --set scale=5 --mechanism function-sharing:curvature=0,slope=2",
        "extra --problem estimation --graph star:n=5 --mechanism correlated-noise:decay=3",
    ],
)
def test_from_the_command_line(words, capsys):
    assert main(["run", *words.split(), "--iterations", "500"]) == 0
    out = capsys.readouterr().out
    assert float(out.split("final error")[1].split()[0]) < (1e-5 if "extra" in words else 1e-12)
    assert "leaks" in out
