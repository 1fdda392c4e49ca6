"""Protections side by side: each column against an independent reckoning, the files, the page, the command."""

import json
import re

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import cli, privacy_comparison, privacy_encrypted, privacy_rows
from sottovoce import protection as budget
from sottovoce.auditor.attacks.denoising import Seen, _whitened
from sottovoce.auditor.grounds import NEIGHBOURS
from sottovoce.errors import ParameterError
from sottovoce.paillier import Paillier
from sottovoce.privacy_rows import Scene, Stage, reached
from sottovoce.privacy_stacks import Masks, Sizes, Stack, masked
from sottovoce.smallest_change import different, norms

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
    assert word["the paper, K = 1"] == {"offset": "WITNESSED", "curvature": "READ"}
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
        masks = Sizes(problem, B, BOUND[0]).masks(q, 1.0, 400)
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


# where there are many coordinates ------------------------------------------------------------------------------------


def test_the_adviser_leaves_out_what_is_conserved_in_many_coordinates():
    """Where all hear all with equal weights the network is one node with the mean cost: the rate is that of its descent."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((90, 40)) * np.geomspace(0.05, 1, 40)
    problem = sv.problems.least_squares(X, rng.standard_normal(90), 3, l2=0.1)
    advice = sv.stepsize("gradient-tracking", problem, sv.graphs.complete(3), A="uniform")
    curvatures = np.linalg.eigvalsh(problem.hessian(problem.optimum).mean(0))
    assert "spectral radius" in advice.how
    assert advice.rate == pytest.approx(np.abs(1 - advice.good * curvatures).max(), rel=1e-6)
    assert advice.largest == pytest.approx(2 / curvatures[-1], rel=1e-3)


def test_the_smallest_change_in_blocks():
    rng = np.random.default_rng(6)
    M, h = rng.standard_normal((12, 90)), rng.standard_normal((12, 4))
    blocks = lambda M: lambda: iter(np.array_split(M, 7, axis=1))
    right = np.linalg.norm(np.linalg.pinv(M) @ h, axis=0)
    assert norms(blocks(M), h) == pytest.approx(right, rel=1e-10)
    steep = np.geomspace(1, 1e-9, 12)[:, None] * M  # too steep for M M'
    assert norms(blocks(steep), np.geomspace(1, 1e-9, 12)[:, None] * h) == pytest.approx(right, rel=1e-5)
    double = np.vstack([M, M])
    assert norms(blocks(double), np.vstack([h, h])) == pytest.approx(right, rel=1e-10)
    points = rng.standard_normal((5, 3))
    assert np.array_equal(different(np.vstack([points, points + 1e-12, points[:1] + 1e-6])), np.vstack([points, points[:1] + 1e-6]))


def test_the_budget_is_the_same_block_by_block(monkeypatch):
    problem = sv.problems.logistic(X, (Y > 0).astype(int), 4)
    masks = sv.mechanism("function-masks:kind=matern", features=500, amplitude=3.0, scale=1.0)
    seen = sv.run("gradient-tracking", problem, B, mechanisms=masks, iterations=30, record=True, stepsize=0.01)
    whole = sv.protection(problem, B, masks, bound=BOUND[0], result=seen)
    module = __import__("sys").modules[budget.__module__]
    monkeypatch.setattr(module, "LARGE", 0)
    found = sv.protection(problem, B, masks, bound=BOUND[0], result=seen, nodes=[2])
    assert len(found.rows) == 1
    assert found.rows[0].node == 2
    assert found.rows[0].worst == pytest.approx(whole.rows[2].worst, rel=1e-4)
    ohms = [row.resistance for row in whole.rows]
    assert ohms[module.least_hidden(B)] == pytest.approx(max(ohms))


def test_noise_is_whitened_as_its_covariance_says():
    rng = np.random.default_rng(7)
    m, d = 6, 3
    H, root = rng.standard_normal((d, d)), rng.standard_normal((m, 2, 2))
    H, spread = H + H.T, root @ root.swapaxes(1, 2) + np.eye(2)
    seen = Seen(rng.standard_normal((m + 1, d)), np.zeros((m, d)), rng.standard_normal((m, d)), spread)
    band = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    covariance = np.kron(np.diag(spread[:, 1, 1]), np.eye(d)) + np.kron(band, H @ H.T)
    residual = (seen.dg - np.diff(seen.x, axis=0) @ H.T).ravel()
    white = _whitened(seen, np.stack([H, 2 * H]))
    assert white.shape == (2, m * d)
    assert white[0] @ white[0] == pytest.approx(residual @ np.linalg.solve(covariance, residual), rel=1e-10)


# masks of features: as many iterations as are needed -----------------------------------------------------------------

LOGISTIC = sv.problems.logistic(X, (Y > 0).astype(int), 4, l2=20.0)


def test_features_are_played_until_the_error_is_small_and_no_further(monkeypatch):
    stack = masked("masks", 3)
    found = sv.compare_privacy(LOGISTIC, B, bound=BOUND[0], stacks=[stack])
    (row,) = found.rows
    assert row.note == privacy_rows.STOPPED
    assert row.iterations is not None
    assert row.error < 1e-6
    (text,) = row.mechanisms
    features = int(text.partition("features=")[2].partition(",")[0])
    assert features >= 2 * (row.iterations + 1) * 2  # and two coordinates
    assert "length=2.0" in text
    assert row.mu == pytest.approx(1, rel=0.2)
    assert {p["mu"] for p in found.curve} == {None, 4.0, 2.0, 1.0, 0.5}
    assert found.facts["near"] == 1e-4
    monkeypatch.setattr(privacy_rows, "WORK", 0)
    short = sv.compare_privacy(LOGISTIC, B, bound=BOUND[0], stacks=[stack])
    left = [p for p in short.curve if p["mu"] is not None]
    assert all(p["needs"] > 0 and p["iterations"] is None for p in left)
    assert short.notes()[-1].count(" with ") == len(left) == 8
    assert "--iterations" in short.rows[0].note
    assert {v["asset"] for v in short.rows[0].verdicts} >= {"offset", "curvature"}
    (early,) = sv.compare_privacy(P, B, stacks=[Stack("one", "ab")], iterations=20).rows
    assert early.note == "still falling after 20 iterations; --iterations plays more"
    (asked,) = sv.compare_privacy(LOGISTIC, B, stacks=[stack], iterations=3).rows
    assert "still falling after 3" in asked.note  # played as far as it was asked for, which is not far enough
    assert Sizes(LOGISTIC, B, 24.0).masks(1, 1.0, 20).options.length == 0.5
    assert stack.masks == Masks(1.0)


def test_what_is_played_is_said(monkeypatch):
    said = []

    class Listening(privacy_comparison.Bar):
        def __call__(self, done, what=None):
            said.append((done, what, self.total))

    monkeypatch.setattr(privacy_comparison, "Bar", Listening)
    sv.compare_privacy(P, B, stacks=[Stack("one", "ab"), Stack("two", "diging-tv")], iterations=20)
    assert said == [(0, "one", 2), (1, "two", 2)]


# encrypted -----------------------------------------------------------------------------------------------------------

SMALL = {"key_bits": 256, "weak_keys": True}


def test_encrypted_rows_are_encrypted(monkeypatch):
    two_way, small = sv.graphs.cycle(4, two_way=True), Paillier(256)
    links = Stack("links", "gradient-tracking", ("paillier-links:key_bits=256,weak_keys=true",), {"A": "uniform"})
    between = Stack("between", "paillier", (), SMALL)
    rows = ((links, privacy_encrypted.links), (between, privacy_encrypted.between))
    monkeypatch.setattr(privacy_encrypted, "ENCRYPTED", rows)
    found = sv.compare_privacy(P, two_way, stacks=[], iterations=300, encrypted=True)
    assert not found.refused
    first, second = found.rows
    plain = sv.run("gradient-tracking", P, two_way, A="uniform", iterations=300)
    assert first.error == plain.final[0]
    assert first.iterations is not None
    room = 256 // 8 - 16  # bytes in a ciphertext; x and u are four numbers, y two: two and one of them
    keys = two_way.diameter * 4 * 32 * 8  # flooded: four keys on each of eight edges
    assert first.bytes == keys + first.iterations * 8 * (32 // room + 16 // room) * small.cipher_bytes
    assert first.worst("curvature")["verdict"] == "READ"  # the receiver reads everything
    assert "really encrypted" in first.note
    assert f"of {8 * 2 * 2 * small.cipher_bytes:,} bytes" in second.note  # two exchanges of two numbers on eight edges
    assert second.microseconds > 0
    monkeypatch.setattr(privacy_encrypted, "PATIENCE", 0)
    again = sv.compare_privacy(P, B, stacks=[], iterations=20, encrypted=True)
    assert "two-way" in again.refused["between"]
    refused = sv.compare_privacy(P, two_way, stacks=[], iterations=20, encrypted=True).refused["between"]
    assert "mode=encrypted --iterations 1" in refused


# what no exact method can prevent ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "around"), [("gradient-tracking", "function-masks"), ("private-least-squares", ()), ("private-newton", ())]
)
def test_the_report_says_what_all_neighbours_learn(method, around, tmp_path):
    iterations = 1 if method == "private-least-squares" else 5
    report = sv.audit(method, P, B, mechanisms=around, iterations=iterations, curious=[{1, 2, 3}], victims=[0], advise=False)
    assert NEIGHBOURS in report.public
    assert "all neighbours of a node together still learn its gradient at x*" in report.to_json()
    page = report.save(tmp_path / "x.html").read_text()
    assert "no exact method can prevent that" in page


def test_all_neighbours_do_learn_it():
    """The sentence, by arithmetic: with everybody else's costs and x* the last gradient is what is missing to zero."""
    g = P.gradient(np.tile(P.optimum, (4, 1)))
    assert -g[1:].sum(0) == pytest.approx(g[0], abs=1e-9)


