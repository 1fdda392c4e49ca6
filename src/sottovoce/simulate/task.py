"""What a player is asked to play: everything checked, resolved and in arrays before the first iteration."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..draws import START, WEIGHTS, CounterDraws, Stream
from ..errors import GraphError, ParameterError, ProblemError
from ..family import Family
from ..graph import Graph
from ..laws import Law
from ..layout import Columns, Layout, Rows, layout
from ..problem import Problem
from ..registry import Algorithm, Applied, algorithm, mechanism, settle, underscored
from ..sequence import GraphSequence, as_graph
from ..weights import Given, Rule, rule
from . import checks
from .helpers import helped, joined, padded
from .weigh import Rules

Array = np.ndarray


@dataclass
class Task:
    """One call of `run`, ready to be played."""

    algorithm: Algorithm
    parameters: dict[str, Any]
    mechanisms: tuple[Applied, ...]  # the leftmost is nearest the step
    problem: Problem
    graph: Graph  # of a sequence: every edge that occurs; with the helpers, who come last
    sequence: GraphSequence | None
    layout: Layout
    rules: Rules
    tables: dict[str, Array]
    schedule: Array | None
    stepsize: Array  # (n or 1, 1, 1)
    x0: Array  # (n, d, runs)
    seed: int
    runs: Array  # the numbers of the runs
    iterations: int
    every: int = 1
    record: bool = False
    tolerance: float | None = None

    @property
    def phases(self) -> list[tuple[int, int]]:
        """The loops: a mechanism that lasts K iterations divides them at K."""
        ends = {until for a in self.mechanisms if (until := a.until) is not None and 0 < until < self.iterations}
        marks = [0, *sorted(ends), self.iterations]
        return list(itertools.pairwise(marks))

    def active(self, k: int) -> tuple[bool, ...]:
        """Which mechanisms act in iteration k; the set-up (-1) is played by those that act in the first."""
        return tuple(a.until is None or max(k, 0) < a.until for a in self.mechanisms)

    @property
    def settled(self) -> int:
        """The iteration from which on the run should only get better."""
        return max((a.until or 0 for a in self.mechanisms), default=0)

    @property
    def keeps(self) -> bool:
        return not any(a.mechanism.breaks_invariant for a in self.mechanisms)

    @property
    def helpers(self) -> int:
        """How many nodes at the end only help."""
        return self.graph.n - self.problem.n

    @property
    def family(self) -> Family:
        """The costs of all nodes."""
        return helped(self.problem.family, self.helpers)

    def answer(self, state: Any) -> Any:
        """What the parties hold against the optimum."""
        found = self.algorithm.answer(state)
        return found[: self.problem.n] if self.helpers else found

    @property
    def step_parameters(self) -> SimpleNamespace:
        return SimpleNamespace(**{name: self.parameters[name] for name in self.algorithm.parameters})


def prepare(
    method: str | Algorithm, problem: Problem, graph: Any, *, stepsize: Any, iterations: int, runs: Any, seed: int,
    mechanisms: Any, record: bool, x0: Any, every: int, tolerance: float | None, parameters: dict[str, Any], advised: bool = False,
) -> Task:  # fmt: skip
    """Check everything and resolve it; `stepsize` is a number or one a node here. `advised`: not to be played, only to find one."""
    method = algorithm(method)
    checks.check_counts(iterations=iterations, every=every)
    checks.check_tolerance(tolerance)
    network, sequence = fit(method, problem, graph, iterations)
    numbers = run_numbers(runs)
    settled, stack = choose(method, parameters, mechanisms)
    checks.check_sets(method, settled, stack, problem.d)
    method = method.settled_for(settled)
    rules, tables, schedule = weigh(method, settled, network, sequence, CounterDraws(seed, numbers), iterations)
    together = any(a.mechanism.together(a.options) for a in stack)
    task = Task(
        method, settled, stack, problem, network, sequence, layout(network), rules, tables, schedule,
        steps(method, stepsize, problem.n), padded(start(problem, x0, seed, numbers, together), network.n - problem.n),
        int(seed), numbers, int(iterations),
        int(every), bool(record), tolerance,
    )  # fmt: skip
    if not advised:
        checks.check_fit(task)
    return task


def run_numbers(runs: Any) -> Array:
    """How many runs, or which ones: runs=[17] plays run 17 of a thousand alone."""
    if np.ndim(runs) == 0:
        checks.check_counts(runs=runs)
        return np.arange(runs, dtype=np.uint64)
    numbers = np.asarray(list(runs))
    if not (numbers.ndim == 1 and len(numbers) and np.issubdtype(numbers.dtype, np.integer) and (numbers >= 0).all()):
        raise ParameterError(f"runs must be how many, or a list of run numbers from 0 on; got {runs!r}")
    return numbers.astype(np.uint64)


def fit(method: Algorithm, problem: Problem, graph: Any, iterations: int) -> tuple[Graph, GraphSequence | None]:
    """The graph (of a sequence: all its edges), refused with a reason where the method cannot run on it."""
    if not isinstance(problem, Problem):
        raise ProblemError(f"expected a sottovoce Problem, got {type(problem).__name__}; see sottovoce.problems")
    checks.check_costs(method, problem)
    checks.check_quadratic(method, problem)
    network = as_graph(graph)
    sequence = network.prepared(iterations) if isinstance(network, GraphSequence) else None
    if sequence is not None and method.graphs != "sequence":
        raise GraphError(f"{method.name} runs on one graph, not on a graph an iteration; ab-tv and push-diging take those")
    union = sequence.union if sequence is not None else network
    assert isinstance(union, Graph)
    if problem.n != union.n:
        raise GraphError(f"the problem has {problem.n} nodes but the graph has {union.n}; they must be the same parties")
    checks.check_labels(problem, union)
    pair = union.no_path() if method.graphs != "helpers" else None
    if pair is not None:
        a, b = (union.labels[i] for i in pair)
        what = "the graphs together are" if sequence is not None else "the graph is"
        raise GraphError(f"{what} not strongly connected: node {a} cannot reach node {b}; add edges until everyone hears everyone")
    if method.graphs == "two-way" and not union.undirected:
        one_way = next(e for e in union.edges if e[::-1] not in set(union.edges))
        raise GraphError(
            f"{method.name} needs a two-way graph, but edge {one_way} has no way back; "
            "add the missing edges (two_way=True in the builders), or take a method for digraphs such as ab or push-pull"
        )
    return joined(union, method.helpers, method.graphs == "helpers"), sequence


def choose(method: Algorithm, parameters: dict[str, Any], mechanisms: Any) -> tuple[dict[str, Any], tuple[Applied, ...]]:
    """The parameters of the method, its weights among them, and the stack of mechanisms."""
    given = underscored(parameters)
    chosen = {name: given.pop(name, checks.default_of(w)) for name, w in method.weights.items()}
    known = [*method.parameters, *method.weights]
    for name in given:
        if name not in method.parameters:
            raise ParameterError(f"{method.name} has no parameter {name!r}; it takes: {', '.join(known) or 'none'}")
    settled = {**settle(method.name, method.parameters, given), **chosen}
    own = method.mechanisms(SimpleNamespace(**settled))
    stack = (*own, *applied(mechanisms))
    checks.check_settings(method, settled)
    checks.check_stack(method, stack)
    checks.check_weights(stack, underscored(parameters))
    for a in stack:
        settled |= a.mechanism.weights
    checks.check_used(method, settled)
    return settled, stack


def applied(mechanisms: Any) -> tuple[Applied, ...]:
    """Mechanisms as a tuple, whichever way they were given."""
    if isinstance(mechanisms, str | Applied):
        mechanisms = (mechanisms,)
    if isinstance(mechanisms, Mapping) or not isinstance(mechanisms, Iterable):
        raise ParameterError(f"mechanisms are names or mechanism('name', ...), one or a list of them, not {mechanisms!r}")
    return tuple(mechanism(m) for m in mechanisms)


def weigh(
    method: Algorithm, settled: dict[str, Any], graph: Graph, sequence: GraphSequence | None, draws: CounterDraws, iterations: int
) -> tuple[Rules, dict[str, Array], Array | None]:
    """The rules, with their constants: (entries, 1, 1), or a leading axis over the distinct graphs of a sequence."""
    graphs = [graph] if sequence is None else list(sequence.distinct)
    rules: Rules = {}
    tables: dict[str, Array] = {}
    for i, name in enumerate(method.weights):
        found, side = settled[name], _side(method, name)
        if isinstance(found, str) and found in rules:
            rules[name] = found
            continue
        one = rule_of(method, settled, name)
        if one.name == "identity":
            rules[name] = None
            continue
        constants = [one.constant(g) for g in graphs]
        if side == "both" and one.law is None:
            checks.check_doubly(name, one, constants, graphs)
        table = table_of(constants, graphs, graph)
        if one.law is not None and not one.fresh:
            table = _drawn_once(one, table, graph, draws, i)
            one = Given(one.side, one.known)
        rules[name], tables[name] = one, table if sequence is not None else table[0]
    return rules, tables, None if sequence is None else sequence.index(0, iterations)


def rule_of(method: Algorithm, settled: dict[str, Any], name: str) -> Rule:
    """The rule of a weight, with the method's parameters that it takes."""
    options = {option: value for option, value in settled.items() if option not in method.weights}
    options["fresh"] = options.pop("late", "fresh") == "fresh"
    return rule(settled[name], _side(method, name), **options)


