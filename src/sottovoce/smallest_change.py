"""The smallest change of a mask's coefficients that makes given changes of its gradients, where there are too many for an SVD.

The gradients are M c, c the coefficients; the smallest c with M c = h has the norm sqrt(h' (M M')^-1 h). M M' is summed up over
blocks of coefficients, so that M is never held whole. Its small eigenvalues are known to rounding of the largest: singular values
of M below CUT of the largest count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Array = np.ndarray
CUT = 1e-7
ALIKE = 1e-12  # of a coordinate: points as near as that are one


def norms(blocks: Iterable[Array], change: Array) -> Array:
    """For each column of `change`; `blocks` are M, column by column."""
    gram = 0.0
    for block in blocks:
        gram = gram + block @ block.T
    from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

    try:
        factor = cholesky(gram, lower=True)
        if factor.diagonal().min() > CUT * factor.diagonal().max():
            return np.linalg.norm(solve_triangular(factor, change, lower=True), axis=0)
    except LinAlgError:
        pass
    size, way = eigh(gram)
    kept = size > CUT**2 * size[-1]
    return np.linalg.norm((way[:, kept].T @ change) / np.sqrt(size[kept, None]), axis=0)


def different(points: Array) -> Array:
    """Points (points, d) without those that were there already, but for rounding."""
    scale = ALIKE * max(float(np.abs(points).max()), 1e-300)
    first = np.unique(np.round(points / scale), axis=0, return_index=True)[1]
    return points[np.sort(first)]
