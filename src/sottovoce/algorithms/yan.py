"""Projected gradient descent in the open: Yan, Sundaram, Vishwanathan, Qi, "Distributed autonomous online learning: regrets and
intrinsic privacy-preserving properties" (IEEE TKDE 2013), with costs that do not change.

    x_i+ = P(sum_j W_ij x_j - lambda_k grad f_i(x_i)),   lambda_k = stepsize / (k + 1)^decay

P the projection onto the set `within`, W doubly stochastic; decay = 1/2 for convex costs, 1 for strongly convex ones. It is exact,
and slow. Nothing is added to hide anything: what the paper calls intrinsic is that whoever does not hear all my in-neighbours, or
does not know the weights, cannot solve for my gradient, and that the projection drops part of it where it acts.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, Parameter, doubly, register, within


class State(NamedTuple):
    x: Any


def start(node: Any, x: Any) -> State:
    return State(node.parameters.within.project(node.xp, x))


def step(node: Any, s: State) -> State:
    w, p = node.weights, node.parameters
    size = w.stepsize / (node.k + 1.0) ** p.decay
    return State(p.within.project(node.xp, node.pull((w.W, s.x)) - size * node.gradient(s.x)))


register(
    Algorithm(
        name="yan",
        start=start,
        step=step,
        source="Yan, Sundaram, Vishwanathan, Qi 2013",
        certainty="B",
        weights={"W": doubly("doubly")},
        parameters={
            "decay": Parameter(0.5, "stepsize / (k + 1)^decay; 1 where the costs curve", lambda v: 0.5 <= v <= 1, "in [1/2, 1]"),
            "within": within("ball:10"),
        },
        exchanges=1,
        own_steps="stepsize / (k + 1)^decay: exact for decay in [1/2, 1]",
        leaks="Whoever hears me and all my in-neighbours computes my gradient at every iterate inside the set.",
    )
)
