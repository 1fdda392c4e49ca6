"""The report of an audit: a table, JSON (the source of the others), and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ParameterError
from .names import adversary_name
from .outcome import Outcome
from .page import page
from .verdict import WORDS


class Report(Outcome):
    """What an audit found, to be read and kept."""

    def table(self) -> list[dict[str, Any]]:
        """A row a verdict, the least protected first."""
        rows = [
            {
                "node": v.node, "asset": v.asset, "adversary": adversary_name(v.adversary), "verdict": v.verdict,
                "attack": v.evidence.get("attack", ""), "error": v.evidence.get("error"), "says": v.evidence.get("text", ""),
            }
            for v in self.verdicts
        ]  # fmt: skip
        return sorted(rows, key=lambda r: (WORDS.index(r["verdict"]), r["node"], r["asset"], r["adversary"]))

    def save(self, file: str | Path) -> Path:
        """Write report.json, or report.html: one file, nothing from elsewhere, to be read and printed."""
        file, written = Path(file), {".json": self.to_json, ".html": lambda: page(self)}
        if file.suffix not in written:
            raise ParameterError(f"a report is saved as .json or .html, not as {file.name!r}")
        if not file.absolute().parent.is_dir():
            raise ParameterError(f"there is no folder {file.parent} to write {file.name} into")
        new = file.with_name(file.name + ".new")
        new.write_text(written[file.suffix](), encoding="utf-8")
        new.replace(file)
        return file

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.count().items() if count)
        return f"<Report on {self.facts.get('algorithm', 'a method')}: {counts or 'no verdicts'}>"
