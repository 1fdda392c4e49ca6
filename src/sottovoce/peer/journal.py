"""What a step has drawn and computed in the iteration that is running, so that it can be played again from its start.

A step that is played again, after a wait or after a crash, asks the same questions in the same order. What its draws and
its cost answered before comes from the journal: nothing is drawn a second time, and a stochastic gradient stays what it was.
Numbers that others can work out too (`between`, `common`) need no journal: they are the same each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Answers = tuple[Array, ...]


class Journal:
    """The answers of one iteration, in the order in which they were asked for."""

    def __init__(self, answers: list[Answers] | None = None, phases: int = 0):
        self.answers: list[Answers] = answers or []
        self.phases = phases  # how many messages of this iteration are on the disk
        self.written = len(self.answers)  # how many of the answers are
        self.at = 0

    def rewind(self) -> None:
        """The step begins again."""
        self.at = 0

    def remember(self, ask: Callable[[], Answers]) -> Answers:
        """The answer of the last time, or a new one. It is copied: a step may write into what it was given."""
        if self.at == len(self.answers):
            self.answers.append(tuple(np.array(part) for part in ask()))
        self.at += 1
        return tuple(part.copy() for part in self.answers[self.at - 1])

    def fresh(self) -> list[Answers]:
        """The answers that are not on the disk yet; they are after this."""
        found, self.written = self.answers[self.written :], len(self.answers)
        return found


class JournalDraws:
    """A node's draws through its journal."""

    runs = 1

    def __init__(self, draws: Any):
        self.draws, self.journal = draws, Journal()
        self.between, self.common = draws.between, draws.common

    def four(self, *arguments: Any, **named: Any) -> Answers:
        return self.journal.remember(lambda: self.draws.four(*arguments, **named))

    def kept(self, label: int) -> Any:
        """Known to others too, or to all: the same each time."""
        return self.draws.kept(label)


class JournalCost:
    """A node's cost through its journal."""

    def __init__(self, family: Any):
        self.family, self.journal = family, Journal()

    def gradient(self, *arguments: Any) -> Array:
        return self.journal.remember(lambda: (self.family.gradient(*arguments),))[0]

    def hessian(self, *arguments: Any) -> Array:
        return self.journal.remember(lambda: (self.family.hessian(*arguments),))[0]

    def prox(self, *arguments: Any) -> Array:
        return self.journal.remember(lambda: (self.family.prox(*arguments),))[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.family, name)
