"""Private sums beside gradient tracking: exchanges, bytes and time until the error is below 1e-9, five nodes on paper-b.

Least squares with ten unknowns by one opened sum; logistic regression by Newton on opened sums. Times are whole calls of `run` with
the stepsize given; on real links the number of exchanges decides, since each waits for the slowest message. The last rows are of
such links: five processes over mutual TLS, every message on the disk before it is offered, timed inside the processes. Iterations
are timed from the first to the last but one, when links are up and only messages are written; the private sum is opened again and
again for that, and told is one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.peer.founding import Plan, found
from sottovoce.tables import toml

from .measure import interleaved, least_and_median
from .report import Row

FIGURE = "sums"
CLOSE = 1e-9
PROBLEMS = (  # what, the method, its iterations at most, the exchanges that are allowed
    ("least squares, d = 10", "private-least-squares", 1, 3),
    ("logistic, d = 10", "private-newton", 12, 30),
)
TREE = ", on a tree"
AGAIN = 100  # times that a sum is opened again, to time it


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    return X, X @ rng.normal(size=10) + rng.normal(size=200)


def problem_of(what: str) -> sv.Problem:
    X, y = records()
    if what.startswith("least"):
        return sv.problems.least_squares(X, y, 5)
    return sv.problems.logistic(X, np.sign(y), 5)


def played(name: str, problem: sv.Problem, graph: sv.Graph, stepsize: float, iterations: int) -> sv.Result:
    """A method, on a tree if its name says so."""
    options = {"carry": "tree"} if name.endswith(TREE) else {}
    return sv.run(name.removesuffix(TREE), problem, graph, stepsize=stepsize, iterations=iterations, **options)


def needed(result: sv.Result) -> int:
    """Iterations until the error is below 1e-9."""
    return int(result.recorded[(result.error[0] < CLOSE).argmax()])


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    graph, rows = sv.graphs.paper_b(), []
    for what, method, most, bound in PROBLEMS:
        problem = problem_of(what)
        step = sv.stepsize("gradient-tracking", problem, graph).good
        asked = {method: (1.0, most), method + TREE: (1.0, most), "gradient-tracking": (step, 2000)}
        counts = {name: needed(played(name, problem, graph, *given)) for name, given in asked.items()}

        def call(name: str, problem: sv.Problem = problem, asked: Any = asked, counts: Any = counts) -> Callable[[], Any]:
            return lambda: played(name, problem, graph, asked[name][0], counts[name])

        calls = {name: call(name) for name in asked}
        times = interleaved(calls, 3 if quick else 20)
        for name in asked:
            result = calls[name]()
            exchanges, sent = float(result.messages.sum()) / len(graph.edges), float(result.bytes.sum()) / 1e3
            at_most = bound if name == method else None
            note = f"final error {result.final[0]:.1g}"
            rows.append(Row(FIGURE, f"{what}: {name}", "exchanges", exchanges, exchanges, at_most, note=note))
            rows.append(Row(FIGURE, f"{what}: {name}", "kB in all", sent, sent))
            rows.append(Row(FIGURE, f"{what}: {name}", "ms wall", *(1e3 * t for t in least_and_median(times[name].wall))))
    return rows + [_breast_cancer(), *_real(2 if quick else 5)]


def _breast_cancer() -> Row:
    """scikit-learn's data over six sites: sums until the coefficients are its own to 1e-8."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    graph = sv.graphs.complete(6)
    problem = sv.problems.logistic(sv.standardise(X, 6, graph).X, y, 6, intercept=True)
    result = sv.run("private-newton", problem, graph, record=True)
    assert result.trajectory is not None
    fitted = LogisticRegression(C=1.0, tol=1e-13, solver="newton-cholesky").fit((X - X.mean(0)) / X.std(0), y)
    gaps = np.abs(result.trajectory[:, 0] - np.append(fitted.coef_[0], fitted.intercept_)).max((1, 2))
    first = int((gaps < 1e-8).argmax())
    what, note = "breast cancer, d = 31, six sites: private-newton", f"at the end {gaps[-1]:.1g}"
    return Row(FIGURE, what, "sums to 1e-8", first, first, 10, note=note)


def _real(turns: int) -> list[Row]:
    """Least squares on real nodes from x^0 = 0, the two methods in turns."""
    problem, graph = problem_of(PROBLEMS[0][0]), sv.graphs.paper_b()
    step = sv.stepsize("gradient-tracking", problem, graph).good
    tracked = sv.run("gradient-tracking", problem, graph, stepsize=step, iterations=2000, x0=np.zeros((5, problem.d)))
    asked = {"private-least-squares": (1.0, 1 + AGAIN), "gradient-tracking": (step, needed(tracked))}
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in asked}
    for _ in range(turns):
        for method, given in asked.items():
            found[method].append(_on_nodes(method, problem, graph, *given))
    first, one = zip(*found["private-least-squares"], strict=True)
    whole = [seconds * asked["gradient-tracking"][1] for _, seconds in found["gradient-tracking"]]
    what, exchanges = f"five processes, {PROBLEMS[0][0]}: ", 2 * asked["gradient-tracking"][1]
    told = lambda name, t, note="": Row(FIGURE, what + name, "ms wall", 1e3 * min(t), 1e3 * statistics.median(t), note=note)
    parts = [100 * ours / theirs for ours, theirs in zip(one, whole, strict=True)]
    least, middle = min(parts), statistics.median(parts)
    return [
        told("private-least-squares", one, "3 exchanges"),
        told("  the very first, with links that are coming up", first),
        told("gradient-tracking to 1e-9", whole, f"{exchanges} exchanges"),
        Row(FIGURE, what + "the one of the other", "%", least, middle, 1, note=f"of the exchanges {300 / exchanges:.2g} %"),
    ]


def _on_nodes(method: str, problem: sv.Problem, graph: sv.Graph, stepsize: float, iterations: int) -> tuple[float, float]:
    """Seconds of the first iteration, from when all have done their set-up, and of one of the others."""
    with tempfile.TemporaryDirectory() as place:
        folder, names = _federation(Path(place), method, graph, stepsize, iterations)
        command = [sys.executable, "-m", f"{__package__}.node_children", "span", str(folder)]
        children = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in names]
        said = [json.loads(child.communicate(timeout=300)[0]) for child in children]
    error = float(np.linalg.norm(np.array([one["x"] for one in said]) - problem.optimum))
    if error > CLOSE:
        raise RuntimeError(f"{method} on real nodes ended with the error {error:.1g}, and {CLOSE:g} was expected")
    begun, first, last = (max(one[when] for one in said) for when in ("begun", "first", "last"))
    return first - begun, (last - first) / (iterations - 2)


def _federation(place: Path, method: str, graph: sv.Graph, stepsize: float, iterations: int) -> tuple[Path, tuple[str, ...]]:
    """Its folder, with everybody's records in it, and the names of its nodes."""
    X, y = records()
    file, folder = place / "records.csv", place / "five"
    np.savetxt(file, np.column_stack([X, y]), "%.17g", ",", header=",".join([*(f"x{j}" for j in range(10)), "y"]), comments="")
    plan = Plan((graph,), method, {}, f"least-squares:n=5,csv={file},target=y", stepsize=stepsize, iterations=iterations, port=0)
    names = found(folder, plan)[0].names
    for name in names:
        own = folder / name / "node.toml"
        own.write_text(toml({**tomllib.loads(own.read_text()), "start": [0.0] * 10}))
    return folder, names
