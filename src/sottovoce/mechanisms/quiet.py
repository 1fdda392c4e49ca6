"""One vector where there were two: A is the same as R, so that x - u goes out as one, and neither x nor the step u is told.

    x_i+ = sum_j R_ij (x_j - u_j),    u_j = Lambda_j y_j,    in the place of    sum_j (R_ij x_j - A_ij u_j)

It is Algorithm 1 of Gao, Wang, Nedic (Automatica 2023) with A = R, during a random start too. The optimum is exact, and what is
pulled has half the numbers.

Worth, as the auditor finds it: one out-neighbour no longer reads x^0 (A1), nor curvature and records off x and y (A3, A4), and
without a random start not the offset either. But late weights that are public make the network a linear system, and a fit still
reads curvature (A9), also at a node that never hears the victim; who hears all that a node hears computes its next x and has
both again. Beside secret-late-weights no attack that is known here reads or narrows curvature: A19 needs x and y apart.
"""

from typing import Any

from ..node import Layer
from ..registry import Mechanism, register

SAME = {"A": "R"}


class Quiet(Layer):
    def weighed(self, rules: Any, own: bool = False) -> Any:
        return self.inner.weighed(rules and {**rules, **SAME}, own)


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    if not {"R", "A"} <= set(algorithm.weights):
        return "it makes the weight A the same as R, and this method has no such weights"
    if any(other.name in ("random-start", "secret-late-weights") for other in outside):
        return "what draws weights must come before it: mechanisms=('random-start', 'quiet')"
    return None


register(
    Mechanism(
        name="quiet",
        source="Gao, Wang, Nedic 2023, Algorithm 1 with A = R",
        wrap=Quiet,
        needs=needs,
        needs_text="a method with the weights R and A (gradient tracking and Table I)",
        leaks="x and the step are told as one vector; a fit over many iterations still reads curvature.",
        weights=SAME,
        overrides=("weighed",),
    )
)
