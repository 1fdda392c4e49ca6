"""Real numbers as whole multiples of a step, in words mod 2^64: sums are exact, and a uniform word hides one perfectly.

A number takes one word or two (64 or 128 bits). The step is the power of two that leaves room for the sum over all nodes:

    2^-(64 words - 2) * n * range  <=  step  <  2^-(64 words - 3) * n * range

so no sum of shares within the range ever wraps; a share outside is refused, never cut off. Inside, a number is a list of digits of
32 bits in int64, the lowest first: they may be added up over up to 2^31 nodes or edges, signs and all, before `settled` carries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Array = Any
BITS = 32  # of a digit
LOW = 2**BITS - 1
Digits = list[Array]


@dataclass(frozen=True)
class FixedPoint:
    """How `nodes` nodes write numbers of at most `range`."""

    nodes: int
    range: float
    words: int = 2

    @property
    def step(self) -> float:
        """The unit of the last place."""
        return 2.0**self._exponent

    @property
    def _exponent(self) -> int:
        return math.frexp(self.nodes * self.range)[1] + 2 - 64 * self.words

    def outside(self, xp: Any, values: Array) -> Array:
        """Which values do not fit; NaN does not."""
        return ~(xp.abs(values) <= self.range)

    @property
    def refusal(self) -> str:
        """What to say then."""
        return (
            f"a share is larger than {self.range:g}, the range that was agreed for the fixed point, or not a number; scale the "
            f"data, or agree on a larger range (the step, now {self.step:.2g}, grows with it)"
        )

    def digits(self, xp: Any, values: Array) -> Digits:
        """Values, rounded to the step; the sign is on every digit."""
        left = xp.rint(xp.abs(values) * 2.0**-self._exponent)  # above 2^53 it is a whole number already
        sign = xp.where(values < 0, -1, 1).astype(xp.int64)
        found: Digits = []
        for k in range(2 * self.words - 1, -1, -1):
            digit = xp.floor(left * 2.0 ** -(BITS * k))
            left = left - digit * 2.0 ** (BITS * k)
            found.append(sign * digit.astype(xp.int64))
        return found[::-1]

    def values(self, xp: Any, digits: Digits) -> Array:
        """Settled digits as numbers again, those above the middle negative; exact up to the last bit of a float64."""
        negative = digits[-1] >= 2 ** (BITS - 1)
        turned = settled(xp, [-d for d in digits])
        size = [xp.where(negative, t, d).astype(xp.float64) for t, d in zip(turned, digits, strict=True)]
        pairs = [size[k + 1] * 2.0**BITS + size[k] for k in range(0, len(size), 2)]
        whole = pairs[0] if len(pairs) == 1 else pairs[1] * 2.0**64 + pairs[0]
        return xp.where(negative, -whole, whole) * self.step


def settled(xp: Any, digits: Digits) -> Digits:
    """Carried, each from 0 to 2^32 - 1; what leaves the last digit is dropped: that is the modulus."""
    found, carry = [], 0
    for digit in digits:
        total = digit + carry
        found.append(total & LOW)
        carry = total >> BITS
    return found


def packed(xp: Any, digits: Digits) -> Array:
    """Settled digits as words, side by side along the coordinates: (..., words * m, run), the lowest words first."""
    halves = [d.astype(xp.uint64) for d in digits]
    return xp.concatenate([halves[k] | (halves[k + 1] << xp.asarray(BITS, xp.uint64)) for k in range(0, len(halves), 2)], axis=-2)


def unpacked(xp: Any, words: Array, count: int) -> Digits:
    """Words of numbers of `count` words as digits."""
    low, bits = xp.asarray(LOW, xp.uint64), xp.asarray(BITS, xp.uint64)
    return [half.astype(xp.int64) for part in cut(words, count) for half in (part & low, part >> bits)]


def cut(words: Array, count: int) -> list[Array]:
    """As many equal parts, which lie side by side along the coordinates."""
    size = words.shape[-2] // count
    return [words[..., k * size : (k + 1) * size, :] for k in range(count)]
