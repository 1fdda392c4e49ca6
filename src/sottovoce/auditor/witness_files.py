"""The two worlds of a witness side by side, as text that a person can read: one TOML file and three tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import write_toml
from .witness import Witness
from .worlds import Quadratics, World, replay, seen, wide


def write(witness: Witness, folder: str | Path) -> Path:
    """Write the two worlds side by side: witness.toml, costs.csv, draws.csv (what differs), view.csv (what is seen)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_toml(folder / "witness.toml", _about(witness))
    _write(folder / "costs.csv", ("node", "coordinate", "quantity", "this world", "other world"), _costs(witness))
    _write(folder / "draws.csv", ("quantity", "receiver", "sender", "coordinate", "this world", "other world"), _draws(witness))
    _write(folder / "view.csv", ("k", "quantity", "row", "coordinate", "this world", "other world"), _seen(witness))
    return folder


def _about(witness: Witness) -> dict[str, Any]:
    graph, law = witness.world.graph, witness.world.law
    return {
        "about": f"Two worlds that the nodes {list(witness.coalition)} cannot tell apart by anything they see. In the other one "
        f"node {witness.victim}'s gradient is another by delta, node {witness.neighbour}'s by -delta; costs.csv and draws.csv hold "
        "what differs, view.csv what the coalition sees.",
        "victim": witness.victim, "neighbour": witness.neighbour, "case": witness.case, "coalition": list(witness.coalition),
        "delta": list(witness.delta), "K": witness.world.settled, "iterations": len(witness.world.iterations),
        "exact": witness.world.exact, "difference": witness.difference, "feasible": witness.feasible,
        "law": None if law is None else str(law), "log_likelihood_ratio": witness.log_likelihood_ratio,
        "log_volume": witness.log_volume, "graph": {"n": graph.n, "edges": [list(e) for e in graph.edges]},
    }  # fmt: skip


def _costs(witness: Witness) -> Iterator[tuple[Any, ...]]:
    rows = {"gradient at x^0": [w.gradient(w.x0) for w in (witness.world, witness.other)]}
    if isinstance(witness.world.costs, Quadratics):  # gradient H x - b
        rows["b"] = [w.costs.b - w.shift for w in (witness.world, witness.other) if isinstance(w.costs, Quadratics)]
    for name, (a, b) in rows.items():
        yield from ((i, l, name, a[i, l], b[i, l]) for i in (witness.victim, witness.neighbour) for l in range(a.shape[1]))


def _draws(witness: Witness) -> Iterator[tuple[Any, ...]]:
    pair, (a, b) = [witness.victim, witness.neighbour], (w.iterations[0] for w in (witness.world, witness.other))
    d, sender, receiver = len(witness.delta), witness.world.sender, witness.world.receiver
    here, there = wide(a.stepsize, d), wide(b.stepsize, d)
    yield from (("Lambda", i, i, l, here[i, l], there[i, l]) for i in pair for l in range(d))
    here, there = wide(a.C, d), wide(b.C, d)
    chosen = np.flatnonzero(np.isin(sender, pair))
    yield from (("C", receiver[e], sender[e], l, here[e, l], there[e, l]) for e in chosen for l in range(d))


def _seen(witness: Witness) -> Iterator[tuple[Any, ...]]:
    """Rows of messages and states by name; what the coalition drew itself, and the public numbers, are left out."""
    worlds = [seen(w, replay(w), witness.coalition) for w in (witness.world, witness.other)]
    names = _row_names(witness.world, witness.coalition)
    for name in ("x", "u", "y", "M"):
        for k, (a, b) in enumerate(zip(worlds[0][name], worlds[1][name], strict=True)):
            rows = names["y"] if name == "x" and k == len(witness.world.iterations) else names[name]
            yield from ((k, name, row, l, a[j, l], b[j, l]) for j, row in enumerate(rows) for l in range(a.shape[1]))


def _row_names(world: World, coalition: tuple[int, ...]) -> dict[str, list[str]]:
    """What each row of `seen` is about: nodes whose x and u are heard, members, and (sender -> receiver)."""
    ends = [(int(s), int(r)) for s, r in zip(world.sender, world.receiver, strict=True)]
    touched = [(s, r) for s, r in ends if s in coalition or r in coalition]
    heard = sorted({s for s, r in touched if r in coalition} | set(coalition))
    named = [f"node {i}" for i in heard]
    return {"x": named, "u": named, "y": [f"node {i}" for i in coalition], "M": [f"{s} -> {r}" for s, r in touched]}


def _write(file: Path, head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([v.item() if isinstance(v, np.generic) else v for v in row] for row in rows)
