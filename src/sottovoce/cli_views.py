"""How the command line shows plain facts: tables that read well at 80 and at 120 columns, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Facts = Mapping[str, Any]
SHOWN = 6  # numbers of an answer
NARROW = 100  # columns of a terminal, below which a table leaves something out
GRAPHS = {"directed": "digraph", "two-way": "two-way", "sequence": "changing", "helpers": "servers"}


def show(facts: Facts, view: Callable[[Console, Facts], None], as_json: bool) -> None:
    """Print the facts through a view, or as one JSON object."""
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
        return
    from rich.console import Console

    view(Console(highlight=False, soft_wrap=False), facts)


def run(console: Console, facts: Facts) -> None:
    """One run."""
    error, advice = facts["final_error"], facts["advice"]
    one = facts["runs"] == 1
    table = plain_table(2)
    rows = [
        ("algorithm", facts["algorithm"] + _options(facts["parameters"])),
        ("weights", ", ".join(f"{k} {v}" for k, v in facts["weights"].items()) or "none"),
        *(("mechanism", text) for text in facts["mechanisms"]),
        ("problem", facts["problem"]),
        ("graph", f"{facts['graph']}: {facts['nodes']} nodes, {facts['edges']} edges"),
        ("stepsize", _step(facts["stepsize"]) + (f", advised: {_because(advice)}" if advice else ", as given")),
        ("iterations", f"{facts['iterations']:,}"),
        ("runs", f"{facts['runs']:,}, seed {facts['seed']}, {facts['backend']}"),
        ("answer" if one else "first answer", f"{vector(facts['answer'])}; the nodes are within {_number(facts['apart'])} of it"),
        ("final error", _number(error["median"]) + ("" if one else f" (median), {_number(error['worst'])} (worst)")),
        ("rate", _rate(facts["rate"])),
        *([("warning", facts["warning"])] if facts["warning"] else []),
        ("sent", f"{facts['messages']:,} messages, {facts['bytes']:,} bytes a run"),
        ("invariant", _kept(facts["invariant"])),
        *([("spent", _spent(facts["spent"]))] if facts["spent"] else []),
        *((what, facts[what]) for what in ("plot", "saved") if facts[what]),
    ]
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)
    console.print(f"What it leaks, from a node's view: {facts['leaks']}", markup=False)
    for text, leaks in facts["around_it"].items():
        console.print(f"With {text}: {leaks}", markup=False)


def compare(console: Console, facts: Facts) -> None:
    """Several runs, a line each."""
    wide = console.width >= NARROW or max(len(row["name"]) for row in facts["methods"]) <= 20
    played = f"{facts['iterations']:,} iterations, {facts['runs']:,} run{'s' if facts['runs'] > 1 else ''}"
    console.print(f"{facts['problem']} on {facts['graph']}, {played}", markup=False)
    both = [">worst", ">to\n1e-6"] if wide else []
    table = ruled_table("algorithm", ">stepsize", ">median\nerror", *both, ">to\n1e-10", ">rate", ">bytes")
    for row in facts["methods"]:
        table.add_row(*_compared(row, wide))
    console.print(table)
    for row in facts["methods"]:
        if row["failed"]:
            console.print(f"{row['name']}: {row['failed']}", markup=False)
    for what in ("plot", "saved"):
        if facts[what]:
            console.print(f"{what}: {facts[what]}", markup=False)


def stepsize(console: Console, facts: Facts) -> None:
    """What the adviser says."""
    console.print(f"{facts['algorithm']} on {facts['graph']}: {facts['says']}", markup=False)


def algorithms(console: Console, facts: Facts) -> None:
    """A line an algorithm; wide terminals also show its bytes and parameters."""
    wide = console.width >= NARROW
    names = ["algorithm", "graph", ">sends", *([">bytes", "parameters"] if wide else []), "sure", "source"]
    table = ruled_table(*names, wraps=(4, 6) if wide else (4,))
    for row in facts["algorithms"]:
        more = [str(row["bytes_per_edge"]), ", ".join(row["parameters"])] if wide else []
        table.add_row(
            row["name"], GRAPHS[row["graphs"]], str(row["messages_per_edge"]), *more, f" {row['certainty']}", row["source"]
        )
    console.print(table)
    console.print(
        "graph: changing digraphs, one digraph, two-way links only, or links to servers alone. sends: messages over one edge in "
        "an iteration"
        f"{', and their bytes for d = 1' if wide else ''}. sure: A from the source or verified, B well known and re-derived, "
        "C from memory. --json tells more, also what each leaks.",
        style="dim",
    )


def mechanisms(console: Console, facts: Facts) -> None:
    """What there is to put around an algorithm."""
    for row in facts["mechanisms"]:
        _entry(console, row["name"], f"{row['leaks']} Needs {row['needs']}. Source: {row['source']}.", row["parameters"])


def graphs(console: Console, facts: Facts) -> None:
    """Ready graphs with their parameters."""
    for row in facts["graphs"]:
        _entry(console, row["name"], row["help"], row["parameters"])
    console.print("For example: --graph ring:n=100,hops=1+2,two_way=true, --graph cycle:5, or --graph links.csv", style="dim")


def problems(console: Console, facts: Facts) -> None:
    """Ready problems with their parameters."""
    for row in facts["problems"]:
        _entry(console, row["name"], row["help"], row["parameters"])
    console.print("For example: --problem estimation:d=3,scale=0.5, or --problem logistic:csv=FILE,target=COLUMN", style="dim")


def demo(console: Console, facts: Facts) -> None:
    """The table, the claims, what stays readable."""
    compare(console, {**facts, "plot": None, "saved": None})
    console.print()
    for claim in facts["claims"]:
        mark = "[green]yes[/]" if claim["holds"] else "[red]NO [/]"
        table = plain_table(2)
        table.add_row(mark, f"{claim['claim']}: [bold]{claim['measured']}[/]")
        console.print(table)
    console.print(f"\nWhat stays readable: {facts['readable']}", markup=False)
    console.print(f"\nFigure: {facts['figure']}" if facts["figure"] else f"\nNo figure: {facts['no_figure']}", markup=False)


def _compared(row: Facts, wide: bool) -> Sequence[str]:
    reached = [f"{row[key]:,}" if row[key] is not None else "-" for key in ("to 1e-6", "to 1e-10")]
    rate = "-" if row["rate"] is None else f"{row['rate']:.4f}"
    both = [_number(row["worst"]), reached[0]] if wide else []
    return row["name"], f"{row['stepsize']:.3g}", _number(row["error"]), *both, reached[1], rate, f"{row['bytes']:,}"


def _entry(console: Console, name: str, text: str, parameters: Facts) -> None:
    from rich.text import Text

    console.print(Text.assemble((name, "bold"), f"  {text}"))
    table = plain_table(3)
    for key, about in parameters.items():
        default = about["default"]
        shown = "" if default is None else "+".join(map(str, default)) if isinstance(default, list | tuple) else str(default)
        table.add_row(f"    {key}", shown.lower() if isinstance(default, bool) else shown, about["help"])
    if parameters:
        console.print(table)


def ruled_table(*columns: str, wraps: Sequence[int] = (0,), first: int | None = None) -> Table:
    """A quiet table; > aligns a column to the right, only those in `wraps` take more than one line; `first`: its least width."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for i, name in enumerate(columns):
        side = "right" if name.startswith(">") else "left"
        width = first if i == 0 else None
        table.add_column(
            name.removeprefix(">"), justify=side, no_wrap=i not in wraps, overflow="fold", vertical="top", min_width=width,
        )  # fmt: skip
    return table


