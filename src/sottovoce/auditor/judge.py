"""From views to verdicts: every attack on every node, the theorems, the witness; one verdict for each node, asset and adversary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..graph import Graph
from ..view import Truth, View
from .attack import ASSETS, Attack, attacks, error_of
from .theorems import standing, standing_wiretap
from .verdict import Verdict, strongest, word_for

Adversary = tuple[int, ...] | str
ViewOf = Callable[[Adversary], View]
AFFINE = ("offset",)  # what a witness can speak of: a constant shift of one gradient


def judge(
    view_of: ViewOf, truth: Truth | None, graph: Graph, adversaries: Iterable[Adversary], victims: Iterable[int],
    witness: Callable[[int, tuple[int, ...]], dict[str, Any] | None], gallery: Iterable[Attack] | None = None,
) -> list[Verdict]:  # fmt: skip
    """One verdict for each victim, asset and adversary."""
    gallery, victims = list(attacks().values() if gallery is None else gallery), list(victims)
    found: list[Verdict] = []
    alone: dict[Adversary, dict[tuple[int, str], list[Verdict]]] = {}
    for adversary in adversaries:
        readings = alone.setdefault(adversary, read(view_of(adversary), adversary, truth, victims, gallery))
        for member in adversary if isinstance(adversary, tuple) and len(adversary) > 1 else ():
            if (member,) not in alone:
                alone[(member,)] = read(view_of((member,)), (member,), truth, victims, gallery)
            readings = _joined(readings, alone[(member,)], adversary)
        for victim in victims:
            if not (isinstance(adversary, tuple) and victim in adversary):
                found += [_decide(readings, victim, asset, adversary, graph, witness) for asset in ASSETS]
    return found


def read(
    view: View, adversary: Adversary, truth: Truth | None, victims: Iterable[int], gallery: list[Attack]
) -> dict[tuple[int, str], list[Verdict]]:
    """What the attacks read from a view, scored."""
    readings: dict[tuple[int, str], list[Verdict]] = {}
    for victim in victims:
        if victim in view.coalition or truth is None:
            continue
        for attack in gallery:
            for estimate in attack.run(view, victim):
                error = error_of(estimate, truth)
                word = word_for(estimate, error)
                if word is not None and victim in estimate.nodes:
                    evidence = {"attack": attack.id, "name": attack.name, "error": float(error), "text": _told(estimate, word)}
                    readings.setdefault((victim, estimate.asset), []).append(
                        Verdict(victim, estimate.asset, adversary, word, evidence)
                    )
    return readings


def _told(estimate: Any, word: str) -> str:
    if len(estimate.nodes) > 1:
        return f"the sum over the nodes {', '.join(map(str, estimate.nodes))}"
    return f"up to {estimate.up_to}" if estimate.up_to else {"READ": "reproduced", "NARROWED": "better than a guess"}.get(word, "")


def _joined(mine: dict[Any, list[Verdict]], member: dict[Any, list[Verdict]], adversary: Adversary) -> dict[Any, list[Verdict]]:
    joined = {key: list(values) for key, values in mine.items()}
    for key, values in member.items():
        inherited = [Verdict(v.node, v.asset, adversary, v.verdict, {**v.evidence, "by": list(v.adversary)}) for v in values]
        joined.setdefault(key, []).extend(inherited)
    return joined


def _decide(
    readings: dict[tuple[int, str], list[Verdict]], victim: int, asset: str, adversary: Adversary, graph: Graph, witness: Any
) -> Verdict:
    if (victim, asset) in readings:
        return strongest(readings[victim, asset])
    if asset in AFFINE and isinstance(adversary, tuple):
        stands = standing(graph, victim, frozenset(adversary))
        evidence = witness(victim, adversary) if stands.protected else None
        if evidence is not None:
            return Verdict(victim, asset, adversary, "WITNESSED", {**evidence, "theorem": stands.theorem})
        return Verdict(victim, asset, adversary, "NOT DECIDED", {"theorem": stands.theorem, "text": stands.equation})
    text = standing_wiretap(graph, victim).equation if adversary == "wire" else ""
    return Verdict(victim, asset, adversary, "NOT DECIDED", {"text": text} if text and asset in AFFINE else {})


def public(graph: Graph) -> list[str]:
    """What everybody learns by design, whatever the method."""
    return [
        "the optimum x* and the late iterates, which are near it",
        "the sum of all gradients (it vanishes at x*), hence the gradient at x* of everybody else together",
        "who can send to whom, the method, its parameters and laws, and from K on the weights, as the paper assumes",
        f"how many parties there are ({graph.n}) and how many numbers a message has",
    ]


def worst(verdicts: Iterable[Verdict], node: int) -> Verdict | None:
    """The verdict that protects a node least."""
    mine = [v for v in verdicts if v.node == node]
    return min(mine, key=lambda v: (v.protection, v.evidence.get("error", np.inf))) if mine else None
