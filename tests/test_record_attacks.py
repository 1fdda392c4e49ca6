"""Attacks on records: what few records on the honest side give away, what thirty do not, and what the report says of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import sottovoce as sv
from sottovoce import controls
from sottovoce.auditor.attack import Estimate, attacks, error_of
from sottovoce.auditor.attacks import masked_records
from sottovoce.auditor.attacks.tail_secants import curvature
from sottovoce.auditor.heldout import error_ahead, parted
from sottovoce.auditor.judge import _told
from sottovoce.auditor.masked import law_of, one_run, quadratics
from sottovoce.auditor.reading import enclosed, heard
from sottovoce.auditor.records import MOST, Noise, Part, penalty, refitted, slopes, values
from sottovoce.auditor.verdict import Verdict
from sottovoce.auditor.words import headline, sentence
from sottovoce.protection import laplacian, nearest
from sottovoce.view import truth_of, view_of

GALLERY = attacks()
GRAPH = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (3, 1), (1, 4)])
I, M, REST = 0, 1, (2, 3, 4)  # node 0, its one honest neighbour, and everybody else
SINGLE = [(j,) for j in range(1, 5)]
GT = "gradient-tracking"
MATERN = "function-masks:kind=matern,scale=3,amplitude=10,features=2000"
TRACKED = {"A": "uniform", "iterations": 60}


def linear(count, d=5):
    rng = np.random.default_rng(count)
    X = rng.standard_normal((5 * count, d))
    return sv.problems.least_squares(X, X.sum(1) + rng.standard_normal(5 * count), 5)


def records(problem, nodes):
    X, y, mask = (part[list(nodes)] for part in problem.data[:3])
    return (y[..., None] * X)[mask > 0]


# the fit --------------------------------------------------------------------------------------------------------------


def test_what_is_fitted_is_the_cost_and_its_slopes_are_those_of_finite_differences():
    problem, x = controls.few_records(3, 2), np.random.default_rng(1).standard_normal((4, 2))
    V, penalty, h = records(problem, [I]), problem.data[3][I], 1e-6
    g = np.array([problem.gradient(point)[I] - penalty * point for point in x])
    H = np.array([problem.hessian(point)[I] - np.diag(penalty) for point in x])
    for part in (Part(x, g, H), Part(x, g, anchored=False)):
        assert np.allclose(values(part, V), part.numbers, rtol=0, atol=1e-12)
        steps = [(values(part, V + h * e) - values(part, V - h * e)) / (2 * h) for e in np.eye(V.size).reshape(-1, *V.shape)]
        assert np.allclose(slopes(part, V), np.transpose(steps), atol=1e-8)


def test_a_fit_says_what_it_leaves_open():
    """One point tells a gradient, which many pairs of records have; a path tells the records."""
    V, x = np.array([[[1.0, -2.0], [0.5, 1.0]]]), np.random.default_rng(2).standard_normal((9, 2))
    for points, determined in ((x[[0] * 9], False), (x, True)):
        part = Part(points, np.zeros_like(points))
        part = part._replace(g=values(part, V[0]).reshape(points.shape))
        found = refitted([part], Noise(np.full(points.size, 1e-12)), V)
        assert (found.width < 1e-9) == determined


def test_records_are_held_against_the_truth_in_any_order():
    problem = controls.few_records(2)
    truth = truth_of(sv.run(GT, problem, GRAPH, iterations=1, stepsize=0.1, record=True).transcript)
    true = records(problem, [I, M])
    shuffled = Estimate((I, M), "record", true[[2, 0, 3, 1]])
    assert error_of(shuffled, truth) == 0
    assert error_of(replace(shuffled, value=-true), truth) > 0.5
    assert error_of(replace(shuffled, value=-true, up_to="label"), truth) == 0
    assert error_of(replace(shuffled, value=true[:3]), truth) == np.inf
    assert error_of(replace(shuffled, value=np.nan * true), truth) == np.inf


def test_a_small_record_beside_large_ones_has_to_be_right_too():
    """Said with the wrong sign it is off by less than a thousandth of all numbers together."""
    X = np.random.default_rng(5).standard_normal((10, 3)) * np.array([1e2, 1e-2, *[1] * 8])[:, None]
    problem = sv.problems.logistic(X, np.arange(10) % 2, 5)
    truth = truth_of(sv.run(GT, problem, GRAPH, iterations=1, stepsize=0.1, record=True).transcript)
    said = records(problem, [I]) * np.array([[1], [-1]])
    assert error_of(Estimate((I,), "record", said), truth) == pytest.approx(2)
    assert error_of(Estimate((I,), "record", said, up_to="label"), truth) == 0


def test_records_that_are_narrowed_down_are_not_said_to_be_read():
    estimate = Estimate((I,), "record", np.ones((2, 3)))
    told = {word: sentence(Verdict(I, "record", (1,), word, {"text": _told(estimate, word)})) for word in ("READ", "NARROWED")}
    assert told["READ"] == "reads all 2 records"
    assert told["NARROWED"].startswith("narrows down the records of node 0")


# few records: what is read, and what the report says ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "given", "count", "attack"),
    [
        ("least squares", "private-least-squares", {}, 1, "A30"),
        ("least squares", "private-least-squares", {}, 2, "A30"),
        ("least squares", GT, {"mechanisms": "function-masks:scale=20", **TRACKED}, 1, "A26"),
        ("least squares", GT, {"mechanisms": "function-masks:scale=20", **TRACKED}, 2, "A26"),
        ("logistic", "private-newton", {}, 1, "A28"),
        ("logistic", "private-newton", {}, 2, "A28"),
        ("logistic", "private-gradient", {"iterations": 25}, 1, "A28"),
        ("logistic", GT, {"mechanisms": MATERN, **TRACKED}, 1, "A29"),
        ("logistic", GT, {"mechanisms": MATERN, **TRACKED}, 2, "A29"),
    ],
)
def test_few_records_are_read_up_to_whose_they_are_and_the_report_names_the_remedy(name, method, given, count, attack):
    problem = linear(count) if name == "least squares" else controls.few_records(count, 3)
    report = sv.audit(method, problem, GRAPH, curious=[set(REST)], victims=[I], **given)
    (found,) = report.of(I, "record")
    assert (found.verdict, found.evidence["nodes"], found.evidence["attack"]) == ("READ UP TO", [I, M], attack)
    assert found.evidence["error"] < 1e-4
    assert ("span" if name == "least squares" else "but not whose they are") in found.evidence["text"]
    (whole,) = report.of(I, "curvature")
    assert whole.verdict != "READ"
    if name == "logistic":  # a world with another gradient or curvature has other records
        assert not {"READ", "WITNESSED"} & {v.verdict for v in report.verdicts if v.asset in ("offset", "curvature")}
    if not any(v.verdict == "READ" for v in report.verdicts):
        assert "Records of node 0 are read, see below" in headline(report)
    advice = " ".join(line for line in report.advice if line.startswith("record of "))
    assert "noise on the sum" in advice
    assert "calibrated-noise" in advice
    assert "more honest sites" in advice
    assert "turns READ UP TO into NOT DECIDED" in advice


def test_a_lone_neighbour_reads_the_few_records_of_an_unmasked_logistic_cost():
    problem = controls.few_records(3, 3)
    for method, given, verdict in ((GT, {"A": "uniform"}, "READ"), ("private-gradient-tracking", {"K": 1}, "READ UP TO")):
        report = sv.audit(method, problem, GRAPH, curious=[{1}], victims=[I], advise=False, iterations=120, **given)
        (found,) = report.of(I, "record")
        assert (found.verdict, found.evidence["attack"]) == (verdict, "A28")
        assert ("but not the labels" in found.evidence["text"]) == (verdict == "READ UP TO")
        assert report.of(I, "offset")[0].verdict == ("READ" if verdict == "READ" else "NOT DECIDED")


def test_three_records_a_node_too_and_five_coordinates():
    """18 and 30 unknown numbers on the honest side, of 54 and 120 that are opened."""
    for count, d in ((3, 3), (3, 5)):
        view, truth = controls.recorded(
            "private-newton", controls.few_records(count, d), GRAPH, REST, iterations=6, stepsize=1.0
        )
        (found,) = GALLERY["fitted-records"].run(view, I)
        assert found.value.shape == (2 * count, d)
        assert error_of(found, truth) < 1e-9


def test_where_nobody_knows_the_truth_records_are_held_against_later_increments():
    problem = controls.few_records(3, 3)
    for method, given in ((GT, {"A": "uniform"}), ("private-gradient-tracking", {"K": 1})):
        played = sv.run(method, problem, GRAPH, iterations=160, record=True, **given)
        kept = replace(played.transcript, costs=None, own=own(problem))
        (found,) = sv.audit_transcript(kept, curious=[{1}], victims=[I]).of(I, "record")
        assert (found.verdict, found.evidence["attack"]) == ("READ" if method == GT else "READ UP TO", "A28")
        assert found.evidence["error"] < 1e-6
    view = view_of(kept, {1})
    wrong = Estimate((I,), "record", records(problem, [2]), up_to="label")
    right = replace(wrong, value=-records(problem, [I]))
    assert error_ahead(right, *parted(view)) < 1e-6 < 0.1 < error_ahead(wrong, *parted(view))


@pytest.mark.parametrize("method", ["private-newton", "private-least-squares", "private-sum"])
def test_what_is_opened_needs_no_truth(method):
    """Of a real run: sums are read as they are told, and few records by a fit that leaves nothing open."""
    values = sv.problems.average(np.arange(10.0).reshape(5, 2))
    problem = {"private-newton": controls.few_records(2, 3), "private-least-squares": linear(2)}.get(method, values)
    known = sv.run(method, problem, GRAPH, record=True).transcript
    kept = replace(known, costs=None, own=own(problem))
    for who in (REST, (1, *REST)):
        with_truth, without = ({v.asset: v.verdict for v in sv.audit_transcript(t, curious=[set(who)], victims=[I]).verdicts}
                               for t in (known, kept))  # fmt: skip
        told = {asset for asset, word in with_truth.items() if word.startswith("READ")}
        assert told
        assert {asset: without[asset] for asset in told} == {asset: with_truth[asset] for asset in told}
    noisy = sv.mechanism("calibrated-noise", sensitivity=3.0, epsilon=1.0, honest=2, sums=6)
    blurred = sv.run(method, problem, GRAPH, record=True, mechanisms=noisy).transcript
    report = sv.audit_transcript(replace(blurred, costs=None, own=own(problem)), curious=[set(REST)], victims=[I])
    assert not {v.verdict for v in report.verdicts} & {"READ", "READ UP TO"}


def own(problem):
    """What each node knows of its own cost, as a deployed node keeps it."""
    return {i: problem.family.written(problem.only(i)) for i in range(problem.n)}


def test_masks_that_are_too_small_do_not_hide_whose_records_they_are():
    problem = controls.few_records(1, 3)
    masks = "function-masks:kind=matern,scale=1e-5,amplitude=1e-5,features=2000"
    report = sv.audit(GT, problem, GRAPH, curious=[set(REST)], victims=[I], advise=False, mechanisms=masks, **TRACKED)
    (found,) = report.of(I, "record")
    assert (found.verdict, found.evidence["attack"]) == ("READ", "A29")


def test_nodes_with_one_record_and_with_three_are_read_together():
    X, y = np.random.default_rng(3).standard_normal((9, 2)), np.arange(9) % 2
    for sites in ([0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 1, 1, 1, 2, 2, 3, 3, 4]):
        problem = sv.problems.logistic(X, y, sites)
        report = sv.audit(GT, problem, GRAPH, curious=[set(REST)], victims=[I], advise=False, mechanisms=MATERN, **TRACKED)
        (found,) = report.of(I, "record")
        assert (found.verdict, found.evidence["nodes"]) == ("READ UP TO", [I, M])
        assert f"all {sites.count(I) + sites.count(M)} records" in found.evidence["text"]
        assert {v.verdict for v in report.verdicts if v.asset in ("offset", "curvature", "along-the-way")} == {"NOT DECIDED"}


def test_records_of_zeros_are_looked_for_without_a_complaint():
    problem = sv.problems.logistic(np.zeros((10, 2)), np.arange(10) % 2, 5)
    for method, given in (("private-newton", {}), (GT, {"mechanisms": MATERN, **TRACKED, "stepsize": 0.01})):
        report = sv.audit(method, problem, GRAPH, curious=[set(REST)], victims=[I], advise=False, **given)
        assert report.of(I, "record")[0].verdict == "NOT DECIDED"


def test_noise_on_the_sums_is_not_fitted():
    problem = controls.few_records(1, 3)
    noisy = sv.mechanism("calibrated-noise", sensitivity=3.0, epsilon=1.0, honest=2, sums=6)
    report = sv.audit("private-newton", problem, GRAPH, curious=[set(REST)], victims=[I], advise=False, mechanisms=noisy)
    assert report.of(I, "record")[0].verdict == "NOT DECIDED"
    assert "A28" not in {a["id"] for a in report.attacks}


# thirty records: nothing over the guess -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["private-least-squares", "private-newton", "private-gradient"])
def test_sums_of_many_say_the_same_whoever_owns_a_record(method):
    """mu = 0: every single node, and everybody but two, says the same of node 0 in both worlds, so any guess is a coin's."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 2))
    y, sites = X @ [1.0, -0.5] + 0.5 * rng.standard_normal(150), np.repeat(range(5), 30)
    moved = np.where(np.arange(150) == 0, M, sites)
    logistic = lambda X, y, sites: sv.problems.logistic(X, np.sign(y), sites)
    make = sv.problems.least_squares if method == "private-least-squares" else logistic
    worlds = []
    for owners in (sites, moved):
        result = sv.run(method, make(X, y, owners), GRAPH, stepsize=0.02, record=True,
                        iterations={"private-gradient": 20}.get(method))  # fmt: skip
        worlds.append((result.transcript, truth_of(result.transcript)))
    for who in (*[c for c in SINGLE if M not in c], REST):
        said = [[e for a in GALLERY.values() if a.serves(t.header) for e in a.run(view_of(t, who), I)] for t, _ in worlds]
        assert [(e.nodes, e.asset) for e in said[0]] == [(e.nodes, e.asset) for e in said[1]]
        assert said[0]
        for here, there in zip(*said, strict=True):
            size = np.abs(here.value).max()
            assert np.abs(here.value - there.value).max() <= 1e-9 * size
        read = {e.asset for e in said[0] if len(e.nodes) == 1 and error_of(e, worlds[0][1]) < 0.5}
        assert not read


