"""The least changes that lift a verdict: each is tried and audited again before it is said.

Tried, in this order: links that are sealed (against a wire-tapper), a random start, late weights that stay secret, an edge to
somebody who is not among the curious.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .auditor.report import Report, name_of
from .auditor.verdict import Verdict
from .errors import SottovoceError
from .graph import Graph

MOST = 6  # proposals that are tried
WORST = ("READ", "READ UP TO")


@dataclass(frozen=True)
class Proposal:
    """A change: more mechanisms, or another graph."""

    text: str
    mechanisms: tuple[Any, ...] = ()
    graph: Graph | None = None


def advice_for(
    report: Report, audit: Callable[..., Report], method: Any, problem: Any, graph: Any, mechanisms: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[str, ...]:  # fmt: skip
    """What helped, in words; what did not help is said too."""
    if not isinstance(graph, Graph):
        return ()
    said: list[str] = []
    for verdict in _one_of_each(report):
        for proposal in _proposals(verdict, graph, mechanisms):
            if len(said) >= MOST:
                return tuple(said)
            line = _tried(proposal, verdict, audit, method, problem, graph, mechanisms, options)
            if line is not None and line not in said:
                said.append(line)
    return tuple(said)


def _one_of_each(report: Report) -> Iterator[Verdict]:
    """The worst verdicts, one an asset and kind of adversary."""
    seen = set()
    for verdict in sorted(report.verdicts, key=lambda v: (v.protection, v.node)):
        kind = (verdict.asset, isinstance(verdict.adversary, str))
        if verdict.verdict in WORST and kind not in seen:
            seen.add(kind)
            yield verdict


def _proposals(verdict: Verdict, graph: Graph, mechanisms: tuple[Any, ...]) -> Iterator[Proposal]:
    have = {applied.mechanism.name for applied in mechanisms}
    if verdict.adversary == "wire":
        if "encrypted-links" not in have:
            yield Proposal("seal the links (mechanism encrypted-links)", ("encrypted-links",))
        return
    if "random-start" not in have:
        yield Proposal("a random start (mechanism random-start:K=1)", ("random-start:K=1",))
    if "secret-late-weights" not in have:
        secret = "secret-late-weights:each=coordinate"
        yield Proposal(f"late weights that stay secret ({secret})", (secret,))
    other = _stranger(graph, verdict)
    if other is not None:
        a, b = verdict.node, other
        wider = Graph(graph.n, [*graph.edges, (a, b), (b, a)], labels=graph.labels)
        yield Proposal(f"an edge both ways between {a} and {b}", graph=wider)


def _stranger(graph: Graph, verdict: Verdict) -> int | None:
    """The first node that is neither a neighbour nor among the curious."""
    near = {verdict.node, *graph.in_neighbours(verdict.node), *graph.out_neighbours(verdict.node), *verdict.adversary}
    return next((j for j in range(graph.n) if j not in near), None)


def _tried(
    proposal: Proposal, verdict: Verdict, audit: Callable[..., Report], method: Any, problem: Any, graph: Graph,
    mechanisms: tuple[Any, ...], options: dict[str, Any],
) -> str | None:  # fmt: skip
    who: dict[str, Any] = {"wiretap": True} if isinstance(verdict.adversary, str) else {"curious": [set(verdict.adversary)]}
    try:
        again = audit(
            method, problem, proposal.graph or graph, mechanisms=(*mechanisms, *proposal.mechanisms), victims=[verdict.node],
            advise=False, **who, **options,
        )  # fmt: skip
    except SottovoceError:
        return None  # it does not fit this method
    now = next((v for v in again.of(verdict.node, verdict.asset) if v.adversary == verdict.adversary), None)
    if now is None:
        return None
    against = f"{'a ' if verdict.adversary == 'wire' else ''}{name_of(verdict.adversary)}"
    what = f"{verdict.asset} of node {verdict.node} against {against}"
    change = f"{verdict.verdict} to {now.verdict}" if now.protection > verdict.protection else f"stays {now.verdict}"
    return f"{proposal.text}: {what}: {change}"
