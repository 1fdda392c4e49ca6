"""Figure 2: everything that node 3 hears of node 1, in two worlds where node 1's gradient functions differ (section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...auditor.worlds import replay
from .. import meeting
from ..item import Figure, Numbers, Watch, register
from ..looks import legend, note, numbers, ticks

ROWS = (("x", r"$x_1^k$"), ("u", r"$\Lambda_1^k y_1^k$"), ("M", r"$C_{31}^k y_1^k + B_{31}^k \Delta g_1^k$"))
SHOWN, EXACT = 40, 14  # iterations drawn; iterations compared in rational numbers too


def make(quick: bool, watch: Watch) -> Numbers:
    found = meeting.worlds()
    entry = int(np.flatnonzero((found.world.sender == meeting.NODE_1) & (found.world.receiver == meeting.NODE_3))[0])
    rows = {"x": meeting.NODE_1, "u": meeting.NODE_1, "M": entry}
    heard = [_heard(replay(world), rows) for world in (found.world, found.other)]
    watch(f"{EXACT} iterations in rational numbers")
    exact = meeting.worlds(exact=True, iterations=EXACT)
    return {
        "parameters": meeting.TOLD, "k": np.arange(SHOWN), "this_world": heard[0], "other_world": heard[1],
        "difference": found.difference, "difference_in_rational_numbers": str(exact.difference), "case": found.case,
        "log_likelihood_ratio": found.log_likelihood_ratio,
    }  # fmt: skip


def _heard(played: Any, rows: dict[str, int]) -> dict[str, Any]:
    return {name: [float(getattr(played, name)[k][row, 0]) for k in range(SHOWN)] for name, row in rows.items()}


def draw(shown: Any, canvas: Any) -> None:
    rows = canvas.subplots(3, 1, sharex=True)
    for axes, (name, label) in zip(rows, ROWS, strict=True):
        here, there = (numbers(shown[world][name]) for world in ("this_world", "other_world"))
        axes.plot(shown["k"], here, "-", color="black", label=r"with $\nabla f_1$", zorder=3)
        axes.plot(shown["k"], there, "o", color="#D55E00", markerfacecolor="none", label=r"with $\nabla\tilde f_1$", zorder=4)
        axes.axvspan(-0.5, meeting.K - 0.5, color="0.9", zorder=0, linewidth=0)
        axes.set_ylabel(label)
        axes.margins(x=0.02)
    rows[-1].set_xlabel("iteration (grey: random weights)")
    ticks(rows[-1], range(0, SHOWN + 1, 10))
    rational = shown["difference_in_rational_numbers"]
    note(rows[0], f"largest relative difference {shown['difference']:.0e}; in rational numbers {rational}")
    legend(canvas)


register(
    Figure(
        name="same-view",
        number=2,
        title="What node 3 hears of node 1 under two different gradient functions of node 1 (rendezvous, K = 3)",
        make=make,
        draw=draw,
        height=1.15,
    )
)
