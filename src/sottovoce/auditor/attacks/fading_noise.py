"""A23, noise that fades: when all that a node ever added to what it mixes sums to nothing in the end, the sum is its value.

    x+ = W (x + w),   sum of all w -> 0       said^0 + sum over k >= 1 of (said^k - (W said^{k-1})_i) = value + (what is left of w)

said^k is x^k + w^k, which goes to all neighbours alike. Mo and Murray's noise is left with phi^k n^k after k iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import coordinates, payload, seen, weight

Array = np.ndarray


def run(view: View, victim: int) -> list[Estimate]:
    if not serves(view.header) or not view.sent or victim in view.coalition or not 0 <= victim < view.graph.n:
        return []
    added = said(view, victim)
    for k, came in enumerate(mixed(view, victim)[:-1]):
        added[k + 1] -= came
    total = added.sum(0)
    return [Estimate((victim,), "value", total)] if np.isfinite(total).all() else []


def serves(header: Any) -> bool:
    """Methods that mix what they say with one public W, and hold values."""
    return bool(header.get("values")) and header["algorithm"] == "mo-murray"


def said(view: View, node: int) -> Array:
    """(iterations, d): what it says to all neighbours, where one of them is heard."""
    heard = [payload(view, view.edge(node, r), 0) for r in view.graph.out_neighbours(node) if seen(view, node, r)]
    full = [m for m in heard if m.shape[1] == coordinates(view)]
    return full[0].copy() if full else np.full((view.iterations, coordinates(view)), np.nan)


def mixed(view: View, node: int) -> Array:
    """(iterations, d): what W makes of it and its in-neighbours' messages."""
    return np.sum([weight(view, "W", node, j) * said(view, j) for j in (node, *view.graph.in_neighbours(node))], axis=0)


def control() -> tuple[Any, int, Any]:
    from ... import controls, problems

    problem = problems.average(np.random.default_rng(5).normal(size=(5, 2)))
    view, truth = controls.recorded("mo-murray", problem, controls.CYCLE, {1, 4}, stepsize=1.0, iterations=60, phi=0.5)
    return view, 0, truth


register(
    Attack(
        name="fading-noise",
        id="A23",
        assets=("value",),
        uses="a node's messages and those of all its in-neighbours, from the first iteration to a late one; public weights",
        idea="What a node adds in each iteration is what it says less what it heard, mixed. The noise in all that sums to\n"
        "nothing in the end, so the sum is the value, up to what is left of the noise.",
        metric="relative error of the value; it falls as the noise does",
        run=run,
        control=control,
        serves=serves,
    )
)
