"""A21, the update inverted: a public method's own steps, played on unknowns, are equations that what was heard fills in.

    x_i+ = (what i heard) - step * grad f_i(x_i)      or      x_i+ = argmin f_i + p.x + q|x|^2/2,  grad f_i(x_i+) = -(p + q x_i+)

Whoever hears a node and all that enters its update knows everything but the gradient. It is not written here method by method: the
replay (replay.py) plays any registered method and mechanism that way. Gradient tracking has attacks of its own (A1 to A9).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import enclosed, tracking
from ..replay import Played, played
from .record_features import features
from .tail_secants import curvature

Array = np.ndarray
LAGS = (1, 2)  # PDMM's duals go to and fro: they come back to what they were in the iteration after next
FEW = 5  # points at which a group is looked at


def run(view: View, victim: int) -> list[Estimate]:
    if tracking(view) or victim in view.coalition or not 0 <= victim < parties(view):
        return []
    found = played(view)
    if found is None:
        return []
    start = found.solved.array(found.start[victim, :, 0])
    said = [Estimate((victim,), "start", start)] if np.isfinite(start).all() else []
    return said + of_one(view, found, victim) + _around(view, found, enclosed(view, victim))


def parties(view: View) -> int:
    """How many nodes have costs."""
    return view.graph.n - int(view.header.get("helpers", 0))


def of_one(view: View, found: Played, victim: int) -> list[Estimate]:
    """Its gradients where they and their points are fixed; its curvature where increments are."""
    if not found.gradients:
        return []
    value = lambda forms: found.solved.array(forms[victim, :, 0])
    x, g = (np.array([value(forms) for forms in side]) for side in zip(*found.gradients, strict=True))
    there = np.isfinite(np.column_stack([x, g])).all(1)
    said = [Estimate((victim,), "offset", g[there][0], x[there][0])] if there.any() else []
    said += [Estimate((victim,), "along-the-way", g[there], x[there])] if there.sum() > 1 else []
    H = next((H for lag in LAGS if (H := bent(found, victim, lag)) is not None), None)
    if H is not None:
        said.append(Estimate((victim,), "curvature", H))
        said += features(view, said[-1])
    return said


def bent(found: Played, victim: int, lag: int) -> Array | None:
    """The Hessian behind what gradients differ by, so many iterations apart, where that is fixed."""
    value = lambda forms: found.solved.array(forms[victim, :, 0])
    pairs = list(zip(found.gradients, found.gradients[lag:], strict=False))
    fixed = lambda before, after: np.isfinite(value(after.g - before.g)).all()
    if not pairs or not (fixed(*pairs[0]) or fixed(*pairs[len(pairs) // 2])):  # where they are open they are long sums
        return None
    dx, dg = (np.array([value(after[i] - before[i]) for before, after in pairs]) for i in (0, 1))
    there = np.isfinite(np.column_stack([dx, dg])).all(1)
    return curvature(dx[there], dg[there], np.ones(int(there.sum())))


def _around(view: View, found: Played, group: tuple[int, ...]) -> list[Estimate]:
    """What is said of a group, worked out once for all of its members."""
    memo: dict[Any, Any] = view.__dict__.setdefault("_groups", {})
    if group not in memo:
        memo[group] = of_group(found, list(group)) if len(group) > 1 else []
    return memo[group]


def of_group(found: Played, group: list[int]) -> list[Estimate]:
    """The sum of the gradients of a group, where that is fixed and each of its points; the first few that were taken."""
    value, sums = found.solved.array, []
    for asked in found.gradients[:FEW]:
        g = value(asked.g[group, :, 0].sum(0))
        x = value(asked.at[group, :, 0]) if np.isfinite(g).all() else g
        if np.isfinite(x).all():
            sums.append((g, x))
    return [Estimate(tuple(group), "group-sum", np.array([g for g, _ in sums]), np.array([x for _, x in sums]))] if sums else []


def control() -> tuple[Any, int, Any]:
    """Dual variables of ADMM, one after the other."""
    from ... import controls, problems

    problem = problems.estimation(n=5, d=2, s=3, scale=0.5, seed=1)
    view, truth = controls.recorded("admm", problem, controls.CYCLE, {1, 4}, stepsize=0.5, iterations=12)
    return view, 0, truth


register(
    Attack(
        name="update-inverted",
        id="A21",
        assets=("offset", "along-the-way", "curvature", "record", "start", "group-sum"),
        uses="a node's messages and all that enters its update (or enough of it), its stepsize, what is public of the method",
        idea="The method is played on unknowns: starts, gradients and secret draws. Each message that was seen is an equation;\n"
        "what the equations fix is read. Differences of gradients that are fixed give the curvature.",
        metric="relative error",
        run=run,
        control=control,
        serves=lambda header: not {"R", "A", "C", "B"} <= set(header["parameters"]),
    )
)
