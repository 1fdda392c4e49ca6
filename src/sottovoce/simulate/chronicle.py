"""What a run leaves behind, and the watch over it: both players hand in their chunks here.

Errors are recorded for k = 0, every, 2 every, ... and the last iteration. A chunk that shows a broken invariant or a
divergence ends the run with an error that carries what there is; a tolerance ends it as a success.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import Diverged, InvariantBroken
from .task import Task

Array = np.ndarray
BROKEN = 1e3  # how many times n eps max(|y|, |total|) rounding alone never reaches
FAR = 1e6  # how many times its error after the start a run may be away before it counts as diverged
SETTLING = 5  # iterations after K in which that error is taken, the largest of them: a wild start shows in x a little later


@dataclass
class Chunk:
    """Iterations k = start + 1 ... start + count of all runs."""

    start: int
    count: int
    errors: Array  # (recorded in this chunk, runs)
    worst: Array  # (runs,) largest shift that kept a promised sum, in units of n eps max(|y|, |total|)
    broken: Array  # (runs,) the first iteration in which it was more than rounding explains, 0 if none
    peak: Array  # (runs,) largest error in the iterations K ... K + SETTLING that lie in this chunk
    last: Array  # (n, d, runs) the answer at its end
    moves: Array | None = None  # (count,) largest change of the answer
    answers: Array | None = None  # (recorded, n, d, runs)
    tapes: list[Any] = field(default_factory=list)


@dataclass
class Played:
    """What a player hands back."""

    x: Array  # (n, d, runs)
    ks: Array
    errors: Array  # (recorded, runs)
    invariant: float
    iterations: int
    answers: Array | None
    tapes: list[Any]
    setup: Any = None


class Chronicle:
    """Collects chunks and judges them."""

    def __init__(self, task: Task, first_errors: Array, first_answer: Array, watch: Callable[[int], None]):
        self.task, self.watch = task, watch
        self.ks, self.errors = [0], [first_errors[None]]
        self.answers = [first_answer[None]] if task.record else []
        self.tapes: list[Any] = []
        self.invariant = 0.0
        self.reference = np.maximum(first_errors, scale_of(task))
        self.last = first_answer
        self.done = 0

    def recorded(self, start: int, count: int) -> Array:
        """Which of the iterations start + 1 ... start + count are recorded."""
        ks = np.arange(start + 1, start + count + 1)
        return ks[(ks % self.task.every == 0) | (ks == self.task.iterations)]

    def add(self, chunk: Chunk) -> int | None:
        """Take a chunk in; the iteration at which the tolerance was reached, if it was."""
        self._judge_invariant(chunk)
        stop = self._stop(chunk)
        ks = self.recorded(chunk.start, chunk.count)
        kept = len(ks) if stop is None else int(np.searchsorted(ks, stop, side="right"))
        self.ks.extend(ks[:kept].tolist())
        self.errors.append(chunk.errors[:kept])
        if chunk.answers is not None and self.task.record:
            self.answers.append(chunk.answers[:kept])
        self.tapes.extend(chunk.tapes[: None if stop is None else stop - chunk.start])
        self.done = chunk.start + chunk.count if stop is None else stop
        self.last = chunk.last
        self._judge_divergence(ks[:kept], chunk)
        self.watch(self.done)
        return stop

    def _stop(self, chunk: Chunk) -> int | None:
        if self.task.tolerance is None or chunk.moves is None:
            return None
        still = (chunk.moves <= self.task.tolerance) & (chunk.start + np.arange(chunk.count) >= self.task.settled)
        return chunk.start + int(still.argmax()) + 1 if still.any() else None

    def _judge_invariant(self, chunk: Chunk) -> None:
        self.invariant = max(self.invariant, float(chunk.worst.max(initial=0)))
        if not (self.task.keeps and chunk.broken.any()):
            return
        r = int(np.where(chunk.broken > 0, chunk.broken, np.inf).argmin())
        raise InvariantBroken(
            f"iteration {int(chunk.broken[r])}, run {int(self.task.runs[r])}: a sum over all nodes that "
            f"{self.task.algorithm.name} promises (sum y = sum g) moved by {chunk.worst[r]:.3g} times n eps max(|y|, |g|), "
            "which no rounding explains: a column of C or B does not sum to one, or a message was lost; check the weights",
            self,
        )

    def _judge_divergence(self, ks: Array, chunk: Chunk) -> None:
        self.reference = np.maximum(self.reference, np.where(np.isfinite(chunk.peak), chunk.peak, 0))
        errors, late = chunk.errors[: len(ks)], ks >= self.task.settled
        with np.errstate(invalid="ignore", over="ignore"):
            far = late[:, None] & ~(errors <= FAR * self.reference)
        if far.any():
            t = int(far.any(1).argmax())
            raise Diverged(self._diverged(int(ks[t]), np.flatnonzero(far[t]), errors[t]), self)

    def _diverged(self, k: int, runs: Array, errors: Array) -> str:
        named = ", ".join(str(int(self.task.runs[r])) for r in runs[:5]) + (", ..." if len(runs) > 5 else "")
        step = self.task.stepsize
        size = f"{step.min():g}" if step.min() == step.max() else f"{step.min():g} to {step.max():g}"
        return (
            f"{self.task.algorithm.name} diverged: at iteration {k} run {named} ({len(runs)} of {len(errors)}) is "
            f"{errors[runs[0]]:.3g} away from the optimum; the stepsize was {size}"
        )

    def finish(self, x: Array, setup: Any = None) -> Played:
        if self.ks[-1] != self.done:  # a tolerance ended the run between two recorded iterations
            self.ks.append(self.done)
            self.errors.append(distance(x, self.task.problem.optimum)[None])
            self.answers += [x[None]] if self.answers else []
        answers = np.concatenate(self.answers) if self.answers else None
        return Played(
            x, np.array(self.ks), np.concatenate(self.errors), self.invariant, self.done, answers, self.tapes, setup
        )


def scale_of(task: Task) -> Array:
    """How far away a run may well be at first: the optimum's own size, or what the first gradients move it."""
    size = float(np.linalg.norm(task.problem.optimum)) * task.problem.n**0.5
    first = task.family.gradient(np, task.problem.data, task.x0)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.sqrt(((task.stepsize * first) ** 2).sum((0, 1)))
    return np.maximum(size, np.where(np.isfinite(moved), moved, 0))


def distance(answers: Array, optimum: Array) -> Array:
    """||x - 1 (x) x*|| of each run: (..., n, d, runs) -> (..., runs)."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap = answers - optimum[:, None]
        if gap.ndim == 3 and gap.shape[-1] == 1:
            return np.sqrt(np.einsum("i,i", gap.ravel(), gap.ravel()))[None]  # one thread: BLAS would wake the others
        return np.sqrt(np.einsum("...ijk,...ijk->...k", gap, gap))
