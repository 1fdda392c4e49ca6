"""The tree that sums travel on: every node's way to node 0, and node 0's way to every node, by the fewest hops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .graph import Graph


class Tree(NamedTuple):
    """Which edges belong to it, as numbers 0 and 1: (edges, 1, 1)."""

    up: np.ndarray  # the first of its sender's way to node 0
    down: np.ndarray  # the last of node 0's way to its receiver


@functools.lru_cache(maxsize=16)
def tree(graph: Graph) -> Tree:
    """Of a strongly connected graph; among ways of the same length, through the first node."""
    there, back = _hops(graph, graph.out_neighbours), _hops(graph, graph.in_neighbours)
    up, down = (np.zeros((len(graph.edges), 1, 1), np.int64) for _ in range(2))
    led: set[tuple[str, int]] = set()
    for e, (s, r) in enumerate(graph.edges):
        for chosen, name, nearer in ((up, ("up", s), back[s] == back[r] + 1), (down, ("down", r), there[r] == there[s] + 1)):
            if nearer and name not in led:
                led.add(name)
                chosen[e] = 1
    return Tree(up, down)


def _hops(graph: Graph, next_to: Callable[[int], tuple[int, ...]]) -> list[int]:
    """From node 0 to each, step by step."""
    far, border = [0] + [-1] * (graph.n - 1), [0]
    while border:
        new = sorted({j for i in border for j in next_to(i) if far[j] < 0})
        for j in new:
            far[j] = far[border[0]] + 1
        border = new
    return far
