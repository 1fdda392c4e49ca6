"""Attacks on masked costs: each breaks its control; none guesses better whose a record is than the budget allows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import sottovoce as sv
from sottovoce.auditor.attack import attacks, error_of
from sottovoce.auditor.attacks.masked_posterior import posterior, spread
from sottovoce.auditor.attacks.tail_secants import along
from sottovoce.auditor.judge import Judge
from sottovoce.auditor.masked import law_of, masked, one_run
from sottovoce.auditor.page import page
from sottovoce.auditor.reading import heard
from sottovoce.auditor.search import Witnesses
from sottovoce.masks import Features, Quadratics
from sottovoce.protection import record_gradients
from sottovoce.view import View, truth_of, view_of

GALLERY = attacks()
MINE = ("masked-secants", "masked-posterior")
GRAPH = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (3, 1), (1, 4)])
I, M, CURIOUS = 0, 1, (2, 3, 4)  # node 0, its one honest neighbour, and the maximal coalition
RNG = np.random.default_rng(8)
X = RNG.standard_normal((150, 2))
Y = X @ [1.0, -0.5] + 0.5 * RNG.standard_normal(150)
SITES = np.repeat(np.arange(5), 30)
GAMES = 100  # runs in each world
TILT = 1.5


def test_they_break_their_controls():
    for name in MINE:
        view, victim, truth = GALLERY[name].control()
        estimates = GALLERY[name].run(view, victim)
        assert estimates
        assert max(error_of(e, truth) for e in estimates) < 1e-7


def test_they_work_on_a_view_from_disk_and_say_nothing_elsewhere(tmp_path):
    view, victim, truth = GALLERY[MINE[0]].control()
    loaded = View.load(view.save(tmp_path))
    assert [error_of(e, truth) for e in GALLERY[MINE[0]].run(loaded, victim)] == [
        error_of(e, truth) for e in GALLERY[MINE[0]].run(view, victim)
    ]
    bare = replace(view, header={**view.header, "mechanisms": []})
    for name in MINE:
        assert GALLERY[name].run(bare, victim) == []  # no masks are declared
        assert GALLERY[name].run(view, view.coalition[0]) == []  # nobody attacks itself


def world(problem, mechanism, runs=GAMES, iterations=40, who=CURIOUS, stepsize=0.002, **given):
    result = sv.run(
        "gradient-tracking", problem, GRAPH, mechanisms=mechanism, A="uniform", runs=runs, iterations=iterations, record=True,
        stepsize=stepsize, **given,
    )  # fmt: skip
    return view_of(result.transcript, who), truth_of(result.transcript), result


def moved(make, y):
    """Two worlds: the first record of node 0 is its own, or its neighbour's."""
    sites = SITES.copy()
    here = make(X, y, sites)
    sites[0] = M
    return here, make(X, y, sites)


# quadratic ------------------------------------------------------------------------------------------------------------


def test_nobody_guesses_the_owner_better_than_the_budget_allows():
    """Least squares, thirty records a node, all but two nodes against them: naive secants, the posterior, and the likelihood
    ratio of everything that is read, by one who knows every number but whose the record is."""
    scale = 4.0
    mechanism = sv.mechanism("function-masks", scale=scale, tilt=TILT)
    problems = moved(sv.problems.least_squares, Y)
    record, target = X[0], Y[0]
    bound = (np.linalg.norm(record) + 1e-9, abs(target) + 1e-9)
    told = sv.protection(problems[0], GRAPH, mechanism, bound=bound, coalition=CURIOUS, records=([record], [target])).rows[0]
    assert told.partner == M
    assert 0.5 < told.worst < 2
    right = {"naive": 0, "posterior": 0, "likelihood": 0}
    for owner, problem in zip((I, M), problems, strict=True):
        view, _, _ = world(problem, mechanism)
        seen = masked(view, I)
        for run in range(GAMES):
            alone = one_run(view, run)
            scores = {
                "naive": _along(seen.H[run, 0], problems, record),
                "posterior": _along(posterior(seen._replace(H=seen.H[run : run + 1]), spread(alone))[0], problems, record),
                "likelihood": _ratio(alone, seen.H[run], problems, record, target, scale),
            }
            for name, score in scores.items():
                right[name] += (score > 0) == (owner == I)
    games = 2 * GAMES
    error = 3 * np.sqrt(0.25 / games)
    for name, count in right.items():
        assert count / games < told.guess + error, name
    assert right["likelihood"] / games > told.guess - error  # the budget is what the best attacker gets
    assert told.guess - error > 0.5  # and the game is one that can be won at all


