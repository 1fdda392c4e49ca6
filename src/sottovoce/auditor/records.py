"""Records from gradients: a logistic cost of few records, fitted whole to what is read of its gradients.

    g(x) = - sum_j v_j / (1 + exp(v_j'x)),      v_j = label times features of record j;      the penalty is public and comes off

Every record bends the cost in a direction and at a place of its own, so a few records are told apart by any path, to the last
digit. Levenberg-Marquardt from several starts; the misfit counts in units of the noise, which is let go down step by step. How
many records there are is found by trying: too few do not explain everything, and those too many come out as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..view import View
from .attacks.tail_secants import curvature
from .opened import noisy

Array = np.ndarray
FLOORS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 0.0)  # of the largest number, added to the noise: coarse features first
STARTS, LEAST, STEPS = 36, 8, 120  # for all numbers of records together, and for each
EXPLAINED = 3.0  # misfit a number, in units of the noise, up to which a fit explains what was read
SHARP = 1e-3  # how little of a record may stay open, of its size
MOST, UNKNOWN = 8, 100  # records, and numbers, that are looked for at most
ROUGH = 1e-2  # gain of a step, of the misfit, below which a floor is done with
FAR, HOPELESS = 1e6, 10.0  # a number of a record, and a misfit, with which a start is given up
ROUNDING = 1e-14  # of the largest number that something was computed from


def expit(u: Array) -> Array:
    """1 / (1 + exp(-u)), without overflow."""
    e = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, e) / (1.0 + e)


class Part(NamedTuple):
    """What is read of the gradients of one lot of records."""

    x: Array  # (m, d)
    g: Array  # (m, d)
    H: Array | None = None  # (m, d, d), where it is read too
    anchored: bool = True  # whether g is read as it is, or up to a constant

    @property
    def numbers(self) -> Array:
        return _flat(self, self.g, self.H)


class Noise(NamedTuple):
    """What the numbers of all parts, one after the other, are wrong by: standard deviations along axes; None: number by number."""

    spread: Array
    axes: Array | None = None  # (numbers, numbers), a row each

    def off(self, a: Array) -> Array:
        return a if self.axes is None else self.axes @ a


class Fit(NamedTuple):
    """Records that explain everything."""

    V: Array  # (part, records, d)
    misfit: float
    width: float  # what stays open of the least certain direction, of the size of a record


def search(parts: Sequence[Part], noise: Noise, size: float, counts: Iterable[int]) -> Fit | None:
    """As many records a part, of the numbers tried, as explain what was read and leave nothing open; `size` of their numbers."""
    d = parts[0].x.shape[1]
    most = min(UNKNOWN, len(noise.spread) - d) // (d * len(parts))  # beyond, any number of records would do
    tried = [count for count in counts if count <= most]
    for count in tried:
        found = fitted(parts, noise, count, size, max(STARTS // len(tried), LEAST))
        if found is not None and found.width < SHARP:
            return found._replace(V=_without_zeros(found.V))
    return None


def _without_zeros(V: Array) -> Array:
    """Each part's largest records first, and no more places than the part with the most records needs."""
    size = np.linalg.norm(V, axis=2)
    V = np.take_along_axis(V, np.argsort(-size, axis=1)[..., None], axis=1)
    return V[:, np.sort(size, axis=1)[:, ::-1].max(0) > SHARP * size.max()]


def there(V: Array) -> Array:
    """The records of (..., records, d) that are not zero, one after the other."""
    V = V.reshape(-1, V.shape[-1])
    size = np.linalg.norm(V, axis=1)
    return V[size > SHARP * size.max(initial=0.0)]


def fitted(parts: Sequence[Part], noise: Noise, count: int, size: float, starts: int) -> Fit | None:
    """So many records a part; None where no start explains what was read."""
    rng = np.random.default_rng(count)
    bends = [_curvature(part) if noise.axes is None else None for part in parts]  # behind masks it is not the records'
    for _ in range(starts):
        first = [_first(part, H, count, size, rng) for part, H in zip(parts, bends, strict=True)]
        found = refitted(parts, noise, np.array(first), FLOORS)
        if found is not None and found.misfit <= EXPLAINED * len(noise.spread):
            return found
    return None


def _first(part: Part, H: Array | None, count: int, size: float, rng: Any) -> Array:
    """Records at random; where a curvature H is read, with about that one, and near the origin with the gradient."""
    if H is None:
        return size * rng.standard_normal((count, part.x.shape[1]))
    values, vectors = np.linalg.eigh(H)
    roots = (np.sqrt(np.maximum(4 * values, 0)) * vectors).T[::-1][:count]
    V = np.linalg.qr(rng.standard_normal((count, count)))[0][:, : len(roots)] @ roots
    return V - (2 * part.g[0] + V.sum(0)) / count if part.anchored else V


