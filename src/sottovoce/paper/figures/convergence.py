"""Figure 4: the private algorithm beside DIGing, ATC-DIGing, AB, ADD-OPT (stepsize 0.06) and Subgradient-Push (1/k).

The paper cites DIGing as the paper that Table I calls ATC-DIGing, so both are here.
"""

from __future__ import annotations

from typing import Any

from ...run import compare, run
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import ERROR, curve, legend, note, spread

OURS = f"private, K = {setting.K}"
METHODS: dict[str, Any] = {
    OURS: ("private-gradient-tracking", {"K": setting.K}),
    "DIGing": "diging",
    "ATC-DIGing": "atc-diging",
    "AB": "ab",
    "ADD-OPT": "add-opt",
    "Subgradient-Push, 1/k": ("subgradient-push", {"stepsize": 1.0, "decay": 1.0}),
}
ITERATIONS = 1000


def make(quick: bool, watch: Watch) -> Numbers:
    runs = 20 if quick else 1000
    options: dict[str, Any] = {"stepsize": setting.STEPSIZE, "iterations": ITERATIONS, "runs": runs, "seed": setting.SEED}
    watch(f"{len(METHODS)} methods, {runs} runs of {ITERATIONS} iterations")
    results = compare(METHODS, setting.problem(), setting.graph(), **options)
    results["private, K = 0"] = run("private-gradient-tracking", setting.problem(), setting.graph(), K=0, **options)
    curves = {name: setting.thinned(result, spread(result.error)) for name, result in results.items()}
    table = {row["name"]: {key: row[key] for key in ("error", "worst", "rate", "to 1e-6", "bytes")} for row in results.table()}
    return {"parameters": setting.told(K=setting.K, runs=runs, iterations=ITERATIONS), "curves": curves, "table": table}


def draw(shown: Any, canvas: Any) -> None:
    axes = canvas.add_subplot()
    for i, name in enumerate(METHODS):
        one = shown["curves"][name]
        curve(axes, i, name, one["k"], one["median"], one["low"], one["high"])
    axes.set(yscale="log", xlabel="iteration", ylabel=ERROR)
    axes.margins(x=0.02)
    note(axes, f"median of {shown['parameters']['runs']:,} runs, band 5 to 95 %")
    legend(canvas)


register(
    Figure(
        name="convergence",
        number=4,
        title="Error of the private algorithm and of five others, stepsize 0.06",
        make=make,
        draw=draw,
        height=0.9,
    )
)
