"""Decentralised consensus ADMM: Shi, Ling, Yuan, Wu, Yin, "On the linear convergence of the ADMM in decentralized consensus
optimization" (IEEE TSP 2014).

    x_i+ = argmin f_i(x) + a_i.x + c sum_j |x - (x_i + x_j) / 2|^2,    a_i+ = a_i + c sum_j (x_i+ - x_j+)        c = 1 / stepsize

a^0 = 0, sums over the neighbours on a two-way graph; one message, x. Exact for every c > 0 and convex costs, linear for strongly
convex smooth ones. a_i is the sum of the duals of my edges, none of which is needed alone.
"""

import math
from typing import Any, NamedTuple

from ..registry import Algorithm, register


class State(NamedTuple):
    x: Any
    near: Any  # sum over my neighbours j of x_i + x_j
    a: Any


def start(node: Any, x: Any) -> State:
    return State(x, node.degree * x + node.gather(node.hear(x)), 0 * x)


def step(node: Any, s: State) -> State:
    c = 1 / node.weights.stepsize
    x = node.prox(s.a - c * s.near, 2 * c * node.degree)
    heard = node.gather(node.hear(x))
    return State(x, node.degree * x + heard, s.a + c * (node.degree * x - heard))


register(
    Algorithm(
        name="admm",
        start=start,
        step=step,
        source="Shi, Ling, Yuan, Wu, Yin 2014",
        certainty="B",
        graphs="two-way",
        exchanges=1,
        own_steps="1 / stepsize is the penalty, and every one converges",
        good_step=lambda largest, least, degree: 2 * degree / math.sqrt(largest * least),
        leaks="Whoever hears me and all my neighbours adds up my dual, and has my gradient at every iterate.",
    )
)
