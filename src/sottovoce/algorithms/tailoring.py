"""Noise that may grow under mixing that fades: Wang, Nedic, "Tailoring gradient methods for differentially private distributed
optimization" (IEEE TAC 2024), the form without tracking.

    x_i+ = x_i + gamma_k sum over neighbours j of W_ij (x_j + zeta_j - x_i) - lambda_k grad f_i(x_i)

    zeta_j ~ Laplace(nu_k) in each coordinate, drawn afresh; my own value is without it
    gamma_k = mixing / (k + 1)^mixing_decay,   lambda_k = stepsize / (k + 1)^decay,   nu_k = noise (k + 1)^growth

W doubly stochastic on two-way graphs. It converges almost surely, slowly, where sum gamma and sum lambda are infinite and
sum (gamma nu)^2 and sum lambda^2 / gamma finite; anything else is refused. Gradients longer than `bound` are cut to it: where the
costs obey the bound this never happens.

What is spent (re-derived; neighbours: one node has another cost). With the messages given, my own share of x shrinks by
1 - gamma_k (1 - W_ii) and takes in at most 2 sqrt(d) bound lambda_k (sum of the coordinates), so

    S_{k+1} = (1 - gamma_k (1 - W_ii)) S_k + 2 sqrt(d) bound lambda_k,   S_0 = 0,   epsilon = sum over k of S_k / nu_k

over the iterations that were played. In this count it keeps growing: S_k falls as k^(mixing_decay - decay), and a finite sum would
need decay - mixing_decay + growth > 1, which with the conditions above asks for decay > 3/2. That the total stays finite, as the
paper has it, takes a narrower idea of neighbours: costs that are the same near the optimum.
"""

from typing import Any, NamedTuple

import numpy as np

from ..registry import Algorithm, Parameter, doubly, positive, register
from ..sets import Ball


class State(NamedTuple):
    x: Any


def start(node: Any, x: Any) -> State:
    return State(x)


def step(node: Any, s: State) -> State:
    w, p = node.weights, node.parameters
    size, mixing, nu = sequences(p, w.stepsize, node.k)
    noise = nu * node.draw("laplace", like=s.x)
    moved = node.pull((w.W, s.x + noise)) - w.W.own * noise - s.x  # rows sum to one: the sum over my neighbours
    return State(s.x + mixing * moved - size * Ball(p.bound).project(node.xp, node.gradient(s.x)))


def sequences(p: Any, stepsize: Any, k: Any) -> tuple[Any, Any, Any]:
    """lambda_k, gamma_k, nu_k."""
    t = k + 1.0
    return stepsize / t**p.decay, p.mixing / t**p.mixing_decay, p.noise * t**p.growth


def refuses(p: Any) -> str | None:
    return unsummable(p, "mixing", p.mixing_decay)


def unsummable(p: Any, name: str, fading: float) -> str | None:
    """Which of the conditions on the sequences is violated, in words."""
    for what, exponent in (("stepsize", p.decay), (name, fading)):
        if not 0 < exponent <= 1:
            return f"the sum of {what} / (k + 1)^{exponent:g} must be infinite and its terms fade: an exponent in (0, 1]"
    if not 2 * p.decay - fading > 1:
        return f"the sum of stepsize^2 / {name} must be finite: 2 decay - {name}_decay > 1, and here it is {2 * p.decay - fading:g}"
    if p.noise > 0 and not 2 * (fading - p.growth) > 1:
        least = 2 * (fading - p.growth)
        return f"the sum of ({name} noise)^2 must be finite: 2 ({name}_decay - growth) > 1, and here it is {least:g}"
    return None


def spends(p: Any, problem: Any, iterations: int) -> dict[str, float] | None:
    """The recursion above at the node that keeps most of its own value; weights that are drawn count as if they kept all."""
    if p.noise == 0:
        return None
    taken, kept = 2 * problem.d**0.5 * p.bound, float(max(p.shares.get("W", (1.0,))))
    S = epsilon = 0.0
    for size, mixing, nu in zip(*(v.tolist() for v in sequences(p, p.stepsize, np.arange(iterations))), strict=True):
        epsilon += S / nu
        S = (1 - mixing * (1 - kept)) * S + size * taken
    return {"epsilon": epsilon}


number = lambda v: isinstance(v, int | float) and abs(v) < float("inf")
part = lambda default, help: Parameter(default, help, lambda v: 0 < v <= 1, "in (0, 1]")
parameters = {
    "decay": Parameter(1.0, "lambda_k = stepsize / (k + 1)^decay", number, "a number"),
    "mixing": part(1.0, "gamma_k = mixing / (k + 1)^mixing_decay"),
    "mixing_decay": Parameter(0.9, "how fast the mixing fades", number, "a number"),
    "noise": Parameter(0.1, "nu_k = noise (k + 1)^growth; 0: none", lambda v: 0 <= v < float("inf"), "a number from 0 on"),
    "growth": Parameter(0.3, "how fast the noise grows; below 0 it fades", number, "a number"),
    "bound": positive(10.0, "longest gradient; longer ones are cut to it, and what is spent is proportional to it"),
}

register(
    Algorithm(
        name="tailoring",
        start=start,
        step=step,
        source="Wang, Nedic 2024",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters=parameters,
        exchanges=1,
        own_steps="lambda_k = stepsize / (k + 1)^decay, and mixing that fades as it says",
        refuses=refuses,
        spends=spends,
        leaks="Iterates under noise: the epsilon told bounds what they show of a node's cost, and it keeps growing.",
    )
)
