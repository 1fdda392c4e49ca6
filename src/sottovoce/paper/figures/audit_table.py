"""Attack by attack and mechanism by mechanism: what is read, as a table. Beyond the paper.

Each cell is one attack on one recorded scene, scored against the truth. Beside it stands what was expected of it, from the theory
and from a first study with other code; where the two differ the reason is given, and a difference without a reason is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ... import controls
from ...auditor.attack import Estimate, attacks, error_of
from ...auditor.attacks.magnitude_game import game
from ...auditor.verdict import WORDS, word_for
from ...errors import ParameterError
from ...view import WIRE
from ..item import Figure, Numbers, Watch, register

LETTERS = {"READ": "E", "READ UP TO": "S", "NARROWED": "~"}
COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "AB": ("ab", {}),
    "Push-Pull, B = I": ("push-pull-du", {}),
    "paper, K = 1": (controls.PAPER, {"K": 1}),
    "paper, K = 3": (controls.PAPER, {"K": 3}),
    "paper, K = 10": (controls.PAPER, {"K": 10}),
    "+ secret scalar weights": (controls.PAPER, {"K": 1, "mechanisms": ["secret-late-weights"]}),
    "+ a weight a coordinate": (controls.PAPER, {"K": 1, "mechanisms": ["secret-late-weights:each=coordinate"]}),
    "AB + noise 1e-3": ("ab", {"mechanisms": ["message-noise:scale=1e-3"]}),
}


@dataclass(frozen=True)
class Row:
    """One attack on one scene; `expected` has a letter a column, G for a sum of several nodes."""

    title: str
    attack: str  # its name, or several
    expected: str
    asset: str = ""  # the one that counts; any where nothing is said
    scene: Callable[..., Any] = controls.five
    who: Any = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()  # mechanisms around each column's
    deployed: bool = False  # whether the transcript passes for that of a deployment


ROWS = (
    Row("A1, A2 gradient at the start", "start-gradient first-message", "EENNNNN~", "offset"),
    Row("A3 curvature", "tail-secants", "ENEEENNN"),
    Row("A5 direction of the curvature, d = 3", "subspace-secant", "ENSSSSNN", options={"d": 3}),
    Row("A19 curvature from one run", "mean-weight-regression", "-----~~-"),
    Row("A19 curvature from 100 runs", "mean-weight-regression", "-----~~-", options={"runs": 100, "iterations": 200}),
    Row("A9 curvature, not a neighbour", "system-identification", "EEEEENNN", who=(3,)),
    Row("A6 gradient of an enclosed node", "mass-balance", "EEEEEEE~", scene=controls.leaf),
    Row("A6 two nodes behind a third", "mass-balance", "EEGGGGG~", scene=controls.pocket),
    Row("A7 links tapped", "wire-tap", "EEEEEEEE", who=WIRE),
    Row("A7 sealed links tapped", "wire-tap", "NNNNNNNN", who=WIRE, more=("encrypted-links",)),
    Row("A10 magnitude of the start gradient", "magnitude-game", "--~~~~~-"),
    Row("A14 a small seed", "seed-search", "--EEEEE-", options={"seed": 54_321}, deployed=True),
)
AT_HOME = "where A = I the tracker stays at home: an out-neighbour hears x and C (y + dg) only; A9 reads the curvature even so"
EACH = "expected is what the linearised posterior determines; mass balance alone gives the sum, A1 or A2 reads each start gradient"
REASONS: dict[tuple[str, str], str] = {
    ("A3 curvature", "AB"): AT_HOME,
    ("A5 direction of the curvature, d = 3", "AB"): AT_HOME,
    ("A6 two nodes behind a third", "AB"): EACH,
    ("A6 two nodes behind a third", "Push-Pull, B = I"): EACH,
    ("A6 two nodes behind a third", "AB + noise 1e-3"): "a sum that is only near earns no word: READ UP TO is exact",
    ("A7 links tapped", "AB + noise 1e-3"): "the noise that a node sends is never taken out of its own share, so the balance "
    "is off by all of it so far; the expected letter overlooked that",
}


def make(quick: bool, watch: Watch) -> Numbers:
    """Every cell: a letter, the error, what was expected, and why it differs where it does."""
    rows = []
    for row in ROWS:
        watch(row.title)
        rows.append({"title": row.title, "cells": list(_cells(row, quick))})
    _explained(rows)
    rows.append({"title": "error of the optimum", "cells": [_optimum(column) for column in COLUMNS]})
    return {"parameters": {"seed": 0, "stepsize": 0.02, "problem": "estimation:n=5,scale=0.5,seed=1"}, "columns": list(COLUMNS),
            "rows": rows, "reasons": [{"row": r, "column": c, "why": why} for (r, c), why in REASONS.items()]}  # fmt: skip


def _explained(rows: list[dict[str, Any]]) -> None:
    """A difference without a reason, and a reason without a difference, are errors."""
    cells = ((row["title"], column, cell) for row in rows for cell, column in zip(row["cells"], COLUMNS, strict=True))
    differing = {(row, column) for row, column, cell in cells if cell["differs"]}
    for row, column in differing ^ set(REASONS):
        told = "differs and nobody says why" if (row, column) in differing else "is explained but does not differ"
        raise ParameterError(f"audit-table: the cell {row!r}, {column!r} {told}; see REASONS in {__name__}")


def _cells(row: Row, quick: bool) -> Iterator[dict[str, Any]]:
    for expected, column in zip(row.expected, COLUMNS, strict=True):
        found = {"letter": "-", "error": None} if expected == "-" else _cell(row, column, quick)
        yield {**found, "expected": expected, "differs": found["letter"] != expected}


def _cell(row: Row, column: str, quick: bool) -> dict[str, Any]:
    algorithm, options = COLUMNS[column]
    given = {**options, **row.options, "mechanisms": (*options.get("mechanisms", ()), *row.more)}
    if quick and given.get("runs", 1) > 1:
        given["runs"] = 30
    view, truth = row.scene(row.who, algorithm, **given) if row.scene is controls.five else row.scene(algorithm, **given)
    if row.deployed:
        view = replace(view, header={**view.header, "kind": "deployment"})
    if row.attack == "magnitude-game":
        return _magnitude(view)
    estimates = [e for name in row.attack.split() for e in attacks()[name].run(view, 0)]
    return _best([e for e in estimates if 0 in e.nodes and row.asset in ("", e.asset)], truth)


def _best(estimates: list[Estimate], truth: Any) -> dict[str, Any]:
    """The strongest word that they earn, and its error."""
    scored = [(e, error_of(e, truth)) for e in estimates]
    named = [(WORDS.index(word), error, e) for e, error in scored if (word := word_for(e, error))]
    if not named:
        return {"letter": "N", "error": min((error for _, error in scored), default=None)}
    place, error, e = min(named, key=lambda one: one[:2])
    letter = LETTERS[WORDS[place]]
    return {"letter": "G" if letter == "S" and len(e.nodes) > 1 else letter, "error": error}


def _magnitude(view: Any) -> dict[str, Any]:
    """Bits over a flat prior of six decades, and how well ten times the number is told from the number."""
    found = game(view, 0)
    if found is None:
        return {"letter": "N", "error": None}
    return {"letter": "~" if found.bits.mean() >= 1 else "N", "error": None, "bits": float(found.bits.mean()), "auc": found.auc}


def _optimum(column: str) -> dict[str, Any]:
    from ...run import run

    algorithm, options = COLUMNS[column]
    problem = controls.estimation(n=5, d=2, s=3, scale=0.5, seed=1)
    error = run(algorithm, problem, controls.paper_b(), stepsize=0.06, iterations=4000, **options).final.max()
    return {"letter": "", "error": float(error), "expected": "", "differs": False}


def text(numbers: Any) -> str:
    """The table in Markdown, the reasons below it."""
    notes = {(reason["row"], reason["column"]): i for i, reason in enumerate(numbers["reasons"], 1)}
    head = ["| attack | " + " | ".join(numbers["columns"]) + " |", "| --- " * (len(numbers["columns"]) + 1) + "|"]
    lines = [
        f"| {row['title']} | " + " | ".join(_shown(c, notes.get((row["title"], name))) for c, name in zip(
            row["cells"], numbers["columns"], strict=True)) + " |" for row in numbers["rows"]
    ]  # fmt: skip
    why = [f"{i}. Expected {_expected(numbers, *key)}: {numbers['reasons'][i - 1]['why']}." for key, i in notes.items()]
    return "\n".join(["# What is read of whom, attack by attack", "", *LEGEND, "", *head, *lines, "", *why, ""])


LEGEND = (
    "E: READ. S: READ UP TO a scale or sign. G: READ UP TO the sum over a group. ~: NARROWED. N: not read by this attack,",
    "which is no protection: another may. A dash: the attack says nothing of such a mechanism. The number is the relative",
    "error. A victim has one curious out-neighbour and an honest neighbour unless the row says otherwise. A bracket: the",
    "letter was expected to be another; the reason stands below.",
)


def _shown(cell: Any, note: int | None) -> str:
    number = f"{cell['bits']:.1f} bits" if "bits" in cell else "" if cell["error"] is None else f"{cell['error']:.0e}"
    return " ".join(part for part in (cell["letter"], number, f"[{note}]" if note else "") if part)


def _expected(numbers: Any, row: str, column: str) -> str:
    (found,) = (r for r in numbers["rows"] if r["title"] == row)
    return found["cells"][numbers["columns"].index(column)]["expected"]


register(Figure("audit-table", None, "What is read of whom, attack by attack", make, text=text))
