"""Run an algorithm on a problem over a graph, or several side by side."""

from __future__ import annotations

import difflib
import inspect
import platform
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .errors import NotInstalled, ParameterError, ProblemError, RunError
from .problem import Problem
from .progress import Bar
from .registry import Algorithm, Applied, algorithm, underscored
from .sequence import as_graph
from .simulate import eager
from .simulate.checks import check_player
from .simulate.chronicle import Chronicle, Played
from .simulate.meter import payloads
from .simulate.result import Result
from .simulate.spent import spent
from .simulate.target import aimed
from .simulate.task import Task, applied, prepare
from .transcript import written
from .version import __version__

ITERATIONS = 1000
BACKENDS = ("auto", "eager", "compiled")
ELSEWHERE = {  # what other libraries call the options of `run`
    "lr": "stepsize", "learning_rate": "stepsize", "eta0": "stepsize", "epochs": "iterations", "max_iter": "iterations",
    "steps": "iterations", "tol": "tolerance", "random_state": "seed", "repetitions": "runs", "init": "x0",
}  # fmt: skip


def run(
    method: str | Algorithm, /, problem: Problem, graph: Any, *, stepsize: Any = "auto", iterations: int | None = None,
    runs: Any = 1, seed: int = 0, mechanisms: Any = (), record: bool = False, x0: Any = None, backend: str = "auto", every: int = 1,
    tolerance: float | None = None, **parameters: Any,
) -> Result:  # fmt: skip
    """Play `method` on `problem` over `graph` and return what came of it.

    method       a name ("private-gradient-tracking", "ab", ...; `sottovoce algorithms` lists them) or an Algorithm
    problem      a sottovoce Problem; sottovoce.problems has ready ones
    graph        a Graph, an adjacency matrix (A[i, j] = 1: j can send to i), a networkx graph; for some methods a sequence
                 of those, or a pure function of the iteration
    stepsize     a number, one a node where the method has them, or "auto": advised by `sottovoce.stepsize`
    iterations   at most so many: 1000, or as many as the method takes, unless given; `tolerance` stops when no entry of any run
                 moves by more
    runs         how many repetitions with other random numbers, or which ones: runs=[17] is run 17 of any thousand
    seed         the same seed gives the same trajectory, on every player
    mechanisms   privacy mechanisms around the method: names, or mechanism("random-start", K=3)
    record       keep the trajectory and the transcript of all messages
    x0           (n, d), or (runs, n, d), which also says how many runs; standard normal unless given
    backend      "eager" (NumPy), "compiled" (JAX), "auto": by the amount of work
    every        record the error in every so-many iterations
    parameters   the method's own, its weights among them (K=3, eta=0.1, R="paper", C=matrix)
    """
    if backend not in BACKENDS:
        raise ParameterError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    method, mechanisms = algorithm(method), applied(mechanisms)
    if method.averages and x0 is not None:
        raise ParameterError(f"{method.name} starts at the nodes' values, so x0 would do nothing; leave it out")
    check(method, problem, graph, mechanisms, parameters)
    graph, runs, iterations = as_graph(graph), _runs(runs, x0), usual(method, iterations, ITERATIONS)
    options = {"mechanisms": mechanisms, "seed": seed, "runs": runs, **parameters}
    size, advice = _stepsize(method, problem, graph, stepsize, options)
    task = prepare(
        method, problem, graph, stepsize=size, iterations=iterations, runs=runs, seed=seed, mechanisms=mechanisms,
        record=record, x0=x0, every=every, tolerance=tolerance, parameters=parameters,
    )  # fmt: skip
    task = aimed(task)
    chosen = _backend(task) if backend == "auto" else backend
    check_player(task.algorithm, chosen)
    player = eager.play if chosen == "eager" else _compiled()
    with Bar(f"{method.name} ({chosen})", iterations) as watch:
        try:
            played = player(task, watch)
        except RunError as error:
            raise _advised(error, task, chosen) from None
    result = result_of(task, played, chosen)
    result.advice = advice
    return result


def usual(method: Algorithm, iterations: int | None, otherwise: int) -> int:
    """So many iterations as asked for, else as many as the method takes, else the usual number."""
    return iterations if iterations is not None else otherwise if method.takes is None else method.takes


def check(method: Algorithm, problem: Any, graph: Any, mechanisms: Sequence[Applied], parameters: Mapping[str, Any]) -> None:
    """What is easily mistaken in a call, refused with what was probably meant."""
    if isinstance(graph, Problem) and not isinstance(problem, Problem):
        raise ProblemError("the problem comes before the graph: sv.run(method, problem, graph)")
    own = [*method.parameters, *method.weights]
    for name in underscored(parameters):
        if name not in own:
            takes = f"{method.name} has no parameter {name!r}; it takes: {', '.join(own) or 'none'}"
            raise ParameterError(takes + _meant(name, own))
    defaults = {name: parameter.default for name, parameter in method.parameters.items()}
    inside = {one.mechanism.name for one in method.mechanisms(SimpleNamespace(**defaults))}
    for name, options in ((one.mechanism.name, one.parameters) for one in mechanisms):
        if name in inside:
            known = [(k, v) for k, v in options if k in defaults]
            changed = [(k, v) for k, v in known if v != defaults[k]] or known[:1]
            typed = " ".join(f"--set {k}={v}" for k, v in changed)
            raise ParameterError(
                f"{method.name} contains the mechanism {name} already; leave it out and give the method's own parameters: "
                f"{', '.join(f'{k}={v!r}' for k, v in changed)} (on the command line {typed})"
            )


