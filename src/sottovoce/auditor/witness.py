"""A witness: another world in which a node's gradient is another, and a coalition sees the very same.

The corrected construction of Theorems 2 and 4 of Gao, Wang, Nedic (2023). Node i's gradient is shifted by delta, that of an
honest neighbour m by -delta. Only numbers of iteration 0 that i and m keep to themselves differ, coordinate by coordinate:

    Lambda_i' = Lambda_i y_i / (y_i + delta)          C_pi' = (C_pi y_i + delta [p = r]) / (y_i + delta)
    Lambda_m' = Lambda_m y_m / (y_m - delta)          C_pm' = (C_pm y_m - delta [p = r]) / (y_m - delta)

where y = grad f(x^0), and r = m if m hears i (case I), r = i if i hears m (case II). Columns still sum to one, everything sent
is the same except on the edge between i and m, and there the change cancels inside y_r^1. There is no such world for
delta = -y_i, where a number other than zero was sent for Lambda_i y_i, nor with this m for delta = y_m.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from .plausible import log_ratio, log_volume
from .worlds import EQUAL, Array, Iteration, Quadratics, Replay, World, compared, gap, replay, table_two, wide

CASES = ("I", "II")


class NoWitness(InputError):
    """The theorem promises none: every neighbour is curious, K = 0, or the run did not follow Table II."""


class Excluded(InputError):
    """The one delta a coordinate for which the theorem is false."""


class TamperedWitness(InputError):
    """A number of a witness is not what it must be."""


@dataclass(frozen=True, eq=False)
class Witness:
    """Two worlds, `world` and `other`, that the coalition cannot tell apart."""

    world: World
    other: World
    victim: int
    neighbour: int  # the honest one that takes -delta
    case: str  # "I": the neighbour hears the victim; "II": the victim hears the neighbour
    delta: Array  # (d,)
    coalition: tuple[int, ...]
    difference: Any  # between the two views; exactly zero in rational numbers
    log_likelihood_ratio: float | None  # of the draws, other over world; None where no law is declared or it has no density

    @property
    def log_volume(self) -> float:
        """The logarithm of how much the construction stretches the draws.

        log_likelihood_ratio + log_volume is what an adversary who knows the law weighs: its exponential, averaged over the draws
        that fit the view, is the likelihood of the view in the other world over that in this one.
        """
        return log_volume(self.world, self.victim, self.neighbour, self.delta)

    @property
    def feasible(self) -> bool:
        """Whether Table II allows the other world, and the declared law could have drawn it."""
        return table_two(self.other) is None and self.log_likelihood_ratio != -np.inf

    def check(self) -> None:
        """Verify everything anew; raise TamperedWitness where a number is not what it must be."""
        fault = table_two(self.world) or self._fault(replay(self.world), replay(self.other))
        if fault:
            raise TamperedWitness(f"this witness does not hold: {fault}; build it again with witness(...)")

    def _fault(self, here: Replay, there: Replay) -> str | None:
        return next((fault for fault in self._faults(here, there) if fault), None)

    def _faults(self, here: Replay, there: Replay) -> Iterator[str | None]:
        """What is wrong, if anything, from the plainest to the subtlest; nothing of how the world was built is used."""
        i, m = self.victim, self.neighbour
        edge = (i, m) if self.case == "I" else (m, i)
        if {i, m} & set(self.coalition) or self.case not in CASES or edge not in set(self.world.graph.edges):
            yield f"node {m} is not an honest neighbour of {i} in case {self.case}"
        yield self._setting()
        yield self._untouched()  # so that the first iteration is the only one in which the other world's columns are others
        yield from (self.world.fault, table_two(self.other, 1))
        tolerance = 0.0 if self.world.exact else EQUAL
        yield from (f"the worlds differ in {what} by {far}" for what, far in self._elsewhere(here, there) if not far <= tolerance)
        difference = compared(self.world, here, self.other, there, self.coalition)
        if difference != self.difference or not difference <= tolerance:
            yield f"the views differ by {difference}, {self.difference} stands there and {tolerance:.1e} is allowed"
        ratio = log_ratio(self.world, self.other, i, m)
        if ratio != self.log_likelihood_ratio:
            yield f"the log-likelihood ratio is {ratio}, not {self.log_likelihood_ratio}"

    def _setting(self) -> str | None:
        """The same start and costs, apart from delta."""
        world, other = self.world, self.other
        if (world.graph, world.settled, len(world.iterations)) != (other.graph, other.settled, len(other.iterations)):
            return "graph, K or the number of iterations differ"
        if not np.array_equal(world.x0, other.x0):
            return "the starts differ"
        if not _same_costs(world.costs, other.costs):
            return "the costs differ by more than a shift of the gradients"
        if not np.array_equal(other.shift, _shifted(world, self.victim, self.neighbour, self.delta)):
            return "the gradients are not shifted by delta and -delta"
        return None if world.law == other.law else "the declared laws differ"

    def _untouched(self) -> str | None:
        """Only Lambda and C of i and m, and only of iteration 0, may differ."""
        pair = [self.victim, self.neighbour]
        for k, (here, there) in enumerate(zip(self.world.iterations, self.other.iterations, strict=True)):
            for name, a, b in zip(Iteration._fields, here, there, strict=True):
                free = {"stepsize": np.arange(len(a)), "C": self.world.sender}.get(name) if k == 0 else None
                rows = slice(None) if free is None else ~np.isin(free, pair)
                if a is not b and not np.array_equal(np.broadcast_to(a, b.shape)[rows], b[rows]):
                    return f"{name} of iteration {k} differs where it must not"
        return None

    def _elsewhere(self, here: Replay, there: Replay) -> Iterator[tuple[str, Any]]:
        """Everything but y^0 of i and m and what passes between them in iteration 0: stronger than any coalition's view."""
        pair, r = [self.victim, self.neighbour], self.neighbour if self.case == "I" else self.victim
        others = ~np.isin(np.arange(self.world.graph.n), pair)
        elsewhere = ~(np.isin(self.world.sender, pair) & (self.world.receiver == r))
        free = {"x": slice(None), "y": others, "u": slice(None), "M": elsewhere}
        for name, rows in free.items():
            a, b = getattr(here, name), getattr(there, name)
            yield name, gap([a[0][rows], *a[1:]], [b[0][rows], *b[1:]])


