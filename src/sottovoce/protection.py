"""How well masks on costs hide one record: the budget mu, before anybody runs anything on real data.

The masks of honest edges are Gaussian, so all that a coalition can know of the honest costs, their sum apart, is one Gaussian
observation with covariance L (x) Sigma, L the Laplacian of the honest edges (an edge each way counts twice), Sigma that of one
mask. A record h that is node i's in one world and node m's in the other changes it by (e_i - e_m) (x) h, hence

    mu^2 = R(i, m) |h|^2 over Sigma,     R the effective resistance between i and m in ohms, one an edge.

That is exactly mu-GDP, however long the run: (epsilon, delta) follow, and the best guess of the two worlds is right with chance
Phi(mu / 2). Given is the honest sum: both worlds have the same, and what it tells is not in mu. It is a statement about masks that
are drawn truly at random; streams from keys take their place on real nodes, as strong as the cipher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .accountant import epsilon_of
from .errors import ParameterError
from .graph import Graph
from .masks import Features, Quadratics, Waves
from .problem import Problem
from .problems.losses import Loss
from .registry import Applied, mechanism
from .sequence import as_graph
from .smallest_change import by_svd, different, norms, thinned

Array = np.ndarray
TRIED = 400  # records tried within a bound
LARGE, BLOCK = 10_000_000, 4096  # coefficients times gradients up to which all are held at once; beyond, so many coefficients


class Guarded(NamedTuple):
    """How one node stands: mu and epsilon for the worst and for the median record."""

    node: int
    partner: int | None  # the honest node that could own the record instead; None: there is none
    resistance: float
    worst: float
    median: float
    epsilon: float  # of the worst
    epsilon_median: float
    guess: float  # the chance that the best guess of "whose record is it" is right, for the worst

    def __str__(self) -> str:
        with_whom = "nobody" if self.partner is None else f"node {self.partner}"
        return (
            f"node {self.node} with {with_whom}: mu {self.worst:.3g} (median {self.median:.3g}), epsilon {self.epsilon:.3g} "
            f"({self.epsilon_median:.3g}), whose it is guessed right {self.guess:.0%}"
        )


@dataclass(frozen=True)
class Protection:
    """A row a node."""

    rows: tuple[Guarded, ...]
    delta: float
    what: str  # in words

    @property
    def worst(self) -> float:
        return max(row.worst for row in self.rows)

    def times(self, mu: float) -> float:
        """By what all masks (scale and amplitude) must grow for the worst mu to be this."""
        return float(self.worst / mu)

    def __str__(self) -> str:
        return "\n".join([f"{self.what}; epsilon at delta = {self.delta:g}", *map(str, self.rows)])


def protection(
    problem: Problem, graph: Any, masks: str | Applied, *, bound: Any, coalition: Iterable[int] | None = None, records: Any = None,
    weight: float = 1.0, result: Any = None, runs: int = 1, delta: float = 1e-5, nodes: Iterable[int] | None = None,
) -> Protection:  # fmt: skip
    """What function masks promise each node, for one record of at most the declared size.

    masks      "function-masks:scale=30", or sv.mechanism("function-masks", ...)
    bound      (largest norm of a record's features, largest |target|); a number where there is no target (labels are -1 or 1), or
               where what is hidden is a node's value: then how far apart two values may be
    coalition  the curious; None: against each node all others but its neighbour with the fewest edges to it
    records    (X, y): the worst and the median of these; unless given, of records drawn evenly from within the bound
    weight     2 for costs without the factor 1/2, as in problems.estimation
    result     a rehearsal with record=True: kind="matern" hides at the points where the run goes
    runs       so many runs with fresh masks each; with a book, one
    nodes      whom to ask about; all unless given
    """
    applied, network = mechanism(masks), as_graph(graph)
    if applied.mechanism.name != "function-masks":
        raise ParameterError(f"only function masks have this budget, not {applied.mechanism.name}")
    if not isinstance(network, Graph):
        raise ParameterError("the budget is stated for one graph, not for a sequence; name the edges that are always there")
    options = applied.options
    sizes = _Sizes(problem, bound, records, weight)
    more = runs**0.5 if options.book is None else 1.0
    rows = []
    for i in range(network.n) if nodes is None else nodes:
        if coalition is not None and i in set(coalition):
            continue
        honest = _least(network, i) if coalition is None else set(range(network.n)) - {int(j) for j in coalition}
        partner, resistance = nearest(network, honest, i)
        if partner is None:
            rows.append(Guarded(i, None, np.inf, np.inf, np.inf, np.inf, np.inf, 1.0))
            continue
        norms = _quadratic(options, sizes) if options.kind == "quadratic" else _matern(options, sizes, result, i, partner)
        mus = more * resistance**0.5 * norms
        rows.append(_row(i, partner, resistance, float(mus.max()), float(np.median(mus[sizes.usual])), delta))
    return Protection(tuple(rows), delta, f"{sizes.told}, {_times(runs, options.book)}")


def _times(runs: int, book: Any) -> str:
    return "any number of runs on masks that are kept" if book is not None else f"{runs} run{'s' * (runs > 1)} with fresh masks"


def _row(i: int, partner: int, resistance: float, worst: float, median: float, delta: float) -> Guarded:
    from scipy.special import ndtr

    epsilon, usual = (epsilon_of(mu, delta) for mu in (worst, median))
    return Guarded(i, partner, resistance, worst, median, epsilon, usual, float(ndtr(worst / 2)))


def laplacian(graph: Graph, honest: Iterable[int]) -> tuple[list[int], Array]:
    """The honest nodes in order, and the Laplacian of the edges between them; both directions of a link count."""
    members = sorted(honest)
    place = {node: p for p, node in enumerate(members)}
    L = np.zeros((len(members), len(members)))
    for s, r in graph.edges:
        if s in place and r in place:
            a, b = place[s], place[r]
            L[a, a] += 1
            L[b, b] += 1
            L[a, b] -= 1
            L[b, a] -= 1
    return members, L


def nearest(graph: Graph, honest: Iterable[int], i: int) -> tuple[int | None, float]:
    """The honest node that hides i best, and the effective resistance to it; None where no path of honest edges leads anywhere."""
    members, L = laplacian(graph, honest)
    a, inverse = members.index(i), np.linalg.pinv(L)
    joined = [b for b in _component(L, a) if b != a]
    if not joined:
        return None, np.inf
    R = [inverse[a, a] + inverse[b, b] - 2 * inverse[a, b] for b in joined]
    best = int(np.argmin(R))
    return members[joined[best]], float(R[best])


def least_hidden(graph: Graph) -> int:
    """The node with the largest resistance to the one neighbour that is left to it; the first of those that are alike."""
    ohms = [nearest(graph, _least(graph, i), i)[1] for i in range(graph.n)]
    return next(i for i, found in enumerate(ohms) if found >= max(ohms) * (1 - 1e-9))


def _component(L: Array, a: int) -> list[int]:
    found, todo = {a}, [a]
    while todo:
        new = set(np.flatnonzero(L[todo.pop()] < 0).tolist()) - found
        found |= new
        todo.extend(new)
    return sorted(found)


def _least(graph: Graph, i: int) -> set[int]:
    """Node i and the neighbour with the fewest edges to it."""
    near = [*graph.in_neighbours(i), *graph.out_neighbours(i)]
    return {i, min(set(near), key=lambda j: (near.count(j), j))}


class _Sizes:
    """Which records are looked at."""

    def __init__(self, problem: Problem, bound: Any, records: Any, weight: float):
        self.problem, self.weight, self.value = problem, weight, problem.values is not None
        largest = np.atleast_1d(np.asarray(bound, dtype=float))
        if largest.ndim != 1 or len(largest) not in (1, 2) or not (np.isfinite(largest).all() and (largest > 0).all()):
            raise ParameterError(f"bound must be one or two numbers above 0, (norm of the features, |target|); got {bound!r}")
        quadratic = problem.family.quadratic
        if quadratic and not self.value and len(largest) != 2:
            raise ParameterError("least squares needs both bounds, (norm of the features, |target|)")
        self.bound, self.usual = largest, slice(None)  # which records the median is over
        self.X, self.y = self._drawn() if records is None else self._given(records)
        size = f"a value within {largest[0]:g}" if self.value else f"a record of norm at most {largest[0]:g}"
        self.told = size + (f" and target at most {largest[1]:g}" if len(largest) == 2 and not self.value else "")

    def _drawn(self) -> tuple[Array, Array]:
        """Evenly from the ball, and as many on its border, with the largest target where there is one."""
        rng, d = np.random.default_rng(0), self.problem.d
        way = rng.standard_normal((2 * TRIED, d))
        radius = np.append(rng.uniform(size=TRIED) ** (1 / d), np.ones(TRIED))
        X = self.bound[0] * radius[:, None] * way / np.linalg.norm(way, axis=1, keepdims=True)
        y = rng.choice([-1.0, 1.0], 2 * TRIED)
        if len(self.bound) == 2:
            y *= self.bound[1] * np.append(rng.uniform(size=TRIED), np.ones(TRIED))
        self.usual = slice(TRIED)
        return X, y

    def _given(self, records: Any) -> tuple[Array, Array]:
        X, y = (np.asarray(part, dtype=float) for part in records)
        if X.ndim != 2 or X.shape[1] != self.problem.d or y.shape != X.shape[:1]:
            raise ParameterError(f"records are (X, y) of shapes (m, {self.problem.d}) and (m,); got {X.shape} and {y.shape}")
        norm = np.linalg.norm(X, axis=1).max()
        if norm > self.bound[0] * (1 + 1e-9) or (len(self.bound) == 2 and np.abs(y).max() > self.bound[1] * (1 + 1e-9)):
            raise ParameterError(
                f"a record is larger than the declared bound (norm {norm:g}, declared {self.bound[0]:g}); declare one that holds"
            )
        return X, y


def _quadratic(options: Any, sizes: _Sizes) -> Array:
    """|h| over Sigma: S has the variance scale^2 off its diagonal and twice that on it, so |S|^2 / (2 scale^2), Frobenius' norm."""
    if sizes.value:
        return np.full(1, sizes.bound[0] / (options.tilt * options.scale))
    norm = np.linalg.norm(sizes.X, axis=1)
    square = (sizes.weight * norm**2) ** 2 / 2 + (sizes.weight * sizes.y * norm / options.tilt) ** 2
    return np.sqrt(square) / options.scale


def _matern(options: Any, sizes: _Sizes, result: Any, i: int, m: int) -> Array:
    """The smallest change of coefficients that has a record's gradients wherever node i or node m was."""
    if result is None or result.transcript is None or result.trajectory is None:
        raise ParameterError("kind='matern' hides at the points where the run goes: give result=, a rehearsal with record=True")
    d = sizes.problem.d
    paths = [result.trajectory[:, 0, j] for j in (i, m)]
    points = different(np.concatenate([path[thinned(len(path))] for path in paths]))
    features, plain = Features(d, options.amplitude, options.length, options.features), Quadratics(d, options.scale, options.tilt)
    waves = features.waves_among(result.transcript.draws)
    if waves is None:
        raise ParameterError("the rehearsal was played with other masks; run it with the very same mechanism")
    change = record_gradients(sizes.problem, sizes.X, sizes.y, points).reshape(len(sizes.X), -1).T
    if points.size * features.count > LARGE:
        return norms(lambda: _blocks(features, waves, plain, points), change)
    return by_svd(np.hstack([features.gradients_of(waves, points), plain.gradients_of(points)]), change)


def _blocks(features: Features, waves: Waves, square: Quadratics, points: Array) -> Iterator[Array]:
    """The gradients of all coefficients at the points, some coefficients at a time."""
    yield square.gradients_of(points)
    for lo in range(0, features.count, BLOCK):
        yield features.gradients_of(Waves(*(part[:, lo : lo + BLOCK] for part in waves)), points)


def record_gradients(problem: Problem, X: Array, y: Array, points: Array) -> Array:
    """(records, points, d): the gradient of each record's loss at each point (points, d)."""
    if not isinstance(problem.family, Loss):
        raise ParameterError(f"what a record adds to the cost of a {problem.family.name} problem is not known; take a ready one")
    m, d = X.shape
    alone = (X[:, None], y[:, None], np.ones((m, 1)), np.zeros((m, d)), *(part[:1].repeat(m, 0) for part in problem.data[4:]))
    x = np.broadcast_to(points.T[None], (m, d, len(points)))
    return problem.family.gradient(np, alone, x).transpose(0, 2, 1)
