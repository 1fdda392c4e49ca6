"""What crossed each edge and when, who drew what, and who knows it: all that the auditor may read.

`sent[k, exchange]` is the payload of every edge as its ends read it, (edge, numbers, run); `wire[k, exchange]`, uint8 (edge, bytes,
run), what crosses instead where links are sealed; `draws[name, k]` with its owner, who knows it and its law; `states[k]` what the
nodes hold after iteration k. The set-up is k = -1. A transcript holds secrets.

A node of a deployment writes its own part: the header's `nodes` says whose it is, numbers that it did not see are NaN (zero where
numbers are whole), and `own` is its cost. Parts of one run are put together by `pooled`.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .errors import InputError
from .graph import Graph
from .layout import Layout, layout
from .tables import nested, numbered, read_arrays, write_arrays, write_toml

VERSION = 1
TOML, ARRAYS = "transcript.toml", "transcript.npz"
NOTICE = "holds secrets: messages, states and draws; whoever reads this file learns what its nodes know"


class Draw(NamedTuple):
    """A draw of one iteration: `owner` is "receiver" or "sender" (weights, one an entry), "node", "edge" or "co-senders"."""

    owner: str
    known: str  # "me", "edge", "pair" or "all"
    law: str
    value: np.ndarray


class Messages(Mapping[tuple[int, int], np.ndarray]):
    """(k, exchange) -> the payload of every edge; worked out when it is asked for."""

    def __init__(self, tapes: Mapping[int, Any], entries: Layout, up: Callable[[int], np.ndarray] | None = None):
        self._tapes, self._layout, self._up = tapes, entries, up

    def __getitem__(self, key: tuple[int, int]) -> np.ndarray:
        k, exchange = key
        if k not in self._tapes or not 0 <= exchange < len(self._tapes[k].messages):
            raise KeyError(f"no exchange {exchange} in iteration {k}")
        sent = self._tapes[k].sent(np, self._layout)[exchange]
        if self._up is None or k < 0 or sent.dtype.kind != "f":
            return sent
        return np.where(self._up(k)[:, None, None], sent, np.nan)  # where there is no edge now, nothing was sent

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((k, e) for k, tape in self._tapes.items() for e in range(len(tape.messages)))

    def __len__(self) -> int:
        return sum(len(tape.messages) for tape in self._tapes.values())


class Draws(Mapping[tuple[str, int], Draw]):
    """(name, k) -> a draw; looked up when it is asked for."""

    def __init__(self, tapes: Mapping[int, Any]):
        self._tapes = tapes

    def __getitem__(self, key: tuple[str, int]) -> Draw:
        name, k = key
        for d in self._tapes[k].draws if k in self._tapes else ():
            if d.name == name:
                return Draw(d.owner, d.known, d.law, np.asarray(d.value))
        raise KeyError(f"nothing named {name!r} was drawn in iteration {k}")

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((d.name, k) for k, tape in self._tapes.items() for d in tape.draws)

    def __len__(self) -> int:
        return sum(len(tape.draws) for tape in self._tapes.values())


class States(Mapping[int, dict[str, np.ndarray]]):
    """k -> what the nodes hold after iteration k, by name."""

    def __init__(self, tapes: Mapping[int, Any]):
        self._tapes = tapes

    def __getitem__(self, k: int) -> dict[str, np.ndarray]:
        state = self._tapes[k].states
        return {name: np.asarray(getattr(state, name)) for name in getattr(state, "_fields", ())}

    def __iter__(self) -> Iterator[int]:
        return iter(self._tapes)

    def __len__(self) -> int:
        return len(self._tapes)


@dataclass
class Transcript:
    """One recorded run, or several side by side on the last axis."""

    header: dict[str, Any]
    sent: Mapping[tuple[int, int], np.ndarray]
    draws: Mapping[tuple[str, int], Draw]
    states: Mapping[int, dict[str, np.ndarray]]
    edges: tuple[tuple[int, int], ...]
    costs: Any = None  # the problem, where it is known
    wire: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)
    own: Mapping[int, Mapping[str, np.ndarray]] = field(default_factory=dict)  # of a deployed node: its cost, {"H", "b"}

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """Whose parts these are; None where everything was recorded."""
        found = self.header.get("nodes")
        return None if found is None else tuple(found)

    @property
    def iterations(self) -> int:
        return max(self.states, default=-1) + 1

    @property
    def graph(self) -> Graph:
        """Who can send to whom, with the names of the nodes where they have any."""
        return Graph(self.header["graph"]["n"], self.edges, labels=self.header["graph"].get("labels"))

    def save(self, folder: str | Path) -> Path:
        """Write transcript.npz and transcript.toml into a folder; their owner alone can read them."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_arrays(folder / ARRAYS, self._arrays())
        kinds = {name: [d.owner, d.known, d.law] for (name, _), d in self.draws.items()}
        spans = [[name, k, *d[:3]] for (name, k), d in self.draws.items() if list(d[:3]) != kinds[name]]
        write_toml(folder / TOML, {"notice": NOTICE, "header": self.header, "draws": kinds, "exceptions": {"draws": spans}})
        return folder

    def _arrays(self) -> Iterator[tuple[str, Any]]:
        """Every array by its name in the file, one at a time."""
        yield from ((f"sent/{k}/{e}", m) for (k, e), m in self.sent.items())
        yield from ((f"wire/{k}/{e}", m) for (k, e), m in self.wire.items())
        yield from ((f"draws/{name}/{k}", d.value) for (name, k), d in self.draws.items() if d.value is not None)
        yield from ((f"states/{name}/{k}", v) for k, leaves in self.states.items() for name, v in leaves.items())
        yield from ((f"own/{name}/{i}", v) for i, cost in self.own.items() for name, v in cost.items())
        yield "edges", np.array(self.edges).reshape(-1, 2)

    @classmethod
    def load(cls, folder: str | Path) -> Transcript:
        """Read what `save` wrote."""
        folder = Path(folder)
        missing = [name for name in (TOML, ARRAYS) if not (folder / name).exists()]
        if missing:
            raise InputError(f"expected a folder with {' and '.join(missing)}, as Transcript.save writes it; {folder} has none")
        about = tomllib.loads((folder / TOML).read_text())
        if about["header"].get("version") != VERSION:
            raise InputError(f"expected a transcript of version {VERSION}, got {about['header'].get('version')}")
        kinds = about["draws"]
        other = {(name, k): rest for name, k, *rest in about["exceptions"]["draws"]}
        parts = defaultdict(dict, read_arrays(folder / ARRAYS))
        edges = tuple((int(s), int(r)) for s, r in parts["edges"]["", ""])
        drawn = {(a, int(b)): v for (a, b), v in parts["draws"].items()}
        draws = {key: Draw._make([*(other.get(key) or kinds[key[0]]), value]) for key, value in drawn.items()}
        return cls(
            about["header"], numbered(parts["sent"]), draws, nested(parts["states"]), edges, None, numbered(parts["wire"]),
            nested(parts["own"]),
        )  # fmt: skip


