"""A comparison of protections as one HTML page that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .auditor.markup import STYLE, Html, box, raw, tag
from .version import __version__

ASSETS = ("offset", "curvature", "along-the-way", "record", "start")
KINDS = {"READ": "read", "READ UP TO": "upto", "NARROWED": "narrowed", "NOT DECIDED": "open", "WITNESSED": "witnessed"}
COSTS = ("stack", "optimum missed by", "iterations", "rounds", "bytes", "us an iteration", "mu", "epsilon")


def page(found: Any) -> str:
    """The page of a PrivacyComparison."""
    facts = found.facts
    body = [
        tag("h1", "What each protection hides, and what it costs"),
        tag("p", f"{facts['problem']} over {facts['graph']}; sottovoce {__version__}, seed {facts['seed']}.", klass="note"),
        tag("p", "WITNESSED: in another world, with another number, the adversary would have seen the same; it was replayed. "
            "NOT DECIDED is not a promise: no attack that was tried read it. Behind masks and behind opened sums the sum ",
            "over the honest nodes is known, and what it tells is told.", klass="note"),
        tag("p", f"{facts['always'][:1].upper()}{facts['always'][1:]}.", klass="note"),
        tag("h2", "What is read"), *(_verdicts(found, who) for who in facts["adversaries"]),
        tag("h2", "What it costs"), _costs(found.rows, facts),
        *([tag("h2", "What each mu costs"), _curve(found.curve, facts)] if found.curve else []),
        *([tag("h2", "What was done otherwise, and what does not fit"), tag("ul", [tag("li", note) for note in notes])]
          if (notes := found.notes()) else []),
    ]  # fmt: skip
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "sottovoce: protections compared"), tag("style", raw(STYLE)))
    return "<!doctype html>\n" + tag("html", head, tag("body", *body), lang="en") + "\n"


def _verdicts(found: Any, who: Sequence[int]) -> Html:
    several = "nodes" if len(who) > 1 else "node"
    title = f"Of node {found.facts['victim']}, by {several} {', '.join(map(str, who))}" + (" together" if len(who) > 1 else "")
    by = lambda row, asset: [_cell(v) for v in row.verdicts if (v["adversary"], v["asset"]) == (who, asset)]
    rows = [tag("tr", tag("th", row.name), *(by(row, asset) for asset in ASSETS)) for row in found.rows]
    return tag("section", tag("h3", title), box(_table(("stack", *ASSETS), rows), title))


def _cell(verdict: dict[str, Any]) -> Html:
    error = verdict["error"]
    by = verdict["attack"] and f" {verdict['attack']}" + ("" if error is None else f", error {error:.1e}")
    mark = tag("span", verdict["verdict"], klass=f"mark {KINDS[verdict['verdict']]}")
    return tag("td", mark, tag("span", by or "", klass="note"))


def _costs(rows: Sequence[Any], facts: dict[str, Any]) -> Html:
    number = lambda value, form: tag("td", "-" if value is None else format(value, form), klass="number")
    lines = [
        tag("tr", tag("th", row.name), number(row.error, ".1e"), number(row.iterations, ","), number(row.rounds, ","),
            number(row.bytes, ","), number(row.microseconds, ",.0f"), number(row.mu, ".2g"), number(row.epsilon, ".2g"))
        for row in rows
    ]  # fmt: skip
    note = f"Iterations, rounds and bytes until the error is {facts['far']:g} of the first; - where it never is."
    return tag("section", tag("p", note, klass="note"), box(_table(COSTS, lines), "costs"))


def _curve(points: Sequence[dict[str, Any]], facts: dict[str, Any]) -> Html:
    said = lambda value, form="": "-" if value is None else format(value, form)
    lines = [
        tag("tr", tag("td", point["consensus"]), tag("td", "no masks" if point["mu"] is None else f"{point['mu']:g}"),
            tag("td", said(point["iterations"], ","), klass="number"), tag("td", said(point["rounds"], ","), klass="number"))
        for point in points
    ]  # fmt: skip
    table = box(_table(("mixings a gradient", "mu", "iterations", "rounds"), lines), "mu against iterations")
    return tag("section", tag("p", f"Until the error is {facts['near']:g} of the first.", klass="note"), table)


def _table(names: Sequence[str], rows: Sequence[Html]) -> Html:
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    return tag("table", head, tag("tbody", rows))
