"""The eager player: NumPy, all nodes at once. The first result waits for no compiler, and any Python gradient will do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..draws import SETUP, STEP, CounterDraws
from ..graph import Graph
from ..layout import CoSenders, co_senders
from .chronicle import BROKEN, SETTLING, Chronicle, Chunk, Played, distance
from .everynode import EveryNode, Stage
from .helpers import padded
from .stack import advance, begin
from .sums import NumpySums
from .tape import Tape
from .task import Task
from .weigh import BlockWeigher, aids_of

Array = np.ndarray
CHUNK = 256  # iterations between two looks at what happened
LARGE = 20_000  # numbers beyond which arrays are looked at one by one
MEMORY = 2e6  # bytes that a chunk may hold back: more, and every new array is a page fault


def play(task: Task, watch: Callable[[int], None] = lambda k: None) -> Played:
    """Play a task in NumPy."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return _play(task, watch)


def stage_of(task: Task) -> Stage:
    """The arrays of a task."""
    return Stage(
        np, NumpySums(task.layout), task.layout, task.family, task.problem.data,
        CounterDraws(task.seed, task.runs), task.stepsize,
        BlockWeigher(
            task.rules, task.tables, task.schedule, task.iterations, aids_of(task.layout, task.rules, task.tables), active_of(task)
        ),
        task.problem.d,
        parameters=task.step_parameters, values=values_of(task), reverse=reverse_of(task.graph),
        diameter=diameter_of(task), helpers=task.helpers, pairs=pairs_of(task),
    )  # fmt: skip


def active_of(task: Task) -> Array | None:
    """Of a sequence: which entries each distinct graph has, (graphs, entries, 1, 1); a node's own share always."""
    if task.sequence is None:
        return None
    found = np.ones((len(task.sequence.distinct), len(task.layout.source), 1, 1))
    found[:, task.layout.edges, 0, 0] = task.sequence.active
    return found


def values_of(task: Task) -> Array | None:
    return None if task.problem.values is None else padded(np.asarray(task.problem.values)[:, :, None], task.helpers)


def reverse_of(graph: Graph) -> Array | None:
    return graph.reverse if graph.undirected else None


def diameter_of(task: Task) -> int | None:
    """Only methods that flood need it, and it is dear to find."""
    floods = task.algorithm.floods or any(a.mechanism.floods for a in task.mechanisms)
    return task.graph.diameter if floods else None


def pairs_of(task: Task) -> CoSenders | None:
    """Only mechanisms whose words cancel need them, and they are many where graphs are dense."""
    return co_senders(task.graph) if any(a.mechanism.cancels for a in task.mechanisms) else None


def _play(task: Task, watch: Callable[[int], None]) -> Played:
    stage, method = stage_of(task), task.algorithm
    setup = Tape() if task.record else None
    node = EveryNode(stage, -1, setup, SETUP)
    node.keeps = task.keeps
    acting = task.active(-1)
    state, ms = begin(method, node, acting_stack(task, acting), task.x0)
    if setup is not None:
        setup.states = state
    answer = task.answer(state)
    chronicle = Chronicle(task, distance(answer, task.problem.optimum), answer, watch)
    for first, last in task.phases:
        ms = still_acting(ms, acting, task.active(first))
        acting = task.active(first)
        chunks = Chunks(task, stage, acting_stack(task, acting), chronicle)
        state, ms, stopped = chunks.loop(state, ms, first, last)
        if stopped is not None:
            return chronicle.finish(stopped, setup)
    return chronicle.finish(task.answer(state), setup)


def acting_stack(task: Task, acting: tuple[bool, ...]) -> tuple[Any, ...]:
    """The mechanisms that act."""
    return tuple(a for a, acts in zip(task.mechanisms, acting, strict=True) if acts)


def still_acting(ms: tuple[Any, ...], before: tuple[bool, ...], now: tuple[bool, ...]) -> tuple[Any, ...]:
    """What the mechanisms keep, without those that have ended."""
    still = [n for b, n in zip(before, now, strict=True) if b]
    return tuple(m for m, acts in zip(ms, still, strict=True) if acts)


