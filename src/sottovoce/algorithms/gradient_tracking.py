"""Gradient tracking with any weights: Algorithm 1 of Gao, Wang, Nedic, "Dynamics based Privacy Preservation in
Decentralized Optimization" (Automatica 2023).

    x_i+ = sum_j (R_ij x_j - A_ij Lambda_j y_j)                        receivers choose R and A
    y_i+ = sum_j (C_ij y_j + B_ij (grad f_j(x_j+) - grad f_j(x_j)))    senders choose C and B; y^0 = grad f(x^0)

Columns of C and B sum to one, so that sum y = sum grad f(x) at all times; rows of R and A sum to one. A, B or any other may
be the identity or the same as another; then less is sent. Any strongly connected digraph.

`consensus=q` mixes q times for each gradient: R^(q-1) comes before what is new of x, C^(q-1) before what is new of y. That buys
back rounds where gradients are steep beside what the graph mixes, behind function masks for one.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, at_least, columns, register, rows


class State(NamedTuple):
    x: Any  # my estimate of the optimum
    y: Any  # my share of the sum of all gradients
    g: Any  # my gradient at x


def start(node: Any, x: Any) -> State:
    g = node.gradient(x)
    return State(x, g, g)


def step(node: Any, s: State) -> State:
    """Lines (a) to (d)."""
    w, more = node.weights, getattr(node.parameters, "consensus", 1) - 1
    x = node.pull((w.R, s.x), (-w.A, w.stepsize * s.y))
    for _ in range(more):
        x = node.pull((w.R, x))
    g = node.gradient(x)
    y = node.push((w.C, s.y), (w.B, g - s.g), total=g)  # over all nodes, the y sum to the g
    for _ in range(more):
        y = node.push((w.C, y), total=g)
    return State(x, y, g)


register(
    Algorithm(
        name="gradient-tracking",
        start=start,
        step=step,
        source="Gao, Wang, Nedic 2023, Algorithm 1",
        weights={"R": rows("uniform"), "A": "R", "C": columns("uniform"), "B": "C"},
        parameters={"consensus": at_least(1, 1, "how often x and y are mixed for each gradient")},
        exchanges=2,
        per_node_steps=True,
        leaks="An out-neighbour computes my gradient at x^1 from the first pushed message, whose weight is known (section 4.3).",
    )
)
