"""A6, mass balance: where the coalition encloses a group, what crosses the border tells the sum of the group's gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import Heard, enclosed, flow, heard
from .tail_secants import curvature

Array = np.ndarray
AT_MOST = 60  # late iterates


def run(view: View, victim: int) -> list[Estimate]:
    if view.wiretap or victim in view.coalition or not 0 <= victim < view.graph.n:
        return []
    return estimates(view, enclosed(view, victim), victim)


def estimates(view: View, group: tuple[int, ...], victim: int) -> list[Estimate]:
    """All that the balance of a group says."""
    if heard(view, victim) is None and not any(heard(view, i) for i in group):
        return []
    moved = np.asarray(flow(view, group), float)
    ears = [heard(view, i) for i in group]
    known = [e for e in ears if e is not None]
    if len(known) < len(group):
        return limit(view, group, moved)
    g, x = balance(view, known, moved)
    if not len(g):
        return limit(view, group, moved)
    return single(victim, g, x[:, 0]) if len(group) == 1 else [Estimate(group, "group-sum", g, x)]


def balance(view: View, ears: list[Heard], moved: Array) -> tuple[Array, Array]:
    """The sums of gradients at late iterates, (m, d), and the points, (m, nodes, d): sum y, or sum w, less the flow."""
    x, y, w = (np.array([getattr(e, name) for e in ears]) for name in ("x", "y", "w"))
    g = y.sum(0) - moved[:-1]
    after = w.sum(0)[:-1] - moved[:-2]  # y^k + g^{k+1} - g^k less the flow before k is g^{k+1}
    g[1:] = np.where(np.isnan(g[1:]), after, g[1:])
    there = np.isfinite(g).all(1) & np.isfinite(x).all((0, 2)) & (np.arange(len(g)) >= view.settled)
    return g[there][:AT_MOST], x[:, there].swapaxes(0, 1)[:AT_MOST]


def single(victim: int, g: Array, x: Array) -> list[Estimate]:
    """A group of one: the gradient at a point, along the way, and what the differences say of the curvature."""
    found = [Estimate((victim,), "offset", g[0], x[0])]
    if len(g) > 1:
        found.append(Estimate((victim,), "along-the-way", g, x))
        H = curvature(np.diff(x, axis=0), np.diff(g, axis=0), np.ones(len(g) - 1))
        found += [] if H is None else [Estimate((victim,), "curvature", H)]
    return found


def limit(view: View, group: tuple[int, ...], moved: Array) -> list[Estimate]:
    """Theorems 3 and 5: y goes to zero and all x to the optimum, where the coalition is too."""
    last = view.states.get(view.iterations - 1, {}).get("x")
    everybody = len(group) + len(view.coalition) == view.graph.n  # at the optimum all gradients sum to zero: public
    if last is None or everybody or not view.coalition or not np.isfinite(moved[-1]).all():
        return []
    x = last[view.coalition[0], :, 0]
    if len(group) == 1:
        return [Estimate(group, "offset", -moved[-1], x)]
    return [Estimate(group, "group-sum", -moved[-1:], np.repeat(x[None, None], len(group), axis=1))]


def control() -> tuple[Any, int, Any]:
    from ...controls import leaf

    view, truth = leaf(K=1)
    return view, 0, truth


register(
    Attack(
        name="mass-balance",
        id="A6",
        assets=("offset", "along-the-way", "curvature", "group-sum"),
        uses="all links across the border of a group that the coalition encloses; the late stepsize",
        idea="Over the group, the sum of y - g starts at zero and changes by border messages alone, which are all seen.\n"
        "So sum g = sum y - flow at every late iterate; for one node that is its gradient. Else y goes to zero in the limit.",
        metric="relative error of the gradient, or of the sum of s gradients",
        run=run,
        control=control,
    )
)
