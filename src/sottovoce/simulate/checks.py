"""What is refused before anything is played, and why."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import GraphError, ParameterError, ProblemError, WeightError
from ..graph import Graph
from ..layout import layout
from ..problem import Problem
from ..registry import Algorithm, Applied, Choice
from ..sets import Ball, Box
from ..weights import SLACK, Rule, options_of

Array = np.ndarray
FOR_RULES = {"eta": "eta", "awake": "awake", "late": "fresh"}  # a method's parameter, and the option of a rule that it sets


def check_counts(**counts: Any) -> None:
    """Whole numbers from 1 on."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name} must be a whole number, at least 1, not {value!r}")


def check_tolerance(tolerance: Any) -> None:
    """None, or a number above 0."""
    number = isinstance(tolerance, int | float | np.integer | np.floating) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and tolerance > 0):
        raise ParameterError(f"tolerance must be a number above 0 (or None: play all iterations), not {tolerance!r}")


def check_player(method: Algorithm, backend: str) -> None:
    """Whether the method names this player."""
    if backend not in method.players:
        raise ParameterError(
            f"{method.name} does not run on the {backend} player with these parameters, only on: {', '.join(method.players)}"
        )


def check_costs(method: Algorithm, problem: Problem) -> None:
    """A gradient method needs something to minimise, an average something to average."""
    if method.averages and problem.values is None:
        raise ProblemError(
            f"{method.name} averages the nodes' values, and in a problem of the family {problem.family.name!r} they hold none; "
            "take problems.average(values), or a method that minimises"
        )
    if method.averages and not getattr(problem.family, "minimises", True):
        raise ProblemError(
            f"{method.name} finds the mean of the values, and {problem.family.name!r} asks for their sum: take problems.average, "
            "and the number of nodes times its result"
        )
    if method.minimises and not getattr(problem.family, "minimises", True):
        raise ProblemError(
            f"nothing to minimise: the costs of {problem.family.name!r} are zero, so {method.name} would only average its start; "
            "take problems.average for the mean, or a method for sums (an Algorithm with minimises=False)"
        )


def check_quadratic(method: Algorithm, problem: Problem) -> None:
    """A method for quadratic costs would be wrong, and say nothing of it, on others."""
    if method.quadratic and getattr(problem.family, "quadratic", False) is False:
        raise ProblemError(
            f"{method.name} is for quadratic costs, and {problem.family.name!r} is not known to be; take private-newton, which "
            "needs one iteration where the costs are quadratic and a handful elsewhere"
        )


def check_labels(problem: Problem, graph: Graph) -> None:
    """Node i of the problem is node i of the graph: where both have names, they are the same."""
    default, ours, theirs = tuple(range(graph.n)), problem.labels, graph.labels
    if ours is None or default in (ours, theirs) or ours == theirs:
        return
    names = f"the problem has {_listed(ours)}, the graph {_listed(theirs)}"
    if set(ours) != set(theirs):
        raise GraphError(f"problem and graph name different parties: {names}; give both the same labels")
    raise GraphError(
        f"problem and graph name the same parties in another order: {names}; give one of them in the order of the other, for "
        "example Graph.from_labels(problem.labels, edges), or Problem(..., labels=graph.labels) with the data in that order"
    )


def named(graph: Any, problem: Any) -> Any:
    """The graph with the problem's names where it has none of its own; numbers stay numbers, so that they mean one thing."""
    plain = isinstance(graph, Graph) and graph.labels == tuple(range(graph.n))
    names = getattr(problem, "labels", None)
    if not plain or not names or len(names) != graph.n or any(isinstance(name, int | np.integer) for name in names):
        return graph
    return Graph(graph.n, np.column_stack((graph.sender, graph.receiver)), labels=names)


def _listed(labels: Sequence[Any]) -> str:
    return ", ".join(map(repr, labels[:12])) + (f", ... ({len(labels)})" if len(labels) > 12 else "")


