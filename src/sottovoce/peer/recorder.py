"""A node's part of a transcript: kept sealed on its disk while it runs, written down for an auditor when the run ends.

What an iteration came to is appended to a log of its own before the state that follows from it is committed. So whenever a process
dies, the log has all iterations before that state: perhaps one more, which is played again and then stands there once. A log that
lacks one was not kept from the beginning, and the node says so instead of going on with half a transcript.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, StoreError
from ..layout import co_senders
from ..problem import Problem
from ..simulate.own import Own
from ..simulate.task import Task
from ..transcript import TOML, Draw, Transcript, header_of
from .codec import decode, encode
from .log import START
from .noting import Note, NotingNode, edges_of, states_of
from .plan import on_edges
from .roster import Roster
from .store import Store

Array = np.ndarray
FOLDER = "transcript"
WHEN = struct.Struct("<q")


class Recorder:
    """What one node saw and drew, iteration by iteration. Use it in a `with`, beside the node's store."""

    def __init__(self, store: Path, folder: Path, key: bytes, roster: Roster, me: int, cost: Problem, durable: bool):
        self.store = Store(store / FOLDER, key, roster.digest, durable=durable)
        self.folder, self.roster, self.me, self.cost = folder, roster, me, cost
        self.node: NotingNode | None = None
        self.done = False  # whether the part is written already

    def __enter__(self) -> Recorder:
        self.done = written(self.folder, self.roster.digest)
        if not self.done:
            self.store.__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        self.store.close()

    # while the node runs -----------------------------------------------------------------------------------------

    def begin(self, k: int) -> None:
        """Go on with iteration k; what is there of it, or after it, is played again."""
        if self.done:
            return
        kept = [record for record in self.store.records() if WHEN.unpack_from(record)[0] < k]
        if [WHEN.unpack_from(record)[0] for record in kept] != list(range(-1, k)):
            raise StoreError(
                f'node.toml says transcript = "on", but {self.store.folder} does not hold all iterations before {k}: it was off '
                "when this run began, or the log was removed; say transcript = \"off\", or make a new run with `sottovoce again`"
            )
        self.store.rewrite([record] for record in kept)

    def noting(self, own: Own, k: int, kind: int, task: Task) -> NotingNode:
        """The node that plays iteration k, anew each time."""
        self.node = NotingNode(own, k, kind, task.layout)
        return self.node

    def take(self, state: Any) -> None:
        """The iteration is done: on the disk with it, before its state is."""
        if self.done or (node := self.node) is None:
            return
        notes = [tuple(note) for note in node.notes]
        self.store.append([WHEN.pack(node.k), *encode((node.messages, notes, [*states_of(state)]))])

    # at the end --------------------------------------------------------------------------------------------------

    def write(self, task: Task) -> None:
        """The part as an auditor reads it, whole or not at all."""
        if not self.done:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(self.folder, 0o700)
            self.transcript(task).save(self.folder)
            self.done = True

    def transcript(self, task: Task) -> Transcript:
        """What is on the disk, with NaN where this node saw nothing."""
        whole = {WHEN.unpack_from(record)[0]: decode(record[WHEN.size :]) for record in self.store.records()}
        part = _Part(task, self.me, whole)
        header = header_of(task, "deployment", self.roster.labels)
        held = self.cost.family.written(self.cost.data)
        header |= {"run": self.roster.run, "roster": self.roster.digest.hex(), "nodes": [self.me]}
        return Transcript(header, part.sent, part.draws, part.states, task.graph.edges, own={self.me: held} if held else {})


def written(folder: Path, digest: bytes) -> bool:
    """Whether a run's part is there already; refused where the folder holds another run's."""
    file = folder / TOML
    if file.exists() and f'roster = "{digest.hex()}"' not in file.read_text():
        raise InputError(f'{folder} holds the transcript of another run; move it away, or say transcript = "off" in node.toml')
    return file.exists()


def erased(store: Path) -> None:
    """The run has ended: the log, if there is one, opens no more, be it written down or that of a node which was told on its way to
    keep none. Without its salt it does not open wherever the disk keeps copies of the rest."""
    for path in (store / FOLDER / name for name in ("store", "store.new")):
        if path.exists():
            with path.open("r+b") as file:
                file.write(bytes(START))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()


class _Part:
    """The records of one node spread over all edges, entries and nodes; worked out when asked for."""

    def __init__(self, task: Task, me: int, records: Mapping[int, Any]):
        self.task, self.me, self.layout = task, me, task.layout
        self.outs, self.ins = edges_of(task.layout, me)
        self.edged = on_edges(task)
        pairs = co_senders(task.graph)
        self.pairs = {pair: i for i, pair in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))}
        notes = {k: [Note(*note) for note in found] for k, (_, found, _) in records.items()}
        self.sent = _Lazy({(k, e): (k, m) for k, (found, _, _) in records.items() for e, m in enumerate(found)}, self._message)
        self.draws = _Lazy({(note.name, k): (k, note) for k, found in notes.items() for note in found}, self._draw)
        self.states = _Lazy({k: found for k, (_, _, found) in records.items()}, self._state)

    def _message(self, one: tuple[int, tuple[Array, Array]]) -> Array:
        (k, both), sequence = one, self.task.sequence
        sent = _spread(len(self.layout.sender), np.concatenate([self.outs, self.ins]), np.concatenate(both))
        if sequence is None or k < 0 or sent.dtype.kind != "f":
            return sent
        linked = sequence.active[sequence.index(k, k + 1)[0]]
        return np.where(linked[:, None, None], sent, np.nan)  # what crosses where there is no edge now says nothing

    def _draw(self, one: tuple[int, Note]) -> Draw:
        k, note = one
        return Draw(note.owner, note.known, note.law, self._value(k, note))

    def _value(self, k: int, note: Note) -> Array:
        if note.value is None:
            table, schedule = self.task.tables[note.name], self.task.schedule
            return table if schedule is None else table[schedule[max(k, 0)]]
        if note.rows is None:
            return note.value
        rows = note.rows
        if note.owner == "co-senders":
            rows = np.array([self.pairs[int(a), int(b)] for a, b in rows], int)
        many = {"node": self.layout.n, "edge": len(self.layout.sender), "co-senders": len(self.pairs)}
        return _spread(many.get(note.owner, len(self.layout.source)), rows, note.value)

    def _state(self, leaves: list[tuple[str, Array]]) -> dict[str, Array]:
        place = lambda name: (len(self.layout.sender), self.outs) if name in self.edged else (self.layout.n, np.array([self.me]))
        return {name: _spread(*place(name), value) for name, value in leaves}


class _Lazy(Mapping[Any, Any]):
    """Values that are worked out when they are asked for: a part is written key by key, and never whole in memory."""

    def __init__(self, kept: Mapping[Any, Any], make: Any):
        self._kept, self._make = kept, make

    def __getitem__(self, key: Any) -> Any:
        return self._make(self._kept[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _spread(rows: int, where: Array, value: Array) -> Array:
    """The rows that are known in their places; NaN elsewhere, or zero where numbers are whole."""
    out = np.full((rows, *value.shape[1:]), np.nan) if value.dtype.kind == "f" else np.zeros((rows, *value.shape[1:]), value.dtype)
    out[where] = value
    return out
