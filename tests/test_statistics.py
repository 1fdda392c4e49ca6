"""The statistical side of the auditor: calibration, power against closed forms, what each attack must and must not read."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sottovoce import controls, graphs, problems
from sottovoce.auditor import leakage
from sottovoce.auditor.attack import attacks, error_of
from sottovoce.auditor.attacks import denoising, intersection, magnitude_game, secure_sum_evasion, seed_search, side_information
from sottovoce.draws import CounterDraws, Stream
from sottovoce.errors import ParameterError
from sottovoce.laws import LAWS, Law
from sottovoce.view import View

MINE = ("magnitude-game", "intersection", "denoising", "side-information", "seed-search", "secure-sum-evasion")
PAPER = "private-gradient-tracking"
SEEDS = 200
ALLOWED = 0.05 * SEEDS + 3 * np.sqrt(0.05 * 0.95 * SEEDS)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def errors(name, view, victim, truth):
    return {e.asset: error_of(e, truth) for e in attacks()[name].run(view, victim)}


def random_messages(view, seed=0):
    rng = np.random.default_rng(seed)
    sent = {key: np.where(np.isnan(m), m, 3 * rng.standard_normal(m.shape)) for key, m in view.sent.items()}
    return replace(view, sent=sent)


def estimation(who=(1,), algorithm=PAPER, graph=None, **options):
    settings = {"stepsize": 0.02, "iterations": 20, **options}
    return controls.recorded(algorithm, problems.estimation(n=5, d=2, seed=3), graph or graphs.paper_b(), who, **settings)


# the game ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(300,), (300, 3)])
def test_equal_worlds_raise_few_alarms(shape):
    rng = np.random.default_rng(1)
    games = [leakage.play(rng.standard_normal(shape), rng.standard_normal(shape)) for _ in range(SEEDS)]
    assert sum(g.alarm for g in games) <= ALLOWED
    assert sum(g.low_mu > 0 for g in games) <= ALLOWED
    assert np.mean([g.bits for g in games]) < 0.02


def test_ties_raise_few_alarms():
    rng = np.random.default_rng(2)
    games = [leakage.play(*rng.integers(0, 3, (2, 300)).astype(float)) for _ in range(SEEDS)]
    assert sum(g.alarm for g in games) <= ALLOWED


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_a_gaussian_shift_has_its_closed_form(mu):
    game = leakage.play(normals(1, 40_000), mu + normals(2, 40_000))
    area, tpr = stats.norm.cdf(mu / np.sqrt(2)), stats.norm.sf(stats.norm.isf(1e-3) - mu)
    assert leakage.gaussian_shift(mu) == pytest.approx((area, tpr))
    assert game.auc == pytest.approx(area, abs=0.01)
    assert game.tpr == pytest.approx(tpr, abs=0.01 + 0.25 * tpr)
    assert game.mu == pytest.approx(mu, rel=0.06)
    assert 0.6 * mu < game.low_mu < mu
    assert game.bits == pytest.approx(shift_bits(mu), abs=0.03)


def shift_bits(mu):
    """Information of a fair choice between N(0, 1) and N(mu, 1), by quadrature."""
    x = np.linspace(-12, 12 + mu, 20_001)
    p, q = stats.norm.pdf(x), stats.norm.pdf(x, mu)
    return 1 - np.sum(p * np.log2(1 + q / p) + q * np.log2(1 + p / q)) / 2 * (x[1] - x[0])


def test_the_bound_on_epsilon_stays_below_the_truth_and_near_it():
    """N(0, 1) against N(1, 1) is (epsilon, delta)-indistinguishable with a delta in closed form (Balle, Wang 2018)."""
    mu, delta = 1.0, 0.01
    grid = np.linspace(0, 8, 4001)
    deltas = stats.norm.cdf(mu / 2 - grid / mu) - np.exp(grid) * stats.norm.cdf(-mu / 2 - grid / mu)
    true = grid[np.argmax(deltas <= delta)]
    rng = np.random.default_rng(3)
    found = [leakage.play(rng.standard_normal(2000), mu + rng.standard_normal(2000), delta=delta).low_epsilon for _ in range(100)]
    assert np.mean(np.array(found) > true) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    assert np.median(found) > 0.35 * true


def test_direction_and_shape_do_not_matter():
    a, b = normals(1, 2000), 2 + normals(2, 2000)
    assert leakage.play(b, a).low_epsilon == pytest.approx(leakage.play(a, b).low_epsilon, rel=0.3)
    wide = leakage.play(normals(3, 2000, 4), 3 * normals(4, 2000, 4))  # same mean, other spread
    assert wide.auc > 0.95
    assert wide.alarm


def test_auc_with_ties_equals_all_pairs():
    a, b = np.random.default_rng(5).integers(0, 4, (2, 50)).astype(float)
    pairs = [(y > x) + 0.5 * (y == x) for x, y in itertools.product(a, b)]
    assert leakage.auc(a, b) == pytest.approx(np.mean(pairs))
    assert leakage.tpr_at(np.arange(10.0), np.full(10, 8.5), 0.1) == 1.0
    assert leakage.tpr_at(np.arange(10.0), np.full(10, 8.5), 0.09) == 0.0


def test_clopper_pearson_is_the_inverse_binomial():
    for count, total in ((0, 20), (3, 20), (19, 20)):
        upper = float(leakage.clopper_pearson(np.array(count), total, 0.025))
        assert stats.binom.cdf(count, total, upper) == pytest.approx(0.025)
    assert leakage.clopper_pearson(np.array(20), 20, 0.025) == 1


def test_bits_of_small_secrets():
    rng = np.random.default_rng(0)
    secret = rng.integers(0, 4, 20_000)
    noisy = np.where(rng.random(20_000) < 0.25, rng.integers(0, 4, 20_000), secret)
    like = np.log(np.where(np.arange(4) == noisy[:, None], 0.75 + 0.0625, 0.0625))
    p = np.array([0.8125, 0.0625, 0.0625, 0.0625])
    true = 2 + (p * np.log2(p)).sum()
    assert leakage.likelihood_bits(like, secret) == pytest.approx(true, abs=0.03)
    assert leakage.counted_bits(secret, noisy) == pytest.approx(true, abs=0.03)
    assert leakage.counted_bits(secret, rng.permutation(noisy)) < 0.002


@pytest.mark.parametrize("worlds", [(np.zeros(3), np.zeros(3)), (np.zeros((9, 2)), np.zeros((9, 3))), (np.full(9, np.nan),) * 2])
def test_worlds_that_cannot_be_compared_are_refused(worlds):
    with pytest.raises(ParameterError):
        leakage.play(*worlds)


# every attack --------------------------------------------------------------------------------------------------------


LIMITS = {"magnitude-game": 0.05, "intersection": 0.05, "denoising": 0.05}


@pytest.mark.parametrize("name", MINE)
def test_the_control_is_broken(name, tmp_path):
    view, victim, truth = attacks()[name].control()
    if name != "side-information":  # from disk, so that nothing else than the view is used
        view = View.load(view.save(tmp_path))
    found = errors(name, view, victim, truth)
    assert found
    assert max(found.values()) < LIMITS.get(name, 1e-8)
    json.dumps([name, attacks()[name].metric])


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize(
    "scene",
    [
        ("dgd", graphs.cycle(5, two_way=True), {}),
        ("ab", graphs.paper_b(), {"iterations": 1}),
        ("push-pull", graphs.paper_b(), {}),
        ("add-opt", graphs.paper_b(), {}),
        (PAPER, graphs.paper_b(), {"K": 2, "mechanisms": ("secret-late-weights",)}),
        (PAPER, graphs.paper_b(), {"K": 1, "mechanisms": ("encrypted-links",)}),
    ],
)
@pytest.mark.parametrize("who", [(1,), "wire"])
def test_nothing_is_said_of_other_views_and_nothing_raised(name, scene, who):
    algorithm, graph, options = scene
    view, truth = estimation(who, algorithm, graph, **options)
    for victim in {0, 2}:
        for error in errors(name, view, victim, truth).values():
            assert name == "secure-sum-evasion"
            assert error < 1e-8


@pytest.mark.parametrize("name", ["magnitude-game", "intersection", "denoising", "seed-search"])
def test_random_messages_are_not_read(name):
    view, victim, truth = attacks()[name].control()
    for seed in range(5):
        found = errors(name, random_messages(view, seed), victim, truth)
        assert min(found.values(), default=1.0) > 0.2


# A10 -----------------------------------------------------------------------------------------------------------------


def of_law(law, ratio, d, m=40_000):
    drawn = magnitude_game.log_sample(law, np.random.default_rng(0), (m, d))
    return magnitude_game.separation(lambda t: magnitude_game.log_density(law, t), drawn, ratio)


def test_one_message_tells_ten_times_as_much():
    one = of_law(Law(), 10, 1)
    assert one.auc == pytest.approx(2 / np.pi * np.arctan(10), abs=0.01)  # 0.937
    assert one.low_epsilon > 5
    ten = of_law(Law(), 2, 10)
    assert ten.auc == pytest.approx(stats.f.cdf(4, 10, 10), abs=0.005)  # 0.98
    assert ten.low_epsilon > 5


def test_a_wide_log_normal_law_hardly_tells():
    drawn = 15 * normals(0, 100_000, 1)
    game = magnitude_game.separation(lambda t: -((t / 15) ** 2) / 2, drawn)
    mu = np.log(10) / 15
    assert game.auc == pytest.approx(stats.norm.cdf(mu / np.sqrt(2)), abs=0.01)  # 0.54
    assert game.mu == pytest.approx(mu, abs=0.03)


@pytest.mark.parametrize("name", LAWS)
def test_densities_of_the_magnitude_are_those_of_the_samples(name):
    law = Law(name, 2.0)
    t = magnitude_game.log_sample(law, np.random.default_rng(0), (50_000,))
    grid = np.linspace(*np.quantile(t, [1e-5, 1]), 20_001)
    density = np.exp(magnitude_game.log_density(law, grid))
    cdf = np.cumsum(density) / density.sum()
    assert np.interp(np.quantile(t, [0.1, 0.5, 0.9]), grid, cdf) == pytest.approx([0.1, 0.5, 0.9], abs=0.02)
    drawn = CounterDraws(0, 20_000).four(np, law, Stream(3), 0, [0], [0], 1, (0,))[0].ravel()
    assert stats.ks_2samp(np.log(np.abs(drawn)), t).pvalue > 1e-3


def test_the_game_of_a_view_and_the_silence_of_one_run():
    problem = problems.average([2.0, -1.0, 4.0])
    kwargs = {"iterations": 2, "stepsize": 0.1, "x0": np.zeros((3, 1))}
    view, _ = controls.recorded(PAPER, problem, graphs.paper_a(), (1,), K=1, **kwargs)
    found = magnitude_game.game(view, 0)
    assert found.auc == pytest.approx(0.937, abs=0.015)
    assert 1 < found.bits[0] < 4
    assert magnitude_game.run(view, 0) == []
    wide, _ = controls.recorded(PAPER, problem, graphs.paper_a(), (1,), K=1, law="log-laplace:40", **kwargs)
    assert magnitude_game.early_law(wide) == Law("log-laplace", 1.0, 40.0)
    quiet = magnitude_game.game(wide, 0)
    assert quiet.auc < 0.57
    assert quiet.bits[0] < 0.3


def test_the_posterior_covers_the_truth():
    """|y| = 3 is within two spreads of the posterior in most runs, each taken alone."""
    problem = problems.average([-3.0, 1.0, 0.5])
    view, _ = controls.recorded(
        PAPER, problem, graphs.paper_a(), (1,), K=1, x0=np.zeros((3, 1)), runs=60, iterations=2, stepsize=0.1
    )
    inside = 0
    for r in range(60):
        one = replace(view, sent={key: m[..., r : r + 1] for key, m in view.sent.items()})
        centre, spread = magnitude_game.moments(magnitude_game.magnitudes(one, 0))
        inside += abs(centre[0] - np.log(3)) < 2 * spread[0]
    assert inside >= 50


# A11, A17 ------------------------------------------------------------------------------------------------------------


def test_sums_are_taken_apart_as_elimination_says():
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows, values = rng.integers(0, 2, (rng.integers(1, 6), 6)).astype(float), rng.standard_normal((6, 2))
        found = intersection.isolated(rows, rows @ values)
        rank = np.linalg.matrix_rank(rows)
        assert set(found) == {i for i in range(6) if np.linalg.matrix_rank(np.vstack([rows, np.eye(6)[i]])) == rank}
        for i, value in found.items():
            assert value == pytest.approx(values[i], abs=1e-9)


def test_a_second_run_isolates_a_node():
    first, second = ({3, 5, 9}, 10.0), ({3, 5}, 6.0)
    assert intersection.taken_apart([first]) == {}
    assert intersection.taken_apart([first, second]) == pytest.approx({9: 4.0})
    assert intersection.taken_apart([first, second, ({9, 3}, 5.0)]) == pytest.approx({3: 1.0, 5: 5.0, 9: 4.0})
    with pytest.raises(ParameterError):
        intersection.isolated(np.eye(2), np.ones(3))


def test_averages_gain_with_the_root_of_the_runs():
    problem = problems.average([[3.0, -2.0], [1.0, 0.5], [-2.0, 4.0]])
    options = {"mechanisms": "message-noise:scale=0.3", "x0": np.zeros((3, 2)), "iterations": 2, "stepsize": 0.1}
    view, truth = controls.recorded("ab", problem, graphs.paper_a(), (1,), runs=5000, **options)
    few = [
        errors("intersection", replace(view, sent={k: m[..., s : s + 50] for k, m in view.sent.items()}), 0, truth)["offset"]
        for s in range(0, 5000, 50)
    ]
    many = errors("intersection", view, 0, truth)["offset"]
    assert np.mean(few) > 4 * many
    one = replace(view, sent={k: m[..., :1] for k, m in view.sent.items()})
    assert errors("intersection", one, 0, truth) == {}


@pytest.mark.parametrize("algorithm", ["ab", "diging"])
def test_a_lone_sender_is_read_through_a_mask_and_two_are_not(algorithm):
    masked = lambda view: replace(view, sent={})
    graph = graphs.cycle(5, two_way=True) if algorithm == "diging" else graphs.paper_b()
    view, truth = estimation({1, 2} if algorithm == "diging" else {1, 3}, algorithm, graph)
    assert errors("secure-sum-evasion", masked(view), 0, truth)["offset"] < 1e-9
    alone, truth = estimation({1}, algorithm, graph)
    assert errors("secure-sum-evasion", masked(alone), 0, truth) == {}
    early, truth = estimation({1, 3}, PAPER, K=1)
    assert errors("secure-sum-evasion", early, 0, truth) == {}


def test_what_remains_of_a_sum():
    graph = graphs.paper_b()
    assert secure_sum_evasion.remainder(graph, {1}) == {1: {0, 3}}
    assert secure_sum_evasion.remainder(graph, {1, 3}) == {1: {0}, 3: {2}}
    assert secure_sum_evasion.remainder(graph, {1}, live={1, 3, 4}) == {1: {3}}
    assert secure_sum_evasion.evaded([({0, 1, 3}, 9.0)], {1: 2.0}) == {}
    assert secure_sum_evasion.evaded([({0, 1, 3}, 9.0), ({0, 1}, 5.0)], {1: 2.0}) == pytest.approx({0: 3.0, 3: 4.0})


# A12 -----------------------------------------------------------------------------------------------------------------


def test_whitening_beats_dividing():
    """The same noisy messages: plain least squares on differences against the covariance of the noise."""
    view, victim, truth = attacks()["denoising"].control()
    (seen,) = denoising.messages(view, victim)
    H = truth.problem.hessian(truth.problem.optimum)[victim]
    plain = np.linalg.lstsq(np.diff(seen.x, axis=0), seen.dg, rcond=None)[0].T
    better = denoising.curvature([seen])[0]
    assert np.linalg.norm(better - H) < np.linalg.norm(plain - H)
    assert np.linalg.norm(better - H) < 0.05 * np.linalg.norm(H)


def test_less_noise_reads_better_and_much_noise_nothing():
    options = {"algorithm": PAPER, "K": 0, "late": "fixed", "iterations": 40, "stepsize": 0.05}
    found = []
    for scale in (1e-5, 1e-2):
        view, truth = estimation(mechanisms=f"message-noise:scale={scale}", **options)
        found.append(errors("denoising", view, 0, truth))
    assert found[0]["curvature"] < 1e-2 * max(found[1].get("curvature", 1.0), 0.01)
    assert found[0]["offset"] < 1e-3
    loud, truth = estimation(mechanisms="message-noise:scale=300", **options)
    assert min(errors("denoising", loud, 0, truth).values(), default=1.0) > 0.2
    clean, _ = estimation(**options)
    assert attacks()["denoising"].run(clean, 0) == []  # nothing to filter


# A13 -----------------------------------------------------------------------------------------------------------------


def test_bounds_equal_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(15):
        rows, values = rng.integers(0, 2, (2, 4)), rng.integers(0, 4, 4)
        fitting = [v for v in itertools.product(range(4), repeat=4) if (rows @ v == rows @ values).all()]
        for node in range(4):
            ends = side_information.bounds(rows, rows @ values, node, 0, 3, integer=True)
            assert ends == pytest.approx((min(v[node] for v in fitting), max(v[node] for v in fitting)), abs=1e-6)


def test_a_share_is_the_programme_of_one_sum():
    for total in (0.3, 1.7, 2.9):
        low, high = side_information.share(np.array([total]), 3, 0.0, 1.0)
        assert side_information.bounds(np.ones(3), total, 0, 0.0, 1.0) == pytest.approx((low[0], high[0]), abs=1e-6)
    with pytest.raises(ParameterError, match="correct the side information"):
        side_information.bounds(np.ones(3), 5.0, 0, 0.0, 1.0)


def told(view, **known):
    return replace(view, header={**view.header, "side_information": known})


def test_a_box_narrows_and_enough_honest_nodes_do_not_close_it():
    problem = problems.average([0.9, 0.5, 0.8, 0.95, 0.2])
    view, truth = controls.recorded(PAPER, problem, graphs.paper_b(), (1, 4), iterations=400, stepsize=0.2)
    found = side_information.narrowed(told(view, low=0.0, high=1.0), 0)
    assert (found.low[0], found.high[0]) == pytest.approx((0.65, 1.0), abs=1e-6)
    assert found.bits[0] == pytest.approx(-np.log2(0.35), abs=1e-4)
    assert errors("side-information", told(view, low=0.0, high=1.0), 0, truth) == {}
    assert errors("side-information", view, 0, truth) == {}
    assert errors("side-information", told(view, low=5.0, high=6.0), 0, truth) == {}  # it is not so
    alone, truth = controls.recorded(PAPER, problem, graphs.paper_b(), (1, 2, 3, 4), iterations=400, stepsize=0.2)
    assert errors("side-information", alone, 0, truth)["offset"] < 1e-8  # no side information needed
    moving, truth = controls.recorded(PAPER, problem, graphs.paper_b(), (1, 2, 3, 4), iterations=10, stepsize=0.2)
    assert errors("side-information", moving, 0, truth) == {}


# A14 -----------------------------------------------------------------------------------------------------------------


def deployed(view):
    return replace(view, header={**view.header, "kind": "deployment"})


@pytest.mark.parametrize("law", ["normal", "log-laplace:12"])
def test_a_small_seed_is_found_and_the_gradient_with_it(law):
    view, truth = estimation(K=2, law=law, seed=60_000, runs=[7])
    assert errors("seed-search", deployed(view), 0, truth)["offset"] < 1e-12


def test_large_seeds_and_rehearsals_are_not():
    view, truth = estimation(K=2, seed=(1 << 63) + 12_345)
    assert errors("seed-search", deployed(view), 0, truth) == {}
    rehearsal, _ = estimation(K=2, seed=0)
    assert attacks()["seed-search"].run(rehearsal, 0) == []
    given, truth = estimation(K=2, seed=0, x0=np.ones((5, 2)))
    assert errors("seed-search", deployed(given), 0, truth) == {}  # x^0 was not drawn


def test_a_clock_is_no_secret():
    moment = 1_790_000_000
    view, truth = estimation(K=1, seed=moment - 4_321)
    (found,) = seed_search.run(view, 0, seed_search.around(moment))
    assert error_of(found, truth) < 1e-12
    assert seed_search.run(view, 0, seed_search.around(moment, 4_000)) == []


def test_regenerated_draws_are_the_generators():
    seeds = np.array([0, 5, 2**63 + 1], np.uint64)
    mine = seed_search.regenerated(seeds, Law("cauchy"), 2, 4, 3, 9, 3)
    for seed, row in zip(seeds, mine, strict=True):
        theirs = CounterDraws(int(seed), [9]).four(np, Law("cauchy"), Stream(2), 4, [3], [3], 3, (0,))[0]
        assert (row == theirs[0, :, 0]).all()
