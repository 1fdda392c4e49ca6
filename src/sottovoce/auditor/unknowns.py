"""What an adversary does not know of the weights: which numbers, how they may move, and how far their declared law lets them.

Early weights follow a law of the whole line; late ones that are secret lie in the narrow band of the paper's sampler. Rows or
columns sum to one all the while.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..laws import LAWS, Law
from ..layout import layout
from ..transcript import Draw, Transcript
from ..view import View
from .tangents import NAMES, Nudge

Array = np.ndarray
ONE_SIGMA = 0.31731  # the chance that a normal number exceeds its standard deviation in magnitude


@dataclass
class Secrets:
    """The numbers of the secrets, each scaled to a prior spread of one; weights first, then the assets."""

    nudges: dict[int, dict[str, list[Nudge]]] = field(default_factory=dict)  # by iteration and weight
    weights: int = 0  # how many secrets are weights or stepsizes
    assets: dict[tuple[int, str], slice] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return max((s.stop for s in self.assets.values()), default=self.weights)


def weight_secrets(transcript: Transcript, view: View, T: int, late_spread: float | None) -> Secrets:
    """A secret for every free direction of the weights and stepsizes that the view does not hold."""
    secrets, before = Secrets(), {}
    for k in range(T):
        for name in (*NAMES, "stepsize"):
            drawn = transcript.draws.get((name, k))
            if drawn is None or drawn.value is None:
                continue
            held = view.draws.get((name, k))
            unknown = np.ones(len(drawn.value), bool) if held is None else np.isnan(held.value[:, 0, 0])
            last = before.get(name)
            if last is not None and drawn.law == last[0].law == "constant" and np.array_equal(drawn.value, last[0].value):
                found = last[1]  # fixed weights are the same secrets in every iteration
            else:
                found = _basis(drawn, unknown, _Group(name, view, late_spread), secrets)
            before[name] = drawn, found
            if found:
                secrets.nudges.setdefault(k, {})[name] = found
    return secrets


class _Group(NamedTuple):
    """A weight whose rows (R, A) or columns (C, B) sum to one."""

    name: str
    view: View
    late_spread: float | None

    @property
    def d(self) -> int:
        return int(self.view.header["coordinates"])

    def members(self, unknown: Array) -> Iterator[tuple[Array, int]]:
        """The unknown entries of each row or column, and how many it has."""
        entries = layout(self.view.graph)
        index = entries.target if self.name in "RA" else entries.source
        for i in range(entries.n):
            yield np.flatnonzero((index == i) & unknown), int(np.sum(index == i))

    def sampled(self, law: str, m: int) -> float:
        """The spread of the paper's sampler about its mean 1/m, to first order; none where a rule leaves nothing to chance."""
        parameters = self.view.header["parameters"]
        rule = parameters.get(self.name, "paper")
        if law == "constant" and not rule.startswith("paper"):
            return 0.0
        if self.late_spread is not None:
            return self.late_spread
        given = re.search(r"eta=([0-9.e-]+)", rule) or re.fullmatch(r"([0-9.e-]+)", parameters.get("eta", "None"))
        eta = float(given[1]) if given else 0.5 / m
        return (1 - m * eta) / m * ((1 - eta) / np.sqrt(12)) / ((1 + eta) / 2)


def _basis(drawn: Draw, unknown: Array, group: _Group, secrets: Secrets) -> list[Nudge]:
    """How new secrets move the weights: freely under a law of the whole line, within its band and its sum otherwise."""
    law, out = _law(drawn.law), []
    if group.name == "stepsize" or (law and group.name in "RA"):
        for place in np.flatnonzero(unknown):
            out += _each(np.array([place]), np.full((1, 1), _sigma(law)), drawn.value, group.d, secrets)
        return out
    for places, m in group.members(unknown):
        if len(places) < 2:
            continue
        if law:  # the own column weight is what is missing from one
            own = layout(group.view.graph).is_loop[places, 0, 0]
            moves = _sigma(law) * np.eye(len(places))[~own]
            moves[:, own] = -_sigma(law)
        else:  # no direction changes the sum
            moves = group.sampled(drawn.law, m) * np.linalg.svd(np.ones((1, len(places))))[2][1:]
        out += _each(places, moves, drawn.value, group.d, secrets)
    return out


def _each(places: Array, moves: Array, value: Array, d: int, secrets: Secrets) -> list[Nudge]:
    """A secret for each row of `moves`; another for each coordinate where the weights have coordinates."""
    out, coordinates = [], np.arange(d)
    together = [coordinates] if value.shape[1] == 1 else [coordinates[[c]] for c in coordinates]
    for move in moves:
        for which in together:
            place, coordinate = (part.ravel() for part in np.meshgrid(places, which, indexing="ij"))
            out.append(Nudge(place, coordinate, np.full(len(place), secrets.weights), np.repeat(move, len(which))))
            secrets.weights += 1
    return out


def _law(text: str) -> Law | None:
    """A law of the whole line from its text, "normal(scale 1)"; None for the paper's sampler and constants."""
    found = re.fullmatch(r"([a-z-]+)\(scale ([^ ,)]+)(?:, spread ([^ )]+))?\)", text)
    if found is None or found[1] not in LAWS:
        return None
    return Law(found[1], float(found[2]), float(found[3] or 8.0))


def _sigma(law: Law | None) -> float:
    """What two thirds of the draws stay below: the standard deviation of a normal law, finite for every law."""
    return 1.0 if law is None else float(law.scale * law.magnitude(np.array(ONE_SIGMA)))
