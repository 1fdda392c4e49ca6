"""Random weights and stepsizes for the first K iterations: Table II of Gao, Wang, Nedic (Automatica 2023).

For k < K each node draws the stepsize of each coordinate, its row weights, and its column weights on each edge from a law on
the whole line; its own column weight is what is missing from one, so that sum y = sum grad f(x) is untouched. Nobody else
knows these numbers. What they hide is a constant shift of a gradient, nothing that happens later.
"""

from typing import Any

from ..laws import LAWS, law
from ..node import Layer
from ..registry import Mechanism, Parameter, at_least, positive, register
from ..weights import Raw

SIDES = {"R": "row", "A": "row", "C": "column", "B": "column"}  # who chooses


class RandomStart(Layer):
    @property
    def weights(self) -> Any:
        chosen = law(self.options.law, self.options.scale)
        drawn = self.inner.weighed({name: Raw(side, chosen) for name, side in SIDES.items()})
        drawn.stepsize = self.inner.draw_stepsize(chosen)
        return drawn


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    law(parameters.law, parameters.scale)
    if set(algorithm.weights) != set(SIDES):
        return "it randomises the weights R, A, C and B of gradient tracking, and this method has others"
    return None


register(
    Mechanism(
        name="random-start",
        source="Gao, Wang, Nedic 2023, Table II",
        wrap=RandomStart,
        parameters={
            "K": at_least(0, 1, "iterations with random weights and stepsizes"),
            "law": Parameter("normal", f"their law: {', '.join(LAWS)}"),
            "scale": positive(1.0, "the scale of that law"),
        },
        needs=needs,
        needs_text="a method with the weights R, A, C, B (gradient tracking and Table I)",
        leaks="Hides a constant shift of one gradient; curvature and everything along the way stay readable.",
        overrides=("weights",),
        allows=("secret-late-weights",),
        lasts="K",
    )
)
