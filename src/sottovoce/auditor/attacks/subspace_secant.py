"""A5, the subspace secant: late weights that are secret but scalar leave the direction of the curvature open."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import heard

Array = np.ndarray
STEPS = 60
CLEAR = 0.1  # how much the smallest singular value must stand apart from the next


def direction(M: Array, y: Array, dx: Array) -> Array | None:
    """The symmetric H, up to scale, with H dx in the plane of M and y at every step; None where there is no such one."""
    d = M.shape[1]
    upper = np.triu_indices(d)
    rows = [_equations(np.column_stack([m, v]), x, upper) for m, v, x in zip(M, y, dx, strict=True)]
    A = np.concatenate(rows) if rows else np.empty((0, len(upper[0])))
    if len(A) < len(upper[0]) - 1:
        return None
    *_, vt = np.linalg.svd(np.linalg.qr(A, mode="r"))  # its singular vectors, at the price of the unknowns
    s = np.linalg.norm(A @ vt.T, axis=0)
    if not s[-1] < CLEAR * s[-2]:
        return None
    H = np.zeros((d, d))
    H[upper] = vt[-1]
    H = H + np.triu(H, 1).T
    return H * (np.sign(np.trace(H)) or 1.0)


def _equations(plane: Array, dx: Array, upper: tuple[Array, Array]) -> Array:
    """N'H dx = 0 for N the complement of the plane, as rows on the upper triangle of H."""
    normal = np.linalg.svd(plane / np.linalg.norm(plane, axis=0))[0][:, 2:]
    dx = dx / np.linalg.norm(dx)
    full = normal.T[:, :, None] * dx
    i, j = upper
    return full[:, i, j] + np.where(i == j, 0.0, full[:, j, i])


def run(view: View, victim: int) -> list[Estimate]:
    ears = heard(view, victim)
    if ears is None or ears.x.shape[1] < 3:
        return []
    parts: list[tuple[Array, ...]] = []
    y = np.where(np.isfinite(ears.u), ears.u, ears.y)[:-1]
    late, dx = np.arange(len(y)) >= view.settled, np.diff(ears.x, axis=0)
    for M in ears.M.values():
        there = np.isfinite(np.column_stack([M[:-1], y, dx])).all(1) & late
        lively = there & (np.abs(dx).max(1) > 0) & (np.abs(y).max(1) > 0) & (np.abs(M[:-1]).max(1) > 0)
        parts.append(tuple(v[lively][:STEPS] for v in (M[:-1], y, dx)))
    H = direction(*(np.concatenate(v) for v in zip(*parts, strict=True)))
    return [] if H is None else [Estimate((victim,), "curvature", H, up_to="scale")]


def control() -> tuple[Any, int, Any]:
    from ...controls import five, late_weights_secret

    view, truth = five(d=3, K=1)
    return late_weights_secret(view), 0, truth


register(
    Attack(
        name="subspace-secant",
        id="A5",
        assets=("curvature",),
        uses="one link from the victim, three coordinates or more; no weight, only that each is one number for all coordinates",
        idea="M = c y + b H dx with unknown numbers c and b, so H dx lies in the plane of M and y at every step:\n"
        "linear equations in H. Their one solution is H up to scale.",
        metric="angle between H and the estimate, as the distance of the two at length one",
        run=run,
        control=control,
    )
)
