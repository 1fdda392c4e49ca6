"""The graph of a report as SVG: arrows from sender to receiver, each node filled, hatched and named by its worst verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import Graph
from ..places import CIRCLE, places_of
from .markup import Html, tag
from .names import listed, node_name, node_names
from .words import LETTERS, WORST_FIRST

INK = "#1a1a1a"
CLASS = {"READ": "read", "READ UP TO": "upto", "NARROWED": "narrowed", "NOT DECIDED": "open", "WITNESSED": "witnessed"}
PLAIN = {"READ": "#8c1d18", "WITNESSED": "#e3eefb"}  # the others are hatched or dotted
SHORT = 4  # characters of a name that fit into a node
SMALL, LARGE = 400, 760  # units of the drawing, for few nodes on a circle and for many


def drawing(graph: Graph, worst: Mapping[int, str], labels: Sequence[Any]) -> Html:
    """`worst` holds the worst verdict of each node that was looked at."""
    few = graph.n <= CIRCLE
    size = SMALL if few else LARGE
    places = places_of(graph) * np.array([1, -1])
    spots = size / 2 + places * (size / 2 - (62 if few else 30))
    radius = _radius(spots, few)
    return tag(
        "svg",
        tag("title", f"The graph: {graph.n} nodes and {len(graph.edges)} links", id="graph-title"),
        tag("desc", _told(graph.n, worst, labels), id="graph-desc"),
        _definitions(),
        [_arrow(spots[s], spots[r], radius, both) for s, r, both in _links(graph)],
        [_node(i, spots[i], radius, worst.get(i), labels, few, size) for i in range(graph.n)],
        viewBox=f"0 0 {size} {size}", role="img", aria_labelledby="graph-title graph-desc", klass=None if few else "large",
    )  # fmt: skip


def _radius(spots: np.ndarray, few: bool) -> float:
    """As large as the two closest nodes allow."""
    if len(spots) == 1:
        return 22.0
    apart = np.linalg.norm(spots[:, None] - spots[None], axis=-1) + 1e9 * np.eye(len(spots))
    return float(np.clip(0.4 * np.quantile(apart.min(1), 0.1), 7, 22 if few else 15))


def _told(n: int, worst: Mapping[int, str], labels: Sequence[Any]) -> str:
    """The drawing for those who do not see it."""
    groups = {word: [i for i in range(n) if worst.get(i) == word] for word in WORST_FIRST}
    told = [f"{word} for {node_names(who, labels, 20)}" for word, who in groups.items() if who]
    return f"The worst verdict is {listed(told)}." if told else "Nobody was looked at."


def _definitions() -> Html:
    head = tag("path", d="M0 0 L10 5 L0 10 z", fill="#555")
    size = {"markerWidth": 7, "markerHeight": 7, "refX": 9, "refY": 5}
    arrow = tag("marker", head, id="head", viewBox="0 0 10 10", orient="auto-start-reverse", **size)
    return tag(
        "defs",
        arrow,
        _pattern("upto", "#d9772b", tag("path", d="M0 8 L8 0 M-2 2 L2 -2 M6 10 L10 6", stroke="#7a3c0c", stroke_width=1.2)),
        _pattern("narrowed", "#f3cf6d", tag("circle", cx=4, cy=4, r=1.1, fill="#6b5410")),
        _pattern("open", "#fff", tag("path", d="M0 0 L8 8 M-2 6 L2 10 M6 -2 L10 2", stroke="#b5b5b5", stroke_width=1.4)),
    )


def _pattern(name: str, ground: str, mark: Html) -> Html:
    square = {"width": 8, "height": 8}
    return tag("pattern", tag("rect", fill=ground, **square), mark, id=name, patternUnits="userSpaceOnUse", **square)


def _links(graph: Graph) -> list[tuple[int, int, bool]]:
    """Sender, receiver, and whether the same line stands for the way back as well."""
    edges = set(graph.edges)
    return [(s, r, (r, s) in edges) for s, r in graph.edges if (r, s) not in edges or s < r]


def _arrow(start: np.ndarray, end: np.ndarray, radius: float, both: bool) -> Html:
    along = (end - start) / max(float(np.linalg.norm(end - start)), 1e-9)
    (x1, y1), (x2, y2) = start + along * (radius + 1), end - along * (radius + 2)
    return tag(
        "line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2), stroke="#555", stroke_width=1.3 if radius > 15 else 0.9,
        marker_end="url(#head)", marker_start="url(#head)" if both else None,
    )  # fmt: skip


def _node(i: int, spot: np.ndarray, radius: float, word: str | None, labels: Sequence[Any], few: bool, size: int) -> Html:
    name, label, (x, y) = node_name(i, labels), str(labels[i]) if i < len(labels) else str(i), spot
    letter = LETTERS[word] if word else ""
    inside = label if len(label) <= SHORT else letter
    ink, bold = ("#fff" if word == "READ" else INK), 700
    fill = PLAIN.get(word, f"url(#{CLASS[word]})") if word else "#fff"
    circle = tag("circle", cx=_n(x), cy=_n(y), r=_n(radius), fill=fill, stroke=INK, stroke_width=1.5)
    shown = [_text(inside, x, y + radius * 0.22, min(16.0, radius * 0.85), ink, bold, halo=word not in ("READ", "WITNESSED"))]
    if few:
        above = y < size / 2 + 1
        lines = [*([label if len(label) <= 18 else label[:17] + "…"] if len(label) > SHORT else []), word or "not looked at"]
        top = y - radius - 8 - 15 * (len(lines) - 1) if above else y + radius + 17
        shown += [_text(line, x, top + 15 * k, 13, INK, bold if line == word else 400) for k, line in enumerate(lines)]
    elif word and inside != letter:
        shown.append(_text(letter, x + radius * 0.95, y - radius * 0.65, 11, INK, bold))
    return tag("g", tag("title", f"{name}: {word or 'not looked at'}"), circle, shown)


def _text(text: str, x: float, y: float, size: float, ink: str, weight: int, halo: bool = True) -> Html:
    edge = {"stroke": "#fff", "stroke_width": 3, "paint_order": "stroke", "stroke_linejoin": "round"} if halo else {}
    return tag("text", text, x=_n(x), y=_n(y), font_size=_n(size), font_weight=weight, text_anchor="middle", fill=ink, **edge)


def _n(value: float) -> str:
    return f"{value:.1f}"
