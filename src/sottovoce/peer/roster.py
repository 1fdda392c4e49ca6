"""What all nodes of a run agree on: plain facts, no secret among them, no array, nothing that needs interpreting.

Every node holds the whole roster and signs it; its hash stands in every message, so that nodes which agree on less than all of
it never exchange a number. Two rosters are compared field by field, and the first that differs is named.

Facts are numbers, words, None and tuples of them. The canonical bytes are JSON with sorted names: the same facts have the
same bytes on every machine, and floats come back to the last bit.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from dataclasses import dataclass, fields
from typing import Any

from ..errors import ParameterError

PROTOCOL = 1  # raised when frames, questions or the meaning of a field change

Edges = tuple[tuple[int, int], ...]
Options = tuple[tuple[str, Any], ...]
Exchange = tuple[tuple[str, int], ...]  # the parts of one message: kind of number and how many; ("float64", 10) a vector of ten
KINDS = ("float64", "uint64", "uint8")


@dataclass(frozen=True)
class Roster:
    """The facts of one run."""

    run: str  # names the run; another run of the same parties has another name
    labels: tuple[str, ...]  # what the nodes are called, node 0 first
    graphs: tuple[Edges, ...]  # the edges (sender, receiver) of the graph, or of a public sequence of them, repeated
    algorithm: str
    parameters: Options  # of the algorithm, its weights among them, every one settled
    mechanisms: tuple[tuple[str, Options], ...]  # those around the algorithm, the leftmost nearest the step; settled
    d: int
    stepsize: float | tuple[float, ...]  # one for all, or one a node
    iterations: int
    tolerance: float | None  # None: so many iterations, whatever happens
    payloads: tuple[tuple[int, tuple[Exchange, ...]], ...]  # from which iteration on (-1: the set-up) messages look how
    magnitude: float  # no number of a message may be larger
    fingerprints: tuple[str, ...]  # of each node's certificate
    keys: tuple[str, ...]  # of each node its X25519 public key, in hexadecimal digits
    seed: int  # of the draws that everybody knows: public, of 64 bits
    protocol: int = PROTOCOL

    def __post_init__(self) -> None:
        for name, many in (("fingerprints", self.fingerprints), ("keys", self.keys)):
            if len(many) != self.n or len(set(many)) != self.n:
                raise ParameterError(f"the roster needs {self.n} {name}, one a node and no two the same; it has {len(set(many))}")
        if not (0 < self.magnitude < math.inf):
            raise ParameterError(f"the roster's magnitude must be above 0 and finite, not {self.magnitude!r}")
        if not 0 <= self.seed < 2**64:
            raise ParameterError("the roster's public seed must be a whole number from 0 to 2^64 - 1")

    @property
    def n(self) -> int:
        return len(self.labels)

    @functools.cached_property
    def edges(self) -> Edges:
        """Every edge that occurs, in the order of `Graph.edges`."""
        return tuple(sorted({edge for edges in self.graphs for edge in edges}, key=lambda edge: edge[::-1]))

    @functools.cached_property
    def canonical(self) -> bytes:
        """The same facts, the same bytes: what is signed and hashed, and written into files."""
        facts = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode()

    @functools.cached_property
    def digest(self) -> bytes:
        """The hash that stands in every message, 32 bytes."""
        return hashlib.sha256(b"sottovoce roster\0" + self.canonical).digest()

    @classmethod
    def of(cls, canonical: bytes) -> Roster:
        """A roster from its canonical bytes; a field that is missing or not known is named."""
        try:
            facts = json.loads(canonical)
        except ValueError as error:
            raise ParameterError(f"a roster is written as JSON, which this is not: {error}") from None
        known = [f.name for f in fields(cls)]
        if not isinstance(facts, dict) or set(facts) != set(known):
            odd = sorted(set(facts) ^ set(known)) if isinstance(facts, dict) else [type(facts).__name__]
            raise ParameterError(f"this roster has other fields than version {PROTOCOL} of the protocol: {', '.join(odd)}")
        return cls(**{name: _tuples(facts[name]) for name in known})

    def difference(self, other: Roster) -> str | None:
        """The first field that differs, with what stands here and there; None if all facts are the same."""
        for name in (f.name for f in fields(self)):
            mine, theirs = getattr(self, name), getattr(other, name)
            if repr(mine) != repr(theirs):
                return _named(name, mine, theirs)
        return None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _named(name: str, mine: Any, theirs: Any) -> str:
    """Where in a field two values part: into options by their names, into lists by their places."""
    if not (isinstance(mine, tuple) and isinstance(theirs, tuple)):
        return f"{name}: {mine!r} here, {theirs!r} there"
    if _is_options(mine) and _is_options(theirs):
        ours, others = dict(mine), dict(theirs)
        for option in {**ours, **others}:
            here, there = ours.get(option, "nothing"), others.get(option, "nothing")
            if repr(here) != repr(there):
                return _named(f"{name}.{option}", here, there)
    if len(mine) == len(theirs):
        at = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if repr(a) != repr(b))
        return _named(f"{name}[{at}]", mine[at], theirs[at])
    return f"{name}: {len(mine)} here, {len(theirs)} there{_only(mine, theirs, 'here') or _only(theirs, mine, 'there')}"


def _only(some: tuple[Any, ...], others: tuple[Any, ...], where: str) -> str:
    return next((f"; {one!r} only {where}" for one in some if one not in others), "")


def _is_options(value: tuple[Any, ...]) -> bool:
    return bool(value) and all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in value)
