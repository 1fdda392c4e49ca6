"""What can be read off a View of a gradient-tracking or push-sum method by dividing and subtracting: no guessing, no fitting.

Everything is an array (iteration, coordinate) of the first run, NaN where the view does not hold it. The paper's letters: the
victim's x, u = Lambda y, y, its message M = C y + B dg on an edge, dg the increment of its gradient, w = y + dg.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..view import View

Array = np.ndarray
WEIGHTS = ("R", "A", "C", "B")
PUSH_SUM = ("add-opt", "push-diging")  # one message, c (x, v, y) or c (u - lambda y, v, y)


def tracking(view: View) -> bool:
    """Whether the method is gradient tracking with the weights R, A, C, B."""
    return all(name in view.header["parameters"] for name in WEIGHTS)


def push_sum(view: View) -> bool:
    return view.header["algorithm"] in PUSH_SUM


def mixings(view: View) -> int:
    """How often x and y are mixed for each gradient (`consensus`): so many exchanges of x, then as many of y."""
    return int(view.header["parameters"].get("consensus", 1))


def coordinates(view: View) -> int:
    return int(view.header["coordinates"])


def seen(view: View, sender: int, receiver: int) -> bool:
    """Whether what crosses this edge is seen."""
    return view.wiretap or sender in view.coalition or receiver in view.coalition


def payload(view: View, edge: int, exchange: int) -> Array:
    """(iterations, numbers) of one edge; NaN where nothing was seen. The early messages may hold more numbers than the late."""
    found = [view.sent.get((k, exchange)) for k in range(view.iterations)]
    size = max((m.shape[1] for m in found if m is not None), default=0)
    out = np.full((len(found), size), np.nan)
    for k, m in enumerate(found):
        if m is not None and edge < len(m) and m.dtype.kind == "f":
            out[k, : m.shape[1]] = m[edge, :, 0]
    return out


def weight(view: View, name: str, receiver: int, sender: int) -> Array:
    """(iterations, d): a weight where it is known. The identity, and one that is the same as another, are drawn nowhere."""
    out = np.full((view.iterations, coordinates(view)), np.nan)
    entry, same = view.entry(receiver, sender), _same_as(view, name)
    for k in range(view.iterations):
        drawn = view.draws.get((name, k))
        if drawn is None and k >= view.settled:
            if same is None:
                out[k] = float(receiver == sender)
                continue
            drawn = view.draws.get((same, k))
        if drawn is not None:
            out[k] = drawn.value[entry, :, 0]
    return out


def _same_as(view: View, name: str) -> str | None:
    """The weight that this one is the same as, itself if it is its own, None for the identity."""
    for _ in WEIGHTS:
        rule = view.header["parameters"].get(name)
        if rule not in view.header["parameters"]:
            return None if rule == "identity" else name
        name = rule
    return name


def stepsizes(view: View, node: int) -> Array:
    """(iterations, 1): public from K on; before, nobody knows another's."""
    out = np.full((view.iterations, 1), np.nan)
    out[view.settled :] = view.stepsize[node]
    return out


def mixed_once(view: View, node: int, exchange: int) -> Array:
    """What x is on its way from one iteration to the next, sent in a later exchange; (iterations, d)."""
    found = np.full((view.iterations, coordinates(view)), np.nan)
    for r in view.graph.out_neighbours(node):
        if seen(view, node, r):
            m = payload(view, view.edge(node, r), exchange)
            if m.shape == found.shape:
                _fill(found, m)
    return found


def broadcast(view: View, node: int) -> tuple[Array, Array, Array]:
    """What a node sends to all alike, where someone curious hears it: x, u and x - u, each (iterations, d)."""
    d = coordinates(view)
    x, u, p = (np.full((view.iterations, d), np.nan) for _ in range(3))
    alone = x if _same_as(view, "A") is None else p
    for r in view.graph.out_neighbours(node):
        if not seen(view, node, r):
            continue
        m = payload(view, view.edge(node, r), 0)
        m[(weight(view, "R", r, node) == 0).all(1)] = np.nan  # a sequence of graphs: the edge was not there
        if m.shape[1] not in (d, 2 * d):
            continue
        two = np.full_like(m[:, :1], m.shape[1] == 2 * d) * np.isfinite(m).all(1, keepdims=True) > 0
        _fill(x, np.where(two, m[:, :d], np.nan))
        _fill(alone, np.where(two, np.nan, m[:, :d]))
        _fill(u, np.where(two, m[:, -d:], np.nan))
    _fill(p, x - u)
    return x, u, p


def pushed(view: View, sender: int, receiver: int, again: int = 0) -> Array:
    """M on an edge, (iterations, d): the part of a pushed message that carries the tracker y; `again`: as it is mixed once more."""
    d = coordinates(view)
    m = payload(view, view.edge(sender, receiver), 0 if push_sum(view) else mixings(view) + again)
    if m.shape[1] != (2 * d + 1 if push_sum(view) else d):
        return np.full((view.iterations, d), np.nan)
    return m[:, -d:]


