"""The adviser against dense matrices built by hand, and against what runs really do."""

from __future__ import annotations

import time

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import Diverged, GraphError, ParameterError, ProblemError

PROBLEM = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
GRAPH = sv.graphs.paper_b()
PGT = "private-gradient-tracking"
# method -> R, A, C, B of Table I as letters: R row-, C column-stochastic, W doubly, I the identity
TABLE = {
    "ab": "RICC",
    "push-pull": "RRCC",
    "push-pull-du": "RICI",
    "push-pull-zhang": "RRCI",
    "diging": "WIWI",
    "aug-dgm": "WWWW",
    "gradient-tracking": "RRCC",
}


def play(method, stepsize="auto", iterations=3000, **options):
    return sv.run(method, PROBLEM, GRAPH, stepsize=stepsize, iterations=iterations, **options)


def matrices(graph):
    A = graph.adjacency() + np.eye(graph.n)
    W = A.copy()
    for _ in range(3000):
        W = W / W.sum(0)
        W = W / W.sum(1, keepdims=True)
    return {"R": A / A.sum(1, keepdims=True), "C": A / A.sum(0), "W": W, "I": np.eye(graph.n)}


def radius(method, problem, graph):
    """The spectral radius of (x, y) as a function of the stepsize: the 2nd x 2nd matrix, less what sum y = sum g keeps."""
    n, d = problem.n, problem.d
    R, A, C, B = (np.kron(matrices(graph)[letter], np.eye(d)) for letter in TABLE[method])
    H = np.zeros((n * d, n * d))
    for i, block in enumerate(problem.hessian(problem.optimum)):
        H[i * d : i * d + d, i * d : i * d + d] = block
    one = np.kron(np.ones((n, 1)), np.eye(d))
    I = np.eye(n * d)
    # the left eigenvectors at one are those of sum y - sum H x, zero on every start: their d ones are taken out
    conserved = np.concatenate([-H @ one, one])
    basis = np.linalg.svd(conserved.T)[2][d:].T

    def rho(s):
        step = np.block([[R, -s * A], [B @ H @ (R - I), C - s * B @ H @ A]])
        return np.abs(np.linalg.eigvals(basis.T @ step @ basis)).max()

    return rho


def edge(rho, top):
    """The end of the stable range by a scan from below."""
    grid = np.geomspace(top / 50, top * 4, 1500)
    unstable = [rho(s) >= 1 for s in grid]
    return grid[unstable.index(True) - 1]


@pytest.mark.parametrize("method", TABLE)
def test_advice_against_a_dense_scan(method):
    advice, rho = sv.stepsize(method, PROBLEM, GRAPH), radius(method, PROBLEM, GRAPH)
    assert advice.largest == pytest.approx(edge(rho, advice.largest), rel=0.02)
    assert advice.rate == pytest.approx(rho(advice.good), rel=0.01)
    best = min(rho(s) for s in np.geomspace(advice.largest / 50, advice.largest, 300))
    assert 1 - advice.rate > 0.9 * (1 - best)
    assert "spectral radius" in advice.how


@pytest.mark.parametrize("method", ["ab", "push-pull", "diging"])
def test_runs_do_what_the_advice_says(method):
    advice = sv.stepsize(method, PROBLEM, GRAPH)
    result = play(method, advice.good, 600)
    assert result.final[0] < 1e-12
    assert result.rate() == pytest.approx(advice.rate, abs=0.02)
    assert play(method, 0.97 * advice.largest, 6000).final[0] < 1e-3
    with pytest.raises(Diverged):
        play(method, 1.1 * advice.largest, 6000)


@pytest.mark.parametrize("method", ["add-opt", "push-diging"])
def test_push_sum_methods(method):
    advice = sv.stepsize(method, PROBLEM, GRAPH)
    result = play(method, advice.good, 800)
    assert result.final[0] < 1e-11
    assert result.rate() == pytest.approx(advice.rate, abs=0.02)
    with pytest.raises(Diverged):
        play(method, 1.1 * advice.largest, 6000)


def test_extra_on_a_two_way_graph():
    graph = sv.graphs.cycle(5, two_way=True)
    advice = sv.stepsize("extra", PROBLEM, graph)
    assert sv.run("extra", PROBLEM, graph, stepsize=advice.good, iterations=2000).final[0] < 1e-11
    with pytest.raises(Diverged):
        sv.run("extra", PROBLEM, graph, stepsize=1.1 * advice.largest, iterations=6000)


def test_the_papers_ring_needs_a_tiny_step():
    """n = 100: the usual 0.06 diverges, about 1e-5 is the limit."""
    problem, graph = sv.problems.estimation(n=100, d=2, s=3, seed=0), sv.graphs.ring(100)
    advice = sv.stepsize("push-pull", problem, graph)
    assert 2e-6 < advice.largest < 1e-4
    with pytest.raises(Diverged, match=f"the advised one is {advice.good:.4g}"):
        sv.run("push-pull", problem, graph, stepsize=0.06, iterations=3000)
    rho = radius("push-pull", problem, graph)
    assert rho(0.95 * advice.largest) < 1 < rho(1.05 * advice.largest)
    steady = sv.run("push-pull", problem, graph, stepsize=advice.good, iterations=4000, every=100)
    assert steady.final[0] < 0.9 * steady.error.max()


