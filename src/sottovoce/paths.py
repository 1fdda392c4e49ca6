"""Paths over edges: which nodes a search finds, and how far apart two are at most.

Edges come in rows: `targets[starts[i]:starts[i + 1]]` are the nodes next to node i.
"""

from __future__ import annotations

import numpy as np

SMALL = 500  # up to this many nodes a search in Python is quick, and SciPy's 20 MB are not loaded


def reached(n: int, starts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Which nodes a search from node 0 finds."""
    seen = np.zeros(n, dtype=bool)
    if n > SMALL:
        seen[breadth_first(n, 0, starts, targets)[0]] = True
        return seen
    lists, found, todo = np.split(targets, starts[1:-1]), {0}, [0]
    while todo:
        new = set(lists[todo.pop()].tolist()) - found
        found |= new
        todo.extend(new)
    seen[list(found)] = True
    return seen


def breadth_first(n: int, start: int, starts: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    return breadth_first_order(csr_array((np.ones(len(targets)), targets, starts), shape=(n, n)), start)


def eccentricity(n: int, start: int, starts: np.ndarray, targets: np.ndarray) -> int:
    order, before = breadth_first(n, start, starts, targets)
    node, steps = order[-1], 0  # found last, so furthest away
    while node != start:
        node, steps = before[node], steps + 1
    return steps


def dense_diameter(A: np.ndarray) -> int:
    """The smallest k for which (I + A)^k has no zero, by doubling k and then halving the step."""
    power = [((A + np.eye(len(A))) > 0).astype(np.float32)]
    if len(A) == 1:
        return 0
    while not power[-1].all():
        power.append((power[-1] @ power[-1] > 0).astype(np.float32))
    short, steps = np.eye(len(A), dtype=np.float32), 0
    for j in reversed(range(len(power))):
        longer = short @ power[j] > 0
        if not longer.all():
            short, steps = longer.astype(np.float32), steps + 2**j
    return steps + 1
