"""One node: the verbs of a step for a node that has its own data and nothing else; its exchange really sends and waits.

Arrays have the shapes (1, coordinate, 1) and (edge, coordinate, 1). What comes and goes passes through a mailbox,
`cross(key, out) -> came`: a key is (iteration, phase); `out` is a tuple of arrays with a row an out-neighbour, `came` the same with
a row an in-neighbour, both sorted by the neighbour. In `threads` the mailbox has a queue an edge; a real node brings another.
"""

from __future__ import annotations

import functools
import operator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..draws import KEPT, STEP, STEPSIZE, UNIT, WORDS, Stream
from ..errors import GraphError, InvariantBroken, Refused, WeightError
from ..laws import law as named_law
from ..node import Values, Weight, Weights, each, grouped, said, scaled
from ..weights import Rule
from .entries import Pair
from .helpers import helper_numbers
from .own import Own
from .tape import parts
from .weigh import Rules, batches, drawn

Array = np.ndarray


class OneNode:
    """One node in iteration k (k = -1 is the set-up)."""

    xp = np

    def __init__(self, own: Own, k: int, kind: int = STEP):
        self.own, self.k, self.kind, self.keeps = own, k, kind, own.keeps
        self.parameters, self.coordinates = own.parameters, own.coordinates
        self.phase = self.calls = 0
        self.promises: list[Any] = []  # the totals that pushes of this iteration have promised

    # weights -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def weights(self) -> SimpleNamespace:
        return self.weighed(None)

    @property
    def rules(self) -> Rules:
        return self.own.rules

    def weighed(self, rules: Rules | None, own: bool = False) -> SimpleNamespace:
        if rules is not None:
            return self._weights_by(rules, self.own.tables if own else {})
        return self._weights_by(self.own.rules, self.own.tables) if self._changing else self._lasting

    @property
    def _changing(self) -> bool:
        """Whether weights are drawn anew, or the graph changes."""
        return self.own.schedule is not None or any(map(drawn, self.own.rules.values()))

    @property
    def _lasting(self) -> SimpleNamespace:
        """Weights that stay, worked out once; they hold on to no iteration's node but the first."""
        own = self.own
        if own.fixed is None or own.fixed[0] is not own.tables:
            own.fixed = own.tables, OneNode(own, self.k)._weights_by(own.rules, own.tables)
        return own.fixed[1]

    def _weights_by(self, chosen: Rules, tables: dict[str, Any]) -> SimpleNamespace:
        words = {name: (stream, word) for (_, stream), names in batches(chosen).items() for word, name in names}
        found: dict[str, Pair | None] = {}
        for name, rule in chosen.items():
            if isinstance(rule, str):
                found[name] = found[rule]
            elif rule is None:
                found[name] = None
            else:
                find = functools.partial(self._entries, name, rule, tables.get(name), words.get(name))
                found[name] = Pair(find, rule.side)
        named = {name: Weight(pair, pair.cut if pair else None) for name, pair in found.items()}
        return Weights(stepsize=self.own.stepsize, **named)

    def _entries(self, name: str, rule: Rule, tables: Any, place: tuple[Stream, int] | None, side: str) -> Array:
        own, mine = self.own, self.own.column if side == "column" else self.own.row
        given = own.active if tables is None else tables
        constant = np.ones((1, 1, 1)) if given is None else given[side == "column"]
        if constant is None:
            raise self._unknown(name, side)
        if own.schedule is not None and given is not None:
            constant = constant[own.schedule[max(self.k, 0)]]
        if place is None:
            return rule.weigh(np, mine.side, None, constant)
        if not (rule.pairwise or rule.side == side):
            raise self._unknown(name, side)
        sender, receiver = mine.ends(rule.pairwise)
        coordinates = own.coordinates if rule.per_coordinate else 1
        source = own.draws.between if rule.pairwise else own.draws.four
        (raw,) = source(np, rule.law, place[0], self.k, sender, receiver, coordinates, (place[1],))
        return rule.weigh(np, mine.side, raw, constant)

    def _unknown(self, name: str, side: str) -> WeightError:
        who = f"node {self.own.me} needs the {side} part of {name}, which others draw"
        return WeightError(f"{who}; draw it on the side that uses it")

    def shares(self, weight: Weight, side: str) -> tuple[Array, Array]:
        pair: Any = weight.entries
        mine = pair.column if side == "column" else pair.row
        return weight.factor * mine[:1], weight.factor * mine[1:]

    def draw_stepsize(self, law: Any) -> Array:
        return self.own.draws.four(np, law, Stream(STEPSIZE), self.k, [self.own.me], [self.own.me], self.coordinates, (0,))[0]

    # messages ----------------------------------------------------------------------------------------------------

    def _cross(self, out: tuple[Array, ...]) -> tuple[Array, ...]:
        """Rows of `out` go to my out-neighbours; what comes in has a row an in-neighbour."""
        self.phase += 1
        return self.own.mail.cross((self.k, self.phase - 1), out)

    def exchange(self, out: Values) -> Values:
        came = self._cross(parts(out))
        return came if isinstance(out, tuple) else came[0]

    def spread(self, v: Values) -> Values:
        return each(lambda part: np.broadcast_to(part, (len(self.own.column.index) - 1, *part.shape[1:])), v)

    def hear(self, v: Values) -> Values:
        return self.exchange(self.spread(v))

    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        home, sent = grouped(terms)
        if not sent:
            return home
        sent = said(terms)
        came = iter(self._cross(self._where_linked(self.spread(tuple(part for _, _, v in sent for part in parts(v))))))
        mixed: list[Any] = []
        for pair, factor, v in sent:
            found = [scaled(factor, _weighed_in(pair.row, part, next(came))) for part in parts(v)]
            mixed = [a + b for a, b in zip(mixed, found, strict=True)] if mixed else found
        return self._with_home(home, mixed, sent[0][2])

    def _where_linked(self, out: tuple[Array, ...]) -> tuple[Array, ...]:
        """Of a sequence: zeros in the place of my values on an edge that the graph of this iteration does not have. Its receiver
        weighs them by zero, and would read them all the same."""
        own = self.own
        if own.active is None or own.schedule is None:
            return out
        linked = own.active[1][own.schedule[max(self.k, 0)], 1:] > 0
        return tuple(np.where(linked, part, 0) for part in out)

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        home, sent = grouped(terms)
        shape, call = home if not sent else sent[0][1], self._promise(total)
        pushed = self._weighed_out(sent)
        out = tuple(part[1:] for part in pushed)
        came = self._cross(out) if sent else ()
        mixed = [part[:1] + inbox.sum(0, keepdims=True) for part, inbox in zip(pushed, came, strict=True)]
        y = self._with_home(home, mixed, shape) if sent else home
        if total is None or not self.keeps:
            return y
        kept = [
            self._kept((call, p), plain, wanted, out[p] if sent else plain[:0], came[p] if sent else plain[:0])
            for p, (plain, wanted) in enumerate(zip(parts(y), parts(total), strict=True))
        ]
        return tuple(kept) if isinstance(y, tuple) else kept[0]

    def _promise(self, total: Any) -> int:
        """Which account a promise belongs to: pushes of one iteration with the very same total speak of the same sum."""
        for call, before in enumerate(self.promises):
            if getattr(total, "ndim", 0) and before is total:
                return call
        self.promises.append(total)
        return len(self.promises) - 1

    @staticmethod
    def _weighed_out(sent: list[tuple[Any, Values]]) -> list[Array]:
        """Each part of my values weighed for myself (first) and for each of my out-edges, the terms added up."""
        found: list[Array] = []
        for weight, v in sent:
            weighed = [weight.column * part for part in parts(v)]
            found = [a + b for a, b in zip(found, weighed, strict=True)] if found else weighed
        return found

    def _with_home(self, home: Values | None, mixed: list[Any], like: Values) -> Values:
        y = tuple(mixed) if isinstance(like, tuple) else mixed[0]
        return y if home is None else each(operator.add, home, y)

    def _kept(self, place: tuple[int, int], plain: Array, total: Any, sent: Array, received: Array) -> Array:
        """The same by my ledger."""
        if total is None:
            return plain
        try:
            return self.own.ledger(self.kind, *place).settle(plain, np.broadcast_to(total, plain.shape), sent, received)
        except InvariantBroken as error:
            raise InvariantBroken(f"iteration {self.k + 1}, node {self.own.me}: {error}") from None

    def gather(self, inbox: Array) -> Array:
        return inbox.sum(0, keepdims=True)

    collect = gather

    def largest(self, inbox: Array) -> Array:
        return inbox.max(0, keepdims=True, initial=0)

    def turn(self, inbox: Values) -> Values:
        if not np.array_equal(self.own.row.sender, self.own.column.receiver):
            raise GraphError("turn() needs a two-way graph: what came from j must find an edge to j")
        return inbox

    # my cost -----------------------------------------------------------------------------------------------------

    def gradient(self, x: Array) -> Array:
        return self.own.family.gradient(np, self.own.data, x)

    def hessian(self, x: Array) -> Array:
        return self.own.family.hessian(np, self.own.data, x)

    def prox(self, p: Array, q: Any) -> Array:
        return self.own.family.prox(np, self.own.data, p, q)

    @property
    def value(self) -> Array:
        if self.own.value is None:
            raise GraphError("this problem's nodes hold no value to average; use problems.average or problems.rendezvous")
        return self.own.value

    # refusals and contributions ----------------------------------------------------------------------------------

    def refuse(self, bad: Array, why: str) -> None:
        if np.any(bad):
            when = "set-up" if self.k < 0 else f"iteration {self.k + 1}"
            raise Refused(f"{when}, node {self.own.me}: {why}")

    def contribute(self, values: Array, grid: Any) -> Array:
        return values

    # randomness and public facts ---------------------------------------------------------------------------------

    def draw(
        self, law: Any, like: Array, known: str = "me", *, shared: bool = False, each: str | None = None, kept: int | None = None
    ) -> Array:
        if kept is not None:
            return self._numbers("common", self._call(), law, np.zeros(1, int), np.zeros(1, int), like, kept)
        mine, pair = self.own.column, known == "pair"
        if (each or ("edge" if known in ("edge", "pair") else "node")) == "edge":
            sender, receiver = (ends[1:] for ends in mine.ends(pair))
            return self._numbers("between" if pair else "four", self._call(), law, sender, receiver, like)
        owner = np.zeros(1, int) if shared else np.full(1, self.own.me)
        return self._numbers("common" if shared else "four", self._call(), law, owner, owner, like)

    def shared(self, law: Any, like: Array, kept: int | None = None) -> tuple[Array, Array]:
        """Numbers of each edge that both its ends know: those of my out-edges, and those of my in-edges."""
        call, sides = self._call(), [mine.ends(False) for mine in (self.own.column, self.own.row)]
        out, inbox = (self._numbers("between", call, law, s[1:], r[1:], like, kept) for s, r in sides)
        return out, inbox

    def cancelling(self, like: Array) -> Array:
        """The words of my out-edges, from the streams that I share; over the in-edges of each receiver they sum to zero."""
        call, size, shared = self._call(), like.shape[-2], self.own.streams
        assert shared is not None  # the mechanism says that it cancels
        whole, edges = np.zeros((1, shared.most * size, 1)), len(self.own.column.index) - 1
        return shared.added(self._numbers("between", call, WORDS, shared.first, shared.second, whole), edges, size)

    def _call(self) -> int:
        self.calls += 1
        return self.calls - 1

    def _numbers(
        self, who: str, call: int, law: Any, sender: Array, receiver: Array, like: Array, kept: int | None = None
    ) -> Array:
        """Numbers that `who` knows: me alone ("four"), sender and receiver ("between"), all ("common")."""
        law, size = law if law in (UNIT, WORDS) else named_law(law), like.shape[-2]
        if kept is not None:  # what outlasts a run goes by its label alone
            return getattr(self.own.draws.kept(kept), who)(np, law, Stream(KEPT), -1, sender, receiver, size, (0,))[0]
        return getattr(self.own.draws, who)(np, law, Stream(self.kind, call), self.k, sender, receiver, size, (0,))[0]

    @property
    def me(self) -> Array:
        return np.full((1, 1, 1), self.own.me)

    @property
    def degree(self) -> Array:
        return np.full((1, 1, 1), len(self.own.column.index) - 1.0)

    @property
    def public(self) -> SimpleNamespace:
        return SimpleNamespace(n=self.own.n, helpers=self.own.helpers, diameter=self.own.diameter, tree=self.own.tree)

    @property
    def helper(self) -> Array:
        return helper_numbers(np, [self.own.me], self.own.n)

    @property
    def to_helper(self) -> Array:
        return helper_numbers(np, self.own.column.receiver[1:], self.own.n)


def _weighed_in(weights: Array, own: Array, came: Array) -> Array:
    """My own value and those that came, weighed and added up: one after the other, as long ones should not all be held at once."""
    found = weights[:1] * own
    for weight, part in zip(weights[1:], came, strict=True):
        found += weight * part
    return found
