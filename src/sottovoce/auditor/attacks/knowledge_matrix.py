"""A8, the knowledge matrix (Mrini, Cyffers, Bellet 2024), for gradient tracking: what public weights and all that was seen fix.

Unknown are every node's x, y and gradient over a few late iterations. With public weights each update, and each message, is a
linear equation in them, the same for every coordinate. What lies in the row space is reconstructed, of neighbours or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import broadcast, coordinates, enclosed, flow, pushed, seen, stepsizes, tracking, weight
from .tail_secants import curvature

Array = np.ndarray
LARGEST = 320  # unknowns: about fifty milliseconds
SURE = 1e-12  # how much of a functional, squared, may lie outside the row space
FAINT = 1e-10  # pivots below this, of the largest, count as zero


class Knowledge:
    """The equations that a view holds over the iterations first ... last, and what follows from them."""

    def __init__(self, view: View, first: int, last: int):
        self.view, self.first, self.last, self.n = view, first, last, view.graph.n
        self.rows: list[dict[int, float]] = []
        self.values: list[Array] = []
        self._weights = {name: self._public(name) for name in "RACB"}
        self._steps = np.array([stepsizes(view, i)[:, 0] for i in range(self.n)])
        self._updates()
        self._balances()
        self._messages()
        self._own_states()
        self._solve()

    def at(self, what: str, node: int, k: int) -> int:
        """The column of an unknown."""
        return ((k - self.first) * 3 + "xyg".index(what)) * self.n + node

    def _public(self, name: str) -> Array:
        """(iteration, receiver, sender); NaN where not known, or not one number for all coordinates."""
        view = self.view
        W = np.zeros((view.iterations, self.n, self.n))
        for s, r in [*view.graph.edges, *((i, i) for i in range(self.n))]:
            w = weight(view, name, r, s)
            W[:, r, s] = np.where((w == w[:, :1]).all(1), w[:, 0], np.nan)
        return W

    def _say(self, row: dict[int, float], value: Array | float = 0.0) -> None:
        """One equation; where a coefficient or a number is not known, none."""
        value = np.broadcast_to(np.asarray(value, float), (coordinates(self.view),))
        if np.isfinite(list(row.values())).all() and np.isfinite(value).all():
            self.rows.append(row)
            self.values.append(value)

    def _updates(self) -> None:
        for k in range(self.first, self.last):
            R, A, C, B = (self._weights[name][k] for name in "RACB")
            step = self._steps[:, k]
            for i in range(self.n):
                senders = (i, *self.view.graph.in_neighbours(i))
                x = {self.at("x", i, k + 1): 1.0}
                y = {self.at("y", i, k + 1): 1.0}
                for j in senders:
                    x |= {self.at("x", j, k): -R[i, j], self.at("y", j, k): A[i, j] * step[j]}
                    y |= {self.at("y", j, k): -C[i, j], self.at("g", j, k): B[i, j], self.at("g", j, k + 1): -B[i, j]}
                self._say(x)
                self._say(y)

    def _balances(self) -> None:
        """The sum of y - g over a group that the coalition encloses; at the start each node's own."""
        view, k = self.view, self.first
        groups = {(i,) if k == 0 else enclosed(view, i) for i in range(self.n) if i not in view.coalition}
        for group in groups:
            row = {self.at("y", i, k): 1.0 for i in group} | {self.at("g", i, k): -1.0 for i in group}
            self._say(row, np.asarray(flow(view, group)[k], float))

    def _messages(self) -> None:
        view = self.view
        for i in range(self.n):
            x, u, p = broadcast(view, i)
            for k in range(self.first, self.last + 1):
                step = self._steps[i, k]
                self._say({self.at("x", i, k): 1.0}, x[k])
                self._say({self.at("y", i, k): step}, u[k])
                self._say({self.at("x", i, k): 1.0, self.at("y", i, k): -step}, p[k])
        for s, r in view.graph.edges:
            if seen(view, s, r):
                M = pushed(view, s, r)
                for k in range(self.first, self.last):
                    c, b = self._weights["C"][k, r, s], self._weights["B"][k, r, s]
                    self._say({self.at("y", s, k): c, self.at("g", s, k): -b, self.at("g", s, k + 1): b}, M[k])

    def _own_states(self) -> None:
        """States are those after an iteration; x^k is what iteration k begins with."""
        for k in range(self.first, self.last + 1):
            state = self.view.states.get(k - 1, {})
            for name in set(state) & set("xyg"):
                for i in self.view.coalition:
                    self._say({self.at(name, i, k): 1.0}, state[name][i, :, 0])

    def _solve(self) -> None:
        from scipy.linalg import qr, solve_triangular

        size = 3 * self.n * (self.last - self.first + 1)
        E = np.zeros((len(self.rows), size))
        for i, row in enumerate(self.rows):
            E[i, list(row)] = list(row.values())
        b = np.array(self.values).reshape(len(E), -1)
        length = np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-300)
        parts: Any = qr((E / length).T, mode="economic", pivoting=True)  # independent equations come first
        Q, T, order = parts
        pivots = np.abs(np.diagonal(T))
        rank = int((pivots > FAINT * pivots.max(initial=0.0)).sum())
        self.basis = Q[:, :rank]
        self.solution = self.basis @ solve_triangular(T[:rank, :rank], (b / length)[order[:rank]], trans=1)

    def value(self, *terms: tuple[float, str, int, int]) -> Array:
        """A functional, as (factor, what, node, k) terms: its value (d,), NaN where the equations leave it open."""
        columns, factors = [self.at(*term[1:]) for term in terms], np.array([term[0] for term in terms])
        inside, whole = factors @ self.basis[columns], factors @ factors
        if whole - inside @ inside > SURE * whole:
            return np.full(self.solution.shape[1], np.nan)
        return factors @ self.solution[columns]


