"""Meeting at a point: rendezvous, the average, and the sum (which minimises nothing)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import ProblemError
from sottovoce.family import Family
from sottovoce.problem import Problem
from sottovoce.problem_data import numbers


@dataclass(frozen=True)
class Meeting(Family):
    """f = |x - p|^2 / 2; data (p,)."""

    name: ClassVar[str] = "rendezvous"
    quadratic: ClassVar[bool | None] = True

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        return xp.sum((x - data[0][:, :, None]) ** 2, axis=1) / 2

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        return x - data[0][:, :, None]

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        n, d, runs = x.shape
        return xp.broadcast_to(xp.eye(d, dtype=x.dtype)[None, :, :, None], (n, d, d, runs))

    def prox(self, xp: Any, data: tuple, p: Any, q: Any) -> Any:
        return (data[0][:, :, None] - p) / (1 + q)

    def smoothness(self, data: tuple) -> np.ndarray:
        return np.ones(len(data[0]))


@dataclass(frozen=True)
class Nothing(Family):
    """f = 0: the nodes only have values to add up; data (values,)."""

    name: ClassVar[str] = "total"
    minimises: ClassVar[bool] = False

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        return xp.zeros((x.shape[0], x.shape[2]), dtype=x.dtype)

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        return xp.zeros_like(x)

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        n, d, runs = x.shape
        return xp.zeros((n, d, d, runs), dtype=x.dtype)

    def prox(self, xp: Any, data: tuple, p: Any, q: Any) -> Any:
        return -p / q

    def smoothness(self, data: tuple) -> np.ndarray:
        return np.zeros(len(data[0]))


def _rows(what: str, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values (n, d), their exact sum, rounded once)."""
    rows = numbers(what, values)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or 0 in rows.shape:
        raise ProblemError(f"{what} must be of shape (n, d) or (n,), with n and d at least 1; it has {rows.shape}")
    return rows, np.array([math.fsum(column) for column in rows.T])


def rendezvous(points: Any) -> Problem:
    """f_i = |x - p_i|^2 / 2: all meet at the mean of the points, (n, d) or (n,)."""
    rows, whole = _rows("points", points)
    return Problem.of(Meeting(), (rows,), rows.shape[1], values=rows, optimum=whole / len(rows))


def average(values: Any) -> Problem:
    """The mean of the nodes' values, (n, d) or (n,): the cost |x - v_i|^2 / 2 and the value v_i."""
    return rendezvous(values)


def total(values: Any, labels: Any = None) -> Problem:
    """The sum of the nodes' values, (n, d) or (n,): nothing to minimise, and `optimum` is the exact sum."""
    rows, whole = _rows("values", values)
    return Problem.of(Nothing(), (rows,), rows.shape[1], values=rows, optimum=whole, labels=labels)
