"""A9, blind system identification: late weights that are public make the network a known linear system with unknown curvature.

    unknown: H_i of the others, and their x and y when the random start is over; seen: what the coalition receives from then on
    fit: Levenberg-Marquardt with exact derivatives, from several starts; loud samples first, then ever quieter ones

Where only sums of messages can be read, the coalition's own x and y say what they were, and are fitted in their place.

What is read is every node's H_i, also of nodes that the coalition never hears from. Gao, Wang, Nedic (Automatica 2023) do not
consider it; their information set makes the late weights public.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ...layout import Layout, layout
from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import mixings
from ..tangents import NAMES, Round, said_in, steps, weight_of

Array = np.ndarray
LARGEST = 20  # nodes times coordinates, beyond which a fit takes too long
WINDOW = 60  # iterations that are fitted
FLOORS = 10.0 ** -np.arange(0, 9, 2)  # what counts as loud: 1, 1e-2, ..., 1e-8 of the largest sample
STARTS, STEPS = 6, 60
HOPEFUL = 0.3  # misfit over the size of a sample, above which another start is tried
FITTED = 1e-6  # misfit below which the fit explains the view
READ, DETERMINED = 1e-12, 1e-6  # samples are read to so much of their size; so little of H_i may then stay open


class Known(NamedTuple):
    """What the coalition holds: the system but for the unknowns, and the samples."""

    entries: Layout
    honest: tuple[int, ...]
    rounds: list[Round]
    H: Array  # (n, d, d), zero for the others
    x: Array  # (n, d), likewise
    y: Array
    seen: tuple[list[int], list[int]]  # who is heard in the first exchange, and on which edges in the second; sums: who sums up
    sums: bool
    samples: Array

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of free entries of an H, and of coordinates."""
        d = self.x.shape[1]
        return d * (d + 1) // 2, d


_last: list[tuple[Any, dict[int, Array]]] = []  # one fit tells of every node: the latest is kept


def attack(view: View, victim: int) -> list[Estimate]:
    """The victim's curvature, where one fit explains all that was seen."""
    if not _last or _last[0][0]() is not view:
        _last[:] = [(weakref.ref(view), identified(view))]
    found = _last[0][1]
    return [Estimate((victim,), "curvature", found[victim])] if victim in found else []


def identified(view: View) -> dict[int, Array]:
    """Node -> H_i, for all that the fit determines; nothing where weights are secret or the system is too large."""
    known = _known(view)
    if known is None:
        return {}
    rng = np.random.default_rng(9)
    for _ in range(STARTS):
        unknown, worst = _first(known, rng), np.inf
        for floor in FLOORS:
            unknown, worst = _fitted(known, unknown, floor)
            if not worst < HOPEFUL:  # this start leads nowhere
                break
        else:
            if worst < FITTED:
                return _determined(known, unknown)
    return {}


def _known(view: View) -> Known | None:
    """The system and the samples; None where the attack does not apply."""
    K, d = view.settled, int(view.header.get("coordinates", LARGEST + 1))
    last = min(view.iterations, K + WINDOW)
    if view.wiretap or view.graph.n * d > LARGEST or last - K < 2 * d:
        return None
    if view.header.get("costs") != "quadratic" or len(view.coalition) == view.graph.n or not _modelled(view):
        return None
    if set(view.costs) != set(view.coalition):
        return None
    entries, n, own = layout(view.graph), view.graph.n, list(view.coalition)
    rounds = [_round(view, entries, k, d) for k in range(K, last)]
    if any(r is None for r in rounds) or "y" not in view.states.get(K - 1, {}):
        return None
    H, x, y = np.zeros((n, d, d)), np.zeros((n, d)), np.zeros((n, d))
    H[own] = [view.costs[i]["H"] for i in own]
    x[own], y[own] = (view.states[K - 1][name][own, :, 0] for name in ("x", "y"))
    edges = [e for e, (s, r) in enumerate(view.graph.edges) if r in own and s not in own]
    heard = {int(entries.sender[e]): e for e in edges}
    sums = _summed(view)
    if sums:
        samples = [np.concatenate([view.states[k][name][own, :, 0].ravel() for name in "xy"]) for k in range(K, last)]
    else:
        samples = [np.concatenate([view.sent[k, 0][list(heard.values()), :, 0].ravel(), view.sent[k, 1][edges, :, 0].ravel()])
                   for k in range(K, last)]  # fmt: skip
    honest = tuple(i for i in range(n) if i not in own)
    kept = [r for r in rounds if r is not None]
    return Known(entries, honest, kept, H, x, y, (own, own) if sums else (list(heard), edges), sums, np.array(samples))


def _modelled(view: View) -> bool:
    """One mixing a gradient, and one's own costs as they are: the recursion that is fitted."""
    return mixings(view) == 1 and not any("function-masks" in text for text in view.header.get("mechanisms", ()))


def _summed(view: View) -> bool:
    """Whether messages are masked words, of which only sums can be read."""
    return any(m.dtype.kind == "u" for (k, _), m in view.sent.items() if k >= 0)


