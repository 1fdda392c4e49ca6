"""Noise that is taken back as it decays: Mo, Murray, "Privacy preserving average consensus" (IEEE TAC 2017).

    x+ = W (x + w),    w^0 = n^0,    w^k = phi^k n^k - phi^(k-1) n^(k-1)        0 < phi < 1

x^0 is what a node holds, n its own noise of mean zero and finite variance (the paper's is normal), W doubly stochastic on a
two-way graph. The sum of all w up to k is phi^k n^k, which vanishes: the limit is the exact mean. The error decays like the
slower of phi and the second eigenvalue of W. He, Cai, Zhao, Cheng, Guan (IEEE TSIPN 2019) study this form with other laws,
and find the uniform one best for their measure.
"""

from typing import Any, NamedTuple

from ..laws import law
from ..registry import Algorithm, Parameter, doubly, one_of, positive, register


class State(NamedTuple):
    x: Any
    added: Any  # phi^(k-1) n^(k-1): the sum of all noise so far


def start(node: Any, x: Any) -> State:
    return State(node.value + 0 * x, 0 * x)


def step(node: Any, s: State) -> State:
    p = node.parameters
    noise = p.phi ** (node.k + 0.0) * node.draw(law(p.law, p.scale), like=s.x)
    return State(node.pull((node.weights.W, s.x + (noise - s.added))), noise)


register(
    Algorithm(
        name="mo-murray",
        start=start,
        step=step,
        source="Mo, Murray 2017",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters={
            "phi": Parameter(0.9, "how fast the noise decays", lambda v: 0 < v < 1, "above 0 and below 1, or it never vanishes"),
            "law": one_of(("normal", "laplace", "uniform"), "normal", "its law, of finite variance"),
            "scale": positive(1.0, "the scale of that law"),
        },
        exchanges=1,
        minimises=False,
        averages=True,
        leaks="Who hears me and all my neighbours computes my value in the limit; what others learn of it has a variance.",
    )
)
