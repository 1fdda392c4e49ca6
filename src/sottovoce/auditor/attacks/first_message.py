"""A2, AB's first message (section 4.3 of the paper): it is c times the gradient at x^1, and x^1 is sent next."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import heard


def run(view: View, victim: int) -> list[Estimate]:
    ears = heard(view, victim)
    if ears is None or len(ears.x) < 2 or not (np.isfinite(ears.w[0]).all() and np.isfinite(ears.x[1]).all()):
        return []
    return [Estimate((victim,), "offset", ears.w[0], ears.x[1])]


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five(algorithm="ab", iterations=3)
    return view, 0, truth


register(
    Attack(
        name="first-message",
        id="A2",
        assets=("offset",),
        uses="one link from the victim, its first two iterations; the public column weight in iteration 0",
        idea="With B the same as C the first pushed message is c (g^0 + g^1 - g^0) = c g^1. Divide by c; x^1 arrives next.",
        metric="relative error of the gradient",
        run=run,
        control=control,
    )
)
