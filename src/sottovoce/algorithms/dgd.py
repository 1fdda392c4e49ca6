"""Decentralised gradient descent: Nedic, Ozdaglar, "Distributed subgradient methods for multi-agent optimization" (IEEE TAC 2009).

    x_i+ = sum_j w_ij x_j - lambda_k grad f_i(x_i)        lambda_k = stepsize / (k + 1)^decay

With decay in (1/2, 1] it is exact and slow; decay = 0 is the constant step, fast to a neighbourhood of the optimum whose size
grows with the step. W doubly stochastic.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, Parameter, doubly, register


class State(NamedTuple):
    x: Any


def start(node: Any, x: Any) -> State:
    return State(x)


def step(node: Any, s: State) -> State:
    w = node.weights
    size = w.stepsize / (node.k + 1.0) ** node.parameters.decay
    return State(node.pull((w.W, s.x)) - size * node.gradient(s.x))


register(
    Algorithm(
        name="dgd",
        start=start,
        step=step,
        source="Nedic, Ozdaglar 2009",
        certainty="B",
        weights={"W": doubly("doubly")},
        parameters={"decay": Parameter(0.75, "stepsize / (k + 1)^decay; 0 keeps it constant", lambda v: 0 <= v <= 1, "in [0, 1]")},
        exchanges=1,
        own_steps="stepsize / (k + 1)^decay: exact for decay in (1/2, 1], biased in proportion to the step for 0",
        leaks="Whoever hears me and all my in-neighbours computes my gradient at every iterate.",
    )
)
