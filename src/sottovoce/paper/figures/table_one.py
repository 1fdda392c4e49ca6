"""Figure 9: the nine rows of Table I, one panel each before all the others, from one step with nine choices of weights.

Every row plays on the two-way version of the five-node graph, on which all nine may, at the stepsize advised for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.table_one import TABLE
from ...run import run
from ...stepsize import stepsize
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import numbers, spread

LETTERS = {  # as Table I prints them
    "aug-dgm": "W W W W", "diging": "W I W I", "diging-tv": "Wᵏ I Wᵏ I", "atc-diging": "W W W W", "asyn-dgm": "Wᵏ Wᵏ Wᵏ I",
    "ab": "R I C C", "push-pull": "R R C C", "push-pull-du": "R I C I", "push-pull-zhang": "R R C I",
}  # fmt: skip
ITERATIONS = 400
FLOOR = 1e-17


def make(quick: bool, watch: Watch) -> Numbers:
    runs, problem, graph = 5 if quick else 100, setting.problem(), setting.two_way()
    rows = {}
    for name, *_ in TABLE:
        watch(name)
        options = {"graph": [graph, _without(graph)]} if name == "diging-tv" else {"graph": graph}
        size = _size(name, problem, graph)
        result = run(name, problem, options["graph"], stepsize=size, iterations=ITERATIONS, runs=runs, seed=setting.SEED)
        curves = setting.thinned(result, spread(result.error), 200)
        final = {"error": float(np.median(result.final)), "rate": result.rate()}
        rows[name] = {"weights": LETTERS[name], "stepsize": float(result.stepsize.min()), **final, **curves}
    told = setting.told(graph="paper-b, every link two-way; diging-tv: without a link in every other iteration", runs=runs)
    return {"parameters": {**told, "stepsize": "advised", "iterations": ITERATIONS}, "rows": rows}


def _size(name: str, problem: Any, graph: Any) -> Any:
    """As advised; where the graph changes, as for the graph that does not, and a little less."""
    return 0.5 * stepsize("diging", problem, graph).good if name == "diging-tv" else stepsize(name, problem, graph).good


def _without(graph: Any) -> Any:
    """The graph of every other iteration: the first link is down."""
    from ...graph import Graph

    first = graph.edges[0]
    return Graph(graph.n, [e for e in graph.edges if set(e) != set(first)])


def draw(shown: Any, canvas: Any) -> None:
    grid = canvas.subplots(3, 3, sharex=True, sharey=True)
    for axes, (name, row) in zip(grid.flat, shown["rows"].items(), strict=True):
        for other in shown["rows"].values():
            axes.plot(numbers(other["k"]), _drawn(other["median"]), color="0.75", linewidth=0.6, zorder=2)
        axes.plot(numbers(row["k"]), _drawn(row["median"]), color="black", zorder=3)
        axes.set(yscale="log")
        axes.set_title(f"{name}\n{row['weights']}", fontsize=6.5, loc="center")
        axes.tick_params(labelsize=6)
        axes.set_xticks([0, ITERATIONS // 2, ITERATIONS])
    canvas.supxlabel("iteration", fontsize=8)
    canvas.supylabel("error", fontsize=8)


def _drawn(errors: Any) -> np.ndarray:
    """An error of exactly zero has no place on a log axis."""
    return np.maximum(numbers(errors), FLOOR)


register(
    Figure(
        name="table-one",
        number=9,
        title="The nine rows of Table I (weights R A C B), each at its advised stepsize; grey: the other eight",
        make=make,
        draw=draw,
        height=1.05,
    )
)
