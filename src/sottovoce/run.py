"""Run an algorithm on a problem over a graph, or several side by side."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import NotInstalled, ParameterError, RunError
from .problem import Problem
from .progress import Bar
from .registry import Algorithm, algorithm
from .simulate import eager
from .simulate.chronicle import Chronicle, Played
from .simulate.meter import payloads
from .simulate.result import Result
from .simulate.task import Task, applied, prepare
from .transcript import written
from .version import __version__

BACKENDS = ("auto", "eager", "compiled")


def run(
    method: str | Algorithm, /, problem: Problem, graph: Any, *, stepsize: Any = "auto", iterations: int = 1000, runs: Any = 1,
    seed: int = 0, mechanisms: Any = (), record: bool = False, x0: Any = None, backend: str = "auto", every: int = 1,
    tolerance: float | None = None, **parameters: Any,
) -> Result:  # fmt: skip
    """Play `method` on `problem` over `graph` and return what came of it.

    method       a name ("private-gradient-tracking", "ab", ...; `sottovoce algorithms` lists them) or an Algorithm
    problem      a sottovoce Problem; sottovoce.problems has ready ones
    graph        a Graph, an adjacency matrix (A[i, j] = 1: j can send to i), a networkx graph; for some methods a sequence
    stepsize     a number, one a node where the method has them, or "auto": advised by `sottovoce.stepsize`
    iterations   at most so many; `tolerance` stops when no entry of any run moves by more
    runs         how many repetitions with other random numbers, or which ones: runs=[17] is run 17 of any thousand
    seed         the same seed gives the same trajectory, on every player
    mechanisms   privacy mechanisms around the method: names, or mechanism("random-start", K=3)
    record       keep the trajectory and the transcript of all messages
    x0           (n, d) or (runs, n, d); standard normal unless given
    backend      "eager" (NumPy), "compiled" (JAX), "auto": by the amount of work
    every        record the error in every so-many iterations
    parameters   the method's own, its weights among them (K=3, eta=0.1, R="paper", C=matrix)
    """
    if backend not in BACKENDS:
        raise ParameterError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    method, mechanisms = algorithm(method), applied(mechanisms)
    size = _stepsize(method, problem, graph, stepsize, mechanisms, parameters)
    task = prepare(
        method, problem, graph, stepsize=size, iterations=iterations, runs=runs, seed=seed, mechanisms=mechanisms,
        record=record, x0=x0, every=every, tolerance=tolerance, parameters=parameters,
    )  # fmt: skip
    chosen = _backend(task) if backend == "auto" else backend
    player = eager.play if chosen == "eager" else _compiled()
    with Bar(f"{method.name} ({chosen})", iterations) as watch:
        try:
            played = player(task, watch)
        except RunError as error:
            raise _advised(error, task, chosen) from None
    return result_of(task, played, chosen)


def compare(methods: Sequence[Any] | Mapping[str, Any], problem: Problem, graph: Any, **options: Any) -> Comparison:
    """Run several methods on the same problem and graph. Each is a name, an Algorithm, or (name, options of its own).

    A mapping gives the curves names of their own: {"K = 3": ("private-gradient-tracking", {"K": 3}), ...}. A method that diverges
    does not end the others: its error is in `failed`, and it has a place in the comparison as far as it came.
    """
    named = methods.items() if isinstance(methods, Mapping) else ((None, m) for m in methods)
    results: dict[str, Result] = {}
    failed: dict[str, RunError] = {}
    for label, method in named:
        method, own = method if isinstance(method, tuple) else (method, {})
        label = label or _label(algorithm(method).name, own)
        if label in results:
            raise ParameterError(f"two of the methods would be called {label!r}; give names: {{'first': ..., 'second': ...}}")
        try:
            results[label] = run(method, problem, graph, **{**options, **own})
        except RunError as error:
            results[label], failed[label] = error.result, error
    return Comparison(results, failed)


def _label(name: str, own: Mapping[str, Any]) -> str:
    return name + (f" ({', '.join(f'{k}={v}' for k, v in own.items())})" if own else "")


class Comparison(dict[str, Result]):
    """Results by name; `failed` holds the errors of those that could not go on."""

    def __init__(self, results: Mapping[str, Result], failed: Mapping[str, RunError] | None = None):
        super().__init__(results)
        self.failed = dict(failed or {})

    def plot(self, file: Any = None) -> Any:
        """Medians of the errors with quantiles; means over random starts are dominated by heavy tails."""
        from .plot import errors

        return errors(self, file)

    def table(self) -> list[dict[str, Any]]:
        """A row a method: final error, rate, iterations to 1e-6 and 1e-10, bytes, and what went wrong."""
        return [{"name": name, **_row(result), "failed": _text(self.failed.get(name))} for name, result in self.items()]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {result!r}" for name, result in self.items())


def _text(error: RunError | None) -> str | None:
    return None if error is None else str(error)


def _row(result: Result) -> dict[str, Any]:
    median = np.median(result.error, 0)
    reach = lambda e: int(result.recorded[(median < e).argmax()]) if (median < e).any() else None
    return {
        "stepsize": float(result.stepsize.min()),
        "error": float(median[-1]),
        "worst": float(result.final.max()),
        "rate": result.rate(),
        "to 1e-6": reach(1e-6),
        "to 1e-10": reach(1e-10),
        "bytes": int(result.bytes.sum()),
    }


def _stepsize(method: Algorithm, problem: Problem, graph: Any, stepsize: Any, mechanisms: Any, parameters: dict[str, Any]) -> Any:
    if not isinstance(stepsize, str):
        return stepsize
    if stepsize != "auto":
        raise ParameterError(f"stepsize must be a number, one a node, or 'auto', not {stepsize!r}")
    from .stepsize import stepsize as advise

    return advise(method, problem, graph, mechanisms=mechanisms, **parameters).good


def _backend(task: Task) -> str:
    """Compiled where it saves time although it must compile first; both thresholds were measured (`make bench`)."""
    if not task.problem.traceable or "compiled" not in task.algorithm.players:
        return "eager"
    numbers = len(task.layout.source) * task.problem.d * len(task.runs)
    seconds = task.iterations * (25e-6 + 25e-9 * numbers)
    if seconds < 3 or "eager" not in task.algorithm.players:
        return "eager"
    try:
        import jax  # noqa: F401
    except ImportError:
        return "eager"
    return "compiled"


def _compiled() -> Callable[[Task, Callable[[int], None]], Played]:
    try:
        import jax  # noqa: F401
    except ImportError:
        raise NotInstalled("the compiled player", "fast") from None
    from .simulate import compiled

    return compiled.play


def _advised(error: RunError, task: Task, backend: str) -> RunError:
    """The same error with what was played so far, and a stepsize that would have worked."""
    chronicle = error.result
    advice = ""
    if type(error).__name__ == "Diverged" and task.sequence is None:
        from .stepsize import hint

        advice = hint(task)
    partial = result_of(task, chronicle.finish(chronicle.answers_last()), backend) if isinstance(chronicle, Chronicle) else None
    return type(error)(str(error) + advice, partial)


def result_of(task: Task, played: Played, backend: str) -> Result:
    """A player's arrays as a Result, the runs first."""
    runs_first = lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 0))
    messages, sizes = traffic(task, played.iterations)
    trajectory = None if played.answers is None else np.ascontiguousarray(np.moveaxis(played.answers, -1, 1))
    return Result(
        x=runs_first(played.x), error=runs_first(played.errors), recorded=played.ks, iterations=played.iterations,
        messages=messages, bytes=sizes, invariant=played.invariant, algorithm=task.algorithm.name,
        stepsize=task.stepsize[:, 0, 0], optimum=np.asarray(task.problem.optimum), backend=backend, seed=task.seed,
        parameters=task.parameters, mechanisms=[repr(a) for a in task.mechanisms], trajectory=trajectory,
        transcript=written(task, played) if played.setup is not None else None, provenance=provenance(task),
    )  # fmt: skip


def traffic(task: Task, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Messages and payload bytes of each iteration over all edges, the set-up first."""
    messages, sizes = np.zeros(iterations + 1, np.int64), np.zeros(iterations + 1, np.int64)
    edges = np.full(iterations, len(task.graph.sender), np.int64)
    if task.sequence is not None:
        edges = task.sequence.active.sum(1)[task.sequence.index(0, iterations)]
    for first, last in task.phases:
        stack = eager.acting_stack(task, task.active(first))
        diameter = eager.diameter_of(task)
        setup, each = payloads(task.algorithm, task.rules, stack, task.problem.d, task.step_parameters, diameter)
        if first == 0:
            messages[0], sizes[0] = len(setup) * len(task.graph.sender), sum(setup) * len(task.graph.sender)
        last = min(last, iterations)
        messages[first + 1 : last + 1] = len(each) * edges[first:last]
        sizes[first + 1 : last + 1] = sum(each) * edges[first:last]
    return messages, sizes


def provenance(task: Task) -> dict[str, Any]:
    """What produced a result."""
    return {
        "sottovoce": __version__, "python": platform.python_version(), "numpy": np.__version__, "kind": "simulation",
        "graph": task.graph.digest(), "problem": task.problem.digest(),
    }  # fmt: skip


