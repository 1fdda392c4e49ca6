"""Data on its way in: read as float64, integers or truth values, checked, frozen, grouped by shape.

A tree is what one node holds: a number, an array, or a tuple or dict of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sottovoce.errors import ProblemError


def frozen(array: Any) -> np.ndarray:
    """A contiguous copy that nobody can write to."""
    array = np.array(array, order="C")
    array.setflags(write=False)
    return array


def _place(index: tuple[int, ...]) -> str:
    names = ("row", "column") if len(index) <= 2 else ("node", "row", "column")
    return ", ".join(f"{name} {i}" for name, i in zip(names, index, strict=False)) or "its only place"


def numbers(what: str, values: Any, ndim: int | None = None) -> np.ndarray:
    """`values` as a float64 array of `ndim` axes, all finite; a ProblemError names the place that is not."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"it holds {array.dtype}")
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{what} must be an array of real numbers ({str(error).splitlines()[0]})") from None
    if ndim is not None and array.ndim != ndim:
        raise ProblemError(f"{what} must have {ndim} axes; it has the shape {array.shape}")
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ProblemError(f"{what} holds {array[index]} at {_place(index)}; remove or replace it")
    return array


def positive_integer(what: str, value: Any) -> int:
    """`value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ProblemError(f"{what} must be an integer of at least 1; it is {value!r}")
    return int(value)


def tree_map(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function leaf by leaf to trees of one structure."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: tree_map(function, *(tree[key] for tree in trees)) for key in first}
    if isinstance(first, tuple):
        parts = [tree_map(function, *each) for each in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return function(*trees)


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a tree, a dict's in the order of its keys' names."""
    if isinstance(tree, dict):
        for key in sorted(tree, key=repr):
            yield from leaves(tree[key])
    elif isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def signature(tree: Any) -> Any:
    """What two nodes must share to be computed together: structure, shapes, kinds of number."""
    if isinstance(tree, dict):
        return dict, tuple((key, signature(tree[key])) for key in sorted(tree, key=repr))
    if isinstance(tree, tuple):
        return type(tree), tuple(signature(part) for part in tree)
    return tree.shape, tree.dtype.str


def _leaf(what: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return frozen(array)
    if array.dtype.kind in "iu":
        return frozen(array.astype(np.int64))
    return frozen(numbers(what, value))


def entries(data: Any) -> tuple:
    """One tree a node, from a list or tuple (one entry a node) or from an array (row i is node i's)."""
    if not isinstance(data, (list, tuple)):
        if not hasattr(data, "__array__") or np.ndim(data) == 0:
            raise ProblemError(
                "data must be a list with one entry per node, or an array whose row i is node i's; "
                f"it is of type {type(data).__name__}"
            )
        data = list(np.asarray(data))
    if len(data) == 0:
        raise ProblemError("data must hold at least one node; it is empty")
    read = tuple(tree_map(lambda leaf, i=i: _leaf(f"the data of node {i}", leaf), e) for i, e in enumerate(data))
    for i, entry in enumerate(read):
        if not any(True for _ in leaves(entry)):
            raise ProblemError(f"the data of node {i} hold no number; give the node at least one, 0 for instance")
    return read


def grouped(trees: tuple) -> tuple[np.ndarray, np.ndarray, tuple]:
    """(order, inverse, groups): nodes of one signature stacked; x[order] lists the nodes group by group."""
    groups: dict[Any, list[int]] = {}
    for i, tree in enumerate(trees):
        groups.setdefault(signature(tree), []).append(i)
    order = np.concatenate([np.array(nodes) for nodes in groups.values()])
    stacked = tuple(
        tree_map(lambda *each: frozen(np.stack(each)), *(trees[i] for i in nodes)) for nodes in groups.values()
    )
    return frozen(order), frozen(np.argsort(order)), stacked
