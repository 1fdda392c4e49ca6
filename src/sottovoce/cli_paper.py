"""How the command line shows what `reproduce` does: a line on stderr whenever something begins, and at the end what came."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Facts = Mapping[str, Any]


def progress(text: str) -> None:
    """On stderr, so that the answer alone is on stdout."""
    print(text, file=sys.stderr, flush=True)


def made(console: Console, facts: Facts) -> None:
    """Figures with their files, claims with their verdicts."""
    for figure in facts["figures"]:
        number = "" if figure["number"] is None else f"{figure['number']}. "
        console.print(f"{number}{figure['title']}", markup=False)
        console.print(f"    {', '.join(figure['files'])}", style="dim", markup=False)
    if facts["claims"]:
        table = _columns(3, wraps=1)
        for claim in facts["claims"]:
            table.add_row(claim["name"], claim["where"], claim["verdict"])
        console.print(table)
        console.print(f"What was measured, and what must change: {facts['files'][1]}", markup=False)
    if facts["quick"]:
        console.print("This was quick: fewer runs and shorter ones. Leave out --quick for the full figures.", markup=False)


def listing(console: Console, facts: Facts) -> None:
    """The figures and the claims that there are."""
    table = _columns(3, wraps=2)
    for figure in facts["figures"]:
        table.add_row("" if figure["number"] is None else str(figure["number"]), figure["name"], figure["title"])
    console.print(table)
    console.print(f"claims: {', '.join(claim['name'] for claim in facts['claims'])}", markup=False)


def _columns(count: int, wraps: int) -> Table:
    """Columns without lines, one of which may go over several."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for i in range(count):
        table.add_column(no_wrap=i != wraps)
    return table
