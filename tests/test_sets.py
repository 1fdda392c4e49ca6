"""Sets that iterates are kept in: projections, their texts, what is refused, and what a run does with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, root

import sottovoce as sv
from sottovoce.confined import confined
from sottovoce.errors import ParameterError, ProblemError
from sottovoce.sets import region

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
B = sv.graphs.paper_b()
POINTS = 1.2 * np.random.default_rng(0).normal(size=(5, 2, 4))


@pytest.mark.parametrize("one", [sv.Ball(2), sv.Box(-1, 0.5), sv.Box((-1, 0), (1, 2.5)), sv.Box(-1, (1, 2))])
def test_a_projection_is_the_nearest_point(one):
    out = one.project(np, POINTS)
    assert out.shape == POINTS.shape
    inside = np.array([[one.holds(POINTS[i, :, r]) for r in range(4)] for i in range(5)])
    assert 0 < inside.sum() < inside.size
    for i, r in np.ndindex(5, 4):
        if inside[i, r]:
            assert np.array_equal(out[i, :, r], POINTS[i, :, r])  # the same bits
            continue
        assert one.holds(out[i, :, r])
        low, high = one.sides(2) if isinstance(one, sv.Box) else (None, None)
        limits = {"bounds": list(zip(low, high, strict=True))} if low is not None else {
            "constraints": {"type": "ineq", "fun": lambda v: one.radius**2 - v @ v}, "method": "SLSQP"}  # fmt: skip
        near = minimize(lambda v, p=POINTS[i, :, r]: ((v - p) ** 2).sum(), np.zeros(2), tol=1e-12, **limits)
        assert np.allclose(out[i, :, r], near.x, atol=1e-5)
    import jax.numpy as jnp

    from sottovoce.simulate.compiled import float64

    with float64():
        assert np.allclose(np.asarray(one.project(jnp, jnp.asarray(POINTS))), out, rtol=1e-15)


@pytest.mark.parametrize("text", ["ball:5", "ball:0.25", "ball:1e-07", "ball:1e30", "box:-1..1", "box:-1+0..1+2", "box:0.5..1e22"])
def test_texts_go_both_ways(text):
    assert str(region(text)) == text
    assert region(str(region(text))) == region(text)


numbers = st.floats(-1e300, 1e300)


@settings(deadline=None, derandomize=True)
@given(numbers, numbers, numbers, numbers)
def test_every_box_has_a_text(a, b, c, d):
    low, high = np.minimum([a, b], [c, d]), np.maximum([a, b], [c, d])
    if (low < high).all():
        box = sv.Box(low, high)
        assert region(str(box)) == box
        assert hash(region(str(box))) == hash(box)


def test_sets_are_values():
    assert sv.Ball(5) == sv.Ball(5.0) == region("ball:5")
    assert len({sv.Box(-1, 1), sv.Box(-1.0, np.float64(1)), region("box:-1..1")}) == 1
    assert sv.Box(np.array(-1.0), np.array(1)) == sv.Box(-1, 1)
    assert sv.Box((-1, -1), 1) == sv.Box([-1, -1], np.ones(2))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sv.Ball(0), "above 0, not 0"),
        (lambda: sv.Ball(float("inf")), "finite number, not inf"),
        (lambda: sv.Ball("5"), "finite number, not '5'"),
        (lambda: sv.Ball(True), "finite number, not True"),
        (lambda: sv.Box(1, 1), "below the upper ones; got box:1..1"),
        (lambda: sv.Box((0, 2), (1, 1)), "below the upper ones"),
        (lambda: sv.Box((0, 0), (1, 1, 1)), "got 2 and 3"),
        (lambda: sv.Box(float("nan"), 1), "low of a box must be a finite number"),
        (lambda: region("circle:3"), r"expected a set such as sv.Ball\(5\).*not 'circle:3'"),
        (lambda: region("ball:"), "not 'ball:'"),
        (lambda: region("ball:big"), "'big' in 'ball:big' is not a number"),
        (lambda: region("box:1"), "not 'box:1'"),
        (lambda: region("box:..1"), "expected"),
        (lambda: region("box:-1+..1"), "'' in .* is not a number"),
        (lambda: region(5), "not 5"),
    ],
)
def test_what_is_no_set(make, said):
    with pytest.raises(ParameterError, match=said):
        make()


@pytest.mark.parametrize("method", ["yan", "lou"])
def test_iterates_stay_inside(method):
    small = sv.Box(P.optimum - 0.3, P.optimum + 0.2)
    result = sv.run(method, P, B, stepsize=0.3, iterations=30, runs=3, within=small, record=True)
    low, high = small.sides(2)
    assert ((result.trajectory >= low) & (result.trajectory <= high)).all()
    assert (result.trajectory == low).any()  # it acted
    ball = sv.run(method, P, B, stepsize=0.3, iterations=30, within="ball:1.2", x0=np.full((5, 2), 40.0), record=True)
    lengths = np.linalg.norm(ball.trajectory, axis=-1)
    assert lengths[0].max() <= 1.2 * (1 + 1e-15)
    assert np.isclose(lengths.max(), 1.2, rtol=1e-15)


# the optimum inside a set -------------------------------------------------------------------------------------------

RECORDS = np.random.default_rng(1).normal(size=(40, 3))
LOGISTIC = sv.problems.logistic(RECORDS, (RECORDS @ [1.0, -2.0, 0.5] > 0).astype(int), np.repeat(range(4), 10), l2=1.0)
PROBLEMS = {"quadratic": P, "six": sv.problems.estimation(n=3, d=6, s=7, seed=2), "logistic": LOGISTIC}


def test_of_a_mean_it_is_the_projection():
    """|x - p|^2 / 2 summed: the nearest point of the set to the mean, in closed form."""
    mean = np.array([1.5, -2.0])
    problem = sv.problems.average(mean + np.array([[1.0, 0], [-1, 2], [0, -2]]))
    assert np.allclose(confined(problem, sv.Ball(1)).optimum, mean / 2.5, atol=1e-15)
    assert np.allclose(confined(problem, sv.Box(-1, 1)).optimum, [1, -1], atol=0)
    assert np.allclose(confined(problem, sv.Box((-3, -1), (3, 1))).optimum, [1.5, -1], atol=1e-15)
    assert confined(problem, sv.Ball(2.5)) is problem
    assert confined(problem, sv.Box(mean, mean + 1)) is problem


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("size", [0.01, 0.5, 0.999])
def test_it_satisfies_the_conditions_of_optimality(name, size):
    problem = PROBLEMS[name]
    radius, slope = size * np.linalg.norm(problem.optimum), lambda x: problem.gradient(x).sum(0)
    x = confined(problem, sv.Ball(radius)).optimum
    assert np.isclose(np.linalg.norm(x), radius, rtol=1e-15)
    outward = -slope(x) @ x / radius  # the whole of the slope, pointing outwards
    assert outward > 0
    scale = np.abs(problem.hessian(x)).sum(0).max() * radius + np.abs(problem.gradient(x)).sum(0).max()
    assert np.abs(slope(x) + outward * x / radius).max() < 1e-13 * scale
    reach = size * np.abs(problem.optimum).max()
    box = sv.Box(-reach, 0.7 * reach)
    x = confined(problem, box).optimum
    low, high = x == -reach, x == 0.7 * reach
    assert (low | high).any()
    assert (slope(x)[low] > 0).all()
    assert (slope(x)[high] < 0).all()
    assert np.abs(slope(x)[~(low | high)]).max(initial=0) < 1e-13 * scale


@pytest.mark.parametrize("within", ["ball:0.5", "box:-0.7+0..0.3+1"])
def test_a_projected_method_finds_it(within):
    for backend in ("eager", "compiled"):
        result = sv.run("yan", P, B, stepsize=1.0, decay=1.0, iterations=4000, within=within, backend=backend)
        assert not region(within).holds(P.optimum)
        assert region(within).holds(result.optimum)
        assert np.array_equal(result.optimum, confined(P, region(within)).optimum)
        assert result.final[0] < 3e-3
        assert np.linalg.norm(result.x[0] - P.optimum) > 0.5
    assert np.array_equal(sv.run("yan", P, B, within="ball:5", iterations=2).optimum, P.optimum)


def test_it_is_refused_where_it_cannot_be_known():
    """At 0.9 the sum bends downwards: what the conditions say there is not enough."""
    bumpy = sv.Problem(gradient=lambda x, a: x + 4 * np.sin(3 * x) - a, data=[np.array([9.0]), np.array([9.0])], d=1)
    bumpy.optimum = np.array([root(lambda x: x + 4 * np.sin(3 * x) - 9, 8.5).x[0]])
    assert 7 < bumpy.optimum[0] < 12
    for one in (sv.Ball(0.9), sv.Box(-1, 0.9)):
        with pytest.raises(ProblemError, match=r"the minimiser of the sum inside .* was not found.*take a set that holds"):
            confined(bumpy, one)


def test_sets_of_other_spaces_are_refused():
    with pytest.raises(ParameterError, match=r"box:0\+0\+0..1\+1\+1 is no set for this problem of 2 unknowns: .* 3 coordinates"):
        sv.run("yan", P, B, within=sv.Box((0, 0, 0), 1))
    with pytest.raises(ParameterError, match=r"yan: within must be a set such as .*, not None"):
        sv.run("yan", P, B, within=None)
    with pytest.raises(ParameterError, match=r"yan: within: expected a set such as .*, not \[0, 1\]"):
        sv.run("yan", P, B, within=[0, 1])


def test_a_result_keeps_its_set(tmp_path):
    result = sv.run("yan", P, B, within=sv.Box(-3, 3), iterations=3)
    loaded = sv.Result.load(result.save(tmp_path / "kept"))
    assert loaded.parameters["within"] == "box:-3..3"
    assert sv.run("yan", P, B, within=loaded.parameters["within"], iterations=3).parameters == result.parameters


def test_on_the_command_line(capsys):
    from sottovoce.cli import main

    assert main(["run", "yan:within=ball:5", "--iterations", "5", "--json"]) == 0
    assert '"within": "ball:5"' in capsys.readouterr().out
    assert main(["run", "yan", "--set", "within=box:-4+-4..4+5", "--iterations", "5"]) == 0
    assert "within=box:-4+-4..4+5" in capsys.readouterr().out.replace("\n", "").replace(" ", "")
    assert main(["run", "yan", "--set", "within=ball:-5"]) == 2
    assert "yan: within: the radius of a ball must be above 0, not -5" in capsys.readouterr().err