def check_stack(method: Algorithm, stack: Sequence[Applied]) -> None:
    """Each mechanism is asked whether it can serve this method below those outside it."""
    for i, applied in enumerate(stack):
        reason = applied.mechanism.needs(method, applied.options, [a.mechanism for a in stack[i + 1 :]])
        if reason:
            raise ParameterError(f"{applied.mechanism.name} cannot be used with {method.name}: {reason}")
        for other in stack[i + 1 :]:
            a, b = applied.mechanism, other.mechanism
            both = set(a.overrides) & set(b.overrides)
            if both and (a is b or b.name not in a.allows or a.name not in b.allows):
                raise ParameterError(f"{a.name} and {b.name} both change {', '.join(sorted(both))}; choose one of them")


def check_settings(method: Algorithm, settled: dict[str, Any]) -> None:
    """Parameters that are fine one by one and not together."""
    reason = method.refuses(SimpleNamespace(**settled))
    if reason:
        raise ParameterError(f"{method.name}: {reason}")


def check_sets(method: Algorithm, settled: dict[str, Any], stack: Sequence[Applied], d: int) -> None:
    """Sets are sets of points with as many coordinates as the problem has."""
    for owner, name, one in sets_of(method, settled, stack):
        reason = one.misfit(d)
        if reason:
            raise ParameterError(f"{owner}: {name}={one} is no set for this problem of {d} unknowns: {reason}")


def sets_of(method: Algorithm, settled: dict[str, Any], stack: Sequence[Applied]) -> list[tuple[str, str, Ball | Box]]:
    """Whose sets they are, the names of the parameters, the sets."""
    owners = [(method.name, settled.items()), *((a.mechanism.name, a.parameters) for a in stack)]
    return [(owner, name, value) for owner, items in owners for name, value in items if isinstance(value, Ball | Box)]


def check_weights(stack: Sequence[Applied], given: dict[str, Any]) -> None:
    """A weight that a mechanism settles is not asked for otherwise."""
    for applied in stack:
        for name, choice in applied.mechanism.weights.items():
            if name in given and not (isinstance(given[name], str) and given[name] == choice):
                raise ParameterError(
                    f"{applied.mechanism.name} makes {name} the same as {choice}, and {name}={given[name]!r} was asked for; leave "
                    "one of the two out"
                )


def check_fit(task: Any) -> None:
    """Each mechanism is shown the whole run before it begins."""
    for applied in task.mechanisms:
        if applied.mechanism.together(applied.options) and (task.x0 != task.x0[:1]).any():
            raise ParameterError(
                f"{applied.mechanism.name}: all nodes must start at the same point; leave x0 out, or give every node the same row"
            )
        reason = applied.mechanism.fits(applied.options, task)
        if reason:
            raise ParameterError(f"{applied.mechanism.name} cannot serve this run: {reason}")


def default_of(choice: Any) -> Any:
    """What a weight is unless told otherwise."""
    return choice.default if isinstance(choice, Choice) else choice


def check_used(method: Algorithm, settled: dict[str, Any]) -> None:
    """A parameter that only rules of weights take, and now none of them does: it would do nothing."""
    usual, now = (
        set().union(*(options_of(value) for value in values))
        for values in (map(default_of, method.weights.values()), (settled[name] for name in method.weights))
    )
    for name, option in FOR_RULES.items():
        declared = method.parameters.get(name)
        if declared is not None and option in usual - now and settled[name] != declared.default:
            raise ParameterError(
                f"{method.name}: {name}={settled[name]!r} would do nothing, for none of the chosen weights takes it; "
                f"leave it out, or keep the weights that do ({', '.join(method.weights)})"
            )


def check_doubly(name: str, one: Rule, constants: Sequence[Array], graphs: Sequence[Graph]) -> None:
    """Rows and columns sum to one on every graph."""
    for number, (constant, graph) in enumerate(zip(constants, graphs, strict=True)):
        entries = layout(graph)
        for index, what in ((entries.target, "row"), (entries.source, "column")):
            sums = np.bincount(index, constant, minlength=graph.n)
            worst = int(np.abs(sums - 1).argmax())
            if not abs(sums[worst] - 1) <= SLACK:
                where = f" on graph {number} of the sequence" if len(graphs) > 1 else ""
                raise WeightError(
                    f"{name} must be doubly stochastic, but with the rule {one.name!r} {what} {worst} sums to "
                    f"{sums[worst]:.6g}{where}; use 'sinkhorn' (any digraph) or 'metropolis' (two-way)"
                )
