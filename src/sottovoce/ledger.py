"""A node's account of what it sent and received: it keeps a promised sum where nobody sees all nodes.

A push promises that over all nodes the results sum to the totals. Added up as it comes, y = own share + received, rounding
breaks that once and for ever: the largest message of a random start leaves eps times itself behind. Instead

    y = total + received - sent

where `received - sent` runs since the first iteration, in doubled precision. A message that one node counts as sent
another counts as received, to the bit, so over all nodes only the totals remain. In exact arithmetic the two forms are
equal, as long as the columns sum to one; if they differ by more than rounding, that is an error, never something to repair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InvariantBroken, ParameterError

Array = Any
EPS = float(np.finfo(float).eps)
TOLERANCE = 1e-9  # how far the sum over all nodes may be from the promised one
BLOCK = 8192  # numbers that are settled at a time: they and what becomes of them stay in the cache
ROUNDING = 1e3  # how many times n eps max(|y|, |total|, |messages|) rounding alone never reaches


class Ledger:
    """The account of one promised sum at one of `nodes` nodes."""

    def __init__(self, nodes: int, tolerance: float = TOLERANCE):
        self.nodes, self.tolerance = nodes, tolerance
        self.value: Array = None  # received - sent is value + error, to twice the digits; None: nothing yet
        self.error: Array = None
        self.peak = 0.0  # the largest number that went in or stood in the account
        self.shift = 0.0  # the largest difference between the two forms, in units of n eps max(|y|, |total|, |messages|)

    def settle(self, plain: Array, total: Array, sent: Array, received: Array) -> Array:
        """The result of a push. `plain` is what adding up gives; messages have the axes (edge, ...), a result (1, ...)."""
        size, many = plain.size, len(sent) + len(received)
        given = [part.reshape(len(part), size) for part in (plain, total, sent, received)]
        before = [np.zeros(size)] * 2 if self.value is None else [self.value.reshape(size), self.error.reshape(size)]
        y, self.value, self.error = after = np.empty((3, *plain.shape))
        after, room = after.reshape(3, size), np.empty((4, many + 1, min(size, BLOCK)))
        loudest = np.zeros(5)
        for at in range(0, size, BLOCK):
            here = slice(at, at + BLOCK)
            parts = [part[:, here] for part in given], [part[here] for part in before], after[:, here]
            np.maximum(loudest, _settled(*parts, room[:, :, : size - at]), out=loudest)
        promised, totals, messages, account, apart = loudest.tolist()
        self._refuse(max(account, messages))  # what comes first here is NaN if anything is, and stays what it is
        self._compare(apart, max(promised, totals, messages))
        return y

    def _refuse(self, reached: float) -> None:
        self.peak = self.peak if reached <= self.peak else reached  # which may be NaN
        if not EPS**2 * self.nodes * self.peak <= self.tolerance:
            raise ParameterError(
                f"messages reached {self.peak:.3g}: with {self.nodes} nodes even doubled precision would then miss the promised "
                f"sum by more than {self.tolerance:g}; take a smaller K or scale of the random start, or a smaller stepsize"
            )

    def _compare(self, apart: float, size: float) -> None:
        shift = apart / max(self.nodes * EPS * size, 1e-300)
        self.shift = max(self.shift, shift)
        if shift > ROUNDING:
            raise InvariantBroken(
                f"what was sent and kept differs from what there was by {shift:.3g} times n eps max(|y|, |total|), which no "
                "rounding explains: a column of C or B does not sum to one; check the weights"
            )


def _settled(given: list[Array], before: list[Array], after: Array, room: Array) -> tuple[float, ...]:
    """One block: y and the account after it go into `after`. The largest magnitudes: of y, the total, the messages, the account,
    and the difference between the two forms."""
    ((plain,), (total,), sent, received), (value, error), (y, new, rest) = given, before, after
    sums, amounts, away, spare = room[0], *room[1:, 1:]
    np.negative(sent, out=amounts[: len(sent)])
    amounts[len(sent) :] = received
    sums[0] = value
    for i, amount in enumerate(amounts):
        np.add(sums[i], amount, out=sums[i + 1])
    lost = np.add.reduce(rounded_away(sums[:-1], amounts, sums[1:], away, spare), 0)
    lost += error
    np.add(sums[-1], lost, out=new)
    rounded_away(sums[-1], lost, new, rest, room[0, 0])
    np.add(total, new, out=y)
    rounded_away(total, new, y, lost, room[0, 0])
    lost += rest
    y += lost
    np.subtract(plain, y, out=lost)
    return largest(y), largest(total), largest(amounts), largest(new), largest(lost)


def rounded_away(a: Array, b: Array, total: Array, away: Array, spare: Array) -> Array:
    """What a + b has more than its rounded total, exactly (Knuth); into `away`."""
    np.subtract(total, a, out=spare)
    np.subtract(total, spare, out=away)
    np.subtract(a, away, out=away)
    np.subtract(b, spare, out=spare)
    return np.add(away, spare, out=away)


def largest(values: Array) -> float:
    """The largest magnitude, 0 of nothing; NaN if there is one. Nothing is copied."""
    return float(max(np.maximum.reduce(values, None), -np.minimum.reduce(values, None))) if values.size else 0.0
