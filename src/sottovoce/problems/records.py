"""Records on their way to sites: X, y and who holds which, checked, shared out, padded to one length."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sottovoce.errors import ParameterError, ProblemError
from sottovoce.problem_data import numbers


class Shares(NamedTuple):
    """Each site's records, and the penalty (n, d) that its cost puts on w^2 / 2."""

    X: list[np.ndarray]
    y: list[np.ndarray]
    penalty: np.ndarray
    labels: tuple | None

    def padded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X (n, m, d), y (n, m) and a mask (n, m) that is 1 on true records; the rest are zero rows."""
        n, m, d = len(self.X), max(map(len, self.X)), self.X[0].shape[1]
        X, y, mask = np.zeros((n, m, d)), np.zeros((n, m)), np.zeros((n, m))
        for i, (rows, targets) in enumerate(zip(self.X, self.y, strict=True)):
            X[i, : len(rows)], y[i, : len(rows)], mask[i, : len(rows)] = rows, targets, 1
        return X, y, mask


def share(X: Any, y: Any, sites: Any, l2: float, intercept: bool) -> Shares:
    """Share the records out. The penalty is l2 |w|^2 / 2 in the sum, in equal parts, and spares the intercept."""
    X, y = numbers("X", X, 2), numbers("y", y, 1)
    if 0 in X.shape:
        raise ProblemError(f"X must hold at least one record and one column; it has the shape {X.shape}")
    if len(y) != len(X):
        raise ProblemError(f"X and y must have one row per record; X has {len(X)}, y has {len(y)}")
    at_least_zero("l2", l2)
    labels, rows = split(sites, len(X))
    penalty = np.full((len(rows), X.shape[1]), l2 / len(rows))
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
        penalty = np.column_stack([penalty, np.zeros(len(rows))])
    return Shares([X[r] for r in rows], [y[r] for r in rows], penalty, labels)


def at_least_zero(what: str, value: Any, *, positive: bool = False) -> None:
    """A ParameterError unless `value` is a finite number, at least 0 (above 0 if `positive`)."""
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and np.isfinite(value)
    if not real or value < 0 or (positive and value == 0):
        bound = "above" if positive else "at least"
        raise ParameterError(f"{what} must be a finite number, {bound} 0; it is {value!r}")


def split(sites: Any, records: int) -> tuple[tuple | None, list[np.ndarray]]:
    """(labels, record numbers of each site); an int shares equally, the first sites taking one more if it must be."""
    if isinstance(sites, (int, np.integer)):
        if not 1 <= sites <= records:
            raise ProblemError(f"the number of sites must be from 1 to {records}, the records; it is {sites}")
        return None, np.array_split(np.arange(records), int(sites))
    try:
        held: list[Any] = list(np.asarray(sites).tolist() if hasattr(sites, "__array__") else sites)
        groups: dict[Any, list[int]] = {}
        for record, label in enumerate(held):
            if label != label:
                raise ProblemError(f"sites holds {label} at row {record}; give every record a site")
            groups.setdefault(label, []).append(record)
    except TypeError:
        raise ProblemError(f"sites must be one label per record, or a number of sites; it is {sites!r}") from None
    if len(held) != records:
        raise ProblemError(f"sites must have one label per record, {records}; it has {len(held)}")
    try:
        labels = tuple(sorted(groups))
    except TypeError:  # labels of several kinds: in the order of appearance
        labels = tuple(groups)
    return labels, [np.array(groups[label]) for label in labels]
