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
    q: Any  # half of everything that mixing has moved so far; over all nodes it sums to zero


def start(node: Any, x: Any) -> State:
    return State(x, 0 * x)


def step(node: Any, s: State) -> State:
    """The two lines above, summed up once: x^{k+1} = W x^k - lambda g^k - sum over t < k of (I - W)/2 x^t."""
    w = node.weights
    mixed = node.pull((w.W, s.x))
    return State(mixed - w.stepsize * node.gradient(s.x) - s.q, s.q + (s.x - mixed) / 2)


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
