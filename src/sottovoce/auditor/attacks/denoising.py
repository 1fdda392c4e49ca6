"""A12: noise of a known law on the messages is filtered out, because the dynamics tie them together.

The unknowns are the true x^k, y^k and the curvature H; the messages are linear in them given H:
    x^k,    lambda y^k,    C y^k + B dg^k  (one an edge),    dg^k = H (x^{k+1} - x^k),    each plus noise of one width.
y and dg follow from each iteration's messages by least squares with their covariance; eliminating the true x^k leaves a
whitened residual in H alone, with the noise of x in its covariance, so that H is not shrunk. H then sharpens y^0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..reading import tracking

Array = np.ndarray
LONGEST, RUNS = 50, 6  # iterations and runs that are used: later ones are noise
UNSURE = 0.5  # relative spread from which on nothing is said


class Seen(NamedTuple):
    """One run of the victim's messages."""

    x: Array  # (k + 1, d)
    y: Array  # (k, d)
    dg: Array  # (k, d)
    covariance: Array  # (k, 2, 2) of y and dg, in units of the noise


def edges_seen(view: View, victim: int) -> list[int]:
    """The victim's out-edges whose first messages are seen."""
    first = [view.sent.get((0, e)) for e in (0, 1)]
    if any(m is None for m in first):
        return []
    heard = lambda e: all(np.isfinite(m[e]).all() for m in first if m is not None)
    return [int(e) for e in np.flatnonzero(view.graph.sender == victim) if heard(e)]


def drawn_as(view: View, name: str) -> str:
    """The weight that this one is the same as, itself where it is its own, or "identity"."""
    kinds = view.header["parameters"]
    for _ in kinds:
        if kinds.get(name) == "identity":
            return "identity"
        if kinds.get(name) not in ("R", "A", "C", "B"):
            break
        name = kinds[name]
    return name


def weight(view: View, name: str, k: int, edge: int) -> Array | None:
    """The weight of an edge in iteration k, (run or 1,); None where the view does not hold it as one number."""
    draw = view.draws.get((drawn_as(view, name), k))
    if draw is None or draw.value.shape[1] != 1:
        return None
    sender, receiver = view.graph.edges[edge]
    value = draw.value[view.entry(receiver, sender), 0]
    return value if np.isfinite(value).all() and (value != 0).all() else None


def noisy(view: View) -> bool:
    """Whether noise is declared; without it the attacks that divide and subtract are exact."""
    return any("noise" in text for text in view.header.get("mechanisms", ()))


def first_gradient(view: View, victim: int) -> tuple[Array, Array] | None:
    """(x, gradient there), (d, run), from the first messages alone; None where they do not say it."""
    d, edges = int(view.header["coordinates"]), edges_seen(view, victim)
    if not tracking(view) or view.settled > 0 or not edges:
        return None
    pulled = view.sent[0, 0][edges[0]]
    if len(pulled) == 2 * d:
        return pulled[:d], pulled[d:] / view.stepsize[victim]
    weights = [weight(view, "C", 0, e) for e in edges]
    when = pushed_at(view)
    if len(pulled) != d or when is None or any(w is None for w in weights) or (when, 0) not in view.sent:
        return None
    c = np.array(weights, dtype=float)[:, None]  # (edge, 1, run or 1)
    g = (c * view.sent[0, 1][edges]).sum(0) / (c**2).sum(0)
    return view.sent[when, 0][edges[0]][:d], g


def pushed_at(view: View) -> int | None:
    """The k of the x^k whose gradient the first pushed message is a multiple of; None where it is of none that is sent."""
    A, C, B = (drawn_as(view, name) for name in "ACB")
    if A != "identity" or B not in (C, "identity"):
        return None
    return 0 if B == "identity" else 1


def messages(view: View, victim: int) -> list[Seen]:
    """What is seen from K on, run by run; empty where lambda y is not sent or a weight is not known."""
    d, start, edges = int(view.header["coordinates"]), view.settled, edges_seen(view, victim)
    last = min(view.iterations - 1, start + LONGEST)
    if not tracking(view) or drawn_as(view, "B") == "identity" or not edges or last - start < d + 1:
        return []
    if any((k, 1) not in view.sent or view.sent[k, 0].shape[1] != 2 * d for k in range(start, last + 1)):
        return []
    weights = {(n, k, e): weight(view, n, k, e) for n in "CB" for k in range(start, last) for e in edges}
    if any(w is None for w in weights.values()):
        return []
    runs = range(min(view.sent[start, 0].shape[-1], RUNS))
    return [_one(view, victim, edges, weights, range(start, last), run) for run in runs]


def _one(view: View, victim: int, edges: list[int], weights: dict[Any, Any], ks: range, run: int) -> Seen:
    d, size = int(view.header["coordinates"]), view.stepsize[victim]
    pulled = np.array([view.sent[k, 0][edges[0], :, run] for k in [*ks, ks[-1] + 1]])
    found, spread = [], []
    for t, k in enumerate(ks):
        at = lambda name, e, k=k: weights[name, k, e][min(run, len(weights[name, k, e]) - 1)]
        A = np.array([[size, 0.0], *([at("C", e), at("B", e)] for e in edges)])
        m = np.array([pulled[t, d:], *(view.sent[k, 1][e, :, run] for e in edges)])
        spread.append(np.linalg.inv(A.T @ A))
        found.append(np.linalg.lstsq(A, m, rcond=None)[0])
    return Seen(pulled[:, :d], np.array(found)[:, 0], np.array(found)[:, 1], np.array(spread))


