"""The bytes that cross an edge: a header of fixed size, then raw little-endian numbers. No pickle, no compression.

    who      magic, version, what it is, hash of the roster, sender, receiver            48 bytes, the same all along an edge
    where    iteration, phase, flags, bytes that follow                                  24 bytes
    numbers  float64, uint64 or uint8, as the roster says for this exchange

A question has the same size as a header and nothing behind it: (iteration, phase) of the first frame that is missing, and
the iteration before which the asker wants no more than there is. The iteration says too that everything before it is on the asker's
disk and may be forgotten; `until` equal to it asks for nothing and only says so.

Whatever comes in is compared with what was agreed before any memory is taken for it, and before anything changes: length, magic,
roster, edge, what it is, exchange, length again; then that every number is finite and no larger than agreed. What does not
fit is refused with the reason, never repaired. A reason names fields and sizes, never a number of a payload.
"""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import MessageRefused, ParameterError, RunError
from ..ledger import largest
from .roster import KINDS, Exchange, Roster

Array = np.ndarray
Place = tuple[int, int]  # iteration, phase

WHO, WHERE = struct.Struct("<4sBBH32sII"), struct.Struct("<qIIQ")
MAGIC, VERSION = b"svox", 1
PAYLOAD, DONE, STOP, QUESTION = range(4)  # what it is: numbers; "you may go"; "my operator has ended the run"; a question
HEADER_BYTES = QUESTION_BYTES = WHO.size + WHERE.size
MOVING = 1  # flag: somebody that I have heard of in this window still moves by more than the tolerance
LAST = 2**62  # iterations are below it


class Question(NamedTuple):
    """I have everything before iteration k on my disk; tell me from (k, phase) on, up to iteration `until` (not included)."""

    k: int
    phase: int
    until: int


class Frame(NamedTuple):
    """What came, checked."""

    what: int
    place: Place
    flags: int
    parts: tuple[Array, ...]  # each (1, numbers, 1), a view of the bytes that came


class Shape:
    """What a message of one exchange must look like."""

    def __init__(self, exchange: Exchange):
        for kind, _ in exchange:
            if kind not in KINDS:
                raise ParameterError(f"messages hold numbers of the kinds {', '.join(KINDS)}, not {kind}")
        self.agreed = [(np.dtype(kind), count) for kind, count in exchange]
        self.kinds = [kind.newbyteorder("<") for kind, _ in self.agreed]
        ends = np.cumsum([0, *(kind.itemsize * count for kind, count in self.agreed)]).tolist()
        self.bytes, self.slices = ends[-1], list(itertools.pairwise(ends))
        self.floats = all(kind.kind == "f" for kind in self.kinds)

    def views(self, payload: memoryview) -> tuple[tuple[Array, ...], float]:
        """The parts of a payload of the right length, copied nowhere, and the largest magnitude among its floats; NaN if there is
        one."""
        if self.floats:  # one look at all numbers
            numbers = np.frombuffer(payload, "<f8")
            return tuple(numbers[a >> 3 : b >> 3].reshape(1, -1, 1) for a, b in self.slices), largest(numbers)
        pairs = zip(self.kinds, self.slices, strict=True)
        parts = tuple(np.frombuffer(payload[a:b], kind).reshape(1, -1, 1) for kind, (a, b) in pairs)
        return parts, loudest(parts)

    def __str__(self) -> str:
        return " + ".join(f"{count} {kind}" for kind, count in self.agreed) or "nothing"


class Shapes:
    """What the messages of each iteration look like."""

    def __init__(self, payloads: Sequence[tuple[int, Sequence[Exchange]]]):
        self.firsts = [first for first, _ in payloads]
        self.stages = [tuple(Shape(exchange) for exchange in exchanges) for _, exchanges in payloads]

    def of(self, k: int) -> tuple[Shape, ...]:
        """The exchanges of iteration k (-1: the set-up)."""
        return self.stages[bisect_right(self.firsts, k) - 1]

    def next(self, place: Place) -> Place:
        """The place itself, or where the next message stands if its iteration has no such phase."""
        k, phase = place
        while phase >= len(self.of(k)):
            if k >= self.firsts[-1] and not self.stages[-1]:
                return LAST, 0  # no messages from here on
            k, phase = k + 1, 0
        return k, phase

    @property
    def largest(self) -> int:
        """Bytes of the longest payload."""
        return max((shape.bytes for stage in self.stages for shape in stage), default=0)

    @property
    def heaviest(self) -> int:
        """Bytes of the heaviest iteration on one edge, headers included."""
        return max((sum(HEADER_BYTES + shape.bytes for shape in stage) for stage in self.stages), default=0)


def limit(roster: Roster) -> int:
    """The longest frame there can be."""
    return HEADER_BYTES + Shapes(roster.payloads).largest


