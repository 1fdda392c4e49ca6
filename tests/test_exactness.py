"""Exactness is a number: against a hundred digits, against rounding, and against weights that break the promise."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import InvariantBroken, ParameterError, WeightError
from sottovoce.ledger import Ledger
from sottovoce.simulate import threads
from sottovoce.simulate.task import prepare
from sottovoce.weights import Matrix

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference.py"))))

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
B = sv.graphs.paper_b()
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
PRIVATE = sv.registry.algorithms()["private-gradient-tracking"]
BACKENDS = ("eager", "compiled")


def private(backend="eager", **given):
    return sv.run(PRIVATE, P, B, backend=backend, **{"stepsize": 0.06, "iterations": 2500, **given})


def task_of(method, graph, iterations, stepsize=0.06, **parameters):
    return prepare(
        method, P, graph, stepsize=stepsize, iterations=iterations, runs=1, seed=0, mechanisms=(), record=True, x0=None, every=1,
        tolerance=None, parameters=parameters,
    )  # fmt: skip


def off(exact, found):
    """The largest difference in units of the largest entry so far."""
    size = np.maximum.accumulate(np.abs(exact).max((1, 2)).astype(float))
    return (np.abs(found - exact).max((1, 2)).astype(float) / size).max()


def in_a_hundred_digits(result):
    rounds = reference.recorded(result.transcript, PRIVATE.weights, result.stepsize, 5)
    return reference.hundred_digits(rounds, *P.data[:2], result.trajectory[0, 0])


@pytest.mark.parametrize("K", [3, 10, 20])
def test_the_trajectory_of_a_hundred_digits_is_followed(K):
    result = private(K=K, iterations=K + 40, record=True)
    exact = in_a_hundred_digits(result)
    assert np.abs(exact).max() > 10 ** (K / 2)  # the random start is as wild as it is said to be
    for trajectory in (result.trajectory[:, 0], private("compiled", K=K, iterations=K + 40, record=True).trajectory[:, 0]):
        assert off(exact, trajectory) < 1e-13
    nodes = threads.play(task_of(PRIVATE, B, K + 40, K=K)).answers[..., 0]
    assert off(exact, nodes) < 1e-13


def test_without_the_promise_a_hundred_digits_are_lost():
    """The control: the same step in plain float64 ends elsewhere, and the comparison sees it."""
    result = private(K=20, iterations=1000, stepsize=0.2, record=True)
    rounds = reference.recorded(result.transcript, PRIVATE.weights, result.stepsize, 5)
    plain = reference.eq4(rounds, reference.quadratic(*P.data[:2]), result.trajectory[0, 0])
    assert np.abs(plain[-1] - P.optimum).max() > 1e-7 > 1e-12 > np.abs(result.trajectory[-1, 0] - P.optimum).max()


@pytest.mark.parametrize(("K", "iterations"), [(0, 2500), (1, 2500), (3, 2500), (10, 2500), (30, 6000), (50, 6000)])
def test_every_K_ends_at_rounding(K, iterations):
    result = private("compiled", K=K, iterations=iterations, runs=20)
    assert result.final.max() < 1e-12
    assert result.invariant < 1e3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hundred_runs_end_at_rounding(backend):
    assert private(backend, K=3, runs=100).final.max() < 1e-12


@pytest.mark.parametrize("K", [0, 1, 3, 10])
def test_nodes_with_ledgers_end_at_rounding(K):
    """No node sees a sum, and yet the sum is kept."""
    assert threads.play(task_of(PRIVATE, B, 800, 0.2, K=K)).errors[-1, 0] < 1e-12


def test_the_rate_does_not_depend_on_K():
    """The slope of the median over runs, where it falls from 1e-3 to 1e-9."""

    def rate(K):
        median = np.median(private("compiled", K=K, iterations=2500, runs=20).error, 0)
        ks = np.flatnonzero((median < 1e-3) & (median > 1e-9))
        return np.polyfit(ks, np.log(median[ks]), 1)[0]

    rates = np.exp([rate(K) for K in (0, 1, 3, 10, 30)])
    assert np.ptp(rates) < 0.02 * rates.mean()
    gaps = 1 - rates  # nor does the gap to one, by much
    assert np.ptp(gaps) < 0.1 * gaps.mean()


def columns_of(graph):
    A = np.eye(graph.n)
    for sender, receiver in graph.edges:
        A[receiver, sender] = 1
    return A / A.sum(0)


def broken(backend, C, **given):
    C = Matrix(side="column", matrix=C, checked=False)
    return sv.run("push-pull-du", P, B, C=C, backend=backend, stepsize=0.03, iterations=300, **given)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["off by 1e-6", "row-stochastic"])
def test_a_broken_invariant_is_raised_and_never_repaired(backend, kind):
    C = columns_of(B)
    assert broken(backend, C, runs=3).invariant < 1e3  # the control
    if kind == "row-stochastic":
        C = (C > 0) / (C > 0).sum(1, keepdims=True)
    else:
        C[2, 1] += 1e-6
    with pytest.raises(InvariantBroken, match=r"iteration 1, run \d+:") as caught:
        broken(backend, C, runs=3)
    assert caught.value.result is not None
    with pytest.raises(InvariantBroken, match="run 17"):
        broken(backend, C, runs=[17])
    with pytest.raises(InvariantBroken, match=r"iteration \d+, node \d"):
        threads.play(task_of("push-pull-du", B, 300, C=Matrix(side="column", matrix=C, checked=False)))


@pytest.mark.parametrize("late", [1e-9, 1e-6])
def test_a_column_that_is_off_late_in_a_random_start_is_raised(late):
    C = columns_of(B)
    C[3, 2] += late
    given = dict.fromkeys("RA", "uniform") | {"B": "C", "C": Matrix(side="column", matrix=C, checked=False)}
    with pytest.raises(InvariantBroken):
        private(K=2, iterations=300, runs=5, **given)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("law", ["cauchy", "log-laplace", "laplace", "uniform"])
def test_heavy_tails_raise_no_false_alarm(backend, law):
    result = private(backend, K=3, law=law, iterations=60, runs=200)
    assert result.invariant < 1e3
    assert np.isfinite(result.final).all()


def test_rows_of_table_one_off_their_class():
    """Refused, raised, or biased: never a wrong optimum that looks right."""
    row = (columns_of(B) > 0) / (columns_of(B) > 0).sum(1, keepdims=True)
    with pytest.raises(WeightError, match="column 1 sums"):
        sv.run("diging", P, B, R=row, stepsize=0.02)
    with pytest.raises(WeightError, match="doubly"):
        sv.run("aug-dgm", P, B, R="uniform", stepsize=0.02)
    with pytest.raises(WeightError):
        sv.run("ab", P, B, C=row, stepsize=0.02)
    with pytest.raises(InvariantBroken):
        sv.run("ab", P, B, C=Matrix(side="column", matrix=row, checked=False), stepsize=0.02)
    with pytest.raises(sv.errors.GraphError, match="two-way"):
        sv.run("asyn-dgm", P, B, stepsize=0.02)
    with pytest.raises(WeightError, match="two-way"):
        sv.run("diging-tv", P, B, stepsize=0.02)
    off_class = Matrix(side="row", matrix=columns_of(B), checked=False)  # DIGing with columns alone: the sum is kept, x is not
    weights = {"R": off_class, "A": "identity", "C": "uniform", "B": "identity"}
    result = sv.run("gradient-tracking", P, B, **weights, stepsize=0.005, iterations=4000)
    assert 1e-3 < result.final[0] < 1e3
    assert result.invariant < 1e3


def symmetric(graph):
    """(I + Metropolis) / 2: symmetric, doubly stochastic, no negative eigenvalue."""
    degree, A = graph.outdegree, graph.adjacency()
    W = A / (1 + np.maximum(degree[:, None], degree[None]))
    W = W + np.diag(1 - W.sum(1))
    return (np.eye(graph.n) + W) / 2


def extra(W, second, first, stepsize, x, iterations):
    """x^{k+2} = (I + W) x^{k+1} - second x^k - stepsize (g^{k+1} - g^k), x^1 = first x^0 - stepsize g^0."""
    gradient = reference.quadratic(*P.data[:2])
    xs = [x, first @ x - stepsize * gradient(x)]
    for _ in range(iterations - 1):
        a, b = xs[-2:]
        xs.append(b + W @ b - second @ a - stepsize * (gradient(b) - gradient(a)))
    return np.array(xs)


def test_gradient_tracking_contains_one_extra():
    V = symmetric(TWO_WAY)
    result = sv.run("diging", P, TWO_WAY, R=V, stepsize=0.02, iterations=300, record=True)
    xs = extra(2 * V - np.eye(5), V @ V, V, 0.02, result.trajectory[0, 0], 300)
    assert np.abs(xs - result.trajectory[:, 0]).max() < 1e-12 * np.abs(xs).max()


@pytest.mark.parametrize("backend", BACKENDS)
def test_extra_is_the_textbook_recursion(backend):
    W = 2 * symmetric(TWO_WAY) - np.eye(5)
    result = sv.run("extra", P, TWO_WAY, stepsize=0.02, iterations=300, record=True, backend=backend)
    xs = extra(W, (np.eye(5) + W) / 2, W, 0.02, result.trajectory[0, 0], 300)
    assert np.abs(xs - result.trajectory[:, 0]).max() < 1e-12 * np.abs(xs).max()
    standard = sv.run("diging", P, TWO_WAY, stepsize=0.02, iterations=300, record=True).trajectory[:, 0]
    assert np.abs(xs - standard).max() > 1e-3  # and not a row of Table I


def test_a_ledger_refuses_what_it_cannot_keep():
    with pytest.raises(ParameterError, match="smaller K"):
        threads.play(task_of(PRIVATE, B, 70, K=60))


def test_a_ledger_keeps_every_digit():
    ledger, rng = Ledger(2), np.random.default_rng(0)
    plain, sums = np.zeros((1, 1, 1)), 0
    for power in (0, 12, 18, 9, 18, 3):
        sent, received = rng.normal(size=(2, 3, 1, 1, 1)) * 10.0**power
        sums += sum(int(v * 2**60) for v in received.ravel()) - sum(int(v * 2**60) for v in sent.ravel())
        plain = np.full((1, 1, 1), 1 + sums / 2**60)
        y = ledger.settle(plain, np.ones((1, 1, 1)), sent, received)
    assert abs(int(y[0, 0, 0] * 2**60) - sums - 2**60) <= abs(sums) * 2**-52 + 2**20
    with pytest.raises(InvariantBroken, match="column"):
        ledger.settle(plain + 1e-6 * np.abs(plain), np.ones((1, 1, 1)), sent[:0], sent[:0])
