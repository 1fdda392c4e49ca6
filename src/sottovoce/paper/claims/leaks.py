"""What messages tell: AB's leak, with fixed and with time-varying weights; what a larger K and side information change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...auditor.witness import Excluded, witness
from ...auditor.worlds import World, in_fractions, replay, table_two, view_difference, world_of
from ...layout import layout
from ...transcript import Transcript
from .. import meeting, setting
from ..item import FAILS, UNCHECKED, Claim, Finding, judged, register

METHOD = "private-gradient-tracking"
Array = np.ndarray


def ab_leak(quick: bool) -> Finding:
    """The first pushed message, times (out-degree + 1), against the gradient at the x^1 that is heard next."""
    graph, problem = setting.graph(), setting.problem()
    kept = setting.recorded("ab", problem, graph, stepsize=setting.STEPSIZE, iterations=3)
    gradient = problem.gradient(kept.states[0]["x"][..., 0])
    off = [
        np.linalg.norm(message * (1 + graph.outdegree[s]) - gradient[s]) / np.linalg.norm(gradient[s])
        for message, (s, _) in zip(kept.sent[0, 1][..., 0], kept.graph.edges, strict=True)
    ]
    return judged(
        max(off) < 1e-12,
        f"on all {len(off)} links, one multiplication gives the sender's gradient at x^1 with a relative error of at most "
        f"{max(off):.0e}.",
        {"errors": off},
    )


def ab_time_varying(quick: bool) -> Finding:
    """c_li > 0 leaves the sign of what it multiplies: AB pushes c_li grad f_i(x^1) first, whoever draws c_li."""
    runs = 50 if quick else 500
    options: dict[str, Any] = {"stepsize": setting.STEPSIZE, "iterations": 2, "runs": runs}
    ab = setting.recorded("ab", setting.problem(), setting.graph(), C="paper", **options)
    ours = setting.recorded(METHOD, setting.problem(), setting.graph(), K=1, **options)
    signs = {"ab": _same_signs(ab), "ours": _same_signs(ours)}
    outside = _infeasible(ab)
    return judged(
        signs["ab"] == 1 and abs(signs["ours"] - 0.5) < 0.1 and outside > 0,
        "with fresh column weights in every iteration, in (0, 1), the first pushed message has the sign of the gradient at x^1 "
        f"in {signs['ab']:.0%} of {runs} runs, links and coordinates (Table II with K = 1: {signs['ours']:.0%}). Of shifts by "
        f"half and one and a half of the gradient, up and down, the equations of Theorem 2 ask {outside:.0%} for a weight "
        "outside [0, 1].",
        {"same_sign": signs, "infeasible": outside, "runs": runs},
        "The conclusion is right, the reason given is not enough: that these equations have no nonnegative solution does not "
        "exclude others. What does: a positive weight leaves the sign of the gradient to be read, so no shift that turns it is "
        "possible.",
    )  # fmt: skip


def _same_signs(kept: Transcript) -> float:
    problem = setting.problem()
    x = np.moveaxis(kept.states[0]["x"], -1, 0)
    gradient = np.array([problem.gradient(one) for one in x])
    sender = [s for s, _ in kept.graph.edges]
    return float((np.sign(np.moveaxis(kept.sent[0, 1], -1, 0)) == np.sign(gradient[:, sender])).mean())


def _infeasible(kept: Transcript) -> float:
    """The share of shifts delta by half and one and a half y for which c_mi' = (c_mi y + delta)/(y + delta) is no weight."""
    problem, entries = setting.problem(), layout(setting.graph())
    C = kept.draws["C", 0].value[entries.edges, :, :]  # (edge, 1, run)
    y = np.array([problem.gradient(x0) for x0 in np.moveaxis(kept.states[-1]["x"], -1, 0)])
    y = np.moveaxis(y, 0, -1)[entries.sender]
    outside = []
    for part in (-1.5, -0.5, 0.5, 1.5):
        new = (C * y + part * y) / (y + part * y)
        outside.append((new < 0) | (new > 1))
    return float(np.mean(outside))


