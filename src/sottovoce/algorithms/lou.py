"""Secret stepsizes and update periods: Lou, Yu, Wang, Yi, "Privacy preservation in distributed subgradient optimization algorithms"
(IEEE Trans. Cybernetics 2018). From memory (certainty C), so both readings of it are here.

    x_i+ = P(sum_j W_ij x_j - a_i(k) grad f_i(x_i))   with a_i(k) = 0 in every iteration that T_i does not divide

P the projection onto the set `within`, W doubly stochastic. Each node draws its period T_i from {1, ..., slowest} and its number
c_i from (0, spread), once, and tells nobody.

    reading="exact"     a_i(k) = stepsize T_i / (k + 1 + c_i)   all nodes step equally far on average: to the optimum, as 1 / k
    reading="literal"   a_i(k) = stepsize c_i / (k + 1)         node i weighs c_i / T_i: to the minimiser of sum (c_i / T_i) f_i

What the paper by Gao, Wang, Nedic says of it fits the literal reading word for word; only the exact one converges to the optimum.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, at_least, doubly, one_of, positive, register, within


class State(NamedTuple):
    x: Any
    c: Any
    T: Any


def start(node: Any, x: Any) -> State:
    p, xp = node.parameters, node.xp
    c = p.spread * node.draw("unit", like=x[:, :1])
    T = 1 + xp.floor(p.slowest * node.draw("unit", like=x[:, :1]))
    return State(p.within.project(xp, x), c, T)


def step(node: Any, s: State) -> State:
    w, p, xp = node.weights, node.parameters, node.xp
    size = s.T / (node.k + 1 + s.c) if p.reading == "exact" else s.c / (node.k + 1)
    size = xp.where(node.k % s.T == 0, w.stepsize * size, 0.0)
    x = node.pull((w.W, s.x)) - size * node.gradient(s.x)
    return State(p.within.project(xp, x), s.c, s.T)


register(
    Algorithm(
        name="lou",
        start=start,
        step=step,
        source="Lou, Yu, Wang, Yi 2018, in two readings",
        certainty="C",
        weights={"W": doubly("doubly")},
        parameters={
            "reading": one_of(("exact", "literal"), "exact", "exact: to the optimum; literal: steps c_i / (k + 1), biased"),
            "spread": positive(5.0, "c_i is drawn from (0, spread)"),
            "slowest": at_least(1, 5, "the update period T_i is drawn from 1 to slowest"),
            "within": within("ball:10"),
        },
        exchanges=1,
        own_steps="stepsize T_i / (k + 1 + c_i) in every T_i-th iteration (exact reading), stepsize c_i / (k + 1) (literal)",
        leaks="Whoever hears me and all my in-neighbours computes T_i and my gradient but for a factor.",
    )
)
