"""Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011), one text for NumPy and JAX.

A block of four 32-bit words is a pure function of a counter (four words) and a key (two words): no state, so any word of
any run can be had alone, on any machine and in any order. Words travel in uint64, whose products are exact everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF
ROUNDS = 10
LARGE = 1500  # blocks from which NumPy works in place,
FIRST = 1  # from this round on: in the first, some of the counter are single numbers still


def philox(xp: Any, counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Four words, each the broadcast shape of counter and key; all in uint64, below 2^32."""
    word = lambda value: xp.asarray(value, dtype=xp.uint64)
    m0, m1, mask, half = word(MULTIPLIERS[0]), word(MULTIPLIERS[1]), word(MASK), word(32)
    c0, c1, c2, c3 = (word(c) for c in counter)
    k0, k1 = (word(k) for k in key)
    for r in range(ROUNDS):
        if r:
            k0, k1 = (k0 + word(WEYL[0])) & mask, (k1 + word(WEYL[1])) & mask
        if xp is np and r == FIRST and c0.size > LARGE:
            return _in_place((c0, c1, c2, c3), k0, k1, r)
        p0, p1 = c0 * m0, c2 * m1
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & mask, (p0 >> half) ^ c3 ^ k1, p0 & mask
    return c0, c1, c2, c3


def _in_place(counter: tuple[Any, ...], k0: Any, k1: Any, first: int) -> tuple[Any, Any, Any, Any]:
    """The remaining rounds for large NumPy arrays: both halves of a round in one operation, and no new arrays."""
    shape = np.broadcast_shapes(*(c.shape for c in counter))
    outer, inner, product = (np.empty((2, *shape), np.uint64) for _ in range(3))
    for half, (c, d) in enumerate((counter[:2], counter[2:])):
        outer[half], inner[half] = c, d
    pair = lambda values: np.array(values, np.uint64).reshape(2, *(1,) * (len(shape) - np.ndim(values[0])), *np.shape(values[0]))
    multipliers, weyl, key, mask, half = pair(MULTIPLIERS), pair(WEYL), pair((k0, k1)), np.uint64(MASK), np.uint64(32)
    for r in range(first, ROUNDS):
        if r > first:
            key = (key + weyl) & mask
        np.multiply(outer, multipliers, out=product)
        np.right_shift(product[::-1], half, out=outer)
        np.bitwise_xor(outer, inner, out=outer)
        np.bitwise_xor(outer, key, out=outer)
        np.bitwise_and(product[::-1], mask, out=inner)
    return outer[0], inner[0], outer[1], inner[1]
