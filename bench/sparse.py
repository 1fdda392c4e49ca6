"""Ten thousand nodes with a mean degree of eight, d = 10, eager: against a loop of SciPy CSR products.

Both do four products an iteration with the same constant weights and end in the same place; the loop records nothing, while
sottovoce records every error. With fresh weights sottovoce is held against that same loop, whose weights stay as they are.
Arrays of this size come and go with pages that the system must map anew, more or less of them by the history of the process;
the note says how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import sottovoce as sv

from .measure import interleaved, least_and_median, speedup
from .report import Row

FIGURE = "sparse"
N, DEGREE, D, STEPSIZE, ITERATIONS = 10_000, 8, 10, 0.05, 30
FOUR: dict[str, Any] = dict.fromkeys("RACB", "uniform")  # equal numbers, but four weights and four products


def matrices(sender: np.ndarray, receiver: np.ndarray) -> tuple[sp.csr_array, sp.csr_array]:
    """(R, C), uniform: the rows of R and the columns of C sum to one. Short indices, for speed."""
    nodes = np.arange(N)
    to, come_from = (np.append(ends, nodes).astype(np.int32) for ends in (receiver, sender))
    weight = lambda index: (1 / np.bincount(index))[index]
    matrix = lambda index: sp.csr_array((weight(index), (to, come_from)), shape=(N, N))
    return matrix(to), matrix(come_from)


def loop(R: sp.csr_array, C: sp.csr_array, x: np.ndarray, points: np.ndarray, iterations: int) -> np.ndarray:
    """Gradient tracking on f_i = |x - p_i|^2 / 2."""
    A, B = R.copy(), C.copy()
    y = g = x - points
    for _ in range(iterations):
        x = R @ x - A @ (STEPSIZE * y)
        new = x - points
        y, g = C @ y + B @ (new - g), new
    return x


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    rng = np.random.default_rng(0)
    points, x0 = rng.standard_normal((N, D)), rng.standard_normal((N, D))
    graph, problem = sv.graphs.scattered(N, DEGREE - 1), sv.problems.rendezvous(points)
    R, C = matrices(graph.sender, graph.receiver)
    options: dict[str, Any] = {"stepsize": STEPSIZE, "iterations": ITERATIONS, "x0": x0, "backend": "eager"}
    constant = lambda: sv.run("gradient-tracking", problem, graph, **options, **FOUR)
    fresh = lambda: sv.run("private-gradient-tracking", problem, graph, **options, K=0)
    gap = np.abs(loop(R, C, x0, points, ITERATIONS) - constant().x[0]).max()
    if not gap < 1e-12:
        raise RuntimeError(f"the SciPy loop and sottovoce are {gap:.2g} apart after {ITERATIONS} iterations")
    actions = {"loop": lambda: loop(R, C, x0, points, ITERATIONS), "constant": constant, "fresh": fresh}
    times = interleaved(actions, 4 if quick else 15)
    base = times["loop"].cpu
    graph_is = f"n = {N:,}, {len(graph.edges):,} edges, d = {D}"
    rows = [
        Row(FIGURE, "constant weights, of the SciPy loop", "times", *speedup(times["constant"].cpu, base), 2, note=graph_is),
        Row(FIGURE, "fresh weights, of the constant SciPy loop", "times", *speedup(times["fresh"].cpu, base), 3.5),
    ]
    for name, what in (("loop", "SciPy loop"), ("constant", "constant weights"), ("fresh", "fresh weights")):
        each = times[name] / ITERATIONS
        note = f"{min(each.faults):,.0f} page faults an iteration"
        rows.append(Row(FIGURE, what, "us an iteration", *least_and_median([1e6 * t for t in each.cpu]), note=note))
    return rows
