"""A22, the value recovered: what a node contributes to a mean, from its first messages and what entered and left it later.

For methods that hold values the same replay as in A21, with the values among the unknowns: random columns and offsets cancel once
all that a node sent and heard is added up; a secret factor that is used twice divides out. Where a method runs on costs
|x - v|^2 / 2 instead, a gradient at a known point is x - v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import enclosed
from ..replay import played
from . import first_message, mass_balance, start_gradient, update_inverted, wiretap

GRADIENTS = (start_gradient, first_message, mass_balance, wiretap, update_inverted)


def run(view: View, victim: int) -> list[Estimate]:
    if not view.header.get("values") or victim in view.coalition or not 0 <= victim < update_inverted.parties(view):
        return []
    return held(view, victim) or of_gradients(view, victim)


def held(view: View, victim: int) -> list[Estimate]:
    """The value, else the sum of the values of those around the victim that the coalition encloses."""
    found = played(view)
    if found is None:
        return []
    for group in dict.fromkeys(((victim,), enclosed(view, victim))):
        value = found.solved.array(found.value[list(group), :, 0].sum(0))
        if np.isfinite(value).all():
            return [Estimate(group, "value", value)]
    return []


def of_gradients(view: View, victim: int) -> list[Estimate]:
    """x - (x - v)."""
    said = (e for attack in GRADIENTS for e in attack.run(view, victim) if e.asset == "offset" and e.nodes == (victim,))
    return [Estimate((victim,), "value", e.at - e.value) for e in said if e.at is not None][:1]


def control() -> tuple[Any, int, Any]:
    """Three iterations of random columns, and all of a node's neighbours."""
    from ... import controls, graphs, problems

    problem = problems.average(np.random.default_rng(5).normal(size=(5, 2)))
    view, truth = controls.recorded("push-sum", problem, graphs.paper_b(), {1, 2, 4}, stepsize=1.0, iterations=8, K=3)
    return view, 0, truth


register(
    Attack(
        name="value-recovered",
        id="A22",
        assets=("value",),
        uses="all messages that a node sends and hears (or enough of them); the late weights, where they are public",
        idea="The method is played on unknown values and draws, as in A21: what was taken back, or only moved, cancels.\n"
        "Of a group that is enclosed, the sum. With the cost |x - v|^2 / 2 a gradient at a known point is x - v.",
        metric="relative error of the value, or of the sum of s values",
        run=run,
        control=control,
        serves=lambda header: bool(header.get("values")),
    )
)
