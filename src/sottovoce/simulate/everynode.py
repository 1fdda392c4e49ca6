"""All nodes at once: the verbs of a step on arrays with every node or edge on the first axis, in NumPy or in JAX.

In such a player an exchange moves nothing: the payload that an edge's sender puts out is the payload that its receiver
reads. What would have crossed is noted on the tape, when there is one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..draws import KEPT, STEP, STEPSIZE, UNIT, WORDS, Draws, Stream
from ..errors import GraphError, Refused
from ..laws import law as named_law
from ..layout import CoSenders, Layout
from ..node import Values, Weight, Weights, each, grouped
from .helpers import helper_numbers
from .tape import Tape
from .weigh import Weigher

Array = Any


@dataclass
class Stage:
    """What stays the same during a run: arrays (arguments of a compiled function) and plain values."""

    xp: Any
    sums: Any
    layout: Layout
    family: Any
    data: Any
    draws: Draws
    stepsize: Array
    weigher: Weigher
    coordinates: int
    parameters: Any = field(default_factory=SimpleNamespace)
    values: Array | None = None
    reverse: Array | None = None
    diameter: int | None = None
    helpers: int = 0
    told_n: int | None = None  # how many parties a step is told that there are; None: as many as there are
    pairs: CoSenders | None = None

    @functools.cached_property
    def cut(self) -> Callable[[Array], tuple[Array, Array]]:
        """A weight's own share and its edges."""
        loops, edges = self.layout.loops, self.layout.edges
        return lambda entries: (entries[loops], entries[edges])


