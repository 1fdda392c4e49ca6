"""The compiled player: JAX, all nodes and all runs in one loop on the device, the runs on the last axis.

A program is compiled once per process for a method, its mechanisms and the kind of problem; graph, data, weights, stepsize,
seed and the number of iterations are its arguments, never closed over. Everything happens in float64 under a local switch:
the host program's JAX settings are not touched, and only NumPy arrays come out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..draws import SETUP, STEP, CounterDraws
from ..errors import NotInstalled, ProblemError
from ..layout import CoSenders, Layout
from ..registry import Algorithm, Applied
from ..weights import Rule
from . import eager
from .chronicle import BROKEN, SETTLING, Chronicle, Chunk, Played, distance
from .everynode import EveryNode, Stage, refused
from .stack import advance, begin
from .sums import JaxSums
from .tape import Notes, Tape
from .task import Task
from .weigh import Weigher, aids_of

Array = Any
SLOTS = 512  # recorded iterations in one call of a program
MEMORY = 96e6  # bytes that such a call may hand back
BATCH = 4000  # runs at a time on a CPU: beyond, the caches overflow


class Arguments(NamedTuple):
    """What changes from call to call without compiling."""

    layout: Layout
    tables: dict[str, Array]
    schedule: Array | None
    aids: dict[str, tuple[Array, ...]]
    active: Array | None
    data: Any
    values: Array | None
    reverse: Array | None
    pairs: CoSenders | None
    stepsize: Array
    seed: Array
    runs: Array
    optimum: Array
    settled: Array


@dataclass(frozen=True)
class Recipe:
    """What a program is compiled for."""

    algorithm: Algorithm
    stack: tuple[Applied, ...]
    rules: tuple[tuple[str, Rule | str | None], ...]
    family: Any
    coordinates: int
    parameters: tuple[tuple[str, Any], ...]
    diameter: int | None
    keeps: bool
    record: bool
    every: int
    slots: int
    helpers: int

    def answer(self, state: Any) -> Any:
        """What the parties hold against the optimum."""
        found = self.algorithm.answer(state)
        return found[: -self.helpers] if self.helpers else found


def jax_module() -> Any:
    """JAX, or the command that installs it."""
    try:
        import jax
    except ImportError as error:
        raise NotInstalled("the compiled player", "fast") from error
    return jax


def float64() -> Any:
    """JAX in float64, here and now only."""
    jax = jax_module()
    switch = getattr(jax, "enable_x64", None)
    return switch(True) if switch is not None else jax.experimental.enable_x64()


def play(task: Task, watch: Callable[[int], None] = lambda k: None) -> Played:
    """Play a task in JAX."""
    jax = jax_module()
    if not task.problem.traceable:
        raise ProblemError(
            "the compiled player cannot trace a gradient written in NumPy; use backend='eager', "
            "or give the cost as a plain function of jax.numpy"
        )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if task.tolerance is None and len(task.runs) > BATCH and jax.default_backend() == "cpu":
            return _in_batches(task, watch)
        with float64():
            return _play(task, watch)


def _in_batches(task: Task, watch: Callable[[int], None]) -> Played:
    """Equal batches of runs; the last is filled up with runs that are played twice and dropped."""
    count = -(-len(task.runs) // BATCH)
    size = -(-len(task.runs) // count)
    index = np.minimum(np.arange(count * size), len(task.runs) - 1).reshape(count, size)
    done = [play(part_of(task, i), watch) for i in index]
    join = lambda arrays, axis: np.concatenate(arrays, axis)[..., : len(task.runs)]
    answers = join([p.answers for p in done], -1) if done[0].answers is not None else None
    tapes = [Notes.joined(ts, len(task.runs)) for ts in zip(*(p.tapes for p in done), strict=True)]
    setup = Notes.joined([p.setup for p in done], len(task.runs)) if task.record else None
    return Played(
        join([p.x for p in done], -1), done[0].ks, join([p.errors for p in done], -1),
        max(p.invariant for p in done), done[0].iterations, answers, tapes, setup,
    )  # fmt: skip


def part_of(task: Task, index: np.ndarray) -> Task:
    """Some of a task's runs."""
    tables = {name: t[..., index] if t.shape[-1] > 1 else t for name, t in task.tables.items()}
    return replace(task, runs=task.runs[index], x0=np.ascontiguousarray(task.x0[..., index]), tables=tables)


def _play(task: Task, watch: Callable[[int], None]) -> Played:
    setup, state, ms = _begin(task)
    answer = task.answer(state)
    chronicle = Chronicle(task, distance(answer, task.problem.optimum), answer, watch)
    arguments, acting = arguments_of(task), task.active(-1)
    for first, last in task.phases:
        ms = eager.still_acting(ms, acting, task.active(first))
        acting = task.active(first)
        state, ms, stopped = _loop(task, acting, chronicle, arguments, state, ms, first, last)
        if stopped:
            break
    return chronicle.finish(np.asarray(task.answer(state)), setup)