def _options() -> list[str]:
    """The names of the options of `run`."""
    return [name for name, p in inspect.signature(run).parameters.items() if p.kind is p.KEYWORD_ONLY]


def _meant(name: str, own: Sequence[str]) -> str:
    folded = {known.lower(): known for known in (*_options(), *own)}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    meant = ELSEWHERE.get(name.lower()) or (folded[near[0]] if near else None)
    return f"; did you mean {meant!r}?" if meant else ""


def _runs(runs: Any, x0: Any) -> Any:
    """A start a run says how many runs there are, unless that was said otherwise."""
    shape = getattr(x0, "shape", ())
    return shape[0] if isinstance(runs, int) and runs == 1 and len(shape) == 3 and shape[0] else runs


def compare(methods: Sequence[Any] | Mapping[str, Any], problem: Problem, graph: Any, **options: Any) -> Comparison:
    """Run several methods on the same problem and graph. Each is a name, an Algorithm, or (name, options of its own).

    A mapping gives the curves names of their own: {"K = 3": ("private-gradient-tracking", {"K": 3}), ...}. A method that diverges
    does not end the others: its error is in `failed`, and it has a place in the comparison as far as it came.
    """
    if isinstance(methods, str | Algorithm):
        name = algorithm(methods).name
        raise ParameterError(f"compare takes a list of methods, such as [{name!r}, 'diging'], not one; sv.run runs one")
    named = methods.items() if isinstance(methods, Mapping) else ((None, m) for m in methods)
    chosen: Any = [(label, *(m if isinstance(m, tuple) else (m, {}))) for label, m in named]
    _check_shared([algorithm(method) for _, method, _ in chosen], options)
    graph = graph if isinstance(graph, Problem) else as_graph(graph)
    results: dict[str, Result] = {}
    failed: dict[str, RunError] = {}
    for label, method, own in chosen:
        label = label or _label(algorithm(method).name, own)
        if label in results:
            raise ParameterError(f"two of the methods would be called {label!r}; give names: {{'first': ..., 'second': ...}}")
        try:
            results[label] = run(method, problem, graph, **{**options, **own})
        except RunError as error:
            results[label], failed[label] = error.result, error
    return Comparison(results, failed)


def _label(name: str, own: Mapping[str, Any]) -> str:
    return name + (f" ({', '.join(f'{k}={_brief(v)}' for k, v in own.items())})" if own else "")


def _brief(value: Any) -> str:
    """A value in a word: no matrix belongs in a label."""
    shape = np.shape(value) if hasattr(value, "shape") else ()
    if isinstance(value, list | tuple):
        if all(isinstance(item, str | Applied) for item in value):
            return "+".join(map(str, value))
        shape = (0, 0) if any(isinstance(item, list | tuple | np.ndarray) for item in value) else (0,)
    return ("matrix" if len(shape) > 1 else "vector") if shape else str(value)


def _check_shared(methods: Sequence[Algorithm], options: Mapping[str, Any]) -> None:
    """What only some of the methods take must be given to those alone."""
    for name, value in options.items():
        typed = name.replace("-", "_")
        having = [m for m in methods if typed in m.parameters or typed in m.weights]
        lacking = [m for m in methods if m not in having]
        if name not in _options() and having and lacking:
            raise ParameterError(
                f"{lacking[0].name} has no parameter {name!r}, and the options of compare go to every method; "
                f"give it to {having[0].name} alone: ({having[0].name!r}, {{{name!r}: {_brief(value)}}})"
            )


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


def _stepsize(
    method: Algorithm, problem: Problem, graph: Any, stepsize: Any, options: dict[str, Any]
) -> tuple[Any, str | None]:
    """The stepsize, and what the adviser said where it was asked."""
    if not isinstance(stepsize, str):
        return stepsize, None
    if stepsize != "auto":
        raise ParameterError(f"stepsize must be a number, one a node, or 'auto', not {stepsize!r}")
    from .stepsize import stepsize as advise

    advice = advise(method, problem, graph, **options)
    return advice.good, str(advice)


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
    partial = result_of(chronicle.task, chronicle.finish(chronicle.last), backend) if isinstance(chronicle, Chronicle) else None
    return type(error)(str(error) + advice, partial)


def result_of(task: Task, played: Played, backend: str) -> Result:
    """A player's arrays as a Result, the runs first."""
    runs_first = lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 0))
    messages, sizes = traffic(task, played.iterations)
    trajectory = None if played.answers is None else np.ascontiguousarray(np.moveaxis(played.answers, -1, 1))
    return Result(
        x=runs_first(played.x), error=runs_first(played.errors), recorded=played.ks, iterations=played.iterations,
        messages=messages, bytes=sizes, invariant=played.invariant, algorithm=task.algorithm.name,
        stepsize=task.stepsize[: task.problem.n, 0, 0], optimum=np.asarray(task.problem.optimum), backend=backend, seed=task.seed,
        parameters=task.parameters, mechanisms=[repr(a) for a in task.mechanisms], trajectory=trajectory,
        transcript=written(task, played) if played.setup is not None else None, provenance=provenance(task),
        spent=spent(task, played.iterations),
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
        setup, each = payloads(task.algorithm, task.rules, stack, task.problem.d, task.step_parameters, diameter, task.problem.n)
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