@pytest.mark.parametrize("who", [*SINGLE, REST])
def test_behind_masks_nobody_tells_the_owner_better_than_the_budget_says(who):
    """Least squares, thirty records a node: the likelihood ratio of all masked curvatures that each coalition reads."""
    games, scale, rng = 60, 4.0, np.random.default_rng(8)
    X = rng.standard_normal((150, 2))
    y, sites = X @ [1.0, -0.5] + 0.5 * rng.standard_normal(150), np.repeat(range(5), 30)
    mechanism = sv.mechanism("function-masks", scale=scale)
    problem = sv.problems.least_squares(X, y, sites)
    record = ([X[0]], [y[0]])
    bound = (np.linalg.norm(X[0]) + 1e-9, abs(y[0]) + 1e-9)
    told = sv.protection(problem, GRAPH, mechanism, bound=bound, coalition=who, records=record).rows[0]
    moved = np.where(np.arange(150) == 0, told.partner, sites)
    problems = problem, sv.problems.least_squares(X, y, moved)
    right = 0
    for owner, here in zip((I, told.partner), problems, strict=True):
        played = sv.run(GT, here, GRAPH, mechanisms=mechanism, A="uniform", runs=games, iterations=30, record=True, stepsize=0.002)
        for run in range(games):
            score = _ratio(one_run(view_of(played.transcript, who), run), problems, told.partner, rng)
            right += (score > 0) == (owner == I)
    error = 3 * np.sqrt(0.25 / (2 * games))
    assert right / (2 * games) < told.guess + error
    if who == REST:
        assert right / (2 * games) > 0.55  # where both are heard, the game can be won


