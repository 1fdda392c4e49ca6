"""One node that notes what it sends, hears and draws in an iteration: its part of a transcript, and nothing of anybody else's.

Noting asks for nothing: a weight that the step does not use is not drawn. A weight that a node drew is known to that node alone
("me") whatever the method takes for known, since nobody is told; a number that several know is noted by each of them; a weight
that follows from the graph is public and worked out again where the part is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..draws import UNIT, WORDS
from ..laws import law as named_law
from ..layout import Layout
from ..simulate.onenode import OneNode
from ..simulate.own import Own
from ..simulate.tape import parts, side_by_side
from ..weights import Rule

Array = np.ndarray
PUBLIC = "all"


class Note(NamedTuple):
    """A draw of this node's, as a transcript has it (`transcript.Draw`), with the rows that it knows; None: all of them."""

    name: str
    owner: str
    known: str
    law: str
    rows: Array | None
    value: Array | None  # None: a public weight


class NotingNode(OneNode):
    """One node in iteration k; `messages` holds (out, in) of each exchange, `notes` what was drawn."""

    def __init__(self, own: Own, k: int, kind: int, layout: Layout):
        super().__init__(own, k, kind)
        self.messages: list[tuple[Array, Array]] = []
        self.outs, self.ins = edges_of(layout, own.me)
        self._weighed: list[tuple[dict[str, Any], Any]] = []
        self._drawn: list[Note] = []
        self._last: tuple[Array, Array, Array] | None = None  # sender, receiver and numbers of what was drawn last

    # weights -----------------------------------------------------------------------------------------------------

    def weighed(self, rules: Any, own: bool = False) -> Any:
        found = super().weighed(rules, own)
        self._weighed.append((self.own.rules if rules is None else rules, found))
        return found

    @property
    def notes(self) -> list[Note]:
        """Everything drawn so far; of a weight that was asked for twice, what came first."""
        found: dict[str, Note] = {}
        for rules, weights in self._weighed:
            for name, rule in rules.items():
                note = self._weight(name, rule, getattr(weights, name).entries) if isinstance(rule, Rule) else None
                if note is not None:
                    found.setdefault(name, note)
        return [*found.values(), *self._drawn]

    def _weight(self, name: str, rule: Rule, pair: Any) -> Note | None:
        owner, law = ("sender" if rule.side == "column" else "receiver"), str(rule.law or "constant")
        table = self.own.tables.get(name)
        if rule.law is None and rule.known == PUBLIC and table is not None and all(part is not None for part in table):
            return Note(name, owner, PUBLIC, law, None, None)
        sides = ((side, self.own.column if side == "column" else self.own.row) for side in ("row", "column"))
        used = [(entries.index, vars(pair)[side]) for side, entries in sides if side in vars(pair)]
        if not used:
            return None
        rows, values = (np.concatenate(column) for column in zip(*used, strict=True))
        return Note(name, owner, "me" if rule.known == PUBLIC else rule.known, law, rows, values)

    def draw_stepsize(self, law: Any) -> Array:
        value = super().draw_stepsize(law)
        self._note("stepsize", "node", "me", law, np.array([self.own.me]), value)
        return value

    # messages ----------------------------------------------------------------------------------------------------

    def _cross(self, out: tuple[Array, ...]) -> tuple[Array, ...]:
        came = super()._cross(out)
        self.messages.append((_beside(out), _beside(came)))
        return came

    # draws -------------------------------------------------------------------------------------------------------

    def draw(
        self, law: Any, like: Array, known: str = "me", *, shared: bool = False, each: str | None = None, kept: int | None = None
    ) -> Array:
        value = super().draw(law, like, known, shared=shared, each=each, kept=kept)
        owner = each or ("edge" if known in ("edge", "pair") else "node")
        rows = None if shared or kept is not None else self.outs if owner == "edge" else np.array([self.own.me])
        self._note(self._latest, owner, known, law, rows, value)
        return value

    def shared(self, law: Any, like: Array, kept: int | None = None) -> tuple[Array, Array]:
        out, inbox = super().shared(law, like, kept)
        self._note(self._latest, "edge", "edge", law, np.concatenate([self.outs, self.ins]), np.concatenate([out, inbox]))
        return out, inbox

    def cancelling(self, like: Array) -> Array:
        words, streams = super().cancelling(like), self.own.streams
        if streams is not None and streams.most and self._last is not None:
            first, second, value = self._last
            self._note(self._latest, "co-senders", "pair", WORDS, np.stack([first, second], 1), value)
        return words

    def _numbers(
        self, who: str, call: int, law: Any, sender: Array, receiver: Array, like: Array, kept: int | None = None
    ) -> Array:
        value = super()._numbers(who, call, law, sender, receiver, like, kept)
        self._last = np.asarray(sender), np.asarray(receiver), value
        return value

    @property
    def _latest(self) -> str:
        return f"draw-{self.calls - 1}"

    def _note(self, name: str, owner: str, known: str, law: Any, rows: Array | None, value: Array) -> None:
        law = law if law in (UNIT, WORDS) else named_law(law)
        self._drawn.append(Note(name, owner, known, str(law), rows, np.array(value)))


def edges_of(layout: Layout, me: int) -> tuple[Array, Array]:
    """The numbers of a node's out-edges and of its in-edges, in the order in which it has them."""
    return np.flatnonzero(layout.sender == me), np.flatnonzero(layout.receiver == me)


def _beside(values: tuple[Array, ...]) -> Array:
    """The parts of one message side by side, copied."""
    return np.array(side_by_side(np, list(parts(values))))


def states_of(state: Any) -> Iterator[tuple[str, Array]]:
    """A state's arrays by name."""
    return ((name, np.asarray(getattr(state, name))) for name in state._fields)
