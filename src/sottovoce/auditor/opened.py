"""What a View of a method that opens sums (summing.py) tells: the sum over each group of honest nodes that hang together.

Everybody is told the sum over all nodes, and a coalition takes its own shares away. Where it parts the honest, the masked words,
which everybody hears, add up group by group: the masks inside a group cancel, those on its border the coalition knows. Whoever
listens on all links knows no mask, and adds up all of the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..fixed_point import FixedPoint, settled, unpacked
from ..trees import tree
from ..view import View
from .reading import enclosed, seen

Array = np.ndarray


class Opened(NamedTuple):
    """The sum of the shares of some nodes, of one iteration."""

    nodes: tuple[int, ...]
    at: Array | None  # (d,), where gradients and Hessians were taken; None where the shares are plain values
    sums: Array  # (numbers,)

    def hessian(self, d: int) -> Array | None:
        """The sum of the Hessians, (d, d), where it is opened before that of the gradients."""
        if len(self.sums) == d:
            return None
        rows, columns = np.triu_indices(d)
        H = np.zeros((d, d))
        H[rows, columns] = H[columns, rows] = self.sums[:-d]
        return H


def opened(view: View, victim: int) -> list[Opened]:
    """The sums over the smallest group around the victim, iteration by iteration; none where the method opens none."""
    if not {"range", "words"} <= set(view.header["parameters"]) or not 0 <= victim < view.graph.n or victim in view.coalition:
        return []
    group = tuple(range(view.graph.n)) if view.wiretap else enclosed(view, victim)
    found = []
    for k in range(view.iterations):
        sums = _by_words(view, k, group)  # to the bit, noise that the coalition itself put in taken off too
        if sums is None and len(group) + len(view.coalition) == view.graph.n:
            sums = _by_states(view, k)
        if sums is not None:
            found.append(Opened(group, _point(view, k), sums))
    return found


def noisy(header: Mapping[str, Any]) -> bool:
    """Whether somebody adds noise to what is opened or sent."""
    return any("noise" in text for text in header.get("mechanisms", ()))


def _point(view: View, k: int) -> Array | None:
    """Where iteration k took its gradients: what the coalition's own states say; the public start for the wire-tapper."""
    if view.coalition:
        at = view.states.get(k, {}).get("at")
        return None if at is None else at[view.coalition[0], :, 0]
    return np.zeros(view.header["coordinates"]) if k == 0 and view.header["parameters"].get("of") is None else None


def _by_states(view: View, k: int) -> Array | None:
    """All honest nodes together: what was opened less what the coalition put in."""
    state = view.states.get(k, {})
    if not view.coalition or not {"own", "sums"} <= set(state):
        return None
    return state["sums"][view.coalition[0], :, 0] - state["own"][list(view.coalition), :, 0].sum(0)


def _by_words(view: View, k: int, group: tuple[int, ...]) -> Array | None:
    """Any group with the masks on its border known: its masked words, those masks taken off."""
    fixed, masks = grid_of(view), masks_of(view, k)
    total = _crossed(view, k, group) if view.header["parameters"].get("carry") == "tree" else _flooded(view, k, group)
    if total is None or (masks is None and not view.wiretap):
        return None
    for e, (s, r) in enumerate(view.graph.edges):
        if masks is not None and (s in group) != (r in group):
            sign = -1 if s in group else 1
            total = [t + sign * digit for t, digit in zip(total, unpacked(np, masks[e][:, None], fixed.words), strict=True)]
    return fixed.values(np, settled(np, total))[:, 0]


def _flooded(view: View, k: int, group: tuple[int, ...]) -> list[Array] | None:
    """The masked words of a group, added up as digits (words, 1)."""
    words, count = masked(view, k), grid_of(view).words
    return None if words is None else [d[list(group)].sum(0) for d in unpacked(np, words[..., None], count)]


def _crossed(view: View, k: int, group: tuple[int, ...]) -> list[Array] | None:
    """The same where sums travel on a tree: what left the group on the way to node 0, less what came in; node 0 keeps the rest."""
    branches, count = tree(view.graph), grid_of(view).words
    exchanges = [e for (i, e) in view.sent if i == k]
    if not exchanges:
        return None
    half, inside = (max(exchanges) + 1) // 2, set(group)
    said = lambda exchange, edge: unpacked(np, view.sent[k, exchange][edge, :, :1], count)
    ends = list(enumerate(view.graph.edges))
    out = [said(half - 1, e) for e, (s, r) in ends if branches.up[e] and s in inside and r not in inside]
    came = [said(half - 1, e) for e, (s, r) in ends if branches.up[e] and s not in inside and r in inside]
    if 0 in inside:
        out.append(next(said(2 * half - 1, e) for e, (s, r) in ends if branches.down[e] and seen(view, s, r)))
    net = [np.zeros((view.sent[k, 0].shape[1] // count, 1), np.int64) for _ in range(2 * count)]
    for sign, flows in ((1, out), (-1, came)):
        for digits in flows:
            net = [total + sign * digit for total, digit in zip(net, digits, strict=True)]
    return net


def grid_of(view: View) -> FixedPoint:
    """The fixed point, which is public."""
    parameters = view.header["parameters"]
    return FixedPoint(view.graph.n, float(parameters["range"]), int(parameters["words"]))


def masked(view: View, k: int) -> Array | None:
    """Everybody's masked words, (node, words), as far as they were heard; None unless all were."""
    first = view.sent.get((k, 0))
    if first is None or first.dtype != np.uint64:
        return None
    words = np.zeros((view.graph.n, first.shape[1] - 1), np.uint64)
    for e, (s, _) in enumerate(view.graph.edges):
        words[s] = np.maximum(words[s], first[e, 1:, 0])  # what is not seen is zero
    for hop in range(1, 1 + max(e for (i, e) in view.sent if i == k)):
        words = np.maximum(words, view.sent[k, hop][..., 0].max(0).reshape(words.shape))
    heard = {i for i in range(view.graph.n) if words[i].any()} | set(view.coalition)
    return words if len(heard) == view.graph.n else None


def masks_of(view: View, k: int) -> Array | None:
    """(edge, words), those of the coalition's edges."""
    found = [d.value for (name, i), d in view.draws.items() if i == k and (d.known, d.law) == ("edge", "words")]
    return found[0][..., 0] if found else None
