"""Families of private costs: pure array functions, one text for NumPy and for JAX.

A family holds no data. The data of all nodes come in as a tuple of arrays whose leading axis is the node, because a
compiled player passes them as arguments and never closes over them. Points have the axes (node, coordinate, run); the
nodes may be any subset, as long as the data are sliced alike. Families are hashable: equal ones share compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import ProblemError

PROX_ITERATIONS = 30
LENGTHS = (0.0, *(0.5**i for i in range(7)))  # 0 first: a tie keeps the present point, so a settled point stays


class Family:
    """What a kind of cost can compute; `traceable` says whether JAX may, `exact` whether the Hessian is a formula."""

    name: ClassVar[str] = "family"
    traceable: ClassVar[bool] = True
    exact: ClassVar[bool] = True
    quadratic: ClassVar[bool | None] = False  # None: not known yet
    smooth: ClassVar[bool] = True  # whether the Hessian changes without jumps
    has_value: bool = True

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        """x (n, d, S) -> (n, S)."""
        raise NotImplementedError

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        """x (n, d, S) -> (n, d, S)."""
        raise NotImplementedError

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        """x (n, d, S) -> (n, d, d, S)."""
        raise NotImplementedError

    def prox(self, xp: Any, data: tuple, p: Any, q: Any) -> Any:
        """argmin over x of f(x) + p.x + q |x|^2 / 2; p (n, d, S), q > 0 broadcastable to (n, 1, S)."""
        return newton_prox(self, xp, data, p, q)

    def smoothness(self, data: tuple) -> np.ndarray | None:
        """An upper bound (n,) of each gradient's Lipschitz constant, or None where none is known."""
        return None

    def path(self, data: tuple) -> list[tuple]:
        """Data of ever harder problems, these last: a solver goes from one optimum to the next."""
        return [data]

    def written(self, data: tuple) -> dict[str, np.ndarray]:
        """What the node of these data knows of its own cost, as plain numbers; nothing where it cannot be written down."""
        return {}

    def count(self, data: tuple) -> int:
        """How many nodes the data are of."""
        return len(data[0])

    def only(self, data: tuple, i: int) -> tuple:
        """The data of node i, the leading axis kept."""
        return tuple(a[i : i + 1] for a in data)


class Verbs(Family):
    """A family that does the same for a value, a gradient and a Hessian."""

    def each(self, verb: str, xp: Any, data: tuple, x: Any) -> Any:
        """What `verb` asks for, of every node."""
        raise NotImplementedError

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        return self.each("value", xp, data, x)

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        return self.each("gradient", xp, data, x)

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        return self.each("hessian", xp, data, x)


def solve_runs(xp: Any, matrix: Any, vector: Any) -> Any:
    """Solve (n, d, d, S) against (n, d, S), every node and run apart."""
    right = xp.moveaxis(vector, -1, 1)[..., None]
    try:
        found = xp.linalg.solve(xp.moveaxis(matrix, -1, 1), right)
    except np.linalg.LinAlgError:
        raise ProblemError(
            "the prox met a singular Hessian: f + q |x|^2 / 2 must be strictly convex; take a larger q"
        ) from None
    return xp.moveaxis(found[..., 0], 1, -1)


def newton_prox(family: Family, xp: Any, data: tuple, p: Any, q: Any) -> Any:
    """The prox by Newton's method, a fixed number of times: of eight lengths the one with the smallest gradient."""
    n, d, runs = p.shape
    q = xp.broadcast_to(xp.asarray(q, dtype=p.dtype), (n, 1, runs))
    lengths, eye = xp.asarray(LENGTHS, dtype=p.dtype), xp.eye(d, dtype=p.dtype)[None, :, :, None]

    def improve(x: Any) -> Any:
        slope = family.gradient(xp, data, x) + p + q * x
        step = solve_runs(xp, family.hessian(xp, data, x) + q[:, :, None, :] * eye, slope)
        tried = x[..., None] - lengths * step[..., None]  # (n, d, S, lengths), evaluated as so many more runs
        there = family.gradient(xp, data, tried.reshape(n, d, -1)).reshape(tried.shape)
        size = xp.sum((there + p[..., None] + q[..., None] * tried) ** 2, axis=1)
        best = xp.argmin(xp.where(xp.isfinite(size), size, xp.inf), axis=-1)
        return xp.take_along_axis(tried, best[:, None, :, None], axis=-1)[..., 0]

    if xp is not np:
        from jax import lax

        return lax.fori_loop(0, PROX_ITERATIONS, lambda _, x: improve(x), xp.zeros_like(p))
    x = np.zeros_like(p)
    with np.errstate(all="ignore"):  # a length that overflows is simply not the best
        for _ in range(PROX_ITERATIONS):
            x, before = improve(x), x
            if np.array_equal(x, before):  # and so it would stay
                break
    return x


@dataclass(frozen=True)
class Quadratic(Family):
    """f = x'H x / 2 - b'x + c; data (H, b, c) of shapes (n, d, d), (n, d), (n,)."""

    name: ClassVar[str] = "quadratic"
    quadratic: ClassVar[bool | None] = True

    def _times(self, xp: Any, H: Any, x: Any) -> Any:
        if xp is np:
            return np.matmul(H, x)
        if x.shape[1] <= 8:  # fuses with what is around it; a batched product does not
            return xp.sum(H[:, :, :, None] * x[:, None, :, :], axis=2)
        return xp.einsum("nij,njs->nis", H, x)

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        H, b, c = data
        return xp.sum(x * (self._times(xp, H, x) / 2 - b[:, :, None]), axis=1) + c[:, None]

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        return self._times(xp, data[0], x) - data[1][:, :, None]

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        return xp.broadcast_to(data[0][..., None], (*data[0].shape, x.shape[-1]))

    def prox(self, xp: Any, data: tuple, p: Any, q: Any) -> Any:
        H, b, _ = data
        q = xp.asarray(q, dtype=p.dtype)
        q, eye = q.reshape((1,) * (3 - q.ndim) + q.shape), xp.eye(p.shape[1], dtype=p.dtype)
        if q.shape[-1] == 1:  # one matrix a node serves every run
            return xp.linalg.solve(H + q * eye, b[:, :, None] - p)
        return solve_runs(xp, H[..., None] + q[:, :, None, :] * eye[None, :, :, None], b[:, :, None] - p)

    def smoothness(self, data: tuple) -> np.ndarray:
        return np.abs(np.linalg.eigvalsh(data[0])).max(axis=1)

    def written(self, data: tuple) -> dict[str, np.ndarray]:
        return {"H": data[0][0], "b": data[1][0]}
