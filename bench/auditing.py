"""How long an audit takes: every single node of twenty, the theorems for a thousand nodes, the linearised posterior of five."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from .report import Row

FIGURE = "auditing"


def measure(quick: bool) -> list[Row]:
    """Wall time: what somebody waits."""
    times = 1 if quick else 3
    return [
        _row("n = 20, d = 3, each node curious, all attacks and theorems", _twenty, 10, times),
        _row("theorem table, n = 1,000, each node curious", _thousand, 2, times),
        _row("Jacobian, n = 5, d = 3, 24 iterations", _jacobian, 5, times),
    ]


def _row(what: str, work: Callable[[], Any], bound: float, times: int) -> Row:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return Row(FIGURE, what, "s wall", min(taken), statistics.median(taken), at_most=bound)


def _twenty() -> None:
    import sottovoce as sv

    problem = sv.problems.estimation(n=20, d=3, seed=0)
    report = sv.audit("private-gradient-tracking", problem, sv.graphs.erdos_renyi(20, p=0.2, seed=1), K=3, advise=False)
    assert len(report.verdicts) == 20 * 19 * 6


def _thousand() -> None:
    import sottovoce as sv
    from sottovoce.auditor import theorems

    theorems._neighbours.cache_clear()
    assert theorems.table(sv.graphs.ring(1000)).protected.all()


def _jacobian() -> None:
    import sottovoce as sv
    from sottovoce.auditor.jacobian import directions

    problem = sv.problems.estimation(n=5, d=3, s=3, scale=0.5, seed=0)
    options: dict[str, Any] = {"K": 3, "stepsize": 0.02, "iterations": 24, "record": True}
    transcript = sv.run("private-gradient-tracking", problem, sv.graphs.paper_b(), **options).transcript
    assert transcript is not None
    assert len(directions(transcript, {1})) == 12
