"""Gaussian noise on what is opened, calibrated to (epsilon, delta), in shares that nobody knows the sum of.

    my share of an opened sum = v + N(0, sigma^2 / honest),      sigma = sensitivity sqrt(sums) / mu(epsilon, delta)

Distributed noise: Dwork, Kenthapadi, McSherry, Mironov, Naor (Eurocrypt 2006); mu by the exact curve of the Gaussian mechanism
(Balle, Wang 2018; see accountant.py). Whoever is told the sum and knows all shares of noise but those of `honest` nodes still faces
variance sigma^2. Value and noise are rounded apart to a grid 2^-20 of the noise's size, so that no last digit tells; what that adds
to the sensitivity is counted.

An exact sum of few records exposes them, whatever masks do; this is the remedy, and it costs the exact optimum. `sensitivity` is
the length of what one record can change in all numbers of one share: it is declared, and nothing here can check it. Every
iteration opens another sum: `result.spent` counts those that were opened.
"""

from __future__ import annotations

import math
from typing import Any

from ..accountant import compose, epsilon_of, mu_of
from ..errors import ParameterError
from ..laws import law
from ..node import Array, Layer
from ..registry import Mechanism, Parameter, at_least, positive, register

GRID = 2.0**-20  # of the noise: what it is rounded to


class CalibratedNoise(Layer):
    def contribute(self, values: Array, grid: Any) -> Array:
        values = self.inner.contribute(values, grid)
        sigma = spread(self.options) / math.sqrt(self.options.honest)
        unit = 2.0 ** (math.frexp(sigma)[1] - 1) * GRID
        if unit < grid.step:
            raise ParameterError(
                f"noise of size {sigma:.2g} needs steps of {unit:.2g} or less, and those of the sums are {grid.step:.2g}; "
                "take words=2, or a smaller range"
            )
        noise = self.inner.draw(law("normal", sigma), like=values, known="me")
        return unit * (self.xp.rint(values / unit) + self.xp.rint(noise / unit))


def spread(options: Any) -> float:
    """The standard deviation of the noise that `honest` nodes add together."""
    return options.sensitivity * math.sqrt(options.sums) / mu_of(options.epsilon, options.delta)


def spends(options: Any, problem: Any, iterations: int) -> dict[str, float]:
    """Of one record, over the sums that were opened; rounding to the grid included."""
    numbers = problem.d * (problem.d + 3) / 2  # in one sum, at most
    mu = options.sensitivity / spread(options) + math.sqrt(numbers / options.honest) * GRID
    return {"epsilon": epsilon_of(compose([mu] * iterations), options.delta), "delta": options.delta}


def needs(method: Any, options: Any, outside: Any) -> str | None:
    return None if method.opens else "it opens no sums; private-sum, private-least-squares, private-newton, private-gradient do"


register(
    Mechanism(
        name="calibrated-noise",
        source="Dwork et al. 2006 (distributed noise); Balle, Wang 2018",
        wrap=CalibratedNoise,
        parameters={
            "sensitivity": positive(1.0, "the length of what one record can change in a share"),
            "epsilon": positive(1.0, "what all sums together may spend"),
            "delta": Parameter(1e-5, "with which chance more", lambda v: 0 < v < 1, "a chance in (0, 1)"),
            "sums": at_least(1, 1, "how many sums are opened: one an iteration"),
            "honest": at_least(1, 1, "nodes whose noise nobody else knows: the other nodes' shares may be anything"),
        },
        needs=needs,
        needs_text="a method that opens sums",
        leaks="Of one record as much as epsilon and delta say, if the sensitivity is what was declared; the optimum is missed.",
        overrides=("contribute",),
        spends=spends,
    )
)