class EveryNode:
    """All nodes in iteration k (k = -1 is the set-up)."""

    keeps = True  # whether a promised total is restored when only rounding has moved it

    def __init__(self, stage: Stage, k: Any, tape: Tape | None = None, kind: int = STEP):
        self.stage, self.k, self.tape, self.kind = stage, k, tape, kind
        self.xp, self.parameters, self.coordinates = stage.xp, stage.parameters, stage.coordinates
        self.promises: list[tuple[Array, Array, Array]] = []  # result, total, shift of each promised sum
        self.refusals: list[tuple[Array, str]] = []  # compiled: where something is to be refused, and why
        self.calls = 0

    # weights -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def weights(self) -> SimpleNamespace:
        return self.weighed(None)

    @property
    def rules(self) -> dict[str, Any]:
        """The algorithm's own: what each of its weights is drawn or made by."""
        return self.stage.weigher.rules

    def weighed(self, rules: dict[str, Any] | None, own: bool = False) -> SimpleNamespace:
        """The weights of this iteration by the given rules; None: by the algorithm's own. `own`: they are those, changed in who
        knows them or in how many they draw."""
        stage = self.stage
        found = stage.weigher.weights(stage, self.k, rules, own)
        if self.tape is not None:
            self.tape.weights(stage.weigher.rules if rules is None else rules, found)
        weights = Weights(stepsize=stage.stepsize)
        for name, entries in found.items():
            setattr(weights, name, Weight(entries, stage.cut))
        return weights

    def shares(self, weight: Weight, side: str) -> tuple[Array, Array]:
        """A weight on my own value, and on each of my in-edges (side "row") or out-edges ("column"), its factor included."""
        own, edge = self.stage.cut(self.xp.asarray(weight.entries))
        return weight.factor * own, weight.factor * edge

    def draw_stepsize(self, law: Any) -> Array:
        """A stepsize for each of my coordinates, known to me alone."""
        nodes = self.xp.arange(self.stage.layout.n)
        value = self.stage.weigher.numbers(self.stage, law, Stream(STEPSIZE), self.k, nodes, nodes, self.coordinates)
        if self.tape is not None:
            self.tape.draw("stepsize", "node", "me", law, value)
        return value

    # messages ----------------------------------------------------------------------------------------------------

    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        return self._mixed("pull", terms)

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        out = self._mixed("push", terms)
        if total is None:
            return out
        if isinstance(out, tuple):
            return tuple(self._kept(part, t) for part, t in zip(out, total, strict=True))
        return self._kept(out, total)

    def _mixed(self, verb: str, terms: tuple[tuple[Weight, Values], ...]) -> Values:
        home, sent = grouped(terms)
        if not sent:
            return home
        if self.tape is not None:
            self.tape.message(verb, terms)
        mixed = self._mixed_parts(sent) if isinstance(sent[0][1], tuple) else self.stage.sums.mix(sent)
        return mixed if home is None else each(operator.add, home, mixed)

    def _mixed_parts(self, sent: list[tuple[Array, Values]]) -> Values:
        """A tuple rides in one message: one sum over the parts side by side."""
        sizes = [part.shape[-2] for part in sent[0][1]]
        mixed = self.stage.sums.mix([(w, self.xp.concatenate(v, axis=-2)) for w, v in sent])
        ends = np.cumsum(sizes)
        return tuple(mixed[:, end - size : end] for size, end in zip(sizes, ends, strict=True))

    def _kept(self, y: Array, total: Any) -> Array:
        """design: sum y = sum total. In exact arithmetic the shift is zero; the player checks that it is but rounding."""
        if total is None:
            return y
        n, add = y.shape[0], self.stage.sums.over_nodes
        gap = total * n - add(y) if isinstance(total, int | float) else add(total - y)
        shift = gap / n
        self.promises.append((y, total, shift))
        return y + shift if self.keeps else y

    def exchange(self, out: Values) -> Values:
        if self.tape is not None:
            self.tape.message("exchange", ((None, out),))
        return out

    def spread(self, v: Values) -> Values:
        return each(lambda part: part[self.stage.layout.sender], v)

    def hear(self, v: Values) -> Values:
        return self.exchange(self.spread(v))

    def gather(self, inbox: Array) -> Array:
        return self.stage.sums.rows.sum(self._on_entries(inbox))

    def collect(self, out: Array) -> Array:
        return self.stage.sums.columns.sum(self._on_entries(out))

    def largest(self, inbox: Array) -> Array:
        return self.stage.sums.rows.largest(self._on_entries(inbox))

    def _on_entries(self, on_edges: Array) -> Array:
        layout = self.stage.layout
        full = self.xp.zeros((len(layout.source), *on_edges.shape[1:]), on_edges.dtype)
        if self.xp is np:
            full[layout.edges] = on_edges
            return full
        return full.at[layout.edges].set(on_edges)

    def turn(self, inbox: Values) -> Values:
        if self.stage.reverse is None:
            raise GraphError("turn() needs a two-way graph: what came from j must find an edge to j")
        return each(lambda part: part[self.stage.reverse], inbox)

    # my cost -----------------------------------------------------------------------------------------------------

    def gradient(self, x: Array) -> Array:
        return self.stage.family.gradient(self.xp, self.stage.data, x)

    def hessian(self, x: Array) -> Array:
        return self.stage.family.hessian(self.xp, self.stage.data, x)

    def prox(self, p: Array, q: Any) -> Array:
        return self.stage.family.prox(self.xp, self.stage.data, p, q)

    @property
    def value(self) -> Array:
        if self.stage.values is None:
            raise GraphError("this problem's nodes hold no value to average; use problems.average or problems.rendezvous")
        return self.stage.values

    # randomness --------------------------------------------------------------------------------------------------

    def draw(
        self, law: Any, like: Array, known: str = "me", *, shared: bool = False, each: str | None = None, kept: int | None = None
    ) -> Array:
        """Numbers of a law, as many coordinates as `like` has, one row a node or (known "edge", "pair") an out-edge."""
        each = each or ("edge" if known in ("edge", "pair") else "node")
        call = self._call()
        law = law if law in (UNIT, WORDS) else named_law(law)
        sender, receiver = self._ends(each, known, shared)
        size = like.shape[-2]
        if kept is None:
            value = self.stage.weigher.numbers(self.stage, law, Stream(self.kind, call), self.k, sender, receiver, size)
        else:  # what outlasts a run goes by its label alone
            source = self.stage.draws.kept(kept).four
            (value,) = source(self.xp, law, Stream(KEPT), -1, sender, receiver, size, (0,))
        if self.tape is not None:
            self.tape.draw(f"draw-{call}", each, known, law, value)
        return value

    def shared(self, law: Any, like: Array, kept: int | None = None) -> tuple[Array, Array]:
        """Numbers of each edge that both its ends know, once for my out-edges and once for my in-edges."""
        value = self.draw(law, like, "edge", shared=True, kept=kept)
        return value, value

    def cancelling(self, like: Array) -> Array:
        """Words that sum to zero over the in-edges of each receiver."""
        call, stage, size = self._call(), self.stage, like.shape[-2]
        assert stage.pairs is not None  # the mechanism says that it cancels
        pairs, most = stage.pairs, len(stage.pairs.blocks)
        runs: Any = getattr(stage.draws, "runs", 1)
        shape = (len(stage.layout.sender), size, runs if isinstance(runs, int) else len(runs))
        if not most:
            return self.xp.zeros(shape, self.xp.uint64)
        streams = stage.weigher.numbers(stage, WORDS, Stream(self.kind, call), self.k, pairs.first, pairs.second, most * size)
        if self.tape is not None:
            self.tape.draw(f"draw-{call}", "co-senders", "pair", WORDS, streams)
        words = streams.reshape(-1, size, streams.shape[-1])[pairs.word]
        return self._added(self._added(self.xp.zeros(shape, self.xp.uint64), pairs.plus, words), pairs.minus, 0 - words)

    def _added(self, rows: Array, where: Array, words: Array) -> Array:
        if self.xp is np:
            np.add.at(rows, where, words)
            return rows
        return rows.at[where].add(words)

    def _call(self) -> int:
        self.calls += 1
        return self.calls - 1

    def _ends(self, each: str, known: str, shared: bool) -> tuple[Array, Array]:
        layout = self.stage.layout
        if each == "edge":
            if known != "pair":
                return layout.sender, layout.receiver
            return self.xp.minimum(layout.sender, layout.receiver), self.xp.maximum(layout.sender, layout.receiver)
        nodes = self.xp.arange(1 if shared else layout.n)
        return nodes, nodes

    # refusals and contributions ----------------------------------------------------------------------------------

    def refuse(self, bad: Array, why: str) -> None:
        """At once in NumPy; compiled, noted, and told after the chunk."""
        where = 1 + self.xp.argmax(self.xp.any(bad, 1).reshape(-1))  # the first node and run, as one number above 0
        where = self.xp.where(self.xp.any(bad), where, 0)
        if self.xp is not np:
            self.refusals.append((where, why))
        elif where:
            raise refused(self.k, int(where), bad.shape[-1], self.stage.draws.runs, why)

    def contribute(self, values: Array, grid: Any) -> Array:
        return values

    # public facts ------------------------------------------------------------------------------------------------

    @property
    def me(self) -> Array:
        return self.xp.arange(self.stage.layout.n)[:, None, None]

    @property
    def degree(self) -> Array:
        return self.stage.sums.columns.sum(1.0 - self.stage.layout.is_loop)  # out-degrees

    @property
    def public(self) -> SimpleNamespace:
        n = self.stage.told_n or self._parties
        return SimpleNamespace(n=n, helpers=self.stage.helpers, diameter=self.stage.diameter)

    @property
    def _parties(self) -> int:
        return self.stage.layout.n - self.stage.helpers

    @property
    def helper(self) -> Array:
        return helper_numbers(self.xp, self.xp.arange(self.stage.layout.n), self._parties)

    @property
    def to_helper(self) -> Array:
        return helper_numbers(self.xp, self.stage.layout.receiver, self._parties)


def refused(k: Any, where: int, columns: int, runs: Array, why: str) -> Refused:
    """The error of `refuse`; `where` counts nodes and runs from 1 on."""
    node, column = divmod(where - 1, columns)
    run = f", run {int(runs[column])}" if columns == len(runs) > 1 else ""
    return Refused(f"{'set-up' if k < 0 else f'iteration {int(k) + 1}'}, node {node}{run}: {why}")
