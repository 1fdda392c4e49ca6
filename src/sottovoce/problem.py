"""Problem: the private costs of n nodes on R^d, and the point that all of them together look for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce import solver
from sottovoce.errors import ProblemError
from sottovoce.family import Family, Quadratic
from sottovoce.problem_data import entries, frozen, grouped, leaves, numbers, positive_integer, signature, tree_map
from sottovoce.problem_user import Cost, NumpyGradient, check_cost, check_gradient


class Problem:
    """n private costs f_i on R^d, from a user's own function; ready ones are in `sottovoce.problems`.

    Give either `cost(x, data_i)`, one real number, written with jax.numpy and differentiated for you, or
    `gradient=function(x, data_i)` in plain NumPy, which only the eager player runs (`value=` may stand beside it).
    x is (d,), data_i is what node i holds.

    `data` follows one rule: **a list or tuple has one entry per node; an array has one row per node.** An entry is a
    number, an array, or a tuple or dict of them; shapes may differ between nodes. Wrap (X, y) as `list(zip(X, y))`.
    Inside, a cost's data are kept as (order, inverse, groups), nodes of equal shapes stacked into a group; `only(i)`
    takes one node's share out of either form.
    """

    n: int
    d: int
    family: Family
    data: tuple
    labels: tuple | None
    values: np.ndarray | None

    def __init__(
        self,
        cost: Callable[..., Any] | None = None,
        data: Any = None,
        d: int | None = None,
        *,
        gradient: Callable[..., Any] | None = None,
        value: Callable[..., Any] | None = None,
        labels: Sequence[Any] | None = None,
    ):
        if (cost is None) == (gradient is None):
            raise ProblemError("give a cost, or gradient=..., and not both")
        if cost is not None and value is not None:
            raise ProblemError("value=... goes with gradient=...; a cost is its own value")
        for what, function in (("cost", cost), ("gradient", gradient), ("value", value)):
            if function is not None and not callable(function):
                raise ProblemError(f"{what} must be a function of (x, data_i); it is {function!r}")
        d, held = positive_integer("d", d), entries(data)
        if cost is not None:
            family, held = Cost(cost), grouped(held)
            check_cost(cost, held, d)
        else:
            assert gradient is not None
            family = NumpyGradient(gradient, value)
            check_gradient(family, held, d)
        self._hold(family, held, d, None, None, labels)

    @classmethod
    def of(
        cls,
        family: Family,
        data: tuple,
        d: int,
        *,
        values: Any = None,
        optimum: Any = None,
        labels: Sequence[Any] | None = None,
    ) -> Problem:
        """A problem of a known family; `data` are arrays whose leading axis is the node."""
        problem = cls.__new__(cls)
        problem._hold(family, tuple(tree_map(frozen, a) for a in data), positive_integer("d", d), values, optimum, labels)
        return problem

    def _hold(self, family: Family, data: tuple, d: int, values: Any, optimum: Any, labels: Any) -> None:
        self.family, self.data, self.n, self.d = family, data, family.count(data), d
        self.values = None if values is None else frozen(numbers("values", values, 2))
        self.labels = None if labels is None else tuple(labels)
        if self.labels is not None and len(self.labels) != self.n:
            raise ProblemError(f"there must be one label per node, {self.n}; there are {len(self.labels)}")
        if optimum is not None:
            self.optimum = frozen(numbers("optimum", optimum, 1))

    @property
    def traceable(self) -> bool:
        """Can JAX trace the cost? Then the compiled player can run it."""
        return self.family.traceable

    def only(self, i: int) -> tuple:
        """The data of node i alone, the leading axis kept, for a player of one node."""
        if not 0 <= i < self.n:
            raise ProblemError(f"there is no node {i}; the nodes are 0 to {self.n - 1}")
        return self.family.only(self.data, i)

    def value(self, x: Any) -> np.ndarray:
        """f_i(x_i) -> (n,); x is (n, d), or (d,) for the same point at every node."""
        return self.family.value(np, self.data, self._points("x", x))[..., 0]

    def gradient(self, x: Any) -> np.ndarray:
        """The gradient of f_i at x_i -> (n, d)."""
        return self.family.gradient(np, self.data, self._points("x", x))[..., 0]

    def hessian(self, x: Any) -> np.ndarray:
        """The Hessian of f_i at x_i -> (n, d, d)."""
        return self.family.hessian(np, self.data, self._points("x", x))[..., 0]

    def prox(self, p: Any, q: Any) -> np.ndarray:
        """argmin of f_i(x) + p_i.x + q_i |x|^2 / 2 -> (n, d); q > 0 is a number or (n,)."""
        weight = numbers("q", q)
        if weight.shape not in ((), (self.n,)) or not (weight > 0).all():
            raise ProblemError(f"q must be positive, a number or of shape ({self.n},); it is {q!r}")
        weight = np.broadcast_to(weight, (self.n,))[:, None, None]
        return self.family.prox(np, self.data, self._points("p", p), weight)[..., 0]

    def _points(self, what: str, x: Any) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        if x.shape not in ((self.d,), (self.n, self.d)):
            raise ProblemError(f"{what} must have the shape ({self.n}, {self.d}) or ({self.d},); it has {x.shape}")
        return np.broadcast_to(x, (self.n, self.d))[..., None].copy()

    @cached_property
    def optimum(self) -> np.ndarray:
        """The minimiser (d,) of the sum of all costs."""
        return frozen(solver.optimum(self.family, self.data, self.n, self.d))

    @cached_property
    def smoothness(self) -> np.ndarray:
        """(n,): a bound of each gradient's Lipschitz constant where one is known, else the curvature at the optimum."""
        bound = self.family.smoothness(self.data)
        return frozen(np.abs(np.linalg.eigvalsh(self.hessian(self.optimum))).max(axis=1) if bound is None else bound)

    def quadratic_model(self) -> Problem:
        """The quadratic problem with the same optimum and, there, the same gradients and Hessians."""
        if isinstance(self.family, Quadratic):
            return self
        x = self.optimum
        H = self.hessian(x)
        H = (H + H.swapaxes(1, 2)) / 2
        b = H @ x - self.gradient(x)
        c = self.value(x) - (H @ x) @ x / 2 + b @ x if self.family.has_value else np.zeros(self.n)
        return Problem.of(Quadratic(), (H, b, c), self.d, values=self.values, optimum=x, labels=self.labels)

    def digest(self) -> str:
        """sha256 over the family's name, the shapes and the data; of a user's function only the name goes in."""
        found = hashlib.sha256(f"{self.family!r} {signature(self.data)!r}".encode())
        for array in leaves(self.data):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def __repr__(self) -> str:
        named = "" if self.labels is None else f", labels={self.labels[0]!r}..{self.labels[-1]!r}"
        return f"Problem({self.family.name}, n={self.n}, d={self.d}{named})"
