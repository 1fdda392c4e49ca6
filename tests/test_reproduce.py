"""The paper again: what is there to reproduce, what its files say of themselves, and what is refused."""

from __future__ import annotations

import json

import pytest

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.errors import InputError, ParameterError, UnknownName
from sottovoce.paper.item import CHANGED, HOLDS, Figure, Finding, chosen, figures, register

pytest.importorskip("matplotlib")


def test_every_file_of_figures_is_found_and_has_a_number_of_its_own():
    from pathlib import Path

    from sottovoce.paper import figures as folder

    files = [file for file in Path(folder.__path__[0]).glob("*.py") if file.name != "__init__.py"]
    known = figures()
    assert len(known) >= len(files)
    assert all(figure.title and name == name.lower() for name, figure in known.items())
    numbers = [figure.number for figure in known.values() if figure.number is not None]
    assert numbers == list(range(1, len(numbers) + 1))


def test_figures_by_number_and_by_name():
    assert [f.name for f in chosen([1, "graphs", "1"])] == ["graphs"]
    with pytest.raises(UnknownName, match="did you mean 'graphs'"):
        chosen(["grafs"])
    with pytest.raises(ParameterError, match="no figure 99"):
        chosen([99])


def test_a_figure_and_a_finding_are_checked():
    with pytest.raises(ParameterError, match="neither draw nor text"):
        Figure("empty", None, "nothing", lambda quick, watch: {})
    with pytest.raises(ParameterError, match="registered twice"):
        register(Figure("graphs", 77, "again", lambda quick, watch: {}, text=str))
    with pytest.raises(ParameterError, match="one of holds"):
        Finding("perhaps", "nothing")
    with pytest.raises(ParameterError, match="needs no reason"):
        Finding(HOLDS, "1", why="because")
    with pytest.raises(ParameterError, match="needs no reason"):
        Finding(CHANGED, "1")


def test_files_say_what_made_them_and_are_the_same_again(tmp_path):
    first, again = (sv.reproduce(1, quick=True, out=tmp_path / name) for name in ("a", "b"))
    assert [len(made["figures"][0]["files"]) for made in (first, again)] == [3, 3]
    for kind in ("json", "png", "pdf"):
        a, b = ((tmp_path / folder / f"figure-01-graphs.{kind}").read_bytes() for folder in "ab")
        assert a == b
        assert sv.__version__.encode() in a
    png = (tmp_path / "a" / "figure-01-graphs.png").read_bytes()
    assert b'"quick": true' in png
    assert b'"seed"' in png
    told = json.loads((tmp_path / "a" / "figure-01-graphs.json").read_text())
    assert told["schema"] == 1
    assert told["quick"]


def test_what_is_refused(tmp_path, capsys):
    with pytest.raises(InputError, match="must be a folder"):
        sv.reproduce(1, out=tmp_path / "no" / "out")
    assert main(["reproduce", "grafs", "--out", str(tmp_path / "out")]) == 2
    assert "did you mean 'graphs'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "1", "--quick", "--out", "out", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["figures"][0]["name"] == "graphs"
    assert "1 of 1: figure 1, graphs" in shown.err
    assert main(["reproduce", "--list"]) == 0
    assert "graphs" in capsys.readouterr().out
