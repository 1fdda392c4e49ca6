"""claims.json as a page: every claim of the paper, what was measured, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .item import VERDICTS

HEAD = """# The paper, claim by claim

Gao, Wang, Nedić, "Dynamics based Privacy Preservation in Decentralized Optimization" (Automatica 2023): what it claims, what was
measured here, and what came of it. `sottovoce reproduce claims` checks every claim anew and writes this page; the figures are
`sottovoce reproduce`. {how}

A claim *holds*, *holds with a change* (what must change stands there), *does not hold*, or *cannot be checked*. Sections, theorems
and remarks are the paper's. Nodes are counted from 0, but for nodes 1 to 3 of section 5.1.
"""


def page(told: Mapping[str, Any]) -> str:
    """The whole page, from claims.json alone."""
    how = "These are the numbers of a quick run (`--quick`): fewer repetitions." if told["quick"] else "A full run."
    rows = [f"| [{c['name']}](#{c['name']}) | {c['where']} | {c['verdict']} |" for c in told["claims"]]
    counts = ", ".join(f"{sum(c['verdict'] == v for c in told['claims'])} {v}" for v in VERDICTS)
    table = ["| claim | where | verdict |", "| --- | --- | --- |", *rows]
    return "\n".join([HEAD.format(how=f"{how} Version {told['version']}."), *table, "", f"Of {len(rows)}: {counts}.", *_each(told)])


def _each(told: Mapping[str, Any]) -> list[str]:
    lines = []
    for claim in told["claims"]:
        why = f" {claim['why']}" if claim["why"] else ""
        lines += ["", f"## {claim['name']}", "", f"> {claim['claim']} ({claim['where']})", ""]
        lines += [f"**{claim['verdict'].capitalize()}.**{why}", "", f"Measured: {claim['measured']}"]
    return [*lines, ""]
