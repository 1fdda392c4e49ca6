"""Methods that pay with accuracy: each follows its equations, converges or stalls where its theory says, spends what it states."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import ParameterError
from sottovoce.layout import layout
from sottovoce.mechanisms.nozari import basis
from sottovoce.node import Layer
from sottovoce.registry import Applied
from sottovoce.simulate import threads
from sottovoce.simulate.task import prepare

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference.py"))))
POINTS = np.array([[1.0], [-0.5], [0.2]])
MEAN = sv.problems.average(POINTS)
TRIANGLE = sv.graphs.complete(3)
P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
RING = sv.graphs.cycle(5, two_way=True)
INF = math.inf


def recorded(method, problem=P, graph=RING, **given):
    given = {"stepsize": 0.06, "iterations": 40, "record": True, "seed": 3, **given}
    result = sv.run(method, problem, graph, **given)
    return result, result.transcript


def matrix(t, name="W", k=0):
    return reference.dense(t.edges, t.graph.n, t.draws[name, k].value)[0]


def drawn(t, k, call=0):
    return t.draws[f"draw-{call}", k].value[:, :, 0]


def cut(g, bound):
    return g * np.minimum(1, bound / np.linalg.norm(g, axis=1, keepdims=True))


def refused(said, method, problem=P, graph=RING, **given):
    with pytest.raises(ParameterError, match=said):
        sv.run(method, problem, graph, stepsize=0.06, iterations=3, **given)


# Huang, Mitra, Vaidya ------------------------------------------------------------------------------------------------


def scale_of(k, bound, d, c, epsilon, q, p):
    return 2 * bound * math.sqrt(d) * c * p**k / (epsilon * (p - q))


def test_huang_follows_its_equations():
    given = {"epsilon": 50.0, "q": 0.8, "p": 0.9, "bound": 3.0, "within": sv.Ball(2)}
    result, t = recorded("huang", **given)
    W, x, heard = matrix(t), result.trajectory[0, 0], []
    for k in range(40):
        y = x + scale_of(k, 3.0, 2, 0.06, 50.0, 0.8, 0.9) * drawn(t, k)
        heard.append(np.abs(t.sent[k, 0][:, :, 0] - y[layout(RING).sender]).max())
        z = W @ y
        x = z - 0.06 * 0.8**k * cut(P.gradient(z), 3.0)
        x = x * np.minimum(1, 2 / np.linalg.norm(x, axis=1, keepdims=True))
        assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13
    assert max(heard) < 1e-12
    laplace = np.concatenate([drawn(recorded("huang", seed=s)[1], k).ravel() for s in range(3) for k in range(40)])
    assert abs(np.abs(laplace).mean() - 1) < 0.1  # 1,200 draws
    assert recorded("huang")[1].draws["draw-0", 5].known == "me"


def test_huang_spends_what_it_states():
    """Another cost at node 2, the same broadcasts: what it sends moves by at most the stated epsilon times the noise in use."""
    given = {"epsilon": 0.7, "q": 0.85, "p": 0.95, "bound": 3.0, "within": "ball:30", "iterations": 60}
    result, t = recorded("huang", **given)
    W = matrix(t)

    def loss(other):
        x = mine = result.trajectory[0, 0, 2]
        total = 0.0
        for k in range(60):
            M = scale_of(k, 3.0, 2, 0.06, 0.7, 0.85, 0.95)
            mine = result.trajectory[k, 0, 2]
            total += np.abs(x - mine).sum() / M
            y = result.trajectory[k, 0] + M * drawn(t, k)  # the world's broadcasts
            z = W[2] @ y
            x = z - 0.06 * 0.85**k * cut(other(z, P.gradient(z)[2])[None], 3.0)[0]
            x = x * min(1, 30 / np.linalg.norm(x))
        return total

    stated = result.spent["epsilon"]
    assert math.isclose(stated, 0.7 * (1 - (0.85 / 0.95) ** 59), rel_tol=1e-12)
    assert result.spent["delta"] == 0
    turned = loss(lambda z, g: -g)  # as different as two costs can be where gradients are long
    assert 0.5 * stated < turned <= stated
    along = loss(lambda z, g: 3 * np.ones(2))
    assert along <= stated
    # the bound is attained: gradients of full length along the diagonal, against those of the other sign
    steps = [0.06 * 0.85**k * 2 * 3.0 * math.sqrt(2) for k in range(59)]
    noise = [scale_of(k + 1, 3.0, 2, 0.06, 0.7, 0.85, 0.95) for k in range(59)]
    assert math.isclose(sv.accountant.laplace(steps, noise), stated, rel_tol=1e-12)


def test_huang_freezes_on_the_way_even_without_noise():
    """The mean of the iterates follows a product in closed form: its gap to the optimum shrinks by 1 - c q^k."""
    result = sv.run("huang", MEAN, TRIANGLE, stepsize=0.3, epsilon=INF, q=0.8, p=0.9, iterations=400, x0=POINTS + 2)
    left = 2 * np.prod(1 - 0.3 * 0.8 ** np.arange(400))
    assert left > 0.3
    assert np.allclose(result.x[0].mean(0) - MEAN.optimum, left, rtol=1e-12)
    assert result.spent is None
    assert result.final[0] > 0.5
    late = sv.run("huang", MEAN, TRIANGLE, stepsize=0.3, epsilon=INF, q=0.8, p=0.9, iterations=800, x0=POINTS + 2)
    assert abs(late.final[0] - result.final[0]) < 1e-12  # it does not move any more


def test_huang_trades_accuracy_for_epsilon():
    errors = {}
    for epsilon in (5, 50, 500, 1e5):
        runs = sv.run("huang", P, RING, stepsize=0.06, epsilon=epsilon, q=0.95, p=0.97, iterations=300, runs=30)
        errors[epsilon] = np.median(runs.final)
        assert np.isclose(runs.spent["epsilon"], epsilon, rtol=0.01)
    assert sorted(errors.values(), reverse=True) == list(errors.values())
    assert errors[5] > 5 * errors[1e5]


def test_what_is_spent_is_told_and_kept(tmp_path, capsys):
    from sottovoce.cli import main

    result = sv.run("huang", P, RING, epsilon=2.0, q=0.5, p=0.8, iterations=200)
    assert "; spent epsilon 2;" in repr(result)
    assert sv.Result.load(result.save(tmp_path / "kept")).spent == result.spent == {"epsilon": 2.0, "delta": 0.0}
    words = ["run", "huang", "--graph", "cycle:5,two_way=true", "--set", "epsilon=2", "--iterations", "50"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"] == {"epsilon": 2 * (1 - (0.9 / 0.95) ** 49), "delta": 0.0}
    assert main(words) == 0
    assert "spent        epsilon 1.859" in capsys.readouterr().out
    assert main([*words, "--set", "epsilon=inf", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"] is None


def test_several_budgets_add_up():
    both = sv.Mechanism("both", "a test", Layer, spends=lambda p, problem, iterations: {"epsilon": 0.5, "delta": iterations / 1e6})
    mute = sv.Mechanism("mute", "a test", Layer)
    stack = [Applied(both, ()), Applied(mute, ())]
    result = sv.run("huang", P, RING, stepsize=0.1, q=0.1, p=0.9, iterations=100, mechanisms=stack)
    assert result.spent == {"epsilon": 1.5, "delta": 1e-4}
    assert "spent epsilon 1.5, delta 0.0001" in repr(result)
    assert sv.run("ab", P, RING, stepsize=0.1, iterations=10, mechanisms=stack[1:]).spent is None


def test_huang_refuses():
    refused("q must be below p, or the noise fades faster.*got q=0.95 and p=0.95", "huang", q=0.95, p=0.95)
    refused("q must be below p", "huang", q=0.97)
    for bad in (0, 1, -0.1, 1.5, "half"):
        refused("p must be a number between 0 and 1", "huang", p=bad)
    for bad in (0, -1, math.nan, "much", None):
        refused("epsilon must be a number above 0, or inf", "huang", epsilon=bad)
    refused("bound must be a number above 0", "huang", bound=0)
    with pytest.raises(sv.errors.GraphError, match="two-way"):
        sv.run("huang", P, sv.graphs.paper_b())


# Wang, Nedic ---------------------------------------------------------------------------------------------------------

SEQUENCES = {"mixing": 0.8, "decay": 0.9, "growth": 0.2, "noise": 0.5}


def sequences(k, stepsize=0.06, mixing=0.8, mixing_decay=0.9, decay=0.9, growth=0.2, noise=0.5):
    return stepsize / (k + 1) ** decay, mixing / (k + 1) ** mixing_decay, noise * (k + 1) ** growth


def off(W):
    """What neighbours weigh; the own share left out."""
    return W - np.diag(np.diag(W))


def test_tailoring_follows_its_equations():
    result, t = recorded("tailoring", bound=3.0, mixing_decay=0.75, **SEQUENCES)
    W, x = off(matrix(t)), result.trajectory[0, 0]
    for k in range(40):
        size, mixing, nu = sequences(k, mixing_decay=0.75)
        noisy = x + nu * drawn(t, k)
        x = x + mixing * (W @ noisy - W.sum(1, keepdims=True) * x) - size * cut(P.gradient(x), 3.0)
        assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13
        assert np.abs(t.sent[k, 0][:, :, 0] - noisy[layout(RING).sender]).max() < 1e-13


def test_tailoring_spends_what_it_states():
    """Another cost at node 2, the same messages: dense replay against what is stated."""
    result, t = recorded("tailoring", bound=3.0, mixing_decay=0.75, **SEQUENCES)
    W, x, total = off(matrix(t)), result.trajectory[0, 0, 2], 0.0
    for k in range(40):
        size, mixing, nu = sequences(k, mixing_decay=0.75)
        mine, noisy = result.trajectory[k, 0], result.trajectory[k, 0] + nu * drawn(t, k)
        total += np.abs(x - mine[2]).sum() / nu
        direction = np.sign(x - mine[2]) + (x == mine[2])  # the worst cost: as far away as cut gradients go
        worst = cut(P.gradient(mine), 3.0)[2] - 2 * 3.0 * direction / math.sqrt(2)
        x = x + mixing * (W[2] @ noisy - W[2].sum() * x) - size * worst
    assert math.isclose(total, result.spent["epsilon"], rel_tol=1e-9)  # attained: the statement is tight
    assert recorded("tailoring", noise=0)[0].spent is None


def test_tailoring_has_the_spread_and_the_gap_of_its_theory():
    """On |x - p|^2 / 2 and a complete graph: the mean of the iterates has a variance in closed form, the gap between nodes
    settles at lambda / gamma times that of the gradients."""
    given = {"stepsize": 1.0, "mixing_decay": 0.6, "growth": 0.05, "decay": 1.0, "iterations": 300, "runs": 600, "noise": 0.3}
    runs = sv.run("tailoring", MEAN, TRIANGLE, x0=POINTS, **given)
    means, variance = runs.x.mean(1)[:, 0], 0.0
    for k in range(300):
        size, mixing, nu = sequences(k, 1.0, 1.0, 0.6, 1.0, 0.05, 0.3)
        variance = (1 - size) ** 2 * variance + 2 * nu**2 * (mixing * 2 / 3) ** 2 / 3
    assert abs(means.mean() - MEAN.optimum[0]) < 4 * math.sqrt(variance / 600)
    assert abs(means.var() / variance - 1) < 0.35  # 600 runs: the spread of a variance of Laplace noise is 0.09
    still = sv.run("tailoring", MEAN, TRIANGLE, x0=POINTS, **{**given, "runs": 1, "noise": 0, "iterations": 3000})
    ratio = 3000**-1.0 / 3000**-0.6
    assert np.allclose(still.x[0] - MEAN.optimum, (POINTS - POINTS.mean()) * ratio / (1 + ratio), rtol=0.02)
    assert sv.run("tailoring", MEAN, TRIANGLE, **{**given, "iterations": 6000, "runs": 1, "every": 60}).final[0] < 0.08


def test_tailoring_with_tracking_follows_its_equations():
    graph = sv.graphs.paper_b()
    given = {**SEQUENCES, "bound": 3.0, "mixing_decay": 0.75, "tracking": 0.9, "decay": 1.0}
    result, t = recorded("tailoring-tracking", graph=graph, **given)
    R, C, x, s = off(matrix(t, "R")), off(matrix(t, "C")), result.trajectory[0, 0], np.zeros((5, 2))
    for k in range(40):
        size, mixing, nu = sequences(k, mixing_decay=0.75, decay=1.0)
        noisy, other = s + nu * drawn(t, k), x + nu * drawn(t, k, 1)
        later = s + 0.9 / (k + 1) ** 0.9 * (C @ noisy - C.sum(0)[:, None] * s) + size * cut(P.gradient(x), 3.0)
        x = x + mixing * (R @ other - R.sum(1, keepdims=True) * x) - (later - s)
        s = later
        assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13
        assert np.abs(t.sent[k, 1][:, :, 0] - other[layout(graph).sender]).max() < 1e-12


def test_tailoring_with_tracking_spends_no_more_than_it_states():
    graph = sv.graphs.paper_b()
    result, t = recorded("tailoring-tracking", graph=graph, bound=3.0, noise=2.0, stepsize=0.3)
    R, C, stated = off(matrix(t, "R")), off(matrix(t, "C")), result.spent["epsilon"]
    found = []
    for node in range(5):
        x, s, total = result.trajectory[0, 0, node], np.zeros(2), 0.0
        for k in range(40):
            size, mixing, nu = sequences(k, 0.3, 1.0, 0.7, 1.0, 0.1, 2.0)
            gamma = 1 / (k + 1) ** 0.9
            mine, trackers = result.trajectory[k, 0], t.states[k - 1]["s"][:, :, 0]
            total += (np.abs(x - mine[node]).sum() + np.abs(s - trackers[node]).sum()) / nu
            noisy, other = trackers + nu * drawn(t, k), mine + nu * drawn(t, k, 1)
            worst = cut(P.gradient(mine), 3.0)[node] - 6.0 / math.sqrt(2)
            later = s + gamma * (C[node] @ noisy - C[:, node].sum() * s) + size * worst
            x = x + mixing * (R[node] @ other - R[node].sum() * x) - (later - s)
            s = later
        found.append(total)
    assert 0.5 * stated < max(found) <= stated * (1 + 1e-12)


def test_tailoring_with_tracking_converges_on_a_digraph():
    unequal = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1, 3), (2, 0)])
    result = sv.run("tailoring-tracking", P, unequal, stepsize=1.0, iterations=4000, runs=20, every=40)
    medians = np.median(result.error, 0)
    at = lambda k: medians[result.recorded.tolist().index(k)]
    assert at(4000) < 0.6 * at(400) < 0.5 * at(40)
    assert at(4000) < 0.15
    still = sv.run("tailoring-tracking", P, unequal, stepsize=1.0, iterations=4000, noise=0, every=40)
    assert still.final[0] < 0.6 * still.error[0, 10]
    assert still.spent is None


def test_weights_that_are_drawn_count_as_if_nothing_were_forgotten():
    """Then no share is known beforehand: S adds up, and for the tracker X adds up what S moves."""
    given = {"stepsize": 0.3, "iterations": 50, "bound": 3.0, "noise": 2.0, "mixing_decay": 0.7, "growth": 0.1}
    taken, noise = 0.3 / np.arange(1, 51) * 2 * math.sqrt(2) * 3, 2 * np.arange(1, 51) ** 0.1
    S = np.concatenate([[0], np.cumsum(taken)[:-1]])
    links = sv.run("tailoring", P, RING, W="links", **given)
    assert np.isclose(links.spent["epsilon"], (S / noise).sum(), rtol=1e-12)
    assert links.spent["epsilon"] > sv.run("tailoring", P, RING, **given).spent["epsilon"]
    X = np.concatenate([[0], np.cumsum(taken + S * np.arange(1, 51) ** -0.9)[:-1]])
    drawn = sv.run("tailoring-tracking", P, RING, R="paper", C="paper", **given)
    assert np.isclose(drawn.spent["epsilon"], ((S + X) / noise).sum(), rtol=1e-12)
    assert drawn.spent["epsilon"] > sv.run("tailoring-tracking", P, RING, **given).spent["epsilon"]
    once = {"R": "paper:fresh=false", "C": "paper:fresh=false"}
    runs = sv.run("tailoring-tracking", P, RING, runs=3, **once, **given)  # other weights in each run
    assert runs.spent == drawn.spent
    assert sv.run("tailoring-tracking", P, RING, **once, **given).spent["epsilon"] < drawn.spent["epsilon"]


def test_sequences_outside_the_theory_are_refused():
    for method in ("tailoring", "tailoring-tracking"):
        graph = RING
        refused(r"the sum of stepsize / \(k \+ 1\)\^1.2 must be infinite", method, graph=graph, decay=1.2)
        refused("mixing.* must be infinite.* an exponent in", method, mixing_decay=0.0)
        refused("decay must be a number, not 'fast'", method, decay="fast")
        refused(r"mixing must be in \(0, 1\], not 2", method, mixing=2)
        refused("noise must be a number from 0 on, not -1", method, noise=-1)
    refused(r"stepsize\^2 / mixing must be finite: 2 decay - mixing_decay > 1, and here it is 0.7", "tailoring", decay=0.8)
    refused(r"\(mixing noise\)\^2 must be finite: 2 \(mixing_decay - growth\) > 1, and here it is 0.8", "tailoring", growth=0.5)
    refused(r"\(mixing noise\)\^2 must be finite", "tailoring-tracking", growth=0.25)
    refused(r"tracking\^2 / mixing must be finite: 2 tracking_decay", "tailoring-tracking", mixing_decay=0.85, tracking_decay=0.9)
    sv.run("tailoring", P, RING, growth=0.5, noise=0, iterations=3, stepsize=0.06)  # no noise, no condition on it


# Nozari, Tallapragada, Cortes ----------------------------------------------------------------------------------------

RANKS = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]  # of order 3 in two coordinates
LOW, HIGH = np.array([-4.0, -2.0]), np.array([3.0, 2.5])
BENT = {"epsilon": 0.4, "order": 3, "p": 0.7, "q": 1.6, "within": sv.Box(LOW, HIGH)}


def wave(number, x):
    """e_k at one point, by its definition."""
    sides = HIGH - LOW
    norms = np.where(np.array(number) == 0, 1, 2) / sides
    return np.sqrt(norms.prod()) * np.cos(np.array(number) * np.pi * (x - LOW) / sides).prod()


def slope(f, x, h=1e-5):
    """Central differences, good to 1e-9."""
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


def bent_sum(coefficients):
    """The gradient of the perturbed sum by the closed form of a product of cosines, written out for two coordinates."""
    rates, amount = np.array(RANKS) * np.pi / (HIGH - LOW), coefficients.sum(0)
    norms = np.sqrt((np.where(np.array(RANKS) == 0, 1, 2) / (HIGH - LOW)).prod(1))

    def gradient(x):
        a, b = (rates * (x - LOW)).T
        slopes = np.stack([-rates[:, 0] * np.sin(a) * np.cos(b), -rates[:, 1] * np.cos(a) * np.sin(b)])
        return P.gradient(x).sum(0) + slopes @ (norms * amount)

    return gradient


def test_the_basis_is_orthonormal_on_the_box():
    nodes, weights = np.polynomial.legendre.leggauss(20)
    points = [low + (nodes + 1) / 2 * (high - low) for low, high in zip(LOW, HIGH, strict=True)]
    area = np.outer(weights, weights) * (HIGH - LOW).prod() / 4
    values = np.array([[[wave(r, np.array([u, v])) for v in points[1]] for u in points[0]] for r in [(0, 0), *RANKS]])
    assert np.allclose(np.einsum("kuv,luv,uv->kl", values, values, area), np.eye(10), atol=1e-12)
    ranks = [tuple(int(m[w == c].sum()) for c in range(2)) for w, m in zip(*basis(3, 2), strict=True)]
    assert ranks == RANKS
    assert len(basis(2, 4)[0]) == math.comb(6, 2) - 1


def test_an_exact_method_finds_the_minimiser_of_the_bent_sum_and_stays_there():
    from scipy.optimize import root

    layer = sv.mechanism("nozari", **BENT)
    given = {"stepsize": 0.06, "mechanisms": layer, "runs": 3, "record": True}
    result = sv.run("ab", P, sv.graphs.paper_b(), iterations=900, **given)
    scale = math.sqrt(sum(k ** (2 * (0.7 - 1.6)) for k in range(1, 10))) / 0.4 / np.arange(1, 10) ** 0.7
    eta = scale[:, None] * result.transcript.draws["draw-0", -1].value
    for run in range(3):
        found = root(bent_sum(eta[..., run]), P.optimum, tol=1e-13).x
        assert np.abs(found - P.optimum).max() > 1e-2
        assert np.abs(result.x[run] - found).max() < 1e-11
        assert np.isclose(result.final[run], math.sqrt(5) * np.linalg.norm(found - P.optimum), rtol=1e-9)
    assert result.spent == {"epsilon": 0.4, "delta": 0.0}
    assert sv.run("ab", P, sv.graphs.paper_b(), iterations=5, **given).spent == result.spent  # once, not an iteration


def test_epsilon_of_the_coefficients_is_what_is_stated():
    """The worst neighbour by Cauchy and Schwarz attains it; others stay below."""
    k = np.arange(1, 10)
    scale = math.sqrt((k ** (2 * (0.7 - 1.6))).sum()) / 0.4 / k**0.7
    worst = k ** (0.7 - 2 * 1.6) / math.sqrt((k ** (2 * (0.7 - 1.6))).sum())
    assert np.isclose(((k**1.6 * worst) ** 2).sum(), 1)
    assert np.isclose(sv.accountant.laplace(worst, scale), 0.4, rtol=1e-12)
    other = np.random.default_rng(0).normal(size=(100, 9))
    other /= np.linalg.norm(k**1.6 * other, axis=1, keepdims=True)
    assert max(sv.accountant.laplace(np.abs(o), scale) for o in other) <= 0.4


class Point(NamedTuple):
    x: object
    shape: object


PROXIMAL = sv.Algorithm(
    "proximal", lambda node, x: Point(x, x), source="a test", leaks="everything", weights={"W": sv.doubly()},
    step=lambda node, s: Point(node.prox(-2.0 * node.pull((node.weights.W, s.x)), 2.0), node.hessian(s.x)[:, 0]),
)  # fmt: skip


def test_slopes_curvature_and_prox_are_those_of_the_bent_cost():
    layer = sv.mechanism("nozari", **BENT)
    given = {"stepsize": 0.1, "iterations": 12, "record": True, "mechanisms": layer, "runs": 2}
    one, two = (sv.run(PROXIMAL, P, RING, backend=backend, **given) for backend in ("eager", "compiled"))
    assert np.abs(one.trajectory - two.trajectory).max() < 1e-12
    scale = math.sqrt(sum(k ** (2 * (0.7 - 1.6)) for k in range(1, 10))) / 0.4 / np.arange(1, 10) ** 0.7
    eta, W = scale[:, None] * one.transcript.draws["draw-0", -1].value, matrix(one.transcript)
    for run, node in ((0, 1), (1, 4)):
        x, before = one.trajectory[-1, run, node], one.trajectory[-2, run]
        bend = lambda v, run=run, node=node: sum(e * wave(r, v) for e, r in zip(eta[node, :, run], RANKS, strict=True))
        assert np.abs(P.gradient(x)[node] + slope(bend, x) - 2 * W[node] @ before + 2 * x).max() < 1e-8
        bent = slope(lambda v, bend=bend: slope(bend, v, 1e-3)[0], before[node], 1e-3)
        shape = one.transcript.states[11]["shape"][node, :, run]
        assert np.abs(P.hessian(before)[node][0] + bent - shape).max() < 1e-4


def test_bent_costs_on_all_players():
    given = {"stepsize": 0.05, "iterations": 60, "mechanisms": sv.mechanism("nozari", **BENT), "record": True}
    one, two = (sv.run("ab", P, sv.graphs.paper_b(), backend=backend, **given) for backend in ("eager", "compiled"))
    task = prepare(
        "ab", P, sv.graphs.paper_b(), runs=1, seed=0, x0=None, every=1, tolerance=None, parameters={}, **given
    )  # fmt: skip
    three = np.moveaxis(threads.play(task).answers, -1, 1)
    for other in (two.trajectory, three):
        assert (np.abs(one.trajectory - other).max((2, 3)) / np.abs(one.trajectory).max((2, 3))).max() < 1e-12
    plain = sv.run("ab", P, sv.graphs.paper_b(), **{**given, "mechanisms": "nozari:epsilon=inf"})
    assert np.array_equal(plain.trajectory, sv.run("ab", P, sv.graphs.paper_b(), **{**given, "mechanisms": ()}).trajectory)
    assert plain.spent is None


def test_nozari_refuses():
    bent = lambda **given: {"method": "ab", "mechanisms": sv.mechanism("nozari", **given)}
    refused("its basis lives on a box, such as within=box:-10..10, not on ball:5", **bent(within="ball:5"))
    refused(r"p between 1/2 and q - 1/2, .* got p=1 and q=1.5", **bent(p=1.0))
    refused("q must be above 1", **bent(q=0.9))
    refused("nozari: within=box:0..1 does not contain the minimiser", **bent(within="box:0..1"))
    refused(r"nozari: within=.* no set for this problem of 2 unknowns", **bent(within=sv.Box((0, 0, 0), 1)))
    refused("order=100 in 2 coordinates makes 5,150 basis functions, and at most 5,000", **bent(order=100))
    wide = sv.problems.average(np.arange(75.0).reshape(5, 15))
    refused("on box:-1000..1000 in 15 coordinates a function of unit norm is not even 1e-10 high", problem=wide,
            **bent(order=1, within="box:-1000..1000"))  # fmt: skip
    refused("both change gradient, hessian, prox", method="ab", mechanisms=("nozari", "nozari"))
    for bad in (0, -1, math.nan, "much"):
        with pytest.raises(ParameterError, match="epsilon must be a number above 0, or inf"):
            sv.mechanism("nozari", epsilon=bad)
    averaging = sv.Algorithm("averaging", Point, Point, source="a test", leaks="all", minimises=False)
    refused("it bends costs, and this method has none", method=averaging, mechanisms="nozari")


# Yan et al. and Lou et al. -------------------------------------------------------------------------------------------


def test_yan_converges_as_its_steps_fade():
    """With steps 1 / (k + 1) on |x - p|^2 / 2 the mean has the optimum after one iteration, the nodes as 1 / k."""
    result, t = recorded("yan", MEAN, TRIANGLE, stepsize=1.0, decay=1.0, iterations=2000, x0=POINTS + 2)
    W, x = matrix(t), POINTS + 2
    for k in range(2000):
        x = np.clip(W @ x - (x - POINTS) / (k + 1), -10, 10)
    assert np.abs(x - result.x[0]).max() < 1e-13
    assert np.abs(result.x[0].mean(0) - MEAN.optimum).max() < 1e-12
    assert np.isclose(result.error[0, 2000] / result.error[0, 1000], 0.5, rtol=0.01)
    assert result.final[0] < 1e-3
    refused("decay must be in \\[1/2, 1\\], not 0.4", "yan", decay=0.4)


@pytest.mark.parametrize("reading", ["exact", "literal"])
def test_lou_converges_to_what_its_reading_says(reading):
    """Exact: to the optimum. Literal: to the minimiser of sum (c_i / T_i) f_i, which is a weighted mean here."""
    given = {"stepsize": 1.0, "reading": reading, "iterations": 6000, "seed": 1, "x0": POINTS}
    result, t = recorded("lou", MEAN, TRIANGLE, **given)
    start = t.states[-1]
    c, T = start["c"][:, 0, 0], start["T"][:, 0, 0]
    assert (c > 0).all()
    assert (c < 5).all()
    assert set(T) <= {1, 2, 3, 4, 5}
    assert len(set(T)) > 1
    weights = np.ones(3) if reading == "exact" else c / T
    limit = (weights[:, None] * POINTS).sum(0) / weights.sum()
    gaps = np.array([np.abs(result.trajectory[k, 0] - limit).max() for k in (600, 6000)])
    assert gaps[1] < 2e-3
    assert gaps[1] < gaps[0] / 3
    if reading == "literal":
        assert np.abs(limit - MEAN.optimum).max() > 0.1
        assert result.final[0] > 0.1


def test_lou_follows_its_equations():
    for reading in ("exact", "literal"):
        result, t = recorded("lou", reading=reading, spread=2.0, slowest=3, within="ball:1.2", stepsize=0.2)
        W, x = matrix(t), t.states[-1]["x"][:, :, 0]
        c, T = 2 * drawn(t, -1), 1 + np.floor(3 * drawn(t, -1, 1))
        for k in range(40):
            a = np.where(k % T == 0, 0.2 * (T / (k + 1 + c) if reading == "exact" else c / (k + 1)), 0)
            x = W @ x - a * P.gradient(x)
            x = x * np.minimum(1, 1.2 / np.linalg.norm(x, axis=1, keepdims=True))
            assert np.abs(x - result.trajectory[k + 1, 0]).max() < 1e-13
        assert t.draws["draw-0", -1].known == t.draws["draw-1", -1].known == "me"
    refused("reading must be one of exact, literal", "lou", reading="free")
    refused("spread must be a number above 0", "lou", spread=0)
    refused("slowest must be a whole number, at least 1", "lou", slowest=0)