def _side(method: Algorithm, name: str) -> str:
    choice = method.weights[name]
    while isinstance(choice, str):
        choice = method.weights[choice]
    return choice.side


def table_of(constants: list[Array], graphs: list[Graph], union: Graph) -> Array:
    """The constants of a weight on each distinct graph, at their places among the union's entries: (graphs, entries, 1, 1)."""
    return np.stack([_embedded(c, g, union) for c, g in zip(constants, graphs, strict=True)])[..., None, None]


def _embedded(constant: Array, graph: Graph, union: Graph) -> Array:
    """A graph's entries at their places among the union's."""
    if graph is union:
        return constant
    small, large = layout(graph), layout(union)
    out = np.zeros(len(large.source))
    keys = large.target * union.n + large.source
    out[np.searchsorted(keys, small.target * union.n + small.source)] = constant
    return out


def _drawn_once(one: Rule, table: Array, graph: Graph, draws: CounterDraws, i: int) -> Array:
    entries = layout(graph)
    side = Columns(entries) if one.side == "column" else Rows(entries)
    assert one.law is not None
    (raw,) = draws.four(np, one.law, Stream(WEIGHTS, i // 4), -1, entries.source, entries.target, 1, (i % 4,))
    return np.stack([one.weigh(np, side, raw, t) for t in table])


def steps(method: Algorithm, stepsize: Any, n: int) -> Array:
    """The stepsize as an array: one for all, or one a node where the method has them."""
    try:
        values = np.asarray(stepsize, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"stepsize must be a number, one a node, or 'auto', not {stepsize!r}") from None
    if values.ndim == 1 and not method.per_node_steps:
        raise ParameterError(f"{method.name} has one stepsize for all nodes, not one a node; give a number")
    if values.shape not in ((), (n,)):
        raise ParameterError(f"stepsize must be a number or one a node (shape ({n},)), not of shape {values.shape}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ParameterError(f"stepsize must be above 0 and finite, not {stepsize!r}; leave it out for an advised one")
    return padded(values.reshape(-1, 1, 1), method.helpers if values.ndim else 0, 1.0)


def start(problem: Problem, x0: Any, seed: int, runs: Array, together: bool = False) -> Array:
    """x^0: as given, (n, d) or (runs, n, d), or standard normal; `together`: drawn once for all nodes."""
    n, d = problem.n, problem.d
    if x0 is None:
        nodes = np.arange(n) * (not together)
        return CounterDraws(seed, runs).four(np, Law(), Stream(START), -1, nodes, nodes, d, (0,))[0]
    try:
        values = np.asarray(x0)
        values = np.asarray(values, dtype=float if values.dtype.kind in "fiub" else "no number")
    except (TypeError, ValueError):
        raise ParameterError(f"x0 must hold real numbers, of shape ({n}, {d}) or ({len(runs)}, {n}, {d})") from None
    if values.shape not in ((n, d), (len(runs), n, d)):
        raise ParameterError(f"x0 must have shape ({n}, {d}) or ({len(runs)}, {n}, {d}), not {values.shape}")
    if not np.isfinite(values).all():
        raise ParameterError("x0 holds NaN or infinity")
    values = values[None] if values.ndim == 2 else values
    return np.ascontiguousarray(np.broadcast_to(np.moveaxis(values, 0, -1), (n, d, len(runs))))