def _along(H, problems, record):
    """An estimate of node 0's curvature, along the record: nearer to which world?"""
    here, there = (p.hessian(p.optimum)[I] for p in problems)
    return np.sum((H - (here + there) / 2) * np.outer(record, record))


def _ratio(view, H, problems, record, target, scale):
    """The log-likelihood ratio of both masked costs, curvature and offset, as they were read."""
    ears = heard(view, I)
    offset = ears.y[0] - H[0] @ ears.x[0] - _known_offset(view, scale)  # what is read of the gradient at zero
    at = [(p.hessian(p.optimum)[I], p.gradient(np.zeros(2))[I]) for p in problems]
    middle = tuple(sum(parts) / 2 for parts in zip(*at, strict=True))
    S, t = np.outer(record, record), -target * record
    return np.sum((H[0] - middle[0]) * S) / 2 + (offset - middle[1]) @ t / TILT**2


def _known_offset(view, scale):
    """What masks that the coalition knows add to node 0's gradient at the start; H was read without their S."""
    draw = next(d for (_, k), d in view.draws.items() if k == -1 and d.owner == "edge")
    masks, total = Quadratics(2, scale, TILT), np.zeros(2)
    x0 = heard(view, I).x[0]
    for e, (s, r) in enumerate(GRAPH.edges):
        if I in (s, r) and np.isfinite(draw.value[e]).all():
            S, t = masks.parts(draw.value[e : e + 1])
            total += (1 if r == I else -1) * (t[0, :, 0] + S[0, :, :, 0] @ x0)
    return total


def test_large_masks_leave_an_equal_share_of_the_sum_and_the_sum():
    problem = sv.problems.least_squares(X, Y, SITES)
    view, truth, _ = world(problem, sv.mechanism("function-masks", scale=300.0), runs=1, stepsize=2e-5, iterations=60)
    (naive, total), (bayes,) = (GALLERY[name].run(view, I) for name in MINE)
    share = error_of(replace(naive, value=naive.guess), truth)
    assert total.nodes == (I, M)
    assert error_of(total, truth) < 1e-6
    assert error_of(naive, truth) > 3 * share  # a worse attacker must not flatter the masks
    assert error_of(bayes, truth) == pytest.approx(share, rel=0.02)
    assert share < 0.5  # and that the sum alone says this much is not the attack's doing


def test_fresh_masks_average_out_over_runs():
    problem = sv.problems.least_squares(X, Y, SITES)
    errors = {}
    for runs in (1, 64):
        view, truth, _ = world(problem, sv.mechanism("function-masks", scale=100.0), runs=runs, stepsize=5e-5)
        errors[runs] = error_of(GALLERY["masked-secants"].run(view, I)[0], truth)
    assert errors[64] < errors[1] / 3


def test_the_verdicts_say_what_is_left():
    """Masks hide node 0 up to its sum with the honest one; without masks, or with no honest neighbour, it is read."""
    problem = sv.problems.least_squares(X, Y, SITES)
    gallery = [GALLERY[name] for name in ("tail-secants", *MINE)]

    def verdict(mechanism, who):
        result = world(problem, mechanism, runs=1, stepsize=2e-4, iterations=60)[2]
        see = lambda coalition: view_of(result.transcript, coalition)
        judge = Judge(see, truth_of(result.transcript), GRAPH, [I], lambda *_: None, gallery)
        return next(v for v in judge.verdicts(who) if v.asset == "curvature")

    assert verdict((), CURIOUS).verdict == "READ"
    hidden = verdict("function-masks:scale=100", CURIOUS)
    assert (hidden.verdict, hidden.evidence["nodes"]) == ("READ UP TO", [I, M])
    assert verdict("function-masks:scale=100", (1,)).verdict == "NOT DECIDED"  # by these attacks, and without a witness
    enclosed = verdict("function-masks:scale=100", (1, 2, 4))
    assert (enclosed.verdict, enclosed.evidence["attack"]) == ("READ", "A26")


