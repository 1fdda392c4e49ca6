"""What one node knows of its messages: told what happened, it says what to do. No I/O, no clock, no thread, no socket.

Told                                                     it says
    committed(place, payloads)  mine, now on my disk     which answers to give to questions that waited for them
    asked(receiver, question)   an out-neighbour asks    which answers to give at once; the rest waits for `committed`
    noted(receivers)            that they have all       which answers let them go
    reached(k)                  my state k is on disk    which questions to put: iteration k may be asked for from now on
    came(sender, frame)         an in-neighbour answers  which place is now complete, if one is
    ended(sender, question)     no more will come to it  whether something is still missing, so that `again` asks for it

A place is (iteration, phase); the set-up is iteration -1. Four rules make loss impossible:
* A receiver asks for iteration k only when its own state k is on its disk: then it needs nothing of what came before.
* A sender lets go of what comes before iteration k when the receiver asks for k, and not earlier.
* What was committed for a place stays what it is: it is offered as often as it is asked for, always the same bytes.
* A node leaves when every receiver has said that it has everything, which is on the disk before the receiver hears so, and
  every sender has heard so from it.
A question covers several iterations (`ahead`), so that a small message does not cost a question of its own.

An out-neighbour that has more from me than I remember means that my disk, or its, is an old copy. Then nothing may be drawn or
sent any more: `asked` and `remember` (at the greeting, before anything is drawn) raise StoreError. Everything else that does not
fit is a MessageRefused and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import MessageRefused, StoreError
from .frame import DONE, MOVING, STOP, Array, Frame, Frames, Place, Question

WINDOW = 1 << 16  # bytes that a question asks for at most, where they are more than an iteration's
AHEAD = 64  # iterations that it asks for at most


class Ask(NamedTuple):
    """Put this question."""

    sender: int
    question: bytes


class Answer(NamedTuple):
    """Give this answer; `last` closes the question."""

    receiver: int
    frame: bytes
    last: bool


class Outgoing:
    """What one out-neighbour may still ask for, and what it is asking for."""

    def __init__(self) -> None:
        self.kept: dict[Place, tuple[int, bytes]] = {}  # flags and payload, in the order of their places
        self.needs = -1  # it has everything before this iteration
        self.next: Place | None = None  # where the answers to its question go on; None: no question stands
        self.until = -1
        self.leaving = False  # it says that it has everything, and waits to hear that I know

    def let_go(self, k: int) -> None:
        """It has everything before iteration k on its disk."""
        self.needs = max(self.needs, k)
        for place in [place for place in self.kept if place[0] < k]:
            del self.kept[place]


class Incoming:
    """What one in-neighbour was asked, and what came of it."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.came: dict[Place, Frame] = {}
        self.confirmed = -1  # it knows that I have everything before this iteration


