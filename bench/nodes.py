"""Real nodes, five processes over mutual TLS, beside a bare TLS exchange of the same bytes: iterations a second, memory, start.

The bare exchange (asyncio) checks nothing, computes nothing and keeps nothing; the nodes do all that they do when deployed. They
take turns, so that a bad minute strikes all. Ratios are of neighbours in time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import sottovoce as sv
from sottovoce.peer.founding import Plan, found
from sottovoce.tables import toml

from .report import Row

FIGURE = "nodes"
SMALL, LARGE = (10, 1500), (100_000, 100)  # numbers in x, iterations
NVFLARE = 2.9  # iterations a second of NVFlare's peer-to-peer executor on the machine of the study, 0.35 s each
KEEP = {"durable": "disk", "kept": "process"}
COST = "def slope(x):\n    return x - 1.0\n"


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    turns = 2 if quick else 5
    small = turned(turns, *SMALL, ("raw", "node", "kept", "durable", "paper"))
    large = turned(turns, *LARGE, ("raw", "node"))
    rates = lambda found, what: [one["rate"] for one in found[what]]
    first, peak = [one["first"] for one in small["node"]], [one["peak"] / 1e6 for one in small["node"] + small["durable"]]
    return [
        told("n = 5, d = 10, mutual TLS: nodes (ab), kept in memory alone", rates(small, "node")),
        told("  the paper's algorithm, whose weights are drawn anew each time", rates(small, "paper")),
        told("  nodes, sealed in files, not forced to the disk", rates(small, "kept")),
        told("  nodes, every message on the disk before it is offered", rates(small, "durable")),
        told("  bare TLS exchange of the same bytes", rates(small, "raw")),
        ratio("  nodes against the bare exchange", rates(small, "node"), rates(small, "raw"), 0.4),
        ratio("  what the files leave of it", rates(small, "kept"), rates(small, "node"), None),
        ratio("  what the disk leaves of it", rates(small, "durable"), rates(small, "node"), None),
        Row(FIGURE, "  nodes against NVFlare's p2p (2.9 a second)", "times", min(rates(small, "node")) / NVFLARE,
            statistics.median(rates(small, "node")) / NVFLARE, at_least=20),
        told("n = 5, d = 100,000: nodes (ab)", rates(large, "node")),
        told("  bare TLS exchange of the same bytes", rates(large, "raw")),
        ratio("  nodes against the bare exchange", rates(large, "node"), rates(large, "raw"), 1.5),
        Row(FIGURE, "peak memory of a node, d = 10", "MB", min(peak), statistics.median(peak), at_most=80),
        Row(FIGURE, "five processes from their start to the first iteration of all", "s wall", min(first), statistics.median(first),
            at_most=2),
    ]  # fmt: skip


def told(what: str, rates: list[float]) -> Row:
    return Row(FIGURE, what, "iterations/s", min(rates), statistics.median(rates))


def ratio(what: str, ours: list[float], theirs: list[float], bound: float | None) -> Row:
    """Of neighbours in time; judged, as every bound, by the least."""
    found = [a / b for a, b in zip(ours, theirs, strict=True)]
    return Row(FIGURE, what, "times", min(found), statistics.median(found), at_least=bound)


def turned(turns: int, d: int, iterations: int, kinds: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """Each kind in turn, so many times."""
    results: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(turns):
        for kind in kinds:
            with tempfile.TemporaryDirectory() as place:
                method = "private-gradient-tracking" if kind == "paper" else "ab"
                folder = federation(Path(place) / "five", d, iterations, KEEP.get(kind, "memory"), method)
                results[kind].append(played(folder, kind))
    return results


def federation(folder: Path, d: int, iterations: int, keep: str, method: str = "ab") -> Path:
    """Five nodes, a ring with chords: ten links, two messages an iteration over each."""
    plan = Plan((sv.graphs.ring(5),), method, {}, f"own:d={d}", stepsize=0.1, iterations=iterations, port=0)
    facts, _ = found(folder, plan)
    for name in facts.names:
        file = folder / name / "node.toml"
        (folder / name / "bench_cost.py").write_text(COST)
        own = {**tomllib.loads(file.read_text()), "keep": keep, "cost": {"kind": "python", "entry": "bench_cost:slope"}}
        file.write_text(toml(own))
    return folder


def played(folder: Path, kind: str) -> dict[str, Any]:
    """All five processes to their end: the slowest rate, the latest first iteration, the largest memory."""
    what, began = "raw" if kind == "raw" else "node", time.time()
    command = [sys.executable, "-m", f"{__package__}.node_children", what, str(folder)]
    children = [subprocess.Popen([*command, f"node-{i}"], stdout=subprocess.PIPE, text=True) for i in range(5)]
    said = [json.loads(child.communicate(timeout=300)[0]) for child in children]
    return {
        "rate": min(one["rate"] for one in said), "first": max(one["first"] for one in said) - began,
        "peak": max(one["peak"] for one in said),
    }  # fmt: skip
