"""The report as one HTML page, for a privacy officer first: nothing from elsewhere, for paper and grey too, mathematics folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Graph
from . import names, words
from .drawing import CLASS, drawing
from .heatmap import heatmap
from .markup import STYLE, Html, box, raw, tag
from .outcome import Outcome
from .verdict import Verdict

OPEN = 12  # nodes up to which every node's verdicts stand unfolded
GIVEN = 10  # adversaries named in a row of the table
ON_TOP = ("algorithm", "parameters", "mechanisms", "problem", "graph", "stepsize", "iterations", "seed")
THEOREMS = {
    "2": "Whoever has two neighbours or more, in or out, can shift its gradient by a constant unseen by any single other node.",
    "3": "Whoever has a single neighbour, in and out, cannot: that neighbour adds up all that crossed the link.",
    "4": "Whoever has a neighbour outside the coalition can shift its gradient by a constant unseen by the coalition.",
    "5": "Whoever has every neighbour in the coalition cannot: together they add up all that crossed its links.",
    "remark 7": "Whoever listens on all links in the clear adds up what crossed the links of any node; links have to be encrypted.",
}

OF_THEOREMS = """The theorems speak of a constant shift of one gradient, in the paper's model, for all shifts but a set of
measure zero, and of nothing else: not of the curvature, nor of how likely the shift is."""
OF_WITNESSES = """A witness is a second world: the gradient of one node is shifted by a constant (behind masks, half of
its cost is taken away), a neighbour's is shifted back, and the draws that only they know are chosen anew, so that the adversary
sees the same. The difference is the largest one between the two views after an independent replay. The log-likelihood ratio
compares the draws that the second world needs with those that were made: near 0, both are as likely; far below 0, somebody who
knows the laws would hardly believe in it."""


def page(report: Outcome) -> str:
    """The whole page."""
    labels, title = names.labels_of(report), f"Who would learn what: {report.facts.get('algorithm', 'an audit')}"
    body = tag(
        "main", _head(report, title), _summary(report, labels), _legend(), _list("What this rests on", report.assumptions),
        _list("What everybody learns by design", report.public), _pictures(report, labels), _verdicts(report, labels),
        _mathematics(report), _list("What would help", report.advice), _not_covered(report), _again(report),
    )  # fmt: skip
    head = tag(
        "head",
        raw('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        raw(f"<style>{STYLE}</style>"),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def _head(report: Outcome, title: str) -> Html:
    rehearsed = report.facts.get("kind") == "simulation"
    return tag(
        "header",
        tag("h1", title),
        tag("p", "Simulation seeds: a rehearsal, not the run itself", klass="stamp") if rehearsed else None,
    )


def _summary(report: Outcome, labels: Sequence[str]) -> Html:
    rows = [tag("li", _mark(f.verdict), tag("span", _found(f, labels))) for f in words.findings(report)]
    return _section("In short", tag("p", words.headline(report)), tag("ul", rows, klass="found"))


def _found(f: words.Finding, labels: Sequence[str]) -> list[Any]:
    about = tag("span", f" ({words.ABOUT.get(f.asset, 'an asset')})", klass="note")
    return [tag("b", f.asset), f" {words.who_whom(f, labels)}", about]


def _legend() -> Html:
    rows = [(tag("dt", _mark(word, letter=True)), tag("dd", words.MEANING[word])) for word in words.WORST_FIRST]
    no = "No word of this page says that nothing leaks: an attack shows what is read at least, a witness what is open at most."
    return _section("The words", tag("dl", rows, klass="words"), tag("p", no, klass="note"))


def _pictures(report: Outcome, labels: Sequence[str]) -> Html:
    graph = report.facts.get("graph")
    worst = {i: min(mine, key=lambda v: v.protection).verdict for i in range(len(labels)) if (mine := _of(report, i))}
    drawn = None
    if isinstance(graph, dict) and "edges" in graph:
        about = "An arrow leads from sender to receiver. Each node bears the worst verdict on anything it holds, whoever looks."
        picture = drawing(Graph(int(graph["n"]), [(int(s), int(r)) for s, r in graph["edges"]]), worst, labels)
        drawn = tag("figure", picture, tag("figcaption", about, klass="note"), style="margin: 0")
    wide = len(labels) > OPEN or len({v.adversary for v in report.verdicts}) > OPEN
    return _section("Who is exposed to whom", tag("div", drawn, heatmap(report, labels), klass="sides wide" if wide else "sides"))


def _verdicts(report: Outcome, labels: Sequence[str]) -> Html:
    nodes = sorted({v.node for v in report.verdicts})
    tables = [_of_node(report, i, labels, len(nodes) <= OPEN) for i in nodes]
    note = "Adversaries with the same verdict for the same reason share a row. The error is relative, the largest of the row."
    return _section("Every verdict, node by node", tag("p", note, klass="note"), tables)


def _of_node(report: Outcome, node: int, labels: Sequence[str], opened: bool) -> Html:
    groups: dict[Any, list[Verdict]] = {}
    for v in _of(report, node):
        key = (v.protection, words.rank(v.asset), v.asset, words.attack(v), words.theorem(v), words.sentence(v, labels), _kind(v))
        groups.setdefault(key, []).append(v)
    heads = [tag("th", text, scope="col") for text in ("asset", "verdict", "who", "in words", "error", "attack", "theorem")]
    rows = [_row(groups[key], labels) for key in sorted(groups, key=lambda k: (k[0], k[1], str(k)))]
    name = names.node_name(node, labels)
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), klass="verdicts", aria_label=f"Verdicts on {name}")
    worst = min((v for v in _of(report, node)), key=lambda v: v.protection).verdict
    summary = tag("summary", name[:1].upper() + name[1:], " ", _mark(worst))
    return tag("details", summary, box(table, f"verdicts on {name}"), open="open" if opened else None)


def _row(group: list[Verdict], labels: Sequence[str]) -> Html:
    v = group[0]
    errors = [g.evidence["error"] for g in group if g.evidence.get("error") is not None]
    who = names.adversary_names([g.adversary for g in group], labels, GIVEN)
    return tag(
        "tr",
        tag("th", v.asset, scope="row"),
        tag("td", _mark(v.verdict)),
        tag("td", who),
        tag("td", words.sentence(v, labels), _because(group, labels)),
        tag("td", names.number(max(errors)) if errors else "", klass="number"),
        tag("td", words.attack(v)),
        tag("td", words.theorem(v), klass="number"),
    )


def _because(group: list[Verdict], labels: Sequence[str]) -> Html | None:
    """The evidence, where it adds to the sentence; the numbers of a witness folded."""
    texts = [(names.adversary_name(g.adversary, labels), words.evidence(g, labels)) for g in group]
    if group[0].verdict == "WITNESSED":
        lines = [tag("li", f"{who}: {text}") for who, text in texts[:GIVEN]]
        rest = tag("li", f"{len(group) - GIVEN} others, in the JSON form") if len(group) > GIVEN else None
        return tag("details", tag("summary", "the other world"), tag("ul", lines, rest, klass="note"))
    said = list(dict.fromkeys(text for _, text in texts if text))
    return tag("div", names.listed(said, GIVEN), klass="note") if said else None


def _kind(v: Verdict) -> Any:
    """What keeps two rows apart beside asset, verdict and attack."""
    return v.evidence.get("text", "") if v.verdict == "NOT DECIDED" else ""


def _mathematics(report: Outcome) -> Html:
    used = {str(v.evidence.get("attack")) for v in report.verdicts}
    attacks = [_attack(a, a.get("id") in used) for a in report.attacks]
    named = sorted({str(v.evidence["theorem"]) for v in report.verdicts if v.evidence.get("theorem")})
    theorems = [tag("li", tag("b", f"Theorem {t}" if t.isdigit() else t.capitalize()), f": {THEOREMS.get(t, '')}") for t in named]
    return _section(
        "The mathematics",
        _folded(f"The attacks that were tried ({len(attacks)})", attacks) if attacks else None,
        _folded("The theorems' conditions", tag("ul", theorems), tag("p", OF_THEOREMS)) if theorems else None,
        _folded("A witness and its numbers", tag("p", OF_WITNESSES)),
    )


def _folded(title: str, *inside: Any) -> Html:
    return tag("details", tag("summary", title), *inside)


def _attack(a: dict[str, str], used: bool) -> Html:
    state = "stands behind a verdict above" if used else "stands behind no verdict above"
    rows = [tag("li", tag("b", key), f": {a[key]}") for key in ("uses", "idea", "metric") if a.get(key)]
    return tag("div", tag("h3", f"{a.get('id', '')} {a.get('name', '')}"), tag("ul", rows), tag("p", state, klass="note"))


def _not_covered(report: Outcome) -> Html:
    rows = [tag("li", tag("b", key), f": {text}") for key, text in report.not_covered.items()]
    return _section("What was not looked at", tag("ul", rows))


def _again(report: Outcome) -> Html:
    facts = report.facts
    keys = [*(k for k in ON_TOP if k in facts), *sorted(k for k in facts if k not in (*ON_TOP, "command"))]
    rows = [tag("tr", tag("th", key, scope="row"), tag("td", _fact(key, facts[key]))) for key in keys]
    command = tag("pre", facts["command"]) if facts.get("command") else tag("p", "Audit again with these facts:")
    note = "The JSON form of this report holds every verdict singly; this page was made from it."
    table = tag("table", tag("tbody", rows), klass="facts")
    return _section("How to do it again", command, box(table, "facts"), tag("p", note, klass="note"))


def _fact(key: str, value: Any) -> str:
    if key == "graph" and isinstance(value, dict):
        rest = "".join(f", {k} {names.told(v)}" for k, v in value.items() if k not in ("n", "edges", "labels"))
        return f"{value.get('n')} nodes, {len(value.get('edges', ()))} links{rest}"
    if isinstance(value, dict):
        return ", ".join(f"{k} = {names.told(v)}" for k, v in value.items())
    return names.listed([names.told(v) for v in value], 20) if isinstance(value, list | tuple) else names.told(value)


def _list(title: str, texts: Sequence[str]) -> Html | None:
    return _section(title, tag("ul", [tag("li", text) for text in texts])) if texts else None


def _section(title: str, *inside: Any) -> Html:
    return tag("section", tag("h2", title), *inside)


def _mark(word: str, letter: bool = False) -> Html:
    return tag("span", f"{words.LETTERS[word]}  {word}" if letter else word, klass=f"mark {CLASS[word]}")


def _of(report: Outcome, node: int) -> list[Verdict]:
    return [v for v in report.verdicts if v.node == node]
