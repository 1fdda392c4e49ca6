"""A20, reused weights: secret late weights that stay the same are unknowns of one linear fit, a few for all iterations.

    M_l = c_l y_l + b_l (H dx)_l    at every iteration, c_l and b_l secret but constant

Least squares on y_l and dx gives each row of diag(b) H; that H is symmetric leaves one factor for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import heard

Array = np.ndarray
STEPS = 60
FITS = 1e-7  # how far a message may be from the fit, in units of its size: constant weights fit to rounding, fresh ones do not
CLEAR = 0.1  # how much the smallest singular value must stand apart from the next


def rows_of(M: Array, y: Array, dx: Array) -> Array | None:
    """diag(b) H, a row a coordinate; None where no constant weights explain the messages."""
    steps, d = M.shape
    if steps < d + 2:
        return None
    loud = np.abs(M).max(1, keepdims=True)  # late messages are as telling as early ones
    found = np.empty((d, d))
    for i in range(d):
        A = np.column_stack([y[:, i], dx]) / loud
        solution = np.linalg.lstsq(A, M[:, i] / loud[:, 0], rcond=None)[0]
        if np.abs(A @ solution - M[:, i] / loud[:, 0]).max() > FITS:
            return None
        found[i] = solution[1:]
    return found


def symmetric(S: Array) -> Array | None:
    """The symmetric H of which the rows of S are multiples, up to scale; None where it is not unique, or where there is none."""
    d = len(S)
    upper = np.triu_indices(d, 1)
    A = np.zeros((len(upper[0]), d))
    for row, (i, j) in enumerate(zip(*upper, strict=True)):
        A[row, i], A[row, j] = S[i, j], -S[j, i]  # a_i S_ij = a_j S_ji, a the inverse of b
    *_, vt = np.linalg.svd(A, full_matrices=True)
    sizes = np.linalg.norm(A @ vt.T, axis=0)
    if d < 2 or not sizes[-1] < CLEAR * sizes[-2]:
        return None
    H = vt[-1][:, None] * S
    return (H + H.T) / 2 * (np.sign(np.trace(H)) or 1.0)


def run(view: View, victim: int) -> list[Estimate]:
    """The victim's curvature up to scale, from the first link that tells."""
    ears = heard(view, victim)
    if ears is None:
        return []
    y = np.where(np.isfinite(ears.u), ears.u, ears.y)[:-1]
    late, dx = np.arange(len(y)) >= view.settled, np.diff(ears.x, axis=0)
    for M in ears.M.values():
        there = np.isfinite(np.column_stack([M[:-1], y, dx])).all(1) & late
        lively = there & (np.abs(M[:-1]).max(1) > 0) & (np.abs(dx).max(1) > 0)
        S = rows_of(*(v[lively][:STEPS] for v in (M[:-1], y, dx)))
        H = None if S is None else symmetric(S)
        if H is not None:
            return [Estimate((victim,), "curvature", H, up_to="scale")]
    return []


def control() -> tuple[Any, int, Any]:
    from ...controls import five, late_weights_secret

    view, truth = five(d=2, K=1, late="fixed")
    return late_weights_secret(view), 0, truth


register(
    Attack(
        name="reused-weights",
        id="A20",
        assets=("curvature",),
        uses="one link from the victim, two coordinates or more; late weights that are secret but the same in every iteration",
        idea="M = c y + b H dx with c and b constant: least squares on y and dx gives each row of H times its b.\n"
        "H is symmetric, which leaves one factor.",
        metric="angle between H and the estimate, as the distance of the two at length one",
        run=run,
        control=control,
    )
)
