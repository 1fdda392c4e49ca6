"""A19, regression on the mean weight: late weights that are secret, but of a known law, average out.

    M = c y + b H dx,  E[M | y, dx] = mean(c) y + mean(b) H dx,  with y = u / stepsize and dx = x+ - x read exactly

Linear in H: least squares over iterations, runs and listeners. Consistent; the error falls like 1 / sqrt(iterations x runs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import coordinates, seen, tracking

Array = np.ndarray
ROUNDING = 1e-8  # increments below this share of x are mostly rounding
SWEEPS = 4  # times that rows are weighed anew
QUIET = 1e-3  # a row counts as no more exact than this share of what its message holds


def run(view: View, victim: int) -> list[Estimate]:
    """The victim's curvature from all runs of the view together."""
    rows = _rows(view, victim)
    if rows is None:
        return []
    H = regressed(*rows)
    return [] if H is None else [Estimate((victim,), "curvature", H)]


def _rows(view: View, victim: int) -> tuple[Array, Array, Array] | None:
    """M, y times the mean weight, and dx times it, each (row, coordinate); None where something of it is not seen."""
    if not (tracking(view) and view.sent and "coordinates" in view.header) or victim in view.coalition:
        return None
    d, n, tail = coordinates(view), view.graph.n, range(view.settled, view.iterations - 1)
    ears = [view.edge(victim, r) for r in view.graph.out_neighbours(victim) if 0 <= victim < n and seen(view, victim, r)]
    if not ears or not tail or not all(_secret(view, e, k) for e in ears for k in (tail[0], tail[-1])):
        return None
    if any(view.sent[k, 0].shape[1] != 2 * d for k in tail):  # y is not to be had
        return None
    said = np.array([view.sent[k, 0][ears[0]] for k in (*tail, tail[-1] + 1)])
    x, y = said[:, :d], said[:-1, d:] / view.stepsize[victim]
    dx, mean = np.diff(x, axis=0), 1 / (1 + len(view.graph.out_neighbours(victim)))
    lively = np.abs(dx).max(1) > ROUNDING * np.abs(x[:-1]).max(1)
    flat = lambda v: v.transpose(0, 2, 1)[lively]
    M = [flat(np.array([view.sent[k, 1][e] for k in tail])) for e in ears]
    return np.concatenate(M), np.tile(mean * flat(y), (len(ears), 1)), np.tile(mean * flat(dx), (len(ears), 1))


def _secret(view: View, edge: int, k: int) -> bool:
    """Whether C and B on this edge come from the paper's sampler, whose mean is known, and are kept (else A3 is exact)."""
    sender, receiver = view.graph.edges[edge]
    entry = view.entry(receiver, sender)
    drawn = [view.draws.get((name, k)) for name in ("C", "B")]
    kinds = [view.header["parameters"][name].startswith("paper") for name in ("C", "B")]
    return all(kinds) and all(d is None or np.isnan(d.value[entry]).any() for d in drawn)


def regressed(M: Array, y: Array, dx: Array) -> Array | None:
    """The symmetric H with M = y + H dx on average. Rows are weighed by their spread, which is that of y and H dx alone."""
    d = M.shape[1]
    if M.size < d * (d + 1):
        return None
    size = np.linalg.norm(y, axis=1, keepdims=True)
    stiff = np.median(size / np.linalg.norm(dx, axis=1, keepdims=True))
    spread = size + stiff * np.linalg.norm(dx, axis=1, keepdims=True) + np.zeros_like(M)
    H = np.zeros((d, d))
    for _ in range(SWEEPS):
        H = _least_squares((M - y) / spread, dx, spread)
        rise = dx @ H
        total = np.linalg.norm(y, axis=1, keepdims=True) + np.linalg.norm(rise, axis=1, keepdims=True)
        spread = np.sqrt(y**2 + rise**2) + QUIET * total
    return H if np.isfinite(H).all() else None


def _least_squares(goal: Array, dx: Array, spread: Array) -> Array:
    """Rows H dx / spread = goal, all coordinates together, since H is symmetric."""
    d = dx.shape[1]
    upper = np.triu_indices(d)
    parts = np.zeros((len(dx), d, len(upper[0])))
    for p, (a, b) in enumerate(zip(*upper, strict=True)):
        parts[:, a, p] = dx[:, b]
        parts[:, b, p] = dx[:, a]
    found = np.linalg.lstsq((parts / spread[:, :, None]).reshape(-1, len(upper[0])), goal.ravel(), rcond=None)[0]
    H = np.zeros((d, d))
    H[upper] = H.T[upper] = found
    return H


def control() -> tuple[Any, int, Any]:
    from ...controls import five
    from ...registry import mechanism

    view, truth = five((1,), runs=100, iterations=200, mechanisms=(mechanism("secret-late-weights", each="coordinate"),))
    return view, 0, truth


register(
    Attack(
        name="mean-weight-regression",
        id="A19",
        assets=("curvature",),
        uses="one link from the victim; late C and B by the paper's sampler, kept secret; best with many runs on the same data",
        idea="A message is c y + b H dx with y and dx read exactly; c and b have known means.\n"
        "Least squares on the mean gives H, and better the more iterations and runs.",
        metric="relative error of H; falls like 1 / sqrt(iterations x runs)",
        run=run,
        control=control,
    )
)
