"""The map of a report: a row a node, a column an adversary, the worst verdict as a letter on its colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import names, words
from .drawing import CLASS
from .markup import Html, box, tag
from .outcome import Outcome
from .verdict import Verdict

COLUMNS = 30  # adversaries, the worst ones


def heatmap(report: Outcome, labels: Sequence[str]) -> Html:
    """Node against adversary, the worst over what the node holds."""
    cells: dict[tuple[int, Any], Verdict] = {}
    for v in report.verdicts:
        kept = cells.get((v.node, v.adversary))
        cells[v.node, v.adversary] = v if kept is None or v.protection < kept.protection else kept
    adversaries = list(dict.fromkeys(v.adversary for v in report.verdicts))
    shown = _worst_adversaries(cells, adversaries)
    tall = any(len(_short(a, labels)) > 3 for a in shown)
    heads = [_column(a, labels, tall) for a in shown]
    rows = [
        tag("tr", tag("th", names.node_name(i, labels), scope="row"), [_cell(cells.get((i, a)), i, a, labels) for a in shown])
        for i in sorted({v.node for v in report.verdicts})
    ]
    top = tag("thead", tag("tr", tag("th", "looked at ↓ by →", scope="col"), heads))
    left_out = len(adversaries) - len(shown)
    note = "Rows: whose secrets. Columns: who looks. The letter is the worst verdict on anything the node holds" + (
        f"; of {len(adversaries)} adversaries, the {len(shown)} that learn most." if left_out else "."
    )
    table = tag("table", top, tag("tbody", rows), klass="heat", aria_label="The worst verdict for each node and adversary")
    return tag("div", box(table, "map"), tag("p", note, klass="note"))


def _worst_adversaries(cells: dict[tuple[int, Any], Verdict], adversaries: list[Any]) -> list[Any]:
    if len(adversaries) <= COLUMNS:
        return adversaries
    counts: dict[Any, list[int]] = {a: [0] * len(words.WORST_FIRST) for a in adversaries}
    for (_, adversary), v in cells.items():
        counts[adversary][v.protection] -= 1
    kept = set(sorted(adversaries, key=lambda a: counts[a])[:COLUMNS])
    return [a for a in adversaries if a in kept]


def _short(adversary: Any, labels: Sequence[str]) -> str:
    return "wire" if isinstance(adversary, str) else "+".join(str(labels[i]) if i < len(labels) else str(i) for i in adversary)


def _column(adversary: Any, labels: Sequence[str], tall: bool) -> Html:
    name = _short(adversary, labels)
    inner = tag("div", name, klass="tall") if tall else name
    return tag("th", inner, scope="col", title=names.adversary_name(adversary, labels))


def _cell(v: Verdict | None, node: int, adversary: Any, labels: Sequence[str]) -> Html:
    if v is None:
        inside = isinstance(adversary, tuple) and node in adversary
        return tag("td", "–", klass="self", title="it is one of those who look" if inside else "not looked at")
    who = names.adversary_name(adversary, labels)
    return tag("td", words.LETTERS[v.verdict], klass=CLASS[v.verdict], title=f"{v.verdict}: {who} {words.sentence(v, labels)}")
