"""Laplace noise on every iterate: Huang, Mitra, Vaidya, "Differentially private distributed optimization" (ICDCN 2015).

    y_i = x_i + w_i,   w_i ~ Laplace(M_k) in each coordinate       what a node sends
    z_i = sum_j W_ij y_j
    x_i+ = P(z_i - c q^k grad f_i(z_i)),   M_k = 2 C sqrt(d) c p^k / (epsilon (p - q))       k = 0, 1, ...

W doubly stochastic on two-way graphs, P the projection onto the set `within`, 0 < q < p < 1, c the stepsize, C the longest that
a gradient may be in the set, which is `bound`. A longer one is cut to that length: where the costs obey the bound this never
happens and the recursion is the paper's, where they do not the epsilon below holds all the same. epsilon = inf: no noise.

What is spent (re-derived; neighbours: one node has another cost): with the broadcasts given, z is given, so x_i^{k+1} moves by at
most 2 C c q^k in length, by sqrt(d) times that in the sum of its coordinates, and it is sent with noise M_{k+1}. Over T iterations
epsilon (1 - (q / p)^{T-1}), in the limit epsilon; the start is the same in both worlds, the last iterate is not sent.

It is not exact, not even without noise: all steps together are as long as c / (1 - q), so the run freezes on the way.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, Parameter, doubly, positive, register, within
from ..sets import Ball


class State(NamedTuple):
    x: Any


def start(node: Any, x: Any) -> State:
    return State(node.parameters.within.project(node.xp, x))


def step(node: Any, s: State) -> State:
    w, p = node.weights, node.parameters
    k = node.k * 1.0
    noise = node.draw("laplace", like=s.x) * (level(p, w.stepsize, s.x.shape[1]) * p.p**k)
    z = node.pull((w.W, s.x + noise))
    g = Ball(p.bound).project(node.xp, node.gradient(z))
    return State(p.within.project(node.xp, z - w.stepsize * p.q**k * g))


def level(p: Any, stepsize: Any, d: int) -> Any:
    """M_0."""
    return 2 * p.bound * d**0.5 * stepsize / (p.epsilon * (p.p - p.q))


def refuses(p: Any) -> str | None:
    if p.q < p.p:
        return None
    return f"q must be below p, or the noise fades faster than the steps and no epsilon holds; got q={p.q:g} and p={p.p:g}"


def spends(p: Any, problem: Any, iterations: int) -> dict[str, float] | None:
    """Message k + 1 spends epsilon (p - q) / p (q / p)^k, message 0 nothing: a geometric sum."""
    if p.epsilon == float("inf"):
        return None
    return {"epsilon": p.epsilon * (1 - (p.q / p.p) ** max(iterations - 1, 0))}


fraction = lambda default, help: Parameter(default, help, lambda v: 0 < v < 1, "a number between 0 and 1")

register(
    Algorithm(
        name="huang",
        start=start,
        step=step,
        source="Huang, Mitra, Vaidya 2015",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters={
            "epsilon": Parameter(1.0, "spent if it runs for ever; inf: no noise", lambda v: v > 0, "a number above 0, or inf"),
            "q": fraction(0.9, "the steps are stepsize * q^k"),
            "p": fraction(0.95, "the noise is proportional to p^k; q < p"),
            "bound": positive(10.0, "longest gradient in the set; longer ones are cut to it, the noise is proportional to it"),
            "within": within("ball:10"),
        },
        exchanges=1,
        own_steps="c = stepsize of c q^k; all steps together end at c / (1 - q), so it is never exact",
        refuses=refuses,
        spends=spends,
        leaks="Iterates under fading noise: epsilon bounds what they show of a node's cost, and the optimum is missed for it.",
    )
)
