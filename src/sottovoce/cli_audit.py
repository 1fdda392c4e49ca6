"""How the command line shows an audit: a matrix of nodes and assets, what was read and with which error, what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .auditor import names, words
from .auditor.report import Report
from .auditor.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

STYLES = {"READ": "bold red", "READ UP TO": "yellow", "NARROWED": "yellow", "NOT DECIDED": "", "WITNESSED": "cyan"}
NODES, ROWS = 40, 24  # lines at most of the matrix and of what was read
NAMED = 3  # adversaries in a cell


def show(console: Console, report: Report) -> None:
    """The whole audit at 80 columns."""
    labels = names.labels_of(report)
    console.print(words.headline(report), markup=False)
    if report.verdicts:
        _matrix(console, report, labels)
        _legend(console, report)
        _read(console, report, labels)
    _list(console, "What would help", report.advice)
    _list(console, "What everybody learns by design", report.public)
    _list(console, "What this rests on", report.assumptions)
    _list(console, "Not looked at", tuple(f"{key} {text}" for key, text in report.not_covered.items()))


def _matrix(console: Console, report: Report, labels: list[str]) -> None:
    cases = words.worst_cases(report.verdicts)
    nodes = sorted({node for node, _ in cases})
    assets = words.assets(report)
    table = _table("node", *(f"{asset.replace('along-the-way', 'on its way')}" for asset in assets))
    for node in nodes[:NODES]:
        table.add_row(labels[node][:14], *(_cell(cases.get((node, asset)), labels) for asset in assets))
    console.print(table)
    if len(nodes) > NODES:
        console.print(f"and {len(nodes) - NODES} nodes more; --html and --json show all\n", style="dim")


def _cell(mine: list[Verdict] | None, labels: list[str]) -> Text:
    """The letter of the worst verdict, and who has it."""
    from rich.text import Text

    if not mine:
        return Text("")
    word = mine[0].verdict
    who = "" if word in ("NOT DECIDED", "WITNESSED") else " by " + _short(mine, labels)
    return Text.assemble((words.LETTERS[word], STYLES[word]), who)


def _short(mine: list[Verdict], labels: list[str]) -> str:
    by = ["wire" if isinstance(a, str) else "+".join(labels[i] for i in a) for a in words.least(v.adversary for v in mine)]
    return ",".join(by[:NAMED]) + (",.." if len(by) > NAMED else "")


def _legend(console: Console, report: Report) -> None:
    counts = report.count()
    shown = [f"{words.LETTERS[word]} {word} ({counts[word]:,})" for word in words.WORST_FIRST if counts[word]]
    console.print("The worst verdict and who has it. " + ", ".join(shown) + ".", markup=False)
    console.print("No attack found is not protection.\n", style="dim")


def _read(console: Console, report: Report, labels: list[str]) -> None:
    """What was read, worst first, adversaries with the same attack together."""
    groups: dict[tuple[int, int, str], list[Verdict]] = {}
    for v in report.verdicts:
        if v.verdict in ("READ", "READ UP TO"):
            groups.setdefault((v.protection, v.node, words.sentence(v, labels)), []).append(v)
    if not groups:
        return
    table = _table("verdict", "who", "what", ">error", "by")
    for key in sorted(groups)[:ROWS]:
        table.add_row(*_row(groups[key], labels))
    console.print(table)
    if len(groups) > ROWS:
        console.print(f"and {len(groups) - ROWS} more; --html and --json show all\n", style="dim")


def _row(group: list[Verdict], labels: list[str]) -> tuple[Text, str, str, str, str]:
    from rich.text import Text

    v = group[0]
    errors = [g.evidence["error"] for g in group if g.evidence.get("error") is not None]
    who = names.adversary_names(words.least(g.adversary for g in group), labels, NAMED)
    ways = dict.fromkeys(str(g.evidence.get("attack", "")) for g in group)
    error = names.number(max(errors)) if errors else ""
    return Text(v.verdict, STYLES[v.verdict]), who, words.sentence(v, labels), error, " ".join(ways)


def _list(console: Console, title: str, texts: tuple[str, ...]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not texts:
        return
    console.print(title, style="bold")
    table = Table.grid(padding=(0, 1))
    for text in texts:
        table.add_row("-", Text(text))
    console.print(table)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in columns:
        side = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=side, no_wrap=name in ("verdict", ">error", "node"), vertical="top")
    return table
