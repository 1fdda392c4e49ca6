"""What a coalition of nodes, or a wire-tapper, saw of a run: the paper's information set I_j (I_A), and no more.

A View holds the messages on the coalition's edges, its own states, draws and costs, every draw that is known to all or to one of
its edges, and what is public: graph, algorithm, parameters, laws, stepsize. The wire-tapper's holds what crossed every edge as it
was on the wire. Numbers that are not seen are NaN. A View can be saved and loaded: an attack gets nothing else. The Truth is
what a scorer holds against an attack's estimate; no attack is ever given it. Of a deployed run there are the parts that some nodes
kept: then there are views of those nodes and no truth.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError, ParameterError
from .graph import Graph
from .layout import co_senders, layout
from .tables import nested, numbered, read_arrays, write_arrays, write_toml
from .transcript import Draw, Transcript

Array = np.ndarray
WIRE = "wire"
VERSION = 1


@dataclass(frozen=True)
class View:
    """Everything that an adversary has; frozen."""

    header: Mapping[str, Any]
    coalition: tuple[int, ...]  # empty for the wire-tapper
    sent: Mapping[tuple[int, int], Array]  # (edge, numbers, run), NaN where not seen
    wire: Mapping[tuple[int, int], Array]  # (edge, bytes), where links are sealed; lengths and times are all there is
    draws: Mapping[tuple[str, int], Draw]  # NaN where not known
    states: Mapping[int, Mapping[str, Array]]  # (node, coordinate, run), NaN for everybody else
    costs: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)  # my own: {"H", "b"} where quadratic, records

    @cached_property
    def graph(self) -> Graph:
        """Who can send to whom is public."""
        return Graph(self.header["graph"]["n"], [tuple(e) for e in self.header["graph"]["edges"]])

    @property
    def wiretap(self) -> bool:
        return not self.coalition

    @property
    def iterations(self) -> int:
        """How many iterations were seen."""
        keys = [*self.sent, *self.wire]
        return max((k for k, _ in keys), default=-1) + 1

    @property
    def settled(self) -> int:
        """K: the first iteration after the random start."""
        return int(self.header["settled"])

    @property
    def stepsize(self) -> Array:
        """(n,), public from K on."""
        steps = np.asarray(self.header["stepsize"], dtype=float)
        return np.broadcast_to(steps, (self.graph.n,)) if len(steps) == 1 else steps

    def edge(self, sender: int, receiver: int) -> int:
        """The number of an edge."""
        return self.graph.edges.index((sender, receiver))

    def entry(self, receiver: int, sender: int) -> int:
        """Where the weight of `receiver` on what `sender` sends lies among the entries."""
        entries = layout(self.graph)
        return int(np.flatnonzero((entries.target == receiver) & (entries.source == sender))[0])

    def save(self, folder: str | Path) -> Path:
        """Write view.toml and view.npz."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {f"sent/{k}/{e}": m for (k, e), m in self.sent.items()}
        arrays |= {f"wire/{k}/{e}": m for (k, e), m in self.wire.items()}
        arrays |= {f"draws/{name}/{k}": d.value for (name, k), d in self.draws.items()}
        arrays |= {f"states/{name}/{k}": v for k, leaves in self.states.items() for name, v in leaves.items()}
        arrays |= {f"costs/{name}/{i}": v for i, parts in self.costs.items() for name, v in parts.items()}
        kinds = {f"{name}/{k}": [d.owner, d.known, d.law] for (name, k), d in self.draws.items()}
        about = {"version": VERSION, "coalition": list(self.coalition), "header": dict(self.header), "draws": kinds}
        write_toml(folder / "view.toml", about)
        write_arrays(folder / "view.npz", arrays.items())
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> View:
        """Read what `save` wrote."""
        folder = Path(folder)
        if not ((folder / "view.toml").exists() and (folder / "view.npz").exists()):
            raise InputError(f"expected a folder with view.toml and view.npz, as View.save writes it; {folder} has not both")
        about = tomllib.loads((folder / "view.toml").read_text())
        parts = defaultdict(dict, read_arrays(folder / "view.npz"))
        draws = {(a, int(b)): Draw._make([*about["draws"][f"{a}/{b}"], value]) for (a, b), value in parts["draws"].items()}
        return cls(
            about["header"], tuple(about["coalition"]), numbered(parts["sent"]), numbered(parts["wire"]), draws,
            nested(parts["states"]), nested(parts["costs"]),
        )  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """What really was: for the scorer alone."""

    problem: Any
    states: Mapping[int, Mapping[str, Array]]
    draws: Mapping[tuple[str, int], Draw]


