"""Weighted sums over the entries of all nodes: the one place where a player spends its time.

NumPy takes, multiplies and adds each row up; from a few hundred nodes on, scalar weights go through SciPy's CSR product
with replaced data, and what is left goes row block by row block so that it stays in the cache. JAX uses segment sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..layout import Columns, Layout, Rows

Array = Any
SPARSE_FROM = 400  # nodes: below, take and reduceat are faster than a CSR product
PIECE = 1 << 16  # numbers of a row block


class NumpySums:
    """The sums in NumPy."""

    def __init__(self, layout: Layout):
        self.layout, self.rows, self.columns = layout, Rows(layout), Columns(layout)
        self.source, self.starts, self.n = layout.source, layout.row_starts, layout.n
        self._csr: Any = None
        if self.n >= SPARSE_FROM:
            keep_freed_memory()

    def gather(self, v: np.ndarray) -> np.ndarray:
        return v.take(self.source, 0)

    def over_nodes(self, v: np.ndarray) -> np.ndarray:
        """The sum over all nodes; from many nodes on as a product, which NumPy does nine times as fast."""
        if self.n < SPARSE_FROM:
            return np.add.reduce(v, 0)
        return (np.ones(self.n) @ v.reshape(self.n, -1)).reshape(v.shape[1:])

    def mix(self, terms: list[tuple[Any, np.ndarray]]) -> np.ndarray:
        """Over each row, the sum of weights times the senders' values."""
        if self.n >= SPARSE_FROM and all(w.size == len(self.source) for w, _ in terms):
            return self._sparse(terms)
        w, v = terms[0]
        if len(self.source) * v.size > 4 * PIECE * self.n or isinstance(w, Piecewise):
            return self._in_pieces(terms)
        total = w * v.take(self.source, 0)
        for w, v in terms[1:]:
            total += w * v.take(self.source, 0)
        return np.add.reduceat(total, self.starts, 0)

    def _sparse(self, terms: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        from scipy.sparse._sparsetools import csr_matvecs

        n = self.layout.n
        if self._csr is None:
            ends = np.append(self.layout.row_starts, len(self.layout.source)).astype(np.int32)
            self._csr = ends, self.layout.source.astype(np.int32)
        out: Array = np.zeros(terms[0][1].shape)
        for w, v in terms:  # SciPy's kernel adds to what is there
            weights, values = np.ascontiguousarray(w).reshape(-1), np.ascontiguousarray(v).reshape(-1)
            csr_matvecs(n, n, v.size // n, *self._csr, weights, values, out.reshape(-1))
        return out

    def _in_pieces(self, terms: list[tuple[Any, np.ndarray]]) -> np.ndarray:
        starts, source = self.layout.row_starts, self.layout.source
        out: Array = np.empty(terms[0][1].shape)
        for first, last, lo, hi in blocks(starts, len(source), out.shape[1] * out.shape[2]):
            total = np.zeros((hi - lo, *out.shape[1:]))
            for w, v in terms:
                piece = w.piece(np.arange(lo, hi)) if isinstance(w, Piecewise) else w[lo:hi]
                total += piece * np.take(v, source[lo:hi], axis=0)
            np.add.reduceat(total, starts[first:last] - lo, axis=0, out=out[first:last])
        return out


def keep_freed_memory() -> None:
    """Give a large block back untouched: from then on malloc keeps what is freed instead of returning it to the system, and
    the arrays of an iteration are not paged in anew (a third of the time at n = 10,000)."""
    np.empty(3_900_000)


def blocks(starts: np.ndarray, size: int, width: int) -> list[tuple[int, int, int, int]]:
    """Whole groups, as many as fit a piece: (first group, last group, first entry, last entry)."""
    ends = np.append(starts[1:], size)
    found, first = [], 0
    room = max(1, PIECE // width)
    while first < len(starts):
        lo = int(starts[first])
        last = max(first + 1, int(np.searchsorted(ends, lo + room, side="right")))
        found.append((first, last, lo, int(ends[last - 1])))
        first = last
    return found


class Piecewise:
    """A drawn weight too large to hold: its entries are drawn again piece by piece, only its group sums are kept."""

    size = -1  # matches no shortcut for weights that lie in memory

    def __init__(self, rule: Any, side: Rows, constant: Array, aid: tuple[Array, ...], draw: Any, shape: tuple[int, int, int]):
        self.rule, self.side, self.constant, self.aid, self.draw, self.shape = rule, side, constant, aid, draw, shape
        self.total = np.empty((len(side.starts), *shape[1:]))
        order = getattr(side, "order", np.arange(shape[0]))
        for first, last, lo, hi in blocks(side.starts, shape[0], shape[1] * shape[2]):
            measured = self._measured(order[lo:hi])[1]
            np.add.reduceat(measured, side.starts[first:last] - lo, axis=0, out=self.total[first:last])

    def _measured(self, index: np.ndarray) -> tuple[Slice, Array, Array, tuple[Array, ...]]:
        at = lambda part: part[index] if len(part) == self.shape[0] else part
        side, constant, aid = Slice(self.side, index), at(self.constant), tuple(at(part) for part in self.aid)
        return side, self.rule.measure(np, side, self.draw(index), constant, aid), constant, aid

    def piece(self, index: np.ndarray) -> np.ndarray:
        """The weights of some entries."""
        side, measured, constant, aid = self._measured(index)
        return self.rule.finish(side, measured, self.total, constant, aid)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.piece(np.arange(self.shape[0]))


class Slice:
    """Some of a side's entries, as a rule sees them; it holds no whole group, so there is nothing to sum."""

    def __init__(self, side: Rows, index: np.ndarray):
        self.is_loop, self.index = side.is_loop[index], side.index[index]

    def spread(self, u: np.ndarray) -> np.ndarray:
        return np.take(u, self.index, axis=-3)

    def sum(self, v: np.ndarray) -> np.ndarray:
        raise NotImplementedError("a slice holds no whole group")


class JaxSide:
    """Rows or columns in JAX."""

    def __init__(self, layout: Layout, index: Array, ordered: bool):
        self.is_loop, self.index, self.ordered, self.n = layout.is_loop, index, ordered, len(layout.loops)

    def sum(self, v: Array) -> Array:
        import jax

        return jax.ops.segment_sum(v, self.index, num_segments=self.n, indices_are_sorted=self.ordered)

    def largest(self, v: Array) -> Array:
        import jax

        return jax.ops.segment_max(v, self.index, num_segments=self.n, indices_are_sorted=self.ordered)

    def spread(self, u: Array) -> Array:
        return u[self.index]


class JaxSums:
    """The sums in JAX."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self.rows = JaxSide(layout, layout.target, True)
        self.columns = JaxSide(layout, layout.source, False)

    def gather(self, v: Array) -> Array:
        return v[self.layout.source]

    def over_nodes(self, v: Array) -> Array:
        return v.sum(0)

    def mix(self, terms: list[tuple[Array, Array]]) -> Array:
        total = terms[0][0] * self.gather(terms[0][1])
        for w, v in terms[1:]:
            total = total + w * self.gather(v)
        return self.rows.sum(total)
