"""`compare_privacy`: the same problem and graph behind every protection that fits, with what each hides and what it costs.

For each stack: the verdicts against one curious neighbour and against everybody but the victim and one honest neighbour, with the
error of the best attack; the error of the optimum; iterations, rounds, bytes and time until the error is a hundred-millionth of
what it was; and, for masks on costs, mu with the iterations that each mu costs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .auditor.grounds import NEIGHBOURS
from .auditor.judge import Adversary
from .errors import InputError, NotInstalled, ParameterError, RunError
from .graph import Graph
from .privacy_rows import FAR, MUS, Row, Scene, Stage
from .privacy_stacks import Sizes, Stack, known
from .problem import Problem
from .progress import Bar
from .sequence import as_graph

SCHEMA = 1


@dataclass(frozen=True)
class PrivacyComparison:
    """A row a stack; `refused` says why others do not fit; `curve` holds (consensus, mu, iterations, rounds) of masks."""

    rows: tuple[Row, ...]
    refused: dict[str, str]
    curve: tuple[dict[str, Any], ...]
    facts: dict[str, Any]

    def table(self) -> list[dict[str, Any]]:
        """A row a stack, the verdicts in a word each."""
        plain = ("name", "error", "iterations", "rounds", "bytes", "microseconds", "mu")
        said = lambda row: {asset: row.worst(asset)["verdict"] for asset in self.shown()}
        return [{**{name: getattr(row, name) for name in plain}, **said(row)} for row in self.rows]

    def notes(self) -> list[str]:
        """What was done otherwise than in other rows, and why others do not fit; rows that share a note together."""
        alike: dict[str, list[str]] = {}
        for name, note in [*((row.name, row.note) for row in self.rows), *self.refused.items()]:
            alike.setdefault(note, []).append(name)
        return [f"{'; '.join(names)}: {note}" for note, names in alike.items() if note] + self._left_out()

    def _left_out(self) -> list[str]:
        """Which points of the curve were not played."""
        left = [f"mu {p['mu']:g} with {_mixings(p['consensus'])} {p['needs']:,}" for p in self.curve if p["needs"]]
        return [f"not played, as iterations would be many: {', '.join(left)} (--iterations plays as many)"] if left else []

    def shown(self) -> tuple[str, ...]:
        """The assets that a table has columns for: records only where some stack gives them away."""
        records = any(row.worst("record")["verdict"] not in ("NOT DECIDED", "WITNESSED") for row in self.rows)
        return ("offset", "curvature", "along-the-way", *["record"] * records)

    def to_json(self) -> str:
        """Everything, versioned."""
        tree = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(_finite(tree), indent=1, allow_nan=False) + "\n"

    def save(self, file: str | Path) -> Path:
        """Write x.json or x.html."""
        file = Path(file)
        if file.suffix not in (".json", ".html"):
            raise ParameterError(f"a comparison is saved as .json or .html, not as {file.name!r}")
        from .privacy_page import page

        file.write_text(self.to_json() if file.suffix == ".json" else page(self))
        return file


def compare_privacy(
    problem: Problem, graph: Any, *, bound: Any = None, stacks: Iterable[Stack] | None = None, iterations: int | None = None,
    seed: int = 0, victim: int = 0, encrypted: bool = False,
) -> PrivacyComparison:  # fmt: skip
    """The protections that fit `problem` and `graph`, side by side.

    bound       the largest record, (norm of features, |target|) or one number; then masks are scaled to mu = 1 for it, and what
                each mu costs is found
    stacks      which; every one that is known here unless given
    iterations  at most so many of methods that iterate; 5000 unless given, and fewer where that would take minutes
    victim      whose secrets are looked at, by one neighbour and by everybody but its least connected one
    encrypted   also Paillier, really encrypted, for as many iterations as a few seconds allow
    """
    network = as_graph(graph)
    if not isinstance(network, Graph):
        raise ParameterError("protections are compared on one graph; of a sequence, compare one of its graphs")
    scene = Scene(problem, network, iterations, seed, victim, _adversaries(network, victim))
    stage = Stage(scene, Sizes(problem, network, bound))
    jobs = _jobs(stage, known() if stacks is None else list(stacks), encrypted)
    points = [] if bound is None else [(q, mu) for q in (1, 3) for mu in (None, *MUS)]
    rows, refused, curve = [], {}, []
    with Bar("compare-privacy", len(jobs) + len(points)) as watch:
        for done, (name, play) in enumerate(jobs):
            watch(done, name)
            try:
                rows.append(play())
            except (InputError, RunError, NotInstalled) as error:
                refused[name] = str(error)
        for done, (mixings, mu) in enumerate(points, len(jobs)):
            watch(done, f"mu against iterations, {_mixings(mixings)}")
            try:
                curve.append(stage.curve(mixings, mu))
            except (InputError, RunError) as error:
                refused.setdefault(f"mu against iterations, {_mixings(mixings)}", str(error))
    about = {
        "problem": repr(problem), "graph": repr(network), "victim": victim, "adversaries": [list(a) for a in scene.adversaries],
        "iterations": scene.most, "seed": seed, "far": FAR, "near": stage.near, "always": NEIGHBOURS,
        "bound": None if bound is None else np.ravel(bound).tolist(),
    }  # fmt: skip
    return PrivacyComparison(tuple(rows), refused, tuple(curve), about)


def _jobs(stage: Stage, stacks: list[Stack], encrypted: bool) -> list[tuple[str, Callable[[], Row]]]:
    """What is played, by name."""
    jobs: list[tuple[str, Callable[[], Row]]] = [(stack.name, lambda stack=stack: stage.row(stack)) for stack in stacks]
    if encrypted:
        from .privacy_encrypted import ENCRYPTED

        jobs += [(stack.name, lambda stack=stack, play=play: play(stage, stack)) for stack, play in ENCRYPTED]
    return jobs


def _mixings(count: int) -> str:
    return f"{count} mixing{'s' * (count > 1)}"


def _adversaries(graph: Graph, victim: int) -> list[Adversary]:
    """One neighbour that listens; everybody but the victim and the honest neighbour with the fewest edges to it that is heard."""
    near = [*graph.in_neighbours(victim), *graph.out_neighbours(victim)]
    if not near:
        raise ParameterError(f"node {victim} has no neighbour, so there is nobody to be protected from")
    unheard = lambda j: set(graph.out_neighbours(j)) <= {victim}
    honest = min(set(near), key=lambda j: (near.count(j), unheard(j), -j))
    listening = graph.out_neighbours(victim)[0]
    rest = tuple(j for j in range(graph.n) if j not in (victim, honest))
    return [(listening,), rest] if rest and rest != (listening,) else [(listening,)]


def _finite(tree: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(tree, dict):
        return {str(key): _finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_finite(value) for value in tree]
    if isinstance(tree, float | np.floating):
        return float(tree) if np.isfinite(tree) else None
    return tree.item() if isinstance(tree, np.generic) else tree
