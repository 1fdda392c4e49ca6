"""One thread a node: an exchange really sends and really waits, and no step can look over its neighbour's shoulder.

It plays run 0 of a task, for tests, and is the pattern for a real node: what a thread does here, a process does there.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..draws import SETUP
from ..errors import ParameterError, RunError
from .chronicle import SETTLING, Chronicle, Chunk, Played, distance
from .eager import acting_stack, still_acting
from .onenode import OneNode
from .own import Own
from .stack import advance, begin
from .task import Task

Array = np.ndarray
PATIENCE = 30.0  # seconds that a node waits for one message


class Stopped(Exception):  # nothing is wrong with this node
    """Another node has failed."""


class Mail:
    """A queue an edge."""

    def __init__(self, edges: tuple[tuple[int, int], ...], patience: float = PATIENCE):
        self.boxes: dict[tuple[int, int], queue.Queue[Any]] = {edge: queue.Queue() for edge in edges}
        self.stop, self.patience = threading.Event(), patience

    def send(self, edge: tuple[int, int], key: tuple[int, int], payload: tuple[Array, ...]) -> None:
        self.boxes[edge].put((key, tuple(part.copy() for part in payload)))

    def receive(self, edge: tuple[int, int], key: tuple[int, int]) -> tuple[Array, ...]:
        for _ in range(int(self.patience / 0.05)):
            if self.stop.is_set():
                raise Stopped
            try:
                found, payload = self.boxes[edge].get(timeout=0.05)
            except queue.Empty:
                continue
            if found != key:
                raise RunError(f"node {edge[1]} expected message {key} (iteration, phase) from node {edge[0]}, got {found}")
            return payload
        raise RunError(f"node {edge[1]} waited {self.patience:g} s for message {key} (iteration, phase) from node {edge[0]}")


class Box:
    """One node's end of the mail: what `OneNode` crosses."""

    def __init__(self, mail: Mail, own: Own):
        self.mail = mail
        self.out = [(own.me, receiver) for receiver in own.column.receiver[1:].tolist()]
        self.ins = [(sender, own.me) for sender in own.row.sender[1:].tolist()]

    def cross(self, key: tuple[int, int], out: tuple[Array, ...]) -> tuple[Array, ...]:
        for j, edge in enumerate(self.out):
            self.mail.send(edge, key, tuple(part[j : j + 1] for part in out))
        came = [self.mail.receive(edge, key) for edge in self.ins]
        return tuple(np.concatenate([part[:0], *rows]) for part, *rows in zip(out, *came, strict=True))


def live(task: Task, own: Own) -> list[Array]:
    """The life of one node: its answer after every iteration, the start first."""
    acting = task.active(-1)
    state, ms = begin(task.algorithm, OneNode(own, -1, SETUP), acting_stack(task, acting), task.x0[own.me : own.me + 1, :, :1])
    answers = [task.algorithm.answer(state)]
    for first, last in task.phases:
        ms = still_acting(ms, acting, task.active(first))
        acting = task.active(first)
        for k in range(first, last):
            state, ms = advance(task.algorithm, OneNode(own, k), acting_stack(task, acting), state, ms)
            answers.append(task.algorithm.answer(state))
    return answers


def play(task: Task, watch: Callable[[int], None] = lambda k: None, patience: float = PATIENCE) -> Played:
    """Play run 0 of a task with one thread a node; the first node that fails ends all."""
    if task.tolerance is not None:
        raise ParameterError("one node cannot tell when all have settled: leave tolerance out with a thread a node")
    mail, answers, failures = Mail(task.graph.edges, patience), {}, []
    owns = [Own.of(task, i, None) for i in range(task.graph.n)]
    for own in owns:
        own.mail = Box(mail, own)

    def thread(own: Own) -> None:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                answers[own.me] = live(task, own)
        except Stopped:
            pass
        except BaseException as error:
            failures.append(error)
            mail.stop.set()

    threads = [threading.Thread(target=thread, args=(own,), daemon=True) for own in owns]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise failures[0]
    shift = max((ledger.shift for own in owns for ledger in own.ledgers.values()), default=0.0)
    return told(task, np.concatenate([np.stack(answers[i]) for i in range(task.problem.n)], 1), shift, watch)


def told(task: Task, answers: Array, shift: float, watch: Callable[[int], None]) -> Played:
    """(iteration, n, d, 1) as the other players hand it back; judged for divergence like theirs."""
    errors = distance(answers, task.problem.optimum)
    chronicle = Chronicle(task, errors[0], answers[0], watch)
    ks = chronicle.recorded(0, task.iterations)
    none, peak = np.zeros(1, int), errors[task.settled : task.settled + SETTLING + 1].max(0, initial=0)
    kept = answers[ks] if task.record else None
    chronicle.add(Chunk(0, task.iterations, errors[ks], np.full(1, shift), none, peak, answers[-1], None, kept))
    return chronicle.finish(answers[-1])
