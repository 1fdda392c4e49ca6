"""Another world for each victim and coalition of a recorded run: the most plausible one against everybody but its two nodes.

A world that hides the change from all but the victim and its honest neighbour hides it from every smaller coalition, so it is
built and replayed once a pair of neighbours, however many coalitions ask.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..transcript import Transcript
from ..view import view_of
from .mask_witness import mask_witness
from .masked import Law, hidden, law_of
from .reading import honest_edge
from .sum_witness import sum_witness
from .witness import Witness, ranked, witness
from .worlds import World, world_of


class Witnesses:
    """The witnesses of a transcript; None where there is none to be had."""

    def __init__(self, transcript: Transcript):
        self.transcript = transcript
        self.delta = 1.0 + np.arange(transcript.header.get("coordinates", 1))

    @functools.cached_property
    def world(self) -> World | None:
        """None where the run is no gradient tracking, or its replay is not what was recorded."""
        try:
            return world_of(self.transcript)
        except InputError:
            return None

    def of(self, victim: int, coalition: Iterable[int]) -> Witness | None:
        """The most plausible one with an honest neighbour outside the coalition."""
        members = set(coalition)
        found = (self._with(victim, m) for m in self._neighbours(victim) if m not in members)
        return next((w for w in found if w is not None), None)

    def evidence(self, victim: int, coalition: Iterable[int]) -> dict[str, Any] | None:
        """The same in figures; where sums are opened or costs masked, a world of another kind. Parts of a run build none."""
        if self.transcript.nodes is not None:
            return None
        if self.transcript.header.get("opens") or hidden(self.transcript.header):
            edge = honest_edge(self.transcript.edges, victim, set(coalition))
            return None if edge is None else self._over(victim, edge)
        found = self.of(victim, coalition)
        return None if found is None else {
            "delta": self.delta.tolist(), "neighbour": int(found.neighbour), "case": str(found.case),
            "difference": float(found.difference), "log_likelihood_ratio": found.log_likelihood_ratio,
            "text": "another gradient, shifted by a constant, gives the same view",
        }  # fmt: skip

    @functools.cached_property
    def _law(self) -> Law | None:
        """All masks of the run."""
        return law_of(view_of(self.transcript, range(self.transcript.graph.n)))

    @functools.cache  # noqa: B019, kept as long as the audit
    def _over(self, victim: int, edge: int) -> dict[str, Any] | None:
        """The world that differs in what passes secretly over an edge: words, or a mask."""
        if self.transcript.header.get("opens"):
            return sum_witness(self.transcript, victim, edge, self.delta)
        return None if self._law is None else mask_witness(self.transcript, self._law, victim, edge)

    @functools.cache  # noqa: B019, kept as long as the audit
    def _neighbours(self, victim: int) -> list[int]:
        try:
            return [] if self.world is None or self.world.fault else ranked(self.world, victim, self.delta)
        except InputError:  # the one delta that is excluded
            return []

    @functools.cache  # noqa: B019, kept as long as the audit
    def _with(self, victim: int, neighbour: int) -> Witness | None:
        """Against everybody but these two."""
        assert self.world is not None
        everybody = [j for j in range(self.world.graph.n) if j not in (victim, neighbour)]
        try:
            return witness(self.world, victim, self.delta, everybody) if everybody else None
        except InputError:
            return None
