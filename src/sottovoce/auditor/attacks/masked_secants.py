"""A26, secants through masks: the masked curvature is read like any other, and what the coalition knows of the masks comes off.

What is left is H + (masks of honest edges), averaged over the runs at hand: exact where no honest edge is left, and over a whole
component of honest nodes always, since there the masks cancel. Alone it is the naive reading of one node: unbiased, and no better
than its mask is small.
"""

from __future__ import annotations

from typing import Any

from ...view import View
from ..attack import Attack, Estimate, register
from ..masked import masked
from .record_features import features


def run(view: View, victim: int) -> list[Estimate]:
    seen = masked(view, victim)
    if seen is None:
        return []
    mean, place = seen.H.mean(0), seen.group.index(victim)
    if len(seen.group) == 1:
        return [Estimate((victim,), "curvature", mean[place])]
    total = mean.sum(0)
    naive = Estimate((victim,), "curvature", mean[place], guess=total / len(seen.group))
    together = Estimate(seen.group, "curvature", total)
    return [naive, together, *features(view, together)]


def control() -> tuple[Any, int, Any]:
    """Both neighbours of node 0 are curious, so every mask on its cost is known."""
    from ... import controls, graphs

    ring = graphs.Graph(5, [(i, (i + s) % 5) for i in range(5) for s in (1, 4)])
    view, truth = controls.five((1, 4), "gradient-tracking", graph=ring, A="uniform", mechanisms="function-masks:scale=3")
    return view, 0, truth


register(
    Attack(
        name="masked-secants",
        id="A26",
        assets=("curvature", "record"),
        uses="what A3 uses of every honest node of a component, the masks on the coalition's own edges",
        idea="Secants give the masked curvature; known masks come off, the others cancel over a component of honest nodes.\n"
        "Fresh masks average out over runs on the same data.",
        metric="relative error of H; what it gains over an equal share of the component's sum",
        run=run,
        control=control,
    )
)
