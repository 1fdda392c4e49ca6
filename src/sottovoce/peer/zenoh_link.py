"""A link over Zenoh: questions are its queries, answers its replies, nothing is ever published.

Zenoh's own threads call in here, and from here the handler, directly: a hand-over to another thread would cost more than all the
rest. So nothing here waits. A question stands (its query is kept) until it is answered for good, replaced, or times out. Frames
beyond a few kilobytes are sent by a thread a receiver, since a full wire makes the sender wait.

No frame passes before both ends have shown the same signed roster (see greeting.py): what is asked earlier is kept until then.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

from ..errors import RunError, SottovoceError
from . import greeting, wiring
from .frame import QUESTION_BYTES, limit
from .identity import Identity
from .link import Handler
from .roster import Roster
from .wiring import Wiring

PATIENCE = 10.0  # seconds that a question stands; whoever asked then asks again
SMALL = 1 << 14  # bytes up to which a frame is sent at once, by whoever has it
EAGER, CALM = 0.02, 1.0  # seconds between two attempts to greet a neighbour, at first and in the end


_HERE = threading.local()  # gone with the thread state that it stands in


class ZenohLink:
    """One node's end of all its edges."""

    def __init__(self, roster: Roster, identity: Identity, wires: Wiring, edges: bool = True, counts: Any = None):
        self.roster, self.identity, self.wires = roster, identity, wires
        self.edges = edges  # False: it greets its neighbours and offers nothing, not even its own name
        self.counts = counts or SimpleNamespace(sent=0, received=0)  # bytes of frames
        self.limit, self._size = limit(roster), len(greeting.greeting(roster, identity))
        self.config = wiring.configuration(wires, identity, max(self.limit, 2 * self._size))
        self._numbers = {name: number for number, name in enumerate(roster.labels)}
        self.greeted: set[int] = set()
        self.strangers: dict[int, str] = {}  # who is refused, and why
        self._standing: dict[int, Any] = {}  # by receiver, the query that I am to answer
        self._early: dict[int, tuple[Any, ...]] = {}  # by receiver, what it asked before it was greeted
        self._unsent: dict[int, bytes] = {}  # by sender, what I ask once it is greeted
        self._queues: dict[int, queue.SimpleQueue[Any]] = {}
        self._lock, self._closed, self._declared = threading.Lock(), threading.Event(), []
        self._handler: Any = None
        self._session: Any = None

    # opening and closing -----------------------------------------------------------------------------------------

    def open(self, handler: Handler) -> None:
        """Begin; the neighbours are greeted in the background."""
        import zenoh

        self._handler, self._zenoh = handler, zenoh
        given = os.environ.get("ZENOH_RUNTIME")
        os.environ["ZENOH_RUNTIME"] = given or wiring.THREADS  # read once, when the first session of a process opens
        try:
            self._session = session = zenoh.open(self.config)
        except zenoh.ZError as error:
            where = f"listen on {self.wires.listen}" if self.wires.listen else "open a session"
            raise RunError(f"{self.wires.me} cannot {where}: is the port in use, and the address mine? ({error})") from None
        finally:
            if given is None:  # it is no business of the program around, nor of what that starts
                os.environ.pop("ZENOH_RUNTIME", None)  # another thread may have been faster
        atexit.register(self.close)  # a program that ends in the middle of a run: later, Zenoh would wait for Python's lock in vain
        self._keys = {self._numbers[r]: wiring.key("edge", self.wires.me, r) for r in self.wires.outs}
        how = {
            "consolidation": zenoh.ConsolidationMode.NONE, "timeout": PATIENCE, "express": True,
            "congestion_control": zenoh.CongestionControl.BLOCK,
        }  # fmt: skip
        asker = lambda sender: session.declare_querier(wiring.key("edge", sender, self.wires.me), **how)
        self._askers = {self._numbers[sender]: asker(sender) for sender in self.wires.ins}
        for other in self.wires.neighbours if self.edges else ():
            self._serve(wiring.key("hello", self.wires.me, other), partial(self._shown, self._numbers[other]))
        for receiver, where in self._keys.items() if self.edges else ():
            self._serve(where, partial(self._asked, receiver))
        threading.Thread(target=self._greet, name="greet", daemon=True).start()

    def _serve(self, where: str, called: Callable[[Any], None]) -> None:
        self._declared.append(self._session.declare_queryable(where, self._direct(called), complete=True))

    def _direct(self, called: Callable[[Any], None], dropped: Callable[[], None] | None = None) -> Any:
        """Called in Zenoh's own thread."""
        return self._zenoh.handlers.Callback(called, dropped, indirect=False)

    def close(self) -> None:
        """End; what stands is let go of."""
        if self._closed.is_set():
            return
        self._closed.set()
        atexit.unregister(self.close)
        for waiting in list(self._queues.values()):
            waiting.put(None)
        for query in list(self._standing.values()):
            self._drop(query)
        self._standing.clear()
        if self._session is not None:
            self._session.close()

    # asking ------------------------------------------------------------------------------------------------------

    def ask(self, sender: int, question: bytes) -> None:
        """Put a question to an in-neighbour."""
        with self._lock:
            if sender not in self.greeted:
                self._unsent[sender] = question
                return
        self._put(sender, question)

    def _put(self, sender: int, question: bytes) -> None:
        answers = self._direct(partial(self._came, sender), partial(self._ended, sender, question))
        with suppress(self._zenoh.ZError):  # closing; the question ends by its callback being dropped
            self._askers[sender].get(answers, payload=question)

    def _came(self, sender: int, reply: Any) -> None:
        """One answer; an error (a time limit) says nothing that its end does not."""
        if not hasattr(_HERE, "kept"):
            _keep()
        answer = reply.ok
        if answer is None or self._closed.is_set():
            return
        payload = answer.payload
        size = len(payload)
        if size > self.limit:
            self._handler.refused(sender, f"an answer of {size} bytes, above the limit of {self.limit}")
        else:
            self.counts.received += size
            self._handler.came(sender, payload.to_bytes())

    def _ended(self, sender: int, question: bytes) -> None:
        if not self._closed.is_set():
            self._handler.ended(sender, question)

    # answering ---------------------------------------------------------------------------------------------------

    def _asked(self, receiver: int, query: Any) -> None:
        """An out-neighbour's question: kept, and told."""
        payload = query.payload
        if self._closed.is_set() or payload is None or len(payload) != QUESTION_BYTES:
            size = 0 if payload is None else len(payload)
            self._drop(query)
            if not self._closed.is_set():
                self._handler.refused(receiver, f"a question of {size} bytes; a question has {QUESTION_BYTES}")
            return
        question = payload.to_bytes()
        before, self._standing[receiver] = self._standing.get(receiver), query
        if before is not None:
            self._drop(before)
        with self._lock:
            if receiver not in self.greeted:
                self._early[receiver] = (question,)
                return
        self._handler.asked(receiver, question)

    def answer(self, receiver: int, frame: bytes, last: bool) -> None:
        """One more answer to the question that stands, if one does."""
        query = self._standing.pop(receiver, None) if last else self._standing.get(receiver)
        if query is None or self._closed.is_set():
            return
        waiting = self._queues.get(receiver)
        if len(frame) <= SMALL and (waiting is None or waiting.empty()):
            self._reply(receiver, query, frame, last)
        else:
            (waiting or self._sender(receiver)).put((query, frame, last))

    def _reply(self, receiver: int, query: Any, frame: bytes, last: bool) -> None:
        try:
            query.reply(self._keys[receiver], frame)
            self.counts.sent += len(frame)
        except (self._zenoh.ZError, RuntimeError):
            pass  # the question is over, timed out, or the neighbour is gone; or another thread lets go of it just now
        if last:
            self._drop(query)

    def _drop(self, query: Any) -> None:
        """Let go of a question; one to which another thread is replying just now ends when that thread lets go of it."""
        with suppress(self._zenoh.ZError, RuntimeError):
            query.drop()

    def _sender(self, receiver: int) -> queue.SimpleQueue[Any]:
        """The queue of the thread that sends long frames to this receiver."""
        with self._lock:
            waiting = self._queues.get(receiver)
            if waiting is None:
                waiting = self._queues[receiver] = queue.SimpleQueue()
                threading.Thread(target=self._send, args=(receiver, waiting), name=f"send to {receiver}", daemon=True).start()
        return waiting

    def _send(self, receiver: int, waiting: queue.SimpleQueue[Any]) -> None:
        while (one := waiting.get()) is not None:
            self._reply(receiver, *one)

    # greeting ----------------------------------------------------------------------------------------------------

    def _shown(self, other: int, query: Any) -> None:
        """Whoever may ask who I am is told."""
        with suppress(self._zenoh.ZError):
            query.reply(query.key_expr, greeting.greeting(self.roster, self.identity, *self._handler.told(other)))
        self._drop(query)

    def _greet(self) -> None:
        """Ask every neighbour who it is until all have said so."""
        pending: set[int] = set()
        missing, pause = {self._numbers[name] for name in self.wires.neighbours}, EAGER
        while missing and not self._closed.wait(pause):
            missing -= self.greeted
            for other in missing - pending:
                pending.add(other)
                where = wiring.key("hello", self.roster.labels[other], self.wires.me)
                heard = self._direct(partial(self._heard, other), partial(pending.discard, other))
                try:
                    self._session.get(where, heard, timeout=PATIENCE)
                except self._zenoh.ZError:
                    return
            pause = min(CALM, 1.3 * pause)

    def _heard(self, other: int, reply: Any) -> None:
        """A neighbour's greeting: it is let in, or refused with the reason."""
        if reply.ok is None or self._closed.is_set():
            return
        shown = reply.ok.payload
        if len(shown) > 2 * self._size:
            why: str | None = f"a greeting of {len(shown)} bytes; mine has {self._size}"
        else:
            why = self._met(other, shown.to_bytes())
        if why is None:
            self._let_in(other)
        elif self.strangers.get(other) != why:  # said once, however often it comes
            self.strangers[other] = why
            self._handler.refused(other, why)

    def _met(self, other: int, shown: bytes) -> str | None:
        """Why a neighbour that shows this is refused; None where all is as it must be."""
        try:
            told = greeting.read(shown, other, self.roster, self.identity.authority)
        except SottovoceError as error:
            return str(error)
        return self._handler.met(other, *told)

    def _let_in(self, other: int) -> None:
        with self._lock:
            self.greeted.add(other)
            self.strangers.pop(other, None)
            unsent, early = self._unsent.pop(other, None), self._early.pop(other, ())
        if unsent is not None:
            self._put(other, unsent)
        for question in early:
            self._handler.asked(other, question)


def _keep() -> None:
    """Zenoh's threads are none of Python's, which makes a thread state for each of their calls, maps memory for its stack, and
    throws both away; one more hold on it, and it stays as long as its thread."""
    ctypes.pythonapi.PyGILState_Ensure()
    _HERE.kept = True
