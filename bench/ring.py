"""The paper's ring of a thousand nodes, each sending to the next two: one compiled run, d = 2.

The stepsize is tiny because a larger one than about 1e-9 need not be stable here; it changes nothing in the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sottovoce as sv

from .measure import interleaved, least_and_median
from .report import Row

FIGURE = "ring"
N, ITERATIONS = 1000, 2000
ASKED = (
    ("constant weights (push-pull)", "push-pull", {}, 40),
    ("fresh weights (private-gradient-tracking, K = 1)", "private-gradient-tracking", {"K": 1}, 130),
)


def measure(quick: bool) -> list[Row]:
    """Rows of this figure: whole calls of `run`, what it prepares and hands back included."""
    problem, graph = sv.problems.estimation(n=N, d=2, s=3, scale=0.5, seed=0), sv.graphs.ring(N)

    def call(method: str, options: dict[str, Any], backend: str) -> Callable[[], Any]:
        return lambda: sv.run(method, problem, graph, stepsize=1e-9, iterations=ITERATIONS, backend=backend, **options)

    compiled = {what: call(method, options, "compiled") for what, method, options, _ in ASKED}
    eager = {f"eager, {what}": call(method, options, "eager") for what, method, options, _ in ASKED}
    times = interleaved(compiled, 4 if quick else 20) | interleaved(eager, 1 if quick else 5, warmups=0)
    each = lambda seconds: [1e6 * t / ITERATIONS for t in seconds]
    rows = []
    for what, _, _, bound in ASKED:
        wall, cpu = least_and_median(each(times[what].wall)), min(each(times[what].cpu))
        note = f"{cpu:.1f} us of CPU: compiled code uses all cores"
        rows.append(Row(FIGURE, f"compiled, {what}", "us an iteration wall", *wall, bound, note=note))
    return rows + [Row(FIGURE, what, "us an iteration wall", *least_and_median(each(times[what].wall))) for what in eager]
