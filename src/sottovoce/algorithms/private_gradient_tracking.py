"""The paper's algorithm: Gao, Wang, Nedic (Automatica 2023), Table II.

For k < K every weight and stepsize is any random number, another for each edge and coordinate, known to its owner only;
columns of C and B are completed to one, so sum y = sum grad f(x) survives and with it the exact optimum. From K on, the
stepsize is lambda and the weights are drawn by the sampler below Table II. It is gradient tracking with the mechanism
`random-start`.
"""

from ..laws import LAWS
from ..registry import Algorithm, Parameter, at_least, columns, mechanism, one_of, positive, register, rows
from .gradient_tracking import start, step

register(
    Algorithm(
        name="private-gradient-tracking",
        start=start,
        step=step,
        source="Gao, Wang, Nedic 2023, Table II",
        weights={name: choice("paper") for name, choice in (("R", rows), ("A", rows), ("C", columns), ("B", columns))},
        parameters={
            "K": at_least(0, 1, "iterations with random weights and stepsizes"),
            "law": Parameter("normal", f"their law: {', '.join(LAWS)}"),
            "scale": positive(1.0, "the scale of that law"),
            "eta": Parameter(None, "lower bound of the late weights; half of 1/(degree + 1) unless given"),
            "late": one_of(("fresh", "fixed"), "fresh", "late weights: fresh in every iteration, or fixed"),
        },
        exchanges=2,
        mechanisms=lambda p: (mechanism("random-start", K=p.K, law=p.law, scale=p.scale),),
        leaks="A constant shift of my gradient stays open; its increments, hence my curvature, are computed by an out-neighbour.",
    )
)
