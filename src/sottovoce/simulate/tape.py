"""What crossed the edges and what was drawn in one iteration, noted while a step is played.

The eager player keeps references and works the messages out when they are asked for; inside a compiled function they are
worked out at once and handed back as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..layout import Layout

Array = Any


class Drawn(NamedTuple):
    """A draw and who knows it: "me", "edge", "pair" or "all"; `owner` is "receiver", "sender" or "node" or "edge"."""

    name: str
    owner: str
    known: str
    law: str
    value: Array


class Tape:
    """The notes of one iteration."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, list[tuple[Array | None, Any]]]] = []
        self.draws: list[Drawn] = []
        self.states: Any = None

    def message(self, verb: str, terms: list[tuple[Array | None, Any]]) -> None:
        self.messages.append((verb, terms))

    def weights(self, weigher: Any, found: dict[str, Array], rules: dict[str, Any] | None) -> None:
        own = rules is None
        for name, rule in (weigher.rules if own else rules or {}).items():
            if isinstance(rule, str) or rule is None:
                continue
            owner = "sender" if rule.side == "column" else "receiver"
            law = "constant" if rule.law is None else str(rule.law)
            self.draws.append(Drawn(name, owner, rule.known, law, found[name]))

    def draw(self, call: int, each: str, known: str, law: Any, value: Array) -> None:
        self.draws.append(Drawn(f"draw-{call}", each, known, str(law), value))

    def sent(self, xp: Any, layout: Layout) -> list[Array]:
        """The payload of every edge in each exchange: (edge, numbers, run)."""
        return [payload(xp, layout, verb, terms) for verb, terms in self.messages]


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


def payload(xp: Any, layout: Layout, verb: str, terms: list[tuple[Array | None, Any]]) -> Array:
    """What one message holds. Pulled: the values, side by side. Pushed: their weighted sum, another for each edge."""
    if verb == "pull":
        return side_by_side(xp, [part for _, v in terms for part in parts(v)])[layout.sender]
    if verb == "push":
        values = [
            sum(xp.asarray(w)[layout.edges] * v[layout.sender] for w, v in zip([w for w, _ in terms], column, strict=True))
            for column in zip(*(parts(v) for _, v in terms), strict=True)
        ]
        return side_by_side(xp, values)
    return side_by_side(xp, list(parts(terms[0][1])))


def parts(v: Any) -> tuple[Array, ...]:
    """A value, or a tuple's."""
    return v if isinstance(v, tuple) else (v,)


def side_by_side(xp: Any, values: list[Array]) -> Array:
    """Values of one message, one after the other along the coordinates."""
    return values[0] if len(values) == 1 else xp.concatenate(values, axis=-2)