class Heard:
    """What a coalition, or a wire-tapper, reads of one node; see the top of this file."""

    def __init__(self, view: View, victim: int):
        self.view, self.victim = view, victim
        shape = (view.iterations, coordinates(view))
        self.x, self.u, self.y, self.w, self.dg = (np.full(shape, np.nan) for _ in range(5))
        self.listeners = [r for r in view.graph.out_neighbours(victim) if seen(view, victim, r)]
        self.M = {r: pushed(view, victim, r) for r in self.listeners}
        self.c = {r: weight(view, "C", r, victim) for r in self.listeners}
        self.b = {r: weight(view, "B", r, victim) for r in self.listeners}
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            self._read_push_sum() if push_sum(view) else self._read_tracking()
        for part in (self.x, self.u, self.y, self.w, self.dg):
            part[~np.isfinite(part).all(1)] = np.nan

    def _read_tracking(self) -> None:
        step = stepsizes(self.view, self.victim)
        self.x, self.u, p = broadcast(self.view, self.victim)
        self._read_neighbours(p)
        _fill(self.y, self.u / step)
        alike = _same_as(self.view, "B") == _same_as(self.view, "C")
        for r in self.listeners:
            M, c, b = self.M[r], self.c[r], self.b[r]
            if alike:  # C (y + dg)
                _fill(self.w, M / c)
            _fill(self.y, np.where(b == 0, M / c, np.nan))
            _fill(self.dg, np.where(b == 0, np.nan, (M - c * self.y) / b))
        _fill(self.w, self.y + self.dg)

    def _read_neighbours(self, p: Array) -> None:
        """Who hears all that the victim pulls computes its next x, or what is missing from it."""
        view, victim = self.view, self.victim
        local, q = _same_as(view, "A") is None, mixings(view)  # x+ = R x - u, or R (x - u), or these mixed again
        pulled, last = np.zeros_like(p), np.zeros_like(p)
        for j in (victim, *view.graph.in_neighbours(victim)):
            x, _, mine = broadcast(view, j)
            R = weight(view, "R", victim, j)
            pulled = pulled + np.where(R == 0, 0.0, R * (x if local else mine))
            last = last + np.where(R == 0, 0.0, R * mixed_once(view, j, q - 1)) if q > 1 else pulled
        late = np.arange(len(p))[:, None] >= view.settled
        if local:
            after = mixed_once(view, victim, 1)[:-1] if q > 1 else self.x[1:]
            _fill(self.u[:-1], np.where(late[:-1], pulled[:-1] - after, np.nan))
        elif _same_as(view, "A") == _same_as(view, "R"):
            _fill(self.x[1:], np.where(late[:-1], last[:-1], np.nan))
            _fill(self.u, self.x - p)

    def _read_push_sum(self) -> None:
        d, step = coordinates(self.view), stepsizes(self.view, self.victim)
        for r in self.listeners:
            m = payload(self.view, self.view.edge(self.victim, r), 0)
            if m.shape[1] != 2 * d + 1:
                continue
            c = self.c[r].copy()
            c[0] = m[0, d]  # v starts at one
            ahead = step * m[:, -d:] if self.view.header["algorithm"] == "push-diging" else 0.0
            _fill(self.x, (m[:, :d] + ahead) / m[:, d : d + 1])
            _fill(self.y, m[:, -d:] / c)
        self.u = self.y * step

    def increments(self) -> tuple[Array, Array, Array]:
        """Late dx, dg and the size of the numbers that they were computed from, (m, d), (m, d), (m,)."""
        dx, dg = np.diff(self.x, axis=0), self.dg[:-1]
        size = np.max([np.abs(M[:-1]).max(1) for M in self.M.values()], axis=0) + np.abs(self.y[:-1]).max(1)
        stiff = np.linalg.norm(dg, axis=1) / np.maximum(np.linalg.norm(dx, axis=1), 1e-300)
        there = np.isfinite(dx).all(1) & np.isfinite(dg).all(1) & np.isfinite(size)
        if not there.any():
            return dx[:0], dg[:0], size[:0]
        size = size + np.median(stiff[there]) * np.abs(self.x[:-1]).max(1)
        return dx[there], dg[there], size[there]


def heard(view: View, victim: int) -> Heard | None:
    """What is read of a node; None where nothing of it can be."""
    memo: dict[Any, Any] = view.__dict__.setdefault("_heard", {})
    if victim not in memo:
        memo[victim] = Heard(view, victim) if _audible(view, victim) else None
    return memo[victim]


def _audible(view: View, victim: int) -> bool:
    if not view.sent or not 0 <= victim < view.graph.n or victim in view.coalition or "coordinates" not in view.header:
        return False
    known = tracking(view) or push_sum(view)
    return known and any(seen(view, victim, r) for r in view.graph.out_neighbours(victim))


def flow(view: View, group: Iterable[int]) -> Array:
    """(iterations + 1, d): what came into a group less what left it, before each iteration; NaN where an edge is not seen.

    For a group, sum (y - g) is zero at the start and moves by nothing else.
    """
    group, net = set(group), np.zeros((view.iterations + 1, coordinates(view)), np.longdouble)
    for s, r in view.graph.edges:
        if (s in group) != (r in group):
            for again in range(mixings(view)):
                net[1:] += pushed(view, s, r, again) * (1 if r in group else -1)
    return np.cumsum(net, axis=0)


def enclosed(view: View, victim: int) -> tuple[int, ...]:
    """The nodes that the victim reaches, in either direction, without passing the coalition; alone where all links are tapped."""
    if view.wiretap:
        return (victim,)
    found, todo = {victim}, [victim]
    while todo:
        i = todo.pop()
        new = {*view.graph.in_neighbours(i), *view.graph.out_neighbours(i)} - found - set(view.coalition)
        found |= new
        todo.extend(new)
    return tuple(sorted(found))


def honest_edge(edges: Iterable[tuple[int, int]], victim: int, coalition: set[int]) -> int | None:
    """The first edge between the victim and an honest neighbour."""
    return next((e for e, ends in enumerate(edges) if victim in ends and not coalition & set(ends)), None)


def _fill(known: Array, found: Array) -> None:
    """Put in what was not known yet."""
    np.copyto(known, found, where=np.isnan(known))