def witness(world: World, victim: int, delta: Any, coalition: Iterable[int]) -> Witness:
    """The most plausible other world for this delta, over every admissible honest neighbour and both cases; checked."""
    i, members = _who(world, victim, coalition)
    shift = _delta(world, delta)
    found = list(_others(world, i, shift, _neighbours(world, i, members)))
    m, case, other = max(found, key=lambda c: _plausible(world, c[2], i, c[0], shift))
    return _checked(world, other, i, m, case, shift, members)


def witnesses(world: World, victim: int, delta: Any, coalition: Iterable[int]) -> list[Witness]:
    """All of them, each checked."""
    i, members = _who(world, victim, coalition)
    shift = _delta(world, delta)
    found = _others(world, i, shift, _neighbours(world, i, members))
    return [_checked(world, other, i, m, case, shift, members) for m, case, other in found]


def ranked(world: World, victim: int, delta: Any) -> list[int]:
    """The neighbours that could take up the shift, the most plausible first; nothing is replayed yet."""
    shift, edges = _delta(world, delta), world.graph.edges
    choices = [(r, "I") for s, r in edges if s == victim] + [(s, "II") for s, r in edges if r == victim]
    found = [(_plausible(world, other, victim, m, shift), m) for m, _, other in _others(world, victim, shift, choices)]
    return list(dict.fromkeys(m for _, m in sorted(found, reverse=True)))


def _checked(world: World, other: World, i: int, m: int, case: str, delta: Array, members: tuple[int, ...]) -> Witness:
    here, there = world.played, replay(other)
    difference = compared(world, here, other, there, members)
    made = Witness(world, other, i, m, case, delta, members, difference, log_ratio(world, other, i, m))
    fault = made._fault(here, there)
    if fault:
        raise NoWitness(f"float64 is too coarse for this delta: {fault}; use witness(in_fractions(world), ...), or a smaller delta")
    return made


