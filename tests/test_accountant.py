"""The accountant against Google's dp-accounting, mpmath and closed forms."""

from __future__ import annotations

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import pld

from sottovoce import accountant
from sottovoce.errors import ParameterError


def exact_delta(mu, epsilon):
    """The formula with fifty digits."""
    with mpmath.workdps(50):
        phi = mpmath.ncdf
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("mu", [1e-4, 0.05, 0.5, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 10.0, 700.0])
def test_delta_is_the_formula(mu, epsilon):
    exact = exact_delta(mu, epsilon)
    if exact > 1e-290:
        assert math.isclose(accountant.delta_of(mu, epsilon), exact, rel_tol=1e-8)
    else:
        assert accountant.delta_of(mu, epsilon) < 1e-280


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 60.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_and_sigma_as_dp_accounting_has_them(sigma, delta):
    epsilon = accountant.epsilon_of(accountant.gaussian(1.0, sigma), delta)
    assert math.isclose(epsilon, dp_accounting.get_epsilon_gaussian(sigma, delta), rel_tol=1e-6, abs_tol=1e-9)
    noise = 1 / accountant.mu_of(epsilon, delta)
    assert math.isclose(noise, sigma, rel_tol=1e-8)
    assert math.isclose(noise, dp_accounting.get_sigma_gaussian(epsilon, delta), rel_tol=1e-6)


def test_composition_of_gaussians_as_dp_accounting_has_it():
    sigmas = [2.0, 3.0, 3.0, 7.0]
    composed = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(s) for s in sigmas])
    epsilon = accountant.epsilon_of(accountant.gaussian(1.0, sigmas), 1e-5)
    theirs = pld.PLDAccountant().compose(composed).get_epsilon(1e-5)
    assert math.isclose(epsilon, theirs, rel_tol=1e-3)
    assert epsilon <= theirs + 1e-9  # theirs is rounded up
    parts = accountant.compose(accountant.gaussian(1.0, s) for s in sigmas)
    assert math.isclose(parts, math.sqrt(sum(s**-2 for s in sigmas)), rel_tol=1e-14)


def test_laplace_as_dp_accounting_has_it():
    scales = [2.0, 4.0, 8.0]
    ours = accountant.laplace(1.0, scales)
    assert ours == 0.875
    composed = dp_accounting.ComposedDpEvent([dp_accounting.LaplaceDpEvent(b) for b in scales])
    theirs = pld.PLDAccountant().compose(composed).get_epsilon(1e-12)  # a sum of independent losses: all three at their largest
    assert math.isclose(theirs, ours, rel_tol=1e-9)
    assert accountant.laplace([1.0, 2.0], [4.0, 4.0]) == 0.75


def test_a_known_table():
    """From mu to epsilon at delta = 1e-5, to the digits of a table made elsewhere."""
    found = [accountant.epsilon_of(mu, 1e-5) for mu in (0.25, 0.5, 1, 2, 4)]
    assert [float(f"{e:.2g}") for e in found] == [0.93, 2.0, 4.4, 10, 24]


def test_the_edges():
    assert accountant.laplace(0.0, 0.0) == 0.0  # nothing to hide
    assert accountant.laplace(1.0, 0.0) == math.inf  # and no noise
    assert accountant.gaussian([0.0, 1.0], [0.0, math.inf]) == 0.0
    assert accountant.epsilon_of(0.0, 0.0) == 0.0
    assert accountant.epsilon_of(math.inf, 0.1) == math.inf
    assert accountant.epsilon_of(0.1, 0.5) == 0.0
    assert accountant.delta_of(math.inf, 3.0) == 1.0
    assert accountant.delta_of(1.0, math.inf) == 0.0
    assert accountant.mu_of(math.inf, 1e-6) == math.inf
    tiny = accountant.mu_of(0.0, 1e-8)
    assert math.isclose(tiny, math.sqrt(2 * math.pi) * 1e-8, rel_tol=1e-6)  # 2 Phi(mu / 2) - 1 = delta


def test_several_add_up():
    assert accountant.total([]) is None
    assert accountant.total([None, None]) is None
    assert accountant.total([{"epsilon": 0.5}, None, {"epsilon": 1.0, "delta": 1e-6}]) == {"epsilon": 1.5, "delta": 1e-6}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: accountant.laplace(-1, 1), "sensitivity"),
        (lambda: accountant.laplace(1, [1, math.nan]), "scale"),
        (lambda: accountant.gaussian(1, -1), "sigma"),
        (lambda: accountant.compose([math.nan]), "mu must be a number from 0 on, not nan"),
        (lambda: accountant.delta_of(1, -1), "epsilon must be a number from 0 on, not -1"),
        (lambda: accountant.epsilon_of(1, 1), r"delta must be in \[0, 1\), not 1"),
        (lambda: accountant.epsilon_of(1, 0), "no finite epsilon at 0"),
        (lambda: accountant.mu_of(1, 0), r"no Gaussian noise is \(1, 0\)-DP"),
        (lambda: accountant.mu_of(1, np.nan), "delta"),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises(ParameterError, match=said):
        call()
