"""Figure 6: against the secret stepsizes and update periods of Lou et al. (2018), in both readings of it.

Their paper was not at hand; what this one says of it fits the literal reading, which is biased. Both have the best of a few
stepsizes; theirs fades as 1/k.
"""

from __future__ import annotations

from typing import Any

from ...run import run
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import ERROR, curve, legend, note, spread

ITERATIONS = 2000
OURS, EXACT, LITERAL = "private, K = 3", "Lou, exact reading", "Lou, literal reading"


def make(quick: bool, watch: Watch) -> Numbers:
    runs = 20 if quick else 1000
    options: dict[str, Any] = {"iterations": ITERATIONS, "runs": runs, "seed": setting.SEED}
    asked: dict[str, tuple[str, Any]] = {
        OURS: ("private-gradient-tracking", {"K": setting.K, "stepsize": setting.STEPSIZE}),
        EXACT: ("lou", {"reading": "exact", **setting.LOU}),
        LITERAL: ("lou", {"reading": "literal", **setting.LOU}),
    }
    curves = {}
    for name, (method, own) in asked.items():
        watch(f"{name}, {runs} runs")
        result = run(method, setting.problem(), setting.graph(), **options, **own)
        curves[name] = setting.thinned(result, spread(result.error))
    return {"parameters": setting.told(K=setting.K, runs=runs, iterations=ITERATIONS, lou=setting.LOU), "curves": curves}


def draw(shown: Any, canvas: Any) -> None:
    axes = canvas.add_subplot()
    for i, (name, one) in enumerate(shown["curves"].items()):
        curve(axes, i, name, one["k"], one["median"], one["low"], one["high"])
    axes.set(yscale="log", xlabel="iteration", ylabel=ERROR)
    note(axes, f"median of {shown['parameters']['runs']:,} runs, band 5 to 95 %")
    legend(canvas)


register(
    Figure(
        name="against-lou",
        number=6,
        title="Error of the private algorithm, and of Lou et al. (2018) in two readings",
        make=make,
        draw=draw,
        height=0.85,
    )
)
