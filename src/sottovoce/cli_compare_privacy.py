"""`sottovoce compare-privacy`: texts become values, and the comparison two tables that read well at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import cli_work as work
from .cli_options import Comparing, Setting
from .errors import ParameterError
from .privacy_comparison import PrivacyComparison, compare_privacy

if TYPE_CHECKING:
    from rich.console import Console


def run(comparing: Comparing) -> int:
    """Compare, write, show; what cannot be written is refused before anything runs."""
    if comparing.html is not None:
        work.check_page(comparing.html)
    found = compared(comparing)
    if comparing.html is not None:
        found.save(comparing.html)
    if comparing.json:
        print(found.to_json(), end="")
        return 0
    from rich.console import Console

    show(Console(highlight=False, soft_wrap=False), found, comparing)
    return 0


def compared(comparing: Comparing) -> PrivacyComparison:
    problem, graph = work.scene(Setting(problem=comparing.problem, graph=comparing.graph))
    (victim,) = work.nodes(comparing.victim, graph, "--victim") if "," not in comparing.victim else (None,)
    if victim is None:
        raise ParameterError(f"--victim is one node; got {comparing.victim!r}")
    return compare_privacy(
        problem, graph, bound=bound_of(comparing.bound), iterations=comparing.iterations, seed=comparing.seed, victim=victim,
        encrypted=comparing.encrypted,
    )  # fmt: skip


def bound_of(text: str | None) -> tuple[float, ...] | None:
    """One number, or two with a comma between them."""
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"--bound is the largest norm of a record's features, and the largest |target| where there is one: 4,3; got {text!r}"
        ) from None


def show(console: Console, found: PrivacyComparison, comparing: Comparing) -> None:
    """What is read, what it costs, what each mu costs, what does not fit."""
    from .cli_views import ruled_table as columns

    console.print(f"{comparing.problem} on {comparing.graph}", markup=False)
    worst = "The worst that one neighbour reads, or everybody together but one honest neighbour:"
    console.print(f"Of node {comparing.victim}. {worst}", markup=False)
    shown = found.shown()
    everything = range(len(shown) + 1)  # words may go over two lines where the terminal is narrow, and the first stays readable
    read = columns("", *(asset.replace("-", " ") for asset in shown), wraps=everything, first=22)
    for row in found.rows:
        read.add_row(row.name, *(_word(row.worst(asset)) for asset in shown))
    console.print(read)
    if any(row.worst(asset)["verdict"] == "WITNESSED" for row in found.rows for asset in shown):
        console.print("Witnessed: in another world, with another number, both would have seen the same; - : neither read nor that.")
    always = str(found.facts["always"])
    console.print(f"{always[:1].upper()}{always[1:]}.", markup=False)
    console.print(f"Iterations, rounds and bytes until the error is {found.facts['far']:g} of the first:", markup=False)
    costs = columns("", ">error", ">iterations", ">rounds", ">bytes", ">us", ">mu")
    for row in found.rows:
        numbers = (_number(row.iterations), _number(row.rounds), _number(row.bytes))
        mu = "-" if row.mu is None else f"{row.mu:.2g}"
        costs.add_row(row.name, f"{row.error:.0e}", *numbers, f"{row.microseconds:,.0f}", mu)
    console.print(costs)
    if found.curve:
        console.print(f"What each mu costs, until the error is {found.facts['near']:g} of the first:", markup=False)
        curve = columns(">mixings", ">mu", ">iterations", ">rounds")
        for point in found.curve:
            mu = "no masks" if point["mu"] is None else f"{point['mu']:g}"
            curve.add_row(str(point["consensus"]), mu, _number(point["iterations"]), _number(point["rounds"]))
        console.print(curve)
    for note in found.notes():
        console.print(note, markup=False)
    if comparing.html:
        console.print(f"page: {comparing.html}", markup=False)


def _word(verdict: dict[str, Any]) -> str:
    error = "" if verdict["error"] is None else f" ({verdict['error']:.0e})"
    return verdict["verdict"].lower() + error if verdict["verdict"] != "NOT DECIDED" else "-"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
