"""`audit`: rehearse a method, record it, and let the auditor say what a coalition or a wire-tapper learns from the views.

The auditor itself never sees the simulator: it gets views that could have been loaded from disk, and the truth for its scorer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .advice import advice_for
from .auditor.grounds import assumptions, checked, facts_of, gallery, public
from .auditor.judge import Adversary, Judge
from .auditor.report import Report
from .auditor.search import Witnesses
from .auditor.theorems import coalitions
from .auditor.verdict import Verdict
from .auditor.witness import witness
from .auditor.witness_files import write
from .errors import ParameterError
from .graph import Graph
from .problem import Problem
from .progress import Bar
from .registry import Algorithm, algorithm
from .run import run, usual
from .sequence import as_graph
from .simulate.checks import named
from .simulate.helpers import joined
from .simulate.task import applied
from .transcript import Transcript
from .view import WIRE, Truth, View, truth_of, view_of

ITERATIONS = 300  # of a rehearsal, unless the method takes fewer


def audit(
    method: str | Algorithm, /, problem: Problem, graph: Any, *, curious: Any = None, wiretap: bool = False, victims: Any = None,
    mechanisms: Any = (), stepsize: Any = "auto", iterations: int | None = None, x0: Any = None, runs: Any = 1, seed: int = 0,
    side_information: Mapping[str, Any] | None = None, at_most: int | None = None, advise: bool = True,
    worlds: str | Path | None = None, **parameters: Any,
) -> Report:  # fmt: skip
    """What would `curious` nodes learn of the others if `method` ran on `problem` over `graph`?

    curious            a set of nodes, several sets, or None: each single node; `at_most=t`: every coalition of up to t nodes
    wiretap            also somebody who listens on all links
    victims            whose secrets are looked at; None: everybody's
    side_information   what the curious know beforehand of every value: {"low": 0, "high": 1, "integer": True}
    advise             try the least changes that could lift the worst verdicts, audit each again, and say what they are worth
    worlds             a folder for the two worlds of every witness, side by side
    The other options are those of `run`; 300 iterations, or as many as the method takes, unless given. The rehearsal uses a
    simulation seed, and the report says so.
    """
    method, graph = algorithm(method), named(as_graph(graph), problem)
    if isinstance(network := graph, Graph):
        everybody = joined(network, method.helpers, False)  # a helper may be curious too
        asked(everybody, network.n, curious, at_most, victims)  # refused before anything is played
    iterations = usual(method, iterations, ITERATIONS)
    result = run(
        method, problem, graph, stepsize=stepsize, iterations=iterations, runs=runs, seed=seed, mechanisms=mechanisms,
        record=True, x0=x0, **parameters,
    )  # fmt: skip
    assert result.transcript is not None
    report = audit_transcript(
        result.transcript, curious=curious, wiretap=wiretap, victims=victims, side_information=side_information, at_most=at_most,
        worlds=worlds,
    )  # fmt: skip
    played = {
        "mechanisms": applied(mechanisms), "stepsize": _one(result.stepsize), "iterations": iterations, "x0": x0, "runs": runs,
        "seed": seed, "side_information": side_information, **parameters,
    }  # fmt: skip
    report.facts.update(seed=seed, iterations=result.iterations, error=float(np.median(result.final)), problem=repr(problem))
    report.facts["leaks"] = method.leaks
    report = with_commands(report, functools.partial(_call, method.name, played), seed)
    if advise:
        report = replace(report, advice=advice_for(report, audit, method, problem, as_graph(graph), played))
    return report


def audit_transcript(
    transcript: Transcript, *, curious: Any = None, wiretap: bool = False, victims: Any = None,
    side_information: Mapping[str, Any] | None = None, truth: Truth | None = None, at_most: int | None = None,
    worlds: str | Path | None = None,
) -> Report:  # fmt: skip
    """The same for a recorded run. Where nobody knows the truth, READ means that held-back messages were foretold.

    Of a deployed run there are the parts that some nodes kept (`pooled`): unless `curious` says otherwise, these look together;
    where all parts are here, each node alone.
    """
    graph, told = transcript.graph, checked(side_information)
    truth = truth_of(transcript) if truth is None else truth
    parties = graph.n - transcript.header.get("helpers", 0)
    groups, watched = asked(graph, parties, _keepers(transcript, curious, at_most), at_most, victims)
    if at_most is not None and transcript.nodes is not None:
        groups = [group for group in groups if set(group) <= set(transcript.nodes)]
    adversaries: list[Adversary] = [*groups, *[WIRE] * wiretap]
    found = Witnesses(transcript)
    judge = Judge(functools.cache(lambda who: _view(transcript, who, told)), truth, graph, watched, found.evidence)
    verdicts: tuple[Verdict, ...] = ()
    with Bar("audit: who looks", len(adversaries)) as watch:
        for done, adversary in enumerate(adversaries, 1):
            verdicts += tuple(judge.verdicts(adversary))
            watch(done)
    if worlds is not None:
        _write_worlds(found, verdicts, Path(worlds))
    return Report(
        verdicts=verdicts, assumptions=assumptions(transcript, truth, told), public=tuple(public(transcript)),
        facts=facts_of(transcript, graph) | {"adversaries": len(adversaries)}, attacks=gallery(transcript.header), advice=(),
    )  # fmt: skip


def _keepers(transcript: Transcript, curious: Any, at_most: int | None) -> Any:
    """Who looks: unless it is said, of a deployed run those whose parts are here, together, if somebody is left to look at."""
    some = transcript.nodes is not None and len(transcript.nodes) < transcript.graph.n
    return [set(transcript.nodes or ())] if some and curious is None and at_most is None else curious


def asked(
    graph: Graph, parties: int, curious: Any, at_most: int | None, victims: Any
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Who looks, and at whom; the nodes beyond the parties are helpers, who may look but have nothing to hide."""
    groups = [tuple(sorted(c)) for c in coalitions(graph, curious, at_most)] if curious != [] else []
    return groups, list(range(parties)) if victims is None else _victims(graph, parties, victims)


