"""Links within one process, for tests: every order of events, and every fault that a real link may have, from a seed.

Nothing moves by itself: `Network.deliver` takes one of the things that are on their way, at random, and hands it over, loses it
or doubles it. What is lost ends its question, sooner or later, as a time limit would. A node whose link was closed (it was killed)
hears nothing any more, and its open questions end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .link import Handler


class Network:
    """The links of all nodes; `tap(sender, receiver, frame)` sees every frame that arrives."""

    def __init__(
        self, seed: int = 0, *, lose: float = 0.0, double: float = 0.0, end: float = 0.0,
        tap: Callable[[int, int, bytes], None] | None = None,
    ):  # fmt: skip
        self.chance, self.lose, self.double, self.end, self.tap = random.Random(seed), lose, double, end, tap
        self.links: dict[int, MemoryLink] = {}
        self.standing: dict[tuple[int, int], tuple[MemoryLink, bytes]] = {}  # (sender, receiver) -> who asked what
        self.parked: dict[tuple[int, int], bytes] = {}  # what of it has reached the sender
        self.moving: list[tuple[str, int, int, Any]] = []

    def link(self, me: int) -> MemoryLink:
        """A node's link; the one that it had before is dead."""
        return MemoryLink(self, me)

    def deliver(self) -> bool:
        """One event; False if nothing is on its way."""
        if self.end and self.standing and self.chance.random() < self.end:
            self._over(*self.chance.choice(sorted(self.standing)))
            return True
        if not self.moving:
            return False
        i = self.chance.randrange(len(self.moving))
        self.moving[i], self.moving[-1] = self.moving[-1], self.moving[i]
        event = self.moving.pop()
        if self.chance.random() < self.double:
            self.moving.append(event)
        if self.chance.random() < self.lose:
            if event[0] != "answer" and event[1:3] in self.standing:
                self._over(*event[1:3])
            return True
        getattr(self, f"_{event[0]}")(*event[1:])
        return True

    def expire(self) -> None:
        """Every question that stands ends: what a time limit does at last."""
        for edge in sorted(self.standing):
            self._over(*edge)

    def _ask(self, sender: int, receiver: int, question: bytes) -> None:
        if self.standing.get((sender, receiver), (None, b""))[1] == question and sender in self.links:
            self.parked[sender, receiver] = question
            self.links[sender].handler.asked(receiver, question)
        elif (sender, receiver) in self.standing and sender not in self.links:
            self._over(sender, receiver)

    def _answer(self, sender: int, receiver: int, frame: bytes) -> None:
        if receiver in self.links:
            if self.tap is not None:
                self.tap(sender, receiver, frame)
            self.links[receiver].handler.came(sender, frame)

    def _over(self, sender: int, receiver: int, *_: Any) -> None:
        link, question = self.standing.pop((sender, receiver), (None, b""))
        self.parked.pop((sender, receiver), None)
        if link is not None and self.links.get(receiver) is link:
            link.handler.ended(sender, question)

    def asked(self, link: MemoryLink, sender: int, question: bytes) -> None:
        self.parked.pop((sender, link.me), None)
        self.standing[sender, link.me] = link, question
        self.moving.append(("ask", sender, link.me, question))

    def answered(self, sender: int, receiver: int, frame: bytes, last: bool) -> None:
        if (sender, receiver) in self.parked:
            self.moving.append(("answer", sender, receiver, frame))
            if last:
                del self.parked[sender, receiver]
                self.moving.append(("over", sender, receiver, None))

    def died(self, link: MemoryLink) -> None:
        if self.links.get(link.me) is link:
            del self.links[link.me]
            for sender, receiver in [edge for edge in self.standing if link.me in edge]:
                self._over(sender, receiver)
            self.moving = [event for event in self.moving if event[2] != link.me]


class MemoryLink:
    """One node's end."""

    handler: Handler

    def __init__(self, network: Network, me: int):
        self.network, self.me = network, me

    def open(self, handler: Handler) -> None:
        self.handler = handler
        self.network.links[self.me] = self

    def ask(self, sender: int, question: bytes) -> None:
        self.network.asked(self, sender, question)

    def answer(self, receiver: int, frame: bytes, last: bool) -> None:
        self.network.answered(self.me, receiver, frame, last)

    def close(self) -> None:
        self.network.died(self)
