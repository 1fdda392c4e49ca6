"""`audit`: rehearse a method, record it, and let the auditor say what a coalition or a wire-tapper learns from the views.

The auditor itself never sees the simulator: it gets views that could have been loaded from disk, and the truth for its scorer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .advice import advice_for
from .auditor.attack import attacks
from .auditor.judge import Adversary, judge, public
from .auditor.report import Report
from .auditor.theorems import coalitions
from .auditor.verdict import Verdict
from .errors import InputError, ParameterError
from .graph import Graph
from .problem import Problem
from .registry import Algorithm, algorithm
from .run import run
from .sequence import as_graph
from .simulate.task import applied
from .transcript import Transcript
from .version import __version__
from .view import WIRE, Truth, View, truth_of, view_of


def audit(
    method: str | Algorithm, /, problem: Problem, graph: Any, *, curious: Any = None, wiretap: bool = False, victims: Any = None,
    mechanisms: Any = (), stepsize: Any = "auto", iterations: int = 300, x0: Any = None, runs: Any = 1, seed: int = 0,
    side_information: Any = None, at_most: int | None = None, advise: bool = True, **parameters: Any,
) -> Report:  # fmt: skip
    """What would `curious` nodes learn of the others if `method` ran on `problem` over `graph`?

    curious     a set of nodes, several sets, or None: each single node; `at_most=t`: every coalition of up to t nodes
    wiretap     also somebody who listens on all links
    victims     whose secrets are looked at; None: everybody's
    advise      try the least changes that could lift the worst verdicts, audit each again, and say what they are worth
    The other options are those of `run`. The rehearsal uses a simulation seed, and the report says so.
    """
    result = run(
        method, problem, graph, stepsize=stepsize, iterations=iterations, runs=runs, seed=seed, mechanisms=mechanisms,
        record=True, x0=x0, **parameters,
    )  # fmt: skip
    assert result.transcript is not None
    report = audit_transcript(
        result.transcript, curious=curious, wiretap=wiretap, victims=victims, side_information=side_information, at_most=at_most
    )
    if advise:
        options = dict(
            stepsize=result.stepsize if len(result.stepsize) > 1 else float(result.stepsize[0]),
            iterations=iterations, x0=x0, runs=runs, seed=seed, **parameters,
        )  # fmt: skip
        report = replace(report, advice=advice_for(report, audit, method, problem, as_graph(graph), applied(mechanisms), options))
    report.facts.update(seed=seed, iterations=result.iterations, error=float(np.median(result.final)), problem=repr(problem))
    report.facts["leaks"] = algorithm(method).leaks
    return report


def audit_transcript(
    transcript: Transcript, *, curious: Any = None, wiretap: bool = False, victims: Any = None, side_information: Any = None,
    truth: Truth | None = None, at_most: int | None = None,
) -> Report:  # fmt: skip
    """The same for a recorded run; without a truth nothing can be scored, and only the theorems speak."""
    graph = Graph(transcript.header["graph"]["n"], transcript.edges)
    truth = truth_of(transcript) if truth is None else truth
    adversaries: list[Adversary] = [tuple(sorted(c)) for c in coalitions(graph, curious, at_most)]
    if wiretap:
        adversaries.append(WIRE)
    watched = range(graph.n) if victims is None else _victims(graph, victims)
    view = functools.cache(lambda who: view_of(transcript, who))
    verdicts = judge(view, truth, graph, adversaries, watched, Witnesses(transcript))
    return Report(
        verdicts=tuple(verdicts), assumptions=assumptions(transcript, truth), public=tuple(public(graph)),
        facts=_facts(transcript, graph, adversaries), attacks=_gallery(), advice=(),
    )  # fmt: skip


class Witnesses:
    """Builds another world for a victim and a coalition, and replays it; None where there is none to be had."""

    def __init__(self, transcript: Transcript):
        self.transcript = transcript

    @functools.cached_property
    def world(self) -> Any:
        from .auditor.worlds import world_of

        try:
            return world_of(self.transcript)
        except InputError:
            return None

    def __call__(self, victim: int, coalition: tuple[int, ...]) -> dict[str, Any] | None:
        from .auditor.witness import witness

        if self.world is None:
            return None
        delta = 1.0 + np.arange(self.transcript.header["coordinates"])
        try:
            found = witness(self.world, victim, delta, coalition)
        except InputError:
            return None
        return {
            "delta": delta.tolist(), "neighbour": int(found.neighbour), "case": str(found.case),
            "difference": float(found.difference), "log_likelihood_ratio": found.log_likelihood_ratio,
            "text": "another gradient, shifted by a constant, gives the same view",
        }  # fmt: skip


def assumptions(transcript: Transcript, truth: Truth | None) -> tuple[str, ...]:
    """What the verdicts rest on."""
    late = {d.known for (name, k), d in transcript.draws.items() if k >= transcript.header["settled"] and name in "RACB"}
    known = "known to all, as the paper assumes" if late <= {"all"} else "known to their owners only"
    deployed = transcript.header["kind"] != "simulation"
    return (
        "the curious follow the protocol and keep everything they see (honest but curious); they do not deviate from it",
        "each coalition knows its own costs, states and draws, the messages on its edges, the graph, the method and its laws",
        f"weights and stepsizes from iteration {transcript.header['settled']} on are {known}",
        "a deployed run was audited: its draws came from the operating system"
        if deployed
        else "a rehearsal was audited: its draws come from a simulation seed, which a deployment does not have",
        "estimates are scored against the truth" if truth is not None else "there is no truth to score against; theorems only",
    )


def _facts(transcript: Transcript, graph: Graph, adversaries: list[Adversary]) -> dict[str, Any]:
    header = transcript.header
    return {
        "algorithm": header["algorithm"], "parameters": header["parameters"], "mechanisms": header["mechanisms"],
        "kind": header["kind"], "graph": {"n": graph.n, "edges": [list(e) for e in graph.edges], "digest": graph.digest()},
        "stepsize": header["stepsize"], "iterations": transcript.iterations, "adversaries": len(adversaries),
        "sottovoce": __version__,
    }  # fmt: skip


def _gallery() -> tuple[dict[str, str], ...]:
    return tuple({"id": a.id, "name": a.name, "uses": a.uses, "idea": a.idea, "metric": a.metric} for a in attacks().values())


def _victims(graph: Graph, victims: Iterable[Any]) -> list[int]:
    found = [v if isinstance(v, int | np.integer) else graph.index(v) for v in victims]
    outside = [v for v in found if not 0 <= v < graph.n]
    if outside:
        raise ParameterError(f"there is no node {outside[0]}; the nodes are 0 to {graph.n - 1}")
    return [int(v) for v in found]


def worst_case(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """One verdict for each node and asset: the least protected over all adversaries."""
    from .auditor.verdict import strongest

    groups: dict[tuple[int, str], list[Verdict]] = {}
    for v in verdicts:
        groups.setdefault((v.node, v.asset), []).append(v)
    return [min(group, key=lambda v: (v.protection, strongest(group) is not v)) for group in groups.values()]


__all__ = ["Adversary", "Report", "View", "audit", "audit_transcript", "worst_case"]