def written(task: Any, played: Any) -> Transcript:
    """The transcript of a recorded run."""
    tapes = {-1: played.setup, **dict(enumerate(played.tapes))}
    sequence = task.sequence
    up = None if sequence is None else lambda k: sequence.active[sequence.index(k, k + 1)[0]]
    sent = Messages(tapes, layout(task.graph), up)
    wire = on_wire(task.mechanisms, sent, task.graph.edges)
    header = {**header_of(task, "simulation", task.graph.labels), "seed": task.seed}
    return Transcript(header, sent, Draws(tapes), States(tapes), task.graph.edges, task.problem, wire)


def header_of(task: Any, kind: str, labels: Sequence[Any]) -> dict[str, Any]:
    """What is public of a run; `labels`: the names of the nodes."""
    header = {
        "version": VERSION,
        "kind": kind,
        "algorithm": task.algorithm.name,
        "parameters": {k: str(v) for k, v in task.parameters.items()},
        "mechanisms": [repr(a) for a in task.mechanisms],
        "settled": task.settled,
        "stepsize": [float(s) for s in task.stepsize[: task.problem.n, 0, 0]],
        "graph": {"n": task.graph.n, "edges": [list(e) for e in task.graph.edges], **_labels(labels)},
        "coordinates": task.problem.d,
        "opens": task.algorithm.opens,
        "costs": task.problem.family.name,  # what kind they are is public
        "runs": [int(r) for r in task.runs],
    }
    if task.problem.values is not None:
        header["values"] = True  # nodes hold numbers that are averaged or added up
    if task.algorithm.averages:
        header["averages"] = True  # and nothing else: their costs play no part
    if task.helpers:
        header["helpers"] = task.helpers  # the last nodes of the graph
    return header


def _labels(labels: Sequence[Any]) -> dict[str, list[str]]:
    """The names of the nodes, where they are not their numbers."""
    return {} if tuple(labels) == tuple(range(len(labels))) else {"labels": [str(label) for label in labels]}


def on_wire(stack: Sequence[Any], sent: Messages, edges: tuple[tuple[int, int], ...]) -> Mapping[tuple[int, int], np.ndarray]:
    """What crosses the edges where it is not what the ends read: a layer with a `wire` says how its messages look there."""
    for applied in reversed(stack):
        wire = getattr(applied.mechanism.wrap, "wire", None)
        if wire is not None:
            return wire(sent, edges, applied.options)
    return {}
