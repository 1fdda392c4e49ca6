"""Offsets that add up to zero: Manitara, Hadjicostis, "Privacy-preserving asymptotic average consensus" (ECC 2013).

    s+ = C (s + u),   v+ = C v,   x = s / v        sum over k of u_i^k = 0 for each node, u_i^k = 0 after k = K - 1

s^0 is what a node holds, v^0 = 1. Each u is a node's own: drawn for k < K - 1, then all of it is taken back. Since nothing is
left of u the limit is the exact mean, on any strongly connected digraph: with C="doubly" (v = 1 throughout) it is the paper's
linear iteration, otherwise ratio consensus, as in Charalambous, Manitara, Hadjicostis (Allerton 2019), without their delays.
The same K for all nodes; in the papers each chooses its own.
"""

from typing import Any

from ..laws import LAWS, law
from ..node import Layer, Values, Weight
from ..registry import Algorithm, Applied, Mechanism, Parameter, at_least, columns, positive, register
from .push_sum import needs, start, step


class Offsets(Layer):
    """Iterations k < K: what goes out carries an offset; m is their sum so far."""

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        ((c, (s, v)),) = terms
        drawn = self.inner.draw(law(self.options.law, self.options.scale), like=s)
        u = self.inner.xp.where(self.inner.k < self.options.last, drawn, -self.m)
        self.m = self.m + u
        return self.inner.push((c, (s + u, v)), total=(total[0] + self.m, total[1]))


def begin(node: Any, parameters: Any) -> Any:
    """Nothing yet, for each node, coordinate and run."""
    return 0 * node.draw("normal", like=node.xp.zeros((1, node.coordinates, 1)))


OFFSETS = Mechanism(name="offsets", source="Manitara, Hadjicostis 2013", wrap=Offsets, start=begin, needs=needs, lasts="K")


register(
    Algorithm(
        name="manitara",
        start=start,
        step=step,
        source="Manitara, Hadjicostis 2013",
        certainty="B",
        weights={"C": columns("uniform")},
        parameters={
            "K": at_least(2, 5, "iterations with offsets; the last one takes back what the others added"),
            "law": Parameter("normal", f"the law of the others: {', '.join(LAWS)}"),
            "scale": positive(1.0, "the scale of that law"),
        },
        exchanges=1,
        minimises=False,
        averages=True,
        mechanisms=lambda p: (Applied(OFFSETS, (("K", p.K), ("law", p.law), ("scale", p.scale), ("last", p.K - 1))),),
        leaks="Who hears me and all my in-neighbours adds my offsets up and has my value; a narrow law leaves it readable at once.",
    )
)