def truth_of(transcript: Transcript) -> Truth | None:
    """The truth of a simulated run; a deployed transcript has none."""
    return None if transcript.costs is None else Truth(transcript.costs, transcript.states, transcript.draws)


def view_of(transcript: Transcript, who: Iterable[int] | str) -> View:
    """What `who` saw: a set of node numbers, or "wire"."""
    header = {k: v for k, v in transcript.header.items() if k != "seed"}
    n = int(header["graph"]["n"])
    if isinstance(who, str):
        if who != WIRE:
            raise ParameterError(f"a view is that of a set of nodes, or 'wire'; not {who!r}")
        _check_kept(transcript, None)
        sent = {} if len(transcript.wire) else dict(transcript.sent)
        known = {key: d for key, d in transcript.draws.items() if d.known == "all"}
        return View(header, (), sent, dict(transcript.wire), known, {})
    coalition = tuple(sorted({int(i) for i in who}))
    if not coalition or coalition[0] < 0 or coalition[-1] >= n:
        raise ParameterError(f"a coalition is one or more of the nodes 0 to {n - 1}, not {who!r}")
    _check_kept(transcript, coalition)
    member = np.isin(np.arange(n), coalition)
    seen = np.array([member[s] or member[r] for s, r in transcript.edges])
    sent = {key: _only(m, seen) for key, m in transcript.sent.items()}
    draws = {key: d._replace(value=v) for key, d in transcript.draws.items() if (v := _known(transcript, d, member)) is not None}
    mine = np.array([member[s] for s, _ in transcript.edges])
    held = lambda v: _only(v, member if len(v) == n else mine)  # a node's state; what it holds for each of its out-edges
    states = {k: {name: held(v) for name, v in leaves.items()} for k, leaves in transcript.states.items()}
    costs = _costs(transcript.costs, coalition) or {i: transcript.own[i] for i in coalition if i in transcript.own}
    return View(header, coalition, sent, {}, draws, states, costs)


def _check_kept(transcript: Transcript, coalition: tuple[int, ...] | None) -> None:
    """A deployed run: there are the views of those nodes alone whose parts are here, and none of a wire-tapper (None)."""
    if transcript.nodes is None or (coalition is not None and set(coalition) <= set(transcript.nodes)):
        return
    named = lambda nodes: ", ".join(str(transcript.graph.labels[i]) for i in nodes)
    who = "a wire-tapper, who hears all links" if coalition is None else f"the nodes {named(coalition)}"
    raise InputError(f"expected parts of a run that hold what {who} saw; here are those of {named(transcript.nodes)}, which do not")


def _only(values: Array, rows: Array) -> Array:
    """The seen rows, NaN elsewhere."""
    out = np.full(values.shape, np.nan) if values.dtype.kind == "f" else np.zeros_like(values)
    out[rows] = values[rows]
    return out


def _known(transcript: Transcript, d: Draw, member: Array) -> Array | None:
    """What of a draw the coalition knows; None where nothing."""
    if d.known == "all" or d.value is None:
        return d.value
    graph = Graph(len(member), transcript.edges)
    entries, pairs = layout(graph), co_senders(graph)
    sender, receiver = (np.array([e[i] for e in transcript.edges], int) for i in (0, 1))
    owner, ends = {
        "receiver": (entries.target, (entries.source, entries.target)),
        "sender": (entries.source, (entries.source, entries.target)),
        "edge": (sender, (sender, receiver)),
        "node": (np.arange(len(member)), (np.arange(len(member)),)),
        "co-senders": (pairs.first, (pairs.first, pairs.second)),
    }[d.owner]
    rows = member[owner] if d.known == "me" else np.any([member[end] for end in ends], axis=0)
    return _only(np.asarray(d.value), rows) if rows.any() else None


def _costs(problem: Any, coalition: tuple[int, ...]) -> dict[int, dict[str, Array]]:
    """The coalition's own costs, as far as they can be written down."""
    if problem is None:
        return {}
    return {i: held for i in coalition if i < problem.n and (held := problem.family.written(problem.only(i)))}  # a helper has none
