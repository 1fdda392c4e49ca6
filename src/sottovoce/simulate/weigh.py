"""The weights and other draws of an iteration: one matrix after the other, or (NumPy) many iterations at a time.

A NumPy call costs the same for one number as for a thousand, so the eager player draws blocks of iterations, at most
4 MB of them; where a single iteration needs more than 64 MB, weights are drawn piece by piece while they are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..draws import WEIGHTS, Stream
from ..layout import Columns, Layout, Rows
from ..weights import Rule
from .sums import Piecewise

Array = Any
Rules = dict[str, Rule | str | None]  # a rule, the name of another weight (the same one), or None (the identity)
Aids = dict[str, tuple[Array, ...]]
LIMIT = 64e6  # bytes of an iteration's draws, beyond which they are made piece by piece
BLOCK = 4e6  # bytes drawn ahead: more would leave the cache
ONE = np.ones((1, 1, 1))
AHEAD = 256  # iterations drawn ahead at most


class Weigher:
    """Weights by their rules: `tables` holds each rule's constant, per graph of a sequence where `schedule` is given."""

    def __init__(self, rules: Rules, tables: dict[str, Array], schedule: Array | None = None, aids: Any = None, active: Any = None):
        self.rules, self.tables, self.schedule = rules, tables, schedule
        self.active: Array | None = active  # of a sequence: which entries each graph has, (graphs, entries, 1, 1)
        self.aids: Aids = aids or {}  # what else a drawn rule works with

    def weights(self, stage: Any, k: Any, rules: Rules | None = None, own: bool = False) -> dict[str, Array]:
        """Name -> entries, None for the identity. `rules` are a mechanism's; `own`: they are the method's own, somewhat changed,
        and have its constants."""
        return self._found(stage, k, self.rules if rules is None else rules, self.tables if rules is None or own else {})

    def forget(self) -> None:
        """Nothing is kept from one iteration to the next here."""

    def _found(self, stage: Any, k: Any, rules: Rules, tables: dict[str, Array]) -> dict[str, Array]:
        raws = self._raws(stage, k, rules)
        found: dict[str, Array] = {}
        for name, rule in rules.items():
            if isinstance(rule, str):
                found[name] = found[rule]
            elif rule is None:
                found[name] = None
            else:
                found[name] = self._weighed(stage, rule, name, raws.get(name), tables, k)
        return found

    def _weighed(self, stage: Any, rule: Rule, name: str, raw: Array, tables: dict[str, Array], k: Any) -> Array:
        aid = self._aid(name, k) if name in tables else ()  # a mechanism's rules have none
        return rule.weigh(stage.xp, _side(stage, rule), raw, self._constant(tables, name, k), aid)

    def _aid(self, name: str, k: Any) -> tuple[Array, ...] | None:
        aid = self.aids.get(name)
        return aid if aid is None or self.schedule is None else tuple(part[self._graph(k)] for part in aid)

    def _constant(self, tables: dict[str, Array], name: str, k: Any) -> Array:
        if name not in tables:
            return ONE if self.active is None else self.active[self._graph(k)]
        return tables[name] if self.schedule is None else tables[name][self._graph(k)]

    def _graph(self, k: Any) -> Any:
        """Which graph of a sequence is in force; the set-up has that of the first iteration."""
        assert self.schedule is not None
        return self.schedule[k * (k > 0)]

    def _raws(self, stage: Any, k: Any, rules: Rules) -> dict[str, Array]:
        """What the drawn rules are made of: four weights share a block of the generator."""
        raws = {}
        for (rule, stream), names in batches(rules).items():
            sender, receiver = _ends(stage, rule)
            which = tuple(w for w, _ in names)
            coordinates = stage.coordinates if rule.per_coordinate else 1
            four = stage.draws.four(stage.xp, rule.law, stream, k, sender, receiver, coordinates, which)
            raws.update({name: value for (_, name), value in zip(names, four, strict=True)})
        return raws

    def numbers(
        self, stage: Any, law: Any, stream: Stream, k: Any, sender: Array, receiver: Array, coordinates: int
    ) -> Array:
        """What `node.draw` asks for."""
        return stage.draws.four(stage.xp, law, stream, k, sender, receiver, coordinates, (0,))[0]


class _Batch:
    """What drawn rules must have in common to share a block."""

    def __init__(self, rule: Rule):
        self.law, self.per_coordinate, self.pairwise = rule.law, rule.per_coordinate, rule.pairwise

    def __hash__(self) -> int:
        return hash((self.law, self.per_coordinate, self.pairwise))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Batch) and vars(self) == vars(other)


def drawn(rule: Rule | str | None) -> bool:
    """Whether it needs fresh numbers in every iteration."""
    return isinstance(rule, Rule) and rule.law is not None and rule.fresh


