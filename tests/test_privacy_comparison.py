"""Protections side by side: each column against an independent reckoning, the files, the page, the command."""

import json
import re

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import cli, privacy_comparison
from sottovoce.errors import ParameterError
from sottovoce.privacy_comparison import Stack, reached

RNG = np.random.default_rng(3)
X = RNG.standard_normal((120, 2))
Y = X @ [1.0, 2.0] + 0.3 * RNG.standard_normal(120)
P, B = sv.problems.least_squares(X, Y, 4), sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (2, 0)])
BOUND = (np.linalg.norm(X, axis=1).max(), np.abs(Y).max())


@pytest.fixture(scope="module")
def found():
    return sv.compare_privacy(P, B, bound=BOUND, iterations=600)


def test_every_stack_has_its_row(found):
    names = [row.name for row in found.rows]
    assert len(names) == len(set(names)) == 11
    assert not found.refused
    word = {row.name: {asset: row.worst(asset)["verdict"] for asset in ("offset", "curvature")} for row in found.rows}
    assert word["nothing"] == {"offset": "READ", "curvature": "READ"}
    assert word["the paper, K = 1"] == {"offset": "NOT DECIDED", "curvature": "READ"}
    assert word["only sums are read"]["curvature"] == "READ"  # node 1 has no other in-neighbour
    assert word["masks on the costs"]["curvature"] == "READ UP TO"
    assert word["one opened sum, private-least-squares"]["curvature"] == "READ UP TO"
    exact = [row for row in found.rows if "noise" not in row.name]
    assert max(row.error for row in exact) < 1e-11
    (noisy,) = (row for row in found.rows if "noise" in row.name)
    assert noisy.error > 1e-3
    assert noisy.iterations is None


def test_the_columns_are_those_of_a_run(found):
    plain = sv.run("gradient-tracking", P, B, A="uniform", iterations=600)
    first = found.rows[0]
    assert first.error == plain.final[0]
    at = first.iterations
    assert plain.error[0, at] <= 1e-8 * plain.error[0, 0] < plain.error[0, at - 1]
    assert (first.rounds, first.bytes) == (2 * at, 7 * at * 6 * 8)  # two exchanges; x, u and y of two numbers on seven edges
    assert reached(sv.run("gradient-tracking", P, B, stepsize=1e-6, iterations=5)) is None
    row = next(row for row in found.rows if row.name == "masks on the costs")
    assert row.mu == pytest.approx(1.0)
    assert row.epsilon == pytest.approx(4.38, abs=0.02)  # masks.md: mu 1 is epsilon 4.4 at 1e-5


def test_the_price_of_mu(found):
    """At most three times the iterations for mu = 1, thirty records a node; mixing more often buys rounds back."""
    at = {(p["consensus"], p["mu"]): p["iterations"] for p in found.curve}
    assert at[1, 1.0] <= 3 * at[1, None]
    assert [at[1, mu] for mu in (None, 4.0, 2.0, 1.0, 0.5)] == sorted(at[1, mu] for mu in (None, 4.0, 2.0, 1.0, 0.5))
    assert all(at[3, mu] < at[1, mu] for mu in (4.0, 2.0, 1.0, 0.5))


def test_matern_masks_cost_no_more_than_they_may():
    """Eight times the iterations, or four times the rounds, for mu = 1 and the worst record."""
    problem = sv.problems.logistic(X, (Y > 0).astype(int), 4)
    plain = reached(sv.run("gradient-tracking", problem, B, A="uniform", iterations=200))
    for q, most in ((1, 8), (3, 4)):
        masks = privacy_comparison._masks(problem, B, BOUND[0], 400, q)
        result = sv.run("gradient-tracking", problem, B, A="uniform", consensus=q, mechanisms=masks, iterations=400)
        assert q * reached(result) <= most * plain


def test_files_and_page(found, tmp_path):
    tree = json.loads(found.save(tmp_path / "x.json").read_text())
    assert (tree["schema"], len(tree["rows"]), len(tree["curve"])) == (1, 11, 10)
    page = found.save(tmp_path / "x.html").read_text()
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)
    assert all(row.name in page for row in found.rows)
    assert page.count("READ UP TO") >= 3
    with pytest.raises(ParameterError, match=r"saved as \.json or \.html"):
        found.save(tmp_path / "x.txt")
    assert [row["name"] for row in found.table()] == [row.name for row in found.rows]


def test_what_does_not_fit_says_why():
    stacks = [
        Stack("two ways", "diging-tv"), Stack("masks", "gradient-tracking", ("function-masks:kind=matern",)),
        Stack("one", "ab", (), {}, 5),
    ]  # fmt: skip
    found = sv.compare_privacy(P, B, stacks=stacks, iterations=300)
    assert [row.name for row in found.rows] == ["one"]
    assert "quadratic" in found.refused["masks"]
    assert "two-way" in found.refused["two ways"]
    assert found.curve == ()
    assert found.rows[0].iterations is None
    with pytest.raises(ParameterError, match="on one graph"):
        sv.compare_privacy(P, sv.GraphSequence([B, B]))


def test_on_the_command_line(capsys, tmp_path, monkeypatch):
    few = [Stack("nothing", "ab"), Stack("only sums are read", "ab", ("aggregate-only",))]
    monkeypatch.setattr(privacy_comparison, "known", lambda *_: few)
    page = tmp_path / "page.html"
    typed = ["compare-privacy", "--problem", "estimation:d=1", "--iterations", "300"]
    assert cli.main([*typed, "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "only sums are read" in shown
    assert f"page: {page}" in shown.replace("\n", "")
    assert cli.main([*typed, "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["nothing", "only sums are read"]
    for wrong, words in ((["--bound", "a"], "--bound is the largest norm"), (["--victim", "1,2"], "--victim is one node")):
        assert cli.main([*typed, *wrong]) != 0
        assert words in capsys.readouterr().err
