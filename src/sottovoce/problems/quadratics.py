"""Quadratic problems: any, the paper's estimation, least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from sottovoce.errors import ProblemError
from sottovoce.family import Quadratic
from sottovoce.problem import Problem
from sottovoce.problem_data import numbers, positive_integer
from sottovoce.problems.records import at_least_zero, share


def quadratic(H: Any, b: Any, c: Any = None) -> Problem:
    """f_i = x'H_i x / 2 - b_i'x + c_i; H (n, d, d) symmetric, b (n, d), c (n,)."""
    H, b = numbers("H", H, 3), numbers("b", b, 2)
    n, d = b.shape
    c = np.zeros(n) if c is None else numbers("c", c, 1)
    if 0 in b.shape or H.shape != (n, d, d) or c.shape != (n,):
        shapes = f"{H.shape}, {b.shape}, {c.shape}"
        raise ProblemError(f"H, b and c must be of shapes (n, d, d), (n, d), (n,); they have {shapes}")
    gap = np.abs(H - H.swapaxes(1, 2)).max(axis=(1, 2))
    if (gap > 1e-12 * np.abs(H).max(axis=(1, 2))).any():
        i = int(gap.argmax())
        raise ProblemError(f"every H_i must be symmetric; H_{i} differs from its transpose by {gap[i]:.1e}")
    return Problem.of(Quadratic(), ((H + H.swapaxes(1, 2)) / 2, b, c), d)


def estimation(
    n: int | None = None,
    d: int | None = None,
    s: int = 3,
    *,
    scale: float = 1.0,
    sigma: Any = 0.0,
    noise: float = 0.1,
    seed: int = 0,
    Q: Any = None,
    z: Any = None,
) -> Problem:
    """The paper's section 5.2: f_i = |z_i - Q_i x|^2 + sigma_i |x|^2, as printed (no 1/2, no 1/s).

    Either n and d, and then Q ~ N(0, scale^2) of shape (n, s, d) and z = Q x_true + noise N(0, 1) with x_true standard
    normal; or one's own Q (n, s, d) and z (n, s). sigma is a number or (n,).
    """
    if (Q is None) != (z is None):
        raise ProblemError("Q and z go together: give both, or n and d for drawn ones")
    if Q is None:
        shape = tuple(positive_integer(what, size) for what, size in (("n", n), ("s", s), ("d", d)))
        Q, z = measurements(shape, scale, noise, seed)
    else:
        Q, z = numbers("Q", Q, 3), numbers("z", z, 2)
        if 0 in Q.shape or z.shape != Q.shape[:2] or n not in (None, Q.shape[0]) or d not in (None, Q.shape[2]):
            came = f"{Q.shape} and {z.shape}, with n={n} and d={d}"
            raise ProblemError(f"Q and z must be of shapes (n, s, d) and (n, s); they have {came}")
    sigma = numbers("sigma", sigma)
    if sigma.shape not in ((), (len(Q),)) or (sigma < 0).any():
        raise ProblemError(f"sigma must be at least 0, a number or of shape ({len(Q)},); it is {sigma!r}")
    ridge = np.broadcast_to(sigma, (len(Q),))[:, None, None] * np.eye(Q.shape[2])
    H = 2 * (Q.swapaxes(1, 2) @ Q + ridge)
    b = 2 * (Q.swapaxes(1, 2) @ z[:, :, None])[..., 0]
    return quadratic((H + H.swapaxes(1, 2)) / 2, b, np.sum(z**2, axis=1))


def measurements(shape: tuple[int, ...], scale: float, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Q (n, s, d) and z (n, s), drawn."""
    at_least_zero("scale", scale, positive=True)
    at_least_zero("noise", noise)
    rng = np.random.default_rng(seed)
    Q = scale * rng.standard_normal(shape)
    truth = rng.standard_normal(shape[2])
    return Q, Q @ truth + noise * rng.standard_normal(shape[:2])


def least_squares(X: Any, y: Any, sites: Any, *, l2: float = 0.0, intercept: bool = False) -> Problem:
    """f_i = sum over site i's records of (x'w - y)^2 / 2, and l2 |w|^2 / 2 in the sum, shared by the sites."""
    shares = share(X, y, sites, l2, intercept)
    H = np.stack([x.T @ x + np.diag(p) for x, p in zip(shares.X, shares.penalty, strict=True)])
    b = np.stack([x.T @ t for x, t in zip(shares.X, shares.y, strict=True)])
    c = np.array([t @ t / 2 for t in shares.y])
    return Problem.of(Quadratic(), ((H + H.swapaxes(1, 2)) / 2, b, c), b.shape[1], labels=shares.labels)
