"""Numbers as integers: fixed point with a stated scale and range, for ciphers and for sums mod 2^64.

    x is held as the integer nearest to x 2^bits, |x| <= largest; a negative one as its complement, mod N or mod 2^64

Inside the range the error is at most 2^-(bits + 1), and sums and multiples of the integers are exact. What lies outside is to be
refused before: node.refuse(fixed.outside(x), fixed.refusal) names the node and the iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class Fixed:
    """Fixed-point numbers of `bits` bits after the point, at most `largest` in size."""

    bits: int
    largest: float

    @classmethod
    def words(cls, bits: int, terms: int) -> Fixed:
        """The range in which so many numbers can be added up mod 2^64 and still be told apart."""
        return cls(bits, (2.0 ** (63 - bits) - 1) / terms)

    def outside(self, x: Array) -> Array:
        """Where a number leaves the range, or is none."""
        return ~(abs(x) <= self.largest)

    @property
    def refusal(self) -> str:
        """Why such numbers are refused, and what to change."""
        return (
            f"a number does not fit the fixed-point range of {self.largest:g} either way ({self.bits} bits after the point); "
            "take a smaller stepsize, other units, or fewer fraction_bits (for Paillier: a larger `largest`)"
        )

    def integers(self, x: np.ndarray) -> np.ndarray:
        """Python integers, of any size, in an array of the same shape; NumPy only."""
        scaled = np.rint(x * 2.0**self.bits)
        return np.array([int(v) for v in scaled.flat], object).reshape(scaled.shape)

    def to_words(self, xp: Any, x: Array) -> Array:
        """uint64 mod 2^64, the same bits in NumPy and in JAX."""
        return xp.rint(x * 2.0**self.bits).astype(xp.int64).astype(xp.uint64)

    def from_words(self, xp: Any, words: Array) -> Array:
        """The numbers again, or their sum."""
        return words.astype(xp.int64).astype(xp.float64) * 2.0**-self.bits


def signed(residue: int, modulus: int) -> int:
    """The integer of least size that leaves this residue: negative from half the modulus on."""
    return residue - modulus if residue > modulus // 2 else residue


def real(integers: np.ndarray, bits: int) -> np.ndarray:
    """Integers at so many bits after the point as float64, rounded once."""
    return (integers / 2**bits).astype(float)
