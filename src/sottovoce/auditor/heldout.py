"""What an attack says, held against messages that it was not shown: the only score where nobody knows the truth.

An attack gets the first part of a view. A curvature H is then right if the later increments of the gradient, read off the later
messages, are H times the later increments of x. Other assets are not predicted by anything that comes later.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..view import View
from .attack import Estimate
from .reading import coordinates, heard

Array = np.ndarray
SHARE = 4  # the attack is shown one part in so many of the late iterations, and judged on the next


def parted(view: View) -> tuple[View, View] | None:
    """What the attack is shown, and a view twice as long; None where there is too little."""
    late = max(2 * coordinates(view) + 2, (view.iterations - view.settled) // SHARE)
    cut = view.settled + late
    return (_first(view, cut), _first(view, cut + late)) if cut + late <= view.iterations else None


def _first(view: View, cut: int) -> View:
    """The first iterations of a view."""
    early = lambda kept: {key: value for key, value in kept.items() if key[0] < cut}
    return replace(
        view, sent=early(view.sent), wire=early(view.wire), states={k: v for k, v in view.states.items() if k < cut},
        draws={key: d for key, d in view.draws.items() if key[1] < cut},
    )  # fmt: skip


def error_ahead(estimate: Estimate, shown: View, longer: View) -> float:
    """The median relative error of the increments to come; infinite where nothing that comes speaks of it."""
    shape = {"curvature": 2, "record": 1}.get(estimate.asset)
    if len(estimate.nodes) != 1 or estimate.value.ndim != shape:
        return float("inf")
    H = np.outer(estimate.value, estimate.value) if estimate.asset == "record" else estimate.value
    early, whole = (heard(view, estimate.nodes[0]) for view in (shown, longer))
    if early is None or whole is None:
        return float("inf")
    seen = len(early.increments()[0])
    dx, dg, _ = (part[seen:] for part in whole.increments())
    foretold = dx @ H
    if not len(dx) or not np.isfinite(foretold).all():
        return float("inf")
    if estimate.up_to == "scale":
        foretold = foretold * (np.vdot(foretold, dg) / max(np.vdot(foretold, foretold), 1e-300))
    return float(np.median(np.linalg.norm(dg - foretold, axis=1) / np.maximum(np.linalg.norm(dg, axis=1), 1e-300)))
