"""An attack: a function of a View, what it uses, its idea, and a control that it must break.

An attack returns estimates and is never told how good they are; `error_of` holds an estimate against the Truth.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..view import Truth, View

Array = np.ndarray
ASSETS = ("offset", "curvature", "along-the-way", "record", "group-sum", "start", "value")


def assets_of(header: Mapping[str, Any]) -> tuple[str, ...]:
    """What there is to be read: a value only where nodes hold one, and nothing but it where no costs play a part."""
    if header.get("averages"):
        return ("value",)
    return tuple(asset for asset in ASSETS if asset != "value" or header.get("values"))


@dataclass(frozen=True)
class Estimate:
    """What an attack says of a node (or of the sum over a group of nodes).

    offset         the gradient at one point: value (d,), at (d,)
    curvature      the Hessian: value (d, d)
    along-the-way  gradients at several points: value (m, d), at (m, d)
    record         the features of a single record: value (d,), up_to "sign"; or all records of `nodes`, (records, d) in any order:
                   label times features, up_to None or "label"; or their features mixed by a rotation, up_to "turn"
    group-sum      the sum of the gradients of `nodes`, each at its own point: value (m, d), at (m, len(nodes), d)
    start          x^0: value (d,)
    value          what a node contributes to a mean or a sum, or the sum over `nodes`: value (d,)
    """

    nodes: tuple[int, ...]
    asset: str
    value: Array
    at: Array | None = None
    up_to: str | None = None  # None, "scale", "sign", "label" or "turn"
    within: float | None = None  # relative error by the attack's own account, where nothing has to be held against it: an identity
    guess: Array | None = None  # what would be guessed without this attack; only what is gained over it counts


@dataclass(frozen=True)
class Measured:
    """What an attack learns that is no estimate: bits a coordinate of one asset, over a prior."""

    asset: str
    bits: float
    declared: bool  # the prior is the declared side information; else it is the attack's own, and this only stands beside
    text: str


@dataclass(frozen=True, eq=False)
class Attack:
    """A way of reading something from a View."""

    name: str
    id: str  # A1, A2, ...
    assets: tuple[str, ...]
    uses: str  # what it needs to see, in a line
    idea: str  # three lines at most
    metric: str
    run: Callable[[View, int], list[Estimate]]  # (view, victim) -> estimates, [] where it cannot say anything
    control: Callable[[], tuple[Any, int, Any]]  # -> (view, victim, truth) that it must read
    measure: Callable[[View, int], Measured | None] = lambda view, victim: None  # (view, victim) -> bits, where it has no estimate
    serves: Callable[[Mapping[str, Any]], bool] = lambda header: True  # whether it is about such a method at all; else not tried


_ATTACKS: dict[str, Attack] = {}


def register(attack: Attack) -> None:
    """Make it known; a file of attacks/ ends with this."""
    if attack.name in _ATTACKS and _ATTACKS[attack.name] is not attack:
        raise ParameterError(f"the attack {attack.name!r} is registered twice")
    taken = next((other.name for other in _ATTACKS.values() if other.id == attack.id and other is not attack), None)
    if taken is not None:
        raise ParameterError(f"the attack {attack.name!r} has the number {attack.id}, which {taken!r} has already; take a free one")
    _ATTACKS[attack.name] = attack


@functools.cache
def _discover() -> None:
    package = importlib.import_module(f"{__package__}.attacks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def attacks() -> dict[str, Attack]:
    """All attacks by name, in the order of their numbers."""
    _discover()
    return dict(sorted(_ATTACKS.items(), key=lambda item: int(item[1].id[1:])))


def error_of(estimate: Estimate, truth: Truth) -> float:
    """Relative error of an estimate, up to what it says it is up to; infinite where it says nothing finite."""
    if not np.isfinite(estimate.value).all():
        return float("inf")
    true = truth_for(estimate, truth)
    return (_distance if true.ndim < 2 or estimate.asset != "record" else _apart)(estimate.value, true, estimate.up_to)


def truth_for(estimate: Estimate, truth: Truth) -> Array:
    """The number that an estimate is about."""
    problem, d = truth.problem, truth.problem.d
    if estimate.asset == "start":
        return np.asarray(truth.states[-1]["x"])[estimate.nodes[0], :, 0]
    if estimate.asset == "value":
        return np.asarray(problem.values)[list(estimate.nodes)].sum(0)
    if estimate.asset == "curvature":
        return problem.hessian(problem.optimum)[list(estimate.nodes)].sum(0)
    if estimate.asset == "record":
        return _records(problem, estimate)
    assert estimate.at is not None
    points = np.asarray(estimate.at, dtype=float).reshape(-1, len(estimate.nodes) if estimate.asset == "group-sum" else 1, d)
    return np.array([_sum_of_gradients(problem, estimate.nodes, p) for p in points]).reshape(estimate.value.shape)


def _records(problem: Any, estimate: Estimate) -> Array:
    """Records as they are held; of a least squares cost no more is left than its curvature, the sum of their outer products."""
    if estimate.value.ndim == 2 and estimate.up_to != "turn":
        X, y, mask = (part[list(estimate.nodes)] for part in problem.data[:3])
        return (y[..., None] * X)[mask > 0]
    values, vectors = np.linalg.eigh(problem.hessian(problem.optimum)[list(estimate.nodes)].sum(0))
    roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return roots if estimate.value.ndim == 2 else roots[-1]


def _sum_of_gradients(problem: Any, nodes: tuple[int, ...], points: Array) -> Array:
    x = np.zeros((problem.n, problem.d))
    x[list(nodes)] = points
    return problem.gradient(x)[list(nodes)].sum(0)


def _distance(value: Array, truth: Array, up_to: str | None) -> float:
    size = np.linalg.norm(truth)
    if size == 0:
        return float(np.linalg.norm(value))
    if up_to == "sign":
        return float(min(np.linalg.norm(value - truth), np.linalg.norm(value + truth)) / size)
    if up_to == "scale":
        a, b = value.ravel() / max(np.linalg.norm(value), 1e-300), truth.ravel() / size
        return float(min(np.linalg.norm(a - b), np.linalg.norm(a + b)))
    return float(np.linalg.norm(value - truth) / size)


def _apart(value: Array, truth: Array, up_to: str | None) -> float:
    """How far apart two sets of records are, each next to the one that it fits best: of its size, the one that is furthest off."""
    if up_to == "turn":
        return _distance(value.T @ value, truth.T @ truth, None)
    if value.shape != truth.shape:
        return float("inf")
    from scipy.optimize import linear_sum_assignment

    far = np.linalg.norm(value[:, None] - truth[None], axis=2)
    if up_to == "label":
        far = np.minimum(far, np.linalg.norm(value[:, None] + truth[None], axis=2))
    said, true = linear_sum_assignment(far)
    return float((far[said, true] / np.maximum(np.linalg.norm(truth[true], axis=1), 1e-300)).max(initial=0.0))