def _curvature(part: Part) -> Array | None:
    """About that at the first point; None where it is not determined."""
    if part.H is not None:
        return part.H[0]
    return curvature(np.diff(part.x, axis=0), np.diff(part.g, axis=0), np.ones(len(part.x) - 1))


def refitted(parts: Sequence[Part], noise: Noise, V: Array, floors: Sequence[float] = (0.0,)) -> Fit | None:
    """From given records downhill; None where that leads out of all bounds."""
    from scipy.linalg import block_diag
    from scipy.optimize import least_squares

    target = np.concatenate([part.numbers for part in parts])
    largest, aim = np.abs(target).max(), noise.off(target)

    def read(v: Array) -> Array:
        return noise.off(np.concatenate([values(*pair) for pair in zip(parts, v.reshape(V.shape), strict=True)])) - aim

    def bent(v: Array) -> Array:
        return noise.off(np.asarray(block_diag(*(slopes(*pair) for pair in zip(parts, v.reshape(V.shape), strict=True)))))

    v, r = V.ravel(), aim
    for floor in floors:
        scale = np.sqrt(noise.spread**2 + (floor * largest) ** 2)
        slope: Any = lambda v, s=scale: bent(v) / s[:, None]
        found = least_squares(lambda v, s=scale: read(v) / s, v, slope, method="lm", max_nfev=STEPS, ftol=ROUGH if floor else 1e-12)
        v, r = found.x, found.fun
        if not (np.abs(v) < FAR).all() or r @ r > HOPELESS * len(r):
            return None
    least = np.linalg.svd(bent(v) / noise.spread[:, None], compute_uv=False)[-1]
    return Fit(v.reshape(V.shape), float(r @ r), float(1 / max(least, 1e-300) / np.sqrt(np.mean(v**2))))


def values(part: Part, V: Array) -> Array:
    """What the gradients (and Hessians) of records V (records, d) are, number by number."""
    s = expit(-(part.x @ V.T))
    H = None if part.H is None else np.einsum("mr,ra,rb->mab", s * (1 - s), V, V)
    return _flat(part, -(s @ V), H)


def slopes(part: Part, V: Array) -> Array:
    """The derivatives of these numbers for each number of V."""
    x, s, eye = part.x, expit(-(part.x @ V.T)), np.eye(V.shape[1])
    bend, H = s * (1 - s), None
    g = np.einsum("mr,ra,mc->marc", bend, V, x) - s[:, None, :, None] * eye[None, :, None, :]
    if part.H is not None:
        turned = np.einsum("mr,ac,rb->mabrc", bend, eye, V)
        H = turned + turned.swapaxes(1, 2) + np.einsum("mr,mc,ra,rb->mabrc", bend * (2 * s - 1), x, V, V)
    return _flat(part, g, H).reshape(-1, V.size)


def _flat(part: Part, g: Array, H: Array | None) -> Array:
    """What counts of a part's numbers, one after the other; more axes stay behind."""
    g = g if part.anchored else g[1:] - g[0]
    rows = [g.reshape(-1, *g.shape[2:])]
    if H is not None:
        upper = H[:, *np.triu_indices(H.shape[1])]
        rows.append(upper.reshape(-1, *upper.shape[2:]))
    return np.concatenate(rows)


def fits(header: Mapping[str, Any]) -> bool:
    """Whether records are looked for: logistic costs, whose gradients nobody adds noise to."""
    return header.get("costs") == "logistic" and not noisy(header)


def penalty(view: View) -> Array | None:
    """What a node's penalty is, (d,): everybody has an equal part. None where the coalition has no such cost."""
    return next((held["penalty"] for held in view.costs.values() if "penalty" in held), None)


def record_size(view: View) -> float:
    """The size of a number of a record, judged by the coalition's own."""
    own = [held["X"] for held in view.costs.values() if len(held.get("X", ()))]
    return (float(np.sqrt(np.mean(np.concatenate(own) ** 2))) if own else 0.0) or 1.0


def holding(view: View) -> int:
    """The most records that a member of the coalition holds."""
    return max((len(held["X"]) for held in view.costs.values() if "X" in held), default=0)


def likely(part: Part, size: float) -> list[int]:
    """How many records it may be, were they as large as one's own: each adds a quarter of its square to the curvature at most."""
    H = _curvature(part)
    if H is None:
        return list(range(1, MOST + 1))
    about = 4 * np.trace(H) / (len(H) * size**2)
    if not 0 < about < 3 * MOST:
        return []
    return sorted(range(max(int(about / 3), 1), int(min(3 * about + 2, MOST)) + 1), key=lambda count: abs(count - about))
