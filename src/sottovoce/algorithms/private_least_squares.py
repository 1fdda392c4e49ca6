"""Least squares, and every quadratic cost, from one opened sum: the sufficient statistics (H, b) of everybody together.

    f_i = x'H_i x / 2 - b_i'x + c_i,    H = sum H_i,  b = sum b_i  (one private sum, see summing.py),    x = H^-1 b at every node

The upper triangle of H_i and the gradient at 0, -b_i, go in: d (d + 1) / 2 + d numbers. The answer is exact after one iteration, to
the rounding of one solve. Karr, Lin, Sanil, Reiter, "Secure regression on distributed databases" (JCGS 2005) opens the same sums,
round a ring. Any strongly connected digraph; the start x^0 plays no part.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, register
from ..summing import PARAMETERS, hops, opened
from .private_newton import bent, halves, solved


class State(NamedTuple):
    x: Any  # the optimum; before the sums are known, my start
    at: Any  # where the opened gradients and Hessians are taken: the origin
    own: Any  # what I put in: the upper triangle of H_i, then the gradient at 0
    sums: Any  # what was opened


def start(node: Any, x: Any) -> State:
    own = bent(node, 0 * x)
    return State(x, 0 * x, own, own)


def step(node: Any, s: State) -> State:
    sums = opened(node, s.own)
    H, g = halves(node, sums)
    return State(-solved(node.xp, H, g), s.at, s.own, sums)


register(
    Algorithm(
        name="private-least-squares",
        start=start,
        step=step,
        source="Karr, Lin, Sanil, Reiter 2005, over any digraph",
        parameters=PARAMETERS,
        exchanges=hops,
        kinds=("uint64",),
        floods=True,
        quadratic=True,
        takes=1,
        own_steps="none: one linear system",
        opens="the sum of all Hessians, and of all gradients at the origin",
        leaks="The sum of all (H_i, b_i), by design; a coalition takes its own away, so a single honest node's cost is read whole.",
    )
)
