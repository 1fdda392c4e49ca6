"""Pictures: what is drawn, and where it goes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import plot
from sottovoce.errors import GraphError, NotInstalled, ParameterError
from sottovoce.places import places_of

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result():
    return sv.run("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b(), stepsize=0.05, iterations=40, runs=5)


def test_the_curve_is_the_median_and_the_band_nine_in_ten(result):
    (axes,) = plot.errors({"ab": result, "again": result}).axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.median(result.error, 0))
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == np.quantile(result.error, 0.95, axis=0).max()
    assert axes.get_yscale() == "log"
    assert len({str(line._unscaled_dash_pattern) + line.get_marker() for line in axes.lines}) == 2


def test_an_error_of_zero_is_drawn_at_the_floor(result, tmp_path):
    from dataclasses import replace

    error = result.error.copy()
    error[:, -3:] = 0
    floor = error[error > 0].min()
    (axes,) = plot.errors({"ab": replace(result, error=error)}, tmp_path / "zero.png").axes
    assert axes.lines[0].get_ydata()[-1] == floor
    plot.errors({"ab": replace(result, error=0 * error)}, tmp_path / "all.png")


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_files_say_what_made_them(result, tmp_path, kind, begins):
    file = tmp_path / f"error.{kind}"
    result.plot(file)
    written = file.read_bytes()
    assert written.startswith(begins)
    assert f"sottovoce {sv.__version__}".encode() in written
    result.plot(tmp_path / f"again.{kind}")
    assert (tmp_path / f"again.{kind}").read_bytes() == written


def test_bad_places(result, tmp_path):
    with pytest.raises(ParameterError, match=r"there is no folder .*missing"):
        result.plot(tmp_path / "missing" / "a.png")
    with pytest.raises(ParameterError, match=r"\.png, \.pdf or \.svg"):
        result.plot(tmp_path / "a.gif")
    with pytest.raises(ParameterError, match="nothing to draw"):
        plot.errors({})
    assert not list(tmp_path.iterdir())


def test_a_graph_has_an_arrow_an_edge(tmp_path):
    (axes,) = plot.graph(sv.graphs.paper_b(), tmp_path / "graph.svg").axes
    assert len(axes.patches) == 8
    assert [text.get_text() for text in axes.texts] == list("01234")
    (axes,) = plot.graph(sv.graphs.grid(3, 5)).axes
    assert len(axes.patches) == 22  # two-way edges are one arrow with two heads
    with pytest.raises(GraphError, match="at most"):
        plot.graph(sv.graphs.cycle(301))


@pytest.mark.parametrize("graph", [sv.graphs.cycle(1 + 1), sv.graphs.ring(40), sv.graphs.star(20), sv.graphs.grid(4, 6)])
def test_places_are_apart_and_always_the_same(graph):
    places = places_of(graph)
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(graph.n)
    assert distance.min() > 0.05
    assert np.abs(places).max() <= 1 + 1e-12
    np.testing.assert_array_equal(places, places_of(graph))


def test_without_matplotlib(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotInstalled, match=r"sottovoce\[plot\]"):
        result.plot()


def test_no_global_state(result):
    result.plot()
    assert "matplotlib.pyplot" not in sys.modules
