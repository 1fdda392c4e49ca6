"""Figure 7: a hundred nodes in the paper's ring: the naive setting, the same one with a step that converges, and others.

Above: uniform weights with the best step there is, over hundreds of thousands of iterations. Below: the first few thousand of
the same beside the paper's 0.06 (which diverges), the ring with links both ways, and weights of one's own choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Diverged
from ...graphs import complete
from ...run import run
from ...stepsize import stepsize
from .. import ring, setting
from ..item import Figure, Numbers, Watch, register
from ..looks import ERROR, curve, legend, note

METHOD = "private-gradient-tracking"
UNIFORM = {"R": "uniform", "A": "R", "C": "uniform", "B": "C"}
NAIVE, BEST, BOTH, HUB = "step 0.06", "best step", "links both ways", "weights through a hub"
WEIGHTS = {
    NAIVE: "drawn by the paper's sampler in every iteration", BEST: "1/3 each", BOTH: "1/5 each",
    HUB: "node 0 keeps 1 - 2 eta, the others pass 1 - 2 eta on by the longer hop; eta elsewhere",
}  # fmt: skip
LONG, SHORT = 600_000, 5000


def make(quick: bool, watch: Watch) -> Numbers:
    watch("stepsizes, by spectral radius")
    table = settings(quick)
    step = {name: row["stepsize"] for name, row in table.items()}
    curves = {
        NAIVE: _run(ring.one_way(), setting.STEPSIZE, SHORT, {}),
        BEST: _run(ring.one_way(), step[BEST], SHORT, UNIFORM),
        BOTH: _run(ring.two_way(), step[BOTH], SHORT, UNIFORM),
        HUB: _run(ring.one_way(), step[HUB], SHORT, ring.through_a_hub()),
    }
    last = LONG // 6 if quick else LONG
    watch(f"{last:,} iterations with the best step for uniform weights")
    long = _run(ring.one_way(), step[BEST], last, UNIFORM, every=1000)
    told = {"problem": ring.PROBLEM, "graph": "ring:n=100,hops=1+2", "K": setting.K, "seed": ring.SEED, "eta": ring.ETA,
            "weights": WEIGHTS}  # fmt: skip
    return {"parameters": {**told, "iterations": {"long": last, "short": SHORT}}, "curves": curves, "long": long, "settings": table}


def settings(quick: bool) -> dict[str, dict[str, float]]:
    """Of each: the best step, the largest stable one, and by the spectral radius iterations and exchanges a digit."""
    problem, hub = ring.problem(), ring.through_a_hub()
    third = ring.uniform(ring.one_way())[0]
    hops = ring.by_hop(2 / 3 - ring.ETA / 2, ring.ETA, 1 / 3 - ring.ETA / 2)  # of these, the best for small steps
    asked: dict[str, Any] = {
        BEST: (problem, ring.one_way(), third, third, 1),
        BOTH: (problem, ring.two_way(), *ring.uniform(ring.two_way()), 1),
        HUB: (problem, ring.one_way(), hub["R"], hub["C"], 1),
        "equal weights, data four times smaller": (ring.problem(0.125), ring.one_way(), third, third, 1),
        "equal weights, equal curvature at all nodes": (ring.alike(), ring.one_way(), third, third, 1),
        "best weights that are the same at all nodes": (problem, ring.one_way(), hops, hops, 1),
    }
    for q in () if quick else (4, 16, 64):
        power = np.linalg.matrix_power(third, q)
        asked[f"equal weights, {q} products an iteration"] = (problem, complete(ring.N), power, power, q)
    return {name: _row(*one) for name, one in asked.items()}


def _row(problem: Any, graph: Any, R: Any, C: Any, products: int) -> dict[str, float]:
    advice = stepsize("push-pull", problem, graph, R=R, C=C)
    assert advice.largest is not None
    rate = ring.rate(problem, R, C, advice.good)
    digit = float(-np.log(10) / np.log(rate))
    numbers = {"stepsize": advice.good, "largest": advice.largest, "rate": rate}
    return {**numbers, "iterations_a_digit": digit, "products_a_digit": products * digit}


def _run(graph: Any, size: float, iterations: int, weights: dict[str, Any], every: int = 10) -> dict[str, Any]:
    options = {"K": setting.K, "stepsize": size, "iterations": iterations, "seed": ring.SEED, "every": every, **weights}
    try:
        result, diverged = run(METHOD, ring.problem(), graph, **options), False
    except Diverged as error:
        result, diverged = error.result, True
    curves = setting.thinned(result, {"error": result.error[0]}, 500)
    return {**curves, "stepsize": size, "rate": result.rate(), "final": float(result.final[0]), "diverged": diverged}


def draw(shown: Any, canvas: Any) -> None:
    above, below = canvas.subplots(2, 1)
    long = shown["long"]
    curve(above, 1, BEST, np.array(long["k"]) / 1000, long["error"])
    above.set(yscale="log", xlabel="thousand iterations", ylabel=ERROR)
    note(above, f"one way, equal weights, best step {long['stepsize']:.1e}")
    for look, name in ((2, NAIVE), (1, BEST), (3, BOTH), (0, HUB)):
        one = shown["curves"][name]
        curve(below, look, name, one["k"], one["error"])
    below.set(yscale="log", xlabel="iteration", ylabel=ERROR, ylim=(1e-15, 1e8))
    note(below, f"its beginning, and three other settings (hub: weights ≥ {ring.ETA})")
    legend(canvas, axes=below)


register(
    Figure(
        name="n100",
        number=7,
        title="A hundred nodes in a ring, each sending to the next two: error of the private algorithm in four settings",
        make=make,
        draw=draw,
        height=1.35,
    )
)
