"""What a figure reports: a row with its bound, the table, and bench.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CAPTION = (
    "Times are CPU time of the process unless a row says wall. A bound is judged by the minimum. "
    "A ratio stands under minimum when it is of the minima, under median when it is the median over the rounds."
)


@dataclass(frozen=True)
class Row:
    """One measured number; without a bound it is only told."""

    figure: str
    what: str
    unit: str
    minimum: float
    median: float
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"

    @property
    def met(self) -> bool | None:
        """None where nothing was asked; a number that is none meets nothing."""
        if self.at_least is not None:
            return self.minimum >= self.at_least
        return None if self.at_most is None else self.minimum <= self.at_most


def told(value: float) -> str:
    """Three digits, and no exponent below a million."""
    if value == 0 or not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def table(rows: Iterable[Row], machine: dict[str, Any]) -> None:
    """Print the rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    facts = ", ".join(f"{name} {value}" for name, value in machine.items() if value is not None).replace("[", "\\[")
    out = Table(title="sottovoce: speed and memory", caption=f"{CAPTION}\n{facts}", box=box.SIMPLE_HEAD)
    for name in ("figure", "what"):
        out.add_column(name)
    for name in ("bound", "minimum", "median"):
        out.add_column(name, justify="right", no_wrap=True)
    for name in ("unit", "met", "note"):
        out.add_column(name)
    words = {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}
    before = None
    for row in rows:
        if before not in (None, row.figure):
            out.add_section()
        name = "" if row.figure == before else row.figure
        before = row.figure
        out.add_row(name, row.what, row.bound, told(row.minimum), told(row.median), row.unit, words[row.met], row.note)
    console = Console()
    if not console.is_terminal:
        console.width = 200  # into a file or a pipe the table goes unfolded
    console.print(out)


def write(file: Path, rows: Iterable[Row], facts: dict[str, Any]) -> None:
    """Everything as JSON, whole or not at all."""
    listed = [{**asdict(row), "met": row.met} for row in rows]
    new = file.with_suffix(".json.new")
    new.write_text(json.dumps({"schema": 1, **facts, "figures": listed}, indent=1) + "\n", encoding="utf-8")
    new.replace(file)
