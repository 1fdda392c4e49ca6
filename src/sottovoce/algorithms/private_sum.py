"""The sum (or the mean) of everybody's values, opened to all, and nothing else: masked sums without a server.

Pairwise masks: Chaum, "The dining cryptographers problem" (J. Cryptology 1988); as words that cancel in a sum: Bonawitz et al.,
"Practical secure aggregation" (CCS 2017). Here along the edges of a digraph, carried by flooding (see summing.py):

    z_i = v_i + sum over out-edges of r_ij - sum over in-edges of r_ji    mod 2^64 words
    v_1 + ... + v_n = z_1 + ... + z_n                                     in whole steps of the fixed point, exactly

Any strongly connected digraph; one iteration of as many exchanges as its diameter. Each value is rounded to the step once, the sum
is exact. A value out of range is refused.
"""

from typing import Any, NamedTuple

from ..registry import Algorithm, one_of, register
from ..summing import PARAMETERS, hops, opened


class State(NamedTuple):
    x: Any  # the sum, or the mean; before it is known, my own value
    own: Any  # what I put in
    sums: Any  # what was opened


def start(node: Any, x: Any) -> State:
    own = node.value + 0 * x
    return State(own, own, own)


def step(node: Any, s: State) -> State:
    sums = opened(node, s.own)
    return State(sums / node.public.n if node.parameters.of == "mean" else sums, s.own, sums)


register(
    Algorithm(
        name="private-sum",
        start=start,
        step=step,
        source="Chaum 1988; Bonawitz et al. 2017, without a server",
        parameters={"of": one_of(("sum", "mean"), "sum", "what is told: the sum of all values, or their mean"), **PARAMETERS},
        exchanges=hops,
        kinds=("uint64",),
        floods=True,
        minimises=False,
        takes=1,
        own_steps="none: it adds up",
        opens="the sum of all values",
        leaks="The sum of all values, by design; a coalition takes its own away, so a single honest node's value is read.",
    )
)
