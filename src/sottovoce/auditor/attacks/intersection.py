"""A11: sums over different groups, from several runs, graphs or receivers, taken apart; repeats averaged.

Each sum is a row over the nodes. A node is isolated as soon as its unit vector lies in the span of the rows. Where a single
view holds many runs on the same data, independent noise averages away: first messages are averaged over the runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import ParameterError
from ...view import View
from ..attack import Attack, Estimate, register
from .denoising import first_gradient

Array = np.ndarray
TOLERANCE = 1e-9  # how far from the span of the rows a unit vector may lie
UNSURE = 0.5  # relative standard error from which on nothing is said


def indicator(groups: Sequence[Iterable[int]], n: int) -> Array:
    """A row a group: one where a node belongs to it."""
    rows = np.zeros((len(groups), n))
    for row, group in zip(rows, groups, strict=True):
        row[list(group)] = 1
    return rows


def isolated(rows: Array, sums: Array) -> dict[int, Array]:
    """The nodes that sums = rows @ values determines, and their values; rows (m, n), sums (m, ...)."""
    rows, sums = np.asarray(rows, dtype=float), np.asarray(sums, dtype=float)
    if rows.ndim != 2 or len(rows) != len(sums):
        raise ParameterError(f"expected a row of weights a sum; got rows of shape {rows.shape} and {len(sums)} sums")
    if rows.size == 0:
        return {}
    U, s, V = np.linalg.svd(rows, full_matrices=False)
    kept = s > 1e-12 * max(s.max(), 1e-300) * max(rows.shape)
    V, inverse = V[kept], (V[kept].T / s[kept]) @ U[:, kept].T
    missing = 1 - (V**2).sum(0)  # of each unit vector, outside the span
    values = np.tensordot(inverse, sums, axes=1)
    return {int(i): values[i] for i in np.flatnonzero(missing < TOLERANCE)}


def taken_apart(sums: Sequence[tuple[Iterable[int], Any]]) -> dict[int, Array]:
    """Node -> value from (group, sum) pairs, whichever runs or graphs they are from."""
    groups = [sorted({int(i) for i in group}) for group, _ in sums]
    nodes = sorted({i for group in groups for i in group})
    place = {node: at for at, node in enumerate(nodes)}
    rows = indicator([[place[i] for i in group] for group in groups], len(nodes))
    found = isolated(rows, np.array([np.asarray(value, dtype=float) for _, value in sums]))
    return {nodes[at]: value for at, value in found.items()}


def run(view: View, victim: int) -> list[Estimate]:
    """The mean over the runs of the first gradient that the messages state; exact in the limit where the cost is quadratic."""
    found = first_gradient(view, victim)
    if found is None or (m := found[1].shape[1]) < 2:
        return []
    x, g = (part.mean(1) for part in found)
    error = np.linalg.norm(found[1].std(1, ddof=1)) / np.sqrt(m)
    return [Estimate((victim,), "offset", g, x)] if error < UNSURE * np.linalg.norm(g) else []


def control() -> tuple[Any, int, Any]:
    """Four thousand noisy runs of AB from one start: the noise is a third of the message, its mean is not."""
    from ... import controls, graphs, problems

    problem = problems.average(np.array([[3.0, -2.0], [1.0, 0.5], [-2.0, 4.0]]))
    options = {"mechanisms": "message-noise:scale=0.5", "x0": np.zeros((3, 2)), "runs": 4000, "iterations": 2, "stepsize": 0.1}
    view, truth = controls.recorded("ab", problem, graphs.paper_a(), {1}, **options)
    return view, 0, truth


register(
    Attack(
        name="intersection",
        id="A11",
        assets=("offset",),
        uses="sums over several groups (`taken_apart`), or one view of several runs on the same data",
        idea="Each sum is a row over the nodes; a node is read once its unit vector is in the span of the rows.\n"
        "Repeats of one computation average independent noise away.",
        metric="nodes isolated after r sums; relative error of the averaged gradient",
        run=run,
        control=control,
    )
)
