"""How much memory a large eager run takes beyond its graph and its problem: numbers (8 bytes) an edge and coordinate.

Never of the order of n^2: a star and a graph with hubs, where a padded table of neighbours would be, are weighed too.
"""

from __future__ import annotations

import numpy as np

import sottovoce as sv

from .measure import timed, traced
from .report import Row

FIGURE = "memory"
D = 10


def hubs(n: int, count: int = 20) -> sv.Graph:
    """A cycle, and `count` nodes that send to all others and hear from all others."""
    nodes = np.arange(n)
    edges = [np.column_stack((nodes, (nodes + 1) % n))]
    for hub in range(count):
        others = nodes[nodes != hub]
        edges += [np.column_stack((np.full(n - 1, hub), others)), np.column_stack((others, np.full(n - 1, hub)))]
    return sv.Graph(n, np.unique(np.concatenate(edges), axis=0))


def measure(quick: bool) -> list[Row]:
    """Rows of this figure; one run each, for memory does not vary."""
    large, star, hub = sv.graphs.scattered(100_000, 7), sv.graphs.star(20_000), hubs(20_000)
    return [
        weighed(large, 0, "n = 100,000, degree 8, k >= K", 8),
        weighed(large, 1, "n = 100,000, degree 8, one iteration with k < K", None),
        weighed(star, 0, "star of 20,000, k >= K", 100),
        weighed(star, 1, "star of 20,000, one iteration with k < K", 100),
        weighed(hub, 0, "20 hubs among 20,000, k >= K", 100),
        weighed(hub, 1, "20 hubs among 20,000, one iteration with k < K", 100),
    ]


def weighed(graph: sv.Graph, K: int, what: str, bound: float | None) -> Row:
    """One run of the paper's algorithm."""
    problem = sv.problems.rendezvous(np.random.default_rng(0).standard_normal((graph.n, D)))
    iterations = 2 if K else 4
    play = lambda: sv.run(
        "private-gradient-tracking", problem, graph, K=K, stepsize=1e-9, iterations=iterations, backend="eager"
    )
    cpu, _, (peak, _) = timed(lambda: traced(play))
    numbers = peak / 8 / (len(graph.edges) * D)
    note = f"{peak / 1e6:,.0f} MB, {len(graph.edges):,} edges, {cpu:.1f} s for {iterations} iterations"
    return Row(FIGURE, what, "numbers", numbers, numbers, bound, note=note)
