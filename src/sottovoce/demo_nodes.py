"""The demonstration: five real processes over mutual TLS solve the paper's problem, and each is killed once on the way."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import graphs
from .demo import READABLE, K
from .peer.checking import theorems
from .peer.crew import Crew
from .peer.founding import Plan, found
from .peer.rehearsal import whole

ITERATIONS, GOOD = 400, 1e-10
PROBLEM = "estimation:d=2,s=3,seed=0"


def demo(tell: Callable[[Crew], None] = lambda crew: None) -> dict[str, Any]:
    """Run it in a temporary folder; the table, the error against the closed form, kills, links and seconds."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as place:
        folder, graph = Path(place) / "five", graphs.paper_b()
        plan = Plan((graph,), "private-gradient-tracking", {"K": K}, PROBLEM, iterations=ITERATIONS, port=0)
        federation, _ = found(folder, plan)
        with Crew(folder) as crew:
            x = _played(crew, tell)
            kills = crew.kills
        problem = whole(folder)[1]
    # the closed form, solved here anew: the sum of |z - Q x|^2 is least where (sum H) x = sum b
    exact = np.linalg.solve(problem.data[0].sum(0), problem.data[1].sum(0))
    error = float(np.abs(x - exact).max())
    return {
        "nodes": len(x), "algorithm": f"{federation.algorithm}, K = {K}", "iterations": ITERATIONS, "links": len(graph.edges),
        "connections": sum(len(federation.wiring(name, None).dial) for name in federation.names), "kills": kills, "error": error,
        "apart": float(np.abs(x - x[0]).max()), "seconds": time.perf_counter() - began, "good": error < GOOD, "x": x[0],
        "optimum": exact, "theorems": [row for me in range(len(x)) for row in theorems(federation, me)], "readable": READABLE,
    }  # fmt: skip


def _played(crew: Crew, tell: Callable[[Crew], None]) -> np.ndarray:
    """All nodes to their end; node i is killed when it has passed its share of the way, and started again."""
    names = list(crew.federation.names)
    due = {name: ITERATIONS * (i + 1) // (len(names) + 2) for i, name in enumerate(names)}

    def each(crew: Crew) -> None:
        for name in [name for name in due if crew.iteration(name) >= due[name]]:
            del due[name]
            crew.kill(name)
            crew.start(name)
        tell(crew)

    for name in names:
        crew.start(name)
    crew.watch(each)
    return crew.answers()
