"""What a federation agrees on: `federation.toml`, the same for all and public. It becomes the roster that every node signs.

Whatever the file says that is not understood is refused, with its place: a setting that is silently ignored is one that somebody
relies on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import GraphError, InputError, ParameterError
from ..graph import Graph
from ..problem import Problem
from ..tables import toml
from .certificates import check_name
from .plan import agreed, planned
from .reading import mapping, of, plain, read, split
from .roster import Roster
from .wiring import Wiring

FILE, HIDDEN = "federation.toml", "hidden"
MAGNITUDE = 1e100  # no number of a message is larger, unless agreed otherwise
HEAD = "# What all nodes agree on; nothing in it is secret. Every node signs it, and two that differ exchange no number.\n"
OPTIONAL = ("tolerance", "parameters", "mechanisms")
SHARED = ("run", "algorithm", "d", "stepsize", "iterations", "magnitude", "public", "graph", "nodes", *OPTIONAL)


@dataclass(frozen=True)
class Member:
    """What all know of one node."""

    name: str
    address: str  # host:port that neighbours dial, or "hidden": it dials them
    fingerprint: str
    key: str


@dataclass(frozen=True)
class Federation:
    """What federation.toml says."""

    run: str
    algorithm: str
    d: int
    stepsize: Any
    iterations: int
    members: tuple[Member, ...]
    graphs: tuple[tuple[tuple[int, int], ...], ...]  # one, or a public schedule, repeated
    public: str  # 16 hexadecimal digits: where the draws that everybody knows begin
    tolerance: float | None = None
    magnitude: float = MAGNITUDE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mechanisms: tuple[Mapping[str, Any], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @cached_property
    def graph(self) -> Graph:
        """Every edge that occurs, on the nodes' names."""
        return Graph(len(self.names), sorted({edge for edges in self.graphs for edge in edges}), labels=self.names)

    @cached_property
    def roster(self) -> Roster:
        """What is signed: everything settled, defaults too."""
        return self._roster(agreed(planned(self._roster({}), blank(self.d))))

    def _roster(self, facts: Mapping[str, Any]) -> Roster:
        said: dict[str, Any] = {
            "graphs": self.graphs, "algorithm": self.algorithm, "parameters": tuple(plain(self.parameters).items()),
            "mechanisms": tuple(
                (str(one["name"]), tuple((k, v) for k, v in plain(one).items() if k != "name")) for one in self.mechanisms
            ),
            "d": self.d, "stepsize": plain(self.stepsize), "iterations": self.iterations, "tolerance": self.tolerance,
            "payloads": (),
        }  # fmt: skip
        return Roster(
            run=self.run, labels=self.names, magnitude=self.magnitude, fingerprints=tuple(m.fingerprint for m in self.members),
            keys=tuple(m.key for m in self.members), seed=int(self.public, 16), **{**said, **facts},
        )  # fmt: skip

    def wiring(self, name: str, listen: str | None) -> Wiring:
        """Whom a node hears, whom it tells, and whom it dials: of two that can be reached, the later dials the earlier."""
        me = self.graph.index(name)
        ins, outs = self.graph.in_neighbours(me), self.graph.out_neighbours(me)
        dial = []
        for other in sorted({*ins, *outs}):
            mine, theirs = self.members[me].address, self.members[other].address
            if HIDDEN == mine == theirs:
                raise GraphError(f"{name} and {self.names[other]} are both hidden: neither can dial the other; give one an address")
            if theirs != HIDDEN and (mine == HIDDEN or other < me):
                dial.append(theirs)
        named = lambda nodes: tuple(self.names[i] for i in nodes)
        return Wiring(name, named(ins), named(outs), None if self.members[me].address == HIDDEN else listen, tuple(dial))

    def write(self, file: Path) -> None:
        """federation.toml; one that exists is not overwritten."""
        named = [[[self.names[s], self.names[r]] for s, r in edges] for edges in self.graphs]
        tree = {
            "run": self.run, "algorithm": self.algorithm, "d": self.d, "stepsize": self.stepsize, "iterations": self.iterations,
            "tolerance": self.tolerance, "magnitude": self.magnitude, "public": self.public, "parameters": self.parameters,
            "graph": {"edges": named[0]} if len(named) == 1 else {"schedule": named},
            "nodes": {m.name: {"address": m.address, "fingerprint": m.fingerprint, "key": m.key} for m in self.members},
            "mechanisms": list(self.mechanisms),
        }  # fmt: skip
        with file.open("x", encoding="utf-8") as out:
            out.write(HEAD + toml(tree))

    @classmethod
    def read(cls, file: Path) -> Federation:
        """What the file says, each part checked for what it is; whether it can be played is checked by `roster`."""
        facts = read(file, SHARED, OPTIONAL)
        members = tuple(_member(file, name, facts["nodes"][name]) for name in mapping(file, "nodes", facts["nodes"]))
        graphs = _graphs(file, facts["graph"], {member.name: i for i, member in enumerate(members)})
        mechanisms = facts.get("mechanisms", [])
        if not (isinstance(mechanisms, list) and all(isinstance(one, dict) and "name" in one for one in mechanisms)):
            raise InputError(f"{file}: each [[mechanisms]] has a name")
        return cls(
            run=of(file, facts, "run", str), algorithm=of(file, facts, "algorithm", str), d=of(file, facts, "d", int),
            stepsize=facts["stepsize"], iterations=of(file, facts, "iterations", int), members=members, graphs=graphs,
            public=_public(file, facts["public"]), tolerance=facts.get("tolerance"),
            magnitude=float(of(file, facts, "magnitude", float)), mechanisms=tuple(mechanisms),
            parameters=mapping(file, "parameters", facts.get("parameters", {})),
        )  # fmt: skip


def blank(d: int) -> Problem:
    """A cost of one node to plan with where there is none yet: what is agreed does not depend on it. Whether costs are quadratic
    is not known here; a node that plans with its own cost finds out."""
    from ..problems.meeting import Meeting

    class Unseen(Meeting):
        name, quadratic = "unseen", None

    return Problem.of(Unseen(), (np.zeros((1, d)),), d)


def _member(file: Path, name: str, facts: Any) -> Member:
    named = isinstance(facts, dict) and set(facts) == {"address", "fingerprint", "key"}
    if not (named and all(isinstance(value, str) for value in facts.values())):
        raise InputError(f"{file}: [nodes.{name}] has an address, a fingerprint and a key, each a text")
    if facts["address"] != HIDDEN:
        split(facts["address"])
    return Member(check_name(name), **facts)


def _graphs(file: Path, facts: Any, number: Mapping[str, int]) -> tuple[tuple[tuple[int, int], ...], ...]:
    if not (isinstance(facts, dict) and len(facts) == 1 and set(facts) <= {"edges", "schedule"}):
        raise InputError(f"{file}: [graph] has edges = [[sender, receiver], ...], or a schedule = [[[sender, receiver], ...], ...]")
    listed = [facts["edges"]] if "edges" in facts else facts["schedule"]
    try:
        return tuple(tuple(sorted((number[s], number[r]) for s, r in edges)) for edges in listed)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{file}: an edge is [sender, receiver], two names from [nodes]; {error} is none") from None


def _public(file: Path, value: Any) -> str:
    try:
        if 0 <= int(value, 16) < 2**64:
            return value
    except (TypeError, ValueError):
        pass
    raise ParameterError(f"{file}: public is 16 hexadecimal digits, not {value!r}")
