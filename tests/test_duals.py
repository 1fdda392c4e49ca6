"""Methods with duals on the edges: the exact optimum, by their equations, on costs of all kinds."""

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import GraphError, ParameterError, UnknownName
from sottovoce.problems import catalogue
from sottovoce.view import view_of

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
NEAR = [[j for i, j in TWO_WAY.edges if i == node] for node in range(5)]
METHODS = [("admm", {}), ("pdmm", {}), ("pdmm", {"relaxation": 0.5}), ("pdmm", {"scale": 1.0, "law": "laplace"})]
PROBLEMS = {name: catalogue.build(name) for name in catalogue.catalogue() if name != "total"}
NEWTON = ("logistic", "huber")  # their prox is an iteration of its own
CASES = [(name, *m) for name in PROBLEMS for m in METHODS[: 2 if name in NEWTON else None]]


@pytest.mark.parametrize(("name", "method", "given"), CASES)
def test_the_exact_optimum_of_every_ready_problem(name, method, given):
    result = sv.run(method, PROBLEMS[name], TWO_WAY, iterations=300, **given)
    assert result.final.max() < 1e-11 * given.get("scale", 1e3)
    assert "1 / stepsize is the penalty" in result.advice


def test_a_cost_of_ones_own():
    rng = np.random.default_rng(0)
    data = [(rng.normal(size=(6, 2)), rng.normal(size=6)) for _ in range(5)]
    gradient = lambda x, held: held[0].T @ np.tanh(held[0] @ x - held[1]) + 0.3 * x
    problem = sv.Problem(gradient=gradient, data=data, d=2)
    for method in ("admm", "pdmm"):
        x = sv.run(method, problem, TWO_WAY, iterations=50, **({} if method == "admm" else {"scale": 1.0})).x[0]
        assert np.abs(sum(gradient(x[0], held) for held in data)).max() < 1e-4  # as far as fifty iterations go


def test_admm_by_its_equations():
    H, b, _ = P.data
    t = sv.run("admm", P, TWO_WAY, stepsize=0.5, iterations=20, record=True)
    x, dual, c = t.trajectory[0, 0], np.zeros((5, 2)), 2.0
    for k in range(20):
        middle = [sum((x[i] + x[j]) / 2 for j in NEAR[i]) for i in range(5)]
        x = np.array(
            [np.linalg.solve(H[i] + 2 * c * len(NEAR[i]) * np.eye(2), b[i] - dual[i] + 2 * c * middle[i]) for i in range(5)]
        )
        dual = dual + [c * sum(x[i] - x[j] for j in NEAR[i]) for i in range(5)]
        assert np.allclose(x, t.trajectory[k + 1, 0], atol=1e-12)


def original(edges, H, b, z, c, relaxation, iterations):
    """PDMM with the signs B of the papers, and every dual at its own node: x after each iteration."""
    n, d = b.shape
    near, B = [[j for i, j in edges if i == node] for node in range(n)], {(i, j): 1 if i < j else -1 for i, j in edges}
    xs = []
    for _ in range(iterations):
        pulls = [sum(B[i, j] * z[i, j] for j in near[i]) for i in range(n)]
        x = [np.linalg.solve(H[i] + c * len(near[i]) * np.eye(d), b[i] - pulls[i]) for i in range(n)]
        y = {(i, j): z[i, j] + 2 * c * B[i, j] * x[i] for i, j in edges}
        z = {(i, j): (1 - relaxation) * z[i, j] + relaxation * y[j, i] for i, j in edges}
        xs.append(x)
    return np.array(xs)


