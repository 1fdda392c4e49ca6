"""Sets that iterates are kept in: projections, their texts, what is refused, and what a run does with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import sottovoce as sv
from sottovoce.errors import ParameterError
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


def test_a_set_that_leaves_the_optimum_out_is_refused():
    for within in ("ball:1", sv.Box(0, 1)):
        with pytest.raises(ParameterError, match=r"yan: within=.* does not contain the minimiser of the sum, \(-1.103, -0.02488\)"):
            sv.run("yan", P, B, within=within)
    edge = sv.Box(P.optimum, P.optimum + 1)
    assert sv.run("yan", P, B, within=edge, iterations=3).parameters["within"] == edge


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
