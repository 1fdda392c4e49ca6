"""How likely the draws of another world are, beside those of this one, under the declared law."""

from __future__ import annotations

import numpy as np

from ..laws import Law
from .worlds import Array, World, wide


def log_density(law: Law, value: Array) -> Array:
    """The logarithm of the density of a law."""
    t = abs(np.asarray(value, dtype=float)) / law.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = {
            "normal": lambda: -t * t / 2 - np.log(2 * np.pi) / 2,
            "laplace": lambda: -t - np.log(2),
            "uniform": lambda: np.where(t <= 1, -np.log(2), -np.inf),
            "cauchy": lambda: -np.log(np.pi) - np.log1p(t * t),
            "log-laplace": lambda: -abs(np.log(t)) / law.spread - np.log(4 * law.spread) - np.log(t),
        }[law.name]()
    return inside - np.log(law.scale)


def log_ratio(world: World, other: World, i: int, m: int) -> float | None:
    """Of the numbers that were drawn and differ: Lambda and C of i and m in iteration 0, their own share of C apart."""
    if world.law is None:
        return None
    d, pair = world.x0.shape[1], [i, m]
    sent = np.isin(world.sender, pair) & (world.sender != world.receiver)
    drawn = [np.concatenate([wide(w.iterations[0].stepsize, d)[pair], wide(w.iterations[0].C, d)[sent]]) for w in (world, other)]
    moved = np.any(other.shift != world.shift, axis=0)
    here, there = (float(log_density(world.law, np.asarray(v, float))[:, moved].sum()) for v in drawn)
    return there - here if np.isfinite(here) and there < np.inf else None


def log_volume(world: World, i: int, m: int, delta: Array) -> float:
    """How much the construction stretches what i and m drew."""
    y, moved = world.gradient(world.x0), delta != 0
    edges = [s for s, _ in world.graph.edges]
    total = 0.0
    for node, change in ((i, delta), (m, -delta)):
        stretch = abs(np.asarray(y[node, moved] / (y[node, moved] + change[moved]), dtype=float))
        with np.errstate(divide="ignore"):
            total += (1 + edges.count(node)) * float(np.log(stretch).sum())
    return total
