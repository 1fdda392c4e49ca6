"""What Algorithm 1 contains: the nine rows of Table I, and EXTRA."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import graphs
from ...graph import Graph
from ...layout import layout
from ...run import run
from .. import setting
from ..item import Claim, Finding, judged, register

Array = np.ndarray
STEP, SHORT, LONG = 0.02, 60, 4000

# From the papers cited, in their own form: (x, y, change of gradient; weights) -> what x and y become.
THEIRS = {
    "aug-dgm": (lambda x, y, s, W, V: W @ (x - s * y), lambda y, dg, W, V: W @ (y + dg)),
    "diging": (lambda x, y, s, W, V: W @ x - s * y, lambda y, dg, W, V: W @ y + dg),
    "diging-tv": (lambda x, y, s, W, V: W @ x - s * y, lambda y, dg, W, V: W @ y + dg),
    "atc-diging": (lambda x, y, s, W, V: W @ (x - s * y), lambda y, dg, W, V: W @ (y + dg)),
    "asyn-dgm": (lambda x, y, s, W, V: W @ (x - s * y), lambda y, dg, W, V: W @ y + dg),
    "ab": (lambda x, y, s, R, C: R @ x - s * y, lambda y, dg, R, C: C @ (y + dg)),
    "push-pull": (lambda x, y, s, R, C: R @ (x - s * y), lambda y, dg, R, C: C @ (y + dg)),
    "push-pull-du": (lambda x, y, s, R, C: R @ x - s * y, lambda y, dg, R, C: C @ y + dg),
    "push-pull-zhang": (lambda x, y, s, R, C: R @ (x - s * y), lambda y, dg, R, C: C @ y + dg),
}


def table_one(quick: bool) -> Finding:
    rows = {}
    for name in THEIRS:
        graph = setting.two_way() if name in ("diging-tv", "asyn-dgm") else setting.graph()
        sequence: Any = [graph, _fewer(graph)] if name == "diging-tv" else graph
        own = {"aug-dgm", "atc-diging", "asyn-dgm"}  # have a step a node
        step = STEP * np.linspace(0.8, 1.2, 5) if name in own else STEP
        short = run(name, setting.problem(), sequence, stepsize=step, iterations=SHORT, record=True)
        assert short.trajectory is not None
        theirs = _theirs(name, short, graph)
        off = np.abs(short.trajectory[:, 0] - theirs).max() / np.abs(theirs).max()
        final = run(name, setting.problem(), sequence, stepsize=step, iterations=LONG).final[0]
        rows[name] = {"difference": float(off), "final": float(final)}
    off, final = (max(row[what] for row in rows.values()) for what in ("difference", "final"))
    return judged(
        off < 1e-13 and final < 1e-12,
        "each row against the recursion of the paper it cites, written anew with dense matrices: largest relative difference "
        f"over {SHORT} iterations {off:.0e}; largest error after {LONG:,}: {final:.0e}. The two last Push-Pull rows are compared "
        "with what Table I makes of them, as their papers were not at hand.", rows,
    )  # fmt: skip


def _theirs(name: str, ours: Any, graph: Graph) -> Array:
    """Their recursion from the same start, with weights of our own making (those drawn at random are read from the transcript)."""
    to_x, to_y = THEIRS[name]
    problem, size = setting.problem(), ours.stepsize[:, None]
    x = np.array(ours.trajectory[0, 0])
    y = g = problem.gradient(x)
    out = [x]
    for k in range(SHORT):
        W, V = _weights(name, ours, graph, k)
        x = to_x(x, y, size, W, V)
        before, g = g, problem.gradient(x)
        y = to_y(y, g - before, W, V)
        out.append(x)
    return np.array(out)


def _weights(name: str, ours: Any, graph: Graph, k: int) -> tuple[Array, Array]:
    if name == "asyn-dgm":
        entries, W = layout(graph), np.zeros((graph.n, graph.n))
        W[entries.target, entries.source] = ours.transcript.draws["R", k].value[:, 0, 0]
        return W, W
    if name == "diging-tv":
        W = _metropolis((graph, _fewer(graph))[k % 2])
        return W, W
    mask = graph.adjacency() + np.eye(graph.n)
    if name in ("aug-dgm", "diging", "atc-diging"):
        W = mask.astype(float)
        for _ in range(5000):  # Sinkhorn
            W /= W.sum(0)
            W /= W.sum(1)[:, None]
        return W, W
    return mask / mask.sum(1)[:, None], mask / mask.sum(0)


def _metropolis(graph: Graph) -> Array:
    joined = graph.adjacency()
    degree = joined.sum(1)
    W = joined / (1 + np.maximum(degree[:, None], degree[None]))
    return W + np.diag(1 - W.sum(1))


def _fewer(graph: Graph) -> Graph:
    first = set(graph.edges[0])
    return Graph(graph.n, [edge for edge in graph.edges if set(edge) != first])


def extra(quick: bool) -> Finding:
    """R + C = I + W and C R = (I + W)/2 make every eigenvector of R one of W: with eigenvalue r there, and w of W,
    r^2 - (1 + w) r + (1 + w)/2 = 0. Where the w are all different, the vectors are real, so r must be."""
    W = _metropolis(graphs.path(5))
    w = np.linalg.eigvalsh(W)
    discriminant, apart = ((1 + w) ** 2 - 2 * (1 + w))[:-1], np.diff(w).min()
    uneven, even = _elimination(np.linspace(0.5, 1.5, 5)), _elimination(np.ones(5))
    member = _member((np.eye(5) + W) / 2)
    numbers = {
        "largest_discriminant": float(discriminant.max()), "eigenvalues_apart": float(apart), "member_difference": member,
        "two_steps_uneven": uneven, "two_steps_even": even,
    }  # fmt: skip
    return judged(
        bool(discriminant.max() < 0 and apart > 1e-3 and max(member, even) < 1e-13 < uneven),
        f"the printed two-step form is off by {uneven:.0e} with unequal stepsizes and by {even:.0e} with equal ones. For EXTRA's "
        "own second matrix (I + W)/2 every eigenvalue of R solves r^2 - (1 + w) r + (1 + w)/2 = 0 with an eigenvalue w of W; on "
        f"five nodes in a line, where these are different (by {apart:.2g} and more), r must be real, and the discriminants are "
        f"negative for all w but 1 (the largest {discriminant.max():.2g}). With W = 2V - I and second matrix V^2 the iterates of "
        f"R = C = V and of EXTRA's recursion differ by {member:.0e}.", numbers,
        "Not for the EXTRA that is commonly meant, with second matrix (I + W)/2: no real R and C give it. The framework "
        "contains the member of EXTRA's family with W = 2V - I and second matrix V^2, and only with one stepsize for all nodes.",
    )  # fmt: skip


def _elimination(steps: Array) -> float:
    """How far the printed recursion in x alone is from the framework's, R, I, C, I with these stepsizes."""
    rng, problem = np.random.default_rng(0), setting.problem()
    R, C = _weights("ab", None, setting.graph(), 0)
    size = STEP * steps[:, None]
    x = rng.standard_normal((5, 2))
    y = g = problem.gradient(x)
    xs, gs = [x], [g]
    for _ in range(3):
        x = R @ x - size * y
        y, g = C @ y + problem.gradient(x) - g, problem.gradient(x)
        xs, gs = [*xs, x], [*gs, g]
    printed = (R + C) @ xs[2] - C @ R @ xs[1] - size * (gs[2] - gs[1])
    return float(np.abs(printed - xs[3]).max() / np.abs(xs[3]).max())


