"""A fresh process from its start to the printed result, and what `import sottovoce` alone takes."""

from __future__ import annotations

import json

from .measure import Child, child, least_and_median
from .report import Row

FIGURE = "process"
RUN = """
import sottovoce as sv
problem = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
print(sv.run("private-gradient-tracking", problem, sv.graphs.paper_b(), stepsize={stepsize}, K=3, iterations=1000))
"""
IMPORT = "import json, sys, sottovoce; print(json.dumps([m for m in ('jax', 'matplotlib', 'scipy', 'rich') if m in sys.modules]))"
CODES = {
    "given": RUN.format(stepsize="0.06"), "auto": RUN.format(stepsize="'auto'"), "import": IMPORT, "numpy": "import numpy",
}  # fmt: skip
WHAT = {
    "given": "start to printed result, n = 5, 1,000 iterations, stepsize given", "auto": "the same, stepsize='auto'",
    "import": "import sottovoce", "numpy": "import numpy (for comparison)",
}  # fmt: skip
SECONDS = {"given": 0.3, "import": 0.2}
MEGABYTES = {"given": 60.0}


def measure(quick: bool) -> list[Row]:
    """Rows of this figure. The first round, which may still write compiled modules, does not count."""
    found: dict[str, list[Child]] = {name: [] for name in CODES}
    for turn in range(1 + (5 if quick else 15)):
        for name, code in CODES.items():
            done = child(code)
            if turn:
                found[name].append(done)
    rows = []
    for name, children in found.items():
        cpu = min(c.cpu for c in children)
        seconds = least_and_median([c.wall for c in children])
        memory = least_and_median([c.peak / 1e6 for c in children])
        rows.append(Row(FIGURE, WHAT[name], "s wall", *seconds, at_most=SECONDS.get(name), note=f"{cpu:.2f} s CPU"))
        rows.append(Row(FIGURE, "  its peak resident memory", "MB", *memory, at_most=MEGABYTES.get(name)))
    heavy = json.loads(found["import"][-1].out)
    count = float(sum(name in ("jax", "matplotlib") for name in heavy))
    also = ", ".join(heavy) or "none of jax, matplotlib, scipy, rich"
    return [*rows, Row(FIGURE, "  of JAX and matplotlib it imports", "modules", count, count, at_most=0, note=also)]
