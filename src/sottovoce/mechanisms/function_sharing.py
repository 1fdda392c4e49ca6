"""Function sharing: Gade, Vaidya, "Private learning on networks" (2016, arXiv 1612.05236) and "Private optimization on networks"
(ACC 2018).

    f^_i = f_i - sum_l R_il + sum_l R_li        R_il random, drawn by i and sent to its neighbour l before anything else

Over all nodes they cancel: the sum and its minimiser stay, and any method runs on the f^. Two-way graphs. The class here:
R = x'Sx/2 + t'x, S symmetric with entries of spread `curvature`, t of spread `slope`. With curvature = 0 the R are linear, a prox
stays a prox, and what is hidden is a constant of my gradient; otherwise f^_i need not be convex, only the sum is.

Worth: nothing of me alone is told to curious nodes that leave the others connected when they are taken away; if they close in on
me, all of it. How much a finite spread hides is not said by the papers, and costs that are no quadratics stay open to a fit beyond
their quadratic part: `function-masks` has other classes, digraphs and a budget.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import GraphError, ParameterError
from ..laws import LAWS, law
from ..node import Array, Layer
from ..registry import Mechanism, Parameter, positive, register


class Added(NamedTuple):
    """What came in less what went out: x'Sx/2 + t'x."""

    S: Array  # (n, d, d, run)
    t: Array  # (n, d, run)


class FunctionSharing(Layer):
    def gradient(self, x: Array) -> Array:
        return self.inner.gradient(x) + self.xp.sum(self.m.S * x[:, None], axis=2) + self.m.t

    def hessian(self, x: Array) -> Array:
        return self.inner.hessian(x) + self.m.S

    def prox(self, p: Array, q: Any) -> Array:
        if self.options.curvature:
            raise ParameterError(
                "function-sharing: with shared curvature a node's cost need not be convex, so its prox need not exist; share "
                "linear functions (curvature=0), or take a method that uses gradients, such as diging or extra"
            )
        return self.inner.prox(p + self.m.t, q)


def start(node: Any, parameters: Any) -> Added:
    check_two_way(node, "function-sharing")
    d = node.coordinates
    drawn = node.draw(law(parameters.law), like=node.xp.zeros((1, d * (d + 1) // 2 + d, 1)), known="edge")
    added = node.gather(node.exchange(drawn)) - node.collect(drawn)
    return Added(parameters.curvature * added[:, np.array(places(d))], parameters.slope * added[:, -d:])


def places(d: int) -> list[list[int]]:
    """Which of the numbers of a triangle stands at each place of the symmetric matrix."""
    return [[max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for j in range(d)] for i in range(d)]


def check_two_way(node: Any, name: str) -> None:
    """A reason to refuse digraphs, as the papers have none."""
    try:
        node.turn(node.spread(node.me))
    except GraphError:
        raise GraphError(f"{name} needs a two-way graph: each of two neighbours sends to the other") from None


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    law(parameters.law)
    return None if algorithm.minimises else "it adds to costs, and this method has none to minimise"


register(
    Mechanism(
        name="function-sharing",
        source="Gade, Vaidya 2016, 2018",
        wrap=FunctionSharing,
        start=start,
        parameters={
            "slope": positive(10.0, "spread of the entries of t"),
            "curvature": Parameter(1.0, "spread of the entries of S; 0: linear only", lambda v: 0 <= v < math.inf, "0 or above"),
            "law": Parameter("normal", f"the law of both: {', '.join(LAWS)}"),
        },
        needs=needs,
        needs_text="a two-way graph and a method that minimises; a prox needs curvature=0",
        leaks="If all my neighbours are curious, what the method tells without it; to others what the spread does not cover.",
        overrides=("gradient", "hessian", "prox"),
    )
)
