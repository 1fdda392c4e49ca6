"""Methods that pay with accuracy: each follows its equations, converges or stalls where its theory says, spends what it states."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import ParameterError
from sottovoce.layout import layout
from sottovoce.node import Layer
from sottovoce.registry import Applied

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
