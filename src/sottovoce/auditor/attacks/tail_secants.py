"""A3, tail secants: with public late weights an out-neighbour computes every increment of a gradient, hence the curvature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import Heard, heard

Array = np.ndarray
WINDOW, STRIDE = 60, 20  # increments that are fitted together: later ones drown in rounding


def curvature(dx: Array, dg: Array, size: Array) -> Array | None:
    """The symmetric H with dg = H dx, rows weighed by 1/size; of several windows the one that fits best. None: not determined."""
    best, least = None, np.inf
    starts = range(0, max(len(dx) - dx.shape[1], 0) + 1, STRIDE)
    for rows in (slice(first, first + WINDOW) for first in starts):
        weights = 1 / np.maximum(size[rows, None], 1e-300)
        fitted = _fit(dx[rows] * weights, dg[rows] * weights)
        if fitted is not None and fitted[1] < least:
            best, least = fitted
    return best


def _fit(dx: Array, dg: Array) -> tuple[Array, float] | None:
    """H, and a guess of its relative error: the misfit times the condition number. A linear gradient needs no late window."""
    if len(dx) < dx.shape[1]:
        return None
    H, _, rank, s = np.linalg.lstsq(dx, dg, rcond=1e-12)
    if rank < dx.shape[1] or not np.isfinite(H).all():
        return None
    misfit = np.linalg.norm(dg - dx @ H) / max(np.linalg.norm(dg), 1e-300)
    return (H + H.T) / 2, float((misfit + 1e-16) * s[0] / s[-1])


def along(ears: Heard) -> tuple[Array, Array] | None:
    """Gradients and points, where the start gradient is known too: it plus the increments."""
    if not np.isfinite(ears.y[:1]).all() or not np.isfinite(ears.dg[:1]).all():
        return None
    g = ears.y[0] + np.concatenate([np.zeros((1, ears.dg.shape[1])), np.cumsum(ears.dg[:-1], axis=0)])
    there = np.isfinite(g).all(1) & np.isfinite(ears.x).all(1)
    return g[there], ears.x[there]


def run(view: View, victim: int) -> list[Estimate]:
    ears = heard(view, victim)
    if ears is None:
        return []
    found, way = [], along(ears)
    H = curvature(*ears.increments())
    if H is not None:
        found.append(Estimate((victim,), "curvature", H))
    if way is not None and len(way[0]) > 1:
        found.append(Estimate((victim,), "along-the-way", *way))
    return found


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five(K=3)
    return view, 0, truth


register(
    Attack(
        name="tail-secants",
        id="A3",
        assets=("curvature", "along-the-way"),
        uses="one link from the victim; public late stepsize, C and B",
        idea="y = u / stepsize, so dg = (M - C y) / B at known points. Least squares of dg = H dx over some sixty late steps;\n"
        "where the start gradient is known too, all gradients along the way.",
        metric="relative error of H (of the gradients)",
        run=run,
        control=control,
    )
)
