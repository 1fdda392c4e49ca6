"""`python -m bench [FIGURE...] [--quick] [--strict]`: measure, print the table, write bench.json.

A figure is a file of this folder, named below; its `measure(quick)` gives rows. A missed bound leaves the exit
code at 0 unless --strict: a shared machine has bad minutes. A figure that could not be measured does not.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from .measure import machine
from .report import Row, table, write

FIGURES = (
    "repetitions", "process", "ring", "sparse", "memory", "recording", "compiling", "auditing", "encryption", "sums", "masks",
    "nodes",
)
ON_REQUEST = ("accelerator",)  # needs a machine that has one


def measured(names: Sequence[str], quick: bool) -> tuple[list[Row], list[str]]:
    """The rows of the figures, and those that failed."""
    rows: list[Row] = []
    failed: list[str] = []
    for name in names:
        began = time.perf_counter()
        try:
            rows += importlib.import_module(f"{__package__}.{name}").measure(quick)
        except Exception:  # the other figures are still worth having
            traceback.print_exc()
            failed.append(name)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return rows, failed


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure sottovoce's speed and memory.")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"all, or some of: {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bound is missed")
    asked = parser.parse_args()
    known = FIGURES + ON_REQUEST
    unknown = sorted(set(asked.figures) - set(known))
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(known)}")
    facts = machine()
    rows, failed = measured(asked.figures or FIGURES, asked.quick)
    table(rows, facts)
    write(Path("bench.json"), rows, {"quick": asked.quick, "machine": facts, "failed": failed})
    if failed:
        print(f"could not be measured: {', '.join(failed)}", file=sys.stderr)
    missed = any(row.met is False for row in rows)
    return 1 if failed or (asked.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