def intermediate(quick: bool) -> Finding:
    """y_i^1 with K = 1, where it is read; a world with another y_i^1 with K = 3; the increments of the gradient with K = 3."""
    read = _tracker_read(K=1)
    world = in_fractions(world_of(_recorded(3, 6)))
    other = _later(world, 0, 1, np.array([Fraction(5), Fraction(-3)]))
    there = replay(other)
    off, fault = view_difference(world, other, [2, 3, 4]), table_two(other)
    moved = [str(v) for v in there.y[1][0] - world.played.y[1][0]]
    computed = _increments(K=3)
    return judged(
        read < 1e-12 and off == 0 and fault is None and moved == ["5", "-3"] and computed < 1e-9,
        f"with K = 1 an out-neighbour reads y_i^1 with an error of {read:.1g}. With K = 3 there is another world in which y_0^1 "
        f"is larger by ({', '.join(moved)}) and all nodes but 0 and 1 together see exactly the same (a difference of {off} in "
        f"rational numbers). But the changes of the gradient in iterations 0 to 2 are computed to {computed:.0e}: late messages "
        "give the curvature, and x^0 to x^3 are sent as they are.", {"read": read, "difference": str(off), "increments": computed},
        "It holds for y_i^k. It does not for the changes of the gradient, where the cost is a quadratic (or any that late "
        "iterates determine up to a constant): those stay computable for every K.",
    )  # fmt: skip


def _recorded(K: int, iterations: int) -> Transcript:
    options: dict[str, Any] = {"K": K, "stepsize": setting.STEPSIZE, "iterations": iterations}
    return setting.recorded(METHOD, setting.problem(), setting.graph(), **options)


def _tracker_read(K: int) -> float:
    """The largest error of (Lambda y)/lambda at k = K, over links."""
    kept = _recorded(K, K + 1)
    sent, y = kept.sent[K, 0][:, setting.D :, 0], kept.states[K - 1]["y"][..., 0]
    sender = [s for s, _ in kept.graph.edges]
    return float(np.abs(sent / setting.STEPSIZE - y[sender]).max() / np.abs(y).max())


def _later(world: World, i: int, m: int, delta: Array) -> World:
    """Node i's gradient moved by delta and m's by -delta, where m hears i; the shift stays at home in iteration 0 and goes from
    i to m in iteration 1, so that y^1 of both differs too."""
    shift = np.array(world.shift)
    shift[i], shift[m] = shift[i] + delta, shift[m] - delta
    numbers = list(world.iterations)
    for k in (0, 1):
        y, step, C = world.played.y[k], np.array(numbers[k].stepsize), np.array(numbers[k].C)
        for node, change in ((i, delta), (m, -delta)):
            new = y[node] + change
            step[node] = step[node] * y[node] / new
            goal = node if k == 0 else m
            for e in np.flatnonzero(world.sender == node):
                C[e] = (C[e] * y[node] + change * int(world.receiver[e] == goal)) / new
        numbers[k] = numbers[k]._replace(stepsize=step, C=C)
    return replace(world, shift=shift, iterations=tuple(numbers))


def _curvature(kept: Transcript, edge: int, K: int) -> Array:
    """H of the sender of an edge, from what its receiver hears from K on: y = (Lambda y)/lambda, hence B dg, hence dg."""
    entries, d = layout(kept.graph), setting.D
    place = int(entries.edges[edge])
    changes, moves = [], []
    for k in range(K, kept.iterations - 1):
        heard, following = kept.sent[k, 0][edge, :, 0], kept.sent[k + 1, 0][edge, :, 0]
        c, b = (kept.draws[name, k].value[place, :, 0] for name in "CB")
        changes.append((kept.sent[k, 1][edge, :, 0] - c * heard[d:] / setting.STEPSIZE) / b)
        moves.append(following[:d] - heard[:d])
    H = np.linalg.lstsq(np.array(moves), np.array(changes), rcond=None)[0].T
    return (H + H.T) / 2


def _increments(K: int) -> float:
    """The largest relative error of grad f(x^{k+1}) - grad f(x^k), k < K, over all links."""
    kept, problem, worst = _recorded(K, K + 30), setting.problem(), 0.0
    for edge, (s, _) in enumerate(kept.graph.edges):
        H = _curvature(kept, edge, K)
        x = [kept.sent[k, 0][edge, : setting.D, 0] for k in range(K + 1)]
        for k in range(K):
            true = (problem.gradient(np.tile(x[k + 1], (5, 1))) - problem.gradient(np.tile(x[k], (5, 1))))[s]
            worst = max(worst, float(np.linalg.norm(H @ (x[k + 1] - x[k]) - true) / np.linalg.norm(true)))
    return worst


