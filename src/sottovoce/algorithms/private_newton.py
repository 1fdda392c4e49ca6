"""Newton's method on opened sums: everybody's Hessians and gradients together, at one common point in each iteration.

    H = sum H_i(z),  g = sum grad f_i(z)   (one private sum, see summing.py),     p = H^-1 g,     z+ = z - p

    z is accepted while |g| falls, |g(z)| <= (1 - t / 10^4) |g before|;   else back, and half as far:  z+ = z_before - t p_before

Damped Newton on the equation g = 0 (Deuflhard, "Newton methods for nonlinear problems", 2004, the standard monotonicity test): from
any start it converges where the sum of the costs is strictly convex, quadratically in the end. Every node computes the same z
from the same opened words. z^0 = 0: the start x^0 plays no part. A quadratic sum takes one iteration, a logistic one a handful.
Any strongly connected digraph.
"""

from typing import Any, NamedTuple

import numpy as np

from ..errors import ProblemError
from ..registry import Algorithm, register
from ..summing import PARAMETERS, hops, opened

ENOUGH = 1e-4  # of the fall that a straight line promises
REACH = 1e5  # no step is longer than so many times 1 + |z|: further out nothing is tried


class State(NamedTuple):
    x: Any  # the next point, and my estimate
    at: Any  # where the last sums were opened
    own: Any  # what I put in there: the upper triangle of H_i, then my gradient
    sums: Any  # what was opened
    base: Any  # the last point that was accepted
    p: Any  # Newton's direction from there
    length: Any  # how much of it is taken
    size: Any  # |g| there


def start(node: Any, x: Any) -> State:
    origin = 0 * x
    own = 0 * bent(node, origin)
    one = origin[:, :1] + 1
    return State(x, origin, own, own, origin, origin, one, np.inf * one)


def step(node: Any, s: State) -> State:
    xp = node.xp
    at = s.base - s.length * s.p
    own = bent(node, at)
    sums = opened(node, own)
    H, g = halves(node, sums)
    size = norm(xp, g)
    better = size <= (1 - ENOUGH * s.length) * s.size
    either = lambda new, old: xp.where(better, new, old)
    sound = xp.where(better[:, None], H, xp.eye(node.coordinates)[:, :, None])  # a point that is left may be flat
    base, p = either(at, s.base), either(solved(xp, sound, g), s.p)
    first = xp.minimum(1.0, REACH * (1 + norm(xp, base)) / xp.maximum(norm(xp, p), 1e-300))
    length = either(first, s.length / 2)
    return State(base - length * p, at, own, sums, base, p, length, either(size, s.size))


def norm(xp: Any, v: Any) -> Any:
    """(node, 1, run)."""
    return xp.sqrt((v * v).sum(1, keepdims=True))


def bent(node: Any, x: Any) -> Any:
    """My Hessian at x, its upper triangle row by row, and my gradient: (node, d (d + 1) / 2 + d, run)."""
    rows, columns = np.triu_indices(node.coordinates)
    H = node.hessian(x)[:, rows, columns] + 0 * x[:, :1]
    return node.xp.concatenate([H, node.gradient(x)], axis=1)


def halves(node: Any, sums: Any) -> tuple[Any, Any]:
    """The sums as a matrix (node, d, d, run) and a gradient (node, d, run)."""
    d = node.coordinates
    place = np.zeros((d, d), int)
    rows, columns = np.triu_indices(d)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return sums[:, place.ravel()].reshape(len(sums), d, d, -1), sums[:, len(rows) :]


def solved(xp: Any, H: Any, g: Any) -> Any:
    """H^-1 g, every node and run apart."""
    try:
        found = xp.linalg.solve(xp.moveaxis(H, -1, 1), xp.moveaxis(g, -1, 1)[..., None])
    except np.linalg.LinAlgError:
        raise ProblemError("the sum of the Hessians is singular: there is no single minimiser; add a penalty such as l2") from None
    return xp.moveaxis(found[..., 0], 1, -1)


register(
    Algorithm(
        name="private-newton",
        start=start,
        step=step,
        source="Newton's method on private sums; damping as in Deuflhard 2004",
        parameters=PARAMETERS,
        exchanges=hops,
        kinds=("uint64",),
        floods=True,
        takes=10,
        own_steps="Newton's, halved while the gradient of the sum does not fall",
        opens="the sum of all Hessians and gradients at each iterate",
        leaks="The sum of all Hessians and gradients at each iterate, by design; of a single honest node they are read outright.",
    )
)
