"""A24, a secret stepsize: who hears a node and all its in-neighbours has each of its steps, which is a multiple of its gradient.

    sum_j W_ij x_j^k - x_i^{k+1} = a_i(k) grad f_i(x_i^k)        a_i(k) >= 0 secret; zero in iterations that T_i does not divide

The first step that is not zero gives the direction of the gradient, and when steps are zero gives the period T_i. A step that ended
on the border of the set has lost part of the gradient and is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...sets import region
from ...view import View
from ..attack import Attack, Estimate, register
from .fading_noise import mixed, said

STILL = 1e-12  # how small a step is none, in units of x
INSIDE = 1 + 1e-9


def run(view: View, victim: int) -> list[Estimate]:
    if not serves(view.header) or not view.sent or victim in view.coalition or not 0 <= victim < view.graph.n:
        return []
    x, came = said(view, victim), mixed(view, victim)
    within = region(view.header["parameters"]["within"])
    for k in range(len(x) - 1):
        moved, size = came[k] - x[k + 1], np.abs(x[k : k + 2]).max()
        if not np.isfinite(moved).all():
            return []
        if np.abs(moved).max() > STILL * size and within.holds(x[k + 1] * INSIDE):
            return [Estimate((victim,), "offset", moved, x[k], up_to="scale")]
    return []


def serves(header: Any) -> bool:
    """Methods whose stepsizes are secret, with one public W."""
    return header["algorithm"] == "lou"


def control() -> tuple[Any, int, Any]:
    from ... import controls, graphs, problems

    problem = problems.estimation(n=5, d=2, s=3, scale=0.5, seed=1)
    view, truth = controls.recorded("lou", problem, graphs.paper_b(), {1, 2, 4}, stepsize=0.02, iterations=12)
    return view, 0, truth


register(
    Attack(
        name="secret-stepsize",
        id="A24",
        assets=("offset",),
        uses="a node's messages and those of all its in-neighbours; public weights; the set that iterates are kept in",
        idea="What a node says next, less the mixture of what it heard, is its gradient times a secret number: the direction\n"
        "is read, of the first step that is not zero and ends inside the set.",
        metric="angle between the gradient and the step, as the distance of the two at length one",
        run=run,
        control=control,
        serves=serves,
    )
)