@pytest.mark.parametrize("who", [*SINGLE, REST])
def test_nor_behind_masks_of_features(who):
    """Logistic, thirty records a node: the likelihood ratio of all gradients that a coalition hears, under the law of the masks."""
    T, games, rng = 12, 20, np.random.default_rng(8)
    X = rng.standard_normal((150, 2))
    y, sites = np.sign(X @ [1.0, -0.5] + 0.5 * rng.standard_normal(150)), np.repeat(range(5), 30)
    partner = nearest(GRAPH, set(range(5)) - set(who), I)[0]
    moved = np.where(np.arange(150) == 0, partner, sites)
    problems = [sv.problems.logistic(X, y, owners) for owners in (sites, moved)]
    masks = f"function-masks:kind=matern,scale=0.6,tilt=1.5,amplitude=1.2,features={20 * (T + 1)}"
    right, chances = 0, []
    for world, problem in enumerate(problems):
        played = sv.run(GT, problem, GRAPH, mechanisms=masks, A="uniform", runs=games, iterations=T, record=True, stepsize=0.02)
        for run in range(games):
            score, mu = _features_ratio(one_run(view_of(played.transcript, who), run), problems, rng)
            right += (score > 0) == (world == 0)
            chances.append(norm.cdf(mu / 2))
    error = 3 * np.sqrt(0.25 / len(chances))
    assert right / len(chances) < np.mean(chances) + error
    if who == REST:
        assert right / len(chances) > np.mean(chances) - error > 0.5


