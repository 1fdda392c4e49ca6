"""`compare_privacy`: the same problem and graph behind every protection that fits, with what each hides and what it costs.

For each stack: the verdicts against one curious neighbour and against everybody but the victim and one honest neighbour, with the
error of the best attack; the error of the optimum; iterations, rounds, bytes and time until the error is a hundred-millionth of
what it was; and, for masks on costs, mu with the iterations that each mu costs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .auditor.attack import ASSETS
from .auditor.judge import Adversary, Judge
from .auditor.verdict import PROTECTION, Verdict, strongest
from .errors import InputError, NotInstalled, ParameterError, RunError
from .graph import Graph
from .problem import Problem
from .protection import protection
from .registry import Applied, mechanism
from .run import run
from .sequence import as_graph
from .simulate.result import Result
from .simulate.task import applied
from .stepsize import cautious
from .stepsize import stepsize as advised
from .transcript import Transcript
from .view import truth_of, view_of

SCHEMA = 1
FAR = 1e-8  # the error at which rounds are counted, in units of the first one
AUDITED = 80  # iterations of a rehearsal that is audited
FEATURES, MANY = 5, 20_000  # masks of features have so many times 2 (T + 1) d of them, unless those would be many
MUS = (4.0, 2.0, 1.0, 0.5)  # of the curve



@dataclass(frozen=True)
class Stack:
    """A method and what is around it."""

    name: str
    method: str
    mechanisms: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    iterations: int | None = None  # of a method that needs only so many


@dataclass(frozen=True)
class Row:
    """What became of one stack."""

    name: str
    method: str
    mechanisms: tuple[str, ...]
    error: float  # of the optimum, where it stopped
    iterations: int | None  # until the error is FAR of the first; None: not reached
    rounds: int | None  # exchanges in these, the set-up among them
    bytes: int | None  # over all edges
    microseconds: float  # an iteration of all nodes together, on this machine, in NumPy
    verdicts: tuple[dict[str, Any], ...]  # adversary, asset, verdict, attack, error
    mu: float | None = None
    epsilon: float | None = None

    def worst(self, asset: str) -> dict[str, Any]:
        """The worst verdict on an asset."""
        return min((v for v in self.verdicts if v["asset"] == asset), key=lambda v: PROTECTION[v["verdict"]])


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
        said = lambda row: {asset: row.worst(asset)["verdict"] for asset in ("offset", "curvature", "along-the-way")}
        return [{**{name: getattr(row, name) for name in plain}, **said(row)} for row in self.rows]

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
    problem: Problem, graph: Any, *, bound: Any = None, stacks: Iterable[Stack] | None = None, iterations: int = 2000,
    seed: int = 0, victim: int = 0, encrypted: bool = False,
) -> PrivacyComparison:  # fmt: skip
    """The protections that fit `problem` and `graph`, side by side.

    bound       the largest record, (norm of features, |target|) or one number; then masks are scaled to mu = 1 for it, and what
                each mu costs is found
    stacks      which; every one that is known here unless given
    iterations  at most so many of methods that iterate
    victim      whose secrets are looked at, by one neighbour and by everybody but its least connected one
    encrypted   also Paillier, where it fits; simulated in the clear, so the time and size of encryption are not in the figures
    """
    network = as_graph(graph)
    if not isinstance(network, Graph):
        raise ParameterError("protections are compared on one graph; of a sequence, compare one of its graphs")
    adversaries = _adversaries(network, victim)
    chosen = list(known(problem, network, bound, iterations, encrypted) if stacks is None else stacks)
    rows, refused = [], {}
    for stack in chosen:
        try:
            rows.append(_row(stack, problem, network, adversaries, victim, bound, iterations, seed))
        except (InputError, RunError, NotInstalled) as error:
            refused[stack.name] = str(error)
    curve = () if bound is None else tuple(_curve(problem, network, bound, iterations, seed))
    about = {
        "problem": repr(problem), "graph": repr(network), "victim": victim, "adversaries": [list(a) for a in adversaries],
        "iterations": iterations, "seed": seed, "far": FAR, "bound": None if bound is None else np.ravel(bound).tolist(),
    }  # fmt: skip
    return PrivacyComparison(tuple(rows), refused, curve, about)


def known(problem: Problem, graph: Graph, bound: Any, iterations: int, encrypted: bool) -> list[Stack]:
    """Every stack that is compared unless told otherwise; what does not fit is found out by trying."""
    tracked = {"A": "uniform"}  # x and the stepsize times y ride side by side: the row that shows most
    paper, late = {"K": 1}, "secret-late-weights:each=coordinate"
    most, masks = _most(problem, iterations), {q: _masks(problem, graph, bound, iterations, q) for q in (1, 3)}
    GT, PGT = "gradient-tracking", "private-gradient-tracking"
    opened = (("private-least-squares", 1), ("private-newton", 40), ("private-gradient", 300))
    return [
        Stack("nothing", GT, (), tracked),
        Stack("the paper, K = 1", PGT, (), paper),
        Stack("and a secret late weight a coordinate", PGT, (late,), paper),
        Stack("noise of 0.001 on messages", GT, ("message-noise:scale=0.001",), tracked),
        Stack("only sums are read", GT, ("aggregate-only",), tracked),
        Stack("masks on the costs", GT, (masks[1],), tracked, most),
        Stack("masks on the costs, 3 mixings", GT, (masks[3],), {**tracked, "consensus": 3}, most),
        Stack("masks, and only sums are read", GT, (masks[1], "aggregate-only"), tracked, most),
        *(Stack(f"one opened sum, {name}", name, (), {}, n) for name, n in opened),
        *([Stack("Paillier, not encrypted here", "paillier")] if encrypted else []),
    ]


def _most(problem: Problem, iterations: int) -> int:
    """Features are counted out in the end, so their runs are bounded."""
    return iterations if problem.family.quadratic else min(iterations, 400)


def _masks(problem: Problem, graph: Graph, bound: Any, iterations: int, q: int, mu: float = 1.0) -> Applied:
    """Masks of the kind that the costs take; scaled so that the declared record has this mu."""
    kind = "quadratic" if problem.family.quadratic else "matern"
    options: dict[str, Any] = {"kind": kind, "scale": 10.0 if kind == "quadratic" else 1.0}
    if kind == "matern":
        least = 2 * (_most(problem, iterations) + 1) * problem.d
        options |= {"amplitude": 3.0, "features": max(least, min(FEATURES * least, MANY))}
    if bound is None:
        return mechanism("function-masks", **options)
    factor = _factor(problem, graph, mechanism("function-masks", **options), bound, q, mu)
    scaled = {name: options[name] * factor for name in ("scale", "amplitude") if name in options}
    return mechanism("function-masks", **{**options, **scaled})


def _factor(problem: Problem, graph: Graph, masks: Applied, bound: Any, q: int, mu: float) -> float:
    """By what the masks must grow; where they hide along the way, the way is rehearsed."""
    result = None if problem.family.quadratic else _rehearsed(problem, graph, masks, q)
    return protection(problem, graph, masks, bound=bound, result=result).times(mu)


def _rehearsed(problem: Problem, graph: Graph, masks: Applied, q: int) -> Result:
    return run("gradient-tracking", problem, graph, mechanisms=masks, iterations=AUDITED, record=True, A="uniform", consensus=q)


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


def _row(
    stack: Stack, problem: Problem, graph: Graph, adversaries: list[Adversary], victim: int, bound: Any, iterations: int, seed: int
) -> Row:
    most = iterations if stack.iterations is None else min(iterations, stack.iterations)
    settings = {"mechanisms": stack.mechanisms, "seed": seed, **stack.options}
    settings["stepsize"] = _stepsize(stack, problem, graph, seed)
    begun = time.perf_counter()
    result = run(stack.method, problem, graph, iterations=most, backend="eager", **settings)
    spent = time.perf_counter() - begun
    short = run(stack.method, problem, graph, iterations=min(most, AUDITED), record=True, backend="eager",
                **settings)  # fmt: skip
    assert short.transcript is not None
    at = reached(result)
    mu = _mu(stack, problem, graph, bound, short)
    return Row(
        stack.name, stack.method, tuple(map(repr, applied(stack.mechanisms))), float(np.median(result.final)), at,
        None if at is None else int(result.messages[: at + 1].sum() // len(graph.edges)),
        None if at is None else int(result.bytes[: at + 1].sum()), 1e6 * spent / max(result.iterations, 1),
        tuple(_judged(short.transcript, graph, adversaries, victim)), *mu,
    )  # fmt: skip


def _stepsize(stack: Stack, problem: Problem, graph: Graph, seed: int) -> float:
    """The advised one; a cautious one where the adviser finds none."""
    given = {"mechanisms": stack.mechanisms, "seed": seed, **stack.options}
    try:
        return advised(stack.method, problem, graph, **given).good
    except ParameterError as error:
        if "no stepsize" not in str(error):
            raise
        return cautious(stack.method, problem, graph, **given)


def reached(result: Result) -> int | None:
    """The first recorded iteration whose median error is FAR of the first."""
    errors = np.median(result.error, 0)
    there = np.flatnonzero(errors <= FAR * errors[0])
    return int(result.recorded[there[0]]) if len(there) else None


def _mu(stack: Stack, problem: Problem, graph: Graph, bound: Any, short: Result) -> tuple[float | None, float | None]:
    masks = next((a for a in applied(stack.mechanisms) if a.mechanism.name == "function-masks"), None)
    if masks is None or bound is None:
        return None, None
    rows = protection(problem, graph, masks, bound=bound, result=short).rows
    worst = max(rows, key=lambda row: row.worst)
    return worst.worst, worst.epsilon


def _judged(transcript: Transcript, graph: Graph, adversaries: list[Adversary], victim: int) -> Iterable[dict[str, Any]]:
    """The strongest verdict of each adversary on each asset: what it reads as a whole, not through its parts."""
    none: Callable[..., None] = lambda *_: None
    judge = Judge(lambda who: view_of(transcript, who), truth_of(transcript), graph, [victim], none)
    for adversary in adversaries:
        readings = judge.readings(adversary)[0]
        for asset in ASSETS:
            found = readings.get((victim, asset), [])
            best = strongest(found) if found else Verdict(victim, asset, adversary, "NOT DECIDED")
            told = {name: best.evidence.get(name) for name in ("attack", "error", "text")}
            yield {"adversary": list(adversary), "asset": asset, "verdict": best.verdict, **told}


def _curve(problem: Problem, graph: Graph, bound: Any, iterations: int, seed: int) -> Iterable[dict[str, Any]]:
    """What each mu costs in iterations and in rounds."""
    for q in (1, 3):
        for mu in (None, *MUS):
            stack = () if mu is None else (_masks(problem, graph, bound, iterations, q, mu),)
            result = run(
                "gradient-tracking", problem, graph, mechanisms=stack, A="uniform", consensus=q, seed=seed, backend="eager",
                iterations=iterations if mu is None else _most(problem, iterations),
            )  # fmt: skip
            at = reached(result)
            yield {"consensus": q, "mu": mu, "iterations": at, "rounds": None if at is None else 2 * q * at,
                   "rate": float(result.rate())}  # fmt: skip


def _finite(tree: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(tree, dict):
        return {str(key): _finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_finite(value) for value in tree]
    if isinstance(tree, float | np.floating):
        return float(tree) if np.isfinite(tree) else None
    return tree.item() if isinstance(tree, np.generic) else tree
