"""Pictures: errors against iterations, and a graph with its arrows. One style, read at column width and in grey."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .errors import GraphError, NotInstalled, ParameterError
from .graph import Graph
from .places import places_of
from .version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.5  # inches, a column of a paper
FLOOR = 1e-17  # where an error of exactly zero is drawn when there is no other
CROWD = 300  # nodes; a drawing of more shows nothing
KINDS = ("png", "pdf", "svg")
BAND = (0.05, 0.95)  # quantiles of the runs; means over random starts are dominated by heavy tails

STYLE = {
    "figure.dpi": 200,
    "savefig.dpi": 300,
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.4,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "ytick.minor.left": False,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "lines.markeredgewidth": 0.7,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "sottovoce",  # the same picture is the same file
}
# Colours of Okabe and Ito, told apart by the colour-blind; in grey, the dashes and the marks tell the curves apart.
LOOKS = (
    ("#000000", "-", ""),
    ("#0072B2", (0, (5, 1.5)), "o"),
    ("#D55E00", (0, (1, 1.2)), "s"),
    ("#009E73", (0, (5, 1.2, 1, 1.2)), "^"),
    ("#CC79A7", (0, (8, 2)), "D"),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "v"),
    ("#E69F00", "-", "x"),
)


class Curve(Protocol):
    """What is needed of a Result."""

    error: np.ndarray  # (runs, recorded)
    recorded: np.ndarray  # the iteration of each


def errors(results: Mapping[str, Curve], file: str | Path | None = None) -> Figure:
    """Error against iteration on a log axis: the median of the runs, and where nine in ten of them lie."""
    if not results:
        raise ParameterError("there is nothing to draw: give at least one result, {name: result}")
    kind = suffix(file)
    figure, axes = _canvas(0.72 if len(results) < 3 else 0.82)
    with _styled():
        lowest = _lowest(results)
        for i, (name, result) in enumerate(results.items()):
            _curve(axes, name, result, i, len(results), lowest)
        axes.set(yscale="log", xlabel="iteration", ylabel=r"error $\|x^k - x^*\|$")
        axes.margins(x=0.02)
        _name_curves(figure, axes, results)
        _save(figure, file, kind, "error against iteration: " + ", ".join(results))
    return figure


def graph(graph: Graph, file: str | Path | None = None) -> Figure:
    """The graph with an arrow an edge, from sender to receiver; one with two heads is an edge each way."""
    if graph.n > CROWD:
        raise GraphError(f"a drawing of {graph.n} nodes would show nothing; at most {CROWD} can be drawn")
    kind = suffix(file)
    figure, axes = _canvas(1.0)
    with _styled():
        arrows(axes, graph)
        _save(figure, file, kind, f"a graph of {graph.n} nodes and {len(graph.sender)} edges")
    return figure


def arrows(axes: Axes, graph: Graph) -> None:
    """The graph on axes of one's own."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = places_of(graph)
    radius = _radius(places)
    _arrows(axes, graph, places, radius)
    _nodes(axes, graph, places, radius)


def suffix(file: str | Path | None) -> str | None:
    """The kind of picture that the name asks for, checked (and its folder too) before anything is computed."""
    if file is None:
        return None
    file = Path(file)
    kind = file.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise ParameterError(f"a picture's name ends in .png, .pdf or .svg; {file} does not")
    if not file.parent.is_dir():
        raise ParameterError(f"there is no folder {file.parent}, where {file.name} should go; make it first")
    if file.is_dir():
        raise ParameterError(f"{file} is a folder; give the name of a file in it")
    return kind