def domain(quick: bool) -> Finding:
    kept, problem = _recorded(3, 33), setting.problem()
    true = problem.hessian(problem.optimum)
    off = [
        float(np.linalg.norm(_curvature(kept, edge, 3) - true[s]) / np.linalg.norm(true[s]))
        for edge, (s, _) in enumerate(kept.graph.edges)
    ]
    measured = (
        "one curious out-neighbour computes the sender's whole Hessian from 29 late iterations, with nothing but what the paper "
        f"gives it: relative error at most {max(off):.0e} on all {len(off)} links (K = 3)."
    )
    if max(off) > 1e-6:
        return Finding(UNCHECKED, measured, "This attack did not succeed, which proves nothing.", {"errors": off})
    why = (
        "Definition 5 is about one constant: it moves the gradient as a whole. All late weights are in the information set, so "
        "its changes are computed exactly, and with them every parameter but that constant; how the gradient varies over the "
        "domain, and hence the type of the function, is not hidden."
    )
    return Finding(FAILS, measured, why, {"errors": off})


LOW, HIGH = 0.0, 2.0  # what is known of p_1 beforehand; it is 1


def side_information(quick: bool) -> Finding:
    """A world for every p_1 on a grid over [a, b], in rational numbers; and the bits that one message gives, by quadrature."""
    world = in_fractions(world_of(meeting.recorded(6)))
    grid, fitting, excluded = [Fraction(i, 8) for i in range(17)], 0, 0
    p = Fraction(meeting.POSITIONS[meeting.NODE_1])
    for candidate in grid:
        if candidate != p:
            try:
                fitting += witness(world, meeting.NODE_1, p - candidate, [meeting.NODE_3]).difference == 0
            except Excluded:
                excluded += 1
    starts = np.array([-1.5, -0.5, 0.5, 1.5, 2.5])
    bits = [_bits(start, LOW, HIGH) for start in starts]
    numbers = {"candidates": len(grid) - 1, "fitting": fitting, "excluded": excluded, "starts": starts.tolist(), "bits": bits}
    return judged(
        fitting + excluded == len(grid) - 1 and fitting > 0,
        f"each of {fitting} other values of p_1 on a grid over [{LOW:g}, {HIGH:g}] gives node 3 exactly the same view in some "
        "world. But they are not equally likely: the one number Lambda_1 y_1 = lambda (x_1^0 - p_1), with lambda standard "
        f"normal, is worth {', '.join(f'{b:.2f}' for b in bits)} bits on a p_1 that is uniform there, for x_1^0 = "
        f"{', '.join(f'{s:g}' for s in starts)}.",
        numbers,
        "The interval does not shrink (but for the single value that Theorem 2 excludes); what is likely within it does. The "
        "claim is about what is possible, and says nothing of how plausible.",
    )  # fmt: skip


def _bits(start: float, low: float, high: float) -> float:
    """I(p; lambda (start - p)), lambda standard normal and p uniform: in v = log |u|, as the density of u is unbounded."""
    g = np.abs(start - (low + (high - low) * (np.arange(2000) + 0.5) / 2000))
    v = np.linspace(-40, 5, 6000)
    conditional = _normal_in_logs(v[None] - np.log(g)[:, None])
    mixed, step = conditional.mean(0), v[1] - v[0]
    entropy = lambda density: -(np.where(density > 0, density * np.log2(np.maximum(density, 1e-300)), 0)).sum(-1) * step
    return float(entropy(mixed) - entropy(_normal_in_logs(v)))


def _normal_in_logs(v: Array) -> Array:
    """The density of log |lambda|."""
    return np.sqrt(2 / np.pi) * np.exp(v - np.exp(2 * v) / 2)


for number, name, text, where, check in (
    (8, "ab-leak", "In AB an out-neighbour that knows the out-degree determines the gradient at x^1.", "Section 4.3", ab_leak),
    (9, "ab-time-varying", "AB cannot guarantee the privacy of Definition 5 even with time-varying parameters, as its weights "
                           "are not "
     "negative.", "Remark 4", ab_time_varying),
    (16, "intermediate-states", "In the first K iterations the states y_i^k and the changes of the gradient are uninferable by "
     "receiving nodes; a larger K protects more of them.", "Remark 5", intermediate),
    (17, "entire-domain", "Protecting the gradient means protecting its values over the entire domain, both function types and "
     "parameters.", "Section 1; section 4.3", domain),
    (18, "side-information", "An adversary that knows p_i to be in [a, b] cannot get a tighter range after running the algorithm.",
     "Remark 6", side_information),
):  # fmt: skip
    register(Claim(name, number, text, where, check))
