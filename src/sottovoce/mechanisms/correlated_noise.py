"""Correlated noise on what is mixed: Gade, Vaidya, "Private optimization on networks" (ACC 2018), network-balanced form.

    x_i + size_k d_i^k goes to all neighbours,   d_i^k = sum_l (s_li^k - s_il^k)        size_k = scale / (k + 1)^decay

Two neighbours send each other fresh s in each iteration, one message more. Over all nodes the d cancel, so the sum of what a
doubly stochastic W mixes is as it would be without them; the noise fades, and the limit stays exact, no faster than it fades. In
the paper size_k is the stepsize and s is bounded. Two-way graphs.

Worth: it fades, so a late iterate shows my gradient as it would without it; while it lasts, x is hidden from whoever does
not have all of my links, in proportion to the scale.
"""

from typing import Any

from ..laws import law
from ..node import Layer, Values, Weight, each
from ..registry import Choice, Mechanism, one_of, positive, register
from .function_sharing import check_two_way


class CorrelatedNoise(Layer):
    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        return self.inner.pull(*((weight, each(self._noisy, v)) for weight, v in terms))

    def _noisy(self, part: Any) -> Any:
        sent = self.inner.draw(law(self.options.law), like=part, known="edge")
        d = self.inner.gather(self.inner.exchange(sent)) - self.inner.collect(sent)
        return part + self.options.scale / (self.inner.k + 1.0) ** self.options.decay * d


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    weights = list(algorithm.weights.values())
    if len(weights) == 1 and isinstance(weights[0], Choice) and weights[0].side == "both":
        return None
    return "its noise cancels in what is mixed by one doubly stochastic weight, as in dgd and extra, and this method has others"


register(
    Mechanism(
        name="correlated-noise",
        source="Gade, Vaidya 2018",
        wrap=CorrelatedNoise,
        start=lambda node, parameters: check_two_way(node, "correlated-noise"),
        parameters={
            "scale": positive(1.0, "the scale of s in the first iteration"),
            "decay": positive(1.0, "scale / (k + 1)^decay"),
            "law": one_of(("uniform", "normal", "laplace"), "uniform", "the law of s; bounded in the paper"),
        },
        needs=needs,
        needs_text="a two-way graph, and a method that mixes with one doubly stochastic weight (dgd, extra)",
        leaks="It fades, and late iterates show my gradient; who has all my links takes it off at once.",
        overrides=("pull",),
    )
)