@pytest.mark.parametrize("relaxation", [1.0, 0.5])
def test_pdmm_by_its_equations(relaxation):
    H, b, _ = P.data
    result = sv.run("pdmm", P, TWO_WAY, stepsize=0.5, iterations=20, record=True, relaxation=relaxation)
    t, c = result.transcript, 2.0
    x, drawn = result.trajectory[0, 0], t.draws["draw-0", -1].value[:, :, 0]
    assert np.array_equal(t.sent[-1, 0][:, :, 0], np.hstack([drawn, [x[i] for i, _ in t.edges]]))
    z = {(i, j): (1 if i < j else -1) * (drawn[e] - c * x[j]) for e, (i, j) in enumerate(t.edges)}
    xs = original(t.edges, H, b, z, c, relaxation, 20)
    assert np.allclose(xs, result.trajectory[1:, 0], rtol=1e-12, atol=1e-9)
    for k in range(20):  # x alone, the same to all
        assert np.allclose(t.sent[k, 0][:, :, 0], [xs[k, i] for i, _ in t.edges], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("graph", [TWO_WAY, sv.graphs.star(5)])
def test_a_shift_of_two_neighbours_gradients_leaves_no_trace(graph):
    """Costs f_0 + shift.x and f_3 - shift.x with other duals of their link: the same x for ever, on a tree too."""
    H, b, _ = P.data
    rng, shift = np.random.default_rng(0), np.array([7.0, -30.0])
    z = {edge: 100 * rng.normal(size=2) for edge in graph.edges}
    other = {**z, (0, 3): z[0, 3] - shift, (3, 0): z[3, 0] - shift}  # B_03 z_0|3 falls, B_30 z_3|0 rises
    moved = b - np.outer([1, 0, 0, -1, 0], shift)
    for relaxation in (1.0, 0.5):
        one, two = (original(graph.edges, H, *costs, 2.0, relaxation, 60) for costs in ((b, z), (moved, other)))
        assert np.abs(one - two).max() < 1e-11


def test_what_is_said_to_leak_is_read():
    """A node and all its neighbours are heard: ADMM shows the gradient, PDMM its increments."""
    c, degree = 2.0, np.array([len(near) for near in NEAR])[:, None]
    around = lambda x: np.array([sum(x[j] for j in near) for near in NEAR])
    x = sv.run("admm", P, TWO_WAY, stepsize=0.5, iterations=20, record=True).trajectory[:, 0]
    dual = 0
    for k in range(20):
        read = c * (degree * x[k] + around(x[k])) - dual - 2 * c * degree * x[k + 1]
        assert np.allclose(read, P.gradient(x[k + 1]), atol=1e-11)
        dual = dual + c * (degree * x[k + 1] - around(x[k + 1]))
    x = sv.run("pdmm", P, TWO_WAY, stepsize=0.5, iterations=20, record=True).trajectory[:, 0]
    for k in range(1, 18):
        read = 2 * c * (around(x[k + 1]) - degree * x[k]) - c * degree * (x[k + 2] - x[k])
        assert np.allclose(read, P.gradient(x[k + 2]) - P.gradient(x[k]), rtol=1e-9, atol=1e-9)


def test_the_perturbation_stays_and_harms_nothing():
    """Duals stay as large as they began, in the subspace that the graph does not move, and x converges."""
    runs = {scale: sv.run("pdmm", P, TWO_WAY, iterations=400, scale=scale, record=True) for scale in (1e-9, 1e3)}
    duals = {scale: np.abs(r.transcript.states[399]["mine"]).max() for scale, r in runs.items()}
    assert duals[1e-9] < 20 < 300 < duals[1e3]
    assert max(r.final.max() for r in runs.values()) < 1e-9
    messages = runs[1e3].messages
    assert messages.tolist() == [10] * 401  # the duals once, then x


def test_a_coalition_sees_the_duals_of_its_own_edges():
    t = sv.run("pdmm", P, TWO_WAY, iterations=3, record=True).transcript
    seen = view_of(t, [1]).states[2]
    mine = [i == 1 for i, _ in t.edges]
    assert np.isfinite(seen["mine"][mine]).all()
    assert np.isnan(seen["mine"][np.logical_not(mine)]).all()
    assert np.isfinite(seen["x"][1]).all()
    assert np.isnan(seen["x"][2]).all()


@pytest.mark.parametrize(
    ("graph", "dimensions"),
    [
        (sv.graphs.star(5), 0),
        (TWO_WAY, 1),
        (sv.Graph(4, [(i, (i + s) % 4) for i in range(4) for s in (1, 3)]), 2),  # a ring of four is bipartite
        (sv.graphs.complete(5), 11),
    ],
)
def test_how_much_of_the_perturbation_stays(graph, dimensions):
    problem = sv.problems.average(np.arange(graph.n))
    states = sv.run("pdmm", problem, graph, iterations=200, runs=30, scale=1.0, record=True).transcript.states[199]
    duals = states["mine"][:, 0] - states["mine"][:, 0].mean(1, keepdims=True)  # (edge, run): what is left of the draws
    assert (np.linalg.svd(duals, compute_uv=False) > 1e-6).sum() == dimensions


@pytest.mark.parametrize(
    ("error", "words", "method", "graph", "given"),
    [
        (GraphError, "admm needs a two-way graph", "admm", sv.graphs.paper_b(), {}),
        (GraphError, "pdmm needs a two-way graph", "pdmm", sv.graphs.paper_b(), {}),
        (ParameterError, "relaxation must be above 0 and at most 1, not 1.5", "pdmm", TWO_WAY, {"relaxation": 1.5}),
        (ParameterError, "scale must be a number above 0, not 0", "pdmm", TWO_WAY, {"scale": 0}),
        (UnknownName, "no law named 'gauss'", "pdmm", TWO_WAY, {"law": "gauss"}),
        (ParameterError, "stepsize must be above 0", "admm", TWO_WAY, {"stepsize": 0}),
    ],
)
def test_what_breaks_the_theory_is_refused(error, words, method, graph, given):
    with pytest.raises(error, match=words):
        sv.run(method, P, graph, **given)
