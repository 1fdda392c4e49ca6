"""What an iteration costs on the wire, found by playing it once on three nodes: payload only."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..draws import SETUP, STEP, CounterDraws
from ..graph import Graph
from ..layout import co_senders, layout
from ..registry import Algorithm, Applied
from ..weights import Rule
from .everynode import EveryNode, Stage
from .stack import advance, begin
from .sums import NumpySums
from .tape import Tape
from .weigh import BlockWeigher, Rules


class Flat:
    """A cost without any shape: what is sent has a size, not a meaning."""

    def gradient(self, xp: Any, data: Any, x: Any) -> Any:
        return 0 * x

    def hessian(self, xp: Any, data: Any, x: Any) -> Any:
        return 0 * (x[:, :, None] * x[:, None])

    def prox(self, xp: Any, data: Any, p: Any, q: Any) -> Any:
        return -p


def payloads(
    method: Algorithm, rules: Rules, stack: tuple[Applied, ...], coordinates: int, parameters: Any = None, diameter: int | None = 2
) -> tuple[list[int], list[int]]:
    """Bytes that cross one edge: in each exchange of the set-up, and in each exchange of an iteration."""
    graph = _triangle()
    tables = {name: r.played().constant(graph)[:, None, None] for name, r in rules.items() if isinstance(r, Rule)}
    stage = Stage(
        np, NumpySums(layout(graph)), layout(graph), Flat(), (), CounterDraws(0), np.ones((1, 1, 1)),
        BlockWeigher(rules, tables, None, 1), coordinates, parameters=parameters or SimpleNamespace(),
        values=np.zeros((3, coordinates, 1)), reverse=graph.reverse, diameter=diameter, pairs=co_senders(graph),
    )  # fmt: skip
    setup, tape = Tape(), Tape()
    with np.errstate(all="ignore"):
        state, ms = begin(method, EveryNode(stage, -1, setup, SETUP), stack, np.ones((3, coordinates, 1)))
        advance(method, EveryNode(stage, 0, tape, STEP), stack, state, ms)
    size = lambda sent: [int(m[0].nbytes) for m in sent]
    return size(setup.sent(np, layout(graph))), size(tape.sent(np, layout(graph)))


@functools.cache
def _triangle() -> Graph:
    return Graph(3, [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)])
