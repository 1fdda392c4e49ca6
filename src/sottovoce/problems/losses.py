"""A sum of losses of x'w over records, with a penalty: what logistic and Huber regression share.

Data: X (n, m, d), a target a record (n, m), a mask (n, m) that is 1 on true records, the penalty (n, d). Padding rows
are zero, so they add nothing to a gradient or a Hessian; the mask keeps them out of the value.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sottovoce.family import Family


class Loss(Family):
    """A subclass says what one record costs: `loss`, `slope` and `bend` of x'w, and the largest `bend`."""

    bound: ClassVar[float] = 1.0

    def loss(self, xp: Any, u: Any, data: tuple) -> Any:
        raise NotImplementedError

    def slope(self, xp: Any, u: Any, data: tuple) -> Any:
        raise NotImplementedError

    def bend(self, xp: Any, u: Any, data: tuple) -> Any:
        raise NotImplementedError

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        X, _, mask, penalty = data[:4]
        losses = self.loss(xp, xp.matmul(X, x), data) * mask[:, :, None]
        return xp.sum(losses, axis=1) + xp.sum(penalty[:, :, None] * x**2, axis=1) / 2

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        X, _, _, penalty = data[:4]
        slopes = self.slope(xp, xp.matmul(X, x), data)
        return xp.matmul(xp.swapaxes(X, 1, 2), slopes) + penalty[:, :, None] * x

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        X, _, _, penalty = data[:4]
        bends = xp.moveaxis(self.bend(xp, xp.matmul(X, x), data), -1, 1)[:, :, None, :]  # (n, S, 1, m)
        matrix = xp.matmul(xp.swapaxes(X, 1, 2)[:, None] * bends, X[:, None])
        ridge = penalty[:, :, None] * xp.eye(X.shape[2], dtype=x.dtype)
        return xp.moveaxis(matrix, 1, -1) + ridge[..., None]

    def smoothness(self, data: tuple) -> np.ndarray:
        X, _, _, penalty = data[:4]
        matrix = self.bound * (X.swapaxes(1, 2) @ X) + penalty[:, :, None] * np.eye(X.shape[2])
        return np.linalg.eigvalsh(matrix).max(axis=1)

    def written(self, data: tuple) -> dict[str, np.ndarray]:
        X, y, mask, penalty = (part[0] for part in data[:4])
        return {"X": X[mask > 0], "y": y[mask > 0], "penalty": penalty}