def test_the_comparison_says_it_too(found, capsys, monkeypatch, tmp_path):
    assert "no exact method can prevent" in found.save(tmp_path / "x.html").read_text()
    monkeypatch.setattr(privacy_comparison, "known", lambda: [Stack("nothing", "ab")])
    assert cli.main(["compare-privacy", "--problem", "estimation:d=1", "--iterations", "50"]) == 0
    assert "no exact method can prevent" in " ".join(capsys.readouterr().out.split())


def test_where_the_way_is_slower_than_its_end_it_is_played_on():
    """Behind masks of mu = 0.5 the rate at the optimum is 0.89, and the rate on the way there 0.93."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 2))
    problem = sv.problems.logistic(X, np.sign(X @ [1.0, -0.5] + 0.5 * rng.standard_normal(40)), 5)
    graph = sv.graphs.cycle(5, two_way=True)
    bound = (np.linalg.norm(X, axis=1).max(), 1.0)
    stage = Stage(Scene(problem, graph, None, 0, 0, [(1,)]), Sizes(problem, graph, bound))
    stack = masked("", 1, 0.5)
    first = stage._play(stack, stage._planned(stack, stage.near)).result
    point = stage.curve(1, 0.5)
    assert reached(first, stage.near) is None
    assert point["iterations"] is not None
    assert point["needs"] is None
