"""Push-sum with a random start: Gao, Zhang, Ahmad, Wang, "Privacy-preserving average consensus on directed graphs using
push-sum" (IEEE CNS 2018), from which the paper's random start descends.

    k < K     s_i+ = c_ii s_i + sum_j c_ij s_j      c_li any number of a law, another for each edge and coordinate, known to
                                                    its sender alone; c_ii = 1 - sum_l c_li
    k >= K    s+ = C s,   v+ = C v,   x = s / v     C positive, column-stochastic, known to all

s^0 is what a node holds; v = 1 until K. Any strongly connected digraph, also a sequence of them. The columns keep sum s, so x
converges to the mean, whatever was drawn. What Gao et al. do to v before K is our reading.

Others are settings of it:
    K=0                                 push-sum itself: Kempe, Dobra, Gehrke (FOCS 2003)
    K=1, messages="drawn"               Gupta, Katz, Chopra (IFAC 2017): scale c_li in place of c_li s_i, so each message is a
                                        mask that its sender takes off; over the reals here, where the scale decides what it hides,
                                        while theirs are uniform modulo a number and hide everything
    K=20, messages="drawn"              noise for several rounds before the data are mixed, as in Pilet, Frey, Taiani (SSS 2019),
                                        who gossip in random pairs
    `manitara`                          Charalambous, Manitara, Hadjicostis (Allerton 2019): offsets of my own instead
Ruan, Gao, Wang (IEEE TAC 2019) is not one: its weights are products that two ends make under Paillier's encryption.
"""

from typing import Any, NamedTuple

from ..laws import LAWS, law
from ..node import Layer, Values, Weight
from ..registry import Algorithm, Applied, Mechanism, Parameter, at_least, columns, one_of, positive, register
from ..weights import Raw

OWN = Weight(None, None)  # the identity: what it weighs stays at home


class State(NamedTuple):
    s: Any
    v: Any  # undoes what the unequal columns do to s
    x: Any


def start(node: Any, x: Any) -> State:
    s = node.value + 0 * x
    return State(s, 0 * x[:, :1] + 1, s)


def step(node: Any, s: State) -> State:
    value, v = node.push((node.weights.C, (s.s, s.v)), total=(node.value, 1))
    return State(value, v, value / v)


class Random(Layer):
    """Iterations k < K: random columns for s, and v stays as it is."""

    @property
    def weights(self) -> Any:
        own_scale = self.options.scale if self.options.messages == "weighted" else 1.0
        return self.inner.weighed({"C": Raw("column", law(self.options.law, own_scale))})

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        ((c, (s, v)),) = terms
        if self.options.messages == "weighted":
            return self.inner.push((c, s), total=total[0]), v
        whole = 0 * s + self.options.scale  # I give away c_li of it, and keep s less all that
        return self.inner.push((OWN, s - whole), (c, whole), total=total[0]), v


def needs(algorithm: Any, parameters: Any, outside: Any) -> None:
    law(parameters.law, parameters.scale)  # refuses what is no law


RANDOM = Mechanism(
    name="random-columns", source="Gao, Zhang, Ahmad, Wang 2018", wrap=Random, needs=needs, overrides=("weights",), lasts="K"
)


register(
    Algorithm(
        name="push-sum",
        start=start,
        step=step,
        source="Gao, Zhang, Ahmad, Wang 2018",
        certainty="B",
        graphs="sequence",
        weights={"C": columns("uniform")},
        parameters={
            "K": at_least(0, 1, "iterations with random columns"),
            "law": Parameter("normal", f"their law: {', '.join(LAWS)}"),
            "scale": positive(1.0, "the scale of that law"),
            "messages": one_of(("weighted", "drawn"), "weighted", "in those, a random share of s, or a random number"),
        },
        exchanges=1,
        minimises=False,
        averages=True,
        mechanisms=lambda p: (Applied(RANDOM, tuple((name, getattr(p, name)) for name in ("K", "law", "scale", "messages"))),),
        leaks="Who hears all my links computes my value; a weighted message tells its size as far as the law is narrow.",
    )
)