class Protocol:
    """The messages of one node."""

    def __init__(self, frames: Frames, iterations: int, ahead: int | None = None):
        self.frames, self.shapes, self.iterations, self.over = frames, frames.shapes, iterations, False
        self.ahead = ahead or max(1, min(AHEAD, WINDOW // max(1, self.shapes.heaviest)))
        self.outs = {receiver: Outgoing() for receiver in frames.outs}
        self.ins = {sender: Incoming() for sender in frames.ins}
        self.k = -1  # the iteration that is being played; state k is on disk
        self.place = self.shapes.next((-1, 0))  # of the next message that will be committed
        self.stopped: int | None = None  # the in-neighbour that says that the run was ended

    # what I send -------------------------------------------------------------------------------------------------

    def committed(self, place: Place, payloads: Mapping[int, bytes], flags: int = 0) -> list[Answer]:
        """My messages of a place are on the disk, a payload an out-neighbour."""
        self.place = self.shapes.next((place[0], place[1] + 1))
        answers: list[Answer] = []
        for receiver, out in self.outs.items():
            if place[0] >= out.needs:
                out.kept[place] = flags, payloads[receiver]
                answers += self._answers(receiver, out)
        return answers

    def restore(self, place: Place, kept: Mapping[Place, Mapping[int, tuple[int, bytes]]], needs: Mapping[int, int]) -> None:
        """After a restart: what was committed, which place comes next, and before which iteration each receiver has everything."""
        self.place = self.shapes.next(place)
        for at, messages in sorted(kept.items()):
            for receiver, message in messages.items():
                self.outs[receiver].kept[at] = message
        for receiver, k in needs.items():
            self.outs[receiver].let_go(k)

    def asked(self, receiver: int, question: bytes) -> list[Answer]:
        """What can be told at once; what cannot will be when it is committed."""
        asked, out = self.frames.question(receiver, question), self.outs[receiver]
        self.remember(receiver, (asked.k, asked.phase))
        first = self.shapes.next((asked.k, asked.phase))
        if asked.k < out.needs or (first < self.place and asked.until > asked.k and first not in out.kept):
            why = "a question that was late, or its store is an old copy"
            raise MessageRefused("old", f"node {receiver} asks for iteration {asked.k}, which it has said to have: {why}")
        out.let_go(asked.k)
        if asked.until == asked.k:
            out.next, out.leaving = None, True
            return []
        out.next, out.until = (first if first[0] < asked.until else None), asked.until
        return self._answers(receiver, out)

    def remember(self, receiver: int, has: Place) -> None:
        """An out-neighbour has all my messages before a place; refused where I do not remember so many."""
        if has > self.place:
            raise StoreError(
                f"node {receiver} has messages of this node up to iteration {has[0]}, exchange {has[1]}, and this node, at "
                f"iteration {self.place[0]}, exchange {self.place[1]}, does not remember sending them: one of the two stores is an "
                "old copy; nothing more is drawn or sent, make a new run of the same nodes with `sottovoce again`"
            )

    @property
    def needs(self) -> dict[int, int]:
        """Of every receiver, before which iteration it has everything."""
        return {receiver: out.needs for receiver, out in self.outs.items()}

    def _answers(self, receiver: int, out: Outgoing) -> list[Answer]:
        """Whatever the question that stands asks for and is there."""
        answers = []
        while out.next is not None and out.next in out.kept:
            place, after = out.next, self.shapes.next((out.next[0], out.next[1] + 1))
            last = after[0] >= out.until
            answers.append(Answer(receiver, self.frames.write(receiver, place, *out.kept[place]), last))
            out.next = None if last else after
        return answers

    def leaving(self) -> dict[int, int]:
        """Out-neighbours that have everything and wait to hear that I know; from which iteration on they need nothing."""
        return {receiver: out.needs for receiver, out in self.outs.items() if out.leaving}

    def noted(self, receivers: Iterable[int]) -> list[Answer]:
        """That they have everything is on my disk: they may go."""
        for receiver in receivers:
            self.outs[receiver].leaving = False
        return [Answer(r, self.frames.notice(DONE, r, self.outs[r].needs), True) for r in receivers]

    def farewell(self) -> list[Answer]:
        """My operator ends the run: whoever asks is told so."""
        standing = [receiver for receiver, out in self.outs.items() if out.next is not None]
        return [Answer(receiver, self.frames.notice(STOP, receiver, self.k), True) for receiver in standing]

    # what I receive ----------------------------------------------------------------------------------------------

    def reached(self, k: int) -> list[Ask]:
        """My state k is on disk: what comes before is not needed any more; ask for k and what follows."""
        self.k, asks = k, []
        for sender, come in self.ins.items():
            for place in [place for place in come.came if place[0] < k]:
                del come.came[place]
            if come.question is None or k >= come.question.until:
                asks.append(self.again(sender))
        return asks

    def finished(self, k: int) -> list[Ask]:
        """My last state is on disk: say that I have everything, and ask for nothing."""
        self.k, self.over = k, True
        for come in self.ins.values():
            come.came.clear()
            come.question = Question(k, 0, k)
        return [self.again(sender) for sender in self.ins]

    def again(self, sender: int) -> Ask:
        """The question for what is missing from an in-neighbour."""
        come = self.ins[sender]
        if not self.over:
            come.question = Question(*self._missing(come), min(self.k + self.ahead, self.iterations))
        assert come.question is not None
        return Ask(sender, self.frames.ask(sender, come.question))

    def _missing(self, come: Incoming) -> Place:
        """The first place of this iteration that has not come, as a question names it."""
        phase = 0
        while (self.k, phase) in come.came:
            phase += 1
        return self.k, phase

    def came(self, sender: int, frame: bytes) -> Place | None:
        """An answer. The place that is now complete, if one is; anything that was there already changes nothing."""
        found, come = self.frames.read(sender, frame), self.ins[sender]
        if found.what == STOP:
            self.stopped = sender
            return None
        if found.what == DONE:
            come.confirmed = max(come.confirmed, found.place[0])
            return None
        if found.place[0] < self.k:
            return None
        if found.place in come.came:
            if not _same(come.came[found.place], found):
                raise MessageRefused("another", f"node {sender} sent two messages for one place, {found.place}; the first counts")
            return None
        if come.question is None or found.place[0] >= come.question.until:
            raise MessageRefused("unasked", f"node {sender} sent iteration {found.place[0]}, which nobody has asked for")
        come.came[found.place] = found
        return found.place if self.complete(found.place) else None

    def has(self, sender: int) -> Place:
        """Behind the last message of this node's that I have; the very first place for one that sends me nothing."""
        if sender not in self.ins:
            return -1, 0
        k, phase = max(self.ins[sender].came, default=(self.k, -1))
        return k, phase + 1

    def ended(self, sender: int, question: bytes) -> bool:
        """Whether the question that ended is the one that stands and has not brought all that it asked for."""
        standing = self.ins[sender].question
        return standing is not None and question == self.frames.ask(sender, standing) and self.lacks(sender)

    def lacks(self, sender: int) -> bool:
        """Whether something that this in-neighbour was asked for is missing."""
        come = self.ins[sender]
        if self.over or come.question is None:
            return self.over and come.confirmed < self.k
        places = ((k, phase) for k in range(self.k, come.question.until) for phase in range(len(self.shapes.of(k))))
        return any(place not in come.came for place in places)

    def complete(self, place: Place) -> bool:
        return all(place in come.came for come in self.ins.values())

    def inbox(self, place: Place) -> list[tuple[Array, ...]]:
        """What came for a place, an entry an in-neighbour, in their order."""
        return [come.came[place].parts for come in self.ins.values()]

    def missing(self, place: Place) -> list[int]:
        """The in-neighbours that a place still waits for."""
        return [sender for sender, come in self.ins.items() if place not in come.came]

    def moving(self, k: int) -> bool:
        """Whether an in-neighbour said in iteration k that somebody still moves."""
        frames = (frame for come in self.ins.values() for place, frame in come.came.items() if place[0] == k)
        return any(frame.flags & MOVING for frame in frames)

    # the end -----------------------------------------------------------------------------------------------------

    def unsaid(self) -> list[int]:
        """In-neighbours that may not know yet that I have everything."""
        return [sender for sender, come in self.ins.items() if come.confirmed < self.k]

    def unfinished(self) -> list[int]:
        """Out-neighbours that do not have everything of mine yet."""
        return [receiver for receiver, out in self.outs.items() if out.needs < self.k]

    def kept(self) -> dict[Place, dict[int, tuple[int, bytes]]]:
        """What must be on the disk: everything that somebody may still ask for."""
        found: dict[Place, dict[int, tuple[int, bytes]]] = {}
        for receiver, out in self.outs.items():
            for place, message in out.kept.items():
                found.setdefault(place, {})[receiver] = message
        return dict(sorted(found.items()))


def _same(one: Frame, other: Frame) -> bool:
    return one.flags == other.flags and all(a.tobytes() == b.tobytes() for a, b in zip(one.parts, other.parts, strict=True))
