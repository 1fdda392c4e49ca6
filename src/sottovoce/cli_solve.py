"""`sottovoce solve`: texts become values, the result becomes plain facts, and a table that reads well at 80 columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import cli_work as work
from .cli_options import Setting, Solving
from .errors import ParameterError
from .simulate.result import Result

if TYPE_CHECKING:
    from rich.console import Console


def solve(solving: Solving) -> int:
    """Solve, write, show; what cannot be written is refused before anything runs."""
    result, facts = solved(solving)
    if solving.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
        return 0
    from rich.console import Console

    show(Console(highlight=False, soft_wrap=False), result, facts)
    return 0


def solved(solving: Solving) -> tuple[Result, dict[str, Any]]:
    """The result, and its facts."""
    from .solving import solve

    if solving.html is not None:
        work.check_page(solving.html)
        if not solving.audit:
            raise ParameterError("--html writes the audit, which --no-audit leaves out; choose one of them")
    if solving.save is not None:
        work.check_folder(solving.save)
    problem, graph = work.scene(Setting(problem=solving.problem, graph=solving.graph))
    curious = [{graph.labels[i] for i in work.nodes(text, graph, "--curious")} for text in solving.curious] or None
    result = solve(
        problem, graph, private=solving.private, barrier=solving.barrier, audit=solving.audit, curious=curious,
        at_most=solving.at_most, seed=solving.seed,
    )  # fmt: skip
    if solving.html is not None:
        result.audit.save(solving.html)
    if solving.save is not None:
        result.save(Path(solving.save))
    return result, facts(solving, result, len(graph.edges))


def facts(solving: Solving, result: Result, edges: int) -> dict[str, Any]:
    """A solution in plain facts."""
    return work.plain({
        "schema": work.SCHEMA, "algorithm": result.algorithm, "why": (result.why or "").splitlines(), "private": solving.private,
        "problem": solving.problem, "graph": solving.graph, "nodes": result.x.shape[1], "edges": edges, "answer": result.answer,
        "final_error": result.final.max(), "iterations": result.iterations, "messages": result.messages.sum(),
        "bytes": result.bytes.sum(), "page": solving.html, "saved": solving.save,
        "audit": None if result.audit is None else json.loads(result.audit.to_json()),
    })  # fmt: skip


def show(console: Console, result: Result, facts: dict[str, Any]) -> None:
    """What was picked and why, the answer, and who learns what."""
    from .cli_audit import show as show_audit
    from .cli_views import plain_table, vector

    table = plain_table(2)
    rows = [
        ("graph", f"{facts['graph']}: {facts['nodes']} nodes, {facts['edges']} edges"),
        ("answer", vector(facts["answer"])),
        ("final error", f"{facts['final_error']:.2g}"),
        ("sent", f"{facts['messages']:,} messages, {facts['bytes']:,} bytes, {facts['iterations']:,} iterations"),
        *((what, facts[what]) for what in ("page", "saved") if facts[what]),
    ]
    for line in facts["why"]:
        console.print(line, markup=False)
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)
    if result.audit is not None:
        show_audit(console, result.audit)