def plain_table(columns: int) -> Table:
    """Columns without lines; only the last one wraps."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for i in range(columns):
        table.add_column(no_wrap=i < columns - 1)
    return table


def vector(values: Sequence[float | None]) -> str:
    """The first numbers of it."""
    shown = ", ".join("not finite" if v is None else f"{v:.6g}" for v in values[:SHOWN])
    return shown + (f", ... ({len(values)})" if len(values) > SHOWN else "")


def _kept(roundings: float) -> str:
    return f"sums kept to {_number(roundings)} roundings" if roundings else "nothing to keep, or kept exactly"


def _spent(spent: Facts) -> str:
    from .simulate.result import told

    return told({what: float("inf") if value is None else value for what, value in spent.items()})


def _because(advice: Facts) -> str:
    largest = advice["largest"]
    return advice["how"] + (f"; stable up to {largest:.3g}" if largest else "")


def _options(parameters: Facts) -> str:
    shown = [f"{k}={v}" for k, v in parameters.items() if v is not None]
    return f" ({', '.join(shown)})" if shown else ""


def _step(size: Any) -> str:
    return ", ".join(f"{s:.4g}" for s in size) if isinstance(size, list) else f"{size:.4g}"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2g}"


def _rate(value: float | None) -> str:
    return "no decay to measure" if value is None else f"{value:.4f} an iteration"
