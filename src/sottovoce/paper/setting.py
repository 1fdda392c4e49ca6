"""The paper's numerical setting, as far as it says; what it does not say is chosen here, once, and named in every file.

Section 5.2 says n = 5, d = 2, s = 3, K = 3, stepsize 0.06. The data and the graph of figure 1 (b) are not published: the data are
drawn, Q with a standard deviation of 0.5 (with 1, some of the methods diverge at 0.06), and the graph is a stand-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import graphs, problems
from ..graph import Graph
from ..problem import Problem
from ..run import run
from ..transcript import Transcript

SEED, N, D, S, SCALE = 0, 5, 2, 3, 0.5
K, STEPSIZE = 3, 0.06
PROBLEM = f"estimation:n={N},d={D},s={S},scale={SCALE},seed={SEED}"
GRAPH = "paper-b"
BALL = 10.0  # radius of the set that the compared methods project on
HUANG = {"stepsize": 0.2, "q": 0.8, "p": 0.9, "within": f"ball:{BALL:g}"}  # of a grid, these show its trade-off best
LOU = {"stepsize": 4.0, "spread": 5.0, "slowest": 5, "within": f"ball:{BALL:g}"}  # of a few stepsizes, the best one


def problem() -> Problem:
    """The distributed estimation of section 5.2."""
    return problems.estimation(n=N, d=D, s=S, scale=SCALE, seed=SEED)


def graph() -> Graph:
    """The stand-in for figure 1 (b)."""
    return graphs.paper_b()


def two_way() -> Graph:
    """The same with every link both ways, for methods that need that."""
    edges = graph().edges
    return Graph(N, sorted({*edges, *((b, a) for a, b in edges)}))


def told(**more: Any) -> dict[str, Any]:
    """The parameters of a figure in this setting."""
    return {"problem": PROBLEM, "graph": GRAPH, "seed": SEED, "stepsize": STEPSIZE, **more}


def longest_gradient(problem: Problem) -> float:
    """An upper bound in the ball, from curvature and the gradient at zero: what Laplace noise must be made for."""
    at_zero = np.linalg.norm(problem.gradient(np.zeros((problem.n, problem.d))), axis=1)
    return float((problem.smoothness * BALL + at_zero).max())


def recorded(method: str, problem: Problem, graph: Graph, **options: Any) -> Transcript:
    """The transcript of a run."""
    kept = run(method, problem, graph, record=True, **options).transcript
    assert kept is not None
    return kept


def reached(result: Any, error: float) -> np.ndarray:
    """The first recorded iteration at which each run is below an error; infinite where it never is."""
    below = result.error < error
    return np.where(below.any(1), np.asarray(result.recorded)[below.argmax(1)], np.inf)


def thinned(result: Any, values: Mapping[str, Any], most: int = 400) -> dict[str, Any]:
    """At most so many points of curves over the recorded iterations, the last among them."""
    count = len(result.recorded)
    kept = np.unique(np.round(np.linspace(0, count - 1, min(count, most))).astype(int))
    return {"k": np.asarray(result.recorded)[kept], **{name: np.asarray(v)[..., kept] for name, v in values.items()}}
