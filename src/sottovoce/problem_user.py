"""A user's own functions as families: a cost that JAX differentiates, or a gradient in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import NotInstalled, ProblemError, SottovoceError
from sottovoce.family import Family, Verbs
from sottovoce.problem_data import frozen, leaves, tree_map

REMEDY = "write it with jax.numpy, or pass gradient=... in NumPy"


def import_jax() -> Any:
    """JAX, or the sentence that says how to go on without."""
    try:
        import jax
    except ImportError:
        raise NotInstalled(
            "a cost written as a plain function (gradient=... in NumPy works without JAX)", "fast"
        ) from None
    return jax


def x64() -> AbstractContextManager:
    """Float64 in JAX for this block and this thread only; the global setting is never touched."""
    jax = import_jax()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    import jax.experimental as older  # its older name

    return older.enable_x64(True)  # pyright: ignore[reportAttributeAccessIssue]


@cache
def _jitted(verb: str) -> Callable[..., Any]:
    """One compiled function a verb; the family is static, so equal families compile once a shape."""
    jax = import_jax()
    return jax.jit(lambda family, data, x: getattr(family, verb)(jax.numpy, data, x), static_argnums=0)


class _ByIdentity(Family):
    """A family of its own for each Problem: what a function closes over may have changed since the last one was made."""

    def __init__(self, *functions: Callable[..., Any] | None):
        self.functions = functions

    def __repr__(self) -> str:
        names = [getattr(f, "__qualname__", type(f).__name__) for f in self.functions if f is not None]
        return f"{self.name} {', '.join(names)}"


class Cost(_ByIdentity, Verbs):
    """cost(x, data_i), differentiated by JAX; data (order, inverse, groups) as problem_data.grouped makes them."""

    name: ClassVar[str] = "cost"

    def each(self, verb: str, xp: Any, data: tuple, x: Any) -> Any:
        if xp is np:
            with x64():
                return np.array(_jitted(verb)(self, data, x))
        import jax

        change = {"value": lambda f: f, "gradient": jax.grad, "hessian": jax.hessian}[verb]
        function = jax.vmap(jax.vmap(change(self.functions[0])), in_axes=(-1, None), out_axes=-1)
        order, inverse, groups = data
        if len(groups) == 1:
            return function(x, groups[0])
        x, parts, at = x[order], [], 0
        for group in groups:
            size = next(leaves(group)).shape[0]
            parts.append(function(x[at : at + size], group))
            at += size
        return xp.concatenate(parts)[inverse]

    def only(self, data: tuple, i: int) -> tuple:
        _, inverse, groups = data
        at = int(inverse[i])
        for group in groups:
            size = next(leaves(group)).shape[0]
            if at < size:
                return frozen([0]), frozen([0]), (tree_map(lambda a, at=at: a[at : at + 1], group),)
            at -= size
        raise ProblemError(f"no group holds node {i}")


def check_cost(cost: Callable[..., Any], data: tuple, d: int) -> None:
    """Trace the cost once for every shape of data: it must be scalar, and float64 throughout."""
    jax = import_jax()
    x = np.zeros(d)
    for group in data[2]:
        node = tree_map(lambda a: a[0], group)
        with x64():
            try:
                out = jax.eval_shape(cost, x, node)
            except Exception as error:  # whatever a user's function may raise while it is traced
                raise ProblemError(_said(error)) from error
            shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", None)
            if shape != () or dtype is None or dtype.kind != "f":
                what = type(out).__name__ if shape is None else f"an array of shape {shape} and type {dtype}"
                raise ProblemError(
                    f"cost(x, data_i) must return one real number; it returned {what}; sum it, perhaps (a gradient is gradient=)"
                )
            try:
                jaxpr = jax.make_jaxpr(jax.value_and_grad(cost))(x, node).jaxpr
            except Exception as error:
                raise ProblemError(_said(error)) from error
        low = {str(t) for t in _types(jaxpr)} & {"float32", "float16", "bfloat16"}
        if low:
            raise ProblemError(
                f"the cost works in {sorted(low)[0]} somewhere: an array made with jax.numpy outside sottovoce is "
                "float32 for good; pass it as data, or make it with numpy"
            )


def _said(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0].rstrip(".")
    return f"JAX could not trace the cost ({type(error).__name__}: {first}); {REMEDY}"


def _types(jaxpr: Any) -> Iterator[Any]:
    """The type of every value in a jaxpr and in those inside it."""
    held = [jaxpr.constvars, jaxpr.invars, jaxpr.outvars, *(side for e in jaxpr.eqns for side in (e.invars, e.outvars))]
    for v in (v for several in held for v in several):
        yield getattr(v.aval, "dtype", None)
    for parameter in (p for e in jaxpr.eqns for p in e.params.values()):
        for inner in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from _types(inner)


class NumpyGradient(_ByIdentity):
    """gradient(x, data_i) in plain NumPy and perhaps value(x, data_i); data (tree of node 0, tree of node 1, ...)."""

    name: ClassVar[str] = "gradient"
    traceable: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def __init__(self, gradient: Callable[..., Any], value: Callable[..., Any] | None = None):
        super().__init__(gradient, value)
        self.has_value = value is not None

    def value(self, xp: Any, data: tuple, x: Any) -> Any:
        if not self.has_value:
            raise ProblemError("this problem was given its gradient only; pass value=... beside it")
        return self._loop(xp, self.functions[1], "value", data, x, ())

    def gradient(self, xp: Any, data: tuple, x: Any) -> Any:
        return self._loop(xp, self.functions[0], "gradient", data, x, (x.shape[1],))

    def hessian(self, xp: Any, data: tuple, x: Any) -> Any:
        columns = []
        for j in range(x.shape[1]):  # central differences
            up, down = x.copy(), x.copy()
            reach = np.cbrt(np.finfo(float).eps) * np.maximum(1, np.abs(x[:, j]))
            up[:, j] += reach
            down[:, j] -= reach
            rise = self.gradient(xp, data, up) - self.gradient(xp, data, down)
            columns.append(rise / (up[:, j] - down[:, j])[:, None])
        matrix = np.stack(columns, axis=2)
        return (matrix + matrix.swapaxes(1, 2)) / 2

    def count(self, data: tuple) -> int:
        return len(data)

    def only(self, data: tuple, i: int) -> tuple:
        return (data[i],)

    def _loop(self, xp: Any, function: Any, what: str, data: tuple, x: Any, shape: tuple[int, ...]) -> np.ndarray:
        if xp is not np:
            raise ProblemError("a gradient in NumPy cannot be compiled; use backend='eager', or give a cost for JAX")
        out = np.empty((x.shape[0], *shape, x.shape[2]))
        for i, node in enumerate(data):
            for run in range(x.shape[2]):
                out[i, ..., run] = _checked(function(x[i, :, run].copy(), node), what, i, shape)
        return out


def _checked(result: Any, what: str, i: int, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(result)
    if array.shape != shape:
        raise ProblemError(f"{what}(x, data_i) must have the shape {shape}; at node {i} it has {array.shape}")
    if array.dtype != np.float64 and array.dtype.kind not in "iu":
        raise ProblemError(f"{what}(x, data_i) must be float64; at node {i} it is {array.dtype}: compute it in float64")
    return array


def check_gradient(family: NumpyGradient, data: tuple, d: int) -> None:
    """Call the user's functions once, at node 0 and the origin, so that a wrong shape is told at once."""
    with np.errstate(all="ignore"):
        x = np.zeros((1, d, 1))
        _tried("gradient", family.gradient, family.only(data, 0), x)
        if family.has_value:
            _tried("value", family.value, family.only(data, 0), x)


def _tried(what: str, function: Callable[..., Any], data: tuple, x: np.ndarray) -> None:
    """What a user's function raises is told with the shapes that it met, and with none of the numbers."""
    try:
        function(np, data, x)
    except SottovoceError:
        raise
    except Exception as error:  # whatever a user's function may raise
        met = f"at node 0 with x of {x.shape[1]} numbers and data of {_shapes(data[0])}"
        rule = "d is how many numbers x has, and a node's data is one row of an array, or one item of a list"
        raise ProblemError(f"{met}: {what}(x, data_i) failed ({type(error).__name__}); {rule}") from error


def _shapes(tree: Any) -> str:
    shapes = [str(np.shape(leaf)) if np.shape(leaf) else "one number" for leaf in leaves(tree)]
    return f"shape{'s' if len(shapes) > 1 else ''} {', '.join(shapes)}"
