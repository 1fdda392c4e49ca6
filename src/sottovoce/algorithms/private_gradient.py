"""Quasi-Newton on opened sums of gradients: d numbers in each iteration, for costs whose Hessians are too many or too dear.

    g = sum grad f_i(z)   (one private sum, see summing.py),      p = -B g,      z = base + t p

BFGS (Nocedal, Wright, "Numerical optimization", 2006, chapter 6) at every node alike, from the same opened words. No value of a
cost is opened: the length t is found on the slope along p alone, which rises where the sum is convex. z is accepted when

    -0.9 |s| <= g(z)'p <= 0.1 |s|,   s = g(base)'p;       too short: four times as far;   too far: back, to where a line through
                                                          the two slopes is zero

B is the stepsize times the identity at first, and y's / y'y times it before the first update. z^0 = 0: the start x^0 plays no part.
Any strongly connected digraph; costs with one common minimiser of the sum.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, register
from ..summing import PARAMETERS, hops, opened

LONG, SHORT = 0.1, 0.9  # the slopes that are accepted, in terms of the one at the base
GROW, BACK = 4.0, 0.1  # a trial goes so many times as far, and back to such a part of the way at most


class State(NamedTuple):
    x: Any  # the next point, and my estimate
    at: Any  # where the last sum was opened
    own: Any  # what I put in there: my gradient
    sums: Any  # what was opened
    base: Any  # the last point that was accepted
    g: Any  # the sum of the gradients there
    p: Any  # the direction from there
    B: Any  # the inverse of the Hessian, as far as it is known, row by row
    length: Any  # how much of p is tried
    low: Any  # the longest that was too short
    slope: Any  # and the slope there
    high: Any  # the shortest that was too long
    known: Any  # 1 once B has been updated


def start(node: Any, x: Any) -> State:
    xp, zero = node.xp, 0 * x
    none = zero[:, :1]
    B = node.weights.stepsize / node.public.n * (none + 1) * xp.eye(node.coordinates).reshape(1, -1, 1)
    return State(x, zero, zero, zero, zero, zero, zero, B, none + 1, none, none, none + xp.inf, none)


def step(node: Any, s: State) -> State:
    xp = node.xp
    at = s.base + s.length * s.p
    own = node.gradient(at)
    g = opened(node, own)
    slope, there = dot(s.g, s.p), dot(g, s.p)  # at the base, and at the trial
    far, near = ~(there <= -LONG * slope), there < SHORT * slope
    taken = ~(far | near)
    either = lambda new, old: xp.where(taken, new, old)
    B = either(updated(xp, s, at - s.base, g - s.g), s.B)
    base, g_base, p = either(at, s.base), either(g, s.g), either(-times(B, g), s.p)
    low, at_low, high = xp.where(near, s.length, s.low), xp.where(near, there, s.slope), xp.where(far, s.length, s.high)
    again = tried(xp, s.length, low, at_low, high, there, far)
    length, low, high = either(1 + 0 * low, again), either(0 * low, low), either(xp.inf + 0 * low, high)
    known = either(xp.maximum(s.known, (slope < 0) * 1.0), s.known)
    return State(base + length * p, at, own, g, base, g_base, p, B, length, low, either(dot(g_base, p), at_low), high, known)


def tried(xp: Any, length: Any, low: Any, slope: Any, high: Any, there: Any, far: Any) -> Any:
    """The next length: where the line through the two slopes is zero, half way to what was too long, or further."""
    part = slope / xp.where(slope == there, -1.0, slope - there)
    part = xp.clip(xp.where(xp.isfinite(part), part, 0.0), BACK, 1 - BACK)
    ahead = xp.where(xp.isfinite(high), (length + high) / 2, GROW * length)
    return xp.where(far, low + part * (length - low), ahead)


def updated(xp: Any, s: State, moved: Any, turned: Any) -> Any:
    """B after a step `moved` that turned the gradient by `turned`; as it was where that says nothing."""
    d, gain = moved.shape[1], dot(moved, turned)
    fine = gain > 0
    r = 1 / xp.where(fine, gain, 1.0)
    size = gain / xp.where(fine, dot(turned, turned), 1.0)
    B = xp.where(s.known > 0, s.B, size * xp.eye(d).reshape(1, -1, 1))
    Bt, B = times(B, turned), B.reshape(-1, d, d, B.shape[-1])
    outer = lambda a, b: a[:, :, None] * b[:, None]
    wide = lambda a: a[:, :, None]
    new = B - wide(r) * (outer(moved, Bt) + outer(Bt, moved)) + wide(r * (1 + r * dot(turned, Bt))) * outer(moved, moved)
    return xp.where(fine, new.reshape(s.B.shape), s.B)


def dot(a: Any, b: Any) -> Any:
    """(node, 1, run)."""
    return (a * b).sum(1, keepdims=True)


def times(B: Any, v: Any) -> Any:
    """The matrix whose rows lie one after the other, times a vector."""
    d = v.shape[1]
    return (B.reshape(-1, d, d, B.shape[-1]) * v[:, None]).sum(2)


register(
    Algorithm(
        name="private-gradient",
        start=start,
        step=step,
        source="BFGS on private sums; Nocedal, Wright 2006",
        parameters=PARAMETERS,
        exchanges=hops,
        kinds=("uint64",),
        floods=True,
        takes=200,
        own_steps="BFGS; the first step is this times the mean gradient",
        opens="the sum of all gradients at each iterate",
        leaks="The sum of all gradients at each iterate, by design, and so its curvature; of a single honest node they are read.",
    )
)