def curvature(runs: list[Seen]) -> tuple[Array, float]:
    """(H, its relative spread) by whitened least squares over all runs."""
    from scipy.optimize import least_squares

    d = runs[0].x.shape[1]
    upper = np.triu_indices(d)
    plain = lambda h: np.concatenate([_whitened(seen, _symmetric(h[None], d))[0] for seen in runs])
    rough = [np.linalg.lstsq(np.diff(s.x, axis=0), s.dg, rcond=None)[0].T for s in runs]
    guess = np.mean(rough, 0)
    slopes: Any = lambda h: _slopes(runs, h, d)
    fit = least_squares(plain, ((guess + guess.T) / 2)[upper], jac=slopes, x_scale="jac", max_nfev=40)
    free = max(len(fit.fun) - len(fit.x), 1)
    spread = np.linalg.pinv(fit.jac.T @ fit.jac) * (fit.fun @ fit.fun / free)
    H = _symmetric(fit.x[None], d)[0]
    return H, float(np.sqrt(np.trace(spread)) / max(np.linalg.norm(H), 1e-300))


def _symmetric(h: Array, d: int) -> Array:
    """(many, d, d) from upper triangles."""
    H = np.zeros((len(h), d, d))
    H[:, *np.triu_indices(d)] = h
    return H + np.triu(H, 1).swapaxes(1, 2)


def _slopes(runs: list[Seen], h: Array, d: int) -> Array:
    """The derivatives of the whitened residuals, by differences, all unknowns at once."""
    width = np.sqrt(np.finfo(float).eps) * np.where(h < 0, -1, 1) * np.maximum(1, np.abs(h))
    moved = _symmetric(np.vstack([h, h + np.diag(width)]), d)
    found = np.concatenate([_whitened(seen, moved) for seen in runs], axis=1)
    return (found[1:] - found[0]).T / width


def _whitened(seen: Seen, H: Array) -> Array:
    """dg - H dx in units of its spread, (many, numbers): the noise of dg, and that of x, which neighbouring differences share.

    The covariance is D (x) 1 + S (x) HH', S with 2 on its diagonal and -1 beside it: along each eigenvector of HH' a band.
    """
    residual = seen.dg - np.diff(seen.x, axis=0) @ H.swapaxes(1, 2)
    size, way = np.linalg.eigh(H @ H.swapaxes(1, 2))
    turned, variance = (residual @ way).swapaxes(0, 1), seen.covariance[:, 1, 1]
    out = np.zeros_like(turned)
    pivot, last = np.ones_like(size), np.zeros_like(size)
    for t in range(len(turned)):  # the Cholesky factor of the band, a row at a time: below its diagonal, on it
        below = -size / pivot if t else last
        pivot = np.sqrt(variance[t] + 2 * size - below**2)
        out[t] = last = (turned[t] - below * last) / pivot
    return (out.swapaxes(0, 1) @ way.swapaxes(1, 2)).reshape(len(H), -1)  # turned back: eigenvectors have no signs of their own


def run(view: View, victim: int) -> list[Estimate]:
    """The curvature where lambda y is sent and weights are public; the start gradient where K = 0."""
    if not noisy(view):
        return []
    first, seen = first_gradient(view, victim), messages(view, victim)
    offset = None if first is None else (first[0][:, 0], first[1][:, 0])
    found: list[Estimate] = []
    H = _fitted(seen)
    if H is not None:
        found.append(Estimate((victim,), "curvature", H))
        offset = (seen[0].x[0], _sharpened(seen[0], H)) if view.settled == 0 else None
    return found if offset is None else [*found, Estimate((victim,), "offset", offset[1], offset[0])]


def _fitted(seen: list[Seen]) -> Array | None:
    """H, where it is determined; None for a run that ran away."""
    if not seen or not max(np.abs(part).max() for s in seen for part in s[:3]) < 1e100:
        return None
    H, unsure = curvature(seen)
    return H if unsure < UNSURE else None


def _sharpened(seen: Seen, H: Array) -> Array:
    """y^0, corrected by what H says of dg^0: one step of a Kalman filter."""
    P, width = seen.covariance[0], 2 * np.trace(H @ H.T) / len(H)
    return seen.y[0] + P[0, 1] / (P[1, 1] + width) * (H @ (seen.x[1] - seen.x[0]) - seen.dg[0])


def control() -> tuple[Any, int, Any]:
    """Noise of 10^-3 on every message, K = 0: a differencing attack drowns, this one does not."""
    from ... import controls, graphs, problems

    options = {"K": 0, "mechanisms": "message-noise:scale=0.001", "iterations": 60, "late": "fixed", "stepsize": 0.05}
    problem = problems.estimation(n=5, d=2, seed=3)
    view, truth = controls.recorded("private-gradient-tracking", problem, graphs.paper_b(), {1}, **options)
    return view, 0, truth


register(
    Attack(
        name="denoising",
        id="A12",
        assets=("curvature", "offset"),
        uses="noisy messages of the victim to one node or more, public weights and stepsize, the noise of one known width",
        idea="Messages of successive iterations speak of the same x, y and H: least squares with the covariance that\n"
        "the noise makes. A start gradient that is large beside the noise is read off the first messages.",
        metric="relative error of H and of the start gradient",
        run=run,
        control=control,
    )
)
