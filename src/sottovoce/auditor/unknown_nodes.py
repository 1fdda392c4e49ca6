"""A node as a step sees it, where most numbers are not known: all nodes at once, in one run, on arrays of affine numbers.

Each node's start, value and gradients, and every draw that the view does not hold, are unknowns. A message that was seen is an
equation, and its number goes on in its place, on every other edge that carries the very same, too.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..layout import Columns, Rows, layout
from ..node import Values, Weight, Weights, each, grouped, said
from ..registry import algorithm
from ..view import View
from .affine import Affine, Book, Entangled, Functions, unknown

Array = np.ndarray


class Asked(NamedTuple):
    """A gradient that was taken: where, and what it was."""

    at: Array
    g: Array


class Confined(NamedTuple):
    """A projection onto a set: of what, and what came of it."""

    region: Any
    before: Array
    after: Array


class Region:
    """A set of the method's whose projection is noted."""

    def __init__(self, region: Any, node: UnknownNodes):
        self.region, self.node = region, node

    def project(self, xp: Any, x: Any) -> Any:
        if not unknown(x):
            return self.region.project(np, x.astype(float))
        after = self.node.book.array(*x.shape)
        self.node.confined.append(Confined(self.region, x, after))
        return after


class UnknownNodes:
    """All nodes in iteration k, as a step sees them."""

    keeps, helper, to_helper = True, -1, -1

    def __init__(self, view: View, parameters: Any):
        self.view, self.book = view, Book()
        self.n, self.coordinates = view.graph.n, int(view.header["coordinates"])
        self.layout, self.xp = layout(view.graph), Functions(self.book)
        self.confined: list[Confined] = []
        self.gradients: list[Asked] = []
        self.value = self.book.array(self.n, self.coordinates, 1)
        noted = {k: Region(v, self) if hasattr(v, "project") else v for k, v in vars(parameters).items()}
        self.parameters, self.public = SimpleNamespace(**noted), SimpleNamespace(n=self.n, helpers=0)
        self.at(-1)

    def at(self, k: int) -> None:
        """Go on to iteration k; keys and words that a link was sealed with were drawn and sent before anything else."""
        self.k, self.exchanges, self._weights = k, 0, {}
        self.calls = sum(when == k and d.law == "words" for (_, when), d in self.view.draws.items())
        sent = [self.view.sent[when, e] for when, e in sorted(self.view.sent) if when == k]
        self.messages = [m for m in sent if m.dtype.kind == "f"]

    # weights and draws -------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Any:
        names = {n: v for n, v in self.view.header["parameters"].items() if n in algorithm(self.view.header["algorithm"]).weights}
        return self._named(names)

    def weighed(self, rules: dict[str, Any], own: bool = False) -> Any:
        return self._named(dict.fromkeys(rules, "drawn"))

    def _named(self, rules: dict[str, str]) -> Any:
        found = Weights(stepsize=np.asarray(self.view.header["stepsize"], dtype=float).reshape(-1, 1, 1))
        for name, rule in rules.items():
            setattr(found, name, getattr(found, rule) if rule in rules else Weight(self._entries(name, rule), self._cut))
        return found

    def _entries(self, name: str, rule: str) -> Array | None:
        if rule == "identity":
            return None
        if name not in self._weights:
            draw, later = self.view.draws.get((name, self.k)), self.view.draws.get((name, 0))
            if draw is None and self.k < 0 and later is not None and later.law == "constant":
                draw = later
            size = (len(self.layout.source), self.coordinates, 1)
            self._weights[name] = self.book.array(*size) if draw is None else self._filled(draw.value[..., :1])
        return self._weights[name]

    def _cut(self, entries: Array) -> tuple[Array, Array]:
        return entries[self.layout.loops], entries[self.layout.edges]

    def shares(self, weight: Weight, side: str) -> tuple[Array, Array]:
        own, edge = self._cut(np.asarray(weight.entries))
        return weight.factor * own, weight.factor * edge

    def _filled(self, value: Array) -> Array:
        """Numbers as they are, unknowns where they are not known."""
        if np.isfinite(value).all():
            return np.asarray(value, float)
        out = value.astype(object)
        for where in np.argwhere(~np.isfinite(value)):
            out[tuple(where)] = self.book.new()
        return out

    def draw(
        self, law: Any, like: Array, known: str = "me", *, shared: bool = False, each: str | None = None, kept: int | None = None
    ) -> Array:
        if law == "words":
            raise Entangled
        name, size = f"draw-{self.calls}", like.shape[-2]
        self.calls += 1
        drawn = self.view.draws.get((name, self.k))
        if drawn is not None:
            return self._filled(drawn.value[..., :1])
        if (each or ("edge" if known in ("edge", "pair") else "node")) == "node":
            return self.book.array(1 if shared else self.n, size, 1)
        out = self.book.array(len(self.layout.sender), size, 1)
        return out if known != "pair" else out[[self._pair(e) for e in range(len(out))]]

    def _pair(self, e: int) -> int:
        s, r = self.view.graph.edges[e]
        return min(e, self.view.edge(r, s)) if (r, s) in self.view.graph.edges else e

    # messages ----------------------------------------------------------------------------------------------------

    def exchange(self, out: Values) -> Values:
        parts = out if isinstance(out, tuple) else (out,)
        told = self._told(parts)
        return tuple(told) if isinstance(out, tuple) else told[0]

    def _told(self, parts: tuple[Array, ...]) -> list[Array]:
        """What is sent on each edge, with what was seen of it put in; what is the very same on another edge, or at home, is too."""
        seen = self.messages[self.exchanges] if self.exchanges < len(self.messages) else None
        self.exchanges += 1
        if seen is None or any(p.dtype.kind not in "fO" for p in parts) or seen.shape[1] != sum(p.shape[-2] for p in parts):
            raise Entangled
        self.memo: dict[int, float] = {}
        at = 0
        for part in parts:
            for (e, c, _), form in np.ndenumerate(part):
                number = seen[e, at + c, 0]
                if isinstance(form, Affine) and np.isfinite(number):
                    self.book.say(form, float(number))
                    self.memo.setdefault(id(form), float(number))
            at += part.shape[-2]
        return [self._put_in(p) for p in parts]

    def _put_in(self, forms: Array) -> Array:
        if not unknown(forms):
            return forms
        out = np.empty(forms.shape, dtype=object)
        out.reshape(-1)[:] = [self.memo.get(id(v), v) if isinstance(v, Affine) else v for v in forms.flat]
        return out

    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        home, sent = grouped(terms)
        if not sent:
            return home
        values = said(terms)
        whole = [part for _, _, v in values for part in (v if isinstance(v, tuple) else (v,))]
        heard = self._told(tuple(part[self.layout.sender] for part in whole))
        mine = [self._put_in(part) for part in whole]
        mixed = home
        for entries, factor, v in values:
            own, edge = self._cut(entries)
            count = len(v) if isinstance(v, tuple) else 1
            parts = tuple(factor * (own * mine.pop(0) + self.gather(edge * heard.pop(0))) for _ in range(count))
            mixed = _added(mixed, parts if isinstance(v, tuple) else parts[0])
        return mixed

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        """Columns sum to one: what a node keeps is what it does not send."""
        home, sent = grouped(terms)
        if not sent:
            return home
        kept, out = home, None
        for entries, v in sent:
            own, edge = self._cut(entries)
            going = each(lambda part, edge=edge: edge * part[self.layout.sender], v)
            if unknown(entries):
                kept = _added(kept, each(lambda part, gone: part - self.collect(gone), v, going))
            else:
                kept = _added(kept, each(lambda part, own=own: own * part, v))
            out = going if out is None else _added(out, going)
        return _added(kept, each(self.gather, self.exchange(out)))

    def spread(self, v: Values) -> Values:
        return each(lambda part: part[self.layout.sender], v)

    def hear(self, v: Values) -> Values:
        return self.exchange(self.spread(v))

    def gather(self, inbox: Array) -> Array:
        return self._summed(Rows, inbox)

    def collect(self, out: Array) -> Array:
        return self._summed(Columns, out)

    def _summed(self, side: Any, on_edges: Array) -> Array:
        full = np.zeros((len(self.layout.source), *on_edges.shape[1:]), on_edges.dtype)
        full[self.layout.edges] = on_edges
        return side(self.layout).sum(full)

    def turn(self, inbox: Values) -> Values:
        back = [self.view.edge(r, s) for s, r in self.view.graph.edges]
        return each(lambda part: part[back], inbox)

    # costs -------------------------------------------------------------------------------------------------------

    def gradient(self, x: Array) -> Array:
        g = self.book.array(*x.shape)
        self.gradients.append(Asked(x, g))
        return g

    def prox(self, p: Array, q: Any) -> Array:
        """x = argmin f(x) + p.x + q |x|^2 / 2, so the gradient at x is -(p + q x)."""
        x = self.book.array(self.n, self.coordinates, 1)
        self.gradients.append(Asked(x, -(p + q * x)))
        return x

    def contribute(self, values: Array, grid: Any) -> Array:
        return values

    def refuse(self, bad: Array, why: str) -> None:
        """The run that is replayed was not refused."""

    @property
    def me(self) -> Array:
        return np.arange(self.n)[:, None, None]

    @property
    def degree(self) -> Array:
        return np.asarray(self.view.graph.outdegree, float).reshape(-1, 1, 1)

    def __getattr__(self, name: str) -> Any:
        raise Entangled  # a verb that needs numbers: a Hessian, words, shared secrets

    # states ------------------------------------------------------------------------------------------------------

    def noted(self, state: Any) -> Any:
        """A state with what the coalition holds of it put in, and a new unknown for every long sum."""
        held = self.view.states.get(self.k, {})
        return type(state)(*(self._leaf(v, held.get(name)) for name, v in zip(state._fields, state, strict=True)))

    def _leaf(self, forms: Array, held: Array | None) -> Array:
        if not unknown(forms):
            return forms
        out = np.empty(forms.shape, dtype=object)
        for where, form in np.ndenumerate(forms):
            number = np.nan if held is None else held[where]
            out[where] = self._short(form, float(number)) if isinstance(form, Affine) else form
        return out

    def _short(self, form: Affine, number: float) -> Any:
        if np.isfinite(number):
            self.book.say(form, number)
            return number
        if len(form.terms) == 1:
            return form
        new = self.book.new()
        self.book.say(form - new)
        return new


def _added(a: Values | None, b: Values) -> Values:
    return b if a is None else each(lambda x, y: x + y, a, b)
