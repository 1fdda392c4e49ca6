"""A visible and an invisible half: Wang, "Privacy-preserving average consensus via state decomposition" (IEEE TAC 2019).

    a_i+ = sum_j w_ij a_j + c_i (b_i - a_i),    b_i+ = b_i + c_i (a_i - b_i)        a_i^0 + b_i^0 = 2 value_i, a_i^0 drawn

Only a crosses the links. W doubly stochastic on a two-way graph; c_i = r_i w_ii, r_i uniform in [eta, 1 - eta], drawn once and
known to its node alone: the two halves of all nodes are then a connected network of 2n with doubly stochastic weights, positive
on its loops, and both go to the mean of all halves, which is the mean of the values. The paper's w is a step times a symmetric
weight, and in iteration 0 any number; here iteration 0 has the weights of all the others.
"""

from typing import Any, NamedTuple

from ..errors import WeightError
from ..laws import LAWS, law
from ..registry import Algorithm, Parameter, doubly, positive, register


class State(NamedTuple):
    x: Any  # the half that the others hear
    hidden: Any
    share: Any  # of my own weight, what couples the two


def start(node: Any, x: Any) -> State:
    p = node.parameters
    visible = node.draw(law(p.law, p.scale), like=x)
    share = p.eta + (1 - 2 * p.eta) * node.draw("unit", like=x[:, :1])
    if not (node.weights.W.own > 0).all():
        raise WeightError("state-decomposition needs a positive own weight at every node, w_ii > 0: its halves share it")
    return State(visible, 2 * node.value - visible, share)


def step(node: Any, s: State) -> State:
    w = node.weights.W
    flow = s.share * w.own * (s.hidden - s.x)
    return State(node.pull((w, s.x)) + flow, s.hidden - flow, s.share)


register(
    Algorithm(
        name="state-decomposition",
        start=start,
        step=step,
        source="Wang 2019",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters={
            "eta": Parameter(0.1, "lower bound of the share that couples the halves", lambda v: 0 < v <= 0.5, "in (0, 1/2]"),
            "law": Parameter("normal", f"the law of the visible half at the start: {', '.join(LAWS)}"),
            "scale": positive(1.0, "the scale of that law"),
        },
        exchanges=1,
        minimises=False,
        averages=True,
        leaks="Who hears me and all my neighbours computes my hidden half from two iterations, hence my value.",
    )
)
