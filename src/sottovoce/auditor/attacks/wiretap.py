"""A7, the wire-tap: with all links tapped every node is enclosed."""

from __future__ import annotations

from typing import Any

from ...view import View
from ..attack import Attack, Estimate, register
from . import mass_balance


def run(view: View, victim: int) -> list[Estimate]:
    return mass_balance.estimates(view, (victim,), victim) if view.wiretap else []


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five("wire", K=1)
    return view, 2, truth


register(
    Attack(
        name="wire-tap",
        id="A7",
        assets=("offset", "along-the-way", "curvature"),
        uses="all links, in the clear; the late stepsize",
        idea="The mass balance of A6 for each node alone: all that enters and leaves it is seen.",
        metric="relative error of the gradient",
        run=run,
        control=control,
    )
)
