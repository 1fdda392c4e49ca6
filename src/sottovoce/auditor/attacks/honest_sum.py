"""A30: a sum that is opened to all, less what the coalition put in, is the sum over the honest; of one honest node it is all.

No mechanism that keeps the optimum exact can prevent it: the coalition computes it from the result and its own secrets. What a
sum hides is who among the honest contributed what.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..opened import noisy, opened
from .record_features import features
from .tail_secants import curvature as secants

Array = np.ndarray
ROUNDED = 1e-12  # a sum of fixed point numbers is as exact as the numbers are


def run(view: View, victim: int) -> list[Estimate]:
    """The gradients and the curvature of the group around the victim."""
    found = opened(view, victim)
    d = int(view.header["coordinates"])
    if not found:
        return []
    told = None if noisy(view.header) else ROUNDED
    if found[0].at is None:  # values that are averaged: the cost is |x - v|^2 / 2, its gradient at the origin -v
        nodes = found[0].nodes
        if len(found[0].sums) != d:
            return []
        values = [Estimate(nodes, "value", found[0].sums)] if view.header.get("values") else []
        return _certain(gradients(nodes, -found[0].sums[None, :d], np.zeros((1, d))) + values, told)
    there = [o for o in found if o.at is not None]
    nodes, g, x = there[0].nodes, np.array([o.sums[-d:] for o in there]), np.array([o.at for o in there])
    H = there[-1].hessian(d)
    bends = bent(nodes, g, x) if H is None else [Estimate(nodes, "curvature", H)]
    bends += [record for e in bends for record in features(view, e)]
    return _certain(gradients(nodes, g, x), told) + _certain(bends, None if H is None else told)


def _certain(estimates: list[Estimate], within: float | None) -> list[Estimate]:
    """What is opened less what the coalition put in is the sum, whoever knows the truth; not where noise was added."""
    return [replace(e, within=within) for e in estimates]


def gradients(nodes: tuple[int, ...], g: Array, x: Array) -> list[Estimate]:
    """Sums of gradients (m, d) at common points (m, d)."""
    if len(nodes) > 1:
        return [Estimate(nodes, "group-sum", g, np.repeat(x[:, None], len(nodes), axis=1))]
    return [Estimate(nodes, "offset", g[0], x[0])] + ([Estimate(nodes, "along-the-way", g, x)] if len(g) > 1 else [])


def bent(nodes: tuple[int, ...], g: Array, x: Array) -> list[Estimate]:
    """The sum of the Hessians from how the gradients differ; exact where the costs are quadratic."""
    dx, dg = np.diff(x, axis=0), np.diff(g, axis=0)
    H = secants(dx, dg, np.ones(len(dx))) if len(dx) else None
    return [] if H is None else [Estimate(nodes, "curvature", H)]


def control() -> tuple[Any, int, Any]:
    """Four of five pool what they know: the fifth's records are read whole."""
    from ... import controls, graphs, problems

    problem = problems.estimation(n=5, d=2, seed=3)
    view, truth = controls.recorded("private-least-squares", problem, graphs.paper_b(), {1, 2, 3, 4}, iterations=1, stepsize=1.0)
    return view, 0, truth


register(
    Attack(
        name="honest-sum",
        id="A30",
        assets=("offset", "curvature", "along-the-way", "record", "group-sum", "value"),
        uses="what a method opens to everybody, and the coalition's own shares; masked words and masks where it parts the honest",
        idea="What was opened, less what the coalition put in, is the sum over the honest. Where the coalition parts them, masked\n"
        "words add up group by group: masks inside a group cancel, and those on its border are known.",
        metric="the number of nodes in the sum; relative error of the sum of gradients, and of Hessians",
        run=run,
        control=control,
    )
)
