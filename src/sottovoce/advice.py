"""The least changes that lift a verdict: each is tried and audited again before it is said.

Tried, the least first: links that are sealed (against a wire-tapper); a random start of one iteration; an edge to somebody who is
not among the curious; late weights that stay secret. Where a method opens sums, such an edge, and noise on the sums. Where records
are read off the sum of few, no change to the method helps that keeps the sum exact: noise on it, and more honest sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .auditor.grounds import EXPECTED
from .auditor.names import adversary_name, node_name
from .auditor.report import Report
from .auditor.verdict import Verdict
from .errors import SottovoceError
from .graph import Graph
from .progress import Bar
from .registry import algorithm

WORST = ("READ", "READ UP TO", "NARROWED")
NOISE = "calibrated-noise"
SECRET = "secret-late-weights:each=coordinate"


@dataclass(frozen=True)
class Proposal:
    """A change: another mechanism, a parameter of the method, another graph or method, or less to fear from the curious."""

    text: str
    mechanisms: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    graph: Graph | None = None
    method: str | None = None  # in place of the one that was audited, and of all that lay on it
    curious: tuple[int, ...] | None = None  # who is left of them


def advice_for(
    report: Report, audit: Callable[..., Report], method: Any, problem: Any, graph: Any, played: dict[str, Any]
) -> tuple[str, ...]:
    """For the worst verdict on each asset, the least change that lifts it; what none of them lifts is said too."""
    if not isinstance(graph, Graph):
        return ()
    labels = (*graph.labels, *(f"helper {h}" for h in range(algorithm(method).helpers)))
    said, worst = [], list(_one_of_each(report))
    with Bar("audit: what would help", len(worst)) as watch:
        for done, verdict in enumerate(worst, 1):
            whom, who = node_name(verdict.node, labels), adversary_name(verdict.adversary, labels)
            what = f"{verdict.asset} of {whom} against {who}"
            for proposals in _proposals(verdict, problem, graph, played, bool(algorithm(method).opens)):
                tried = []
                for proposal in proposals:
                    now = _again(proposal, verdict, audit, method, problem, graph, played)
                    if now is not None and now.protection > verdict.protection:
                        said.append(f"{what}: {proposal.text} turns {verdict.verdict} into {now.verdict}")
                        break
                    tried.append(proposal.text)
                else:
                    said.append(f"{what} stays {verdict.verdict}: {'; '.join(tried) or 'nothing that could be tried fits'}")
            watch(done)
    return tuple(said)


def _one_of_each(report: Report) -> Iterator[Verdict]:
    """The worst verdict on each asset, for each kind of adversary."""
    seen = set()
    for verdict in sorted(report.verdicts, key=lambda v: (v.protection, len(v.adversary), v.node)):
        kind = (verdict.asset, isinstance(verdict.adversary, str))
        if verdict.verdict in WORST and verdict.asset != "start" and kind not in seen:  # x^0 tells nothing if it is drawn
            seen.add(kind)
            yield verdict


def _proposals(
    verdict: Verdict, problem: Any, graph: Graph, played: dict[str, Any], opens: bool
) -> Iterator[Iterable[Proposal]]:
    """Lists of changes; of each the first that lifts the verdict is said."""
    masked = any(applied.mechanism.name == "function-masks" for applied in played["mechanisms"])
    together = not isinstance(verdict.adversary, str) and len(verdict.evidence.get("nodes", ())) > 1
    yield _noisy_sum(problem) if masked and together else _changes(verdict, graph, played, opens)
    if verdict.asset == "record" and together and len(verdict.adversary) > 1:
        yield _more_honest(verdict, graph)


def _noisy_sum(problem: Any) -> Iterator[Proposal]:
    """Nothing that lies on a masked cost hides what the sum of few tells."""
    method = "private-least-squares" if problem.family.quadratic else "private-newton"
    yield Proposal(f"noise on the sum ({method} with mechanism {NOISE}, and the sensitivity of a record)", (NOISE,), method=method)


def _more_honest(verdict: Verdict, graph: Graph) -> Iterator[Proposal]:
    """More sites among whom the records could be anybody's."""
    members = tuple(i for i in verdict.adversary if not isinstance(i, str))
    for count in range(1, len(members)):
        names = " and ".join(str(graph.labels[i]) for i in members[:count])
        yield Proposal(f"having more honest sites ({names} not among the curious)", curious=members[count:])


def _changes(verdict: Verdict, graph: Graph, played: dict[str, Any], opens: bool) -> Iterator[Proposal]:
    """Changes to what was played, the least first."""
    have = {applied.mechanism.name for applied in played["mechanisms"]}
    if isinstance(verdict.adversary, str):
        if "encrypted-links" not in have:
            yield Proposal("sealing the links (mechanism encrypted-links)", ("encrypted-links",))
        return
    if opens:
        yield from _joined(graph, verdict)
        if NOISE not in have:
            yield Proposal(f"noise on the sums (mechanism {NOISE}, with the sensitivity of a record)", (NOISE,))
        return
    if played.get("K") == 0:
        yield Proposal("a random start (K=1)", parameters={"K": 1})
    elif "K" not in played and "random-start" not in have:
        yield Proposal("a random start (mechanism random-start:K=1)", ("random-start:K=1",))
    yield from _joined(graph, verdict)
    if "secret-late-weights" not in have:
        yield Proposal(f"late weights that stay secret (mechanism {SECRET})", (SECRET,))


def _joined(graph: Graph, verdict: Verdict) -> Iterator[Proposal]:
    """An edge to somebody honest."""
    other = _stranger(graph, verdict)
    if other is not None:
        a, b = verdict.node, other
        ends = " and ".join(str(graph.labels[i]) for i in (a, b))
        wider = Graph(graph.n, [*graph.edges, (a, b), (b, a)], labels=graph.labels)
        yield Proposal(f"an edge both ways between {ends}", graph=wider)


def _stranger(graph: Graph, verdict: Verdict) -> int | None:
    """The first node that is neither a neighbour nor among the curious."""
    near = {verdict.node, *graph.in_neighbours(verdict.node), *graph.out_neighbours(verdict.node), *verdict.adversary}
    return next((j for j in range(graph.n) if j not in near), None)


def _again(
    proposal: Proposal, verdict: Verdict, audit: Callable[..., Report], method: Any, problem: Any, graph: Graph,
    played: dict[str, Any],
) -> Verdict | None:  # fmt: skip
    """The verdict after the change; None where the change does not fit the method."""
    adversary = verdict.adversary if proposal.curious is None else proposal.curious
    who = {"curious": [], "wiretap": True} if isinstance(adversary, str) else {"curious": [set(adversary)]}
    kept = {"seed": played["seed"]} if proposal.method else {**played, **proposal.parameters}
    options: dict[str, Any] = {**kept, **who, "victims": [verdict.node], "advise": False}
    options["mechanisms"] = (*(() if proposal.method else played["mechanisms"]), *proposal.mechanisms)
    if proposal.graph is not None:
        options["stepsize"] = "auto"  # what suited the graph may not suit the wider one
    try:
        again = audit(proposal.method or method, problem, proposal.graph or graph, **options)
    except SottovoceError:
        return None
    if verdict.asset == "record" and any(EXPECTED in line for line in again.public):
        return None  # that no attack read them is no remedy
    return next(iter(again.of(verdict.node, verdict.asset, adversary)), None)
