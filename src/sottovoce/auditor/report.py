"""The report of an audit: verdicts and what they rest on. Its JSON is the source; table and page are made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from .verdict import WORDS, Verdict

SCHEMA = 1
NOT_COVERED = {
    "A15": "traffic shape: lengths, times and the number of rounds, which encryption does not hide",
    "A16": "active nodes that deviate: probing points, echoes, crafted values",
    "A18": "float residue: the last bits and exponents of what is sent",
}


@dataclass(frozen=True)
class Report:
    """What an audit found."""

    verdicts: tuple[Verdict, ...]
    assumptions: tuple[str, ...]
    public: tuple[str, ...]
    facts: dict[str, Any]  # algorithm, mechanisms, graph, problem, seed, versions, command
    advice: tuple[str, ...] = ()
    attacks: tuple[dict[str, str], ...] = ()  # what was tried, with its idea
    not_covered: dict[str, str] = field(default_factory=lambda: dict(NOT_COVERED))

    def to_json(self) -> str:
        """Versioned, sorted, the same for the same audit."""
        tree = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(tree, indent=1, sort_keys=True, default=_plain) + "\n"

    def save(self, file: str | Path) -> Path:
        """Write report.json, or report.html: one file, nothing from elsewhere, to be read and printed."""
        file = Path(file)
        if not file.absolute().parent.is_dir():
            raise ParameterError(f"there is no folder {file.parent} to write {file.name} into")
        if file.suffix == ".json":
            text = self.to_json()
        elif file.suffix == ".html":
            from .page import page

            text = page(self)
        else:
            raise ParameterError(f"a report is saved as .json or .html, not as {file.name!r}")
        new = file.with_name(file.name + ".new")
        new.write_text(text, encoding="utf-8")
        new.replace(file)
        return file

    def of(self, node: int, asset: str, adversary: Any = None) -> list[Verdict]:
        """The verdicts on one asset of one node."""
        return [
            v for v in self.verdicts if (v.node, v.asset) == (node, asset) and (adversary is None or v.adversary == adversary)
        ]

    def count(self) -> dict[str, int]:
        """How many verdicts there are of each word."""
        return {word: sum(v.verdict == word for v in self.verdicts) for word in WORDS}

    def table(self) -> list[dict[str, Any]]:
        """A row a verdict, the least protected first."""
        rows = [
            {
                "node": v.node, "asset": v.asset, "adversary": name_of(v.adversary), "verdict": v.verdict,
                "attack": v.evidence.get("attack", ""), "error": v.evidence.get("error"), "says": v.evidence.get("text", ""),
            }
            for v in self.verdicts
        ]  # fmt: skip
        return sorted(rows, key=lambda r: (WORDS.index(r["verdict"]), r["node"], r["asset"], r["adversary"]))


def name_of(adversary: tuple[int, ...] | str) -> str:
    """An adversary in words."""
    if isinstance(adversary, str):
        return "wire-tapper"
    return f"node {adversary[0]}" if len(adversary) == 1 else "nodes " + ", ".join(map(str, adversary))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
