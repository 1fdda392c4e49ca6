"""Figure 3: the two gradient functions of node 1 behind figure 2, each with the point and value where the run began."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import meeting
from ..item import Figure, Numbers, Watch, register
from ..looks import legend, numbers


def make(quick: bool, watch: Watch) -> Numbers:
    found = meeting.worlds(iterations=meeting.K + 1)
    x = np.linspace(-6.0, 14.0, 81)
    gradient = lambda world, at: float(world.gradient(np.full((3, 1), at))[meeting.NODE_1, 0])
    pair = {"this_world": found.world, "other_world": found.other}
    start = float(found.world.x0[meeting.NODE_1, 0])
    return {
        "parameters": meeting.TOLD, "x": x, "start": start,
        **{name: [gradient(world, at) for at in x] for name, world in pair.items()},
        "at_the_start": {name: gradient(world, start) for name, world in pair.items()},
        "positions": {name: -gradient(world, 0.0) for name, world in pair.items()},
    }  # fmt: skip


def draw(shown: Any, canvas: Any) -> None:
    axes = canvas.add_subplot()
    look = {"this_world": ("-", "black", r"$\nabla f_1(x) = x - p_1$"), "other_world": ("--", "#D55E00", r"$\nabla\tilde f_1(x)$")}
    for name, (dashes, colour, label) in look.items():
        axes.plot(numbers(shown["x"]), numbers(shown[name]), dashes, color=colour, label=label)
        axes.plot(shown["start"], shown["at_the_start"][name], "o", color=colour, markerfacecolor="white")
    axes.annotate(r"$x_1^0$", (shown["start"], axes.get_ylim()[0]), ha="center", va="bottom", fontsize=7, xytext=(8, 2),
                  textcoords="offset points")  # fmt: skip
    axes.axvline(shown["start"], color="0.6", linewidth=0.6, zorder=1)
    axes.set(xlabel=r"$x$", ylabel="gradient of node 1")
    axes.set_title(f"zero at {shown['positions']['this_world']:g} and at {shown['positions']['other_world']:g}",
                   color="0.35", fontsize=7)  # fmt: skip
    legend(canvas)


register(
    Figure(
        name="two-gradients",
        number=3,
        title="The two gradient functions of node 1 that give node 3 the same view",
        make=make,
        draw=draw,
        height=0.72,
    )
)
