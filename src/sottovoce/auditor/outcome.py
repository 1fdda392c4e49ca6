"""What an audit found, as plain data: verdicts and what they rest on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from .verdict import WORDS, Verdict

SCHEMA = 1
NOT_COVERED = {
    "A15": "traffic shape: lengths, times and the number of rounds, which encryption does not hide",
    "A16": "active nodes that deviate: probing points, echoes, crafted values",
    "A18": "float residue: the last bits and exponents of what is sent",
}


@dataclass(frozen=True)
class Outcome:
    """Verdicts, what they rest on, what was tried and what was not."""

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

    def of(self, node: int, asset: str, adversary: Any = None) -> list[Verdict]:
        """The verdicts on one asset of one node."""
        return [
            v for v in self.verdicts if (v.node, v.asset) == (node, asset) and (adversary is None or v.adversary == adversary)
        ]

    def count(self) -> dict[str, int]:
        """How many verdicts there are of each word."""
        return {word: sum(v.verdict == word for v in self.verdicts) for word in WORDS}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
