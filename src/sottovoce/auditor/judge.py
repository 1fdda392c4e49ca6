"""From views to verdicts: every attack on every node, the theorems, the witness; one verdict for each node, asset and adversary."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from ..graph import Graph
from ..view import Truth, View
from .attack import Attack, Estimate, assets_of, attacks, error_of
from .heldout import error_ahead, parted
from .masked import hidden
from .reading import tracking
from .theorems import standing, standing_wiretap
from .verdict import Verdict, strongest, word_for

Adversary = tuple[int, ...] | str
Readings = dict[tuple[int, str], list[Verdict]]
Beside = dict[tuple[int, str], dict[str, Any]]  # what stands beside a verdict: bits that are no estimate
Witness = Callable[[int, tuple[int, ...]], dict[str, Any] | None]
AFFINE = "offset"  # what a witness can speak of: a constant shift of one gradient
SHARED = "value"  # where sums are opened, of one value
BENT = (AFFINE, "curvature", "along-the-way")  # and where costs are masked, of the whole cost
WHOLE = 4  # members up to which a coalition is asked through all of its subsets; beyond, through each member and all together


class Judge:
    """Reads each view once, and decides."""

    def __init__(
        self, view_of: Callable[[Adversary], View], truth: Truth | None, graph: Graph, victims: Iterable[int], witness: Witness,
        gallery: Iterable[Attack] | None = None,
    ):  # fmt: skip
        self.view_of, self.truth, self.graph, self.witness = view_of, truth, graph, witness
        self.victims, self.gallery = list(victims), list(attacks().values() if gallery is None else gallery)
        self.readings = functools.cache(self._readings)

    def verdicts(self, adversary: Adversary) -> Iterator[Verdict]:
        """One for each victim and asset; a coalition inherits what any part of it can do."""
        readings, beside = self.readings(adversary)
        joined = {key: list(found) for key, found in readings.items()}
        for part in parts_of(adversary):
            for key, found in self.readings(part)[0].items():
                joined.setdefault(key, []).extend(_by(part, adversary, v) for v in found)
        for victim in self.victims:
            if isinstance(adversary, str) or victim not in adversary:
                assets = assets_of(self.view_of(adversary).header)
                yield from (self._decided(joined, beside, victim, asset, adversary) for asset in assets)

    def alone(self, victim: int, asset: str, adversary: Adversary) -> Verdict:
        """On one asset, of what an adversary can do as a whole."""
        return self._decided(*self.readings(adversary), victim, asset, adversary)

    def _readings(self, adversary: Adversary) -> tuple[Readings, Beside]:
        """What the attacks read from a view, scored, and what they measured."""
        view = self.view_of(adversary)
        readings: Readings = {}
        beside: Beside = {}
        for victim in (v for v in self.victims if v not in view.coalition):
            for attack in (a for a in self.gallery if a.serves(view.header)):
                for asset, word, evidence in self._read(view, victim, attack):
                    readings.setdefault((victim, asset), []).append(Verdict(victim, asset, adversary, word, evidence))
                if (measured := attack.measure(view, victim)) is not None:
                    beside[victim, measured.asset] = {"bits": measured.bits, "beside": measured.text}
        return readings, beside

    def _read(self, view: View, victim: int, attack: Attack) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(asset, word, evidence) of whatever is better than a guess."""
        told = {"attack": attack.id, "name": attack.name}
        for estimate, error in self._scored(view, victim, attack):
            word = word_for(estimate, error, self._guessed(estimate))
            if word is not None and victim in estimate.nodes:
                group = {"nodes": list(estimate.nodes)} if len(estimate.nodes) > 1 else {}
                yield estimate.asset, word, {**told, **group, "error": float(error), "text": _told(estimate, word)}
        measured = attack.measure(view, victim)
        if measured is not None and measured.declared and measured.bits >= 1:
            yield measured.asset, "NARROWED", {**told, "bits": measured.bits, "text": measured.text}

    def _guessed(self, estimate: Estimate) -> float:
        """The error of what would be said without the attack: a guess of zero, unless the estimate names a better one."""
        if estimate.guess is None or self.truth is None:
            return 1.0
        return error_of(replace(estimate, value=estimate.guess), self.truth)

    def _scored(self, view: View, victim: int, attack: Attack) -> Iterator[tuple[Estimate, float]]:
        """Estimates with their errors: against the truth, or, where there is none, by their own account or messages held back."""
        if self.truth is not None:
            yield from ((e, error_of(e, self.truth)) for e in attack.run(view, victim))
            return
        yield from ((e, e.within) for e in attack.run(view, victim) if e.within is not None)
        parts = self._parted(view)
        if parts is not None:
            yield from ((e, error_ahead(e, *parts)) for e in attack.run(parts[0], victim) if e.within is None)

    @staticmethod
    def _parted(view: View) -> tuple[View, View] | None:
        memo: dict[Any, Any] = view.__dict__
        if "_parted" not in memo:
            memo["_parted"] = parted(view)
        return memo["_parted"]

    def _decided(self, readings: Readings, beside: Beside, victim: int, asset: str, adversary: Adversary) -> Verdict:
        if (victim, asset) in readings:
            return strongest(readings[victim, asset])
        told, view = beside.get((victim, asset), {}), self.view_of(adversary)
        opens, bent = bool(view.header.get("opens")), hidden(view.header)
        known = asset in BENT and (victim, "record") in readings and view.header.get("costs") == "logistic"  # a world has others
        if (opens and asset in (AFFINE, SHARED)) or (bent and asset in BENT):  # the paper's theorems speak of other methods
            evidence = None if known else self.witness(victim, () if isinstance(adversary, str) else adversary)
            word = "NOT DECIDED" if evidence is None else "WITNESSED"
            return Verdict(victim, asset, adversary, word, {**told, **(evidence or {})})
        if asset != AFFINE or not tracking(view):
            return Verdict(victim, asset, adversary, "NOT DECIDED", dict(told))
        if isinstance(adversary, str):
            sealed = view.wire  # the theorem speaks of links in the clear
            text = {} if sealed else {"text": standing_wiretap(self.graph, victim).equation}
            return Verdict(victim, asset, adversary, "NOT DECIDED", {**told, **text})
        stands = standing(self.graph, victim, frozenset(adversary))
        evidence = self.witness(victim, adversary) if stands.protected and not known else None
        if evidence is not None:
            return Verdict(victim, asset, adversary, "WITNESSED", {**told, **evidence, "theorem": stands.theorem})
        return Verdict(victim, asset, adversary, "NOT DECIDED", {**told, "theorem": stands.theorem, "text": stands.equation})