class Frames:
    """Writes and reads what crosses the edges of one node."""

    def __init__(self, roster: Roster, me: int):
        self.shapes, self.digest, self.magnitude = Shapes(roster.payloads), roster.digest, roster.magnitude
        who = lambda what, s, r: WHO.pack(MAGIC, VERSION, what, 0, roster.digest, s, r)
        ins, outs = [s for s, r in roster.edges if r == me], [r for s, r in roster.edges if s == me]
        self.me, self.ins, self.outs = me, ins, outs
        self._writes = {(what, r): who(what, me, r) for what in (PAYLOAD, DONE, STOP) for r in outs}
        self._writes |= {(QUESTION, s): who(QUESTION, me, s) for s in ins}
        self._expects = {(s, who(what, s, me)): what for what in (PAYLOAD, DONE, STOP) for s in ins}
        self._expects |= {(r, who(QUESTION, r, me)): QUESTION for r in outs}

    def payloads(self, place: Place, out: tuple[Array, ...]) -> dict[int, bytes]:
        """My messages, the numbers as bytes, to each out-neighbour; `out` has a row for each. What all get alike is one object.
        Refused where they are not what the roster says, or not finite, or too large."""
        shapes = self.shapes.of(place[0])
        shape = shapes[place[1]] if place[1] < len(shapes) else Shape(())
        sizes = [(part.dtype, part[:1].size) for part in out]
        if sizes != shape.agreed or any(len(part) != len(self.outs) for part in out):
            sent = " + ".join(f"{size} {kind}" for kind, size in sizes)
            wanted = f"{shape} to each of {len(self.outs)} neighbours"
            raise RunError(f"{_at(place)}: the step sends {sent}, but the roster says {wanted}; write the roster anew")
        alike = all(part.strides[0] == 0 for part in out)
        rows = [part[:1] for part in out] if alike else out
        if not loudest(rows) <= self.magnitude:
            raise RunError(
                f"{_at(place)}: a number of my message is not finite, or larger than the agreed {self.magnitude:g}; "
                "take a smaller stepsize, K or scale, or agree on a larger magnitude, and start a new run"
            )
        little = [part.astype(kind, copy=False) for part, kind in zip(rows, shape.kinds, strict=True)]
        if alike:
            return dict.fromkeys(self.outs, b"".join([part.tobytes() for part in little]))
        return {receiver: b"".join([part[j].tobytes() for part in little]) for j, receiver in enumerate(self.outs)}

    def write(self, receiver: int, place: Place, flags: int, payload: bytes) -> bytes:
        return b"".join((self._writes[PAYLOAD, receiver], WHERE.pack(*place, flags, len(payload)), payload))

    def notice(self, what: int, receiver: int, k: int) -> bytes:
        """DONE: I know that you have everything before iteration k. STOP: my operator has ended the run."""
        return self._writes[what, receiver] + WHERE.pack(k, 0, 0, 0)

    def ask(self, sender: int, question: Question) -> bytes:
        return self._writes[QUESTION, sender] + WHERE.pack(question.k, question.phase, 0, question.until - question.k)

    def read(self, sender: int, frame: bytes) -> Frame:
        """A frame that came from an in-neighbour, or MessageRefused."""
        what = self._expects.get((sender, frame[: WHO.size]))
        if what is None or what == QUESTION or len(frame) < HEADER_BYTES:
            raise self._strange(sender, frame)
        k, phase, flags, size = WHERE.unpack_from(frame, WHO.size)
        if size != len(frame) - HEADER_BYTES:
            raise MessageRefused("length", f"a message of {len(frame)} bytes says that it has {HEADER_BYTES + size}")
        if not (-1 <= k < LAST) or flags & ~MOVING:
            raise MessageRefused("place", "a message names an iteration or a flag that cannot be")
        if what != PAYLOAD:
            if size or phase:
                raise MessageRefused("length", f"a notice holds no numbers, but this one has {size} bytes, phase {phase}")
            return Frame(what, (k, 0), flags, ())
        return Frame(what, (k, phase), flags, self._numbers((k, phase), memoryview(frame)[HEADER_BYTES:]))

    def _numbers(self, place: Place, payload: memoryview) -> tuple[Array, ...]:
        shapes = self.shapes.of(place[0])
        if place[1] >= len(shapes):
            raise MessageRefused("place", f"a message of {_at(place)}, which has {len(shapes)} exchanges")
        shape = shapes[place[1]]
        if len(payload) != shape.bytes:
            raise MessageRefused("shape", f"{_at(place)}: expected {shape}, {shape.bytes} bytes, got {len(payload)} bytes")
        parts, most = shape.views(payload)
        if not most <= self.magnitude:
            raise MessageRefused("number", f"{_at(place)}: a number is not finite, or larger than the agreed {self.magnitude:g}")
        return parts

    def question(self, receiver: int, question: bytes) -> Question:
        """A question that came from an out-neighbour, or MessageRefused."""
        if self._expects.get((receiver, question[: WHO.size])) != QUESTION or len(question) != QUESTION_BYTES:
            raise self._strange(receiver, question)
        k, phase, flags, more = WHERE.unpack_from(question, WHO.size)
        if not (-1 <= k < LAST) or flags or more > LAST:
            raise MessageRefused("place", "a question names an iteration or a flag that cannot be")
        return Question(k, phase, k + more)

    def _strange(self, other: int, came: bytes) -> MessageRefused:
        """Why these bytes are none of what this neighbour may send."""
        if len(came) < HEADER_BYTES:
            return MessageRefused("length", f"{len(came)} bytes, fewer than the {HEADER_BYTES} of a header")
        magic, version, what, spare, digest, s, r = WHO.unpack_from(came)
        if magic != MAGIC or spare:
            return MessageRefused("magic", "these bytes are no message of ours")
        if version != VERSION:
            return MessageRefused("version", f"a message of version {version}; here is version {VERSION}: install the same release")
        if digest != self.digest:
            return MessageRefused("roster", "a message of another run, or of a roster that differs; compare `sottovoce check`")
        if (s, r) != (other, self.me):
            return MessageRefused("edge", f"node {other} sent a message that says it goes from node {s} to node {r}")
        return MessageRefused("what", f"node {other} may not send this here (code {what}, {len(came)} bytes)")


def loudest(parts: Iterable[Array]) -> float:
    """The largest magnitude among all floats; NaN if there is one."""
    found = [largest(part) for part in parts if part.dtype.kind == "f"]
    return float(np.max(found)) if len(found) > 1 else found[0] if found else 0.0


def _at(place: Place) -> str:
    return f"set-up, exchange {place[1]}" if place[0] < 0 else f"iteration {place[0]}, exchange {place[1]}"
