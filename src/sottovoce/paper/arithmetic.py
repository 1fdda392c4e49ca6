"""The same run in three arithmetics: float64 as it comes, float64 with sum y = sum g kept, and a hundred decimal digits.

Plain float64 is a mechanism that does nothing but say that the sum may drift. The hundred digits replay a recorded run's draws,
sums of weights completed to one anew.
"""

from __future__ import annotations

import decimal
from dataclasses import replace
from typing import Any

import numpy as np

from ..auditor.worlds import Iteration, Quadratics, World, replay, summed, world_of
from ..node import Layer
from ..registry import Applied, Mechanism
from ..run import run
from . import setting

DIGITS = 100
METHOD = "private-gradient-tracking"
Array = np.ndarray
PLAIN = Applied(Mechanism("plain-float64", "none: rounding may move a promised sum", Layer, breaks_invariant=True), ())


def kept(K: int, runs: int) -> Any:
    """In float64, sum y = sum g kept to rounding."""
    return run(METHOD, setting.problem(), setting.graph(), **_options(K, runs))


def plain(K: int, runs: int) -> Any:
    """In float64 as it comes."""
    return run(METHOD, setting.problem(), setting.graph(), mechanisms=PLAIN, **_options(K, runs))


def length(K: int) -> int:
    """Iterations until every run has long reached its floor."""
    return 1500 + 60 * K


def exact(K: int, number: int = 0) -> Array:
    """The error at every k of one run in a hundred digits, as floats."""
    options = _options(K, 1) | {"runs": [number]}
    world = world_of(setting.recorded(METHOD, setting.problem(), setting.graph(), **options))
    with decimal.localcontext(prec=DIGITS):
        wide = in_decimals(world)
        optimum = _optimum(wide)
        return np.array([float(((x - optimum) ** 2).sum().sqrt()) for x in replay(wide).x])


def _options(K: int, runs: int) -> dict[str, Any]:
    return {"K": K, "runs": runs, "stepsize": setting.STEPSIZE, "iterations": length(K), "seed": setting.SEED}


def in_decimals(world: World) -> World:
    """The same world in decimals of the context's precision; what must sum to one is completed to one by what nodes keep."""
    own, n = world.sender == world.receiver, world.graph.n

    def completed(weight: Array, index: Array) -> Array:
        weight = _decimals(weight)
        weight[own] += 1 - summed(weight, index, n)
        return weight

    def one(k: int, w: Iteration) -> Iteration:
        rows = [completed(v, world.receiver) if k >= world.settled else _decimals(v) for v in (w.R, w.A)]
        return Iteration(_decimals(w.stepsize), *rows, *(completed(v, world.sender) for v in (w.C, w.B)))

    assert isinstance(world.costs, Quadratics)
    return replace(
        world, x0=_decimals(world.x0), shift=_decimals(world.shift), costs=Quadratics(*map(_decimals, world.costs)),
        iterations=tuple(one(k, w) for k, w in enumerate(world.iterations)),
    )  # fmt: skip


def _decimals(array: Array) -> Array:
    return np.array([decimal.Decimal(v) for v in array.ravel().tolist()], dtype=object).reshape(array.shape)


def _optimum(world: World) -> Array:
    """Cramer's rule for the two unknowns."""
    assert isinstance(world.costs, Quadratics)
    (a, b), (c, d) = world.costs.H.sum(0)
    e, f = world.costs.b.sum(0) - world.shift.sum(0)
    return np.array([e * d - b * f, a * f - c * e], dtype=object) / (a * d - b * c)
