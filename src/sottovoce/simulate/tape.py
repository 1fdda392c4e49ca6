"""What crossed the edges and what was drawn in one iteration, noted while a step is played.

The eager player keeps references and works the messages out when they are asked for; inside a compiled function they are
worked out at once and handed back as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..layout import Layout
from ..node import grouped, scaled

Array = Any


class Drawn(NamedTuple):
    """A draw and who knows it: "me", "edge", "pair" or "all"; `owner` is "receiver", "sender", "node", "edge" or "co-senders"."""

    name: str
    owner: str
    known: str
    law: str
    value: Array


class Tape:
    """The notes of one iteration: references, so that noting costs next to nothing."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, tuple[tuple[Any, Any], ...]]] = []
        self.weighings: list[tuple[dict[str, Any], dict[str, Array]]] = []  # rules, and what came of them
        self.others: list[Drawn] = []
        self.states: Any = None

    def message(self, verb: str, terms: tuple[tuple[Any, Any], ...]) -> None:
        self.messages.append((verb, terms))

    def weights(self, rules: dict[str, Any], found: dict[str, Array]) -> None:
        self.weighings.append((rules, found))

    def draw(self, name: str, each: str, known: str, law: Any, value: Array) -> None:
        self.others.append(Drawn(name, each, known, str(law), value))

    @property
    def draws(self) -> list[Drawn]:
        """Everything drawn; a weight that is the same as another, or the identity, was not."""
        weights = [
            Drawn(name, _OWNERS.get(rule.side, "receiver"), rule.known, str(rule.law or "constant"), found[name])
            for rules, found in self.weighings
            for name, rule in rules.items()
            if rule is not None and not isinstance(rule, str)
        ]
        return weights + self.others

    def sent(self, xp: Any, layout: Layout) -> list[Array]:
        """The payload of every edge in each exchange: (edge, numbers, run)."""
        return [payload(xp, layout, verb, terms) for verb, terms in self.messages]


_OWNERS = {"column": "sender"}  # who chose a weight; rows, and what is both, the receiver


class Notes:
    """A tape whose messages are worked out already: what a compiled function hands back."""

    def __init__(self, sent: list[Array], draws: list[Drawn], states: Any):
        self.messages, self.draws, self.states = sent, draws, states

    def sent(self, xp: Any, layout: Layout) -> list[Array]:
        return self.messages

    @classmethod
    def joined(cls, notes: Sequence[Any], runs: int) -> Notes:
        """The notes of several batches of runs side by side, the first `runs` of them."""
        join = lambda *arrays: arrays[0] if arrays[0].shape[-1] == 1 < runs else np.concatenate(arrays, -1)[..., :runs]
        first = notes[0]
        sent = [join(*parts) for parts in zip(*(n.messages for n in notes), strict=True)]
        draws = [d._replace(value=join(*(n.draws[i].value for n in notes))) for i, d in enumerate(first.draws)]
        states = type(first.states)(*(join(*leaves) for leaves in zip(*(n.states for n in notes), strict=True)))
        return cls(sent, draws, states)


def payload(xp: Any, layout: Layout, verb: str, terms: tuple[tuple[Any, Any], ...]) -> Array:
    """What one message holds. Pulled: the values, side by side. Pushed: their weighted sum, another for each edge."""
    if verb == "exchange":
        return side_by_side(xp, list(parts(terms[0][1])))
    if verb == "pull":
        return side_by_side(xp, [part for v in said(terms) for part in parts(v)])[layout.sender]
    sent = grouped(terms)[1]
    weights = [xp.asarray(w)[layout.edges] for w, _ in sent]
    columns = zip(*(parts(v) for _, v in sent), strict=True)
    return side_by_side(xp, [sum(w * v[layout.sender] for w, v in zip(weights, c, strict=True)) for c in columns])


def said(terms: tuple[tuple[Any, Any], ...]) -> list[Any]:
    """The values of a pull as they are sent: each as it is, or one sum where weights are the same."""
    groups: list[list[tuple[Any, Any]]] = []
    for w, v in terms:
        if w.entries is None:
            continue
        if groups and groups[-1][-1][0].entries is w.entries:
            groups[-1].append((w, v))
        else:
            groups.append([(w, v)])
    alone = lambda w, v: v if isinstance(w.factor, int | float) else scaled(w.factor, v)  # the receiver knows a plain number
    return [alone(*g[0]) if len(g) == 1 else grouped(tuple(g))[1][0][1] for g in groups]


def parts(v: Any) -> tuple[Array, ...]:
    """A value, or a tuple's."""
    return v if isinstance(v, tuple) else (v,)


def side_by_side(xp: Any, values: list[Array]) -> Array:
    """Values of one message, one after the other along the coordinates."""
    return values[0] if len(values) == 1 else xp.concatenate(values, axis=-2)
