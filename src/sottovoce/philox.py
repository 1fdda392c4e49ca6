"""Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011), one text for NumPy and JAX.

A block of four 32-bit words is a pure function of a counter (four words) and a key (two words): no state, so any word of
any run can be had alone, on any machine and in any order. Words travel in uint64, whose products are exact everywhere.
"""

from __future__ import annotations

from typing import Any

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF
ROUNDS = 10


def philox(xp: Any, counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Four words, each the broadcast shape of counter and key; all in uint64, below 2^32."""
    word = lambda value: xp.asarray(value, dtype=xp.uint64)
    m0, m1, mask, half = word(MULTIPLIERS[0]), word(MULTIPLIERS[1]), word(MASK), word(32)
    c0, c1, c2, c3 = (word(c) for c in counter)
    k0, k1 = (word(k) for k in key)
    for r in range(ROUNDS):
        if r:
            k0, k1 = (k0 + word(WEYL[0])) & mask, (k1 + word(WEYL[1])) & mask
        p0, p1 = c0 * m0, c2 * m1
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & mask, (p0 >> half) ^ c3 ^ k1, p0 & mask
    return c0, c1, c2, c3
