"""Identical views, and Theorems 2 to 5: witnesses in rational numbers, and what messages add up to where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from ...auditor.witness import Witness, witness, witnesses
from ...auditor.worlds import World, in_fractions, table_two, view_difference, world_of
from ...graph import Graph
from ...graphs import star
from .. import meeting, setting
from ..item import Claim, Finding, judged, register

METHOD = "private-gradient-tracking"
DELTA = (Fraction(22, 7), Fraction(-5, 7))
NULL_SET = (
    "For every delta but those with an entry delta[l] = -grad f_i(x^0)[l]: there the other y_i is zero, while node i sent a "
    "Lambda_i y_i that is not. So whoever hears i knows one thing, that this gradient is not zero. (Nor is there a world of "
    "this kind with a neighbour m that the coalition hears, for delta[l] = grad f_m(x^0)[l].) "
)
PRINTED = (
    "The equations printed for case II are not the ones that do it: both lines 'for all p in V without m' must exclude i "
    "instead, and the line 'C~ = C for all p, q in V' must go."
)


def identical(quick: bool) -> Finding:
    plain, exact = meeting.worlds(), meeting.worlds(exact=True, iterations=14)
    numbers = {"float64": plain.difference, "rational": str(exact.difference), "delta": meeting.DELTA, "case": plain.case}
    return judged(
        exact.difference == 0 and plain.difference < 1e-12,
        f"what node 3 sees, all of its information set: the same to {plain.difference:.0e} over {meeting.ITERATIONS} iterations "
        f"in float64, and exactly (a difference of {exact.difference}) over 14 in rational numbers, with gradients "
        f"{meeting.DELTA} apart.",
        numbers,
    )


def _world(graph: Graph, iterations: int = 5, **options: Any) -> World:
    """A recorded run of the five-node setting, in rational numbers."""
    told: dict[str, Any] = {"K": setting.K, "stepsize": setting.STEPSIZE, "iterations": iterations, **options}
    return in_fractions(world_of(setting.recorded(METHOD, setting.problem(), graph, **told)))


def _near(graph: Graph, node: int) -> set[int]:
    return {*graph.in_neighbours(node), *graph.out_neighbours(node)}


def theorem_2(quick: bool) -> Finding:
    return _preserved(lambda graph, i: [(j,) for j in range(graph.n) if j != i and len(_near(graph, i)) > 1])


def theorem_4(quick: bool) -> Finding:
    def groups(graph: Graph, i: int) -> Iterator[tuple[int, ...]]:
        others = [j for j in range(graph.n) if j != i]
        found = (group for size in range(1, graph.n) for group in combinations(others, size) if not _near(graph, i) <= set(group))
        return iter(list(found)[::3] if quick else list(found))

    return _preserved(groups)


def _preserved(coalitions: Any) -> Finding:
    """Every victim and coalition for which the theorem promises it, every honest neighbour, both cases; and what is printed."""
    world = _world(setting.graph())
    graph, cases, worst = world.graph, {"I": 0, "II": 0}, Fraction(0)
    for i in range(graph.n):
        for group in coalitions(graph, i):
            for found in witnesses(world, i, DELTA, group):
                cases[found.case] += 1
                worst = max(worst, view_difference(world, found.other, group))
    second = next(w for w in witnesses(world, 1, DELTA, [4]) if w.case == "II")
    wrong = printed(second)
    off = float(view_difference(world, wrong, [4]))
    sums = float(abs(wrong.column_sums(wrong.iterations[0].C) - 1).max())
    nonzero = bool((np.abs(world.played.u[0]) > 0).all())
    numbers = {"cases": cases, "difference": str(worst), "printed": {"view": off, "column": sums}}
    return judged(
        worst == 0 and min(cases.values()) > 0 and nonzero and max(off, sums) > 1e-3,
        f"{sum(cases.values())} witnesses on the five-node graph, {cases['I']} of case I and {cases['II']} of case II, in "
        f"rational numbers: the views differ by exactly {worst}. The equations of case II as printed leave a column sum off by "
        f"{sums:.2g}, and the views differ by {off:.2g}.", numbers, NULL_SET + PRINTED,
    )  # fmt: skip


def printed(found: Witness) -> World:
    """Case II to the letter: what i sends to all but m, and what m sends to all but m, is changed; what goes to m is not."""
    world, i, m = found.world, found.victim, found.neighbour
    y, first = world.gradient(world.x0), world.iterations[0]
    C = np.array(first.C)
    for e, (s, r) in enumerate(zip(world.sender, world.receiver, strict=True)):
        if s in (i, m) and r != m:
            shift = found.delta if s == i else -found.delta
            C[e] = (first.C[e] * y[s] + shift * int(r == i)) / (y[s] + shift)
    return replace(found.other, iterations=(found.other.iterations[0]._replace(C=C), *found.other.iterations[1:]))


def theorem_3(quick: bool) -> Finding:
    """A leaf of a star, whose only neighbour is the hub."""
    return _breached(star(setting.N), 1)


def theorem_5(quick: bool) -> Finding:
    """Node 0 of the five-node graph, all of whose neighbours collude."""
    return _breached(setting.graph(), 0)


def _breached(graph: Graph, victim: int) -> Finding:
    """What its neighbours add up: all that went into the node less all that came out of it."""
    options: dict[str, Any] = {"K": setting.K, "stepsize": 0.02, "iterations": 3000}
    kept, problem = setting.recorded(METHOD, setting.problem(), graph, **options), setting.problem()
    edges = kept.graph.edges
    into = [e for e, (_, r) in enumerate(edges) if r == victim]
    out = [e for e, (s, _) in enumerate(edges) if s == victim]
    flow = np.cumsum([kept.sent[k, 1][into, :, 0].sum(0) - kept.sent[k, 1][out, :, 0].sum(0) for k in range(kept.iterations)], 0)
    true = lambda x: problem.gradient(np.tile(x, (problem.n, 1)))[victim]
    optimum = true(problem.optimum)
    end = np.linalg.norm(-flow[-1] - optimum) / np.linalg.norm(optimum)
    pulled = [kept.sent[k, 0][out[0], :, 0] for k in range(kept.iterations)]  # x and Lambda y, side by side
    late = []
    for k in range(setting.K, setting.K + 50):
        x, y = pulled[k][: problem.d], pulled[k][problem.d :] / 0.02
        late.append(np.linalg.norm(y - flow[k - 1] - true(x)) / np.linalg.norm(true(x)))
    numbers = {"at_the_optimum": float(end), "at_late_iterates": float(max(late))}
    return judged(
        end < 1e-9 and max(late) < 1e-9,
        f"in minus out, summed, gives the node's gradient at the optimum with a relative error of {end:.0e}. More than is "
        "claimed: with y = (Lambda y)/lambda, heard from K on, it gives the gradient at every late iterate (the first 50: "
        f"{max(late):.0e} or better).",
        numbers,
    )


def infinitely_many(quick: bool) -> Finding:
    """For one delta a line of worlds: c moves by s times the change of the gradient, b by -s y, on what i sends to j."""
    found = witness(_world(setting.graph()), 0, DELTA, [3])
    other, seen = found.other, []
    for s in range(-5, 6):
        moved = _along(other, 0, Fraction(s, 3))
        seen.append((view_difference(found.world, moved, [3]), table_two(moved), moved.iterations[0].C.tolist()))
    different = len({str(C) for *_, C in seen})
    fine = all(off == 0 and fault is None for off, fault, _ in seen) and different == len(seen)
    return judged(
        fine,
        f"for one and the same delta, {different} of the worlds on a line (c_li moved by s times the change of the gradient, "
        "b_li by -s y_i, for any s) fit Table II and give exactly the same view; and every delta has such a line.",
        {"worlds": different},
    )


def _along(world: World, node: int, s: Fraction) -> World:
    """C and B of one node, moved so that every message stays."""
    first, played = world.iterations[0], world.played
    y, change = played.y[0][node], world.gradient(played.x[1])[node] - world.gradient(played.x[0])[node]
    C, B = np.array(first.C), np.array(first.B)
    mine = (world.sender == node) & (world.receiver != node)
    own = (world.sender == node) & (world.receiver == node)
    C[mine] += s * change
    B[mine] -= s * y
    C[own] -= mine.sum() * s * change
    B[own] += mine.sum() * s * y
    return replace(world, iterations=(first._replace(C=C, B=B), *world.iterations[1:]))


for number, (name, text, where, check) in enumerate(
    (
        ("identical-views", "What node 3 receives is identical under two different gradient functions of node 1.", "Figure 2",
         identical),
        ("theorem-2", "The privacy of a node with two neighbours or more is preserved against any single one, for every delta.",
         "Theorem 2", theorem_2),
        ("theorem-3", "It is not preserved against the only neighbour: that one infers the gradient at the optimum.",
         "Theorem 3", theorem_3),
        ("theorem-4", "It is preserved against any coalition that leaves the node a neighbour, for every "
                      "delta.", "Theorem 4", theorem_4),
        ("theorem-5", "It is not preserved where all neighbours collude.", "Theorem 5", theorem_5),
        ("infinitely-many", "There are infinitely many sets of parameters that leave the view unchanged.", "Remark "
                                                                                                           "3", infinitely_many),
    ),
    10,
):  # fmt: skip
    register(Claim(name, number, text, where, check))
