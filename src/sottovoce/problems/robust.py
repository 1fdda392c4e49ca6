"""Huber regression over sites: squares for small residuals, straight lines for large ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.problem import Problem
from sottovoce.problems.losses import Loss
from sottovoce.problems.records import at_least_zero, share


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 while |r| <= delta, else delta (|r| - delta / 2), of r = x'w - y; the fifth of the data is delta (n,)."""

    name: ClassVar[str] = "huber"
    smooth: ClassVar[bool] = False

    def path(self, data: tuple) -> list[tuple]:
        """From squares alone down to delta: with few squares at the start, Newton would see no curvature."""
        *others, delta = data
        octaves = np.log2(max(np.abs(data[1]).max(), 1e-300) / delta.min())
        stages = max(0, int(np.ceil(4 * octaves)))  # four to the octave: few records change sides between two of them
        return [(*others, delta * 2.0 ** (k / 4)) for k in range(stages, -1, -1)]

    def loss(self, xp: Any, u: Any, data: tuple) -> Any:
        delta = data[4][:, None, None]
        size = xp.abs(u - data[1][:, :, None])
        near = xp.minimum(size, delta)
        return near * (size - near / 2)

    def slope(self, xp: Any, u: Any, data: tuple) -> Any:
        delta = data[4][:, None, None]
        return xp.clip(u - data[1][:, :, None], -delta, delta)

    def bend(self, xp: Any, u: Any, data: tuple) -> Any:
        delta = data[4][:, None, None]
        return xp.where(xp.abs(u - data[1][:, :, None]) <= delta, 1.0, 0.0)


def huber(X: Any, y: Any, sites: Any, *, delta: float = 1.0, l2: float = 0.0, intercept: bool = False) -> Problem:
    """f_i = the Huber loss of site i's residuals x'w - y, and l2 |w|^2 / 2 in the sum, shared by the sites."""
    at_least_zero("delta", delta, positive=True)
    shares = share(X, y, sites, l2, intercept)
    data = (*shares.padded(), shares.penalty, np.full(len(shares.X), float(delta)))
    return Problem.of(Huber(), data, shares.X[0].shape[1], labels=shares.labels)
