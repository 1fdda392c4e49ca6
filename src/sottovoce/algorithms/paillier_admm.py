"""ADMM over Paillier: Zhang, Ahmad, Wang, "ADMM based privacy-preserving decentralized optimization" (IEEE TIFS 2019).

    x_i+ = argmin f_i(x) + gamma_i/2 |x - x_i|^2 + sum_j (l_ij . x + b_ij/2 |x - x_j|^2)
    l_ij+ = l_ij + b_ij (x_i+ - x_j+),     b_ij = b_i->j b_j->i / stepsize

proximal Jacobi ADMM. Nobody knows b_ij: each end draws its factor in [low, 1] afresh in every iteration, and what i gets to see
of x_j is b_j->i (x_j - x_i), through Paillier as in `paillier`. That is enough: with D_i = sum_j b_ij (x_j - x_i),
l_i = sum_j l_ij and gamma_i = c_i - sum_j b_ij, which i need not know either,

    x_i+ = argmin f_i(x) + (l_i - c_i x_i - D_i) . x + c_i/2 |x|^2,    l_i+ = l_i - D_i+,    c_i = proximal degree / stepsize

Exact: at a fixed point D = 0 and sum l = 0, whatever the b. c_i >= 2 sum_j b_ij makes gamma large enough (the Laplacian of the b is
below c), hence proximal = 2. The paper's penalties change with time too; whether its proof asks them not to decrease we could not
look up, and here they are drawn anew: linear convergence is measured, not proved. `stepsize` is one over the largest penalty.
mode="clear" sends the same numbers as they are.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, positive, register
from .paillier import CIPHER, LEAKS, SIMULATED, differences, factors, keys, otherwise, refuses


class State(NamedTuple):
    x: Any
    l: Any  # the sum of my dual variables
    D: Any  # sum of b_ij (x_j - x_i)


class Keyed(NamedTuple):
    x: Any
    l: Any
    D: Any
    theirs: Any
    mine: Any
    secret: Any


def start(node: Any, x: Any) -> Any:
    """One exchange of differences before the first iteration."""
    b = factors(node, x)
    if node.parameters.mode == "clear":
        return State(x, 0 * x, pulled(node, None, x, b))
    s = Keyed(x, 0 * x, 0 * x, *keys(node))
    return s._replace(D=pulled(node, s, x, b))


def step(node: Any, s: Any) -> Any:
    c = node.parameters.proximal * node.degree / node.weights.stepsize
    x = node.prox(s.l - c * s.x - s.D, c)
    D = pulled(node, s, x, factors(node, x))
    return s._replace(x=x, l=s.l - D, D=D)


def pulled(node: Any, s: Any, x: Any, b: Any) -> Any:
    """D of these x."""
    mine, seen = differences(node, s, x, b)
    return node.gather(mine * seen) / node.weights.stepsize


register(
    Algorithm(
        name="paillier-admm",
        start=start,
        step=step,
        source="Zhang, Ahmad, Wang 2019 (TIFS)",
        certainty="B",
        graphs="two-way",
        parameters={**CIPHER, "proximal": positive(2.0, "c_i = proximal degree / stepsize; 2 keeps every drawn penalty stable")},
        exchanges=2,
        own_steps="one over the largest penalty of an edge: every value converges, too large or too small a one slowly",
        refuses=refuses,
        simulated=SIMULATED,
        otherwise=otherwise,
        leaks=LEAKS,
    )
)
