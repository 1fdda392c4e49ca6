"""Late weights that only their owner knows: Gao, Wang, Nedic (Automatica 2023), Table II, with one assumption less.

In the paper everybody knows the weights from iteration K on, so an out-neighbour divides a pushed message by its weight and
reads my gradient's increments, hence my curvature. Here the paper's sampler draws the very same weights, but the sender (columns)
or the receiver (rows) keeps them; each="coordinate": another weight for each coordinate, which the paper does not have:
that it converges is observed, not proved.

Worth: a scalar still shows the direction of what it scales, so an out-neighbour has my curvature up to one factor when d >= 3,
and all my out-neighbours together have the factor too. With a weight a coordinate nothing is read exactly, yet the weights lie
in a known band [eta, 1] and have a known mean: averages over iterations and runs narrow my curvature down. The optimum is exact.
"""

from dataclasses import replace
from typing import Any

from ..errors import ParameterError
from ..node import Layer
from ..registry import Mechanism, one_of, register
from ..weights import Paper

TRACKING = {"R", "A", "C", "B"}
WAYS_OUT = "take private-gradient-tracking with late='fresh', or name the paper's sampler (R='paper', C='paper')"


class SecretLateWeights(Layer):
    @property
    def weights(self) -> Any:
        each = self.options.each == "coordinate"
        rules = self.inner.rules
        kept = {name: replace(r, known="me", per_coordinate=each) if sampled(r) else r for name, r in rules.items()}
        return self.inner.weighed(kept, own=True)


def sampled(rule: Any) -> bool:
    """Whether the paper's sampler draws it afresh."""
    return isinstance(rule, Paper) and rule.fresh


def start(node: Any, parameters: Any) -> None:
    if not any(sampled(rule) for rule in node.rules.values()):
        raise ParameterError(
            f"secret-late-weights needs weights that are drawn afresh in every iteration, and here none is: {WAYS_OUT}"
        )


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    if not algorithm.weights:
        return f"it keeps drawn weights secret, and this method has no weights; {WAYS_OUT}"
    if parameters.each == "coordinate" and not set(algorithm.weights) >= TRACKING:
        return "a weight a coordinate needs the weights R, A, C and B (gradient tracking), whose messages are vectors of d numbers"
    if any(other.name == "random-start" for other in outside):
        return "the random start must come before it: mechanisms=('random-start', 'secret-late-weights')"
    return None


register(
    Mechanism(
        name="secret-late-weights",
        source="Gao, Wang, Nedic 2023, Table II, with late weights known to their owner only",
        wrap=SecretLateWeights,
        start=start,
        parameters={"each": one_of(("scalar", "coordinate"), "scalar", "one weight an edge, or one for each coordinate")},
        needs=needs,
        needs_text="weights drawn by the paper's sampler; for each=coordinate the weights R, A, C, B",
        leaks="A scalar hides the scale of my curvature, not its direction; a weight a coordinate leaves it to averages.",
        overrides=("weights",),
        allows=("random-start",),
    )
)
