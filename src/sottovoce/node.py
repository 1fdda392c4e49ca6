"""What a step may touch: the node, and nothing else. No clock, no I/O, no randomness of its own, no god's-eye view.

Arrays have the axes (node, coordinate, run) or (edge, coordinate, run); a player of all nodes has all of them on the first
axis, a real node plays with one. The verbs:

    pull((W, v), ...)              my values go to every out-neighbour in one message, the same to each; I weigh what comes
                                   in with my row weights and add up
    push((W, v), ..., total=None)  I weigh my values for each out-neighbour with my column weights; each gets only the
                                   weighted sum. `total`: over all nodes the results sum to the totals
    exchange(out) -> in            the raw form, a payload an edge
    spread(v) -> out               the same value for each of my out-edges; hear(v) = exchange(spread(v))
    gather(in), collect(out)       sums over my in-edges, over my out-edges
    largest(in)                    the largest over my in-edges, number by number; 0 where none is above 0
    turn(in) -> out                two-way graphs: what came from j is put where it goes to j
    gradient(x), hessian(x), prox(p, q), value     my private cost; what I contribute to a mean or a sum
    weights                        what the algorithm names, drawn for this iteration, and `stepsize`
    draw(law, like, known)         anything else random
    shared(law, like) -> out, in   numbers that both ends of an edge know and nobody else: a row for each of my out-edges, and
                                   a row for each of my in-edges; `kept=label`: the same in every run under that label
    cancelling(like) -> out        a row of uniform words for each of my out-edges, which over the in-edges of each receiver sum
                                   to zero mod 2^64; every two that send to the same receiver share a stream for it
    refuse(bad, why)               stop the run, and say why, where any of `bad` holds
    contribute(v, grid) -> v       what I put into a sum that is opened to all (summing.py): v itself, unless a mechanism changes it
    k, me, degree, parameters, public, xp
    helper, to_helper              which helper I am, and which one each of my out-edges leads to; -1: a party

A tuple for v rides in the same message with the same weights and comes back as a tuple. A mechanism is a `Layer`: it
overrides some verbs and forwards the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

from .errors import ParameterError

Array = Any
Values = Any  # an array or a tuple of arrays


class Weight:
    """One number (or one a coordinate) for myself and for each of my edges: a step negates, scales and passes it on.

    `entries` is None for the identity: my own value stays as it is and nothing is sent.
    """

    __slots__ = ("cut", "entries", "factor")

    def __init__(self, entries: Array | None, cut: Callable[[Array], tuple[Array, Array]] | None, factor: Any = 1):
        self.entries, self.cut, self.factor = entries, cut, factor

    def __neg__(self) -> Weight:
        return Weight(self.entries, self.cut, -self.factor)

    def __mul__(self, number: Any) -> Weight:
        return Weight(self.entries, self.cut, self.factor * number)

    __rmul__ = __mul__

    @property
    def own(self) -> Array:
        """My weight on my own value."""
        return self.factor * (1.0 if self.entries is None or self.cut is None else self.cut(self.entries)[0])

    @property
    def edge(self) -> Array:
        """My weight on each of my edges."""
        return self.factor * (0.0 if self.entries is None or self.cut is None else self.cut(self.entries)[1])


class Weights(SimpleNamespace):
    """The weights of an iteration by name, and `stepsize`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python itself is asking
        declared = ", ".join(known for known in vars(self) if known != "stepsize") or "none"
        raise ParameterError(f"the step uses the weight {name}, which its Algorithm does not declare; declared: {declared}")


class StepNode(Protocol):
    """The protocol that every player offers to a step; see the top of this file."""

    k: Any
    xp: Any
    me: Any
    degree: Any
    coordinates: int
    parameters: Any
    public: Any
    helper: Any
    to_helper: Any
    value: Any
    keeps: bool

    @property
    def weights(self) -> Any: ...
    def weighed(self, rules: dict[str, Any]) -> Any: ...
    def pull(self, *terms: tuple[Weight, Values]) -> Any: ...
    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Any: ...
    def exchange(self, out: Values) -> Any: ...
    def spread(self, v: Values) -> Any: ...
    def hear(self, v: Values) -> Any: ...
    def gather(self, inbox: Array) -> Array: ...
    def collect(self, out: Array) -> Array: ...
    def largest(self, inbox: Array) -> Array: ...
    def turn(self, inbox: Values) -> Any: ...
    def refuse(self, bad: Array, why: str) -> None: ...
    def contribute(self, values: Array, grid: Any) -> Array: ...
    def gradient(self, x: Array) -> Array: ...
    def hessian(self, x: Array) -> Array: ...
    def prox(self, p: Array, q: Any) -> Array: ...
    def draw(
        self, law: Any, like: Array, known: str = "me", *, shared: bool = False, each: str | None = None, kept: int | None = None
    ) -> Array: ...
    def cancelling(self, like: Array) -> Array: ...
    def shared(self, law: Any, like: Array, kept: int | None = None) -> tuple[Array, Array]: ...


class Layer:
    """A node seen through a mechanism: override verbs, everything else is forwarded. `m` is the mechanism's own state."""

    def __init__(self, inner: Any, m: Any = None, parameters: Any = None):
        self.inner, self.m, self.options = inner, m, parameters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def each(f: Callable[..., Any], *values: Values) -> Values:
    """f on an array, or on each of a tuple's."""
    if isinstance(values[0], tuple):
        return tuple(f(*parts) for parts in zip(*values, strict=True))
    return f(*values)


def scaled(factor: Any, v: Values) -> Values:
    """factor * v, without the product where there is none to do."""
    if isinstance(factor, int) and factor == 1:
        return v
    return each(lambda part: factor * part, v)


def grouped(terms: tuple[tuple[Weight, Values], ...]) -> tuple[Values | None, list[tuple[Array, Values]]]:
    """What stays at home, and what is sent: terms with the same weight become one, so that less is sent and gathered."""
    home: Values | None = None
    sent: list[tuple[Array, Values]] = []
    for weight, v in terms:
        v = scaled(weight.factor, v)
        if weight.entries is None:
            home = v if home is None else each(operator.add, home, v)
        elif sent and sent[-1][0] is weight.entries:
            sent[-1] = (weight.entries, each(operator.add, sent[-1][1], v))
        else:
            sent.append((weight.entries, v))
    return home, sent


def said(terms: tuple[tuple[Weight, Values], ...]) -> list[tuple[Any, Any, Values]]:
    """What a pull sends, (weight, factor, value): a value goes out as it is, its sign and factor stay with whoever weighs it;
    values with the same weight go out as their sum."""
    groups: list[list[tuple[Weight, Values]]] = []
    for weight, v in terms:
        if weight.entries is not None:
            if groups and groups[-1][-1][0].entries is weight.entries:
                groups[-1].append((weight, v))
            else:
                groups.append([(weight, v)])
    plain = lambda group: len(group) == 1 and isinstance(group[0][0].factor, int | float)
    return [
        (g[0][0].entries, g[0][0].factor, g[0][1]) if plain(g) else (g[0][0].entries, 1, grouped(tuple(g))[1][0][1]) for g in groups
    ]
