"""What one machine needs to be a node: `node.toml`, with the certificate, the keys and the data that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..problem import Problem
from ..problem_data import numbers
from .certificates import check_name
from .costs import cost
from .federation import FILE, Federation
from .identity import Identity
from .reading import mapping, of, read
from .store import KEEP

OWN = ("name", "federation", "identity", "listen", "store", "key", "keep", "result", "transcript", "start", "cost")
RECORDED = ("off", "on")  # whether what the node sees and draws is kept for an auditor


@dataclass(frozen=True)
class NodeFile:
    """What node.toml says, its files found."""

    name: str
    folder: Path
    federation: Path
    identity: Path
    listen: str | None
    store: Path
    key: str
    keep: str
    result: Path
    recorded: bool
    start: Any
    cost: Mapping[str, Any]

    @classmethod
    def read(cls, file: str | Path) -> NodeFile:
        """The file, or the one of that name in a folder."""
        file = Path(file)
        file = file / "node.toml" if file.is_dir() else file
        facts = read(file, OWN, tuple(name for name in OWN if name not in ("name", "cost")))
        at = lambda name, default: file.parent / str(facts.get(name, default))
        key = str(facts.get("key", "store.key"))
        return cls(
            name=check_name(of(file, facts, "name", str)), folder=file.parent, federation=at("federation", f"../{FILE}"),
            identity=at("identity", "."), listen=facts.get("listen"), store=at("store", "store"),
            key=key if key.startswith("env:") else str(file.parent / key), keep=_word(file, facts, "keep", KEEP),
            result=at("result", "result"), recorded=_word(file, facts, "transcript", RECORDED) == "on",
            start=facts.get("start"), cost=mapping(file, "cost", facts["cost"]),
        )  # fmt: skip

    def load(self) -> tuple[Federation, Identity, Problem]:
        """All that the node needs, checked against each other."""
        federation, identity = Federation.read(self.federation), Identity.load(self.identity, self.name)
        me = self.number(federation)
        member, holds = federation.members[me], f"for {self.name} than {self.identity} holds; use the one it lists"
        if identity.fingerprint != member.fingerprint:
            raise InputError(f"{self.federation} lists another certificate {holds}")
        if identity.public != member.key:
            raise InputError(f"{self.federation} lists another exchange key {holds}")
        return federation, identity, cost(self.cost, self.folder, federation.d, self.name)

    def number(self, federation: Federation) -> int:
        """Which node of the federation this is."""
        if self.name not in federation.names:
            raise InputError(f"{self.federation} has no node {self.name!r}; it has {', '.join(federation.names)}")
        return federation.names.index(self.name)

    @property
    def transcript(self) -> Path:
        """Where this node's part of the transcript goes, if it is recorded."""
        return self.folder / "transcript"

    @property
    def x0(self) -> Any:
        """x^0 where the file says it; else it is drawn."""
        return None if self.start is None else numbers("start", self.start, 1)


def _word(file: Path, facts: Mapping[str, Any], name: str, words: tuple[str, ...]) -> str:
    """One of a few words; the first unless given."""
    word = facts.get(name, words[0])
    if word not in words:
        raise InputError(f"{file}: {name} must be one of {', '.join(words)}, not {word!r}")
    return word
