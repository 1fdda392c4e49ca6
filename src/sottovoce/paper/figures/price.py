"""Figure 10: accuracy against epsilon against bytes for every method here that adds noise and states an epsilon.

Epsilons of different methods protect different things (docs/noise.md): compare along a curve, not between curves. The private
algorithm has none; its line is there to show what is paid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...registry import mechanism
from ...run import run
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import curve, legend, note, numbers

LEVELS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
NOISES = (10.0, 1.0, 0.1, 0.01, 1e-3)
OURS = "private, K = 3"
NAMES = {"huang": "Huang", "tailoring": "tailoring", "tailoring-tracking": "tailoring, tracking", "nozari": "Nozari"}


def make(quick: bool, watch: Watch) -> Numbers:
    runs, problem = 10 if quick else 200, setting.problem()
    bound = setting.longest_gradient(problem)
    shared: dict[str, Any] = {"runs": runs, "seed": setting.SEED}
    once = {"iterations": 300, **setting.HUANG, "bound": bound, **shared}
    long = {"iterations": 2000, "stepsize": 1.0, "bound": bound, **shared}
    asked: dict[str, list[tuple[str, Any, dict[str, Any]]]] = {
        "huang": [("huang", setting.two_way(), {"epsilon": e, **once}) for e in LEVELS],
        "tailoring": [("tailoring", setting.two_way(), {"noise": nu, **long}) for nu in NOISES],
        "tailoring-tracking": [("tailoring-tracking", setting.graph(), {"noise": nu, **long}) for nu in NOISES],
        "nozari": [("push-pull", setting.graph(), {"mechanisms": _bent(e), **_plain(shared)}) for e in LEVELS],
    }
    found = {}
    for name, rows in asked.items():
        watch(f"{name}, {len(rows)} levels, {runs} runs")
        found[name] = _columns([_point(run(method, problem, graph, **options)) for method, graph, options in rows])
    ours = run("private-gradient-tracking", problem, setting.graph(), K=setting.K, **_plain(shared))
    line = {"error": float(np.median(ours.final)), "bytes": int(ours.bytes.sum())}
    told = setting.told(runs=runs, huang=once, tailoring=long, nozari={"order": 3, "within": "box:-5..5", "around": "push-pull"})
    return {"parameters": told, "methods": found, "ours": line}


def _plain(shared: dict[str, Any]) -> dict[str, Any]:
    return {"stepsize": setting.STEPSIZE, "iterations": 1500, **shared}


def _bent(epsilon: float) -> Any:
    return mechanism("nozari", epsilon=epsilon, within="box:-5..5", order=3)


def _point(result: Any) -> dict[str, float]:
    low, middle, high = np.quantile(result.final, (0.05, 0.5, 0.95))
    numbers = {"epsilon": result.spent["epsilon"], "bytes": int(result.bytes.sum())}
    return {**numbers, "error": float(middle), "low": float(low), "high": float(high)}


def _columns(rows: list[dict[str, float]]) -> dict[str, Any]:
    """From the smallest epsilon to the largest."""
    rows = sorted(rows, key=lambda row: row["epsilon"])
    return {name: [row[name] for row in rows] for name in rows[0]}


def draw(shown: Any, canvas: Any) -> None:
    axes = canvas.add_subplot()
    for i, (name, one) in enumerate(shown["methods"].items(), 1):
        label = f"{NAMES[name]}, {one['bytes'][0] / 1000:.0f} kB"
        curve(axes, i, label, one["epsilon"], one["error"], one["low"], one["high"], markevery=1)
    ours = shown["ours"]
    ends = [min(numbers(one["epsilon"]).min() for one in shown["methods"].values()), 1e9]
    curve(axes, 0, f"{OURS} (no ε), {ours['bytes'] / 1000:.0f} kB", ends, [ours["error"]] * 2)
    axes.set(xscale="log", yscale="log", xlabel="ε spent", ylabel="error at the end")
    note(axes, f"median of {shown['parameters']['runs']} runs, band 5 to 95 %; bytes of a whole run")
    legend(canvas)


register(
    Figure(
        name="price",
        number=10,
        title="Error at the end against the epsilon spent, and the bytes sent, for every method that adds noise",
        make=make,
        draw=draw,
        height=0.95,
    )
)
