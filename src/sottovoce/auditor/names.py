"""What things are called in a report: nodes, adversaries, lists of them, numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from .outcome import Outcome

Adversary = tuple[int, ...] | str
SHOWN = 6  # names that a list gives, or clauses a sentence, before the others are only counted


def node_name(node: int, labels: Sequence[Any] = ()) -> str:
    """node 2, or what the graph calls it."""
    label = str(labels[node]) if node < len(labels) else str(node)
    return f"node {label}" if label.lstrip("-").isdigit() else label


def node_names(nodes: Iterable[int], labels: Sequence[Any] = (), most: int = SHOWN) -> str:
    """node 2; nodes 0, 1 and 3; nodes 0, 1, 2 and 17 others."""
    names = [node_name(i, labels) for i in nodes]
    if len(names) > 1 and all(name.startswith("node ") for name in names):
        return "nodes " + listed([name.removeprefix("node ") for name in names], most)
    return listed(names, most)


def adversary_name(adversary: Adversary, labels: Sequence[Any] = ()) -> str:
    """Who looks: a node, several together, or whoever listens on the links."""
    if isinstance(adversary, str):
        return "the wire-tapper"
    names = [node_name(i, labels) for i in adversary]
    plain = all(name.startswith("node ") for name in names)
    if len(names) == 1:
        return names[0]
    return "nodes " + " + ".join(name.removeprefix("node ") for name in names) if plain else " + ".join(names)


def adversary_names(adversaries: Iterable[Adversary], labels: Sequence[Any] = (), most: int = SHOWN) -> str:
    """nodes 0 and 2; nodes 1 + 3 together; the wire-tapper."""
    different = sorted(dict.fromkeys(adversaries), key=lambda a: (isinstance(a, str), len(a), a))
    alone = [a[0] for a in different if isinstance(a, tuple) and len(a) == 1]
    joint = [adversary_name(a, labels) for a in different if isinstance(a, tuple) and len(a) > 1]
    parts = [node_names(alone, labels, most), f"{listed(joint, most)} together" if joint else ""]
    return ", ".join(part for part in (*parts, "the wire-tapper" if any(isinstance(a, str) for a in different) else "") if part)


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """a, b and c; with too many, how many others there are."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def counted(count: int, what: str) -> str:
    """1 node, 2 nodes."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def number(value: Any) -> str:
    """A number short enough for a table."""
    return f"{value:.2g}" if isinstance(value, float | int) and not isinstance(value, bool) else str(value)


def told(value: Any) -> str:
    """A fact as a text."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def labels_of(report: Outcome) -> list[str]:
    """What the nodes are called."""
    graph = report.facts.get("graph")
    graph = graph if isinstance(graph, dict) else {}
    nodes = [v.node for v in report.verdicts]
    return [str(x) for x in graph.get("labels") or range(int(graph.get("n") or max(nodes, default=-1) + 1))]
