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
ROUNDING = 1e3  # how many times n eps max(|y|, |total|, |messages|) rounding alone never reaches


class Ledger:
    """The account of one promised sum at one of `nodes` nodes."""

    def __init__(self, nodes: int, tolerance: float = TOLERANCE):
        self.nodes, self.tolerance = nodes, tolerance
        self.value: Array = 0.0  # received - sent is value + error, to twice the digits
        self.error: Array = 0.0
        self.peak = 0.0  # the largest number that went in or stood in the account
        self.shift = 0.0  # the largest difference between the two forms, in units of n eps max(|y|, |total|, |messages|)

    def settle(self, plain: Array, total: Array, sent: Array, received: Array) -> Array:
        """The result of a push. `plain` is what adding up gives; messages have the axes (edge, ...), a result (1, ...)."""
        before = largest(self.value)
        for message in sent:
            self._post(-message)
        for message in received:
            self._post(message)
        self._refuse(largest([before, largest(self.value), largest(sent), largest(received)]))
        y, rest = two_sum(total, self.value)
        y = y + (rest + self.error)
        self._compare(plain, y, largest([largest(y), largest(total), largest(sent), largest(received)]))
        return y

    def _post(self, amount: Array) -> None:
        total, rest = two_sum(self.value, amount)
        self.value, self.error = two_sum(total, self.error + rest)

    def _refuse(self, reached: float) -> None:
        self.peak = largest([self.peak, reached])
        if not EPS**2 * self.nodes * self.peak <= self.tolerance:
            raise ParameterError(
                f"messages reached {self.peak:.3g}: with {self.nodes} nodes even doubled precision would then miss the promised "
                f"sum by more than {self.tolerance:g}; take a smaller K or scale of the random start, or a smaller stepsize"
            )

    def _compare(self, plain: Array, y: Array, size: float) -> None:
        shift = largest(plain - y) / max(self.nodes * EPS * size, 1e-300)
        self.shift = max(self.shift, shift)
        if shift > ROUNDING:
            raise InvariantBroken(
                f"what was sent and kept differs from what there was by {shift:.3g} times n eps max(|y|, |total|), which no "
                "rounding explains: a column of C or B does not sum to one; check the weights"
            )


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b rounded, and exactly what rounding took away (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def largest(values: Array) -> float:
    """The largest magnitude, 0 of nothing; NaN if there is one. Nothing is copied."""
    values = np.asarray(values)
    return float(abs(max(values.max(), -values.min()))) if values.size else 0.0
