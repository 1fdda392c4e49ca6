"""Noise on every message: the naive form of differential privacy, Huang, Mitra, Vaidya (ICDCN 2015), here undamped.

    what I send = v + xi,    xi drawn afresh from N(0, scale^2) or Laplace(scale) for each coordinate

A value that goes to all out-neighbours (pull, hear) carries the same xi to all of them; a pushed sum and the payload of an
exchange carry another on each edge. My own share stays clean. Payloads that are not floating-point numbers stay as they are.

Worth: little. The noise enters the tracked sum in every iteration and is never taken out again, so sum y drifts from sum grad f
like a random walk and the optimum is missed by far more than the scale (35 times it after 400 iterations, measured), while a start
gradient that is large beside the scale stays readable. A repeated value averages its noise away. No (epsilon, delta) is claimed.
"""

import operator
from typing import Any

from ..laws import law
from ..node import Array, Layer, Values, Weight, each, grouped
from ..registry import Mechanism, one_of, positive, register

NOTHING = Weight(None, None)  # the identity: what it weighs stays at home


class MessageNoise(Layer):
    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        home, sent = grouped(terms)
        if not sent:
            return home
        values = spoken(terms)
        came = self.hear(tuple(part for _, v in values for part in parts(v)))
        mixed, at = home, 0
        for weight, v in values:
            size = len(parts(v))
            heard = came[at : at + size] if isinstance(v, tuple) else came[at]
            own, edge = self.inner.shares(weight, "row")
            weighed = each(lambda mine, inbox, own=own, edge=edge: own * mine + self.inner.gather(edge * inbox), v, heard)
            mixed, at = added(mixed, weighed), at + size
        return mixed

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        home, sent = grouped(terms)
        kept, out = home, None
        for weight, v in ((Weight(entries, None), v) for entries, v in sent):
            own, edge = self.inner.shares(weight, "column")
            kept = added(kept, each(lambda part, own=own: own * part, v))
            out = added(out, each(lambda part, edge=edge: edge * part, self.inner.spread(v)))
        if out is not None:
            kept = added(kept, each(self.inner.gather, self.exchange(out)))
        return self.inner.push((NOTHING, kept), total=total)  # sends nothing; the player notes the drift

    def exchange(self, out: Values) -> Values:
        return self.inner.exchange(self._noisy(out, "edge"))

    def hear(self, v: Values) -> Values:
        return self.inner.exchange(self.inner.spread(self._noisy(v, "node")))

    def _noisy(self, v: Values, owner: str) -> Values:
        chosen = law(self.options.law, self.options.scale)
        plain = lambda part: part.dtype.kind in "iu"  # words and bytes
        return each(lambda part: part if plain(part) else part + self.inner.draw(chosen, like=part, known="me", each=owner), v)


def spoken(terms: tuple[tuple[Weight, Values], ...]) -> list[tuple[Weight, Values]]:
    """What a pull says: each value as it is, its sign and factor left to whoever weighs it; one sum where weights are the same."""
    groups: list[list[tuple[Weight, Values]]] = []
    for weight, v in terms:
        if weight.entries is None:
            continue
        if groups and groups[-1][-1][0].entries is weight.entries:
            groups[-1].append((weight, v))
        else:
            groups.append([(weight, v)])
    alone = lambda group: len(group) == 1 and isinstance(group[0][0].factor, int | float)
    return [g[0] if alone(g) else (Weight(g[0][0].entries, None), grouped(tuple(g))[1][0][1]) for g in groups]


def added(a: Values | None, b: Values) -> Values:
    """a + b; b where there is no a yet."""
    return b if a is None else each(operator.add, a, b)


def parts(v: Values) -> tuple[Array, ...]:
    """A value, or a tuple's."""
    return v if isinstance(v, tuple) else (v,)


register(
    Mechanism(
        name="message-noise",
        source="Huang, Mitra, Vaidya 2015, undamped",
        wrap=MessageNoise,
        parameters={
            "law": one_of(("normal", "laplace"), "normal", "the law of the noise"),
            "scale": positive(1e-3, "its standard deviation (normal) or scale (laplace)"),
        },
        leaks="The optimum is missed by many times the scale, and what is large beside the scale stays readable.",
        overrides=("pull", "push", "exchange", "hear"),
        breaks_invariant=True,
    )
)
