"""A25, both shares: two words whose sum mod 2^64 is an update, (stepsize / n) times a gradient; both servers together, or a tap on
the links to both, add them.

Everybody else is told the sum over all, and takes its own away. The common x is followed from the sums, as every party does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...fixed import Fixed
from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import coordinates, seen
from .honest_sum import bent, gradients
from .record_features import features

Array = np.ndarray


def run(view: View, victim: int) -> list[Estimate]:
    n = view.graph.n - int(view.header.get("helpers", 0))
    if not serves(view.header) or not view.sent or victim in view.coalition or not 0 <= victim < n:
        return []
    if all(seen(view, victim, server) for server in (n, n + 1)):
        nodes, sums = (victim,), lambda k: shared(view, k, (victim,), n)
    else:
        mine = tuple(i for i in range(n) if i in view.coalition)
        nodes = tuple(i for i in range(n) if i not in mine)
        sums = lambda k: whole(view, k, n) - shared(view, k, mine, n)
        if not mine:
            return []  # a lone server: words that say nothing
    updates = np.array([sums(k) for k in range(view.iterations)])
    return estimates(view, nodes, updates * n / view.header["stepsize"][0], points(view, n))


def serves(header: Any) -> bool:
    return header["algorithm"] == "two-servers" and not header["mechanisms"]


def estimates(view: View, nodes: tuple[int, ...], g: Array, x: Array) -> list[Estimate]:
    found = [*gradients(nodes, g, x), *bent(nodes, g, x)]
    return found + [record for e in found if e.asset == "curvature" for record in features(view, e)]


def shared(view: View, k: int, nodes: tuple[int, ...], n: int) -> Array:
    """(d,): the sum of what these nodes shared in iteration k: updates; k = -1: their starts over n."""
    words = np.zeros(coordinates(view), np.uint64)
    for i in nodes:
        for server in (n, n + 1):
            words = words + view.sent[k, 0][view.edge(i, server), :, 0]
    return _numbers(view, words, n)


def whole(view: View, k: int, n: int) -> Array:
    """(d,): the sum over all parties, as the servers told it, or as both of them could."""
    listener = next((i for i in range(n) if all(seen(view, s, i) for s in (n, n + 1))), None)
    if listener is None or view.wiretap:
        return shared(view, k, tuple(range(n)), n)
    told = sum(view.sent[k, 1][view.edge(s, listener), :, 0] for s in (n, n + 1))
    return _numbers(view, np.asarray(told, np.uint64), n)


def _numbers(view: View, words: Array, n: int) -> Array:
    return Fixed.words(int(view.header["parameters"]["fraction_bits"]), n).from_words(np, words)


def points(view: View, n: int) -> Array:
    """(iterations, d): the x that all have."""
    x = [whole(view, -1, n)]
    for k in range(view.iterations - 1):
        x.append(x[-1] - whole(view, k, n))
    return np.array(x)


def control() -> tuple[Any, int, Any]:
    """The two servers together."""
    from ... import controls, graphs, problems

    problem = problems.estimation(n=5, d=2, s=3, scale=0.5, seed=1)
    view, truth = controls.recorded("two-servers", problem, graphs.paper_b(), {5, 6}, stepsize=0.1, iterations=8)
    return view, 0, truth


register(
    Attack(
        name="both-shares",
        id="A25",
        assets=("offset", "along-the-way", "curvature", "record", "group-sum"),
        uses="what goes to both servers; or the sums that they tell, and the coalition's own shares",
        idea="The two words of a node add up to its update. Who hears one of them alone has a uniform word; a party takes\n"
        "its own gradient off the sum that all are told, and has that of the others together.",
        metric="relative error of the gradient, or of the sum of s gradients",
        run=run,
        control=control,
        serves=serves,
    )
)
