"""The words of a verdict, their order, and how evidence becomes one of them.

    READ         an attack reproduced it; the error stands beside it
    READ UP TO   the same up to a sign, a scale, as the sum over s nodes, or all records of s nodes but not whose they are
    NARROWED     known better than the declared prior by at least one bit a coordinate
    WITNESSED    another world with the same view was built and replayed
    NOT DECIDED  none of these: the absence of an attack is not protection

A stronger word hides the weaker: the list is in that order. How much is protected rises READ < READ UP TO < NARROWED < NOT
DECIDED < WITNESSED. A coalition inherits what any of its members can do alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .attack import Estimate

WORDS = ("READ", "READ UP TO", "NARROWED", "WITNESSED", "NOT DECIDED")
PROTECTION = {"READ": 0, "READ UP TO": 1, "NARROWED": 2, "NOT DECIDED": 3, "WITNESSED": 4}
EXACT = 1e-6  # a relative error below which a number counts as read
RECORD = 1e-3  # and a record, which is known long before its last digit
ALIKE = 1e-9  # errors below this differ by rounding only: the first attack that has one stands
BIT = 0.5  # an error that is one bit a coordinate better than guessing zero


@dataclass(frozen=True)
class Verdict:
    """What one adversary learns of one asset of one node."""

    node: int
    asset: str
    adversary: tuple[int, ...] | str  # a coalition, or "wire"
    verdict: str
    evidence: dict[str, Any] = field(default_factory=dict)  # attack, error, text, seed, command

    @property
    def protection(self) -> int:
        return PROTECTION[self.verdict]


def word_for(estimate: Estimate, error: float, guessed: float = 1.0) -> str | None:
    """What an estimate with this error amounts to; None where it is no better than a guess, whose error is `guessed`."""
    if not np.isfinite(error) or error > BIT * min(guessed, 1.0):
        return None
    partial = estimate.up_to is not None or len(estimate.nodes) > 1
    if error <= (RECORD if estimate.asset == "record" else EXACT):
        return "READ UP TO" if partial else "READ"
    return None if partial else "NARROWED"


def strongest(verdicts: list[Verdict]) -> Verdict:
    """The one that stands: the first in the order of words; among equals the sum over the fewest nodes, then the smallest error,
    then the first attack."""
    fewest = lambda v: len(v.evidence.get("nodes", ()))
    return min(verdicts, key=lambda v: (WORDS.index(v.verdict), fewest(v), max(v.evidence.get("error", np.inf), ALIKE)))