def _member(V: Array) -> float:
    """EXTRA's recursion with W = 2V - I and V^2 against DIGing with V, from x^0 and DIGing's x^1."""
    problem = setting.problem()
    ours = run("diging", problem, graphs.path(5), R=V, stepsize=STEP, iterations=SHORT, record=True)
    assert ours.trajectory is not None
    xs = [ours.trajectory[0, 0], ours.trajectory[1, 0]]
    for _ in range(SHORT - 1):
        xs.append(2 * V @ xs[-1] - V @ V @ xs[-2] - STEP * (problem.gradient(xs[-1]) - problem.gradient(xs[-2])))
    return float(np.abs(np.array(xs) - ours.trajectory[:, 0]).max())


def time_varying(quick: bool) -> Finding:
    """Fresh weights in every iteration: the paper's own, and AB with rows, columns and graphs that change (Saadatniaki et al.)."""
    graph, runs = setting.graph(), 10 if quick else 100
    options: dict[str, Any] = {"stepsize": 0.05, "iterations": 5000, "runs": runs}
    halves = [Graph(graph.n, graph.edges[::2]), Graph(graph.n, graph.edges[1::2])]  # neither is connected by itself
    asked: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "fresh": ("private-gradient-tracking", graph, {"K": setting.K}),
        "drawn once": ("private-gradient-tracking", graph, {"K": setting.K, "late": "fixed"}),
        "AB, fresh": ("ab-tv", graph, {"R": "paper", "C": "paper"}),
        "AB, fresh, two halves of the graph in turn": ("ab-tv", halves, {"R": "paper", "C": "paper", "stepsize": 0.02}),
    }
    results = {name: run(method, setting.problem(), on, **{**options, **own}) for name, (method, on, own) in asked.items()}
    rows = {name: {"rate": result.rate(), "worst": float(result.final.max())} for name, result in results.items()}
    connected = [half.strongly_connected for half in halves]
    said = ", ".join(f"{name} {row['rate']:.4f}" for name, row in rows.items())
    worst = max(row["worst"] for row in rows.values())
    return judged(
        all(row["rate"] < 1 for row in rows.values()) and worst < 1e-12 and not any(connected),
        f"rates: {said} (neither half is strongly connected); largest final error {worst:.0e}.", rows,
    )  # fmt: skip


register(Claim(
    "time-varying", 29, "The weights after iteration K may vary with time, and convergence is still R-linear.",
    "Table II; Theorem 1; section 1 on AB", time_varying,
))  # fmt: skip
register(Claim(
    "table-one", 6, "The framework contains Aug-DGM, DIGing, ATC-DIGing, AsynDGM, AB and Push-Pull as special cases.",
    "Table I; section 3.2", table_one,
))  # fmt: skip
register(Claim("extra", 7, "With R, I, C, I and stepsizes Lambda the framework becomes EXTRA.", "Section 3.2", extra))
