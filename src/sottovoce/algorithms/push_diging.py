"""Push-DIGing: Nedic, Olshevsky, Shi, "Achieving geometric convergence for distributed optimization over time-varying
graphs" (SIAM J. Optim. 2017).

    u+ = C_k (u - lambda y),   v+ = C_k v,   x+ = u+ / v+,   y+ = C_k y + grad f(x+) - grad f(x)

C_k column-stochastic on the graph of iteration k, v^0 = 1: digraphs, also a sequence of them whose union is strongly
connected. One message a neighbour.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, columns, register


class State(NamedTuple):
    u: Any
    v: Any
    x: Any
    y: Any
    g: Any


def start(node: Any, x: Any) -> State:
    g = node.gradient(x)
    return State(x, 0 * x[:, :1] + 1, x, g, g)


def step(node: Any, s: State) -> State:
    w = node.weights
    u, v, y = node.push((w.C, (s.u - w.stepsize * s.y, s.v, s.y)), total=(None, 1, s.g))
    x = u / v
    g = node.gradient(x)
    return State(u, v, x, y + g - s.g, g)


register(
    Algorithm(
        name="push-diging",
        start=start,
        step=step,
        source="Nedic, Olshevsky, Shi 2017",
        certainty="B",
        graphs="sequence",
        weights={"C": columns("uniform")},
        exchanges=1,
        leaks="An out-neighbour computes my gradient at the start, pushed first with a known weight, and my curvature after it.",
    )
)
