"""Links within one process, for tests: every order of events, and every fault that a real link may have, from a seed.

Nothing moves by itself: `Network.deliver` takes one of the things that are on their way, at random, and hands it over, loses it
or doubles it. What is lost ends its question, as a time limit would. A node whose link was closed (it was killed) hears nothing any
more, and its open questions end.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from .link import Handler

Edge = tuple[int, int]  # sender, receiver
Calls = list[Callable[[], None]]


class Network:
    """The links of all nodes; `tap(sender, receiver, frame)` sees every frame that arrives."""

    def __init__(
        self, seed: int = 0, *, lose: float = 0.0, double: float = 0.0, end: float = 0.0,
        tap: Callable[[int, int, bytes], None] = lambda sender, receiver, frame: None,
    ):  # fmt: skip
        self.chance, self.lose, self.double, self.end, self.tap = random.Random(seed), lose, double, end, tap
        self.lock = threading.Lock()
        self.links: dict[int, MemoryLink] = {}
        self.standing: dict[Edge, tuple[MemoryLink, bytes]] = {}  # who asked what
        self.parked: set[Edge] = set()  # whose question has reached the sender
        self.moving: list[tuple[str, Edge, bytes]] = []

    def link(self, me: int) -> MemoryLink:
        """A node's link; the one that it had before is dead."""
        return MemoryLink(self, me)

    def deliver(self) -> bool:
        """One event; False if nothing is on its way."""
        with self.lock:
            if self.end and self.standing and self.chance.random() < self.end:
                calls: Calls = self._over(self.chance.choice(sorted(self.standing)))
            elif self.moving:
                calls = self._next()
            else:
                return False
        for call in calls:  # without the lock: what is called will ask and answer
            call()
        return True

    def expire(self) -> None:
        """A question that stands has stood long enough: the time limit of a real link."""
        with self.lock:
            calls = self._over(self.chance.choice(sorted(self.standing))) if self.standing else []
        for call in calls:
            call()

    def _next(self) -> Calls:
        event = self.moving.pop(self.chance.randrange(len(self.moving)))
        kind, edge, data = event
        if self.chance.random() < self.double:
            self.moving.append(event)
        if self.chance.random() < self.lose:
            return self._over(edge) if kind != "answer" else []
        return {"ask": self._ask, "answer": self._answer, "over": lambda edge, data: self._over(edge)}[kind](edge, data)

    def _ask(self, edge: Edge, question: bytes) -> Calls:
        if self.standing.get(edge, (None, b""))[1] != question:
            return []
        sender, receiver = edge
        if sender not in self.links:
            return self._over(edge)
        self.parked.add(edge)
        handler = self.links[sender].handler
        return [lambda: handler.asked(receiver, question)]

    def _answer(self, edge: Edge, frame: bytes) -> Calls:
        sender, receiver = edge
        if receiver not in self.links:
            return []
        self.tap(sender, receiver, frame)
        handler = self.links[receiver].handler
        return [lambda: handler.came(sender, frame)]

    def _over(self, edge: Edge) -> Calls:
        link, question = self.standing.pop(edge, (None, b""))
        self.parked.discard(edge)
        if link is None or self.links.get(edge[1]) is not link:
            return []
        return [lambda: link.handler.ended(edge[0], question)]

    # what the links do -------------------------------------------------------------------------------------------

    def asked(self, link: MemoryLink, sender: int, question: bytes) -> None:
        with self.lock:
            edge = sender, link.me
            self.parked.discard(edge)
            self.standing[edge] = link, question
            self.moving.append(("ask", edge, question))

    def answered(self, edge: Edge, frame: bytes, last: bool) -> None:
        with self.lock:
            if edge in self.parked:
                self.moving.append(("answer", edge, frame))
                if last:
                    self.parked.discard(edge)
                    self.moving.append(("over", edge, b""))

    def died(self, link: MemoryLink) -> None:
        calls: Calls = []
        with self.lock:
            if self.links.get(link.me) is link:
                del self.links[link.me]
                self.moving = [event for event in self.moving if event[1][1] != link.me]
                for edge in [edge for edge in self.standing if link.me in edge]:
                    calls += self._over(edge)
        for call in calls:
            call()


class MemoryLink:
    """One node's end."""

    def __init__(self, network: Network, me: int):
        self.network, self.me = network, me
        self.handler: Any = None

    def open(self, handler: Handler) -> None:
        self.handler = handler
        self.network.links[self.me] = self
        for link in [link for link in self.network.links.values() if link is not self]:
            link.handler.met(self.me, *handler.told(link.me))
            handler.met(link.me, *link.handler.told(self.me))

    def ask(self, sender: int, question: bytes) -> None:
        self.network.asked(self, sender, question)

    def answer(self, receiver: int, frame: bytes, last: bool) -> None:
        self.network.answered((self.me, receiver), frame, last)

    def close(self) -> None:
        self.network.died(self)
