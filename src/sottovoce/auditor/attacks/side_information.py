"""A13: what is known beforehand of the values (a box, whole numbers) together with what the result says of their sum.

For rendezvous and averaging the optimum is public, so the sum of all values is, too; a coalition takes away its own. Linear
programmes give the interval in which each remaining value must lie; `narrowed` holds it against the interval known before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ParameterError
from ...view import View
from ..attack import Attack, Estimate, Measured, register

Array = np.ndarray
SETTLED = 1e-9  # relative movement of the last iterate below which it is the optimum
CLOSED = 1e-6  # relative width below which an interval is a value


@dataclass(frozen=True)
class Narrowed:
    """The interval of a node's value a coordinate, (d,) each, and its width over the prior's."""

    low: Array
    high: Array
    ratio: Array

    @property
    def bits(self) -> Array:
        """Learnt beyond the side information, a coordinate, were the value uniform on its interval."""
        with np.errstate(divide="ignore"):
            return -np.log2(self.ratio)


def bounds(
    rows: Any, sums: Any, node: int, low: Any, high: Any, *, integer: bool = False, slack: float = 0.0
) -> tuple[float, float]:
    """The least and the greatest value of `node` with |rows @ v - sums| <= slack and low <= v <= high."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows, sums = np.atleast_2d(np.asarray(rows, dtype=float)), np.atleast_1d(np.asarray(sums, dtype=float))
    if rows.shape[0] != len(sums) or not 0 <= node < rows.shape[1]:
        raise ParameterError(f"expected a row a sum and a node among the columns; got {rows.shape}, {len(sums)} sums, node {node}")
    aim, kind = np.eye(rows.shape[1])[node], np.full(rows.shape[1], int(integer))
    least: Any = sums - slack
    most: Any = sums + slack
    ends = []
    for sign in (1, -1):
        constraint = LinearConstraint(rows, least, most)
        found = milp(sign * aim, constraints=constraint, bounds=Bounds(low, high), integrality=kind)
        if found.status == 2:
            raise ParameterError("no values agree with both the side information and the sums; correct the side information")
        ends.append(float(sign * found.fun) if found.fun is not None else -sign * np.inf)
    return ends[0], ends[1]


def declared(view: View) -> tuple[float, float, bool]:
    """(low, high, integer) from the header's side_information; no bounds where there is none."""
    told = view.header.get("side_information") or {}
    return float(told.get("low", -np.inf)), float(told.get("high", np.inf)), bool(told.get("integer", False))


def own_values(view: View) -> dict[int, Array] | None:
    """The coalition's values, where its costs are |x - v|^2 / 2: x - gradient is the same in every iteration."""
    ks = sorted(view.states)
    if not view.coalition or len(ks) < 3 or not {"x", "g"} <= set(view.states[ks[-1]]):
        return None
    nodes = list(view.coalition)
    v = np.array([(view.states[k]["x"] - view.states[k]["g"])[nodes, :, 0] for k in ks])
    moved = np.array([view.states[k]["x"][nodes, :, 0] for k in ks])
    if not (np.isfinite(v).all() and np.ptp(moved, axis=0).max() > 0):
        return None
    same = np.ptp(v, axis=0).max() <= 1e-9 * np.abs(moved).max()
    return dict(zip(nodes, v[-1], strict=True)) if same else None


def total(view: View) -> Array | None:
    """The sum of all values: n times the optimum; None while the coalition's iterates still move."""
    last, nodes = max(view.states), list(view.coalition)
    x = view.states[last]["x"][nodes, :, 0]
    before, size = view.states[last - 1]["x"][nodes, :, 0], 1 + np.abs(x).max()
    still = np.abs(x - before).max() <= SETTLED * size and np.ptp(x, axis=0).max() <= 1e3 * SETTLED * size
    return view.graph.n * x[0] if still else None


def share(rest: Array, others: int, low: float, high: float) -> tuple[Array, Array]:
    """The interval of one of `others` values in [low, high] that sum to `rest`: the programme's answer for a single sum."""
    if others == 1:
        return rest, rest
    return np.maximum(low, rest - (others - 1) * high), np.minimum(high, rest - (others - 1) * low)


def narrowed(view: View, victim: int) -> Narrowed | None:
    """The interval that side information, the result and the coalition's own values leave to the victim's value."""
    own = own_values(view)
    if own is None or victim in own or (whole := total(view)) is None:
        return None
    low, high, integer = declared(view)
    rest = whole - np.sum(list(own.values()), 0)
    ends = share(np.round(rest) if integer else rest, view.graph.n - len(own), low, high)
    width, before = np.maximum(ends[1] - ends[0], 0), high - low
    ratio = (width + integer) / (before + integer) if 0 < before < np.inf else np.where(np.isfinite(width), 0.0, 1.0)
    return Narrowed(*ends, np.clip(ratio, 0, 1))


def run(view: View, victim: int) -> list[Estimate]:
    """The victim's gradient x* - v at the optimum, where the interval of v has closed."""
    found = narrowed(view, victim)
    if found is None or not np.isfinite(found.high - found.low).all():
        return []
    at = view.states[max(view.states)]["x"][view.coalition[0], :, 0]
    middle, slack = (found.low + found.high) / 2, CLOSED * (1 + view.graph.n * np.abs(at).max())
    if (np.abs(found.high - found.low) > slack).any():  # still open, or what was declared is not so
        return []
    return [Estimate((victim,), "offset", at - middle, at)]


def measure(view: View, victim: int) -> Measured | None:
    """Bits about the victim's value, and so about its gradient anywhere, beyond the declared box."""
    told = bool(view.header.get("side_information"))
    found = narrowed(view, victim) if told else None
    if found is None:
        return None
    bits = float(np.mean(np.minimum(found.bits, 64)))
    return Measured("offset", bits, True, f"{bits:.2g} bits a coordinate about its value, beyond the declared side information")


def control() -> tuple[Any, int, Any]:
    """Answers yes (1) or no (0) of five: the coalition {1, 2} knows that the other three sum to three."""
    from dataclasses import replace

    from ... import controls, graphs, problems

    problem = problems.average(np.array([1.0, 0.0, 1.0, 1.0, 1.0]))
    options = {"K": 3, "iterations": 400, "stepsize": 0.2}
    view, truth = controls.recorded("private-gradient-tracking", problem, graphs.paper_b(), {1, 2}, **options)
    told = {"low": 0.0, "high": 1.0, "integer": True}
    return replace(view, header={**view.header, "side_information": told}), 0, truth


register(
    Attack(
        name="side-information",
        id="A13",
        assets=("offset",),
        uses="the coalition's own states, the public optimum, and a declared box or whole numbers (header side_information)",
        idea="The sum of all values less one's own, within the declared box: linear programmes bound each value. No\n"
        "message is needed, so no mechanism that keeps the optimum exact prevents it.",
        metric="width of the interval over the prior's, and bits (`narrowed`); relative error where it closes",
        run=run,
        control=control,
        measure=measure,
    )
)
