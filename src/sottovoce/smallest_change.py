"""The smallest change of a mask's coefficients that makes given changes of its gradients, where there are too many for an SVD.

The gradients are M c, c the coefficients; the smallest c with M c = h has the norm sqrt(h' (M M')^-1 h). M M' is summed up over
blocks of coefficients, so that M is never held whole. Its entries are known to rounding of the largest, so small singular values of
M are not; where there are such, M' is brought to a triangle instead, block by block, at four times the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Array = np.ndarray
ENOUGH = 1e-6  # the smallest pivot in units of the largest from which on M M' will do
CUT = 1e-13  # singular values below this share of the largest are rounding
POINTS = 48  # of a path that count
ALIKE = 1e-9  # in units of the largest coordinate: points as near as that are one


def norms(blocks: Callable[[], Iterable[Array]], change: Array) -> Array:
    """For each column of `change`; `blocks()` are M, some columns at a time."""
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    try:
        factor = cholesky(sum(block @ block.T for block in blocks()), lower=True)
        if factor.diagonal().min() > ENOUGH * factor.diagonal().max():
            return np.linalg.norm(solve_triangular(factor, change, lower=True), axis=0)
    except LinAlgError:
        pass
    return by_svd(_triangle(blocks()).T, change)


def by_svd(M: Array, change: Array) -> Array:
    """The same for an M that may be held whole."""
    left, size, _ = np.linalg.svd(M, full_matrices=False)
    kept = size > CUT * size[0]
    return np.linalg.norm((left[:, kept].T @ change) / size[kept, None], axis=0)


def _triangle(blocks: Iterable[Array]) -> Array:
    """R with R'R = M M'."""
    R: Array | None = None
    for block in blocks:
        R = np.asarray(np.linalg.qr(block.T if R is None else np.vstack([R, block.T]), mode="r"))
    assert R is not None
    return R


def different(points: Array) -> Array:
    """Points (points, d) without those that were there already, but for rounding."""
    scale = ALIKE * max(float(np.abs(points).max()), 1e-300)
    first = np.unique(np.round(points / scale), axis=0, return_index=True)[1]
    return points[np.sort(first)]


def thinned(count: int, most: int = POINTS) -> Array:
    """Which of so many points of a path count: the first half of `most` one by one, late ones ever fewer."""
    if count <= most:
        return np.arange(count)
    late = np.geomspace(most // 2, count - 1, most - most // 2).astype(int)
    return np.unique(np.append(np.arange(most // 2), late))
