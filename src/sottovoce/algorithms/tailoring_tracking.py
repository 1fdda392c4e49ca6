"""The form of `tailoring` for digraphs: Wang, Nedic, "Tailoring gradient methods for differentially private distributed
optimization" (IEEE TAC 2024), gradient tracking whose tracker adds gradients up instead of replacing them.

    s_i+ = s_i + gamma_k (sum_j C_ij (s_j + zeta_j) - s_i) + lambda_k grad f_i(x_i)       s^0 = 0; my own s without the noise
    x_i+ = x_i + eta_k (sum_j R_ij (x_j + xi_j) - x_i) - (s_i+ - s_i)                     my own x without the noise

    zeta_j, xi_j ~ Laplace(nu_k),   gamma_k = tracking / (k + 1)^tracking_decay,   eta_k = mixing / (k + 1)^mixing_decay
    lambda_k = stepsize / (k + 1)^decay,   nu_k = noise (k + 1)^growth

C column-stochastic, R row-stochastic: any strongly connected digraph. Because s is a sum of gradients and x follows its increments,
noise that was added once is not added up again. Conditions (certainty C, from memory): sum gamma, sum eta, sum lambda infinite;
sum (gamma nu)^2, sum (eta nu)^2, sum lambda^2 / gamma, sum lambda^2 / eta and sum gamma^2 / eta finite; anything else is refused.

What is spent (re-derived as for `tailoring`): with all messages given, s_i and x_i move by at most

    S_{k+1} = (1 - gamma_k (1 - C_ii)) S_k + D_k,   X_{k+1} = (1 - eta_k (1 - R_ii)) X_k + gamma_k (1 - C_ii) S_k + D_k,
    D_k = 2 sqrt(d) bound lambda_k,   epsilon = sum over k of (S_k + X_k) / nu_k

at the worst node, over the iterations that were played.
"""

from typing import Any, NamedTuple

import numpy as np

from ..registry import Algorithm, Parameter, columns, register, rows
from ..sets import Ball
from .tailoring import number, part, sequences, unsummable
from .tailoring import parameters as shared


class State(NamedTuple):
    x: Any
    s: Any  # my share of the sum of all gradients so far, each times its stepsize


def start(node: Any, x: Any) -> State:
    return State(x, 0 * x)


def step(node: Any, s: State) -> State:
    w, p = node.weights, node.parameters
    size, mixing, nu = sequences(p, w.stepsize, node.k)
    zeta, xi = nu * node.draw("laplace", like=s.x), nu * node.draw("laplace", like=s.x)
    pushed = node.push((w.C, s.s + zeta)) - w.C.own * zeta
    pulled = node.pull((w.R, s.x + xi)) - w.R.own * xi
    g = Ball(p.bound).project(node.xp, node.gradient(s.x))
    increment = tracking(p, node.k) * (pushed - s.s) + size * g
    return State(s.x + mixing * (pulled - s.x) - increment, s.s + increment)


def tracking(p: Any, k: Any) -> Any:
    """gamma_k."""
    return p.tracking / (k + 1.0) ** p.tracking_decay


def refuses(p: Any) -> str | None:
    reason = unsummable(p, "tracking", p.tracking_decay) or unsummable(p, "mixing", p.mixing_decay)
    gap = 2 * p.tracking_decay - p.mixing_decay
    if reason or gap > 1:
        return reason
    return f"the sum of tracking^2 / mixing must be finite: 2 tracking_decay - mixing_decay > 1, and here it is {gap:g}"


def spends(p: Any, problem: Any, iterations: int) -> dict[str, float] | None:
    """The recursion above, all nodes at once; weights that are drawn count as if nothing of the difference were lost."""
    if p.noise == 0:
        return None
    lost, left = (1 - np.asarray(p.shares.get(name, fallback)) for name, fallback in (("C", 0.0), ("R", 1.0)))
    fade = lost if "C" in p.shares else 0.0
    k, taken = np.arange(iterations), 2 * problem.d**0.5 * p.bound
    S = X = epsilon = 0.0
    for size, mixing, nu, gamma in zip(*sequences(p, p.stepsize, k), tracking(p, k), strict=True):
        epsilon = epsilon + (S + X) / nu
        S, X = (1 - gamma * fade) * S + size * taken, (1 - mixing * left) * X + gamma * lost * S + size * taken
    return {"epsilon": float(np.max(epsilon))}


register(
    Algorithm(
        name="tailoring-tracking",
        start=start,
        step=step,
        source="Wang, Nedic 2024, with gradient tracking",
        certainty="C",
        weights={"R": rows("uniform"), "C": columns("uniform")},
        parameters={
            **shared,
            "tracking": part(1.0, "gamma_k = tracking / (k + 1)^tracking_decay"),
            "tracking_decay": Parameter(0.9, "how fast the mixing of the trackers fades", number, "a number"),
            "mixing_decay": Parameter(0.7, "how fast the mixing of the iterates fades", number, "a number"),
            "growth": Parameter(0.1, "how fast the noise grows; below 0 it fades", number, "a number"),
        },
        exchanges=2,
        own_steps="lambda_k = stepsize / (k + 1)^decay, and mixing that fades as it says",
        refuses=refuses,
        spends=spends,
        leaks="Iterates and trackers under noise: the epsilon that is told bounds what they show of a node's cost, and it grows.",
    )
)
