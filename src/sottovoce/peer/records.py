"""What stands in a node's log: states, journals and messages, and how a node that starts again puts them together.

A record is (iteration, state or None, phases, answers, message or None, needs): the state with which the iteration begins, how many
of its messages are out, what was drawn and computed since the last record, the message that is committed with it, and before
which iteration each receiver has everything. The first record of all says how the run began (`starts.Begun`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .codec import decode, encode
from .frame import Place
from .journal import Answers, Journal
from .replay import BEFORE, Saved
from .starts import Begun

Message = Mapping[int, tuple[int, bytes]]  # receiver -> flags and payload
NOTHING: Mapping[int, int] = {}
EVERYBODY = "everybody"  # the last record: every receiver has everything, and every sender knows that I have


class Found(NamedTuple):
    """What the log of an earlier process says."""

    saved: Saved
    journal: Journal
    kept: dict[Place, dict[int, tuple[int, bytes]]]
    gone: dict[int, int]  # receivers that have everything, and need nothing from an iteration on
    done: bool
    needs: dict[int, int]  # receivers, and before which iteration each has everything
    begun: Begun | None


def record(
    k: int, saved: Saved | None, phases: int, answers: list[Answers], place: Place | None, message: Message,
    needs: Mapping[int, int] = NOTHING,
) -> list[Any]:  # fmt: skip
    """The pieces of one record; payloads that are one object are written once."""
    payloads = {id(payload): payload for _, payload in message.values()}
    number = {key: i for i, key in enumerate(payloads)}
    rows = [(receiver, flags, number[id(payload)]) for receiver, (flags, payload) in message.items()]
    sent = None if place is None else (place[1], rows, list(payloads.values()))
    return encode((k, saved, phases, answers, sent, [*needs.items()]))


def whole(saved: Saved, journal: Journal, kept: Mapping[Place, Message], needs: Mapping[int, int]) -> Iterator[list[Any]]:
    """Everything that a node needs to go on, as the records of a new log."""
    for place, message in kept.items():
        yield record(place[0], None, 0, [], place, message)
    yield record(saved.k, saved, journal.phases, journal.answers, None, {}, needs)


def start(begun: Begun) -> list[Any]:
    """How the run began here, and at those whom I have met."""
    return encode(begun)


def leave(gone: Mapping[int, int]) -> list[Any]:
    """These receivers have everything."""
    return encode([*gone.items()])


def end() -> list[Any]:
    return encode(EVERYBODY)


def put_together(records: Iterable[bytes], classes: Mapping[str, Any]) -> Found:
    """State, journal and outbox as they were when the last record was committed."""
    saved, journal, kept, gone, done, needs, begun = BEFORE, Journal(), {}, {}, False, {}, None
    known = {**classes, Saved.__qualname__: Saved, Begun.__qualname__: Begun}
    for data in records:
        value = decode(data, known)
        if value == EVERYBODY:
            done = True
            continue
        if isinstance(value, list):
            gone |= dict(value)
            continue
        if isinstance(value, Begun):
            begun = value
            continue
        k, state, phases, answers, message, said = value
        needs |= dict(said)
        if state is not None:
            saved, journal = state, Journal()
        if message is not None:
            phase, rows, payloads = message
            kept[k, phase] = {receiver: (flags, payloads[i]) for receiver, flags, i in rows}
            phases = phase + 1
        if k == saved.k:
            journal = Journal(journal.answers + answers, max(phases, journal.phases))
    return Found(saved, journal, kept, gone, done, needs, begun)
