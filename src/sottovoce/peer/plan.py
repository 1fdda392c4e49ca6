"""From what all agree on to what one node plays, and back: the task of a roster, and the facts of a task.

A node resolves weights, schedule and mechanisms as a simulation does, by the very same code, but for its own cost alone: no
other node's data exist here. Weights that are drawn once a run are drawn by each node for its own side (`drawn_once`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..draws import WEIGHTS, Draws, Stream
from ..errors import ParameterError, ProblemError
from ..graph import Graph
from ..problem import Problem
from ..registry import mechanism
from ..sequence import GraphSequence
from ..simulate.checks import check_player
from ..simulate.eager import acting_stack, diameter_of, pairs_of
from ..simulate.meter import rehearsed, shapes
from ..simulate.own import Own
from ..simulate.task import Task, prepare, rule_of, table_of
from ..weights import Given, Rule
from .roster import Roster

Array = np.ndarray


def planned(roster: Roster, cost: Problem) -> Task:
    """What a node with this cost (a Problem of one node) plays; refused with a reason where it cannot be played."""
    if cost.n != 1 or cost.d != roster.d:
        raise ProblemError(f"a node has one cost, on R^{roster.d} by the roster; this problem has {cost.n} nodes and d = {cost.d}")
    everybody = copy.copy(cost)  # its family and its shapes serve to check whether the method can run; the data are this node's
    everybody.n, everybody.labels = roster.n, None
    graphs = [Graph(roster.n, edges) for edges in roster.graphs]
    task = prepare(
        roster.algorithm, everybody, graphs[0] if len(graphs) == 1 else GraphSequence(graphs), stepsize=roster.stepsize,
        iterations=roster.iterations, runs=1, seed=0, mechanisms=[mechanism(name, **dict(o)) for name, o in roster.mechanisms],
        record=False, x0=np.zeros((roster.n, roster.d)), every=1, tolerance=roster.tolerance, parameters=dict(roster.parameters),
    )  # fmt: skip
    check_player(task.algorithm, "peer")
    _check_deployable(task)
    return task


def _check_deployable(task: Task) -> None:
    """What only a simulation plays so far."""
    pairs, linked = pairs_of(task), {frozenset(edge) for edge in task.graph.edges}
    for one, other in () if pairs is None else zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        if frozenset((one, other)) not in linked:
            raise ParameterError(
                f"nodes {one} and {other} send to the same node, so they would mask together, but there is no link between them on "
                "which to agree how a run begins; on real nodes add one, in either direction, or leave the masks out"
            )
    if task.helpers:
        raise ParameterError(
            f"{task.algorithm.name} asks for {task.helpers} helper nodes, and a federation consists of its parties alone; "
            "take a method without helpers, such as private-sum"
        )
    for what in (task.algorithm, *(a.mechanism for a in task.mechanisms)):
        if what.simulated:
            raise ParameterError(f"{what.name} is for simulation only: {what.simulated}")


def agreed(task: Task) -> dict[str, Any]:
    """What a roster says of a task; names, keys, the public seed and the magnitude are added by whoever makes the federation."""
    own = len(task.algorithm.mechanisms(task.step_parameters))
    steps = tuple(float(step) for step in task.stepsize[:, 0, 0])
    graphs = [task.graph] if task.sequence is None else task.sequence.cycle
    return {
        "graphs": tuple(graph.edges for graph in graphs),
        "algorithm": task.algorithm.name,
        "parameters": tuple((name, _plain(value)) for name, value in task.parameters.items()),
        "mechanisms": tuple((a.mechanism.name, tuple((k, _plain(v)) for k, v in a.parameters)) for a in task.mechanisms[own:]),
        "d": task.problem.d,
        "stepsize": steps[0] if len(steps) == 1 else steps,
        "iterations": task.iterations,
        "tolerance": task.tolerance,
        "payloads": payloads(task),
    }


def _plain(value: Any) -> Any:
    """Numbers, words and tuples of them."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def payloads(task: Task) -> tuple[tuple[int, tuple[Any, ...]], ...]:
    """From which iteration on messages look how, the set-up (-1) first."""
    stages: list[tuple[int, tuple[Any, ...]]] = []
    for first, setup, tape, _ in _rehearsals(task):
        if not stages:
            stages.append((-1, tuple(shapes(setup))))
        stages.append((first, tuple(shapes(tape))))
    return tuple(stages)


def classes(task: Task) -> dict[str, Any]:
    """Every NamedTuple that a state may hold, by name."""
    found: dict[str, Any] = {}

    def walk(value: Any) -> None:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                found[type(value).__qualname__] = type(value)
            for part in value:
                walk(part)

    for *_, states in _rehearsals(task):
        walk(tuple(states))
    return found


def on_edges(task: Task) -> frozenset[str]:
    """Which parts of a state a node holds for each of its out-edges: on three nodes with two each they are six."""
    states = [state for *_, both in _rehearsals(task) for state, _ in both]
    return frozenset(name for state in states for name in state._fields if len(getattr(state, name)) == 6)


def _rehearsals(task: Task) -> Iterator[tuple[Any, ...]]:
    for first, _ in task.phases:
        stack = acting_stack(task, task.active(first))
        arguments = task.rules, stack, task.problem.d, task.step_parameters, diameter_of(task), task.graph.n
        yield first, *rehearsed(task.algorithm, *arguments)


def drawn_once(task: Task, own: Own, draws: Draws) -> dict[str, Any]:
    """The weights that are drawn once a run, for this node's side of them; nobody has the other one."""
    graphs = [task.graph] if task.sequence is None else list(task.sequence.distinct)
    found: dict[str, Any] = {}
    for i, (name, rule) in enumerate(_rules(task)):
        if rule is None or rule.law is None or rule.fresh:
            continue
        entries = own.column if rule.side == "column" else own.row
        table = table_of([rule.constant(graph) for graph in graphs], graphs, task.graph)[:, entries.index]
        (raw,) = draws.four(np, rule.law, Stream(WEIGHTS, i // 4), -1, entries.sender, entries.receiver, 1, (i % 4,))
        weighed = np.stack([rule.weigh(np, entries.side, raw.copy(), constant) for constant in table])
        mine = weighed if task.sequence is not None else weighed[0]
        found[name] = (None, mine) if rule.side == "column" else (mine, None)
    return found


def _rules(task: Task) -> Iterator[tuple[str, Rule | None]]:
    """The rule of each weight as it was before anything was drawn for it; None for the identity or the same as another."""
    for name, rule in task.rules.items():
        yield name, rule_of(task.algorithm, task.parameters, name) if isinstance(rule, Given) else None
