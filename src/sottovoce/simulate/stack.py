"""A step with its mechanisms around it: the same few lines for every player."""

from __future__ import annotations

from typing import Any

from ..errors import ParameterError
from ..node import Layer
from ..registry import Algorithm, Applied


def dressed(node: Any, stack: tuple[Applied, ...], ms: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The node as the step sees it, and its layers in the order of the stack (the leftmost is nearest the step)."""
    layers = []
    for applied, m in zip(reversed(stack), reversed(ms), strict=True):
        layer = applied.mechanism.wrap(node, m, applied.options)
        if layer is node or not isinstance(layer, Layer):
            raise ParameterError(f"{applied.mechanism.name}: wrap must give a new Layer around the node, got {_what(layer, node)}")
        layers.append(layer)
        node = layer
    return node, layers[::-1]


def _what(layer: Any, node: Any) -> str:
    return "the node itself" if layer is node else type(layer).__name__


def begin(method: Algorithm, node: Any, stack: tuple[Applied, ...], x0: Any) -> tuple[Any, tuple[Any, ...]]:
    """The first state; each mechanism starts before the algorithm does, the outermost first."""
    ms: tuple[Any, ...] = ()
    for i in range(len(stack) - 1, -1, -1):
        outside, _ = dressed(node, stack[i + 1 :], ms)
        ms = (stack[i].mechanism.start(outside, stack[i].options), *ms)
    inner, layers = dressed(node, stack, ms)
    state = method.start(inner, x0)
    _check_state(method, state)
    return state, tuple(layer.m for layer in layers)


def advance(method: Algorithm, node: Any, stack: tuple[Applied, ...], state: Any, ms: tuple[Any, ...]) -> Any:
    """One iteration: the next state, and what the mechanisms keep."""
    inner, layers = dressed(node, stack, ms)
    state = method.step(inner, state)
    return state, tuple(layer.m for layer in layers)


def _check_state(method: Algorithm, state: Any) -> None:
    """Players walk through a state by its names and look into its arrays."""
    expected = f"{method.name}: a State must be a NamedTuple of arrays, got "
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        raise ParameterError(f"{expected}{type(state).__name__} from its start")
    for name, part in zip(type(state)._fields, state, strict=True):  # type: ignore[attr-defined]
        if getattr(part, "ndim", None) != 3:
            came = f"an array of shape {part.shape}" if hasattr(part, "shape") else type(part).__name__
            raise ParameterError(f"{expected}{came} as {name}; its axes are (node or edge, coordinate, run)")
