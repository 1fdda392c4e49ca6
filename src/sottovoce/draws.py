"""Where randomness comes from. A step asks its node for a draw and cannot tell which of the two sources answers.

`CounterDraws(seed, runs)`: simulation. Every number is a function of (seed, kind of draw, sender, receiver, iteration,
coordinate, run), so it is the same on every player, in any order, batch or chunk, and run r of a thousand can be played
alone. `OsDraws()`: the operating system's randomness, which cannot be repeated and takes no seed; the only source of a
deployment for what one node keeps to itself.

`four` answers for one node alone. What two nodes know is asked of `between`, what all know of `common`: a simulation has one seed
for all three, a deployment a key for each pair and a public seed, which its own source adds.

Both answer in blocks: one block is four numbers for each (iteration, entry, coordinate, run), an entry being an edge or,
with sender = receiver, a node. The arrays come out with the axes (iteration,) entry, coordinate, run.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Protocol

import numpy as np

from .errors import ParameterError
from .laws import Law, sample, unit
from .philox import MASK, philox

UNIT, WORDS = "unit", "words"  # beside the laws: uniforms in (0, 1), and uniform 64-bit words
BLOCK = 1 << 14  # blocks of Philox at a time in NumPy, so that its ten rounds stay in the cache


class Stream(NamedTuple):
    """What a draw is for: draws of different streams have nothing in common."""

    kind: int
    call: int = 0


START, WEIGHTS, STEPSIZE, STEP, SETUP, KEPT = range(6)  # kinds of streams


class Draws(Protocol):
    """What a player asks of a source."""

    runs: Any  # the numbers of the runs, or how many there are

    def four(
        self, xp: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int,
        which: tuple[int, ...] = (0, 1, 2, 3),
    ) -> tuple[Any, ...]: ...  # fmt: skip

    def kept(self, label: int) -> Draws: ...  # numbers that outlast a run, by the label they were once given

    between: Any  # the same call, for numbers that sender and receiver both know
    common: Any  # the same call, for numbers that everybody knows


class CounterDraws:
    """Draws that can be repeated: a pure function of the seed and of what they are for."""

    def __init__(self, seed: int = 0, runs: Any = 1):
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
            raise ParameterError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed!r}")
        numbers = np.arange(runs, dtype=np.uint64) if np.ndim(runs) == 0 else np.asarray(runs, dtype=np.uint64)
        self.seed: Any = np.uint64(int(seed))
        self.runs: Any = numbers

    @classmethod
    def traced(cls, seed: Any, runs: Any) -> CounterDraws:
        """The same inside a compiled function, where seed and runs are its arguments."""
        draws = cls.__new__(cls)
        draws.seed, draws.runs = seed, runs
        return draws

    def four(
        self, xp: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int,
        which: tuple[int, ...] = (0, 1, 2, 3),
    ) -> tuple[Any, ...]:  # fmt: skip
        """Those of the four numbers of each block that `which` names. Iteration -1 is the set-up."""
        key = self._key(xp, stream, coordinates)
        k = xp.asarray(k)
        when = (k + 1).astype(xp.uint64)
        when = when[:, None, None, None] if k.ndim else when
        counter = (_index(xp, sender), _index(xp, receiver), when, self.runs)
        if xp is np:
            return _in_pieces(law, counter, key, which)
        words = philox(xp, counter, key)
        return tuple(from_words(xp, law, words, w) for w in which)

    between = common = four

    def kept(self, label: int) -> CounterDraws:
        """The same numbers in every run, whatever its seed."""
        return CounterDraws(label)

    def _key(self, xp: Any, stream: Stream, coordinates: int) -> tuple[Any, Any]:
        """A key for each coordinate: SplitMix64 (Steele, Lea, Flood 2014) of seed and place, a bijection for each seed."""
        word = lambda value: xp.asarray(value, dtype=xp.uint64)
        place = xp.arange(1, coordinates + 1, dtype=xp.uint64) + word((stream.kind << 56) + (stream.call << 40))
        z = self.seed + place * word(0x9E3779B97F4A7C15)
        z = (z ^ (z >> word(30))) * word(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> word(27))) * word(0x94D049BB133111EB)
        z = (z ^ (z >> word(31)))[:, None]
        return z & word(MASK), z >> word(32)


def _index(xp: Any, nodes: Any) -> Any:
    """Node numbers along the entries; in NumPy the same memory, since they are not negative."""
    nodes = xp.asarray(nodes)
    same = xp is np and nodes.dtype == np.int64
    return (nodes.view(np.uint64) if same else nodes.astype(xp.uint64))[:, None, None]


def _in_pieces(law: Law | str, counter: tuple[Any, ...], key: Any, which: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """The same block by block along the iterations and the entries."""
    shape = np.broadcast_shapes(*(np.shape(c) for c in counter), key[0].shape)
    if np.prod(shape, dtype=float) <= 2 * BLOCK:
        words = philox(np, counter, key)
        return tuple(from_words(np, law, words, w) for w in which)
    out = tuple(np.empty(shape, np.uint64 if law == WORDS else float) for _ in which)
    sender, receiver, when, runs = counter
    entries = max(1, BLOCK // int(shape[-1] * shape[-2]))
    together = max(1, entries // len(sender))  # iterations that fit in one piece
    for t in range(0, shape[0] if when.ndim else 1, together):
        for e in range(0, len(sender), entries):
            piece = (slice(t, t + together), slice(e, e + entries)) if when.ndim else (slice(e, e + entries),)
            times = when[piece[0]] if when.ndim else when
            words = philox(np, (sender[piece[-1]], receiver[piece[-1]], times, runs), key)
            for target, w in zip(out, which, strict=True):
                if law == UNIT:
                    unit(np, words[w], target[piece])
                else:
                    target[piece] = from_words(np, law, words, w)
    return out


def from_words(xp: Any, law: Law | str, words: Any, which: int) -> Any:
    """One of the four numbers of each block, from its four 32-bit words: the same bits on every machine."""
    if law == UNIT:
        return unit(xp, words[which])
    if law == WORDS:  # sixty-four bits from two words
        return words[which] | (words[(which + 1) % 4] << xp.asarray(32, xp.uint64))
    assert isinstance(law, Law)
    return sample(xp, law, words[which])


class OsDraws:
    """Draws from the operating system: secret, never the same twice, full float64 resolution. There is no seed."""

    runs = 1

    def four(
        self, xp: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int,
        which: tuple[int, ...] = (0, 1, 2, 3),
    ) -> tuple[Any, ...]:  # fmt: skip
        """Fresh numbers of the shape that `CounterDraws` would give; what they are for does not matter here."""
        if xp is not np:
            raise ParameterError("the operating system's randomness cannot be compiled; use the eager player")
        shape = (*np.shape(k), len(np.atleast_1d(sender)), coordinates, 1)
        return tuple(self._number(law, shape) for _ in which)

    def between(self, *_: Any) -> tuple[Any, ...]:
        """Nobody else has what the operating system says."""
        raise ParameterError("numbers that others know too cannot come from one machine's randomness; a deployment derives them")

    common = between

    def kept(self, label: int) -> OsDraws:
        """What it draws is not kept."""
        raise ParameterError("numbers that outlast a run cannot come from the operating system; a deployment derives them")

    @staticmethod
    def _number(law: Law | str, shape: tuple[int, ...]) -> np.ndarray:
        words = np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64).reshape(shape)
        if law == WORDS:
            return words
        v = ((words >> np.uint64(12)) + 0.5) * 2.0**-52  # in (0, 1), two bits to spare for the signs
        if law == UNIT:
            return v
        assert isinstance(law, Law)
        value = law.magnitude(v)
        if law.mirrored:
            value = np.where(words & np.uint64(2), 1 / value, value)
        return law.scale * np.where(words & np.uint64(1), -value, value)
