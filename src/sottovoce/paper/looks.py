"""How the figures look, and what their files say of themselves: the style of plot.py, a PNG and a PDF."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plot import BAND, LOOKS, STYLE, WIDTH, required
from ..version import __version__
from .item import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERROR = r"error $\|x^k - x^*\|$"
GREY = "0.35"
MORE = (("#999999", (0, (2, 2)), "P"), ("#8B4513", (0, (6, 1, 1, 1, 1, 1)), "<"))  # beyond the seven of plot.py
ALL = (*LOOKS, *MORE)


def pictures(figure: Figure, numbers: Any, about: Mapping[str, Any]) -> dict[str, bytes]:
    """The figure as PNG and PDF, drawn in memory."""
    matplotlib = required()
    assert figure.draw is not None
    with matplotlib.rc_context(STYLE):
        canvas = matplotlib.figure.Figure(figsize=(WIDTH, figure.height * WIDTH), layout="constrained")
        figure.draw(numbers, canvas)
        return {kind: _saved(canvas, kind, about) for kind in ("png", "pdf")}


def _saved(canvas: Any, kind: str, about: Mapping[str, Any]) -> bytes:
    title = f"{about['title']} ({'quick, ' if about['quick'] else ''}sottovoce {__version__})"
    told = json.dumps({name: about[name] for name in ("figure", "version", "quick", "parameters")}, ensure_ascii=True)
    maker = f"sottovoce {__version__}"
    meta: dict[str, Any] = {"Title": title, "Software": maker, "Description": told}
    if kind == "pdf":
        meta = {"Title": title, "Creator": maker, "Subject": told, "CreationDate": None}
    drawn = io.BytesIO()
    canvas.savefig(drawn, format=kind, metadata=meta)
    return drawn.getvalue()


def look(i: int, points: int = 8) -> dict[str, Any]:
    """Colour, dashes and marks of curve i, as keywords of plot; `points` is how many it has."""
    colour, dashes, mark = ALL[i % len(ALL)]
    step = max(1, points // 7)
    every = (step * (i % 7 + 1) // 8, step)  # every curve has its marks elsewhere, so that equal ones show
    return {"color": colour, "linestyle": dashes, "marker": mark, "markevery": every, "markerfacecolor": "white"}


def curve(axes: Axes, i: int, label: str, ks: Any, middle: Any, low: Any = None, high: Any = None, **more: Any) -> None:
    """A line, and a band around it where it has one."""
    ks, middle = numbers(ks), numbers(middle)
    looks = {**look(i, len(ks)), **more}
    axes.plot(ks, middle, label=label, zorder=4, **looks)
    if low is not None:
        axes.fill_between(ks, numbers(low), numbers(high), color=looks["color"], alpha=0.14, linewidth=0, zorder=2)


def numbers(values: Any) -> np.ndarray:
    """A list as the data file has it, None where a number was not finite."""
    return np.array(values, dtype=float)


def spread(errors: Any) -> dict[str, np.ndarray]:
    """Median, mean and the band of nine in ten over the runs, (runs, recorded)."""
    errors = np.asarray(errors, dtype=float)
    low, high = np.quantile(errors, BAND, axis=0)
    return {"median": np.median(errors, axis=0), "mean": errors.mean(0), "low": low, "high": high}


def legend(canvas: Any, columns: int = 2, axes: Axes | None = None) -> None:
    """Below everything, where it hides no curve."""
    handles, labels = (axes or canvas.axes[0]).get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=columns)


def note(axes: Axes, text: str) -> None:
    """A grey line above the axes."""
    axes.set_title(text, color=GREY, fontsize=7)


def ticks(axes: Axes, at: Sequence[Any]) -> None:
    """These on the x axis and no others."""
    axes.set_xticks(list(at), [f"{t:g}" if isinstance(t, float) else str(t) for t in at])
    axes.minorticks_off()
