"""Real nodes for a long time: `python -m bench.soak` (or `make soak`). It ends with 1 where anything is not as it must be.

    iterations   100,000 by two real processes; their memory and their stores must not grow
    storm        20 kills (SIGKILL) and a stop of 14 seconds (SIGSTOP) of five real processes; no bit of the result may change
    fuzz         1,000,000 mutated frames; each is refused, nothing changes, nothing grows
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import tomllib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.errors import MessageRefused
from sottovoce.peer.crew import Crew
from sottovoce.peer.founding import Plan, found
from sottovoce.peer.frame import Frames
from sottovoce.peer.rehearsal import whole
from sottovoce.tables import toml

GROWTH = 4e6  # bytes of memory beyond what a process has after a tenth of the way
STORE = 8e6  # bytes that a store of these small states may ever have


def made(folder: Path, graph: sv.Graph, iterations: int, keep: str = "process") -> Path:
    """A federation whose run holds no random number: its start is written down, its weights are fixed."""
    facts, _ = found(folder, Plan((graph,), "ab", {}, stepsize=0.02, iterations=iterations, port=0))
    for i, name in enumerate(facts.names):
        file = folder / name / "node.toml"
        file.write_text(toml({**tomllib.loads(file.read_text()), "keep": keep, "start": [float(i), -1.0]}))
    return folder


def played(folder: Path, each: Callable[[Crew], None]) -> tuple[np.ndarray, int]:
    with Crew(folder) as crew:
        for name in crew.federation.names:
            crew.start(name)
        crew.watch(each)
        return crew.answers(), crew.kills


def soak(place: Path, iterations: int) -> str:
    """A long run of two: resident memory and the size of the store, looked at all along."""
    folder = made(place / "long", sv.graphs.cycle(2), iterations)
    memory: dict[str, list[float]] = {}
    stores = [0.0]

    def look(crew: Crew) -> None:
        for name, process in crew.processes.items():
            if crew.iteration(name) > iterations // 10 and process.poll() is None:
                memory.setdefault(name, []).append(_resident(process.pid))
        stores.append(max((file.stat().st_size for file in folder.glob("*/store/store")), default=0))
        time.sleep(0.2)

    began = time.perf_counter()
    played(folder, look)
    grown = max(max(found) - found[0] for found in memory.values())
    assert grown < GROWTH, f"memory grew by {grown:,.0f} bytes"
    assert max(stores) < STORE, f"a store reached {max(stores):,.0f} bytes"
    rate, most = iterations / (time.perf_counter() - began), max(stores) / 1e6
    return f"{iterations:,} iterations, {rate:.0f} a second; memory grew by {grown / 1e6:.1f} MB, stores up to {most:.1f} MB"


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):  # it has just ended
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE")


def storm(place: Path, kills: int, stop: float) -> str:
    """The same run twice, once undisturbed."""
    chance, iterations = random.Random(0), 100 * kills
    due = [(chance.randrange(5), 50 + 90 * i) for i in range(kills)]
    stopped: list[float] = []

    def disturb(crew: Crew) -> None:
        names = list(crew.federation.names)
        if due and crew.iteration(names[due[0][0]]) >= due[0][1]:
            name = names[due.pop(0)[0]]
            crew.kill(name)
            crew.start(name)
        elif len(due) == kills // 2 and not stopped:
            stopped.append(stop)
            crew.processes[names[2]].send_signal(signal.SIGSTOP)
            time.sleep(stop)
            crew.processes[names[2]].send_signal(signal.SIGCONT)

    calm, _ = played(made(place / "calm", sv.graphs.paper_b(), iterations, keep="disk"), lambda crew: None)
    stormy, done = played(made(place / "stormy", sv.graphs.paper_b(), iterations, keep="disk"), disturb)
    assert calm.tobytes() == stormy.tobytes(), "a kill changed the result"
    assert done == kills
    error = np.abs(stormy - whole(place / "stormy")[1].optimum).max()
    return f"{done} kills and a stop of {stop:g} s in {iterations:,} iterations: every bit the same, error {error:.1e}"


def fuzz(place: Path, frames: int) -> str:
    """Good frames with bits turned, cut, lengthened or replaced: each is refused, or is the one that it was."""
    folder = made(place / "fuzz", sv.graphs.cycle(2), 10)
    from sottovoce.peer.federation import FILE, Federation

    roster = Federation.read(folder / FILE).roster
    writer, reader = Frames(roster, 0), Frames(roster, 1)
    chance, vector = random.Random(1), np.arange(2.0).reshape(1, 2, 1)
    good = writer.write(1, (3, 0), 0, writer.payloads((3, 0), (vector,))[1])
    reader.read(0, good)
    passed = 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(frames):
        bad = _mutated(good, chance)
        try:
            found = reader.read(0, bad)
        except MessageRefused:
            continue
        # what passes differs from a good frame only in the place or in the numbers, which are of the agreed kind and size
        assert len(bad) == len(good)
        assert bad[:48] == good[:48]
        assert all(np.isfinite(part).all() for part in found.parts)
        passed += 1
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 3e5, f"{grown} bytes stayed"  # Python itself keeps some thousand free tuples for later
    return f"{frames:,} mutated frames: {frames - passed:,} refused, {passed:,} well-formed; {grown:,} bytes stayed"


def _mutated(good: bytes, chance: random.Random) -> bytes:
    kind, frame = chance.randrange(5), bytearray(good)
    if kind == 0:
        for _ in range(chance.randrange(1, 9)):
            frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del frame[chance.randrange(len(frame)) :]
    elif kind == 2:
        frame += chance.randbytes(chance.randrange(1, 99))
    elif kind == 3:
        at = 8 * chance.randrange(len(frame) // 8)
        frame[at : at + 8] = np.array([chance.choice([np.nan, np.inf, -np.inf, 1e300, -1e300])]).tobytes()
    else:
        frame[:] = chance.randbytes(chance.randrange(2 * len(frame)))
    return bytes(frame)


def main() -> int:
    """All three, or some; --quick takes a hundredth of each."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="Run real nodes for a long time.")
    parser.add_argument("what", nargs="*", metavar="PART", help="iterations, storm, fuzz; all unless named")
    parser.add_argument("--quick", action="store_true", help="a hundredth of it")
    asked = parser.parse_args()
    short = 100 if asked.quick else 1
    parts = {
        "iterations": lambda place: soak(place, 100_000 // short),
        "storm": lambda place: storm(place, 3 if asked.quick else 20, 2.0 if asked.quick else 14.0),
        "fuzz": lambda place: fuzz(place, 1_000_000 // short),
    }
    for name in asked.what or parts:
        if name not in parts:
            parser.error(f"no part {name}; there are {', '.join(parts)}")
        with tempfile.TemporaryDirectory() as place:
            try:
                print(f"{name}: {parts[name](Path(place))}", flush=True)
            except AssertionError as error:
                print(f"{name}: FAILED, {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
