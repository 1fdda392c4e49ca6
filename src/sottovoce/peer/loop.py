"""The life of one node: protocol, store, link and replay put together.

    with Store(folder, key, roster.digest) as store:
        loop = Loop(roster, me, cost, store, link, draws)
        for k, x in loop.run():     # x after k iterations; whoever stops taking stops the node, and it can go on later
            if loop.over:
                ...                 # write the result down; the node stays until its neighbours have what they need
        store.erase()

The step runs in the thread of whoever iterates, and waits there; the link's own threads take in what comes and answer what is
there. State k, the journal and the messages of an iteration's first exchange are one record, so an iteration costs as many
commits as it has exchanges. A kill at any instant, a wait, ctrl-c and an ended deadline are one path: what is on the disk goes on.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import Ended, RunError
from ..problem import Problem
from .draws import NodeDraws
from .ears import Ears
from .ears import Watch as Watch
from .frame import MOVING, Frames, Place
from .link import Link
from .plan import classes, planned
from .protocol import Protocol
from .recorder import Recorder
from .records import end, leave, put_together, record, start, whole
from .replay import Replay, Wait
from .roster import Roster
from .starts import Starts
from .store import Store

Array = np.ndarray
REPORT = 1.0  # seconds of waiting after which, and between which, is told for whom
FAREWELL = 5.0  # seconds that an ended node stays to tell those who ask
LINGER = 0.5  # seconds that a node stays for those who did not hear its last answer
CONFIRM = 60.0  # seconds that a node which nobody needs any more waits for those who may not know that it needs nothing: they
# may have left, knowing it (after a kill or a cut at the very end nobody can tell), and the result does not depend on them


class Loop(Ears):
    """One node of a roster, with a cost, a place on the disk, and a link."""

    def __init__(
        self, roster: Roster, me: int, cost: Problem, store: Store, link: Link, draws: NodeDraws | Any, *, x0: Array | None = None,
        watch: Watch | None = None, deadline: float | None = None, ahead: int | None = None, patient: bool = True,
        clock: Callable[[], float] = time.monotonic, hashed: bytes = b"", recorder: Recorder | None = None,
    ):  # fmt: skip
        """`deadline`: after so many seconds the run is ended for all, to be resumed. `patient`: a step waits where it is; otherwise
        it is played again. `ahead`: how many iterations a question asks for. `hashed`: what the cost is, as a hash;
        it stays the same all through a run. `recorder`: keeps what this node sees and draws."""
        super().__init__(Protocol(Frames(roster, me), roster.iterations, ahead), Starts(me, hashed), link, watch or Watch(), clock)
        self.roster, self.me, self.store, self.patient = roster, me, store, patient
        self.replay = Replay(planned(roster, cost), me, cost, draws, self, x0, roster.labels[me], recorder)
        self.recorder = recorder
        if isinstance(draws, NodeDraws):
            draws.start = self.start_of
        self.until = None if deadline is None else clock() + deadline
        self.on_disk, self.done = -2, False  # the state that the log ends with; whether everybody has everything
        self.needs: dict[int, int] = {}  # before which iteration each receiver has everything, as the log says
        self.gone: dict[int, int] = {}  # out-neighbours that have everything, as the log says

    # the run -----------------------------------------------------------------------------------------------------

    def run(self) -> Iterator[tuple[int, Array]]:
        """(k, x) from the state that is on the disk on, x^0 at the beginning. The last one comes when it is on the disk (`over` is
        true then: write it down); after it this ends when all neighbours have what they need."""
        self.begin()
        try:
            if self.replay.saved.k < 0:
                self.iterate()
            while True:
                if self.over:
                    self.finish()
                yield self.replay.saved.k, self.x
                if self.over:
                    break
                self.iterate()
            self._await(lambda: self.done or not self.protocol.unfinished(), "to have everything")
            self._await(self._everybody, "to know that this node has everything", CONFIRM)
            self.sign_off()
        finally:
            self.link.close()

    def begin(self) -> None:
        """Read what there is, write the log anew, and open the link."""
        found = put_together(self.store.records(), classes(self.replay.task))
        self.replay.resume(found.saved, found.journal)
        self.starts.resume(found.begun)
        if self.recorder is not None:
            self.recorder.begin(found.saved.k)
        self.protocol.restore((found.saved.k, found.journal.phases), found.kept, {**found.needs, **found.gone})
        self.gone, self.done = found.gone, found.done
        self._rewrite()
        self.store.begun()
        self.link.open(self)
        if not self.over:
            self._reached()

    def iterate(self) -> None:
        """One iteration (the set-up is one); Wait if this node is not patient and something is missing."""
        self._hear()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            saved = self.replay.play()
        if self.recorder is not None:
            self.recorder.take(saved.state)  # on the disk before the state is
        with self.lock:
            heard = self.protocol.moving(saved.k - 1)
        self.replay.take(saved, heard)

    @property
    def over(self) -> bool:
        saved = self.replay.saved
        return saved.over or saved.k == self.roster.iterations

    @property
    def x(self) -> Array:
        """The answer so far, (d,)."""
        return self.replay.answer(self.replay.saved.state)[0, :, 0].copy()

    def finish(self) -> None:
        """The last state is there: write it, and say to all in-neighbours that nothing more is needed of them."""
        if self.on_disk != self.replay.saved.k:
            self._commit(None, {})
        with self.lock:
            asks = self.protocol.finished(self.replay.saved.k)
        if not self.done:
            self._post(asks)

    def _hear(self) -> None:
        """Before an iteration of which messages are still to be made: every out-neighbour has said, since this process began, what
        it has of mine. An old copy of my store shows there, before anything is drawn in the place of what is out. (At the very end
        some may have left; then all my messages are on my disk.)"""
        self._check()
        if self.protocol.place[0] <= self.replay.saved.k and self._silent():
            self._wait(lambda: not self._silent(), "to say what they have of this node")
        if self.starts.new:
            self._note()

    def _silent(self) -> list[int]:
        """Out-neighbours that have not said what they have of mine; who has everything may be gone."""
        return [receiver for receiver in self.protocol.outs if receiver not in self.starts.heard and receiver not in self.gone]

    def _note(self) -> None:
        with self.lock:
            begun = self.starts.begun()
        self.store.append(start(begun))

    def start_of(self, node: int) -> bytes:
        """The nonce with which a node began this run; a neighbour's is on my disk before anything is drawn with it."""
        if node == self.me:
            return self.starts.nonce
        if node not in self.starts.known:
            self._wait(lambda: node in self.starts.heard, f"for node {node} to say who it is")
            self._note()
        return self.starts.known[node]

    def _everybody(self) -> bool:
        return self.done or not (self.protocol.unsaid() or self.protocol.unfinished())

    def sign_off(self) -> None:
        """Everybody has everything: note it, and stay a moment for those who did not hear the last answer."""
        if not self.done:
            self.store.append(end())
            self.done = True
            self._await(lambda: False, "to hear a last answer", LINGER)

    def let_leave(self) -> None:
        """Whoever says that it has everything hears that I know, once that is on the disk: it will not say so twice."""
        with self.lock:
            leaving = self.protocol.leaving()
        if leaving:
            if new := {receiver: k for receiver, k in leaving.items() if receiver not in self.gone}:
                self.store.append(leave(new))
                self.gone |= new
            with self.lock:
                answers = self.protocol.noted(leaving)
            self._post(answers)

    # what the step sends and receives ----------------------------------------------------------------------------

    def send(self, place: Place, parts: tuple[Array, ...]) -> None:
        """Commit the messages of a place, with the state if it is not on the disk yet; then offer them."""
        self._check()
        payloads = self.protocol.frames.payloads(place, parts)
        flags = MOVING if self.replay.saved.moving and self.roster.tolerance is not None else 0
        before = self.on_disk
        self._commit(place, {receiver: (flags, payload) for receiver, payload in payloads.items()})
        self.replay.journal.phases += 1
        with self.lock:
            answers = self.protocol.committed(place, payloads, flags)
        self._post(answers)
        if before != self.on_disk:
            self._reached()
        if self.store.heavy:
            self._rewrite()

    def confirm(self, place: Place, parts: tuple[Array, ...]) -> None:
        """A step that is played again says what it said; what is out stays, and a step that says something else is refused."""
        with self.lock:
            out = {receiver: one.kept[place][1] for receiver, one in self.protocol.outs.items() if place in one.kept}
        payloads = self.protocol.frames.payloads(place, parts) if out else {}
        if any(payloads[receiver] != payload for receiver, payload in out.items()):
            raise RunError(
                f"iteration {place[0]}, exchange {place[1]}: the step, played again, sends another message than the one that is "
                "out; a step and a mechanism must be pure functions of their state, of the node's draws and of its cost"
            )

    def _commit(self, place: Place | None, message: dict[int, tuple[int, bytes]]) -> None:
        saved, journal = self.replay.saved, self.replay.journal
        new = None if self.on_disk == saved.k else saved
        if self.store.keeps:
            self.store.append(record(saved.k, new, journal.phases, journal.fresh(), place, message, self._needed()))
        self.on_disk = saved.k

    def _needed(self) -> dict[int, int]:
        """Before which iteration a receiver has everything, where the disk does not say so yet; it does after this."""
        with self.lock:
            needs = self.protocol.needs
        new = dict(needs.items() - self.needs.items())
        self.needs = needs
        return new

    def _rewrite(self) -> None:
        with self.lock:
            kept, needs, begun = self.protocol.kept(), self.protocol.needs, self.starts.begun()
        saved, journal = self.replay.saved, self.replay.journal
        self.store.rewrite([start(begun), *whole(saved, journal, kept, needs), leave(self.gone), *([end()] if self.done else [])])
        journal.fresh()
        self.on_disk, self.needs = saved.k, needs

    def _reached(self) -> None:
        """My state is on the disk: what its iteration needs may be asked for."""
        with self.lock:
            asks = self.protocol.reached(self.replay.saved.k)
            for ask in asks:
                self.due.pop(ask.sender, None)
        self._post(asks)

    def receive(self, place: Place) -> list[tuple[Array, ...]]:
        """What came for a place; waits for it, or raises Wait."""
        with self.lock:
            if self.protocol.complete(place):
                return self.protocol.inbox(place)
            if not self.patient:
                raise Wait
            self.awaited = place
        self._await(lambda: self.protocol.complete(place), f"for iteration {place[0]}, exchange {place[1]}")
        self.awaited = None
        return self.protocol.inbox(place)

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        """Until it is ready; Wait if this node is not patient."""
        if self.patient:
            return self._await(ready, what)
        self._check()
        with self.lock:
            if not ready():
                raise Wait
        return None

    # waiting -----------------------------------------------------------------------------------------------------

    def _await(self, ready: Callable[[], bool], what: str, at_most: float = np.inf) -> None:
        """Until it is ready: ask again what brought nothing, tell who is waited for, mind the deadline."""
        since = told = self.clock()
        while True:
            self.let_leave()
            with self.lock:
                done = ready()
            self._check(f", while it waited {what}")
            now = self.clock()
            if done or now >= since + at_most:
                return
            with self.lock:
                soonest = min(told + REPORT, since + at_most, self.until or np.inf, *(when for when, _ in self.due.values()))
            try:
                self.wake.get(timeout=max(0.0, soonest - now))
            except queue.Empty:
                now = self.clock()
                self.ask_again(now)
                if now - told >= REPORT:
                    told = now
                    self.watch.waiting(self._whom(), what, now - since)

    def _check(self, doing: str = "") -> None:
        """What the link's threads have found out meanwhile, and the deadline."""
        if self.failure is not None:
            raise self.failure
        if self.protocol.stopped is not None:
            self._leave(f"node {self.protocol.stopped} says that an operator has ended the run")
        if self.until is not None and self.clock() >= self.until:
            self._leave(f"the deadline of node {self.me} has passed{doing}")

    def _whom(self) -> list[int]:
        """The neighbours that are waited for."""
        with self.lock:
            if self.awaited is not None:
                return self.protocol.missing(self.awaited)
            if not self.over:
                return self._silent() or sorted({*self.protocol.ins, *self.protocol.outs} - self.starts.heard.keys())
            return sorted({*self.protocol.unsaid(), *self.protocol.unfinished()})

    def _leave(self, why: str) -> None:
        """Tell whoever asks that the run is ended, then end it here."""
        end, told = self.clock() + FAREWELL, set()
        while self.clock() < end and not told >= set(self.protocol.outs):
            with self.lock:
                answers = self.protocol.farewell()
            self._post(answers)
            told |= {receiver for receiver, *_ in answers}
            time.sleep(LINGER / 10)
        raise Ended(f"{why}; every node stops, nothing is lost: start all nodes again, and they go on where they were")
