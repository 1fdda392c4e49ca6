"""The columns of records that lie at several sites, brought to mean 0 and variance 1: two opened sums are told, and no record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import problems
from .errors import ProblemError
from .problem_data import numbers
from .problems.records import split
from .run import run
from .simulate.result import Result


@dataclass(frozen=True, repr=False)
class Standardised:
    """Records with standardised columns, and what everybody learnt on the way: the count, the means and the variances."""

    X: np.ndarray  # (records, columns), in the order given
    mean: np.ndarray  # (columns,)
    scale: np.ndarray  # (columns,), 1 where a column is constant
    count: int  # records at all sites
    sums: tuple[Result, Result]  # the two runs: of the counts and the columns, and of the squares

    def __call__(self, X: Any) -> np.ndarray:
        """The same for other records."""
        return (numbers("X", X, 2) - self.mean) / self.scale

    def __repr__(self) -> str:
        sent, sites = sum(int(r.bytes.sum()) for r in self.sums), self.sums[0].x.shape[1]
        return f"<{self.count} records of {len(self.mean)} columns standardised over {sites} sites; {sent:,} bytes sent>"


def standardise(X: Any, sites: Any, graph: Any, **options: Any) -> Standardised:
    """(X - mean) / standard deviation, column by column over all sites, which open only sums.

    X         (records, columns): the features without a column of ones
    sites     who holds which record, one label a record, or a number of sites, as in sottovoce.problems
    options   those of `sottovoce.run` and of `private-sum` (range, words, seed)

    First every site's count and the sums of its columns are added up, then, about the mean, the sums of squares. Each site
    changes its own records; here that is done for all, so that they can go to sottovoce.problems.logistic(X, y, sites).
    """
    X = numbers("X", X, 2)
    if 0 in X.shape:
        raise ProblemError(f"X must hold at least one record and one column; it has the shape {X.shape}")
    labels, rows = split(sites, len(X))
    added = lambda shares: run("private-sum", problems.total(shares, labels=labels), graph, **options)
    first = added([[len(r), *X[r].sum(0)] for r in rows])
    count, mean = int(first.answer[0]), first.answer[1:] / first.answer[0]
    second = added([((X[r] - mean) ** 2).sum(0) for r in rows])
    deviation = np.sqrt(second.answer / count)
    scale = np.where(deviation > 1e-15 * (1 + np.abs(mean)), deviation, 1.0)
    return Standardised((X - mean) / scale, mean, scale, count, (first, second))