class Chunks:
    """A loop of iterations with the same mechanisms, looked at once a chunk."""

    def __init__(self, task: Task, stage: Stage, stack: tuple[Any, ...], chronicle: Chronicle):
        self.task, self.stage, self.stack, self.chronicle = task, stage, stack, chronicle
        stage.weigher.forget()
        self.length = max(1, min(CHUNK, int(MEMORY / (task.x0.nbytes * 4))))

    def loop(self, state: Any, ms: Any, first: int, last: int) -> tuple[Any, Any, Array | None]:
        """Until `last`, or until the tolerance is reached; then the answer of that iteration is the third."""
        for k in range(first, last, self.length):
            count = min(self.length, last - k)
            before = self.task.answer(state)
            state, ms, answers, promises, tapes = self._iterate(state, ms, k, count)
            stop = self.chronicle.add(self._chunk(k, count, before, answers, promises, tapes))
            if stop is not None:
                return state, ms, answers[stop - k - 1]
        return state, ms, None

    def _iterate(self, state: Any, ms: Any, start: int, count: int) -> tuple[Any, Any, list[Array], list[Any], list[Tape]]:
        method, answers, promises, tapes = self.task.algorithm, [], [], []
        for k in range(start, start + count):
            tape = Tape() if self.task.record else None
            node = EveryNode(self.stage, k, tape, STEP)
            node.keeps = self.task.keeps
            state, ms = advance(method, node, self.stack, state, ms)
            answers.append(self.task.answer(state))
            promises.append(node.promises)
            if tape is not None:
                tape.states = state
                tapes.append(tape)
        return state, ms, answers, promises, tapes

    def _chunk(
        self, start: int, count: int, before: Array, answers: list[Array], promises: list[Any], tapes: list[Tape]
    ) -> Chunk:
        ks = self.chronicle.recorded(start, count)
        kept, moves = [answers[k - start - 1] for k in ks], None
        if self.task.tolerance is not None:
            steps = np.diff(np.stack([before, *answers]), axis=0)
            moves = np.abs(steps).max((1, 2, 3))
        worst, broken = judged(ratios(promises), start)
        errors = _errors(kept, self.task.problem.optimum, before.shape[-1])
        record = np.stack(kept) if self.task.record and kept else None
        peak = self._peak(start, answers, before.shape[-1])
        return Chunk(start, count, errors, worst, broken, peak, answers[-1], moves, record, tapes)

    def _peak(self, start: int, answers: list[Array], runs: int) -> Array:
        first = max(self.task.settled - start - 1, 0)
        near = answers[first : max(self.task.settled + SETTLING - start, 0)]
        return _errors(near, self.task.problem.optimum, runs).max(0, initial=0)


def _errors(answers: list[Array], optimum: Array, runs: int) -> Array:
    if not answers:
        return np.empty((0, runs))
    if answers[0].size > LARGE:
        return np.stack([distance(a, optimum) for a in answers])
    return distance(np.stack(answers), optimum)


def ratios(promises: list[list[tuple[Array, Any, Array]]]) -> Array:
    """Each iteration's shift in units of n eps max(|y|, |total|), the largest over what was promised: (count, runs)."""
    found = []
    for place in zip(*promises, strict=True):
        y, shift = _stacked([p[0] for p in place]), np.abs(np.stack([p[2] for p in place])).max(1)
        given = _stacked([p[1] for p in place]) if np.ndim(place[0][1]) else float(place[0][1])
        largest = np.maximum(y, given)
        found.append(shift / np.maximum(place[0][0].shape[0] * np.finfo(float).eps * largest, 1e-300))
    return np.max(found, axis=0) if found else np.empty((0, 1))


def _stacked(arrays: list[Array]) -> Array:
    """The largest modulus of each run, array by array: (count, runs). Small arrays are stacked, large ones not copied."""
    if arrays[0].size > LARGE:
        return np.stack([np.maximum(a.max((0, 1)), -a.min((0, 1))) for a in arrays])
    return np.abs(np.stack(arrays)).max((1, 2))


def judged(sizes: Array, start: int) -> tuple[Array, Array]:
    """The largest shift of each run, and the first iteration in which it was too large (0: none)."""
    sizes = np.where(np.isfinite(sizes), sizes, 0)
    too_large = sizes > BROKEN
    first = start + 1 + too_large.argmax(0) if len(sizes) else np.zeros(1, int)
    return sizes.max(0, initial=0), np.where(too_large.any(0), first, 0)