def _begin(task: Task) -> tuple[Notes | None, Any, Any]:
    """The start is played in NumPy: it is one exchange at most, and the draws are the same bits."""
    tape = Tape() if task.record else None
    stage = eager.stage_of(task)
    state, ms = begin(task.algorithm, EveryNode(stage, -1, tape, SETUP), eager.acting_stack(task, task.active(-1)), task.x0)
    notes = None if tape is None else Notes(tape.sent(np, task.layout), tape.draws, state)
    return notes, state, ms


def arguments_of(task: Task) -> Arguments:
    """A task's arrays."""
    draws = CounterDraws(task.seed, task.runs)
    return Arguments(
        task.layout, task.tables, task.schedule, aids_of(task.layout, task.rules, task.tables),
        eager.active_of(task), task.problem.data, eager.values_of(task), eager.reverse_of(task.graph),
        eager.pairs_of(task), task.stepsize, draws.seed, draws.runs, np.asarray(task.problem.optimum), np.int64(task.settled),
    )  # fmt: skip


def recipe_of(task: Task, acting: tuple[bool, ...]) -> Recipe:
    """Everything that a program is compiled for."""
    rules = tuple((name, rule.played() if isinstance(rule, Rule) else rule) for name, rule in task.rules.items())
    stack = tuple(_timeless(a) for a in eager.acting_stack(task, acting))
    own = vars(task.step_parameters)
    return Recipe(
        task.algorithm, stack, rules, task.family, task.problem.d, tuple(own.items()), eager.diameter_of(task),
        task.keeps, task.record, task.every, _slots(task), task.helpers,
    )  # fmt: skip


def _timeless(applied: Applied) -> Applied:
    """A mechanism without the parameter that says how long it lasts: the loop's bounds say it."""
    lasts = applied.mechanism.lasts
    return Applied(applied.mechanism, tuple((k, v) for k, v in applied.parameters if k != lasts))


