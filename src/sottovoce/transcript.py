"""What crossed each edge and when, who drew what, and who knows it: all that the auditor may read.

`sent[k, exchange]` is the payload of every edge as its ends read it, (edge, numbers, run); `wire[k, exchange]` where the wire
differs; `draws[name, k]` with its owner, who knows it and its law; `states[k]` what the nodes hold after iteration k. The
set-up is k = -1. A transcript holds secrets.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .errors import InputError
from .layout import Layout, layout
from .tables import write_toml

VERSION = 1


class Draw(NamedTuple):
    """A draw of one iteration: `owner` is "receiver" or "sender" (weights, one an entry), "node" or "edge"."""

    owner: str
    known: str  # "me", "edge", "pair" or "all"
    law: str
    value: np.ndarray


class Messages(Mapping[tuple[int, int], np.ndarray]):
    """(k, exchange) -> the payload of every edge; worked out when it is asked for."""

    def __init__(self, tapes: Mapping[int, Any], entries: Layout):
        self._tapes, self._layout = tapes, entries
        self._counts = {k: len(tape.messages) for k, tape in tapes.items()}

    def __getitem__(self, key: tuple[int, int]) -> np.ndarray:
        k, exchange = key
        if not 0 <= exchange < self._counts.get(k, 0):
            raise KeyError(f"no exchange {exchange} in iteration {k}")
        return self._tapes[k].sent(np, self._layout)[exchange]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((k, e) for k, count in self._counts.items() for e in range(count))

    def __len__(self) -> int:
        return sum(self._counts.values())


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

    @property
    def iterations(self) -> int:
        return max(k for k, _ in self.sent) + 1 if len(self.sent) else 0

    def save(self, folder: str | Path) -> Path:
        """Write transcript.toml and transcript.npz into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"sent/{k}/{e}": m for (k, e), m in self.sent.items()}
        arrays |= {f"wire/{k}/{e}": m for (k, e), m in self.wire.items()}
        arrays |= {f"draws/{name}/{k}": d.value for (name, k), d in self.draws.items() if d.value is not None}
        arrays |= {f"states/{name}/{k}": v for k, leaves in self.states.items() for name, v in leaves.items()}
        kinds = {name: [d.owner, d.known, d.law] for (name, _), d in self.draws.items()}
        spans = [[name, k, *d[:3]] for (name, k), d in self.draws.items() if list(d[:3]) != kinds[name]]
        write_toml(folder / "transcript.toml", {"header": self.header, "draws": kinds, "exceptions": {"draws": spans}})
        np.savez_compressed(folder / "transcript.npz", edges=np.array(self.edges).reshape(-1, 2), **arrays)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Transcript:
        """Read what `save` wrote."""
        folder = Path(folder)
        about = tomllib.loads((folder / "transcript.toml").read_text())
        if about["header"].get("version") != VERSION:
            raise InputError(f"expected a transcript of version {VERSION}, got {about['header'].get('version')}")
        kinds = about["draws"]
        other = {(name, k): tuple(rest) for name, k, *rest in about["exceptions"]["draws"]}
        parts: dict[str, dict[Any, Any]] = {"sent": {}, "wire": {}, "draws": {}, "states": {}}
        with np.load(folder / "transcript.npz", allow_pickle=False) as stored:
            edges = tuple((int(s), int(r)) for s, r in stored["edges"])
            for key in stored.files:
                kind, _, rest = key.partition("/")
                a, _, b = rest.rpartition("/")
                if kind in ("sent", "wire"):
                    parts[kind][int(a), int(b)] = stored[key]
                elif kind == "draws":
                    parts[kind][a, int(b)] = Draw(*other.get((a, int(b)), kinds[a]), stored[key])
                elif kind == "states":
                    parts[kind].setdefault(int(b), {})[a] = stored[key]
        return cls(about["header"], parts["sent"], parts["draws"], parts["states"], edges, None, parts["wire"])


def written(task: Any, played: Any) -> Transcript:
    """The transcript of a recorded run."""
    tapes = {-1: played.setup, **dict(enumerate(played.tapes))}
    draws = {(d.name, k): Draw(d.owner, d.known, d.law, _array(d.value)) for k, t in tapes.items() for d in t.draws}
    states = {k: _leaves(t.states) for k, t in tapes.items()}
    header = {
        "version": VERSION,
        "kind": "simulation",
        "algorithm": task.algorithm.name,
        "parameters": {k: str(v) for k, v in task.parameters.items()},
        "mechanisms": [repr(a) for a in task.mechanisms],
        "settled": task.settled,
        "stepsize": [float(s) for s in task.stepsize[:, 0, 0]],
        "graph": {"n": task.graph.n, "edges": [list(e) for e in task.graph.edges]},
        "coordinates": task.problem.d,
        "runs": [int(r) for r in task.runs],
        "seed": task.seed,
    }
    return Transcript(header, Messages(tapes, layout(task.graph)), draws, states, task.graph.edges, task.problem)


def _array(value: Any) -> Any:
    return None if value is None else np.asarray(value)


def _leaves(state: Any) -> dict[str, np.ndarray]:
    names: Sequence[str] = getattr(state, "_fields", ())
    return {name: np.asarray(getattr(state, name)) for name in names}
