"""What a coalition sees of masked quadratic costs: the masked ones, less the masks that it knows itself, and the law of the others.

Function masks are declared in the header, with all that they are drawn from; those of the coalition's edges are among its draws.
What remains on the honest nodes is f + (masks of honest edges), which sum to zero over each component of honest nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..masks import Features, Quadratics, Waves
from ..view import View
from .attacks.tail_secants import curvature
from .reading import coordinates, enclosed, heard

Array = np.ndarray
OPTION = re.compile(r"(\w+)=([^,()]+)")


class Law(NamedTuple):
    """What masks are made of, and those that are known."""

    plain: Quadratics
    bent: Features | None
    waves: Waves | None
    drawn: Array  # (edge, coefficients), NaN where not known

    def gradients_of(self, points: Array) -> Array:
        """(points * d, coefficients)."""
        plain = self.plain.gradients_of(points)
        if self.bent is None or self.waves is None:
            return plain
        return np.hstack([plain, self.bent.gradients_of(self.waves, points)])

    def on(self, edges: Iterable[tuple[int, int]], node: int) -> Array:
        """The coefficients of all known masks on a node's cost: those that come in less those that go out."""
        total = np.zeros(self.drawn.shape[1])
        for (s, r), mask in zip(edges, self.drawn, strict=True):
            if node in (s, r) and np.isfinite(mask).all():
                total += mask if r == node else -mask
        return total


def law_of(view: View) -> Law | None:
    """The law of masks of the first run, and what the view has of them; None where there are none, or it is not in the view."""
    plain, bent = quadratics(view), features(view)
    if plain is None:
        return None
    drawn = coefficients(view, plain.size + (0 if bent is None else bent.count))
    waves = None if bent is None else bent.waves_among(view.draws)
    if drawn is None or (bent is not None and waves is None):
        return None
    return Law(plain, bent, waves, drawn[..., 0])


class Masked(NamedTuple):
    """Of one component of honest nodes."""

    group: tuple[int, ...]
    H: Array  # (runs, group, d, d), what is read of each, known masks taken off
    laplacian: Array  # (group, group), of the honest edges between them
    scale: float  # spread of the entries of a mask's S


def hidden(header: Mapping[str, Any]) -> bool:
    """Whether costs are masked."""
    return any(text.startswith("function-masks(") for text in header.get("mechanisms", ()))


def declared(view: View) -> dict[str, str] | None:
    """The options of function masks as they are written in the header, where there are such masks."""
    found = (text for text in view.header.get("mechanisms", ()) if text.startswith("function-masks("))
    return next((dict(OPTION.findall(text)) for text in found), None)


def quadratics(view: View) -> Quadratics | None:
    """The law of quadratic masks, alone or beside others."""
    options = declared(view)
    return None if options is None else Quadratics(coordinates(view), float(options["scale"]), float(options["tilt"]))


def features(view: View) -> Features | None:
    """The class of random features, where masks are of it too."""
    options = declared(view)
    if options is None or options["kind"] != "matern":
        return None
    return Features(coordinates(view), float(options["amplitude"]), float(options["length"]), int(options["features"]))


def one_run(view: View, run: int) -> View:
    """The same view of one run alone."""
    cut = lambda m: m[..., run : run + 1] if m.shape[-1] > 1 else m
    sent = {key: cut(m) for key, m in view.sent.items()}
    draws = {key: d._replace(value=cut(d.value)) for key, d in view.draws.items()}
    states = {k: {name: cut(v) for name, v in leaves.items()} for k, leaves in view.states.items()}
    return replace(view, sent=sent, draws=draws, states=states)


def masked(view: View, victim: int) -> Masked | None:
    """What is read of the victim's component; None where there are no quadratic masks, or one of them is not read."""
    law = quadratics(view)
    if law is None or features(view) is not None or view.wiretap or victim in view.coalition or not 0 <= victim < view.graph.n:
        return None
    group = enclosed(view, victim)
    runs = max((m.shape[-1] for m in view.sent.values()), default=0)
    found = [_read(one_run(view, run), group, law) for run in range(runs)]
    if not found or any(one is None for one in found):
        return None
    return Masked(group, np.array(found), _laplacian(view, group), law.scale)


def _read(view: View, group: tuple[int, ...], law: Quadratics) -> Array | None:
    known = _known(view, law)
    found = []
    for node in group:
        ears = heard(view, node)
        H = None if ears is None else curvature(*ears.increments())
        if H is None or known is None:
            return None
        found.append(H - known[node])
    return np.array(found)


def coefficients(view: View, size: int) -> Array | None:
    """Those of the masks on every edge, (edge, size, run), NaN where the coalition does not know them."""
    drawn = [d.value for (_, k), d in view.draws.items() if k == -1 and d.owner == "edge" and d.value.shape[1] == size]
    return drawn[0] if len(drawn) == 1 else None


def _known(view: View, law: Quadratics) -> Array | None:
    """The masks that the coalition knows, on each node's Hessian: (n, d, d)."""
    drawn = coefficients(view, law.size)
    if drawn is None:
        return None
    on_edges = law.parts(np.nan_to_num(drawn))[0][..., 0]
    found = np.zeros((view.graph.n, law.d, law.d))
    np.add.at(found, view.graph.receiver, on_edges)
    np.subtract.at(found, view.graph.sender, on_edges)
    return found


def _laplacian(view: View, group: tuple[int, ...]) -> Array:
    place, L = {node: p for p, node in enumerate(group)}, np.zeros((len(group), len(group)))
    for s, r in view.graph.edges:
        if s in place and r in place:
            a, b = place[s], place[r]
            L[[a, b], [a, b]] += 1
            L[[a, b], [b, a]] -= 1
    return L
