"""What an attack says, held against messages that it was not shown: the only score where nobody knows the truth.

An attack gets the first part of a view. What later messages say of a node's gradient is then read off them: in gradient tracking
and push-sum by dividing and subtracting (reading.py), in any method by playing its public steps on what was seen (replay.py).
Right is

    a curvature H         if the later increments of the gradient are H times the later increments of x
    records               if the increments of a logistic cost of these records are the later ones
    a gradient at a point if it lies on the affine function through the later gradients and their points

Of other assets nothing that comes later speaks. Where a mechanism puts another gradient into the messages (masks on costs), the
first way reads that other one, so only the second counts: it knows the mechanism, and says nothing while a mask is not known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..registry import mechanisms
from ..view import View
from .attack import Estimate
from .reading import coordinates, heard, push_sum, tracking
from .records import expit, penalty
from .replay import STEPS, Played, played, reach

Array = np.ndarray
SHARE = 4  # the attack is shown one part in so many of the late iterations, and judged on the next
LAGS = (1, 2)  # PDMM's duals come back in the iteration after next
CLEAR = 1e-8  # how far from one line later points must lie, to say what a gradient is elsewhere


def parted(view: View) -> tuple[View, View] | None:
    """What the attack is shown, and a view twice as long; None where there is too little. Attacks on methods other than tracking
    and push-sum replay the first iterations only, so these are parted."""
    long = (view.iterations - view.settled) // SHARE if tracking(view) or push_sum(view) else STEPS
    late = max(2 * coordinates(view) + 2, long)
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
    """The median relative error against what is to come; infinite where nothing that comes speaks of it."""
    if len(estimate.nodes) != 1 or not np.isfinite(estimate.value).all():
        return float("inf")
    if (estimate.asset, estimate.value.ndim) in (("curvature", 2), ("record", 1)):
        return _of_curvature(estimate, shown, longer)
    if estimate.asset == "record" and estimate.up_to in (None, "label"):
        return _of_records(estimate, shown, longer)
    if estimate.asset in ("offset", "along-the-way"):
        return _of_gradients(estimate, shown, longer)
    return float("inf")


def _of_curvature(estimate: Estimate, shown: View, longer: View) -> float:
    H = np.outer(estimate.value, estimate.value) if estimate.asset == "record" else estimate.value
    dx, dg = _increments(estimate.nodes[0], shown, longer)
    foretold = dx @ H
    if estimate.up_to == "scale":
        foretold = foretold * (np.vdot(foretold, dg) / max(np.vdot(foretold, foretold), 1e-300))
    return _apart(foretold, dg)


def _of_records(estimate: Estimate, shown: View, longer: View) -> float:
    """Whether all of a node's records explain its later increments; a label plays no part in these."""
    whole, public = heard(longer, estimate.nodes[0]), penalty(longer)
    if whole is None or public is None or _disguised(longer):
        return float("inf")
    x, dg = whole.x[shown.iterations :], whole.dg[shown.iterations : -1]
    there = np.isfinite(x[:-1]).all(1) & np.isfinite(x[1:]).all(1) & np.isfinite(dg).all(1)
    foretold = np.diff(public * x - expit(-(x @ estimate.value.T)) @ estimate.value, axis=0)
    return _apart(foretold[there], dg[there])


def _of_gradients(estimate: Estimate, shown: View, longer: View) -> float:
    """Whether the later gradients lead back to those that are claimed."""
    x, g = _gradients(estimate.nodes[0], shown, longer)
    at = np.asarray(estimate.at, dtype=float).reshape(-1, coordinates(longer))
    if len(x) <= x.shape[1]:  # one more than an affine function needs, to notice one that is not
        return float("inf")
    middle, mean = x.mean(0), g.mean(0)
    H, _, _, s = np.linalg.lstsq(x - middle, g - mean, rcond=None)
    return _apart(np.reshape(estimate.value, at.shape), mean + (at - middle) @ H) if s[-1] > CLEAR * s[0] else float("inf")


def _apart(said: Array, read: Array) -> float:
    if not len(read):
        return float("inf")
    return float(np.median(np.linalg.norm(read - said, axis=1) / np.maximum(np.linalg.norm(read, axis=1), 1e-300)))


# what comes later ------------------------------------------------------------------------------------------------------


def _increments(node: int, shown: View, longer: View) -> tuple[Array, Array]:
    """The later increments of x and of the gradient, (m, d) each."""
    early, whole = (None, None) if _disguised(longer) else (heard(view, node) for view in (shown, longer))
    if early is not None and whole is not None:
        dx, dg, _ = (part[len(early.increments()[0]) :] for part in whole.increments())
        if len(dx):
            return dx, dg
    found, first = _replayed(shown, longer)
    asked = [] if found is None else found.gradients[first:]
    for lag in LAGS:
        dx, dg = (_fixed(found, node, [b[i] - a[i] for a, b in zip(asked, asked[lag:], strict=False)]) for i in (0, 1))
        there = np.isfinite(np.column_stack([dx, dg])).all(1)
        if there.any():
            return dx[there], dg[there]
    none = np.empty((0, coordinates(longer)))
    return none, none


def _gradients(node: int, shown: View, longer: View) -> tuple[Array, Array]:
    """The later points and the gradients there, (m, d) each."""
    found, first = _replayed(shown, longer)
    asked = [] if found is None else found.gradients[first:]
    x, g = (_fixed(found, node, [a[i] for a in asked]) if asked else np.empty((0, coordinates(longer))) for i in (0, 1))
    there = np.isfinite(np.column_stack([x, g])).all(1)
    return x[there], g[there]


def _replayed(shown: View, longer: View) -> tuple[Played | None, int]:
    """The longer view replayed to its end, and the first gradient in it that the shorter one does not have."""
    if longer.iterations > reach(longer):
        return None, 0
    early, whole = (played(view, view.iterations) for view in (shown, longer))
    return (None, 0) if early is None or whole is None else (whole, len(early.gradients))


def _fixed(found: Any, node: int, forms: list[Array]) -> Array:
    """The numbers of a node behind some forms, NaN where they are open: (m, d)."""
    return np.array([found.solved.array(form[node, :, 0]) for form in forms])


def _disguised(view: View) -> bool:
    """Whether a mechanism puts another gradient than the node's own into what is sent."""
    known, named = mechanisms(), (text.partition("(")[0] for text in view.header["mechanisms"])
    return any("gradient" in known[name].overrides for name in named if name in known)