@pytest.mark.parametrize("kind", ["quadratic", "matern"])
def test_another_world_is_replayed_behind_masks(kind):
    """Half of node 0's cost at another: against one neighbour, against everybody but one; not if the masks are small."""
    least = sv.problems.least_squares(X, Y, SITES)
    problem = least if kind == "quadratic" else sv.problems.logistic(X, np.sign(Y), SITES)
    options = {"kind": kind, "amplitude": 30.0, "features": 1000} if kind == "matern" else {}
    result = world(problem, sv.mechanism("function-masks", scale=30.0, **options), runs=1, stepsize=1e-3)[2]
    found = {who: Witnesses(result.transcript).evidence(I, who) for who in ((1,), CURIOUS, (1, 2, 4))}
    assert found[1, 2, 4] is None  # every neighbour is curious
    assert {found[1,]["neighbour"], found[CURIOUS]["neighbour"]} == {4, M}
    for evidence in (found[1,], found[CURIOUS]):
        assert evidence["difference"] < 1e-12
        assert abs(evidence["log_likelihood_ratio"] + evidence["mu"] ** 2 / 2) < 5 * evidence["mu"]  # normal, mean -mu^2/2, sd mu
        if kind == "quadratic":
            H, g = problem.hessian(problem.optimum)[I] / 2, problem.gradient(np.zeros(2))[I] / 2
            assert evidence["mu"] == pytest.approx(np.sqrt(np.sum(H**2) / 2 + np.sum((g / 10) ** 2)) / 30)
            ratio = _ratio_of_worlds(result.transcript, evidence["neighbour"], H, g)
            assert evidence["log_likelihood_ratio"] == pytest.approx(ratio)
        else:
            assert evidence["mu"] == pytest.approx(_size_of_half(problem, result.transcript, evidence["neighbour"]), rel=0.02)
    tiny = {**options, "scale": 0.1} | ({"amplitude": 0.1} if kind == "matern" else {})
    small = world(problem, sv.mechanism("function-masks", **tiny), runs=1, stepsize=1e-3)[2]
    assert Witnesses(small.transcript).evidence(I, CURIOUS) is None
    states = {k: {**result.transcript.states[k]} for k in result.transcript.states}
    states[3]["g"] = states[3]["g"] * (1 + 1e-6)
    assert Witnesses(replace(result.transcript, states=states)).evidence(I, CURIOUS) is None  # a gradient that is no masked one
    report = sv.audit_transcript(result.transcript, curious=[{1}, set(CURIOUS)], victims=[I], wiretap=True)
    for asset in ("offset", "curvature", "along-the-way"):
        assert report.of(I, asset, (1,))[0].verdict == report.of(I, asset, "wire")[0].verdict == "WITNESSED"
    assert "the rest" in page(report)
    chance = norm.cdf(found[CURIOUS]["mu"] / 2)
    assert f"guesses which of the two it is with chance {chance:.0%} at best" in page(report)


def _size_of_half(problem, transcript, neighbour):
    """Of the records of the world in which the neighbour has fifteen of node 0's thirty, in units of the masks."""
    sites = SITES.copy()
    sites[np.flatnonzero(SITES == I)[:15]] = neighbour
    other = sv.problems.logistic(X, np.sign(Y), sites)
    ks = range(-1, transcript.iterations)
    points = np.array([np.asarray(transcript.states[k]["x"])[i, :, 0] for i in (I, neighbour) for k in ks])
    change = np.concatenate([problem.gradient(p)[I] - other.gradient(p)[I] for p in points])
    left, size, _ = np.linalg.svd(law_of(view_of(transcript, range(5))).gradients_of(points), full_matrices=False)
    kept = size > 3e-13 * size[0]
    return np.linalg.norm((left[:, kept].T @ change) / size[kept])


def _ratio_of_worlds(transcript, neighbour, H, g):
    """The mask that node 0's edge has, and the one that it has where half of the cost, x'Hx/2 + g'x, is the neighbour's."""
    edge = next(e for e, ends in enumerate(transcript.edges) if set(ends) == {I, neighbour})
    mask = next(d.value[edge, :5, 0] for (_, k), d in transcript.draws.items() if k == -1 and d.owner == "edge")
    half = np.array([H[0, 0] / np.sqrt(2), H[0, 1], H[1, 1] / np.sqrt(2), *g / 10]) / 30
    other = mask - half if transcript.edges[edge][0] == I else mask + half
    return (mask @ mask - other @ other) / 2


