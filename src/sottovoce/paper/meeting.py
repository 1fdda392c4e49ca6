"""The rendezvous of section 5.1 in two worlds: node 3 sees the same in both, and node 1's gradient is another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import problems
from ..auditor.witness import Witness, witness
from ..auditor.worlds import in_fractions, world_of
from ..graph import Graph
from ..problem import Problem
from ..transcript import Transcript
from . import setting

CYCLE = Graph(3, [(0, 2), (2, 1), (1, 0)], labels=["1", "2", "3"])  # so directed that node 3 hears node 1, as in figure 2
NODE_1, NODE_2, NODE_3 = range(3)
POSITIONS = (1.0, 3.0, 8.0)
K, STEPSIZE, ITERATIONS, DELTA, SEED = 3, 0.3, 60, 6, 4
TOLD = {
    "problem": "rendezvous", "positions": POSITIONS, "graph": CYCLE.edges, "K": K, "stepsize": STEPSIZE, "delta": DELTA,
    "seed": SEED,
}  # fmt: skip


def problem() -> Problem:
    """f_i = (x - p_i)^2 / 2, written as a quadratic, which rational numbers can follow."""
    p = np.array(POSITIONS)[:, None]
    return problems.quadratic(np.ones((3, 1, 1)), p, p[:, 0] ** 2 / 2)


def recorded(iterations: int = ITERATIONS) -> Transcript:
    """The transcript of the first world."""
    options: dict[str, Any] = {"K": K, "stepsize": STEPSIZE, "iterations": iterations, "seed": SEED}
    return setting.recorded("private-gradient-tracking", problem(), CYCLE, **options)


def worlds(exact: bool = False, iterations: int = ITERATIONS) -> Witness:
    """Both worlds; `exact` in rational numbers, where each iteration makes every number longer."""
    world = world_of(recorded(iterations))
    return witness(in_fractions(world) if exact else world, NODE_1, DELTA, [NODE_3])
