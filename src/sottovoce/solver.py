"""The point to compare with: the minimiser of the sum of all costs, to rounding."""

from __future__ import annotations

import numpy as np

from sottovoce.errors import ProblemError
from sottovoce.family import Family, Quadratic


class Total:
    """The sum of all costs as a function of one point (d,)."""

    def __init__(self, family: Family, data: tuple, n: int, d: int):
        self.family, self.data, self.n, self.d = family, data, n, d

    def _at(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x[None, :, None], (self.n, self.d, 1)).copy()

    def value(self, x: np.ndarray) -> float:
        return float(np.sum(self.family.value(np, self.data, self._at(x))))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.family.gradient(np, self.data, self._at(x))[..., 0].sum(axis=0)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        matrix = self.family.hessian(np, self.data, self._at(x))[..., 0].sum(axis=0)
        return (matrix + matrix.T) / 2

    def rests(self, x: np.ndarray) -> bool:
        """Is the gradient no more than rounding leaves of the terms that cancel in it?"""
        slopes = np.abs(self.family.gradient(np, self.data, self._at(x))[..., 0])
        matrices = np.abs(self.family.hessian(np, self.data, self._at(x))[..., 0])
        rounding = 100 * np.finfo(float).eps * (slopes + matrices @ np.abs(x)).sum(axis=0)
        return bool(np.all(np.abs(self.gradient(x)) <= rounding))


def optimum(family: Family, data: tuple, n: int, d: int) -> np.ndarray:
    """The one minimiser of the sum; a ProblemError where there is none, or none is found."""
    if isinstance(family, Quadratic):
        return _quadratic(*data[:2])
    total = Total(family, data, n, d)
    with np.errstate(all="ignore"):  # points far out are tried, and judged by what they give
        x = np.zeros(d)
        if not np.isfinite(total.gradient(x)).all():
            raise ProblemError("the optimum cannot be computed: the gradient of the sum is not finite at the origin")
        path = [Total(family, stage, n, d) for stage in family.path(data)]
        for stage in path[:-1]:
            x, _ = _newton(stage, x)
        x, found = _newton(total, x if family.exact else _root(total, x))
        if not found and family.has_value:
            x, found = _newton(total, _descend(total, x, path[0].hessian(x)))
        if not (found or total.rests(x)):
            slope = np.abs(total.gradient(x)).max()
            raise ProblemError(
                f"no minimiser of the sum was found: the gradient is still {slope:.1e} at a point of size "
                f"{np.abs(x).max():.1e}; if the costs have no minimiser, or many, add a penalty such as l2"
            )
        _definite(total.hessian(x), 1e-13 if family.exact else 1e-8)
    return x


def _definite(matrix: np.ndarray, floor: float) -> None:
    if not np.isfinite(matrix).all():
        raise ProblemError("the sum of the costs has no minimiser: its Hessian is not finite")
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # so that the units of the coordinates do not matter
    eigenvalues = np.linalg.eigvalsh(matrix / np.outer(scale, scale))
    if not (diagonal.min() > 0 and eigenvalues[0] > floor):
        raise ProblemError(
            "the sum of the costs has no unique minimiser: the eigenvalues of its Hessian, scaled to a diagonal of "
            f"ones, go from {eigenvalues[0]:.1e} to {eigenvalues[-1]:.1e}; more data, or a penalty such as l2, helps"
        )


def _quadratic(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One solve, refined twice with residuals in longer precision."""
    wide, right = H.astype(np.longdouble).sum(axis=0), b.astype(np.longdouble).sum(axis=0)
    matrix = wide.astype(np.float64)
    _definite(matrix, 1e-13)
    x = np.linalg.solve(matrix, right.astype(np.float64))
    for _ in range(2):
        x = x + np.linalg.solve(matrix, (right - wide @ x).astype(np.float64))
    return x


def _newton(total: Total, x: np.ndarray, iterations: int = 100) -> tuple[np.ndarray, bool]:
    """Damped Newton on the gradient: (point, settled?). The step is halved until the gradient shrinks."""
    reach = 0.0
    for _ in range(iterations):
        slope, matrix = total.gradient(x), total.hessian(x)
        if not (np.isfinite(matrix).all() and np.isfinite(slope).all()):
            return x, False
        scale, factor = _factor(matrix)
        if factor is None:
            return x, False
        step = np.linalg.solve(factor.T, np.linalg.solve(factor, slope / scale)) / scale
        size = np.abs(step).max()
        reach = max(reach, np.abs(x).max(), size)
        for length in 0.5 ** np.arange(25):
            if np.linalg.norm(total.gradient(x - length * step)) < np.linalg.norm(slope):
                break
        else:  # settled if it is rounding that keeps the gradient from shrinking
            return x, bool(size <= max(1e-10 * reach, 1e-13)) or total.rests(x)
        x = x - length * step
    return x, total.rests(x)


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(scale, L) with matrix = scale L L' scale, L None where the matrix is not positive definite beyond rounding."""
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # so that the units of the coordinates do not matter
    try:
        factor = np.linalg.cholesky(matrix / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return scale, None
    return scale, factor if np.diag(factor).min() ** 2 > 1e-14 else None


def _descend(total: Total, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """A slow and sure way near the minimum, in coordinates in which `shape` is round: for costs flat elsewhere."""
    from scipy.optimize import minimize

    scale, factor = _factor(shape)
    turn = np.diag(1 / scale) if factor is None else np.linalg.inv(factor).T / scale[:, None]

    def both(u: np.ndarray) -> tuple[float, np.ndarray]:
        return total.value(x + turn @ u), turn.T @ total.gradient(x + turn @ u)

    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 0.0, "gtol": 1e-11}
    found = minimize(both, np.zeros(total.d), jac=True, method="L-BFGS-B", options=options)
    return x + turn @ found.x


def _root(total: Total, x: np.ndarray) -> np.ndarray:
    from scipy.optimize import root

    return root(total.gradient, x, method="hybr", tol=1e-12).x