def parts_of(adversary: Adversary) -> Iterator[tuple[int, ...]]:
    """The smaller coalitions that are asked on behalf of a larger one."""
    if isinstance(adversary, tuple):
        sizes = range(1, len(adversary)) if len(adversary) <= WHOLE else (1,)
        for size in sizes:
            yield from combinations(adversary, size)


def _by(part: tuple[int, ...], adversary: Adversary, v: Verdict) -> Verdict:
    return Verdict(v.node, v.asset, adversary, v.verdict, {**v.evidence, "by": list(part)})


def _told(estimate: Estimate, word: str) -> str:
    if estimate.asset == "record" and estimate.value.ndim == 2 and word != "NARROWED":
        return _told_of_records(estimate)
    if len(estimate.nodes) > 1:
        return f"the sum over the nodes {', '.join(map(str, estimate.nodes))}"
    return f"up to {estimate.up_to}" if estimate.up_to else {"READ": "reproduced", "NARROWED": "better than a guess"}.get(word, "")


def _told_of_records(estimate: Estimate) -> str:
    """How many records, and what is left open."""
    count, together = len(estimate.value), len(estimate.nodes) > 1
    whose = f" of the nodes {', '.join(map(str, estimate.nodes))} together" if together else ""
    unknown = ["the labels"] * (estimate.up_to == "label") + ["whose they are"] * together
    if estimate.up_to == "turn":
        span = "one dimension" if count == 1 else f"{count} dimensions"
        return f"the {span} that the records{whose} span, and their second moments there"
    records = "the record" if count == 1 else f"all {count} records"
    return records + whose + (f", but not {' nor '.join(unknown)}" if unknown else "")
