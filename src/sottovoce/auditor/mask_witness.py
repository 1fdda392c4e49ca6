"""Another world behind masks on costs: half of a cost is an honest neighbour's instead, and all looks the same.

    f_i' = f_i - h,    f_m' = f_m + h,    R' = R - h on an edge from i to m, or R + h on one from m to i;     h = f_i / 2

(of a cost that is not quadratic, half of its quadratic model at the optimum). Least squares stay least squares: both costs keep
their curvature above zero, however few records a node has. Every masked cost f^ is what it was, and whatever anybody sees is a
function of these. The mask stays Gaussian: the two worlds are told apart with chance Phi(mu / 2), mu the size of h in units of a
mask; from TOLD_APART on it is no witness. Checked here on the recorded points: the gradients that were used are those of the other
world.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..masks import Quadratics
from ..transcript import Transcript
from ..view import view_of
from .masked import Law, law_of
from .worlds import gap

Array = np.ndarray
TOLD_APART = 2.0  # mu from which the other world is no witness: the better guess is right with chance 0.84
SAME = 1e-9  # difference of gradients, of the largest so far, that is rounding


def mask_witness(transcript: Transcript, victim: int, coalition: Iterable[int]) -> dict[str, Any] | None:
    """The evidence; None where every neighbour is curious, the masks are too small, or the other world is not the record."""
    problem, n = transcript.costs, int(transcript.header["graph"]["n"])
    law = None if problem is None else law_of(view_of(transcript, range(n)))
    edge = _edge(transcript, victim, set(coalition))
    if law is None or edge is None or not {"x", "g"} <= set(transcript.states[-1]):
        return None
    h = half(problem, victim)
    change = coefficients_of(law.plain, *h)
    mu = float(np.linalg.norm(change) * np.sqrt(len(transcript.header["runs"])))
    if mu > TOLD_APART:
        return None
    s, r = transcript.edges[edge]
    other = law.drawn.copy()
    other[edge, : law.plain.size] -= change if s == victim else -change
    pair = {victim: -1.0, (r if s == victim else s): 1.0}
    difference = max(_difference(transcript, law._replace(drawn=other), node, sign, h) for node, sign in pair.items())
    if not difference <= SAME:
        return None
    here, there = (float(np.sum(mask[edge] ** 2)) for mask in (law.drawn, other))
    return {
        "neighbour": int(r if s == victim else s), "difference": float(difference), "mu": mu,
        "log_likelihood_ratio": (here - there) / 2, "text": "half of its cost could be its neighbour's, with the same view",
    }  # fmt: skip


def half(problem: Any, node: int) -> tuple[Array, Array]:
    """H and t of h(x) = x'Hx/2 + t'x."""
    H = problem.hessian(problem.optimum)[node] / 2
    return (H + H.T) / 2, problem.gradient(problem.optimum)[node] / 2 - H @ problem.optimum


def coefficients_of(masks: Quadratics, H: Array, t: Array) -> Array:
    """The coefficients of a mask that is x'Hx/2 + t'x."""
    rows, columns = np.triu_indices(masks.d)
    return np.append(H[rows, columns] / masks.spread[rows, columns, 0], t / (masks.tilt * masks.scale))


def _edge(transcript: Transcript, victim: int, coalition: set[int]) -> int | None:
    """An edge between the victim and an honest neighbour."""
    return next((e for e, (s, r) in enumerate(transcript.edges) if victim in (s, r) and not {s, r} & coalition), None)


def _difference(transcript: Transcript, law: Law, node: int, sign: float, h: tuple[Array, Array]) -> float:
    """Between the gradients that a node used and those that it has in the other world, at the recorded points."""
    ks = range(-1, transcript.iterations)
    x, used = (np.array([np.asarray(transcript.states[k][name])[node, :, 0] for k in ks]) for name in "xg")
    own = np.array([transcript.costs.gradient(point)[node] for point in x]) + sign * (x @ h[0] + h[1])
    masks = (law.gradients_of(x) @ law.on(transcript.graph.edges, node)).reshape(x.shape)
    return float(gap(list(used), list(own + masks)))
