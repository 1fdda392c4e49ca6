"""A29, records through masks of features: Bayes with the masks integrated out, for logistic costs of few records.

The masks of honest edges are Gaussian with a known law, so what is heard of the honest gradients is the gradients of their
records plus one Gaussian vector of known covariance. Whitened by it, directions in which masks cancel, are of low rank or were
counted out weigh as much as rounding allows, and the records are fitted to all of them at once. They come out together; whose
they are is told only where the likelihood of all other owners is less by a million times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ...smallest_change import thinned
from ...view import View
from ..attack import Attack, Estimate, register
from ..masked import Law, law_of
from ..reading import enclosed, heard
from ..records import Noise, Part, fits, holding, penalty, record_size, refitted, search, there
from .tail_secants import along

Array = np.ndarray
NUMBERS = 480  # that are fitted at once
HOLDING = 3  # records a node, at most
FEW = 10  # records of one's own, beyond which nobody is taken to have so few
FINE = 1e-13  # of the largest number: what is heard to
ALIKE = 1e-2  # of its size: the same record
SURE = 2 * np.log(1e6)  # the gap in misfit at which an owner is told


def run(view: View, victim: int) -> list[Estimate]:
    public, law = penalty(view), law_of(view)
    if public is None or law is None or law.bent is None or holding(view) > FEW or heard(view, victim) is None:
        return []
    group = enclosed(view, victim)
    memo: dict[Any, Any] = view.__dict__.setdefault("_masked_records", {})
    if group not in memo:
        told = _told(view, group, public, law)
        memo[group] = None if told is None else (told[0], _found(*told[1:], record_size(view)))
    if memo[group] is None or memo[group][1] is None or victim not in memo[group][0]:
        return []
    nodes, (V, sure) = memo[group]
    together = Estimate(nodes, "record", there(V))
    return [together, *([Estimate((victim,), "record", there(V[nodes.index(victim)]))] if sure and len(nodes) > 1 else [])]


def _told(
    view: View, group: tuple[int, ...], public: Array, law: Law
) -> tuple[tuple[int, ...], list[Part], Noise] | None:
    """Who of a component of honest nodes is heard; their gradients, known masks taken off; the law of what is left."""
    ways = {node: way for node in group if (ears := heard(view, node)) and (way := along(ears)) and len(way[0]) > 1}
    if not ways:
        return None
    nodes, most = tuple(ways), max(NUMBERS // (len(ways) * len(public)), 4)
    parts, bases = [], {}
    for node, (g, x) in ways.items():
        at = thinned(len(g), most)
        g, x, bases[node] = g[at], x[at], law.gradients_of(x[at])
        parts.append(Part(x, g - public * x - (bases[node] @ law.on(view.graph.edges, node)).reshape(g.shape)))
    largest = max(np.abs(g).max() for g, _ in ways.values())
    return nodes, parts, _noise(view, set(group), bases, FINE * largest)


def _noise(view: View, group: set[int], bases: dict[int, Array], fine: float) -> Noise:
    """Of all masks that lie between honest nodes: the one that sends takes them away, the other adds them."""
    zero = {node: 0 * basis for node, basis in bases.items()}
    triangle = np.zeros((0, sum(map(len, bases.values()))))
    for s, r in view.graph.edges:
        if {s, r} <= group and {s, r} & set(bases):
            one = np.concatenate([-b if node == s else b if node == r else zero[node] for node, b in bases.items()])
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, one.T]), mode="r"))
    if not len(triangle):
        return Noise(np.full(triangle.shape[1], fine))
    _, spread, axes = np.linalg.svd(triangle)
    return Noise(np.sqrt(np.pad(spread, (0, len(axes) - len(spread))) ** 2 + fine**2), axes)


def _found(parts: list[Part], noise: Noise, size: float) -> tuple[Array, bool] | None:
    """The records (part, records, d) with the likeliest owners, and whether any other owners are out of the question."""
    fit = search(parts, noise, size, range(1, HOLDING + 1))
    if fit is None:
        return None
    if len(parts) == 1:
        return fit.V, True
    tried = [found for V in _shared_out(fit.V) if (found := refitted(parts, noise, V)) is not None]
    ranked = sorted([fit, *tried], key=lambda found: found.misfit)
    others = [found for found in ranked if not _same(found.V, ranked[0].V)]
    return ranked[0].V, not others or others[0].misfit - ranked[0].misfit > SURE


def _shared_out(V: Array) -> Iterator[Array]:
    """The same records, those of any two nodes with other owners."""
    count = V.shape[1]
    for a, b in combinations(range(len(V)), 2):
        both = np.concatenate([V[a], V[b]])
        for mine in combinations(range(2 * count), count):
            other = V.copy()
            other[a], other[b] = both[list(mine)], both[[j for j in range(2 * count) if j not in mine]]
            yield other


def _same(V: Array, W: Array) -> bool:
    """Whether every node holds the same records in both."""
    far = np.linalg.norm(V[:, :, None] - W[:, None], axis=3)
    return bool(far.min(2).max() < ALIKE * np.linalg.norm(V) / len(V))


def control() -> tuple[Any, int, Any]:
    """A record a node, masks ten times their size: the two that everybody else hears are read, but not which is whose."""
    from ... import controls

    masks = "function-masks:kind=matern,scale=3,amplitude=10,features=800"
    problem, options = controls.few_records(1), {"A": "uniform", "iterations": 40, "stepsize": 0.01}
    view, truth = controls.recorded("gradient-tracking", problem, controls.CYCLE, {2, 3, 4}, mechanisms=masks, **options)
    return view, 0, truth


register(
    Attack(
        name="masked-records",
        id="A29",
        assets=("record",),
        uses="gradients along the way of honest nodes; the law of masks, their frequencies, the penalty, which are public",
        idea="What is heard is the gradients of the records plus a Gaussian vector of known covariance: fit the records to it\n"
        "in units of that noise, which is next to nothing in many directions. The owner by likelihood.",
        metric="relative error of the record that is furthest off, of both; of one node's, where the owner is told",
        run=run,
        control=control,
        serves=lambda header: fits(header) and any("kind=matern" in text for text in header["mechanisms"]),
    )
)