def _slots(task: Task) -> int:
    size = 8.0 * task.x0.size * (2 + 8 * len(task.layout.source) / task.layout.n if task.record else 0.01)
    return max(1, min(SLOTS, int(MEMORY / size)) // task.every)


def _loop(
    task: Task, acting: tuple[bool, ...], chronicle: Chronicle, arguments: Arguments, state: Any, ms: Any, first: int, last: int
) -> tuple[Any, Any, bool]:
    recipe = recipe_of(task, acting)
    run, described = program(recipe)
    length = recipe.slots * recipe.every
    start = first
    while start < last:
        count = min(last, (start // recipe.every) * recipe.every + length) - start
        before = (state, ms)
        state, ms, found = run(arguments, state, ms, start, count)
        reached = np.asarray(task.answer(state))
        stop = chronicle.add(_chunk(chronicle, start, count, reached, found, described))
        if stop is not None:
            state, ms, _ = run(arguments, *before, start, stop - start)
            return state, ms, True
        start += count
    return state, ms, False


def _chunk(chronicle: Chronicle, start: int, count: int, reached: Any, found: dict[str, Any], described: Any) -> Chunk:
    recorded = len(chronicle.recorded(start, count))
    _check_refused(chronicle, start, count, found, described)
    found = jax_module().tree.map(np.asarray, found)
    tapes = []
    for i in range(count if "sent" in found else 0):
        draws = [d._replace(value=v[i]) for d, v in zip(described["draws"], found["draws"], strict=True)]
        states = jax_module().tree.map(lambda leaf, i=i: leaf[i], found["states"])
        tapes.append(Notes([m[i] for m in found["sent"]], draws, states))
    answers = found["answers"][:recorded] if "answers" in found else None
    return Chunk(
        start, count, found["errors"][:recorded], found["worst"], found["broken"], found["peak"], reached, found["moves"][:count],
        answers, tapes,
    )


def _check_refused(chronicle: Chronicle, start: int, count: int, found: dict[str, Any], described: Any) -> None:
    """A compiled step cannot stop; what it refused on the way is told now, the first of it."""
    told = [(np.asarray(where)[:count], why) for where, why in zip(found["refused"], described["refusals"], strict=True)]
    at = min(((int(np.argmax(where > 0)), i) for i, (where, _) in enumerate(told) if where.any()), default=None)
    if at is not None:
        k, (where, why) = at[0], told[at[1]]
        runs = chronicle.task.runs
        error = refused(start + k, int(where[k]), len(runs), runs, why)
        error.result = chronicle
        raise error


@functools.lru_cache(maxsize=128)
def program(recipe: Recipe) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The compiled loop of a recipe, and what its notes are called."""
    jax = jax_module()
    described: dict[str, Any] = {}

    def loop(arguments: Arguments, state: Any, ms: Any, first: Array, count: Array) -> Any:
        jnp, stage = jax.numpy, _stage(recipe, arguments)

        def once(k: Array, state: Any, ms: Any) -> Any:
            node = EveryNode(stage, k, Tape() if recipe.record else None, STEP)
            node.keeps = recipe.keeps
            following, ms = advance(recipe.algorithm, node, recipe.stack, state, ms)
            before, after = recipe.answer(state), recipe.answer(following)
            described["refusals"] = [why for _, why in node.refusals]
            notes = {"moves": jnp.abs(after - before).max(), "refused": [where for where, _ in node.refusals]}
            if node.tape is not None:
                described["draws"] = [d._replace(value=None) for d in node.tape.draws]
                sent = node.tape.sent(jnp, arguments.layout)
                notes |= {"sent": sent, "draws": [d.value for d in node.tape.draws], "states": following}
            return following, ms, _error(jnp, after, arguments.optimum), _worst(jnp, node.promises, arguments.runs), notes

        return _iterate(jax, recipe, once, state, ms, first, count, arguments)

    return jax.jit(loop), described


def _stage(recipe: Recipe, a: Arguments) -> Stage:
    from types import SimpleNamespace

    jnp = jax_module().numpy
    return Stage(
        jnp, JaxSums(a.layout), a.layout, recipe.family, a.data, CounterDraws.traced(a.seed, a.runs), a.stepsize,
        Weigher(dict(recipe.rules), a.tables, a.schedule, a.aids, a.active), recipe.coordinates,
        parameters=SimpleNamespace(**dict(recipe.parameters)), values=a.values, reverse=a.reverse, diameter=recipe.diameter,
        helpers=recipe.helpers, pairs=a.pairs,
    )  # fmt: skip


def _iterate(jax: Any, recipe: Recipe, once: Any, state: Any, ms: Any, first: Array, count: Array, a: Arguments) -> Any:
    """The loop over k, its records written into buffers."""
    jnp, length, runs = jax.numpy, recipe.slots * recipe.every, len(a.runs)
    notes = jax.eval_shape(once, first, state, ms)[-1]
    buffers = {name: jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), note) for name, note in notes.items()}
    buffers["errors"] = jnp.zeros((recipe.slots + 1, runs))
    if recipe.record:
        answer = jax.eval_shape(recipe.answer, state)
        buffers["answers"] = jnp.zeros((recipe.slots + 1, *answer.shape))
    slot_of = lambda k: (k + recipe.every - 1) // recipe.every

    def body(i: Array, carry: Any) -> Any:
        state, ms, worst, broken, peak, buffers = carry
        state, ms, error, ratio, notes = once(first + i, state, ms)
        put = lambda buffer, value, at: jax.lax.dynamic_update_index_in_dim(buffer, value, at, 0)
        slot = slot_of(first + i + 1) - slot_of(first + 1)
        buffers = dict(buffers, errors=put(buffers["errors"], error, slot))
        if recipe.record:
            buffers["answers"] = put(buffers["answers"], recipe.answer(state), slot)
        for name, note in notes.items():
            buffers[name] = jax.tree.map(lambda buffer, value: put(buffer, value, i), buffers[name], note)
        broken = jnp.where((broken == 0) & (ratio > BROKEN), first + i + 1, broken)
        after = first + i + 1 - a.settled
        peak = jnp.where((after >= 0) & (after <= SETTLING), jnp.maximum(peak, error), peak)
        return state, ms, jnp.maximum(worst, ratio), broken, peak, buffers

    carry = (state, ms, jnp.zeros(runs), jnp.zeros(runs, jnp.int64), jnp.zeros(runs), buffers)
    state, ms, worst, broken, peak, buffers = jax.lax.fori_loop(0, count, body, carry)
    return state, ms, dict(buffers, worst=worst, broken=broken, peak=peak)


def _error(jnp: Any, answer: Array, optimum: Array) -> Array:
    return jnp.sqrt(((answer - optimum[:, None]) ** 2).sum((0, 1)))


def _worst(jnp: Any, promises: list[tuple[Array, Any, Array]], runs: Array) -> Array:
    """The largest shift of this iteration in units of n eps max(|y|, |total|), for each run."""
    worst = jnp.zeros(runs.shape)
    for y, total, shift in promises:
        largest = jnp.abs(y).max((0, 1))
        largest = jnp.maximum(largest, jnp.abs(total) if jnp.ndim(total) == 0 else jnp.abs(total).max((0, 1)))
        ratio = jnp.abs(shift).max(0) / jnp.maximum(y.shape[0] * np.finfo(float).eps * largest, 1e-300)
        worst = jnp.maximum(worst, jnp.where(jnp.isfinite(ratio), ratio, 0))
    return worst
