"""Another world behind masks on costs: half of a cost is an honest neighbour's instead, and all looks the same.

    f_i' = f_i - h,    f_m' = f_m + h,    R' = R - h on an edge from i to m, or R + h on one from m to i

h is half of f_i where costs are quadratic (least squares stay least squares: both keep their curvature above zero, however few
records a node has), and the first half of its records where they are sums over records; there the mask changes by the smallest
change of its coefficients that has h's gradients wherever the two nodes were. Every masked gradient is what it was, and whatever
anybody sees is a function of these. The mask stays Gaussian: the two worlds are told apart with chance Phi(mu / 2), mu the size of
that change in units of a mask; from TOLD_APART on it is no witness. Checked here on the recorded points: the gradients that were
used are those of the other world.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..masks import Quadratics
from ..problems.losses import Loss
from ..protection import record_gradients
from ..transcript import Transcript
from .masked import Law
from .worlds import gap

Array = np.ndarray
Slope = Callable[[Array], Array]  # points (m, d) -> gradients of h there, (m, d)
TOLD_APART = 2.0  # mu from which the other world is no witness: the better guess is right with chance 0.84
SAME = 1e-9  # difference of gradients, of the largest so far, that is rounding
LARGE = 1500  # numbers of all visited gradients of two nodes, beyond which a change of features is not solved for


def mask_witness(transcript: Transcript, law: Law, victim: int, edge: int) -> dict[str, Any] | None:
    """The evidence for an edge to an honest neighbour; None where the masks are too small, or the other world is not the record."""
    problem = transcript.costs
    if problem is None or not {"x", "g"} <= set(transcript.states[-1]):
        return None
    s, r = transcript.edges[edge]
    neighbour = int(r if s == victim else s)
    moved = _moved(problem, victim, law, [_path(transcript, node)[0] for node in (victim, neighbour)])
    if moved is None:
        return None
    slope, change = moved
    mu = float(np.linalg.norm(change) * np.sqrt(len(transcript.header["runs"])))
    if mu > TOLD_APART:
        return None
    other = law.drawn.copy()
    other[edge, : len(change)] -= change if s == victim else -change
    pair = {victim: -1.0, neighbour: 1.0}
    difference = max(_difference(transcript, law._replace(drawn=other), node, sign, slope) for node, sign in pair.items())
    if not difference <= SAME:
        return None
    here, there = (float(np.sum(mask[edge] ** 2)) for mask in (law.drawn, other))
    return {
        "neighbour": neighbour, "difference": float(difference), "mu": mu,
        "log_likelihood_ratio": (here - there) / 2, "text": "half of its cost could be its neighbour's, with the same view",
    }  # fmt: skip


def _moved(problem: Any, node: int, law: Law, visited: list[Array]) -> tuple[Slope, Array] | None:
    """What moves, and by which coefficients a mask takes it up; None where that cannot be said."""
    if problem.family.quadratic:
        H, t = half(problem, node)
        return (lambda points: points @ H + t), coefficients_of(law.plain, H, t)
    points = np.concatenate(visited)
    if not isinstance(problem.family, Loss) or points.size > LARGE:
        return None
    X, y, mask = (part[node] for part in problem.data[:3])
    first = np.flatnonzero(mask > 0)[: (int(mask.sum()) + 1) // 2]
    slope: Slope = lambda points: record_gradients(problem, X[first], y[first], points).sum(0)
    return slope, np.linalg.lstsq(law.gradients_of(points), slope(points).ravel(), rcond=None)[0]


def half(problem: Any, node: int) -> tuple[Array, Array]:
    """H and t of h(x) = x'Hx/2 + t'x, half of a quadratic cost."""
    H = problem.hessian(problem.optimum)[node] / 2
    return (H + H.T) / 2, problem.gradient(problem.optimum)[node] / 2 - H @ problem.optimum


def coefficients_of(masks: Quadratics, H: Array, t: Array) -> Array:
    """The coefficients of a mask that is x'Hx/2 + t'x."""
    rows, columns = np.triu_indices(masks.d)
    return np.append(H[rows, columns] / masks.spread[rows, columns, 0], t / (masks.tilt * masks.scale))


def _path(transcript: Transcript, node: int) -> tuple[Array, Array]:
    """Where a node was, and the gradients that it used there."""
    ks = range(-1, transcript.iterations)
    x, used = (np.array([np.asarray(transcript.states[k][name])[node, :, 0] for k in ks]) for name in "xg")
    return x, used


def _difference(transcript: Transcript, law: Law, node: int, sign: float, slope: Slope) -> float:
    """Between the gradients that a node used and those that it has in the other world, at the recorded points."""
    x, used = _path(transcript, node)
    own = np.array([transcript.costs.gradient(point)[node] for point in x]) + sign * slope(x)
    masks = (law.gradients_of(x) @ law.on(transcript.graph.edges, node)).reshape(x.shape)
    return float(gap(list(used), list(own + masks)))
