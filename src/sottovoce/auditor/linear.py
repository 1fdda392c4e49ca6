"""What a heap of linear equations fixes: an unknown that stands in one equation alone follows from the others, and is set aside
with it; what is left is solved densely, part by part. Then any sum of unknowns has a value, or is left open."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from .affine import Affine, Book

Array = np.ndarray
Row = dict[int, float]
LARGEST = 700  # unknowns of a part that is solved: about a fifth of a second
SURE = 1e-12  # how much of a functional, squared, may lie outside the row space
FAINT = 1e-11  # pivots below this, of the largest, count as zero
AGREE = 1e-6  # how far equations that say the same may be apart, in units of what they say


class Solved:
    """A book's equations, solved."""

    def __init__(self, book: Book):
        self.rows, self.values = book.rows, book.values
        self.consistent = True
        self.order: dict[int, tuple[int, int]] = {}  # unknown -> when it was set aside, and its equation
        self.part: dict[int, tuple[Array, Array, dict[int, int]]] = {}  # unknown -> basis, solution, columns
        for rows in self._parts(self._set_aside()):
            self._solve(rows)

    def _set_aside(self) -> list[int]:
        """The equations that are left."""
        where: dict[int, set[int]] = {}
        for i, row in enumerate(self.rows):
            for u in row:
                where.setdefault(u, set()).add(i)
        left, lone = set(range(len(self.rows))), [u for u, rows in where.items() if len(rows) == 1]
        while lone:
            u = lone.pop()
            if len(where[u]) != 1:
                continue
            (i,) = where[u]
            self.order[u] = (len(self.order), i)
            left.discard(i)
            for other in self.rows[i]:
                where[other].discard(i)
                if len(where[other]) == 1:
                    lone.append(other)
        return sorted(left)

    def _parts(self, left: list[int]) -> list[list[int]]:
        """Equations that hang together: mostly a part a coordinate."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        if not left:
            return []
        pairs = [(row, u) for row, i in enumerate(left) for u in self.rows[i]]
        width = 1 + max(u for _, u in pairs)
        rows, columns = (np.array(side) for side in zip(*pairs, strict=True))
        size = len(left) + width
        _, label = connected_components(coo_array((np.ones(len(pairs)), (rows, len(left) + columns)), shape=(size, size)))
        parts: dict[int, list[int]] = {}
        for row, i in enumerate(left):
            parts.setdefault(int(label[row]), []).append(i)
        return list(parts.values())

    def _solve(self, rows: list[int]) -> None:
        from scipy.linalg import qr, solve_triangular

        columns = {u: c for c, u in enumerate(sorted({u for i in rows for u in self.rows[i]}))}
        if len(columns) > LARGEST or len(rows) > 3 * LARGEST:
            return
        E, b = np.zeros((len(rows), len(columns))), np.array([self.values[i] for i in rows])
        for r, i in enumerate(rows):
            E[r, [columns[u] for u in self.rows[i]]] = list(self.rows[i].values())
        length = np.linalg.norm(E, axis=1)
        E, b = E / length[:, None], b / length
        parts: Any = qr(E.T, mode="economic", pivoting=True)  # independent equations come first
        Q, T, order = parts
        pivots = np.abs(np.diagonal(T))
        rank = int((pivots > FAINT * pivots.max()).sum())
        basis = Q[:, :rank]
        solution = basis @ solve_triangular(T[:rank, :rank], b[order[:rank]], trans=1)
        said = np.abs(E) @ np.abs(solution) + np.abs(b)
        self.consistent &= bool((np.abs(E @ solution - b) <= AGREE * np.maximum(said, 1e-300)).all())
        for u in columns:
            self.part[u] = basis, solution, columns

    def value(self, form: object) -> float:
        """The number that a form has to be; NaN where the equations leave it open."""
        if not isinstance(form, Affine):
            return float(form)  # type: ignore[arg-type]
        row, constant = dict(form.terms), form.constant
        heap = [(self.order[u][0], u) for u in row if u in self.order]
        heapq.heapify(heap)
        while heap:
            _, u = heapq.heappop(heap)
            factor = row.pop(u, 0.0)
            if not factor:
                continue
            i = self.order[u][1]
            factor /= self.rows[i][u]
            constant += factor * self.values[i]
            for other, f in self.rows[i].items():
                if other != u:
                    if other not in row and other in self.order:
                        heapq.heappush(heap, (self.order[other][0], other))
                    row[other] = row.get(other, 0.0) - factor * f
        return constant + self._of_parts({u: f for u, f in row.items() if f})

    def _of_parts(self, row: Row) -> float:
        total, size = 0.0, max((abs(f) for f in row.values()), default=0.0)
        while row:
            first = next(iter(row))
            if first not in self.part:
                if abs(row.pop(first)) > 1e-13 * size:
                    return float("nan")
                continue
            basis, solution, columns = self.part[first]
            mine = {u: row.pop(u) for u in list(row) if u in columns}
            at, factors = [columns[u] for u in mine], np.array(list(mine.values()))
            inside, whole = factors @ basis[at], factors @ factors
            if whole - inside @ inside > SURE * max(whole, size**2 * 1e-14):
                return float("nan")
            total += float(factors @ solution[at])
        return total

    def array(self, forms: Array) -> Array:
        """The numbers of an array of forms."""
        return np.array([self.value(v) for v in forms.flat]).reshape(forms.shape)