# matern ---------------------------------------------------------------------------------------------------------------


def test_nor_behind_masks_of_features():
    """Logistic regression: the likelihood ratio of all gradients that are read along the way, under the law of the masks."""
    T, d, games = 12, 2, 60
    options = {"kind": "matern", "scale": 0.6, "tilt": TILT, "amplitude": 1.2, "length": 2.0, "features": 10 * d * (T + 1)}
    mechanism = sv.mechanism("function-masks", **options)
    problems = moved(lambda X, y, sites: sv.problems.logistic(X, y, sites), (Y > 0).astype(int))
    label = 1.0 if Y[0] > 0 else -1.0
    features, right, chances = Features(d, options["amplitude"], options["length"], options["features"]), 0, []
    for owner, problem in zip((I, M), problems, strict=True):
        view, _, _ = world(problem, mechanism, runs=games, iterations=T, stepsize=0.02)
        for run in range(games):
            alone = one_run(view, run)
            score, mu = _features_ratio(alone, problems, features, label)
            right += (score > 0) == (owner == I)
            chances.append(norm.cdf(mu / 2))
    error = 3 * np.sqrt(0.25 / (2 * games))
    assert 0.6 < np.mean(chances) < 0.95
    assert abs(right / (2 * games) - np.mean(chances)) < error


def _features_ratio(view, problems, features, label):
    """The ratio, and the mu of this run: both nodes' gradients less what is known, one Gaussian vector with the masks' law."""
    draws = {d.value.shape[1]: d.value for (_, k), d in view.draws.items() if k == -1}
    waves = features.waves(np, draws[features.numbers], draws[features.count])
    quadratic = Quadratics(features.d, 0.6, TILT)
    coefficients = draws[quadratic.size + features.count][:, :, 0]
    seen, change, basis, middle = [], [], [], []
    for node, sign in ((I, 1), (M, -1)):
        g, x = along(heard(view, node))
        masks = np.hstack([quadratic.gradients_of(x), features.gradients_of(waves, x)])
        for e, (s, r) in enumerate(GRAPH.edges):
            if node in (s, r) and np.isfinite(coefficients[e]).all():
                g = g - (1 if r == node else -1) * (masks @ coefficients[e]).reshape(g.shape)
        seen.append(g.ravel())
        basis.append(sign * masks)
        change.append(sign * record_gradients(problems[0], X[:1], np.array([label]), x)[0].ravel())
        at = [np.array([p.gradient(point)[node] for point in x]).ravel() for p in problems]
        middle.append((at[0] + at[1]) / 2)
    left, size, _ = np.linalg.svd(np.concatenate(basis), full_matrices=False)
    kept = size > 1e-9 * size[0]
    white = lambda v: (left[:, kept].T @ np.concatenate(v)) / size[kept]
    h = white(change)
    return (white(seen) - white(middle)) @ h, np.linalg.norm(h)


def test_several_mixings_a_gradient_are_read_like_one():
    """x and y are mixed again and again; who hears the first exchanges has the curvature all the same."""
    problem = sv.problems.least_squares(X, Y, SITES)
    for q, A in ((2, "uniform"), (3, "uniform"), (3, "identity")):
        result = sv.run("gradient-tracking", problem, GRAPH, A=A, consensus=q, iterations=60, stepsize=0.004, record=True)
        view, truth = view_of(result.transcript, CURIOUS), truth_of(result.transcript)
        found = {e.asset: error_of(e, truth) for e in GALLERY["tail-secants"].run(view, I)}
        assert found["curvature"] < 1e-8, (q, A)
        leaf = sv.Graph(4, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 1)])
        four = sv.problems.least_squares(X[:40], Y[:40], 4)
        result = sv.run("gradient-tracking", four, leaf, A="uniform", consensus=q, iterations=30, stepsize=0.01, record=True)
        view, truth = view_of(result.transcript, {1}), truth_of(result.transcript)
        enclosed = {e.asset: error_of(e, truth) for e in GALLERY["mass-balance"].run(view, I)}
        assert enclosed["along-the-way"] < 1e-8, (q, A)
