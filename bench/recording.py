"""What it costs to record every message, draw and state: against the same eager run without."""

from __future__ import annotations

import sottovoce as sv

from .measure import interleaved, least_and_median, speedup
from .report import Row

FIGURE = "recording"
ITERATIONS = 1000


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    problem, graph = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0), sv.graphs.paper_b()

    def play(record: bool) -> sv.Result:
        return sv.run(
            "private-gradient-tracking", problem, graph, stepsize=0.06, K=3, iterations=ITERATIONS, backend="eager", record=record
        )

    transcript = play(True).transcript
    if transcript is None or len(transcript.sent) < 2 * ITERATIONS:
        raise RuntimeError("the transcript lacks messages")
    times = interleaved({"plain": lambda: play(False), "recorded": lambda: play(True)}, 20 if quick else 100, warmups=2)
    each = lambda name: least_and_median([1e6 * t / ITERATIONS for t in times[name].cpu])
    what = f"recording all, of the plain eager run (n = 5, d = 2, K = 3, {ITERATIONS:,} iterations)"
    return [
        Row(FIGURE, what, "times", *speedup(times["recorded"].cpu, times["plain"].cpu), 1.2),
        Row(FIGURE, "plain", "us an iteration", *each("plain")),
        Row(FIGURE, "recorded", "us an iteration", *each("recorded")),
    ]
