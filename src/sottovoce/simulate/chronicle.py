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
SETTLING = 50  # iterations after K in which that error is taken, the largest of them


@dataclass
class Chunk:
    """Iterations k = start + 1 ... start + count of all runs."""

    start: int
    count: int
    errors: Array  # (recorded in this chunk, runs)
    worst: Array  # (runs,) largest shift that kept a promised sum, in units of n eps max(|y|, |total|)
    broken: Array  # (runs,) the first iteration in which it was more than rounding explains, 0 if none
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
        self.reference = first_errors if task.settled == 0 else np.full_like(first_errors, -np.inf)
        self.size = max(float(np.linalg.norm(task.problem.optimum)), 1e-12) * task.problem.n**0.5
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
        self._judge_divergence(ks[:kept], chunk.errors[:kept])
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

    def _judge_divergence(self, ks: Array, errors: Array) -> None:
        late = ks >= self.task.settled
        early = late & ((ks <= self.task.settled + SETTLING) | np.isneginf(self.reference).all())
        if early.any():  # the error at K may be small by chance, or because the start was a good one
            self.reference = np.maximum(self.reference, np.where(np.isfinite(errors[early]), errors[early], -np.inf).max(0))
        with np.errstate(invalid="ignore", over="ignore"):
            far = late[:, None] & ~(errors <= FAR * np.maximum(self.reference, self.size))
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

    def answers_last(self) -> Array:
        """Where a run that was broken off stood: not kept, hence not numbers."""
        task = self.task
        return self.answers[-1][-1] if self.answers else np.full(task.x0.shape, np.nan)

    def finish(self, x: Array, setup: Any = None) -> Played:
        if self.ks[-1] != self.done:  # a tolerance ended the run between two recorded iterations
            self.ks.append(self.done)
            self.errors.append(distance(x, self.task.problem.optimum)[None])
            self.answers += [x[None]] if self.answers else []
        answers = np.concatenate(self.answers) if self.answers else None
        return Played(
            x, np.array(self.ks), np.concatenate(self.errors), self.invariant, self.done, answers, self.tapes, setup
        )


def distance(answers: Array, optimum: Array) -> Array:
    """||x - 1 (x) x*|| of each run: (..., n, d, runs) -> (..., runs)."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap = answers - optimum[:, None]
        if gap.ndim == 3 and gap.shape[-1] == 1:
            return np.sqrt(np.einsum("i,i", gap.ravel(), gap.ravel()))[None]  # one thread: BLAS would wake the others
        return np.sqrt(np.einsum("...ijk,...ijk->...k", gap, gap))
