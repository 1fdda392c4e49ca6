"""Functional perturbation: Nozari, Tallapragada, Cortes, "Differentially private distributed convex optimization via functional
perturbation" (IEEE TCNS 2018). Each node bends its own cost once, before anything starts, and any method runs on what came of it:

    f~_i = f_i + sum over k = 1 ... N of eta_ik e_k,    eta_ik ~ Laplace(b_k),   b_k = gamma / k^p

e_1, e_2, ... are orthonormal in L2 on the box `within`: products of cosines of whole half-waves over its sides, one wave number a
coordinate, their sum at most `order`, ordered by that sum and without the constant, which no gradient feels. The original has
infinitely many and projects f~_i back onto smooth, strongly convex functions; here the basis is finite and nothing is projected, so
with large noise the sum may have several minimisers.

What is spent, once and for however many iterations (neighbours: two costs of one node that differ by sum delta_k e_k with
sum (k^q delta_k)^2 <= 1; twice as far spends twice as much, and no difference outside the basis is covered; a function of unit norm
is about 1 / sqrt(volume) high, so on a large box only costs that hardly differ are neighbours):
sum |delta_k| / b_k <= sqrt(sum k^(2p - 2q)) / gamma by Cauchy and Schwarz, and gamma is chosen so that this is epsilon. The
conditions q > 1 and 1/2 < p < q - 1/2 keep gamma and the size of the noise bounded as N grows.

Worth: an exact method converges exactly to the minimiser of the bent sum, so the error is a bias that no iteration takes away.
"""

import functools
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..family import newton_prox
from ..node import Array, Layer
from ..registry import Mechanism, Parameter, at_least, register, within
from ..sets import Box

MOST = 5000  # basis functions: with more, an iteration takes longer than anybody waits
FLAT = 1e10  # root of a volume on which noise of unit norm is too low to count on


class Bent(Layer):
    """m: the coefficients eta, (node, basis function, run)."""

    def gradient(self, x: Array) -> Array:
        return self.inner.gradient(x) + self._bend(x, 1)

    def hessian(self, x: Array) -> Array:
        return self.inner.hessian(x) + self._bend(x, 2)

    def prox(self, p: Array, q: Any) -> Array:
        bent = SimpleNamespace(gradient=lambda xp, data, x: self.gradient(x), hessian=lambda xp, data, x: self.hessian(x))
        return newton_prox(bent, self.inner.xp, (), p, q)  # type: ignore[arg-type]

    def _bend(self, x: Array, degree: int) -> Array:
        """The derivatives of sum eta_k e_k at x of that degree: (node, d, run), (node, d, d, run)."""
        xp, (_, d, runs), box = self.inner.xp, x.shape, self.options.within
        whose, numbers = basis(self.options.order, d)
        tables = waves(xp, box, self.options.order, x)
        factors = [[table[:, c, m] for c, m in zip(whose.T, numbers.T, strict=True)] for table in tables]
        eta = xp.repeat(self.m, runs // self.m.shape[-1], axis=-1)  # a prox tries several points of each run at once
        eta, found = eta / root_volume(box, d), 0.0
        for along in itertools.product(range(len(whose.T)), repeat=degree):
            term = eta
            for slot in range(len(whose.T)):
                term = term * factors[along.count(slot)][slot]
            hot = [1.0 * (whose[:, slot] == np.arange(d)[:, None]) for slot in along]
            found = found + (xp.matmul(hot[0], term) if degree == 1 else xp.einsum("ak,bk,nks->nabs", *hot, term, optimize=True))
        return found


def root_volume(box: Box, d: int) -> float:
    """By which a product of cosines is divided to have unit norm."""
    low, high = box.sides(d)
    with np.errstate(over="ignore"):
        return float(np.prod(np.sqrt(high - low)))


def waves(xp: Any, box: Box, order: int, x: Array) -> list[Array]:
    """Each coordinate's cosines and their first and second derivatives: (node, d, wave number, run)."""
    low, high = (side[:, None, None] for side in box.sides(x.shape[1]))
    number = np.arange(order + 1)[:, None]
    rate, size = number * np.pi / (high - low), np.where(number == 0, 1, math.sqrt(2))
    phase = rate * (x[:, :, None] - low)
    cosine = size * xp.cos(phase)
    return [cosine, -rate * size * xp.sin(phase), -(rate**2) * cosine]


@functools.cache
def basis(order: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each basis function the coordinates along which it waves, and their wave numbers, (N, slots); an empty slot is a 0.

    They are ordered by the sum of the wave numbers, then from those that wave along the first coordinates on.
    """
    slots, functions = min(order, d), []
    for total in range(1, order + 1):
        for picked in itertools.combinations_with_replacement(range(d), total):
            counts = [(c, picked.count(c)) for c in sorted(set(picked))]
            functions.append(counts + [(0, 0)] * (slots - len(counts)))
    found = np.array(functions)
    return found[..., 0], found[..., 1]


def start(node: Any, parameters: Any) -> Array:
    """My coefficients, drawn once and kept."""
    p, d = parameters, node.coordinates
    count = math.comb(p.order + d, d) - 1
    if count > MOST:
        raise ParameterError(
            f"nozari: order={p.order} in {d} coordinates makes {count:,} basis functions, and at most {MOST:,} are played; "
            "take a lower order"
        )
    if root_volume(p.within, d) > FLAT:
        raise ParameterError(
            f"nozari: on {p.within} in {d} coordinates a function of unit norm is not even {1 / FLAT:g} high, and noise of that "
            "size is lost in rounding; take a smaller box, or fewer coordinates"
        )
    k = np.arange(1, count + 1)[:, None]
    gamma = math.sqrt((k ** (2.0 * (p.p - p.q))).sum()) / p.epsilon
    return gamma / k**p.p * node.draw("laplace", like=np.empty((1, count, 1)))


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    p = parameters
    if not algorithm.minimises:
        return "it bends costs, and this method has none"
    if not isinstance(p.within, Box):
        return f"its basis lives on a box, such as within=box:-10..10, not on {p.within}"
    if not (p.q > 1 and 0.5 < p.p < p.q - 0.5):
        return f"q must be above 1 and p between 1/2 and q - 1/2, or the noise has no bound; got p={p.p:g} and q={p.q:g}"
    return None


def spends(p: Any, problem: Any, iterations: int) -> dict[str, float] | None:
    """Once: all that comes later is worked out from the bent costs."""
    return None if p.epsilon == math.inf else {"epsilon": p.epsilon}


number = lambda v: isinstance(v, int | float) and abs(v) < math.inf

register(
    Mechanism(
        name="nozari",
        source="Nozari, Tallapragada, Cortes 2018, with a finite basis and no projection",
        wrap=Bent,
        start=start,
        parameters={
            "epsilon": Parameter(1.0, "what is spent, once; inf: nothing is bent", lambda v: v > 0, "a number above 0, or inf"),
            "order": at_least(1, 2, "largest sum of wave numbers in the basis"),
            "p": Parameter(0.75, "the noise of the k-th basis function falls as 1 / k^p", number, "a number"),
            "q": Parameter(1.5, "neighbouring costs differ in it by at most 1 / k^q", number, "a number"),
            "within": within("box:-10..10", "the box on which the basis is orthonormal; it should hold the optimum"),
        },
        needs=needs,
        needs_text="a method that minimises costs, and a box",
        leaks="The bent cost, as whatever runs on it leaks it; the optimum is missed by a bias that epsilon sets and that stays.",
        overrides=("gradient", "hessian", "prox"),
        spends=spends,
    )
)
