"""A step with its mechanisms around it: the same few lines for every player."""

from __future__ import annotations

from typing import Any

from ..registry import Algorithm, Applied


def dressed(node: Any, stack: tuple[Applied, ...], ms: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The node as the step sees it, and its layers in the order of the stack (the leftmost is nearest the step)."""
    layers = []
    for applied, m in zip(reversed(stack), reversed(ms), strict=True):
        node = applied.mechanism.wrap(node, m, applied.options)
        layers.append(node)
    return node, layers[::-1]


def begin(method: Algorithm, node: Any, stack: tuple[Applied, ...], x0: Any) -> tuple[Any, tuple[Any, ...]]:
    """The first state; each mechanism starts before the algorithm does, the outermost first."""
    ms: tuple[Any, ...] = ()
    for i in range(len(stack) - 1, -1, -1):
        outside, _ = dressed(node, stack[i + 1 :], ms)
        ms = (stack[i].mechanism.start(outside, stack[i].options), *ms)
    inner, layers = dressed(node, stack, ms)
    state = method.start(inner, x0)
    return state, tuple(layer.m for layer in layers)


def advance(method: Algorithm, node: Any, stack: tuple[Applied, ...], state: Any, ms: tuple[Any, ...]) -> Any:
    """One iteration: the next state, and what the mechanisms keep."""
    inner, layers = dressed(node, stack, ms)
    state = method.step(inner, state)
    return state, tuple(layer.m for layer in layers)
