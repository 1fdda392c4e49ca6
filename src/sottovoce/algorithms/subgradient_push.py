"""Subgradient-Push: Nedic, Olshevsky, "Distributed optimization over time-varying directed graphs" (IEEE TAC 2015).

    w = C_k x,   v+ = C_k v,   z = w / v+,   x+ = w - lambda_{k+1} grad f(z)        lambda_k = stepsize / k^decay

C_k column-stochastic, v^0 = 1: digraphs, also time-varying. Exact for decay in (1/2, 1], at a sublinear rate.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, Parameter, columns, register


class State(NamedTuple):
    x: Any
    v: Any
    z: Any  # the estimate


def start(node: Any, x: Any) -> State:
    return State(x, 0 * x[:, :1] + 1, x)


def step(node: Any, s: State) -> State:
    w = node.weights
    mixed, v = node.push((w.C, (s.x, s.v)), total=(None, 1))
    z = mixed / v
    size = w.stepsize / (node.k + 1.0) ** node.parameters.decay
    return State(mixed - size * node.gradient(z), v, z)


register(
    Algorithm(
        name="subgradient-push",
        start=start,
        step=step,
        source="Nedic, Olshevsky 2015",
        certainty="B",
        graphs="sequence",
        weights={"C": columns("uniform")},
        parameters={"decay": Parameter(1.0, "stepsize / (k + 1)^decay; 0 keeps it constant", lambda v: 0 <= v <= 1, "in [0, 1]")},
        exchanges=1,
        answer=lambda s: s.z,
        own_steps="stepsize / (k + 1)^decay: exact for decay in (1/2, 1]; the paper takes 1 / k",
        leaks="Whoever hears me and all my in-neighbours computes my gradient at every iterate.",
    )
)
