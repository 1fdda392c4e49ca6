"""`solve`: the method and the protection for a problem and a graph are picked, said why, played and audited."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .auditing import audit as rehearse
from .auditing import audit_transcript
from .errors import ParameterError, ProblemError
from .graph import Graph
from .problem import Problem
from .registry import algorithm, mechanism
from .run import run
from .sequence import GraphSequence, as_graph
from .simulate.checks import named
from .simulate.result import Result

PRIVATE = ("strong", "paper", "none")
MOST = 300  # unknowns up to which sums of Hessians are carried: 45,000 numbers
FLOOD = 2**15  # words of a message up to which sums are flooded; beyond, they travel on a tree
MESSAGE, EVERYWHERE = 2**20, 2**29  # words that a message may hold on it, and all messages of one sum
NOT_REHEARSED = ("iterations", "tolerance", "backend", "every", "record")  # a rehearsal is as long as it needs to be
STILL = 1e-10  # a step below which a sum need not be opened again
LONG = 400  # iterations of masks that could be counted out by more


class Plan(NamedTuple):
    """What is played, and why."""

    method: str
    options: dict[str, Any]
    why: str


def solve(
    problem: Problem, graph: Any, *, private: str = "strong", barrier: bool = True, audit: bool = True, curious: Any = None,
    at_most: int | None = None, seed: int = 0, **options: Any,
) -> Result:  # fmt: skip
    """Minimise the sum of the costs over the graph: what is opened is stated, and audited.

    private     "strong": only sums over everybody are opened (masks that cancel, mod 2^64); "paper": the algorithm of Gao, Wang and
                Nedic, which hides a constant shift of each gradient; "none": plain push-pull
    barrier     whether all nodes can wait for each other in every round; False, or a graph that changes, takes masks on the costs
    audit       let the auditor say what `curious` (each single node, or all groups of up to `at_most`) learn: `result.audit`
    options     those of `sottovoce.run`

    `result.x` is the optimum at every node, `result.why` says in two lines what was picked and what that tells.
    """
    if private not in PRIVATE:
        raise ParameterError(f"private must be one of {', '.join(PRIVATE)}, not {private!r}")
    if not isinstance(problem, Problem):
        raise ProblemError(f"expected a sottovoce Problem, got {type(problem).__name__}; see sottovoce.problems")
    network = named(as_graph(graph), problem)
    chosen = plan(problem, network, private, barrier)
    given = {**chosen.options, "seed": seed, **options}
    opens = bool(algorithm(chosen.method).opens)
    result = run(chosen.method, problem, network, **{"record": audit and opens, **given})
    result.why = f"{chosen.why}\nWhat that tells, from a node's view: {algorithm(chosen.method).leaks}"
    if audit and opens:
        assert result.transcript is not None
        result.audit = audit_transcript(result.transcript, curious=curious, at_most=at_most)
    elif audit:
        same = {name: value for name, value in given.items() if name not in NOT_REHEARSED}
        result.audit = rehearse(chosen.method, problem, network, curious=curious, at_most=at_most, advise=False, **same)
    return result


def plan(problem: Problem, graph: Any, private: str, barrier: bool) -> Plan:
    """The method for these costs on this graph."""
    changing = isinstance(graph, GraphSequence)
    if not getattr(problem.family, "minimises", True):
        return Plan("private-sum", {}, "private-sum: there is nothing to minimise, only values to add up; one sum is opened")
    if private == "none":
        method = "push-diging" if changing else "push-pull"
        return Plan(method, {}, f"{method}: no protection was asked for; messages are read by whoever gets them")
    if private == "paper":
        why = "private-gradient-tracking: the paper's algorithm was asked for; K = 1, since a larger K hides no more"
        return Plan("private-gradient-tracking", {"K": 1}, why)
    if changing or not barrier:
        return _masked(problem, changing, "the graph changes" if changing else "nodes cannot wait for everybody")
    if not carries(graph, problem.d):
        return _masked(problem, False, "the network is too large to carry sums")
    return _summed(problem, graph)


def carries(graph: Graph, numbers: int) -> bool:
    """Whether sums of so many numbers can be carried at all."""
    words = 2 * numbers
    return words <= MESSAGE and 2 * graph.diameter * words * len(graph.edges) <= EVERYWHERE


def carried(graph: Graph, numbers: int) -> dict[str, str]:
    """How: by flooding, which takes half the exchanges, where messages stay small."""
    words = 2 * numbers * (1 if graph.diameter == 1 else graph.n)
    return {} if words <= FLOOD or graph.diameter == 1 else {"carry": "tree"}


def _summed(problem: Problem, graph: Graph) -> Plan:
    """One of the methods that open sums."""
    d, family = problem.d, problem.family
    numbers = d * (d + 3) // 2
    bent = d <= MOST and carries(graph, numbers)
    if family.quadratic and bent:
        why = f"the costs are quadratic in {d} unknowns, so one opened sum of {numbers} numbers gives the optimum exactly"
        return Plan("private-least-squares", carried(graph, numbers), f"private-least-squares: {why}")
    if family.exact and family.smooth and bent:
        why = f"the costs are smooth in {d} unknowns: sums of their Hessians and gradients, {numbers} numbers, at a few points"
        options = {"iterations": 40, "tolerance": STILL, **carried(graph, numbers)}
        return Plan("private-newton", options, f"private-newton: {why}")
    reason = "the costs have no Hessian to rely on" if bent else f"sums of {numbers} numbers of Hessians are too many to carry"
    why = f"{reason}, so sums of {d} gradient numbers are opened, at each iterate of a quasi-Newton method"
    return Plan("private-gradient", {"iterations": 1000, "tolerance": STILL, **carried(graph, d)}, f"private-gradient: {why}")


def _masked(problem: Problem, changing: bool, reason: str) -> Plan:
    """Masks on the costs, where sums cannot be opened."""
    method = "ab-tv" if changing else "gradient-tracking"
    said = f"{method} with function-masks: {reason}, so costs are masked instead of sums; what is hidden is paid for in iterations"
    if problem.family.quadratic:
        return Plan(method, {"mechanisms": mechanism("function-masks", kind="quadratic")}, said)
    masks = mechanism("function-masks", kind="matern", features=max(1000, 2 * (LONG + 1) * problem.d))
    return Plan(method, {"mechanisms": masks, "x0": np.zeros((problem.n, problem.d)), "iterations": LONG}, said)
