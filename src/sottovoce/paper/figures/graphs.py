"""Figure 1: the two graphs of the simulations. The second one is a stand-in, as the paper's drawing is not available."""

from __future__ import annotations

from typing import Any

from ...graph import Graph
from ...plot import arrows
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import GREY
from ..meeting import CYCLE


def make(quick: bool, watch: Watch) -> Numbers:
    b = setting.graph()
    return {
        "parameters": {"seed": None, "a": "a directed cycle, node 3 hears node 1", "b": setting.GRAPH},
        "a": {"nodes": list(CYCLE.labels), "edges": [[str(CYCLE.labels[s]), str(CYCLE.labels[r])] for s, r in CYCLE.edges]},
        "b": {"nodes": [str(i + 1) for i in range(b.n)], "edges": [[str(s + 1), str(r + 1)] for s, r in b.edges]},
    }


def draw(numbers: Any, canvas: Any) -> None:
    for axes, part, note in zip(canvas.subplots(1, 2), "ab", ("rendezvous", "estimation (a stand-in)"), strict=True):
        nodes = numbers[part]["nodes"]
        place = {node: i for i, node in enumerate(nodes)}
        arrows(axes, Graph(len(nodes), [(place[s], place[r]) for s, r in numbers[part]["edges"]], labels=nodes))
        axes.set_title(f"({part}) {note}", color=GREY, fontsize=7, loc="center")


register(
    Figure(
        name="graphs",
        number=1,
        title="The graphs: (a) three nodes in a directed cycle, (b) five nodes; an arrow leads from sender to receiver",
        make=make,
        draw=draw,
        height=0.58,
    )
)
