"""Masks on costs: random functions that the two ends of an edge know, one takes away and the other adds, so that they cancel.

Each class is a linear space of functions: a mask is a vector of coefficients, standard normal, and the sum of masks has the sum of
their coefficients. `Quadratics`: x'Sx/2 + t'x with S symmetric, sd `scale` off its diagonal, sqrt(2) times that on it (so that no
direction is special), and t of sd `tilt * scale`: a slope bends nothing, so it costs next to no iterations and may be large.
`Features`: amplitude sqrt(2/m) sum_j a_j v_j cos(w_j.x + phase_j), frequencies and phases the same for everybody, which for many
features m follows a Gaussian process with the Matern-7/2 kernel. That kernel's frequencies follow Student's t with 7 degrees of
freedom; drawn from it, the rare high ones are missing, and with them what hides fine detail. So they are drawn from a Cauchy law,
w = z / (|z_0| length), and each counts v = sqrt(density of t / density of Cauchy): the same kernel, and its budget with far fewer
features.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .errors import ParameterError

Array = Any
BLOCK = 8192  # features at a time
DEGREES = 7  # twice the smoothness 7/2: the frequencies of a Matern kernel follow Student's t


@dataclass(frozen=True)
class Quadratics:
    """x'Sx/2 + t'x on R^d; coefficients: the upper triangle of S row by row, then t."""

    d: int
    scale: float
    tilt: float

    @property
    def size(self) -> int:
        return self.d * (self.d + 1) // 2 + self.d

    @cached_property
    def place(self) -> np.ndarray:
        """Which coefficient each entry of S is."""
        found = np.zeros((self.d, self.d), int)
        upper = np.triu_indices(self.d)
        found[upper] = np.arange(len(upper[0]))
        return np.maximum(found, found.T)

    @cached_property
    def spread(self) -> np.ndarray:
        """The standard deviation of each entry of S, (d, d, 1)."""
        return (self.scale * (1 + (np.sqrt(2) - 1) * np.eye(self.d)))[..., None]

    def parts(self, coefficients: Array) -> tuple[Array, Array]:
        """S (n, d, d, run) and t (n, d, run)."""
        return self.spread * coefficients[:, self.place], self.tilt * self.scale * coefficients[:, -self.d :]

    def gradients_of(self, points: np.ndarray) -> np.ndarray:
        """(points * d, size): the gradient of x'Sx/2 + t'x at each point (points, d), for each coefficient."""
        S, t = self.parts(np.eye(self.size)[:, :, None])
        return (np.einsum("pi,cij->pjc", points, S[..., 0]) + t[:, :, 0].T[None]).reshape(-1, self.size)


def _runs_first(xp: Any, a: Array) -> Array:
    """Matrices of runs, as products of matrices take them."""
    return xp.moveaxis(a, -1, 0)


def _runs_last(xp: Any, a: Array) -> Array:
    return xp.moveaxis(a, 0, -1)


class Waves(NamedTuple):
    """Frequencies (1, m, d, run or 1), phases and weights (1, m, run or 1)."""

    frequency: Array
    phase: Array
    weight: Array


@dataclass(frozen=True)
class Features:
    """The Matern-7/2 class on R^d."""

    d: int
    amplitude: float
    length: float
    count: int

    def waves(self, xp: Any, normal: Array, uniform: Array) -> Waves:
        """From `numbers` standard normals, and m uniforms in (-1, 1); (1, how many, run)."""
        parts = normal.reshape(1, self.count, self.d + 1, normal.shape[-1])
        frequency = parts[:, :, : self.d] / xp.abs(parts[:, :, self.d :])
        square = xp.sum(frequency**2, axis=2)
        return Waves(frequency / self.length, np.pi * uniform, xp.exp(self._log_ratio(xp, square) / 2))

    def waves_among(self, draws: Mapping[tuple[str, int], Any]) -> Waves | None:
        """Those of the first run, from what all know of its draws; None where other masks were drawn."""
        common = {d.value.shape[1]: d.value[..., :1] for (_, k), d in draws.items() if k == -1 and d.known == "all"}
        if not {self.numbers, self.count} <= set(common):
            return None
        return self.waves(np, common[self.numbers], common[self.count])

    @property
    def numbers(self) -> int:
        """How many normals its frequencies are made of."""
        return self.count * (self.d + 1)

    def _log_ratio(self, xp: Any, square: Array) -> Array:
        """Student's density with 7 degrees of freedom over Cauchy's, which has one, at |w length|^2."""
        size = lambda nu: math.lgamma((nu + self.d) / 2) - math.lgamma(nu / 2) - self.d / 2 * math.log(nu)
        tail = lambda nu: (nu + self.d) / 2 * xp.log1p(square / nu)
        return size(DEGREES) - size(1) - tail(DEGREES) + tail(1)

    def gradient(self, xp: Any, coefficients: Array, waves: Waves, x: Array) -> Array:
        """(n, d, run); in NumPy some features at a time, which stay in the cache."""
        found, size = 0.0, BLOCK if xp is np else self.count
        for lo in range(0, self.count, size):
            some = Waves(*(part[:, lo : lo + size] for part in waves))
            bent = coefficients[:, lo : lo + size] * (self._factor * some.weight) * xp.sin(self._angle(xp, some, x))
            found = found - _runs_first(xp, bent) @ _runs_first(xp, some.frequency[0])
        return _runs_last(xp, found)

    def hessian(self, xp: Any, coefficients: Array, waves: Waves, x: Array) -> Array:
        """(n, d, d, run)."""
        bent = self._factor * coefficients * waves.weight * xp.cos(self._angle(xp, waves, x))
        frequency = _runs_first(xp, waves.frequency[0])[:, None]
        return -_runs_last(xp, (_runs_first(xp, bent)[:, :, None] * frequency.swapaxes(2, 3)) @ frequency)

    @property
    def _factor(self) -> float:
        return self.amplitude * (2 / self.count) ** 0.5

    def _angle(self, xp: Any, waves: Waves, x: Array) -> Array:
        along = _runs_first(xp, x) @ _runs_first(xp, waves.frequency[0]).swapaxes(1, 2)
        angle = _runs_last(xp, along) + waves.phase
        return angle - 2 * np.pi * xp.rint(angle / (2 * np.pi))  # of small numbers the sine is quick

    def gradients_of(self, waves: Waves, points: np.ndarray) -> np.ndarray:
        """(points * d, m): the gradient of each feature at each point (points, d), for a mask of standard normal coefficients."""
        frequency, phase, weight = waves.frequency[0, :, :, 0], waves.phase[0, :, 0], waves.weight[0, :, 0]
        bent = -self._factor * weight * np.sin(points @ frequency.T + phase)
        return (bent[:, None] * frequency.T[None]).reshape(-1, len(phase))


@dataclass(frozen=True)
class MaskBook:
    """Masks that outlast a run, for parties that run again on the same data, or on data that have changed.

    Open one for a problem and a graph and hand it to every run: `function-masks` then draws the same masks each time, so that a
    second run of the same data tells nothing new. Data that have changed ask for `on(changed)`: a book in which the masks so far
    stay and a fresh one is added, which lies on the increment alone. The masks themselves are in no book: simulated they follow
    from the label, on real nodes from the keys of an edge and the label.
    """

    label: int
    graph: str  # digest
    data: tuple[str, ...]  # digests of the problems so far, the present one last

    @classmethod
    def open(cls, problem: Any, graph: Any, label: int = 0) -> MaskBook:
        """A book for these parties; another label, other masks."""
        if isinstance(label, bool) or not isinstance(label, int) or label < 0:
            raise ParameterError(f"the label of a book of masks is a whole number from 0 on, not {label!r}")
        return cls(label, graph.digest(), (problem.digest(),))

    def on(self, problem: Any) -> MaskBook:
        """The book for what the data are now; itself where nothing has changed."""
        found = problem.digest()
        return self if found == self.data[-1] else MaskBook(self.label, self.graph, (*self.data, found))

    def labels(self, law: str) -> tuple[int, ...]:
        """One for each mask that lies on an edge now. Masks of another law are other masks, never these on another scale."""
        return tuple(self.named(f"{law} {self.data[: i + 1]}") for i in range(len(self.data)))

    def named(self, what: str) -> int:
        """The label of something that all runs of this book have in common."""
        found = hashlib.sha256(f"{self.label} {self.graph} {what}".encode()).digest()
        return int.from_bytes(found[:8], "little")

    def unfit(self, problem: Any, graph: Any) -> str | None:
        """Why it cannot serve a run; None where it can."""
        if graph.digest() != self.graph:
            return (
                "its book of masks is of another graph, and a mask that leaves an edge is read off the difference of the runs; "
                "open a new book (fresh masks: mu grows with the square root of the runs)"
            )
        if problem.digest() != self.data[-1]:
            return (
                "the data have changed since its book of masks was written, and the same masks would show the change exactly, as "
                "the difference of the two runs; take book.on(problem), which adds a fresh mask on the increment"
            )
        return None
