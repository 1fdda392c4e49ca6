"""All nodes of a folder as processes on this machine: started, watched, killed if somebody wants to, started again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RunError
from .federation import FILE, Federation
from .node import RESULT, is_over
from .node_file import NodeFile

POLL, PATIENCE = 0.05, 10  # seconds between two looks, and until a process that will not stop is killed


class Crew:
    """The processes of a federation by name. Use it in a `with`: nobody is left running."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.federation = Federation.read(self.folder / FILE)
        self.files = {name: NodeFile.read(self.folder / name) for name in self.federation.names}
        self.states: dict[str, Mapping[str, Any]] = {}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._listeners: dict[str, threading.Thread] = {}
        self.kills = 0

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: Any) -> None:
        for process in self.processes.values():
            process.terminate()
        for name, process in self.processes.items():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            self._gone(name)

    def start(self, name: str) -> None:
        """Start a node, or start it again."""
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(self.command(name), text=True, **pipes)
        self.processes[name] = process
        self._listeners[name] = threading.Thread(target=self._listen, args=(name, process), daemon=True)
        self._listeners[name].start()

    def command(self, name: str) -> list[str]:
        """What is run for a node."""
        return [sys.executable, "-m", "sottovoce.peer.process", str(self.files[name].folder / "node.toml")]

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.states[name] = json.loads(line)

    def kill(self, name: str) -> None:
        """SIGKILL: the process has no chance to save anything."""
        self.processes[name].kill()
        self._gone(name)
        self.kills += 1

    def _gone(self, name: str) -> None:
        """The process has ended, or is about to: what it still says is read, and its pipes are closed."""
        process = self.processes[name]
        process.wait()
        self._listeners[name].join()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def rows(self) -> list[Mapping[str, Any]]:
        """What each last said, in their order."""
        return [self.states[name] for name in self.federation.names if name in self.states]

    def iteration(self, name: str) -> int:
        """How far it said that it is."""
        return int(self.states.get(name, {}).get("iteration", -1))

    def watch(self, each: Callable[[Crew], None] = lambda crew: None) -> None:
        """Until all have come to the end; `each` is called again and again meanwhile. The first that fails ends all."""
        while True:
            each(self)
            codes = {name: process.poll() for name, process in self.processes.items()}
            for name, code in codes.items():
                if code not in (None, 0):
                    raise RunError(f"{name} ended with {code}: {self._said(name)}; the others were stopped, nothing is lost")
            if all(code == 0 for code in codes.values()):
                return
            time.sleep(POLL)

    def _said(self, name: str) -> str:
        process = self.processes[name]
        assert process.stderr is not None
        return process.stderr.read().strip() or "it said nothing"

    def answers(self) -> np.ndarray:
        """(n, d): what each node wrote as its result."""
        found = [tomllib.loads((self.files[name].result / RESULT).read_text())["x"] for name in self.federation.names]
        return np.array(found, dtype=float)


def up(folder: str | Path, each: Callable[[Crew], None] = lambda crew: None) -> dict[str, Any]:
    """Run all nodes of a folder as processes of this machine, and say what came; where the run has ended earlier, nothing runs."""
    began = time.perf_counter()
    with Crew(folder) as crew:
        digest = crew.federation.roster.digest
        earlier = all(is_over(file, digest) for file in crew.files.values())
        for name in () if earlier else crew.federation.names:
            crew.start(name)
        crew.watch(each)
        x = crew.answers()
        return {
            "run": crew.federation.run, "earlier": earlier, "nodes": len(x), "iterations": crew.federation.iterations, "x": x[0],
            "apart": float(np.abs(x - x[0]).max()), "seconds": time.perf_counter() - began,
            "results": [str(crew.files[name].result / RESULT) for name in crew.federation.names],
            "transcripts": [str(file.transcript) for file in crew.files.values() if file.recorded],
        }  # fmt: skip