def _round(view: View, entries: Layout, k: int, d: int) -> Round | None:
    """Iteration k's weights; None where one is not known."""
    parameters = view.header["parameters"]
    values = {name: weight_of(view.draws, parameters, entries, name, k) for name in NAMES}
    if any(v is None or not np.isfinite(v).all() for v in values.values()) or ("stepsize", k) in view.draws:
        return None
    weights = {name: np.broadcast_to(v, (len(v), d)) for name, v in values.items() if v is not None}
    step = np.broadcast_to(view.stepsize[:, None], (entries.n, d))
    return Round(weights, step, said_in(view.draws, parameters, k))


def _first(known: Known, rng: Any) -> Array:
    """A start: convex costs of the size of one's own, and states of the size of what was seen."""
    d = known.sizes[1]
    size = np.abs(known.H).max() or 1.0
    roots = rng.standard_normal((len(known.honest), d, d))
    H = size * (roots @ roots.swapaxes(1, 2)) / d
    states = np.abs(known.samples[0]).max() * 0.1 * rng.standard_normal((len(known.honest), 2 * d))
    return np.concatenate([H[:, *np.triu_indices(d)], states], axis=1).ravel()


def _played(known: Known, unknown: Array) -> tuple[Array, Array]:
    """What the coalition would have received, (iteration, numbers), and its derivatives."""
    m, d = known.sizes
    P, honest = len(unknown), list(known.honest)
    each, place = unknown.reshape(len(honest), -1), np.arange(P).reshape(len(honest), -1)
    upper, H, dH = np.triu_indices(d), known.H.copy(), np.zeros((*known.H.shape, P))
    x, y = np.zeros((*known.x.shape, 1 + P)), np.zeros((*known.x.shape, 1 + P))
    x[..., 0], y[..., 0] = known.x, known.y
    for i, values, p in zip(honest, each, place, strict=True):
        H[i][upper] = H[i].T[upper] = values[:m]
        dH[i, upper[0], upper[1], p[:m]] = dH[i, upper[1], upper[0], p[:m]] = 1
        x[i, :, 0], y[i, :, 0] = values[m : m + d], values[m + d :]
        x[i, range(d), 1 + p[m : m + d]] = y[i, range(d), 1 + p[m + d :]] = 1
    told = slice(2, 4) if known.sums else slice(2)
    played = (parts[told] for parts in steps(known.entries, H, dH, x, y, known.rounds))
    rows = np.array([np.concatenate([a[known.seen[0]].reshape(-1, 1 + P), b[known.seen[1]].reshape(-1, 1 + P)]) for a, b in played])
    return rows[..., 0], rows[..., 1:]


def _residual(known: Known, unknown: Array, floor: float) -> tuple[Array, Array]:
    """Misfit and derivatives, each sample over its size; below `floor` times the largest they count ever less."""
    with np.errstate(over="ignore", invalid="ignore"):
        values, slopes = _played(known, unknown)
    size = np.abs(known.samples) + floor * np.abs(known.samples).max(axis=0)
    return ((values - known.samples) / size).ravel(), (slopes / size[..., None]).reshape(-1, len(unknown))


def _fitted(known: Known, unknown: Array, floor: float) -> tuple[Array, float]:
    """Levenberg-Marquardt; returns the unknowns and the largest misfit."""
    damping, (r, J) = 1e-2, _residual(known, unknown, floor)
    for _ in range(STEPS):
        scale = np.linalg.norm(J, axis=0) + 1e-300
        step = np.linalg.lstsq(np.vstack([J / scale, np.sqrt(damping) * np.eye(len(unknown))]),
                               np.concatenate([-r, np.zeros(len(unknown))]), rcond=None)[0] / scale  # fmt: skip
        new_r, new_J = _residual(known, unknown + step, floor)
        better = float(new_r @ new_r) < float(r @ r)
        if better:
            gain = 1 - float(new_r @ new_r) / float(r @ r)
            unknown, r, J = unknown + step, new_r, new_J
            damping = max(damping / 5, 1e-15)
            if gain < 1e-6:
                break
        else:
            damping *= 4
        if damping > 1e6:
            break
    return unknown, float(np.abs(r).max())


def _determined(known: Known, unknown: Array) -> dict[int, Array]:
    """The H_i that cannot be much different without showing in the samples."""
    m, d = known.sizes
    J = _residual(known, unknown, FLOORS[-1])[1]
    scale = np.linalg.norm(J, axis=0) + 1e-300
    _, s, V = np.linalg.svd(J / scale, full_matrices=False)
    spread = READ * np.linalg.norm(V.T / np.maximum(s, 1e-300), axis=1) / scale
    found = {}
    for i, values, slack in zip(known.honest, *np.stack([unknown, spread]).reshape(2, len(known.honest), -1), strict=True):
        if slack[:m].max() < DETERMINED * np.abs(values[:m]).max():
            H = np.zeros((d, d))
            H[np.triu_indices(d)] = H.T[np.triu_indices(d)] = values[:m]
            found[i] = H
    return found


def control() -> tuple[Any, int, Any]:
    from ...controls import five

    view, truth = five((2,), d=2, late="fixed")
    return view, 4, truth  # node 4 never sends to node 2


register(
    Attack(
        name="system-identification",
        id="A9",
        assets=("curvature",),
        uses="one curious node anywhere; public late weights; quadratic costs, nodes times coordinates at most 20",
        idea="Late on, the network is a known linear system but for H_i and the states at K of the others.\n"
        "Fit all that came in, loud samples first; nothing else fits it, so every H_i is read, also two hops away.",
        metric="relative error of H",
        run=attack,
        control=control,
    )
)