def batches(rules: Rules) -> dict[tuple[_Batch, Stream], list[tuple[int, str]]]:
    """Weight number i is word i mod 4 of stream i div 4; those that can be drawn together are."""
    found: dict[tuple[_Batch, Stream], list[tuple[int, str]]] = {}
    for i, (name, rule) in enumerate(rules.items()):
        if drawn(rule):
            assert isinstance(rule, Rule)
            found.setdefault((_Batch(rule), Stream(WEIGHTS, i // 4)), []).append((i % 4, name))
    return found


def aids_of(layout: Layout, rules: Rules, tables: dict[str, Array]) -> Aids:
    """What the drawn rules work with besides their constants."""
    return {
        name: rule.aid((Columns if rule.side == "column" else Rows)(layout), tables[name])
        for name, rule in rules.items()
        if isinstance(rule, Rule) and drawn(rule)
    }


def _side(stage: Any, rule: Rule) -> Any:
    return stage.sums.columns if rule.side == "column" else stage.sums.rows


def _ends(stage: Any, rule: Any) -> tuple[Array, Array]:
    source, target = stage.layout.source, stage.layout.target
    if rule.pairwise:
        return stage.xp.minimum(source, target), stage.xp.maximum(source, target)
    return source, target


class BlockWeigher(Weigher):
    """The eager player's: many iterations at a time."""

    def __init__(self, rules: Rules, tables: dict[str, Array], schedule: Any, until: int, aids: Any = None, active: Any = None):
        super().__init__(rules, tables, schedule, aids, active)
        self.until = until  # nothing is drawn for this iteration and later ones
        self._blocks: dict[Any, tuple[int, int, Any]] = {}
        self._fixed: dict[str, Array] | None = None

    def weights(self, stage: Any, k: int, rules: Rules | None = None, own: bool = False) -> dict[str, Array]:
        if self._fixed is not None and rules is None:
            return self._fixed
        key = None if rules is None else (own, tuple(rules.items()))
        first, last, block = self._blocks.get(key, (0, 0, {}))
        if not first <= k < last:
            chosen, tables = self.rules if rules is None else rules, self.tables if rules is None or own else {}
            if rules is None and self.schedule is None and not any(drawn(rule) for rule in chosen.values()):
                self._fixed = self._found(stage, k, chosen, tables)
                return self._fixed
            size = self._bytes(stage, chosen)
            if size > LIMIT:
                return self._piecewise(stage, k, chosen, tables)
            first, last = k, max(k + 1, min(self.until, k + AHEAD, k + int(BLOCK / size)))
            block = self._found(stage, np.arange(first, last), chosen, tables)
            self._blocks[key] = (first, last, block)
        return self._at(block, k - first)

    def forget(self) -> None:
        """What was drawn ahead: the next loop's mechanisms may ask for other draws under the same names."""
        self._blocks.clear()

    @staticmethod
    def _at(block: dict[str, Array], t: int) -> dict[str, Array]:
        """The weights of one iteration; weights that were the same stay the same object."""
        seen: dict[int, Array] = {}
        for b in block.values():
            if b is not None and id(b) not in seen:
                seen[id(b)] = b[t] if b.ndim == 4 else b
        return {name: None if b is None else seen[id(b)] for name, b in block.items()}

    def _bytes(self, stage: Any, rules: Rules) -> float:
        entries, runs = len(stage.layout.source), np.size(stage.draws.runs)
        coordinates = [stage.coordinates if r.per_coordinate else 1 for r in rules.values() if isinstance(r, Rule) and drawn(r)]
        return 8.0 * entries * runs * (sum(coordinates) or 1)

    def _piecewise(self, stage: Any, k: int, rules: Rules, tables: dict[str, Array]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        which = {name: (stream, w, batch) for (batch, stream), names in batches(rules).items() for w, name in names}
        for name, rule in rules.items():
            if name not in which or not isinstance(rule, Rule):
                plain: Rules = {} if isinstance(rule, str) else {name: rule}
                found[name] = found[rule] if isinstance(rule, str) else self._found(stage, k, plain, tables)[name]
                continue
            stream, word, batch = which[name]
            coordinates = stage.coordinates if batch.per_coordinate else 1
            sender, receiver = _ends(stage, batch)
            draw = lambda index, law=rule.law, stream=stream, word=word, c=coordinates, s=sender, r=receiver: (
                stage.draws.four(np, law, stream, k, s[index], r[index], c, (word,))[0]
            )
            shape = (len(stage.layout.source), coordinates, np.size(stage.draws.runs))
            side, constant = _side(stage, rule), self._constant(tables, name, k)
            aid = self._aid(name, k) if name in tables else ()
            found[name] = Piecewise(rule, side, constant, rule.aid(side, constant) if aid is None else aid, draw, shape)
        return found

    def numbers(
        self, stage: Any, law: Any, stream: Stream, k: int, sender: Array, receiver: Array, coordinates: int
    ) -> Array:
        """The same, drawn ahead."""
        key = (law, stream, len(sender), coordinates)
        first, last, block = self._blocks.get(key, (0, 0, None))
        if not first <= k < last:
            size = 8.0 * len(sender) * coordinates * np.size(stage.draws.runs)
            ahead = min(self.until, k + AHEAD, k + int(BLOCK / size)) if k >= 0 else 0  # a set-up happens once
            first, last = k, max(k + 1, ahead)
            block = super().numbers(stage, law, stream, np.arange(first, last), sender, receiver, coordinates)
            self._blocks[key] = (first, last, block)
        return block[k - first]
