"""Private sums beside gradient tracking: exchanges, bytes and time until the error is below 1e-9, five nodes on paper-b.

Least squares with ten unknowns by one opened sum; logistic regression by Newton on opened sums. Times are whole calls of `run` with
the stepsize given; on real links the number of exchanges decides, since each waits for the slowest message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sottovoce as sv

from .measure import interleaved, least_and_median
from .report import Row

FIGURE = "sums"
CLOSE = 1e-9
PROBLEMS = (
    ("least squares, d = 10", "private-least-squares", 1, 3),
    ("logistic, d = 10", "private-newton", 12, 30),
)


def problem_of(what: str) -> sv.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=200)
    if what.startswith("least"):
        return sv.problems.least_squares(X, y, 5)
    return sv.problems.logistic(X, np.sign(y), 5)


def needed(method: str, problem: sv.Problem, graph: sv.Graph, stepsize: float, iterations: int) -> int:
    """Iterations until the error is below 1e-9."""
    result = sv.run(method, problem, graph, stepsize=stepsize, iterations=iterations)
    return int(result.recorded[(result.error[0] < CLOSE).argmax()])


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    graph, rows = sv.graphs.paper_b(), []
    for what, method, most, bound in PROBLEMS:
        problem = problem_of(what)
        step = sv.stepsize("gradient-tracking", problem, graph).good
        asked = {method: (1.0, most), "gradient-tracking": (step, 2000)}
        counts = {name: needed(name, problem, graph, *given) for name, given in asked.items()}

        def call(name: str, problem: sv.Problem = problem, asked: Any = asked, counts: Any = counts) -> Callable[[], Any]:
            return lambda: sv.run(name, problem, graph, stepsize=asked[name][0], iterations=counts[name])

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
    return rows + [_breast_cancer()]


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
