"""Gradient descent through two servers that do not collude: the secret sharing of He, Karimireddy, Jaggi, "Secure Byzantine-robust
machine learning" (2020), without its robust rule.

    a node's update, u_i = (stepsize / n) grad f_i(x), in fixed point mod 2^64:  to server 0 r_i, uniform;  to server 1 u_i - r_i
    server s tells all:  S_s = sum of the shares that it got
    everybody:  x+ = x - (S_0 + S_1) = x - sum u_i;    at the start  x = sum of x_i / n

Of the graph only the nodes count: each talks to the two servers, which the player appends, and to nobody else. Sums mod 2^64 are
exact, so all have the same x, and the only error is that of the encoding, at most 2^-(fraction_bits + 1) for each u_i. Entries of
up to (2^(63 - fraction_bits) - 1) / n fit, larger ones are refused. In the paper one server learns the sum and tells it; here each
tells its share of it, so neither learns even that. An exchange crosses every link both ways: the idle way carries zeros and counts.

Exact up to the encoding. The stepsize is that of gradient descent on the mean of the costs: below 2 / smoothness.
"""

from typing import Any, NamedTuple

from ..fixed import Fixed
from ..registry import Algorithm, between, register


class State(NamedTuple):
    x: Any


def start(node: Any, x: Any) -> State:
    return State(total(node, x / node.public.n))


def step(node: Any, s: State) -> State:
    return State(s.x - total(node, node.weights.stepsize / node.public.n * node.gradient(s.x)))


def total(node: Any, u: Any) -> Any:
    """The sum of the parties' u, which no server sees; zero at the servers, whose own u is zero."""
    xp, fixed = node.xp, Fixed.words(int(node.parameters.fraction_bits), node.public.n)
    node.refuse(fixed.outside(u), fixed.refusal)
    r = node.draw("words", like=u)
    rest = fixed.to_words(xp, u) - r
    first, second, nothing = node.to_helper == 0, node.to_helper == 1, 0 * node.spread(r)
    shares = node.gather(node.exchange(xp.where(first, node.spread(r), xp.where(second, node.spread(rest), nothing))))
    told = node.gather(node.hear(xp.where(node.helper < 0, 0 * shares, shares)))
    return fixed.from_words(xp, told)


register(
    Algorithm(
        name="two-servers",
        start=start,
        step=step,
        source="He, Karimireddy, Jaggi 2020",
        certainty="B",
        graphs="helpers",
        parameters={"fraction_bits": between(1, 52, 40, "bits after the point of what is shared")},
        exchanges=2,
        kinds=("uint64", "uint64"),
        helpers=2,
        own_steps="gradient descent on the mean of the costs, stable below 2 / smoothness",
        leaks="Everybody reads the sum of the gradients; a server alone uniform words; both servers, or a tap on the links to "
        "both, every gradient.",
    )
)
