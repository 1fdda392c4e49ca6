"""How everything here is timed and weighed: interleaved repetitions, fresh processes, traced memory, and the machine in words.

The machine is taken to be noisy and shared. Things to be compared take turns in one process, so that a bad minute strikes all
of them. Both clocks are read: CPU time of the whole process, which other jobs hardly disturb but which adds up threads, and
wall time. The minimum is the figure, the median says how noisy it was.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PACKAGES = ("sottovoce", "numpy", "scipy", "jax", "jaxlib")

# Starts a command and says what it cost. It is a process of its own because a child is charged for the memory of the process
# that it was forked from, and this small one is smaller than any child.
LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
wall = time.perf_counter() - began
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = spent.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([wall, spent.ru_utime + spent.ru_stime, peak, done.returncode, done.stdout, done.stderr]))
"""


@dataclass
class Times:
    """What the repetitions of one thing took, in seconds, and how often memory had to be mapped for it."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    faults: list[float] = field(default_factory=list)

    def __truediv__(self, share: float) -> Times:
        """The same per iteration, per run, ..."""
        return Times(*([t / share for t in times] for times in (self.cpu, self.wall, self.faults)))


@dataclass(frozen=True)
class Child:
    """What a fresh process cost, and what it printed."""

    wall: float
    cpu: float
    peak: float  # bytes of resident memory
    out: str


def timed(action: Callable[[], Any]) -> tuple[float, float, Any]:
    """(CPU seconds, wall seconds, what came back)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def interleaved(actions: Mapping[str, Callable[[], Any]], repetitions: int, warmups: int = 1) -> dict[str, Times]:
    """Each in turn, so many times over; the first rounds, which compile and fill caches, do not count."""
    found = {name: Times() for name in actions}
    for turn in range(warmups + repetitions):
        for name, action in actions.items():
            gc.collect()
            before = page_faults()
            cpu, wall, _ = timed(action)
            if turn >= warmups:
                found[name].cpu.append(cpu)
                found[name].wall.append(wall)
                found[name].faults.append(page_faults() - before)
    return found


def page_faults() -> int:
    """So many pages the system has mapped for this process; each costs a few hundred nanoseconds (zero where nobody counts)."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def child(code: str) -> Child:
    """Run Python code in a fresh process."""
    command = [sys.executable, "-c", LAUNCHER, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, cpu, peak, status, out, errors = json.loads(done.stdout)
    if status:
        raise RuntimeError(f"a fresh process ended with {status}:\n{errors}")
    return Child(wall, cpu, peak, out)


def traced(action: Callable[[], Any]) -> tuple[float, Any]:
    """(bytes at the peak beyond what was there before, what came back); NumPy reports its arrays to tracemalloc."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = action()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


def least_and_median(values: list[float]) -> tuple[float, float]:
    return min(values), statistics.median(values)


def speedup(slow: list[float], fast: list[float]) -> tuple[float, float]:
    """How many times faster: from the minima, and the median over the rounds."""
    return min(slow) / min(fast), statistics.median(s / f for s, f in zip(slow, fast, strict=True))


def machine() -> dict[str, Any]:
    """Processor, memory, load and versions: no names, no paths."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.system(), "processor": _processor(), "cores": cores, "memory_gb": round(memory / 1e9, 1),
        "load": [round(v, 2) for v in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(), **{name: _version(name) for name in PACKAGES},
    }  # fmt: skip


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            named = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    if name == "sottovoce":
        import sottovoce

        return sottovoce.__version__
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