def _view(transcript: Transcript, who: Adversary, told: dict[str, Any]) -> View:
    view = view_of(transcript, who)
    return replace(view, header={**view.header, "side_information": told}) if told else view


def with_commands(report: Report, command: Callable[[Verdict | None], str], seed: int | None) -> Report:
    """The report with the line that makes it again, and in each verdict the line that makes that one."""
    facts = {**report.facts, "command": command(None)}
    again = lambda v: {**v.evidence, "command": command(v)} | ({} if seed is None else {"seed": seed})
    return replace(report, facts=facts, verdicts=tuple(replace(v, evidence=again(v)) for v in report.verdicts))


def _call(name: str, played: Mapping[str, Any], verdict: Verdict | None) -> str:
    """The call in Python; problem and graph are those that were given."""
    options = {k: _typed(v) for k, v in played.items() if v is not None and (k, v) not in (("mechanisms", ()), ("runs", 1))}
    if verdict is not None:
        who = {"wiretap": "True", "curious": "[]"} if verdict.adversary == WIRE else {"curious": f"[{set(verdict.adversary)}]"}
        options |= {**who, "victims": f"[{verdict.node}]"}
    return f"sv.audit({name!r}, problem, graph, {', '.join(f'{k}={v}' for k, v in options.items())})"


def _typed(value: Any) -> str:
    """A value as it is typed; an array as its name."""
    if isinstance(value, np.ndarray):
        return "..."
    if isinstance(value, tuple):
        return f"[{', '.join(repr(str(a)) for a in value)}]"
    return repr(value)


def _one(stepsize: np.ndarray) -> Any:
    return [float(s) for s in stepsize] if len(stepsize) > 1 else float(stepsize[0])


def _write_worlds(found: Witnesses, verdicts: Iterable[Verdict], folder: Path) -> None:
    """A folder a witness: node-0-against-1-2."""
    for v in verdicts:
        if v.verdict == "WITNESSED" and isinstance(v.adversary, tuple) and found.world is not None:
            other = witness(found.world, v.node, found.delta, v.adversary)
            write(other, folder / f"node-{v.node}-against-{'-'.join(map(str, v.adversary))}")


def _victims(graph: Graph, parties: int, victims: Iterable[Any]) -> list[int]:
    found = [v if isinstance(v, int | np.integer) else graph.index(v) for v in victims]
    outside = [v for v in found if not 0 <= v < parties]
    if outside:
        raise ParameterError(f"there is no node {outside[0]} with a cost; the nodes are 0 to {parties - 1}")
    return [int(v) for v in found]
