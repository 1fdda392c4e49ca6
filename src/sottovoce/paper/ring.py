"""The paper's network of 100 nodes (section 5.2.4), each sending to the next two, and what can be done about its speed.

With every node weighing all alike, values go round the ring for as long as they mix: the largest stable step is some 3e-5, and a
digit costs tens of thousands of iterations, whatever the scale of the data. The paper names neither stepsize nor weights. Table
II allows others: with `through_a_hub`, node 0 keeps almost all of what it has, and everybody else passes almost all on by the
longer hop, so that values run to node 0 and out again and stop going round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import graphs, problems
from ..graph import Graph
from ..problem import Problem

N, SEED, ETA = 100, 0, 0.01
PROBLEM = "estimation:n=100,d=2,s=3,scale=0.5,seed=0"
Array = np.ndarray


def problem(scale: float = 0.5) -> Problem:
    return problems.estimation(n=N, d=2, s=3, scale=scale, seed=SEED)


def alike() -> Problem:
    """Every node with the same curvature, as even as data can be."""
    rng = np.random.default_rng(SEED)
    Q = np.stack([np.linalg.qr(rng.standard_normal((3, 2)))[0] for _ in range(N)])
    return problems.estimation(Q=Q, z=Q @ rng.standard_normal(2) + 0.1 * rng.standard_normal((N, 3)))


def one_way() -> Graph:
    """As printed: N_out(i) = {i + 1, i + 2}."""
    return graphs.ring(N)


def two_way() -> Graph:
    """The same links, both ways."""
    return graphs.ring(N, two_way=True)


def by_hop(own: float, first: float, second: float) -> Array:
    """The same weights at every node: what it keeps, and what goes one and two nodes on."""
    shift = lambda h: np.roll(np.eye(N), h, axis=0)
    return own * shift(0) + first * shift(1) + second * shift(2)


def through_a_hub(eta: float = ETA) -> dict[str, Any]:
    """R and A, C and B with entries in [eta, 1], as Table II asks: node 0 keeps 1 - 2 eta, the others pass on 1 - 2 eta."""
    R, C = np.zeros((N, N)), np.zeros((N, N))
    for i in range(N):
        back, on = [(i - h) % N for h in (0, 1, 2)], [(i + h) % N for h in (0, 1, 2)]
        R[i, back], C[on, i] = eta, eta
        R[i, back[0 if i == 0 else 1 if i == 1 else 2]] = 1 - 2 * eta  # node 1 has no other way to hear node 0
        C[on[0 if i == 0 else 1 if i == N - 1 else 2], i] = 1 - 2 * eta
    return {"R": R, "A": "R", "C": C, "B": "C"}


def rate(problem: Problem, R: Array, C: Array, step: float) -> float:
    """Error ratio of an iteration to the next in the long run, with A = R and B = C: the spectral radius of

        x+ = R (x - step y),   y+ = C (y + H (x+ - x)),

    less the eigenvalue one of what is conserved, sum (y - H x).
    """
    d = problem.d
    H, I = np.zeros((2, N * d, N * d))
    for i, h in enumerate(problem.hessian(problem.optimum)):
        H[i * d : (i + 1) * d, i * d : (i + 1) * d] = h
    np.fill_diagonal(I, 1)
    R, C = np.kron(R, np.eye(d)), np.kron(C, np.eye(d))
    values = np.linalg.eigvals(np.block([[R, -step * R], [C @ H @ (R - I), C - step * C @ H @ R]]))
    return float(np.abs(values[np.argsort(np.abs(values - 1))][d:]).max())


def uniform(graph: Graph) -> tuple[Array, Array]:
    """Rows and columns of equal weights."""
    joined = graph.adjacency() + np.eye(graph.n)
    return joined / joined.sum(1)[:, None], joined / joined.sum(0)
