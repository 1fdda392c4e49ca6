"""Gradient tracking on quadratic costs, written anew in a few dense lines, with the exact derivative of every message.

A number and its derivatives with respect to P secrets lie side by side on the last axis, 1 + P long: number first. All but two
operations are linear and act on that axis as they are; a cost's curvature and a weight, where they are secret, add one product.
The offset b enters by y alone, since y^0 = H x^0 - b and every later increment is H (x+ - x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..layout import Layout

Array = np.ndarray
NAMES = ("R", "A", "C", "B")


class Nudge(NamedTuple):
    """How secrets move a weight or stepsize: d value[place, coordinate] / d secret = slope."""

    place: Array  # an entry, or a node for stepsizes
    coordinate: Array
    secret: Array
    slope: Array


@dataclass(frozen=True)
class Round:
    """One iteration's weights over entries (entry, coordinate) and stepsizes (node, coordinate)."""

    weights: Mapping[str, Array]
    step: Array
    said: str  # what is sent to be pulled: "both" x and u, "x" alone, or their "difference"
    nudges: Mapping[str, Nudge] = field(default_factory=dict)  # by weight, and "stepsize"


def weight_of(
    draws: Mapping[Any, Any], parameters: Mapping[str, str], entries: Layout, name: str, k: int, run: int = 0
) -> Array | None:
    """A weight of iteration k, (entry, 1 or coordinate), NaN where not known; None where nothing is known of it."""
    drawn = draws.get((name, k))
    if drawn is not None and drawn.value is not None:
        return drawn.value[..., min(run, drawn.value.shape[-1] - 1)]
    named = parameters.get(name)
    if named == "identity":
        return entries.is_loop[:, :, 0].astype(float)
    return weight_of(draws, parameters, entries, named, k, run) if named in NAMES and named != name else None


def owner_of(draws: Mapping[Any, Any], parameters: Mapping[str, str], name: str, k: int) -> str:
    """The weight that this one is the same as: itself, or the one named in its place."""
    named = parameters.get(name)
    return name if (name, k) in draws or named not in NAMES else owner_of(draws, parameters, str(named), k)


def said_in(draws: Mapping[Any, Any], parameters: Mapping[str, str], k: int) -> str:
    """How x and u = Lambda y are sent."""
    if ("A", k) in draws:
        return "both"
    return {"identity": "x", "R": "difference"}.get(parameters.get("A", ""), "both")


def play(entries: Layout, H: Array, dH: Array, x: Array, y: Array, rounds: Sequence[Round]) -> Iterator[tuple[Array, Array]]:
    """Each iteration's pulled messages (node, numbers, 1 + P) and pushed ones (edge, coordinate, 1 + P)."""
    yield from ((pulled, pushed) for pulled, pushed, _, _ in steps(entries, H, dH, x, y, rounds))


def steps(
    entries: Layout, H: Array, dH: Array, x: Array, y: Array, rounds: Sequence[Round]
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """The same, and x and y (node, coordinate, 1 + P) when the iteration is over.

    H (n, d, d), dH (n, d, d, P); x and y (n, d, 1 + P) when the first round begins.
    """
    for r in rounds:
        u = _weighed(r, "stepsize", r.step, y, np.arange(len(y)))
        pulled = _weighed(r, "R", r.weights["R"], x, entries.source) - _weighed(r, "A", r.weights["A"], u, entries.source)
        after = np.add.reduceat(pulled, entries.row_starts, axis=0)
        rise = _curved(H, dH, after - x)
        pushed = _weighed(r, "C", r.weights["C"], y, entries.source) + _weighed(r, "B", r.weights["B"], rise, entries.source)
        before, x, y = x, after, np.add.reduceat(pushed, entries.row_starts, axis=0)
        yield said(r.said, before, u), pushed[entries.edges], x, y


def said(how: str, x: Array, u: Array) -> Array:
    """What a node sends to be pulled."""
    return {"both": lambda: np.concatenate([x, u], axis=1), "x": lambda: x, "difference": lambda: x - u}[how]()


def _weighed(r: Round, name: str, weight: Array, values: Array, source: Array) -> Array:
    """Weight times value at each place, secrets in the weight included."""
    out = weight[:, :, None] * values[source]
    nudge = r.nudges.get(name)
    if nudge is not None:
        at = (nudge.place, nudge.coordinate)
        np.add.at(out, (*at, 1 + nudge.secret), nudge.slope * values[source[nudge.place], nudge.coordinate, 0])
    return out


def _curved(H: Array, dH: Array, v: Array) -> Array:
    """H v for every node."""
    out = H @ v
    out[..., 1:] += np.einsum("iabp,ib->iap", dH, v[..., 0])
    return out
