"""How a weight lies in memory: one number for every edge and every node's own share, sorted by receiver.

Such a place is an *entry*. Because every row then holds at least its own share, one segment sum serves rows and columns
alike. A `Side` is one of the two ways of grouping entries: a row is what a receiver weighs, a column what a sender weighs.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from .graph import Graph

MANY = 10_000  # single numbers from which a product with ones is the faster sum


class Layout(NamedTuple):
    """Index arrays of a graph; arguments of the compiled function, never closed over."""

    source: np.ndarray  # (entries,) who sends; sorted by target, then source
    target: np.ndarray  # (entries,) who receives
    loops: np.ndarray  # (n,) the entry that is node i's own share
    edges: np.ndarray  # (edges,) the entries that are edges, in the order of graph.edges
    by_source: np.ndarray  # (entries,) the order that sorts entries by sender
    row_starts: np.ndarray  # (n,) where each row begins
    column_starts: np.ndarray  # (n,) where each column begins in `by_source`
    is_loop: np.ndarray  # (entries, 1, 1)
    sender: np.ndarray  # (edges,)
    receiver: np.ndarray  # (edges,)

    @property
    def n(self) -> int:
        return len(self.loops)


@functools.lru_cache(maxsize=16)
def layout(graph: Graph) -> Layout:
    """The layout of a graph."""
    nodes = np.arange(graph.n)
    source = np.concatenate([graph.sender, nodes])
    target = np.concatenate([graph.receiver, nodes])
    order = np.lexsort((source, target))
    source, target = source[order], target[order]
    is_loop = source == target
    by_source = np.argsort(source, kind="stable")
    starts = lambda sorted_index: np.searchsorted(sorted_index, nodes)
    return Layout(
        source, target, np.flatnonzero(is_loop), np.flatnonzero(~is_loop), by_source, starts(target),
        starts(source[by_source]), is_loop[:, None, None], graph.sender, graph.receiver,
    )  # fmt: skip


class CoSenders(NamedTuple):
    """Who sends to the same receiver: each such pair has a stream of words, which one adds and the other takes away.

    A pair with several common receivers uses one block of its stream for each, in the order of the receivers.
    """

    first: np.ndarray  # (pairs,)
    second: np.ndarray  # (pairs,) the larger number
    blocks: np.ndarray  # (most,) 0, 1, ...: as many blocks as a pair can need
    word: np.ndarray  # (terms,) pair * most + block
    plus: np.ndarray  # (terms,) the edge on which the word is added
    minus: np.ndarray  # (terms,) the edge on which it is taken away


@functools.lru_cache(maxsize=16)
def co_senders(graph: Graph) -> CoSenders:
    """The pairs of a graph, which is public."""
    number, used = {edge: e for e, edge in enumerate(graph.edges)}, {}
    terms: list[tuple[tuple[int, int], int, int, int]] = []
    for r in range(graph.n):
        senders = sorted(graph.in_neighbours(r))
        for i, a in enumerate(senders):
            for b in senders[i + 1 :]:
                block = used[a, b] = used.get((a, b), -1) + 1
                terms.append(((a, b), block, number[a, r], number[b, r]))
    pairs = sorted(used)
    place, most = {pair: p for p, pair in enumerate(pairs)}, max(used.values(), default=-1) + 1
    ends = np.array(pairs, int).reshape(-1, 2)
    word = np.array([place[pair] * most + block for pair, block, _, _ in terms], int)
    plus, minus = (np.array([term[i] for term in terms], int) for i in (2, 3))
    return CoSenders(ends[:, 0], ends[:, 1], np.arange(most), word, plus, minus)


class Side(Protocol):
    """The entries grouped by who weighs them; what a weight rule needs to make its groups sum to one."""

    is_loop: Any

    def sum(self, v: Any) -> Any:
        """Over each group: (..., entries, c, runs) -> (..., groups, c, runs)."""
        ...

    def spread(self, u: Any) -> Any:
        """Each group's number to all its entries."""
        ...


class Rows:
    """Rows in NumPy: the entries with the same receiver."""

    def __init__(self, layout: Layout):
        self.is_loop, self.index, self.starts = layout.is_loop, layout.target, layout.row_starts

    def sum(self, v: np.ndarray) -> np.ndarray:
        if v.size == len(self.index) > MANY and v.dtype == float:
            return self._counted(v.reshape(-1)).reshape(*v.shape[:-3], -1, 1, 1)
        return self._sum(v)

    def largest(self, v: np.ndarray) -> np.ndarray:
        """The largest of each row, and 0 for the row's own share: (entries, c, runs) -> (rows, c, runs)."""
        return np.maximum.reduceat(v, self.starts, axis=-3)

    def _counted(self, v: np.ndarray) -> np.ndarray:
        """As a product with a matrix of ones, by SciPy's kernel: two to three times as fast as reduceat or bincount."""
        from scipy.sparse._sparsetools import csr_matvec

        out = np.zeros(len(self.starts))
        csr_matvec(len(out), len(v), *self._ones, v, out)
        return out

    @functools.cached_property
    def _ones(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ends = np.append(self.starts, len(self.index)).astype(np.int32)
        order = getattr(self, "order", np.arange(len(self.index)))
        return ends, order.astype(np.int32), np.ones(len(self.index))

    def _sum(self, v: np.ndarray) -> np.ndarray:
        return np.add.reduceat(v, self.starts, axis=-3)

    def spread(self, u: np.ndarray) -> np.ndarray:
        return np.take(u, self.index, axis=-3)


class Columns(Rows):
    """Columns in NumPy: the entries with the same sender."""

    def __init__(self, layout: Layout):
        self.is_loop, self.index, self.starts = layout.is_loop, layout.source, layout.column_starts
        self.order = layout.by_source

    def _sum(self, v: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.take(v, self.order, axis=-3), self.starts, axis=-3)


class Alone:
    """One node's own row or column: a single group of entries, its own share first."""

    def __init__(self, entries: int):
        self.is_loop = (np.arange(entries) == 0)[:, None, None]

    def sum(self, v: np.ndarray) -> np.ndarray:
        return v.sum(-3, keepdims=True)

    def spread(self, u: np.ndarray) -> np.ndarray:
        return np.repeat(u, len(self.is_loop), -3)