def _features_ratio(view, problems, rng):
    """Of what is heard of honest nodes, whitened by the law of the masks between them; a coin and mu = 0 where nothing is."""
    told = masked_records._told(view, enclosed(view, I), penalty(view), law_of(view))
    if told is None:
        return rng.standard_normal(), 0.0
    nodes, parts, noise = told
    own = lambda problem, node, x: np.array([problem.gradient(p)[node] for p in x]) - problem.data[3][node] * x
    here, there = (np.concatenate([own(p, i, part.x).ravel() for i, part in zip(nodes, parts, strict=True)]) for p in problems)
    seen = np.concatenate([part.numbers for part in parts])
    far, change = (noise.off(v) / noise.spread for v in (seen - (here + there) / 2, here - there))
    return far @ change, np.linalg.norm(change)


def _ratio(view, problems, partner, rng):
    """The log-likelihood ratio of the masked curvatures of node 0 and its partner, as far as they are heard; else a coin."""
    group, L = laplacian(GRAPH, set(range(5)) - set(view.coalition))
    nodes = [i for i in (I, partner) if heard(view, i) is not None]
    if not nodes:
        return rng.standard_normal()
    law, drawn = quadratics(view), next(d.value for (_, k), d in view.draws.items() if k == -1 and d.owner == "edge")
    seen = []
    for i in nodes:
        H = curvature(*heard(view, i).increments())
        for e, (s, r) in enumerate(GRAPH.edges):
            if i in (s, r) and np.isfinite(drawn[e]).all():
                H = H - (1 if r == i else -1) * law.parts(drawn[e : e + 1])[0][0, :, :, 0]
        seen.append(H)
    at = [p.hessian(p.optimum)[nodes] for p in problems]
    place = [group.index(i) for i in nodes]
    inverse = np.linalg.pinv(L[np.ix_(place, place)])
    off = np.array(seen) - (at[0] + at[1]) / 2
    return np.einsum("aij,ab,bij", off, inverse, at[0] - at[1])


