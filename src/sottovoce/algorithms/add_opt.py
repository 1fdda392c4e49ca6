"""ADD-OPT: Xi, Xin, Khan, "ADD-OPT: accelerated distributed directed optimization" (IEEE TAC 2018).

    x+ = C x - lambda y,   v+ = C v,   z+ = x+ / v+,   y+ = C y + grad f(z+) - grad f(z)

C column-stochastic, v^0 = 1, y^0 = grad f(z^0): any strongly connected digraph, and a sender needs only its out-degree. x, v and
y ride in one message.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, columns, register


class State(NamedTuple):
    x: Any
    v: Any  # undoes what the unequal columns do to x
    z: Any  # the estimate
    y: Any
    g: Any


def start(node: Any, x: Any) -> State:
    g = node.gradient(x)
    return State(x, 0 * x[:, :1] + 1, x, g, g)


def step(node: Any, s: State) -> State:
    w = node.weights
    x, v, y = node.push((w.C, (s.x, s.v, s.y)), total=(None, 1, s.g))
    x = x - w.stepsize * s.y
    z = x / v
    g = node.gradient(z)
    return State(x, v, z, y + g - s.g, g)


register(
    Algorithm(
        name="add-opt",
        start=start,
        step=step,
        source="Xi, Xin, Khan 2018",
        certainty="B",
        weights={"C": columns("uniform")},
        exchanges=1,
        answer=lambda s: s.z,
        leaks="An out-neighbour computes my gradient at the start, pushed first with a known weight, and my curvature after it.",
    )
)
