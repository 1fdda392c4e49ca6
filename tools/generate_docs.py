"""Write the generated parts of docs/ anew: the table of algorithms and mechanisms, the page of claims. `make docs` runs it.

The claims are checked by `sottovoce reproduce claims --out docs`, which takes minutes and writes docs/claims.json; the page is made
from that file.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import sottovoce as sv
from sottovoce.paper import page as claims_page

PAGE = Path(__file__).parents[1] / "docs" / "algorithms.md"
CLAIMS = PAGE.with_name("claims.md")
CERTAINTY = "A: from the source or verified here; B: well known, re-derived; C: from memory, a detail may differ"


def main() -> None:
    """Write the pages."""
    PAGE.write_text(page())
    CLAIMS.write_text(claims())


def claims() -> str:
    """The page of claims, from docs/claims.json alone."""
    return claims_page.page(json.loads(CLAIMS.with_suffix(".json").read_text()))


def page() -> str:
    """The whole page, from the registry alone."""
    return "\n".join([*_head(), *_algorithms(), *_mechanisms(), *_details()]) + "\n"


def _head() -> list[str]:
    return [
        "# All algorithms and mechanisms",
        "",
        "Written by `make docs` from the registry; `sottovoce algorithms` prints the same for what is installed.",
        f"Certainty: {CERTAINTY}.",
        "",
    ]


def _algorithms() -> list[str]:
    rows = [
        f"| [`{a.name}`](#{a.name}) | {a.graphs} | {a.rounds} | {a.source} | {a.certainty} | {a.leaks} |"
        for a in sv.registry.algorithms().values()
    ]
    return ["| algorithm | graphs | messages an edge | source | certainty | what it leaks |", "| --- " * 6 + "|", *rows, ""]


def _mechanisms() -> list[str]:
    parameters = lambda m: ", ".join(f"`{n}` = {p.default}" for n, p in m.parameters.items())
    rows = [
        f"| `{m.name}` | {m.needs_text} | {parameters(m)} | {m.source} | {m.leaks} |"
        for m in sv.registry.mechanisms().values()
    ]
    return ["| mechanism | needs | parameters | source | what it is worth |", "| --- " * 5 + "|", *rows, ""]


def _details() -> list[str]:
    lines = []
    for a in sv.registry.algorithms().values():
        text = inspect.getdoc(inspect.getmodule(a.step)) or ""
        lines += [f"## {a.name}", "", "```", text, "```", ""]
        weights = ", ".join(f"`{n}` = {_weight(w)}" for n, w in a.weights.items())
        parameters = [f"`{n}` = {p.default}: {p.help}" for n, p in a.parameters.items()]
        lines += [f"Weights: {weights or 'none'}.", "", *(f"* {p}" for p in parameters), *([""] if parameters else [])]
    return lines


def _weight(choice: object) -> str:
    return choice if isinstance(choice, str) else f"{getattr(choice, 'default', choice)}"


if __name__ == "__main__":
    main()
