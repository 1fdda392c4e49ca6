"""What may be said of a running node, and the log that it keeps: iterations, milliseconds, bytes and names. Never a value.

The log is written through an allow-list: a fact whose name is not on it cannot be written, whoever tries. Whatever a message held
stays in the message.
"""

from __future__ import annotations

import datetime
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError

ALLOWED = ("event", "name", "names", "iteration", "iterations", "ms", "bytes", "reason", "error", "run", "version")
EVENTS = ("start", "waiting", "refused", "stopped", "failed", "end")
WINDOW = 2.0  # seconds over which a rate is taken


class Log:
    """node.log: a JSON object a line, readable by its owner alone."""

    def __init__(self, file: Path, name: str):
        self.name, self._lock = name, threading.Lock()
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, **facts: Any) -> None:
        """One line; a fact that is not on the list is a mistake in this program."""
        wrong = [name for name in facts if name not in ALLOWED]
        if wrong or event not in EVENTS:
            raise InputError(f"the log takes no {wrong[0] if wrong else event!r}: only {', '.join(ALLOWED)}")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, "name": self.name, **facts}) + "\n"
        with self._lock:
            os.write(self._file, line.encode())

    def close(self) -> None:
        os.close(self._file)


@dataclass
class Status:
    """A node at this moment, for the table and for whoever started it."""

    name: str
    iterations: int
    k: int = -1
    waiting: tuple[str, ...] = ()
    since: float | None = None  # since when it waits, by the monotonic clock
    refused: dict[str, str] = field(default_factory=dict)  # by name, why what came last from there was refused
    sent: int = 0
    received: int = 0
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def reached(self, k: int) -> None:
        """Iteration k is there, so nobody is waited for any more."""
        self.k, self.waiting, self.since = k, (), None

    def waits(self, names: Sequence[str], seconds: float) -> None:
        self.waiting, self.since = tuple(names), time.monotonic() - seconds

    @property
    def seconds(self) -> float:
        """How long it has been waiting."""
        return 0.0 if self.since is None else time.monotonic() - self.since

    def rate(self) -> float:
        """Iterations a second over the last moments; called as often as it is shown."""
        now = time.monotonic()
        self._marks = [mark for mark in self._marks if now - mark[0] < WINDOW] + [(now, self.k)]
        (then, before) = self._marks[0]
        return (self.k - before) / (now - then) if now > then else 0.0

    def facts(self) -> dict[str, Any]:
        """The same in plain words; nothing of the optimisation is in it."""
        return {
            "name": self.name, "iteration": self.k, "iterations": self.iterations, "rate": round(self.rate(), 1),
            "waiting": list(self.waiting), "seconds": round(self.seconds, 1), "refused": dict(self.refused),
            "sent": self.sent, "received": self.received,
        }  # fmt: skip
