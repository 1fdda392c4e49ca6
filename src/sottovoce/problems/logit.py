"""Logistic regression over sites that keep their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import ParameterError, ProblemError
from sottovoce.problem import Problem
from sottovoce.problem_data import numbers
from sottovoce.problems.losses import Loss
from sottovoce.problems.records import share


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-t x'w)) with t = -1 or 1, by exp(-|t x'w|), which never overflows."""

    name: ClassVar[str] = "logistic"
    bound: ClassVar[float] = 0.25

    def loss(self, xp: Any, u: Any, data: tuple) -> Any:
        u = u * data[1][:, :, None]
        return xp.log1p(xp.exp(-xp.abs(u))) + xp.maximum(-u, 0.0)

    def slope(self, xp: Any, u: Any, data: tuple) -> Any:
        sign = data[1][:, :, None]
        e = xp.exp(-xp.abs(u))
        return -sign * xp.where(sign * u >= 0, e, 1.0) / (1.0 + e)

    def bend(self, xp: Any, u: Any, data: tuple) -> Any:
        e = xp.exp(-xp.abs(u))
        return e / (1.0 + e) ** 2


def logistic(X: Any, y: Any, sites: Any, *, l2: float = 1.0, intercept: bool = False, **unknown: Any) -> Problem:
    """f_i = the log-loss of site i's records, and l2 |w|^2 / 2 in the sum (l2 = 1 is scikit-learn's C = 1).

    y holds any two labels; the smaller one counts as -1. The intercept is the last coordinate, and is not penalised.
    """
    if unknown:
        hint = "; scikit-learn's C is l2 = 1/C here" if "C" in unknown else ""
        raise ParameterError(f"logistic takes l2 and intercept, and has no {next(iter(unknown))!r}{hint}")
    shares = share(X, _signs(y), sites, l2, intercept)
    return Problem.of(Logistic(), (*shares.padded(), shares.penalty), shares.X[0].shape[1], labels=shares.labels)


def _signs(y: Any) -> np.ndarray:
    held = np.asarray(y)
    if held.ndim != 1:
        raise ProblemError(f"y must be one label per record; it has the shape {held.shape}")
    if held.dtype.kind in "fiu":
        numbers("y", held, 1)
    try:
        kinds = sorted(set(held.tolist()))
    except TypeError:
        raise ProblemError("the labels in y must be of one kind, so that they can be sorted") from None
    if len(kinds) != 2:
        raise ProblemError(f"y must hold exactly two different labels; it holds {len(kinds)}: {kinds[:5]}")
    return np.where(held == kinds[1], 1.0, -1.0)