def required() -> Any:
    """matplotlib, or the command that installs it."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise NotInstalled("plots", "plot") from None
    return matplotlib


def _styled() -> Any:
    return required().rc_context(STYLE)


def _canvas(height: float) -> tuple[Figure, Axes]:
    matplotlib = required()
    with _styled():
        figure = matplotlib.figure.Figure(figsize=(WIDTH, height * WIDTH), layout="constrained")
        return figure, figure.add_subplot()


def _lowest(results: Mapping[str, Curve]) -> float:
    """The smallest error above zero that any curve has: exact zeros are drawn there."""
    smallest = [r.error[np.isfinite(r.error) & (r.error > 0)].min(initial=np.inf) for r in results.values()]
    return float(min(smallest)) if np.isfinite(min(smallest)) else FLOOR


def _curve(axes: Axes, name: str, result: Curve, i: int, curves: int, lowest: float) -> None:
    colour, dashes, mark = LOOKS[i % len(LOOKS)]
    shown = np.where(np.isfinite(result.error), np.maximum(result.error, lowest), np.nan)
    shown[:, np.isnan(shown).any(0)] = np.nan  # where a run has left the numbers, there is no median to show
    ks, median = result.recorded, np.median(shown, axis=0)
    step = max(1, len(ks) // 7)
    marks = (step * (i % 7 + 1) // 8, step)  # every curve has its marks elsewhere, so that equal ones show
    look = {"color": colour, "linestyle": dashes, "marker": mark, "markevery": marks, "markerfacecolor": "white"}
    axes.plot(ks, median, label=name, zorder=3 + curves - i, **look)
    if len(shown) > 1:
        low, high = np.quantile(shown, BAND, axis=0)
        axes.fill_between(ks, low, high, color=colour, alpha=0.16 if curves < 4 else 0.1, linewidth=0, zorder=2)


def _name_curves(figure: Figure, axes: Axes, results: Mapping[str, Curve]) -> None:
    several = max(len(r.error) for r in results.values())
    note = f"median of {several} runs, band 5 to 95 %" if several > 1 else ""
    if len(results) == 1:
        axes.set_title("\n".join(filter(None, (next(iter(results)), note))))
        return
    axes.set_title(note, color="0.35")
    columns = 2 if max(map(len, results)) <= 24 and len(results) > 2 else 1
    figure.legend(loc="outside lower center", ncols=columns)


def _radius(places: np.ndarray) -> float:
    """Of a node, in points: as large as the closest two allow."""
    if len(places) == 1:
        return 9.0
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    closest = np.min(distance + 9 * np.eye(len(places)))
    return float(np.clip(0.36 * closest * 72 * WIDTH / 2.6, 1.0, 9.0))


def _arrows(axes: Axes, graph: Graph, places: np.ndarray, radius: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    edges = set(graph.edges)
    for sender, receiver in graph.edges:
        both = (receiver, sender) in edges
        if both and sender > receiver:
            continue
        arrow = FancyArrowPatch(
            tuple(places[sender]), tuple(places[receiver]), arrowstyle="<|-|>" if both else "-|>", color="0.3",
            linewidth=0.8 if graph.n <= 50 else 0.4, mutation_scale=max(2.5, 0.9 * radius), shrinkA=radius, shrinkB=radius,
            zorder=1,
        )  # fmt: skip
        axes.add_patch(arrow)


def _nodes(axes: Axes, graph: Graph, places: np.ndarray, radius: float) -> None:
    axes.scatter(*places.T, s=(2 * radius) ** 2, facecolor="white", edgecolor="black", linewidth=0.8, zorder=2)
    size = min(8.0, 1.1 * radius, 3.2 * radius / max(len(str(label)) for label in graph.labels))
    if size >= 2.5:  # points; below that nobody reads them
        for place, label in zip(places, graph.labels, strict=True):
            axes.annotate(str(label), tuple(place), ha="center", va="center_baseline", fontsize=size, zorder=3)
    axes.margins(0.12)


def _save(figure: Figure, file: str | Path | None, kind: str | None, title: str) -> None:
    """Drawn in memory first, so that a failure leaves no half a file."""
    if file is None or kind is None:
        return
    maker = f"sottovoce {__version__}"
    about: dict[str, Any] = {"Title": title, ("Software" if kind == "png" else "Creator"): maker}
    if kind != "png":
        about["CreationDate" if kind == "pdf" else "Date"] = None
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata=about)
    try:
        Path(file).write_bytes(drawn.getvalue())
    except OSError as error:
        raise ParameterError(f"cannot write {file}: {error.strerror or error}") from None