def knowledge(view: View) -> Knowledge | None:
    """What a view fixes over its first late iterations; None where it is another method, too short, or too large."""
    memo: dict[Any, Any] = view.__dict__.setdefault("_knowledge", {})
    if "all" not in memo:
        memo["all"] = _knowledge(view)
    return memo["all"]


def _knowledge(view: View) -> Knowledge | None:
    if not view.sent or "coordinates" not in view.header or not tracking(view):
        return None
    steps = min(max(6, coordinates(view) + 3), view.iterations - 1 - view.settled, LARGEST // (3 * view.graph.n) - 1)
    if steps < 2:
        return None
    last = view.settled + steps
    sent = {key: m for key, m in view.sent.items() if key[0] <= last}
    return Knowledge(replace(view, sent=sent), view.settled, last)


def run(view: View, victim: int) -> list[Estimate]:
    if victim in view.coalition or not 0 <= victim < view.graph.n:
        return []
    known = knowledge(view)
    return [] if known is None else estimates(known, victim)


def estimates(known: Knowledge, victim: int) -> list[Estimate]:
    """The victim's gradients that are fixed, and its curvature where enough increments are."""
    ks = range(known.first, known.last + 1)
    x, g = (np.array([known.value((1.0, what, victim, k)) for k in ks]) for what in "xg")
    found = []
    if known.first == 0 and np.isfinite(x[0]).all():
        found.append(Estimate((victim,), "start", x[0]))
    there = np.isfinite(np.column_stack([x, g])).all(1)
    if there.any():
        found.append(Estimate((victim,), "offset", g[there][0], x[there][0]))
    if there.sum() > 1:
        found.append(Estimate((victim,), "along-the-way", g[there], x[there]))
    change = lambda what: np.array([known.value((1.0, what, victim, k + 1), (-1.0, what, victim, k)) for k in ks[:-1]])
    dx, dg = change("x"), change("g")
    there = np.isfinite(np.column_stack([dx, dg])).all(1)
    H = curvature(dx[there], dg[there], np.ones(int(there.sum())))
    return found + ([] if H is None else [Estimate((victim,), "curvature", H)])


def reconstructed(view: View) -> float:
    """The metric of Mrini et al.: which fraction of the gradients of others is fixed."""
    known = knowledge(view)
    others = [i for i in range(view.graph.n) if i not in view.coalition]
    if known is None or not others:
        return 0.0
    ks = range(known.first, known.last + 1)
    return float(np.mean([np.isfinite(known.value((1.0, "g", i, k))).all() for i in others for k in ks]))


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five((4,), "ab", iterations=12)  # node 4 hears node 3 and all that node 3 hears
    return view, 3, truth


register(
    Attack(
        name="knowledge-matrix",
        id="A8",
        assets=("offset", "along-the-way", "curvature", "start"),
        uses="whatever the coalition saw of the first late iterations; public late weights; few nodes",
        idea="Updates, messages and balances are linear equations in every node's x, y and gradient. Solve them together:\n"
        "what lies in the row space is fixed, of non-neighbours too.",
        metric="relative error; fraction of gradients reconstructed",
        run=run,
        control=control,
    )
)
