"""A28, fitted records: a logistic cost of few records is read whole, records and all, from its gradients along the way.

From a node whose gradients are heard; or from sums over the honest that a method opens, then the records of all of them in one lot.
Where the start is hidden only increments of the gradient are heard, which leave each record's label open and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...smallest_change import thinned
from ...view import View
from ..attack import Attack, Estimate, register
from ..masked import declared
from ..opened import grid_of, opened
from ..reading import Heard, heard
from ..records import ROUNDING, Noise, Part, fits, likely, penalty, record_size, search
from .tail_secants import along

Array = np.ndarray


def run(view: View, victim: int) -> list[Estimate]:
    """The records of the victim, or of the group around it."""
    public, size = penalty(view), record_size(view)
    told = None if public is None else _opened(view, victim, public) or _heard(view, victim, public)
    if told is None:
        return []
    nodes, part, noise = told
    memo: dict[Any, Any] = view.__dict__.setdefault("_fitted_records", {})
    if nodes not in memo:
        memo[nodes] = search([part], noise, size, likely(part, size))
    found = memo[nodes]
    if found is None:
        return []
    return [Estimate(nodes, "record", found.V[0], up_to=None if part.anchored else "label", within=found.width)]


def _opened(view: View, victim: int, public: Array) -> tuple[tuple[int, ...], Part, Noise] | None:
    """Sums over the honest, at common points."""
    found = [o for o in opened(view, victim) if o.at is not None]
    if not found:
        return None
    found = [found[i] for i in thinned(len(found))]
    nodes, d, x = found[0].nodes, len(public), np.array([o.at for o in found])
    sums, bends = np.array([o.sums for o in found]), [o.hessian(d) for o in found]
    H = None if bends[0] is None else np.array(bends) - len(nodes) * np.diag(public)
    part = Part(x, sums[:, -d:] - len(nodes) * public * x, H)
    spread = ROUNDING * np.abs(sums).max() + grid_of(view).step * view.graph.n
    return nodes, part, Noise(np.full(len(part.numbers), spread))


def _heard(view: View, victim: int, public: Array) -> tuple[tuple[int, ...], Part, Noise] | None:
    """One node's gradients, where they are its own: absolute where the start is heard, else from the first increment on."""
    ears = heard(view, victim)
    if ears is None or declared(view) is not None or (part := _path(ears)) is None:
        return None
    at = thinned(len(part.x))
    part = part._replace(x=part.x[at], g=part.g[at] - public * part.x[at])
    spread = ROUNDING * max(ears.increments()[2].max(initial=0.0), np.abs(part.g).max())
    return (victim,), part, Noise(np.full(len(part.numbers), len(at) * spread))


def _path(ears: Heard) -> Part | None:
    way = along(ears)
    if way is not None and len(way[0]) > 1:
        return Part(way[1], way[0])
    there = np.isfinite(ears.x[:-1]).all(1) & np.isfinite(ears.x[1:]).all(1) & np.isfinite(ears.dg[:-1]).all(1)
    first = int(np.argmax(there))
    last = first + int(np.argmin(np.append(there, False)[first:]))
    if last == first:
        return None
    g = np.concatenate([np.zeros((1, ears.x.shape[1])), np.cumsum(ears.dg[first:last], axis=0)])
    return Part(ears.x[first : last + 1], g, anchored=False)


def control() -> tuple[Any, int, Any]:
    """Two records a node: all but nodes 0 and 4 pool what they know, and read the records of both, but not whose they are."""
    from ... import controls, graphs

    problem = controls.few_records(2)
    view, truth = controls.recorded("private-newton", problem, graphs.paper_b(), {1, 2, 3}, iterations=6, stepsize=1.0)
    return view, 0, truth


register(
    Attack(
        name="fitted-records",
        id="A28",
        assets=("record",),
        uses="gradients along the way (or their increments) of one node, or opened sums of them; the public penalty",
        idea="A logistic cost of few records has few unknown numbers, and a path tells many. Levenberg-Marquardt fits them all;\n"
        "the fit counts where it explains everything to rounding and nothing stays open.",
        metric="relative error of the record that is furthest off, in any order; of a group, whose they are stays open",
        run=run,
        control=control,
        serves=fits,
    )
)
