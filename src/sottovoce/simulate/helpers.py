"""Helpers: nodes without a cost that a method asks for. A player appends them behind the parties, linked both ways to every party.

They play the same step, draw, hold a state and may be curious; they are in no x, no error and no optimum. A step knows them by
`node.helper` (0, 1, ...; -1 for a party) and its out-edges to them by `node.to_helper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..family import Family
from ..graph import Graph
from ..problem import Problem
from ..problems.meeting import Nothing

Array = Any


def joined(graph: Graph, helpers: int, alone: bool) -> Graph:
    """The graph with its helpers; `alone`: with no other links than theirs."""
    if not helpers:
        return graph
    n = graph.n
    links = [link for h in range(n, n + helpers) for i in range(n) for link in ((i, h), (h, i))]
    names = None if graph.labels == tuple(range(n)) else [*graph.labels, *(f"helper {h}" for h in range(helpers))]
    return Graph(n + helpers, links if alone else [*graph.edges, *links], labels=names)


def padded(rows: np.ndarray, helpers: int, value: float = 0.0) -> np.ndarray:
    """A row for each helper too."""
    return np.concatenate([rows, np.full((helpers, *rows.shape[1:]), value)]) if helpers else rows


def share_of(problem: Problem, node: int) -> tuple[Family, tuple]:
    """The cost of one node alone and its data: a party's own, or none."""
    return (problem.family, problem.only(node)) if node < problem.n else (Nothing(), ())


def helper_numbers(xp: Any, nodes: Array, parties: int) -> Array:
    """Which helper each of these nodes is, -1 for a party: (nodes, 1, 1)."""
    nodes = xp.asarray(nodes)
    return xp.where(nodes < parties, -1, nodes - parties)[:, None, None]


def helped(family: Family, helpers: int) -> Family:
    """The parties' costs with those of their helpers, which are zero."""
    return Helped(family, helpers) if helpers else family


@dataclass(frozen=True)
class Helped(Family):
    """The parties' costs first, then zero for each helper; the data are the parties' alone."""

    inner: Family
    helpers: int

    def gradient(self, xp: Any, data: tuple, x: Array) -> Array:
        return xp.concatenate([self.inner.gradient(xp, data, x[: -self.helpers]), 0 * x[-self.helpers :]])

    def hessian(self, xp: Any, data: tuple, x: Array) -> Array:
        ours = self.inner.hessian(xp, data, x[: -self.helpers])
        return xp.concatenate([ours, xp.zeros((self.helpers, *ours.shape[1:]), ours.dtype)])

    def prox(self, xp: Any, data: tuple, p: Array, q: Any) -> Array:
        q = xp.broadcast_to(q, (p.shape[0], 1, p.shape[2]))
        ours = self.inner.prox(xp, data, p[: -self.helpers], q[: -self.helpers])
        return xp.concatenate([ours, -p[-self.helpers :] / q[-self.helpers :]])
