"""What an iteration costs on the wire, found by playing it once on three nodes: payload only."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..draws import SETUP, STEP, CounterDraws
from ..graph import Graph
from ..layout import co_senders, layout
from ..node import grouped
from ..registry import Algorithm, Applied
from ..weights import Rule
from .everynode import EveryNode, Stage
from .helpers import joined
from .stack import advance, begin
from .sums import NumpySums
from .tape import Tape, parts, said
from .weigh import BlockWeigher, Rules


class Flat:
    """A cost without any shape: what is sent has a size, not a meaning."""

    def gradient(self, xp: Any, data: Any, x: Any) -> Any:
        return 0 * x

    def hessian(self, xp: Any, data: Any, x: Any) -> Any:
        return 0 * (x[:, :, None] * x[:, None]) + np.eye(x.shape[1])[None, :, :, None]  # somebody may want to invert it

    def prox(self, xp: Any, data: Any, p: Any, q: Any) -> Any:
        return -p


def payloads(
    method: Algorithm, rules: Rules, stack: tuple[Applied, ...], coordinates: int, parameters: Any = None, diameter: int | None = 2,
    n: int | None = None,
) -> tuple[list[int], list[int]]:
    """Bytes that cross one edge: in each exchange of the set-up, and in each of an iteration; `n` is what a step is told."""
    setup, tape, _ = rehearsed(method, rules, stack, coordinates, parameters, diameter, n)
    size = lambda sent: [int(m[0].nbytes) for m in sent]
    entries = layout(_network(method))
    return size(setup.sent(np, entries)), size(tape.sent(np, entries))


def shapes(tape: Tape) -> list[tuple[tuple[str, int], ...]]:
    """What a message holds in each exchange: for each part the kind of number and how many."""
    return [_parts(verb, terms) for verb, terms in tape.messages]


def _parts(verb: str, terms: tuple[tuple[Any, Any], ...]) -> tuple[tuple[str, int], ...]:
    if verb == "push":
        columns = zip(*([np.asarray(w)[:1] * p[:1] for p in parts(v)] for w, v in grouped(terms)[1]), strict=True)
        values: Any = [sum(column) for column in columns]
    else:
        values = parts(terms[0][1]) if verb == "exchange" else [part for v in said(terms) for part in parts(v)]
    return tuple((value.dtype.name, value.shape[-2]) for value in values)


def rehearsed(
    method: Algorithm, rules: Rules, stack: tuple[Applied, ...], coordinates: int, parameters: Any, diameter: int | None,
    n: int | None = None,
) -> tuple[Tape, Tape, list[Any]]:
    """The set-up and one iteration, played; the state and what the mechanisms keep, after each."""
    graph = _network(method)
    tables = {name: r.played().constant(graph)[:, None, None] for name, r in rules.items() if isinstance(r, Rule)}
    stage = Stage(
        np, NumpySums(layout(graph)), layout(graph), Flat(), (), CounterDraws(0), np.ones((1, 1, 1)),
        BlockWeigher(rules, tables, None, 1), coordinates, parameters=parameters or SimpleNamespace(),
        values=np.zeros((graph.n, coordinates, 1)), reverse=graph.reverse, diameter=diameter, helpers=method.helpers, told_n=n,
        pairs=co_senders(graph),
    )  # fmt: skip
    setup, tape = Tape(), Tape()
    with np.errstate(all="ignore"):
        state, ms = begin(method, EveryNode(stage, -1, setup, SETUP), stack, np.ones((graph.n, coordinates, 1)))
        after = advance(method, EveryNode(stage, 0, tape, STEP), stack, state, ms)
    return setup, tape, [(state, ms), after]


def _network(method: Algorithm) -> Graph:
    """Three parties, and the method's helpers."""
    return joined(_triangle(), method.helpers, method.graphs == "helpers")


@functools.cache
def _triangle() -> Graph:
    return Graph(3, [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)])