def test_fresh_weights():
    advice = sv.stepsize(PGT, PROBLEM, GRAPH)
    assert "sampled products" in advice.how
    result = play(PGT, advice.good, 1500, runs=20, K=3)
    assert (result.final < 1e-10).all()
    assert result.rate() == pytest.approx(advice.rate, abs=0.03)
    with pytest.raises(Diverged):
        play(PGT, 2 * advice.largest, 6000, runs=20, K=0)


def test_fixed_late_weights():
    advice = sv.stepsize(PGT, PROBLEM, GRAPH, late="fixed")
    assert (play(PGT, advice.good, 2500, late="fixed").final < 1e-10).all()


def test_fixed_late_weights_of_another_seed():
    """Advice is for the weights that the run will draw, not for those of seed 0."""
    finals = [play(PGT, "auto", 2500, late="fixed", seed=s, runs=3).final.max() for s in range(1, 6)]
    assert max(finals) < 1e-8


def test_changing_graphs():
    pieces = [sv.Graph(5, [(0, 1), (2, 3)]), sv.Graph(5, [(1, 2), (4, 0)]), sv.Graph(5, [(3, 4), (0, 2), (2, 0)])]
    for method in ("ab-tv", "push-diging"):
        advice = sv.stepsize(method, PROBLEM, pieces)
        assert sv.run(method, PROBLEM, pieces, stepsize=advice.good, iterations=4000).final[0] < 1e-8


@pytest.mark.parametrize("method", ["dgd", "subgradient-push"])
def test_methods_with_a_rule_of_their_own_say_it(method):
    advice = sv.stepsize(method, PROBLEM, GRAPH)
    assert advice.largest is None
    assert "stepsize / (k + 1)^decay" in advice.how
    assert "stepsize / (k + 1)^decay" in str(advice)
    result = play(method, iterations=2000)
    assert result.final[0] < 0.5 * result.error[0, 0]


def test_nothing_to_minimise():
    with pytest.raises(ProblemError, match=r"nothing to minimise.*problems.average"):
        sv.stepsize("ab", sv.problems.total(np.arange(5.0)), GRAPH)


def test_costs_that_are_flat_somewhere():
    """Each node knows one direction only, one knows nothing: the sum has a minimiser all the same."""
    Q = np.zeros((5, 1, 2))
    Q[0, 0, 0] = Q[1, 0, 1] = 1
    problem = sv.problems.estimation(Q=Q, z=np.ones((5, 1)))
    result = sv.run("push-pull", problem, GRAPH, iterations=4000)
    assert result.final[0] < 1e-9


def test_logistic():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    problem = sv.problems.logistic(X, np.sign(X @ [1.0, -1.0, 0.5] + rng.normal(size=100)), 5, l2=1.0)
    advice = sv.stepsize("ab", problem, GRAPH)
    assert "linearised at the optimum" in advice.how
    result = sv.run("ab", problem, GRAPH, stepsize=advice.good, iterations=3000)
    assert result.final[0] < 1e-10
    assert result.rate() == pytest.approx(advice.rate, abs=0.02)


def test_scaling_the_costs_scales_the_step():
    H, b = np.asarray(PROBLEM.hessian(PROBLEM.optimum)), np.zeros((5, 2))
    one, large = (sv.stepsize("ab", sv.problems.quadratic(f * H, b), GRAPH).largest for f in (1, 1e6))
    assert large == pytest.approx(one / 1e6, rel=0.02)


def test_auto_is_the_advice():
    for method, options in (("ab", {}), (PGT, {"K": 2, "late": "fixed"}), ("dgd", {"decay": 0.6})):
        assert play(method, iterations=3, **options).stepsize.item() == sv.stepsize(method, PROBLEM, GRAPH, **options).good


def test_the_weights_of_the_call_count():
    doubly = matrices(GRAPH)["W"]
    ours = sv.stepsize("gradient-tracking", PROBLEM, GRAPH, R=doubly, C=doubly)
    assert ours.largest == pytest.approx(sv.stepsize("aug-dgm", PROBLEM, GRAPH).largest, rel=1e-3)


def test_the_text_of_an_advice():
    advice = sv.stepsize("ab", PROBLEM, GRAPH)
    for part in (f"{advice.good:.4g}", f"stable up to {advice.largest:.4g}", "iterations a digit"):
        assert part in str(advice)


def test_refusals():
    with pytest.raises(GraphError, match="two-way"):
        sv.stepsize("extra", PROBLEM, GRAPH)
    with pytest.raises(ParameterError, match="ab has no parameter 'K'"):
        sv.stepsize("ab", PROBLEM, GRAPH, K=3)
    with pytest.raises(ProblemError, match="expected a sottovoce Problem"):
        sv.stepsize("ab", None, GRAPH)


def test_a_thousand_nodes_in_seconds():
    problem, graph = sv.problems.estimation(n=1000, d=2, s=3, seed=0), sv.graphs.scattered(1000)
    began = time.perf_counter()
    advice = sv.stepsize("push-pull", problem, graph)
    assert time.perf_counter() - began < 15
    result = sv.run("push-pull", problem, graph, stepsize=advice.good, iterations=300, every=10)
    assert result.final[0] < 0.05 * result.error.max()
