"""The step of one node, played by replay: the simulator's own `begin` and `advance`, with a journal underneath.

A step runs until an exchange has not all its messages. Then either whoever plays it waits there, or it stops (`Wait`) and is
played again from its start when they are there. Both are the same path as a crash: what it drew, computed and sent in this
iteration comes from the journal, and its ledgers are those with which the iteration began.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..draws import SETUP, START, STEP, Stream
from ..errors import ParameterError
from ..laws import Law
from ..ledger import Ledger
from ..problem import Problem
from ..simulate.eager import acting_stack, still_acting
from ..simulate.onenode import OneNode
from ..simulate.own import Own
from ..simulate.stack import advance, begin
from ..simulate.task import Task
from .frame import Place
from .guard import GuardedCost
from .journal import Journal, JournalCost, JournalDraws
from .plan import drawn_once
from .recorder import Recorder

Array = np.ndarray


class Wait(Exception):  # nothing is wrong
    """A message of this place has not come yet; play the step again when it has."""


class Saved(NamedTuple):
    """All that a node needs to go on with iteration k."""

    k: int
    state: Any
    ms: tuple[Any, ...]  # what the mechanisms keep
    ledgers: tuple[Any, ...]  # the running accounts of promised sums
    tables: tuple[Any, ...]  # the weights that were drawn once a run
    moving: bool = True  # whether somebody that I have heard of in this window moved by more than the tolerance
    over: bool = False  # whether all have settled: there is no iteration k


BEFORE = Saved(-1, None, (), (), ())  # nothing yet: the set-up comes next


class Post(Protocol):
    """Who carries the messages of the step."""

    def send(self, place: Place, parts: tuple[Array, ...]) -> None:
        """Commit my messages of a place, a row an out-neighbour, and offer them. Called once a place."""
        ...

    def confirm(self, place: Place, parts: tuple[Array, ...]) -> None:
        """The step was played again: these must be the messages that are out."""
        ...

    def receive(self, place: Place) -> list[tuple[Array, ...]]:
        """What the in-neighbours sent, in their order; Wait where something is missing."""
        ...


class Replay:
    """One node's run."""

    def __init__(
        self, task: Task, me: int, cost: Problem, draws: Any, post: Post, x0: Array | None = None, whose: str = "",
        recorder: Recorder | None = None,
    ):  # fmt: skip
        self.task, self.post, self.x0, self.recorder = task, post, x0, recorder
        self.together = next((a.mechanism.name for a in task.mechanisms if a.mechanism.together(a.options)), None)
        if self.together and x0 is not None:
            raise ParameterError(
                f"{self.together}: all nodes must start at the same point, which they draw from the roster's public seed; leave "
                "this node's own start out"
            )
        self.draws, self.cost = JournalDraws(draws), JournalCost(GuardedCost(cost.family, whose or f"node {me}"))
        value = None if cost.values is None else np.asarray(cost.values)[:, :, None]
        self.own = Own.alone(task, me, cost.data, value, self.draws, self)
        self.own.family = self.cost
        self.tables = dict(self.own.tables)
        self.saved, self.journal = BEFORE, Journal()
        self.moved = np.inf  # by how much the answer changed in the last step

    def resume(self, saved: Saved, journal: Journal) -> None:
        """Go on from what was on the disk."""
        self.saved, self.journal = saved, journal
        self.own.tables = {**self.tables, **dict(saved.tables)}

    def play(self) -> Saved:
        """Play the iteration that is next, and return what comes after it; Wait where a message is missing."""
        saved, own = self.saved, self.own
        self.journal.rewind()
        self.draws.journal = self.cost.journal = self.journal
        own.ledgers = {key: _ledger(own.n, account) for key, *account in saved.ledgers}
        state, ms = self._set_up() if saved.k < 0 else self._step(saved)
        ledgers = tuple((key, a.value, a.error, a.peak, a.shift) for key, a in own.ledgers.items())
        tables = tuple(self.once.items()) if saved.k < 0 else saved.tables
        return Saved(saved.k + 1, state, ms, ledgers, tables, saved.moving)

    def take(self, saved: Saved, heard: bool) -> None:
        """The iteration is done: what it came to is where the next one begins. `heard`: somebody said in it that somebody moves.

        A tolerance goes by windows of n iterations: in that time a flag that is passed on reaches everybody, so at the end of a
        window all know whether somebody still moved at its beginning, and all stop or none does.
        """
        moving, over = saved.moving or heard, False
        if self.task.tolerance is not None and saved.k and saved.k % self.own.n == 0:
            over = not moving
            moving = saved.k <= self.task.settled or not self.moved <= self.task.tolerance
        self.saved, self.journal = saved._replace(moving=moving, over=over), Journal()

    def _set_up(self) -> tuple[Any, Any]:
        own, task = self.own, self.task
        self.once = drawn_once(task, own, self.draws)
        own.tables = {**self.tables, **self.once}
        x = self._start() if self.x0 is None else np.asarray(self.x0, dtype=float).reshape(1, own.coordinates, 1)
        return begin(task.algorithm, self._node(-1, SETUP), acting_stack(task, task.active(-1)), x)

    def _start(self) -> Array:
        """x^0, standard normal, as in a simulation; everybody's where a mechanism asks for one start."""
        me, draw = np.array([self.own.me * (not self.together)]), self.draws.common if self.together else self.draws.four
        return draw(np, Law(), Stream(START), -1, me, me, self.own.coordinates, (0,))[0]

    def _step(self, saved: Saved) -> tuple[Any, Any]:
        task, acting = self.task, self.task.active(saved.k)
        ms = still_acting(saved.ms, task.active(saved.k - 1), acting)
        state, ms = advance(task.algorithm, self._node(saved.k, STEP), acting_stack(task, acting), saved.state, ms)
        if task.tolerance is not None:
            self.moved = float(np.max(np.abs(self.answer(state) - self.answer(saved.state))))
        return state, ms

    def _node(self, k: int, kind: int) -> OneNode:
        """The node that the step sees; one that notes everything where there is a recorder."""
        return OneNode(self.own, k, kind) if self.recorder is None else self.recorder.noting(self.own, k, kind, self.task)

    def answer(self, state: Any) -> Array:
        return self.task.algorithm.answer(state)

    def cross(self, place: Place, out: tuple[Array, ...]) -> tuple[Array, ...]:
        """The mailbox of `OneNode`: committed and offered once, however often the step is played."""
        if place[1] < self.journal.phases:
            self.post.confirm(place, out)
        else:
            self.post.send(place, out)
        came = self.post.receive(place)
        return tuple(map(np.concatenate, zip(*came, strict=True))) if came else tuple(part[:0] for part in out)


def _ledger(nodes: int, account: list[Any]) -> Ledger:
    ledger = Ledger(nodes)
    ledger.value, ledger.error, ledger.peak, ledger.shift = account
    return ledger
