"""A17: a receiver that learns only the sum of what comes in still reads a lone sender, alone or with colluders.

The receiver's own states give the sum: what it holds after an iteration less its own share. Colluding senders subtract their
parts; what remains is a sum over the honest in-neighbours that are alive. One of them: it is read. Several receivers with
overlapping in-neighbourhoods: the sums are taken apart. No message is looked at, so masks on messages do not help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Graph
from ...layout import layout
from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import tracking
from .denoising import drawn_as, pushed_at
from .intersection import isolated, taken_apart

Array = np.ndarray


def remainder(graph: Graph, coalition: Iterable[int], live: Iterable[int] | None = None) -> dict[int, set[int]]:
    """For each receiver in the coalition the honest in-neighbours whose sum remains; `live`: who still sends."""
    members, alive = set(coalition), set(range(graph.n)) if live is None else set(live)
    honest = {r: set() for r in members}
    for s, r in graph.edges:
        if r in members and s not in members and s in alive:
            honest[r].add(s)
    return honest


def evaded(sums: Sequence[tuple[Iterable[int], Any]], known: Mapping[int, Any]) -> dict[int, Array]:
    """Node -> part from (group, sum of the parts) pairs, after the colluders' own parts are subtracted."""
    left = []
    for group, total in sums:
        members = {int(i) for i in group}
        value = np.asarray(total, dtype=float) - sum(np.asarray(known[i], dtype=float) for i in members & set(known))
        left.append((members - set(known), value))
    return taken_apart([pair for pair in left if pair[0]])


def _sums(view: View, name: str, k: int, held: Mapping[int, Array], after: Mapping[int, Array]) -> tuple[Array, Array] | None:
    """(rows, sums) over all nodes: after_r = sum of weight_rj held_j, less the parts of the coalition."""
    draw = view.draws.get((drawn_as(view, name), k))
    if draw is None or draw.value.shape[1] != 1:
        return None
    entries, members, n = layout(view.graph), list(view.coalition), view.graph.n
    W = np.zeros((n, n))
    W[entries.target, entries.source] = draw.value[:, 0, 0]
    if not np.isfinite(W[members]).all():
        return None
    outside = [j for j in range(n) if j not in held]
    sums = np.array([after[r] - sum(W[r, j] * held[j] for j in held) for r in members])
    rows = np.zeros((len(members), n))
    rows[:, outside] = W[np.ix_(members, outside)]
    return rows, sums


def run(view: View, victim: int) -> list[Estimate]:
    """The first gradient of a lone sender, from the coalition's states alone (A the identity, weights public, K = 0)."""
    if victim not in set().union(*remainder(view.graph, view.coalition).values()) or not tracking(view) or view.settled > 0:
        return []
    when = pushed_at(view)
    if when is None or not all({"x", "y", "g"} <= set(view.states.get(k, ())) for k in (-1, 0, 1)):
        return []
    at, value = _pulled(view, when).get(victim), _pushed(view, mixed=when == 1).get(victim)
    return [] if at is None or value is None else [Estimate((victim,), "offset", value, at)]


def _pulled(view: View, k: int) -> dict[int, Array]:
    """x^k of lone senders: x+ = sum R x - lambda y."""
    before, after = view.states[k - 1], view.states[k]
    held = {j: before["x"][j, :, 0] for j in view.coalition}
    came = {j: after["x"][j, :, 0] + view.stepsize[j] * before["y"][j, :, 0] for j in view.coalition}
    found = _sums(view, "R", k, held, came)
    return {} if found is None else isolated(*found)


def _pushed(view: View, mixed: bool) -> dict[int, Array]:
    """y^0 (B the identity) or, mixed, y^0 + dg^0 (B the same as C) of lone senders: gradients at x^0 and at x^1."""
    first, then = view.states[-1], view.states[0]
    moved = {j: then["g"][j, :, 0] - first["g"][j, :, 0] for j in view.coalition}
    held = {j: first["y"][j, :, 0] + (moved[j] if mixed else 0) for j in view.coalition}
    came = {j: then["y"][j, :, 0] - (0 if mixed else moved[j]) for j in view.coalition}
    found = _sums(view, "C", 0, held, came)
    return {} if found is None else isolated(*found)


def control() -> tuple[Any, int, Any]:
    """Node 1 hears 0 and 3; 3 colludes, and every message is masked."""
    from dataclasses import replace

    from ... import controls, graphs, problems

    problem = problems.estimation(n=5, d=2, seed=3)
    view, truth = controls.recorded("ab", problem, graphs.paper_b(), {1, 3}, iterations=3, stepsize=0.02)
    return replace(view, sent={key: np.full_like(m, np.nan) for key, m in view.sent.items()}), 0, truth


register(
    Attack(
        name="secure-sum-evasion",
        id="A17",
        assets=("offset",),
        uses="the coalition's own states before and after an iteration, public weights; no message",
        idea="A receiver's states give the sum of what came in. Colluding senders subtract their parts; a lone honest\n"
        "sender is left bare, and overlapping sums are taken apart.",
        metric="size of the group that remains (`remainder`); relative error of the gradient",
        run=run,
        control=control,
    )
)
