"""A report in plain words, for the page and the terminal: a sentence for each asset and verdict; who learns what, worst first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .attack import ASSETS
from .names import SHOWN, Adversary, adversary_name, adversary_names, counted, labels_of, listed, node_name, node_names, number
from .outcome import Outcome
from .verdict import PROTECTION, WORDS, Verdict

WORST_FIRST = tuple(sorted(WORDS, key=PROTECTION.__getitem__))
LETTERS = {"READ": "R", "READ UP TO": "U", "NARROWED": "N", "NOT DECIDED": "?", "WITNESSED": "W"}
MEANING = {
    "READ": "An attack on what the adversary saw reproduced the number; its error stands beside it.",
    "READ UP TO": "The same, but only up to a sign or a scale, as the sum over several nodes, or without knowing whose it is.",
    "NARROWED": "An attack came closer than the declared prior by at least one bit a number.",
    "NOT DECIDED": "Neither an attack nor another world settles it. That no attack succeeded is not protection.",
    "WITNESSED": "In a world with another gradient, value or cost the adversary sees the same: it was built and replayed.",
}
ABOUT = {
    "offset": "the gradient of its cost at one point; with the curvature, it gives a quadratic cost whole, up to a constant",
    "curvature": "the second derivatives of its cost; for least squares, the second moments of its records",
    "along-the-way": "the gradients of its cost at the points that it passed through",
    "record": "what is in its records, one by one",
    "group-sum": "the sum of its gradient and those of others, the smallest such group that was read",
    "start": "the point x^0 that it started from",
    "value": "what it contributes to a mean or a sum",
}
NOUN = {
    "offset": "the gradient of {node}'s cost at one point",
    "curvature": "the curvature of {node}'s cost",
    "along-the-way": "the gradients of {node}'s cost at the points that it passed through",
    "record": "the records of {node}",
    "group-sum": "a sum of gradients that {node}'s is part of",
    "start": "the point that {node} started from",
    "value": "{node}'s value",
}
MEANS = {"curvature": ", which for least squares is the second moments of its records"}  # to those who read it
SENTENCE = {
    "READ": "reads {it}{means}",
    "READ UP TO": "reads {it}{means}, {to}",
    "NARROWED": "narrows down {it}, by a bit a number or more",
    "NOT DECIDED": "was not found to read {it}; nothing excludes it",
    "WITNESSED": "would have had the same view with another value of {it}",
}


@dataclass(frozen=True)
class Finding:
    """The nodes for which this is the worst verdict on an asset, those with the same adversaries together."""

    verdict: str
    asset: str
    pairs: tuple[tuple[tuple[int, ...], tuple[Adversary, ...]], ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted(i for nodes, _ in self.pairs for i in nodes))


def sentence(v: Verdict, labels: Sequence[Any] = ()) -> str:
    """What the adversary of this verdict can do, without its name: "reads the curvature of node 2's cost, ..."."""
    told = str(v.evidence.get("text", ""))
    it = NOUN.get(v.asset, f"the {v.asset} of {{node}}").format(node=node_name(v.node, labels))
    if labels and (nodes := v.evidence.get("nodes")):
        told = told.replace(f"the nodes {', '.join(map(str, nodes))}", f"the nodes {', '.join(str(labels[i]) for i in nodes)}")
    if v.asset == "record" and v.verdict.startswith("READ") and told and not told.startswith("up to"):
        return f"reads {told}"
    if v.verdict == "READ UP TO" and told.startswith("the sum over "):
        if v.asset == "group-sum":
            return "reads the sum of the gradients " + told.removeprefix("the sum ")
        return f"reads {it}, but only in {told}"
    return SENTENCE[v.verdict].format(it=it, means=MEANS.get(v.asset, ""), to=told or "up to a sign or a scale")


def evidence(v: Verdict, labels: Sequence[Any] = ()) -> str:
    """What a verdict rests on, in a line."""
    e, parts = v.evidence, []
    if "by" in e and isinstance(v.adversary, tuple) and tuple(e["by"]) != v.adversary:
        parts.append(f"{adversary_name(tuple(e['by']), labels)} can do it alone")
    if v.verdict == "WITNESSED":
        parts += _witness(e, labels)
    elif v.verdict == "NOT DECIDED":
        parts += _undecided(e)
    elif e.get("text") not in (None, "", "reproduced", "better than a guess") and v.verdict != "READ UP TO":
        parts.append(str(e["text"]))
    if e.get("beside"):
        parts.append(str(e["beside"]))
    return "; ".join(parts)


def theorem(v: Verdict) -> str:
    """The theorem of the paper whose condition is met, if one speaks of it."""
    name = str(v.evidence.get("theorem", ""))
    return f"Theorem {name}" if name.isdigit() else name.capitalize()


def attack(v: Verdict) -> str:
    """The number and the name of the attack behind it."""
    name = v.evidence.get("name", "")
    return f"{v.evidence.get('attack', '')} {name}".strip()


def findings(report: Outcome) -> list[Finding]:
    """Who learns what, worst first: each node and asset once, under its worst verdict, with the least coalitions that reach it."""
    groups: dict[tuple[str, str], dict[tuple[Adversary, ...], list[int]]] = {}
    for (node, asset), mine in worst_cases(report.verdicts).items():
        by = least(v.adversary for v in mine)
        groups.setdefault((mine[0].verdict, asset), {}).setdefault(by, []).append(node)
    order = sorted(groups, key=lambda key: (PROTECTION[key[0]], key[1] != "record", rank(key[1])))
    return [Finding(*key, tuple(sorted((tuple(sorted(nodes)), by) for by, nodes in groups[key].items()))) for key in order]


def worst_cases(verdicts: Iterable[Verdict]) -> dict[tuple[int, str], list[Verdict]]:
    """For each node and asset, the verdicts that protect it least, over all adversaries."""
    cases: dict[tuple[int, str], list[Verdict]] = {}
    for v in verdicts:
        mine = cases.setdefault((v.node, v.asset), [])
        if mine and v.protection < mine[0].protection:
            mine.clear()
        if not mine or v.protection == mine[0].protection:
            mine.append(v)
    return cases


def least(adversaries: Iterable[Adversary]) -> tuple[Adversary, ...]:
    """Without those that hold another one: a coalition can do what its members can."""
    found: list[tuple[int, ...]] = []
    different = set(adversaries)
    for one in sorted((a for a in different if isinstance(a, tuple)), key=lambda a: (len(a), a)):
        if not any(set(other) <= set(one) for other in found):
            found.append(one)
    return (*found, *sorted(a for a in different if isinstance(a, str)))


def who_whom(finding: Finding, labels: Sequence[Any] = ()) -> str:
    """of node 0 by nodes 1 and 2; of nodes 1 and 3 by node 2."""
    of = f"of {node_names(finding.nodes, labels)}"
    if finding.verdict == "NOT DECIDED":
        return f"{of}: nobody was found to read it, and for somebody it is not excluded"
    if finding.verdict == "WITNESSED":
        return f"{of}: against everybody who was asked about"
    if len(finding.pairs) > SHOWN:
        return f"{of} by {adversary_names([a for _, by in finding.pairs for a in by], labels)}"
    return "; ".join(f"of {node_names(nodes, labels)} by {adversary_names(by, labels)}" for nodes, by in finding.pairs)


def headline(report: Outcome) -> str:
    """The whole audit in a few sentences."""
    facts, nodes = report.facts, sorted({v.node for v in report.verdicts})
    layers = ", ".join(map(str, facts.get("mechanisms") or ()))
    method = str(facts.get("algorithm", "a method")) + (f" with {layers}" if layers else "")
    done = "was rehearsed on" if facts.get("kind") == "simulation" else "was recorded on"
    first = f"{method} {done} {counted(len(labels_of(report)), 'node')}."
    if not nodes:
        return f"{first} Nobody was asked about."
    second = f" Asked about: {_looking(report)}, who follow the protocol and keep all that reaches them."
    return first + second + _outright(report, nodes)


def _looking(report: Outcome) -> str:
    adversaries = {v.adversary for v in report.verdicts}
    alone = sum(isinstance(a, tuple) and len(a) == 1 for a in adversaries)
    joint = sum(isinstance(a, tuple) and len(a) > 1 for a in adversaries)
    parts = [counted(alone, "single node")] * (alone > 0) + [counted(joint, "coalition")] * (joint > 0)
    return listed(parts + ["whoever taps all links"] * any(isinstance(a, str) for a in adversaries))


def _outright(report: Outcome, nodes: Sequence[int]) -> str:
    read = sorted({v.node for v in report.verdicts if v.verdict == "READ"})
    single = sorted({v.node for v in report.verdicts if (v.asset, v.verdict) == ("record", "READ UP TO")} - set(read))
    records = f" Records of {node_names(single, labels_of(report))} are read, see below." if single else ""
    if not read:
        return " Nothing was read outright; what is left undecided is not protected by that." + records
    whom = f"each of the {len(nodes)} nodes" if len(read) == len(nodes) > 1 else node_names(read, labels_of(report))
    return f" Of {whom} something is read outright." + records


def assets(report: Outcome) -> list[str]:
    """The assets that there are verdicts on, in that order."""
    return sorted({v.asset for v in report.verdicts}, key=rank)


def rank(asset: str) -> int:
    """The place of an asset in the order in which they are always told."""
    return ASSETS.index(asset) if asset in ASSETS else len(ASSETS)


def _undecided(e: dict[str, Any]) -> list[str]:
    """What the theorems add where neither an attack nor a witness decides."""
    met = ["the theorem's condition is met, but no other world was replayed"] if str(e.get("theorem")) in ("2", "4") else []
    return met + ([f"in the paper's model it knows {e['text']}"] if e.get("text") else [])


def _witness(e: dict[str, Any], labels: Sequence[Any]) -> list[str]:
    what = "rest" if "mu" in e else "shift"
    parts = [f"{node_name(e['neighbour'], labels)} takes up the {what}"] if "neighbour" in e else []
    if e.get("difference") is not None:
        parts.append(f"the views of the two worlds differ by {number(e['difference'])}")
    if e.get("log_likelihood_ratio") is not None:
        parts.append(f"log-likelihood ratio {number(e['log_likelihood_ratio'])}")
    if "mu" in e:
        chance = math.erfc(-e["mu"] / 8**0.5) / 2
        parts.append(f"whoever knows the laws guesses which of the two it is with chance {chance:.0%} at best")
    return parts
