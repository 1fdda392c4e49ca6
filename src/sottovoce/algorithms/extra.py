"""EXTRA: Shi, Ling, Wu, Yin, "EXTRA: an exact first-order algorithm for decentralized consensus optimization" (SIAM J.
Optim. 2015), with its own choice of the second matrix, (I + W)/2.

    x^1 = W x^0 - lambda g^0
    x^{k+2} = (I + W) x^{k+1} - (I + W)/2 x^k - lambda (g^{k+1} - g^k)

W is symmetric: two-way graphs. Gradient tracking does not contain this EXTRA (it would need R + C = I + W and CR = (I + W)/2,
which no real pair solves); it contains the member W = 2V - I with second matrix V^2, a test shows. One message, x.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, doubly, register


class State(NamedTuple):
    x: Any
    half: Any  # (I + W)/2 of the x before; x^0 stands in, so that the first step comes out as written
    g: Any  # the gradient at the x before; zero at first


def start(node: Any, x: Any) -> State:
    return State(x, x, 0 * x)


def step(node: Any, s: State) -> State:
    w = node.weights
    mixed, g = node.pull((w.W, s.x)), node.gradient(s.x)
    x = s.x + mixed - s.half - w.stepsize * (g - s.g)
    return State(x, (s.x + mixed) / 2, g)


register(
    Algorithm(
        name="extra",
        start=start,
        step=step,
        source="Shi, Ling, Wu, Yin 2015",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        exchanges=1,
        per_node_steps=False,
        leaks="Whoever hears me and all my in-neighbours computes my gradient at every iterate.",
    )
)