@pytest.mark.parametrize(("count", "warned"), [(2, True), (30, False)])
def test_the_report_counts_what_is_told_against_what_records_hold(count, warned):
    """Newton's four or five sums of nine numbers, against 30 or 450 numbers in the records."""
    report = sv.audit("private-newton", controls.few_records(count, 3), GRAPH, curious=[{1}], victims=[I], advise=False)
    assert any("expect the records to be read" in line for line in report.public) == warned
    plain = sv.audit(GT, controls.few_records(2, 3), GRAPH, curious=[{1}], victims=[I], advise=False, iterations=30)
    assert not any("expect the records" in line for line in plain.public)


def test_thirty_records_are_not_fitted_and_what_is_not_looked_for_is_bounded():
    assert (MOST, masked_records.HOLDING) == (8, 3)
    problem = controls.few_records(30, 3)
    report = sv.audit("private-newton", problem, GRAPH, curious=[set(REST), *map(set, SINGLE)], victims=[I], advise=False)
    assert {v.verdict for v in report.verdicts if v.asset == "record"} == {"NOT DECIDED"}


def test_in_one_dimension_a_curvature_tells_no_record():
    """It is the sum of all squares, whether of one record or of five."""
    rng = np.random.default_rng(3)
    problem = sv.problems.least_squares(rng.standard_normal((25, 1)), rng.standard_normal(25), 5)
    report = sv.audit(GT, problem, GRAPH, curious=[{1}], victims=[I], advise=False, **TRACKED)
    assert report.of(I, "curvature")[0].verdict == "READ"
    assert report.of(I, "record")[0].verdict == "NOT DECIDED"
