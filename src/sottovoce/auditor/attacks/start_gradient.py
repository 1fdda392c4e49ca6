"""A1, the start gradient: y^0 is the gradient at x^0, and whoever knows the first stepsize or weight divides it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import heard


def run(view: View, victim: int) -> list[Estimate]:
    ears = heard(view, victim)
    if ears is None or not np.isfinite(ears.x[:1]).all():
        return []
    found = [Estimate((victim,), "start", ears.x[0])]
    if np.isfinite(ears.y[0]).all():
        found.append(Estimate((victim,), "offset", ears.y[0], ears.x[0]))
    return found


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five(K=0, iterations=3)
    return view, 0, truth


register(
    Attack(
        name="start-gradient",
        id="A1",
        assets=("offset", "start"),
        uses="one link from the victim; a public stepsize, or column weight, in iteration 0",
        idea="The tracker starts as the gradient at x^0. What is sent is a known multiple of it, and x^0 beside it.",
        metric="relative error of the gradient",
        run=run,
        control=control,
    )
)
