"""What a link brings to a node: taken in under one lock, answered at once where an answer is there; whoever waits is woken."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import MessageRefused, RunError, StoreError
from .frame import Place
from .link import Link
from .protocol import Answer, Ask, Protocol
from .starts import Starts

PAUSES = 0.01, 0.5  # seconds: the first before a question that brought nothing is put again, and the longest


class Watch:
    """Who looks on; override what you want to hear of. Nothing here is a number of the optimisation."""

    def waiting(self, who: list[int], what: str, seconds: float) -> None:
        """This node has been waiting so long for these neighbours."""

    def refused(self, other: int, reason: str) -> None:
        """What a neighbour sent was not what was agreed; nothing changed."""


class Ears:
    """One node's side of its link. The step's thread shares `lock`, and is woken by `wake`."""

    def __init__(self, protocol: Protocol, starts: Starts, link: Link, watch: Watch, clock: Callable[[], float]):
        self.protocol, self.starts, self.link, self.watch, self.clock = protocol, starts, link, watch, clock
        self.lock, self.wake = threading.Lock(), queue.SimpleQueue[Any]()
        self.due: dict[int, tuple[float, float]] = {}  # in-neighbours to ask again: when, and after which pause
        self.awaited: Place | None = None  # what the step waits for
        self.failure: Exception | None = None  # found here, raised in the step's thread

    # what the link calls, from its own threads -------------------------------------------------------------------

    def told(self, other: int) -> tuple[bytes, Place]:
        """What a neighbour hears of me: my nonce, and what I have of its messages."""
        with self.lock:
            return self.starts.nonce, self.protocol.has(other)

    def met(self, other: int, nonce: bytes, has: Place) -> str | None:
        """What a neighbour has told: why it is refused, if it is."""
        if other not in self.protocol.outs and other not in self.protocol.ins:
            return None
        with self.lock:
            why = self.starts.differs(other, nonce)
            try:
                if other in self.protocol.outs:
                    self.protocol.remember(other, has)
            except StoreError as error:
                self.failure, why = error, str(error)
            if why is None:
                self.starts.heard[other] = nonce
        self.wake.put(None)
        return why

    def asked(self, receiver: int, question: bytes) -> None:
        with self.lock:
            try:
                answers = self.protocol.asked(receiver, question)
            except MessageRefused as error:
                return self.watch.refused(receiver, str(error))
            except RunError as error:
                self.failure, answers = error, []
            wake = self.failure is not None or self.protocol.over or self.protocol.outs[receiver].leaving
        self._post(answers)
        if wake:
            self.wake.put(None)
        return None

    def came(self, sender: int, frame: bytes) -> None:
        with self.lock:
            try:
                complete = self.protocol.came(sender, frame)
            except MessageRefused as error:
                return self.watch.refused(sender, str(error))
            if sender in self.due:
                self.due[sender] = self.due[sender][0], PAUSES[0]  # it is there: no reason for long pauses
            ready = complete is not None and complete == self.awaited
        if ready or self.protocol.over or self.protocol.stopped is not None:
            self.wake.put(None)
        return None

    def ended(self, sender: int, question: bytes) -> None:
        with self.lock:
            if self.protocol.ended(sender, question):
                pause = self.due.get(sender, (0.0, PAUSES[0]))[1]
                self.due[sender] = self.clock() + pause, min(2 * pause, PAUSES[1])
                self.wake.put(None)

    def refused(self, other: int, reason: str) -> None:
        self.watch.refused(other, reason)

    # what is said over it ----------------------------------------------------------------------------------------

    def ask_again(self, now: float) -> None:
        """Put the questions again whose pause is over."""
        with self.lock:
            ready = [sender for sender, (when, _) in self.due.items() if when <= now]
            asks = [self.protocol.again(sender) for sender in ready if self.protocol.lacks(sender)]
            for sender in ready:
                self.due[sender] = np.inf, self.due[sender][1]
        self._post(asks)

    def _post(self, actions: Sequence[Ask | Answer]) -> None:
        """Do what the protocol said; never while holding the lock."""
        for action in actions:
            if isinstance(action, Ask):
                self.link.ask(action.sender, action.question)
            else:
                self.link.answer(action.receiver, action.frame, action.last)
