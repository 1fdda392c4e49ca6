"""How much two worlds can be told apart by what an adversary sees: the likelihood-ratio game, in figures.

`play(a, b)` takes what was seen in either world: numbers, higher where b is likelier (log-likelihood ratios), or rows of
numbers, which are first scored by Gaussians fitted to one half. Thresholds are chosen on one half of the samples and judged
on the other, so that the bounds hold with the confidence that they state: two equal worlds raise a false alarm
(`game.alarm`) with a chance of at most 1 - confidence. A bound of zero proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ParameterError

Array = np.ndarray
THRESHOLDS = 200  # tried at most
BINS = 16  # of the score, for the bits
FEWEST = 8  # samples of a world


@dataclass(frozen=True)
class Game:
    """What came of it; `low` stands before a figure that is a lower bound with the given confidence."""

    auc: float  # the chance that a sample of b scores above one of a
    tpr: float  # how many of b are recognised
    fpr: float  # while at most so many of a are taken for b
    low_epsilon: float  # no (epsilon, delta)-indistinguishability below this
    low_mu: float  # no mu-GDP below this
    mu: float  # of the Gaussian shift with this AUC: an estimate, no bound
    bits: float  # learnt about a fair choice of the world: an estimate, no bound
    delta: float
    confidence: float

    @property
    def alarm(self) -> bool:
        """Whether the worlds were shown to differ."""
        return self.low_epsilon > 0


def play(a: Array, b: Array, *, fpr: float = 1e-3, delta: float = 0.0, confidence: float = 0.95) -> Game:
    """The game between two worlds; a and b are scores (m,), or samples (m, numbers)."""
    a, b = _checked(a), _checked(b)
    if not (0 < confidence < 1 and 0 <= delta < 1 and 0 < fpr < 1):
        raise ParameterError(f"fpr and confidence lie between 0 and 1, delta in [0, 1); not {fpr}, {confidence}, {delta}")
    if a.shape[1:] != b.shape[1:]:
        raise ParameterError(f"both worlds must be seen through as many numbers; they have the shapes {a.shape} and {b.shape}")
    if a.ndim == 2:
        a, b = _fitted(a, b)
    threshold, sign = _chosen(a[::2], b[::2], delta, 1 - confidence)
    judged_a, judged_b = sign * a[1::2], sign * b[1::2]
    missed, false = _rates(judged_a, judged_b, np.array([threshold]), 1 - confidence)
    area = auc(judged_a, judged_b)
    return Game(
        area, tpr_at(judged_a, judged_b, fpr), fpr, float(_epsilon(missed, false, delta)[0]), float(_mu(missed, false)[0]),
        _mu_of(area, len(judged_a)), world_bits(a, b), delta, confidence,
    )  # fmt: skip


def _checked(values: Array) -> Array:
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or len(values) < FEWEST or np.isnan(values).any():
        raise ParameterError(f"a world is seen as (m,) or (m, numbers), m >= {FEWEST}, no NaN; got the shape {values.shape}")
    return values


def auc(a: Array, b: Array) -> float:
    """P(b > a), ties counting half."""
    order = np.sort(a)
    return float((np.searchsorted(order, b, "left") + np.searchsorted(order, b, "right")).mean() / (2 * len(a)))


def tpr_at(a: Array, b: Array, fpr: float) -> float:
    """The share of b above a threshold that at most a share `fpr` of a exceeds."""
    threshold = np.sort(a)[len(a) - 1 - int(fpr * len(a))]
    return float((b > threshold).mean())


def _fitted(a: Array, b: Array) -> tuple[Array, Array]:
    """Scores by the log-ratio of two Gaussians; fitted to the half on which thresholds are chosen, too."""
    fits = [_gaussian(w[::2]) for w in (a, b)]
    score = lambda v: _log_gaussian(v, *fits[1]) - _log_gaussian(v, *fits[0])
    return score(a), score(b)


def _gaussian(v: Array) -> tuple[Array, Array]:
    covariance = np.atleast_2d(np.cov(v.T))
    ridge = 1e-9 * np.trace(covariance) / len(covariance) + 1e-300
    return v.mean(0), covariance + ridge * np.eye(len(covariance))


def _log_gaussian(v: Array, mean: Array, covariance: Array) -> Array:
    z = np.linalg.solve(np.linalg.cholesky(covariance), (v - mean).T)
    return -0.5 * (z**2).sum(0) - 0.5 * np.linalg.slogdet(covariance)[1]


def _chosen(a: Array, b: Array, delta: float, risk: float) -> tuple[float, float]:
    """The threshold and the direction with the best bound on this half."""
    sign = 1.0 if auc(a, b) >= 0.5 else -1.0
    both = np.unique(sign * np.concatenate([a, b]))
    tried = both[np.unique(np.linspace(0, len(both) - 1, THRESHOLDS).astype(int))]
    missed, false = _rates(sign * a, sign * b, tried, risk)
    return float(tried[np.argmax(_epsilon(missed, false, delta))]), sign


def _rates(a: Array, b: Array, thresholds: Array, risk: float) -> tuple[Array, Array]:
    """Upper bounds of FNR and FPR, both holding with probability 1 - risk."""
    missed = np.searchsorted(np.sort(b), thresholds, "right")
    false = len(a) - np.searchsorted(np.sort(a), thresholds, "right")
    return clopper_pearson(missed, len(b), risk / 2), clopper_pearson(false, len(a), risk / 2)


def clopper_pearson(count: Array, total: int, risk: float) -> Array:
    """An upper bound of a probability, exceeded with a chance of at most `risk`, after `count` hits of `total`."""
    from scipy.special import betaincinv

    count = np.asarray(count)
    return np.where(count >= total, 1.0, betaincinv(count + 1.0, np.maximum(total - count, 0.5), 1 - risk))


def _epsilon(missed: Array, false: Array, delta: float) -> Array:
    """The larger of both directions: b taken for b against a taken for b, and the other way round."""
    ratios = [np.maximum(1 - delta - x, 1e-300) / y for x, y in ((missed, false), (false, missed))]
    return np.maximum(np.log(np.maximum(*ratios)), 0)


def _mu(missed: Array, false: Array) -> Array:
    """A test of errors (FPR, FNR) rules out mu-GDP below Phi^-1(1 - FPR) - Phi^-1(FNR)."""
    from scipy.special import ndtri

    return np.maximum(ndtri(1 - np.minimum(false, 1 - 1e-12)) - ndtri(np.minimum(missed, 1 - 1e-12)), 0)


def _mu_of(area: float, size: int) -> float:
    """The Gaussian shift of this AUC; areas of 0 and 1 are pulled in by half a pair."""
    from scipy.special import ndtri

    return float(np.sqrt(2) * abs(ndtri(np.clip(area, 0.5 / size**2, 1 - 0.5 / size**2))))


def world_bits(a: Array, b: Array) -> float:
    """Bits that a score holds about a fair choice between the worlds, at most one; its bins are chosen on one half."""
    edges = np.quantile(np.concatenate([a[::2], b[::2]]), np.arange(1, BINS) / BINS)
    m = min(len(a[1::2]), len(b[1::2]))
    seen = np.searchsorted(edges, np.concatenate([a[1::2][:m], b[1::2][:m]]))
    return min(counted_bits(np.repeat([0, 1], m), seen), 1.0)


def counted_bits(secret: Array, seen: Array) -> float:
    """Mutual information of two discrete variables from pairs, less the bias of counting (Miller, Madow)."""
    _, s = np.unique(np.asarray(secret), return_inverse=True)
    _, v = np.unique(np.asarray(seen), return_inverse=True)
    table = np.zeros((s.max() + 1, v.max() + 1))
    np.add.at(table, (s.ravel(), v.ravel()), 1)
    p = table / table.sum()
    expected = p.sum(1, keepdims=True) * p.sum(0)
    plain = float((p[p > 0] * np.log2(p[p > 0] / expected[p > 0])).sum())
    surplus = np.count_nonzero(p) - p.shape[0] - p.shape[1] + 1
    return max(float(plain - surplus / (2 * np.log(2) * table.sum())), 0.0)


def likelihood_bits(log_likelihood: Array, secret: Array, prior: Array | None = None) -> float:
    """Mean of log2(posterior / prior) of the true secret; log_likelihood (samples, secrets), secret (samples,)."""
    like, secret = np.asarray(log_likelihood, dtype=float), np.asarray(secret, dtype=int)
    prior = np.full(like.shape[1], 1 / like.shape[1]) if prior is None else np.asarray(prior, dtype=float)
    with np.errstate(divide="ignore"):
        joint = like + np.log(prior)
    top = joint.max(1, keepdims=True)
    evidence = np.log(np.exp(joint - top).sum(1)) + top[:, 0]
    return float((like[np.arange(len(secret)), secret] - evidence).mean() / np.log(2))


def gaussian_shift(mu: float, fpr: float = 1e-3) -> tuple[float, float]:
    """(AUC, TPR at fpr) of two Gaussians of one width whose means are mu widths apart: the closed form."""
    from scipy.special import ndtr, ndtri

    return float(ndtr(mu / np.sqrt(2))), float(ndtr(ndtri(fpr) + mu))