def _who(world: World, victim: int, coalition: Iterable[int]) -> tuple[int, tuple[int, ...]]:
    if isinstance(coalition, str):
        raise NoWitness("a wire-tapper hears the edge between the victim and its neighbour, where the worlds differ")
    members, n = tuple(sorted({int(j) for j in coalition})), world.graph.n
    if not 0 <= victim < n or any(not 0 <= j < n for j in members) or not members or victim in members:
        raise InputError(f"expected a victim and a coalition without it, of the nodes 0 to {n - 1}; got {victim} and {members}")
    fault = world.fault
    if fault:
        raise NoWitness(f"Theorem 4 is about Table II, and this run does not follow it: {fault}")
    return int(victim), members


def _delta(world: World, delta: Any) -> Array:
    d = world.x0.shape[1]
    given = np.asarray(delta, dtype=object if world.exact else float)
    if given.shape not in ((), (d,)) or not (world.exact or np.isfinite(given).all()):
        raise InputError(f"delta is a finite number a coordinate, shape ({d},); got {delta!r}")
    given = np.broadcast_to(given, (d,))
    if not given.any():
        raise InputError("delta = 0 changes nothing; give a delta other than zero")
    return given


def _neighbours(world: World, i: int, members: tuple[int, ...]) -> list[tuple[int, str]]:
    """Every honest neighbour, in every case."""
    edges, honest = set(world.graph.edges), [m for m in range(world.graph.n) if m != i and m not in members]
    ends = {"I": lambda m: (i, m), "II": lambda m: (m, i)}
    found = [(m, case) for m in honest for case in CASES if ends[case](m) in edges]
    if not found:
        raise NoWitness(f"every neighbour of node {i} is in the coalition {members}: by Theorem 5 it can learn the gradient")
    return found


def _others(world: World, i: int, delta: Array, choices: list[tuple[int, str]]) -> Iterator[tuple[int, str, World]]:
    """The other worlds that exist for this delta; refused where there is none."""
    y = world.gradient(world.x0)
    if any(_vanishes(y[i], delta)):
        l = int(np.argmax(_vanishes(y[i], delta)))
        raise Excluded(
            f"delta[{l}] = {delta[l]} would make the gradient of node {i} zero there, while what it sent as Lambda y is not; "
            "for this delta Theorem 4 is false: choose another"
        )
    left = [(m, case) for m, case in choices if not any(_vanishes(y[m], -delta))]
    if not left:
        names = sorted({m for m, _ in choices})
        raise Excluded(f"this delta makes a gradient entry of every honest neighbour of node {i} zero ({names}); choose another")
    yield from ((m, case, _other(world, i, m, m if case == "I" else i, delta)) for m, case in left)


def _vanishes(y: Array, delta: Array) -> Array:
    """Where a shift that is not zero leaves zero, or only rounding."""
    least = 0 if y.dtype == object else EQUAL * np.maximum(abs(y), abs(delta))
    return (delta != 0) & (abs(y + delta) <= least)


def _other(world: World, i: int, m: int, r: int, delta: Array) -> World:
    """The construction: r is where the change cancels."""
    first, d = world.iterations[0], len(delta)
    y, shift = world.gradient(world.x0), _shifted(world, i, m, delta)
    there = world.costs(world.x0) + shift
    stepsize, C = (np.array(wide(a, d)) for a in (first.stepsize, first.C))
    moved = delta != 0
    for node, change in ((i, delta[moved]), (m, -delta[moved])):
        old, new = y[node, moved], there[node, moved]
        stepsize[node, moved] = stepsize[node, moved] * old / new
        for e in np.flatnonzero(world.sender == node):
            C[e, moved] = (C[e, moved] * old + change * int(world.receiver[e] == r)) / new
    changed = first._replace(stepsize=stepsize, C=C)
    return replace(world, shift=shift, iterations=(changed, *world.iterations[1:]))


def _shifted(world: World, i: int, m: int, delta: Array) -> Array:
    shift = np.array(world.shift)
    shift[i] = shift[i] + delta
    shift[m] = shift[m] - delta
    return shift


def _same_costs(a: Any, b: Any) -> bool:
    if isinstance(a, Quadratics) and isinstance(b, Quadratics):
        return all(p is q or np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    return a is b or a == b  # two bound methods of one problem are equal, not the same


def _plausible(world: World, other: World, i: int, m: int, delta: Array) -> float:
    ratio = log_ratio(world, other, i, m)
    return log_volume(world, i, m, delta) + (0.0 if ratio is None else ratio)
