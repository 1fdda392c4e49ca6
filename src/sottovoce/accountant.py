"""What noise buys, in epsilon and delta: a few exact formulas, no estimates.

Laplace noise (Dwork, McSherry, Nissim, Smith 2006): a message whose L1 sensitivity is s, with Laplace(b) on each coordinate,
spends epsilon = s / b; messages add up.
Gaussian noise (Balle, Wang 2018; Dong, Roth, Su 2022): with L2 sensitivity s and standard deviation sigma it is mu-GDP, where
mu = s / sigma: telling the two cases apart is as hard as telling N(0, 1) from N(mu, 1). Messages compose as the root of the sum of
the squares, and

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu),

exactly, so nothing is lost on the way. All of it holds for noise of infinite precision; what floating-point noise gives away in its
last digits (Mironov 2012) is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .errors import ParameterError

TINY = 1e-300  # deltas below are zero to every purpose


def laplace(sensitivity: Any, scale: Any) -> float:
    """Epsilon of Laplace noise: L1 sensitivity over scale, summed over the messages where there are many."""
    s, b = _pair(sensitivity, scale, "scale")
    return math.fsum(np.ravel(_ratio(s, b)))


def gaussian(sensitivity: Any, sigma: Any) -> float:
    """Mu of Gaussian noise: L2 sensitivity over standard deviation, composed over the messages where there are many."""
    s, b = _pair(sensitivity, sigma, "sigma")
    return compose(np.ravel(_ratio(s, b)))


def compose(mus: Iterable[float]) -> float:
    """The mu of several Gaussian mechanisms together, each chosen in view of those before it or not."""
    return math.hypot(*(_at_least_zero("mu", mu) for mu in mus))


def delta_of(mu: float, epsilon: float) -> float:
    """The smallest delta with which a mu-GDP mechanism is (epsilon, delta)-DP."""
    mu, epsilon = _at_least_zero("mu", mu), _at_least_zero("epsilon", epsilon)
    return math.exp(_log_delta(mu, epsilon)) if mu < math.inf else 1.0


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon with which a mu-GDP mechanism is (epsilon, delta)-DP."""
    mu, delta = _at_least_zero("mu", mu), _chance(delta)
    if mu == math.inf:
        return math.inf
    if delta_of(mu, 0) <= delta:
        return 0.0
    if delta <= TINY:
        raise ParameterError(f"delta must be above {TINY:g}: Gaussian noise has no finite epsilon at 0; got {delta!r}")
    enough = mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta))  # by the tail of a normal variable, a little too much
    return _root(lambda epsilon: _log_delta(mu, epsilon) - math.log(delta), 0.0, enough)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose mechanisms are (epsilon, delta)-DP: sigma = sensitivity / mu_of(epsilon, delta) is noise enough."""
    epsilon, delta = _at_least_zero("epsilon", epsilon), _chance(delta)
    if delta <= TINY:
        raise ParameterError(f"delta must be above {TINY:g}: no Gaussian noise is ({epsilon:g}, 0)-DP; got {delta!r}")
    if epsilon == math.inf:
        return math.inf
    gap = lambda mu: _log_delta(mu, epsilon) - math.log(delta)
    low, high = 1e-8, 1.0
    while gap(low) > 0:
        low /= 1e3
    while gap(high) < 0:
        high *= 2
    return _root(gap, low, high)


def total(spendings: Iterable[Mapping[str, float] | None]) -> dict[str, float] | None:
    """What several spend together: epsilons and deltas add up (basic composition); None where nobody states anything."""
    stated = [s for s in spendings if s is not None]
    if not stated:
        return None
    return {what: math.fsum(s.get(what, 0.0) for s in stated) for what in ("epsilon", "delta")}


def _log_delta(mu: float, epsilon: float) -> float:
    """The formula above by logarithms, so that small deltas keep their digits and e^epsilon never overflows."""
    from scipy.special import log_ndtr

    if mu == 0 or epsilon == math.inf:
        return -math.inf
    above, below = (float(log_ndtr(sign * mu / 2 - epsilon / mu)) for sign in (1, -1))
    gap = epsilon + below - above
    return above + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def _root(f: Any, low: float, high: float) -> float:
    from scipy.optimize import brentq

    found: Any = brentq(f, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=500)
    return float(found)


def _pair(sensitivity: Any, noise: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    s, b = np.asarray(sensitivity, float), np.asarray(noise, float)
    for what, values in (("sensitivity", s), (name, b)):
        if not (values >= 0).all():  # NaN included
            raise ParameterError(f"the {what} of a mechanism must be a number from 0 on, or an array of them, not {values}")
    return s, b


def _ratio(s: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Zero where there is nothing to hide, infinite where there is and no noise hides it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(s == 0, 0.0, s / b)


def _at_least_zero(what: str, value: float) -> float:
    if not value >= 0:
        raise ParameterError(f"{what} must be a number from 0 on, not {value!r}")
    return float(value)


def _chance(delta: float) -> float:
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be in [0, 1), not {delta!r}")
    return float(delta)
