"""The paper again: what is there to reproduce, what its files say of themselves, and what is refused."""

from __future__ import annotations

import decimal
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.auditor.worlds import in_fractions, replay, world_of
from sottovoce.cli import main
from sottovoce.cli_work import plain
from sottovoce.errors import InputError, ParameterError, UnknownName
from sottovoce.paper import arithmetic, ring, setting
from sottovoce.paper.item import CHANGED, HOLDS, VERDICTS, Figure, Finding, chosen, claims, figures, register

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]


def test_every_file_of_figures_is_found_and_has_a_number_of_its_own():
    from sottovoce.paper import figures as folder

    files = [file for file in Path(folder.__path__[0]).glob("*.py") if file.name != "__init__.py"]
    known = figures()
    assert len(known) >= len(files)
    assert all(figure.title and name == name.lower() for name, figure in known.items())
    numbers = [figure.number for figure in known.values() if figure.number is not None]
    assert numbers == list(range(1, 12))


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
    assert "did you mean 'graphs'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "1", "--quick", "--out", "out", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["figures"][0]["name"] == "graphs"
    assert "1 of 1: figure 1, graphs" in shown.err
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["--list"], ["--help"]):
        assert main(["reproduce", *words]) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= 80
        assert "graphs" in shown or "--quick" in shown


# Claims

CHEAP = ("ab-leak", "extra", "identical-views", "intermediate-states", "entire-domain", "lemma-2", "theorem-5")


def test_every_claim_has_words_and_a_place_of_its_own():
    known = claims()
    assert {"r-linear", "theorem-2", "n100", "graph-b"} <= set(known)
    assert len({claim.number for claim in known.values()}) == len(known)
    for name, claim in known.items():
        assert claim.text.endswith("."), name
        assert claim.where, name
        assert "|" not in claim.name + claim.where, name  # they stand in a table


@pytest.mark.parametrize("name", CHEAP)
def test_a_claim_says_the_same_again_and_with_numbers(name):
    first, again = (claims()[name].check(True) for _ in range(2))
    assert first == again
    assert first.verdict in VERDICTS
    assert any(character.isdigit() for character in first.measured)
    json.dumps(plain(first.numbers), allow_nan=False)


def test_what_the_committed_page_says_is_what_is_found_now():
    told = json.loads((ROOT / "docs" / "claims.json").read_text())
    assert {c["name"]: (c["claim"], c["where"]) for c in told["claims"]} == {c.name: (c.text, c.where) for c in claims().values()}
    verdicts = {c["name"]: c["verdict"] for c in told["claims"]}
    for name in CHEAP:
        assert claims()[name].check(True).verdict == verdicts[name], name


def test_the_radius_of_the_ring_is_how_fast_it_goes():
    """Of the hub's weights, and against a run; rows, columns and the least entry as Table II asks."""
    problem, hub, step = ring.problem(), ring.through_a_hub(), 2.8e-4
    for name, axis in (("R", 1), ("C", 0)):
        assert np.abs(hub[name].sum(axis) - 1).max() < 1e-12
        assert hub[name][hub[name] > 0].min() == ring.ETA
    result = sv.run("push-pull", problem, ring.one_way(), R=hub["R"], C=hub["C"], stepsize=step, iterations=2000, every=10)
    radius = ring.rate(problem, hub["R"], hub["C"], step)
    assert np.log(result.rate()) == pytest.approx(np.log(radius), rel=0.08)  # two modes are so close that they part late


def test_a_hundred_digits_agree_with_fractions_and_with_float64():
    options = {"K": 2, "stepsize": 0.06, "iterations": 8}
    world = world_of(setting.recorded(arithmetic.METHOD, setting.problem(), setting.graph(), **options))
    fractions = replay(in_fractions(world)).y[-1].astype(float)
    with decimal.localcontext(prec=100):
        decimals = replay(arithmetic.in_decimals(world)).y[-1].astype(float)
    np.testing.assert_allclose(decimals, fractions, rtol=1e-10)  # late rows are completed to one in decimals only
    kept = arithmetic.kept(2, 1)
    error = arithmetic.exact(2)
    np.testing.assert_allclose(kept.error[0, :300], error[:300], rtol=1e-9)
    assert error[-1] < 1e-18 < 1e-16 < kept.final[0]


def test_a_small_figure_of_each_kind(tmp_path):
    made = sv.reproduce("same-view", "two-gradients", "table-one", quick=True, out=tmp_path)
    numbers = json.loads((tmp_path / "figure-02-same-view.json").read_text())["numbers"]
    assert numbers["difference_in_rational_numbers"] == "0"
    assert numbers["difference"] < 1e-12
    rows = json.loads((tmp_path / "figure-09-table-one.json").read_text())["numbers"]["rows"]
    assert len(rows) == 9
    assert all(row["rate"] < 1 for row in rows.values())
    assert all((tmp_path / file.rsplit("/")[-1]).stat().st_size > 0 for one in made["figures"] for file in one["files"])


TINY = {
    "convergence": {"ITERATIONS": 60},
    "against-huang": {"ITERATIONS": 40, "RUNS": 5},
    "against-lou": {"ITERATIONS": 60},
    "delay": {"KS": (0, 2)},
    "price": {"LEVELS": (1.0, 100.0), "NOISES": (1.0, 0.1)},
}


@pytest.mark.parametrize("name", TINY)
def test_figures_that_run_methods_at_a_tiny_size(name, tmp_path, monkeypatch):
    """That they are made and drawn, the same numbers again but for what a clock says."""
    module = importlib.import_module(figures()[name].make.__module__)
    for constant, value in TINY[name].items():
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(arithmetic, "length", lambda K: 80)
    monkeypatch.setitem(sys.modules, "jax", None)  # nothing to compile for
    told = []
    for folder in "ab":
        made = sv.reproduce(name, quick=True, out=tmp_path / folder)["figures"][0]
        told.append(json.loads(Path(made["files"][0]).read_text()))
        del told[-1]["timings"]
        assert Path(made["files"][1]).stat().st_size > 10_000
    assert told[0] == told[1]
    assert told[0]["parameters"]["seed"] == setting.SEED


def test_claims_are_written(tmp_path, monkeypatch):
    few = {name: claim for name, claim in claims().items() if name in ("ab-leak", "graph-b")}
    monkeypatch.setattr("sottovoce.paper.reproduce.claims", lambda: few)
    assert sv.reproduce("claims", quick=True, out=tmp_path)["figures"] == []
    told = json.loads((tmp_path / "claims.json").read_text())
    assert told["schema"] == 1
    assert [set(c) for c in told["claims"]] == [{"name", "claim", "where", "verdict", "why", "measured", "numbers"}] * 2
    page = (tmp_path / "claims.md").read_text()
    assert "Of 2: 1 holds, 0 holds with a change, 0 does not hold, 1 cannot be checked." in page
    assert "quick run" in page
