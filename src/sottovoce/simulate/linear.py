"""The linear recursion that a step is around the optimum, read off by playing the step itself.

On quadratic costs with their optimum at zero every method here maps its state linearly (push-sum weights, which no start
influences, at their fixed point). Playing one iteration on unit vectors, side by side as runs, gives the matrix; playing
many on random starts gives the growth of products where weights are fresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..draws import SETUP, STEP, CounterDraws
from ..family import Quadratic
from ..problem import Problem
from . import eager
from .everynode import EveryNode
from .helpers import helped
from .stack import advance, begin, dressed
from .task import Task
from .weigh import BlockWeigher

Array = np.ndarray
SIDE = 256  # unit vectors at a time
DENSE = 240  # numbers in a state up to which its matrix is held densely
REDUCED = 2500  # and up to which, of few nodes with many coordinates, it is held on what starts can reach, two thirds of it
SPANNED = 1e-9  # what is less than this share of a unit vector is rounding
TOLERANCE: Any = 1e-9


@dataclass
class Recursion:
    """s+ = (M0 + stepsize M1) s, with the directions J in which starts differ."""

    constant: Any
    slope: Any
    starts: Any  # None: they reach all of it
    unit: float
    d: int

    def at(self, stepsize: float) -> Any:
        return self.constant + self.unit * stepsize * self.slope


def behind(task: Task, seed: int, runs: Array) -> Problem:
    """The costs as the step sees them: quadratic models at the optimum where a mechanism puts others in their place.

    Of many runs, each with costs of its own, the one with the steepest. Nothing of what a mechanism adds is seen apart from
    the cost that it is added to, so what is advised tells no more than that cost does.
    """
    if not any("gradient" in a.mechanism.overrides for a in task.mechanisms):
        return task.problem
    stack, stage = eager.acting_stack(task, task.active(-1)), eager.stage_of(task)
    stage.draws = CounterDraws(seed, runs)
    x = np.broadcast_to(task.problem.optimum[None, :, None], (task.problem.n, task.problem.d, len(runs))).copy()
    _, ms = begin(task.algorithm, EveryNode(stage, -1, None, SETUP), stack, x)
    node, _ = dressed(EveryNode(stage, -1, None, SETUP), stack, ms)
    H, g = node.hessian(x), node.gradient(x)
    run = int(np.abs(np.linalg.eigvalsh(np.moveaxis(H, -1, 0))).max((1, 2)).argmax())
    H, g = (H[..., run] + H[..., run].swapaxes(1, 2)) / 2, g[..., run]
    b = H @ task.problem.optimum - g
    return Problem.of(Quadratic(), (H, b, np.zeros(len(b))), task.problem.d, optimum=task.problem.optimum)


class Linearised:
    """A task's late iterations on a homogeneous quadratic problem."""

    def __init__(self, task: Task):
        model = task.problem.quadratic_model()
        family, (H, *rest) = model.family, model.data
        self.task = replace(task, mechanisms=(), record=False)
        self.unit = float(np.max(task.problem.smoothness))  # only the product of stepsize and curvature matters
        self.data = (np.asarray(H) / self.unit, *(0 * np.asarray(r) for r in rest))
        self.family = helped(family, task.helpers)
        self.n, self.d = task.layout.n, task.problem.d
        zero = np.zeros((self.n, self.d, 1))
        self.rest = self._settled(self._begin(zero, 1))
        moved = self._begin(np.ones_like(zero) + np.arange(self.n)[:, None, None], 1)
        moved = self._step(moved, 0.1, 0, 1)
        still = self._step(self._begin(zero, 1), 0.1, 0, 1)
        self.live = [not np.array_equal(a, b) for a, b in zip(moved, still, strict=True)]

    @property
    def size(self) -> int:
        """How many numbers the state holds that a start can move."""
        return sum(leaf.shape[0] * leaf.shape[1] for leaf, live in zip(self.rest, self.live, strict=True) if live)

    def _node(self, stepsize: Any, k: int, runs: int, kind: int) -> EveryNode:
        stage = eager.stage_of(replace(self.task, runs=np.arange(runs, dtype=np.uint64)))
        stage.family, stage.data = self.family, self.data
        stage.stepsize = np.asarray(stepsize, dtype=float)
        stage.draws = CounterDraws(self.task.seed, runs)
        return EveryNode(stage, k, None, kind)

    def _begin(self, x0: Array, runs: int) -> Any:
        state, _ = begin(self.task.algorithm, self._node(0.0, -1, runs, SETUP), (), x0)
        return state

    def _step(self, state: Any, stepsize: Any, k: int, runs: int) -> Any:
        node = self._node(stepsize, k, runs, STEP)
        node.keeps = False  # or every node would hear of every other's rounding, and no matrix were sparse
        following, _ = advance(self.task.algorithm, node, (), state, ())
        return following

    def _settled(self, state: Any) -> Any:
        """What no start moves, where it comes to rest."""
        node = self._node(0.0, 0, 1, STEP)
        for _ in range(20_000):
            fresh = EveryNode(node.stage, 0, None, STEP)
            following, _ = advance(self.task.algorithm, fresh, (), state, ())
            change = max(np.abs(a - b).max() for a, b in zip(following, state, strict=True))
            state = following
            if change < 1e-14:
                break
        return state

    def recursion(self) -> Recursion:
        """The matrices (sparse where they are large); for weights that do not change."""
        zero, one = (self._columns(self.size, lambda unit, a=a: self._step(self._state(unit), a, 0, 1)) for a in (0.0, 1.0))
        starts = self._columns(self.n * self.d, lambda unit: self._begin(unit.reshape(self.n, self.d, -1), 1))
        if DENSE < self.size <= REDUCED and self.n <= self.d:
            zero, slope, starts = (matrix.toarray() for matrix in (zero, one - zero, starts))
            Q = reached(zero, slope, starts)
            return Recursion(Q.T @ zero @ Q, Q.T @ slope @ Q, None, self.unit, self.d)
        return Recursion(zero, one - zero, starts, self.unit, self.d)

    def _columns(self, count: int, play: Callable[[Array], Any]) -> Any:
        """What each unit vector becomes, as the columns of a matrix."""
        units = [np.eye(count, min(SIDE, count - lo), -lo) for lo in range(0, count, SIDE)]
        columns = (self._flat(play(unit)) for unit in units)
        if self.size <= DENSE:
            return np.hstack(list(columns))
        from scipy.sparse import csc_array, hstack

        return hstack([csc_array(c) for c in columns]).tocsr()

    def _flat(self, state: Any) -> Array:
        leaves = [leaf for leaf, live in zip(state, self.live, strict=True) if live]
        return np.concatenate([leaf.reshape(-1, leaf.shape[-1]) for leaf in leaves])

    def _state(self, flat: Array) -> Any:
        leaves, at = [], 0
        for leaf, live in zip(self.rest, self.live, strict=True):
            if not live:
                leaves.append(np.broadcast_to(leaf, (*leaf.shape[:2], flat.shape[-1])))
                continue
            size = leaf.shape[0] * leaf.shape[1]
            leaves.append(flat[at : at + size].reshape(*leaf.shape[:2], -1))
            at += size
        return type(self.rest)(*leaves)

    def growth(self, stepsizes: Array, repeats: int, iterations: int) -> Array:
        """Growth of the state from one iteration to the next over the second half, the worst of the repeats."""
        runs = len(stepsizes) * repeats
        sizes = self.unit * np.repeat(stepsizes, repeats)[None, None]
        node = self._node(sizes, 0, runs, STEP)
        weigher = node.stage.weigher
        assert isinstance(weigher, BlockWeigher)
        weigher.until = iterations
        x0 = np.random.default_rng(0).normal(size=(self.n, self.d, runs))
        state, total = self._begin(x0, runs), np.zeros(runs)
        for k in range(iterations):
            state, _ = advance(self.task.algorithm, EveryNode(node.stage, k, None, STEP), (), state, ())
            if k % 10 == 9 or k == iterations - 1:
                norm = np.sqrt(sum((leaf**2).sum((0, 1)) for leaf, live in zip(state, self.live, strict=True) if live))
                norm = np.where(np.isfinite(norm) & (norm > 0), norm, 1e-300)
                state = type(state)(*(s / norm if live else s for s, live in zip(state, self.live, strict=True)))
                total = total + np.log(norm) if k >= iterations // 2 else np.zeros(runs)
        return np.exp(total / (iterations - iterations // 2)).reshape(-1, repeats).max(1)


def reached(constant: Array, slope: Array, starts: Array) -> Array:
    """An orthonormal basis of where starts can lead, whatever the stepsize: what a method conserves is not in it."""
    found, new = np.empty((len(constant), 0)), starts
    while new.shape[1]:
        for _ in range(2):  # twice, against rounding
            new = new - found @ (found.T @ new)
        left, size, _ = np.linalg.svd(new, full_matrices=False)
        fresh = left[:, size > SPANNED]
        found = np.hstack([found, fresh])
        new = np.hstack([constant @ fresh, slope @ fresh])
    return found


def radius(matrix: Any, starts: Any, d: int) -> float:
    """The largest modulus among the modes that some start excites (a mode is left out when its left eigenvector is
    orthogonal to every start: what a method conserves, Popov, Belevitch, Hautus)."""
    if not isinstance(matrix, np.ndarray):
        return _sparse_radius(matrix, starts, d)
    if starts is None:
        return float(np.abs(np.linalg.eigvals(matrix)).max())
    values, left = np.linalg.eig(matrix.T)
    return _excited(values, left, starts)


def _excited(values: Array, left: Array, starts: Any) -> float:
    reach = np.linalg.norm(starts.T @ left, axis=0) / np.linalg.norm(left, axis=0)
    live = reach > 1e-7 * max(reach.max(), 1e-300)
    return float(np.abs(values[live]).max()) if live.any() else 0.0


def _sparse_radius(matrix: Any, starts: Any, d: int) -> float:
    """Shift and invert near one, where slow modes crowd and plain Arnoldi fails, beside the d that a method conserves; and the
    largest ones."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigs

    n, found = matrix.shape[0], 0.0
    v0 = np.random.default_rng(0).normal(size=n)
    near: dict[str, Any] = {"sigma": 1 + 1e-6, "k": min(n - 2, max(24, 2 * d))}
    large: dict[str, Any] = {"which": "LM", "k": min(n - 2, 8), "maxiter": 60}
    for options in (near, large):
        try:
            pairs: Any = eigs(matrix.T.tocsc(), v0=v0, tol=TOLERANCE, **options)
        except ArpackNoConvergence as error:
            pairs = error.eigenvalues, error.eigenvectors
        except (ArpackError, RuntimeError):
            continue
        if len(pairs[0]):
            found = max(found, _excited(pairs[0], pairs[1], starts))
    return found
