"""Opened sums: exact to the last word, masked on every link, refused where they would wrap; and what the methods on them find."""

import json
import runpy
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import sottovoce as sv
from sottovoce import cli, summing
from sottovoce.errors import ParameterError, ProblemError, Refused
from sottovoce.fixed_point import FixedPoint, packed, settled, unpacked
from sottovoce.registry import Algorithm, algorithm
from sottovoce.simulate import eager, threads
from sottovoce.simulate.everynode import EveryNode
from sottovoce.simulate.tape import Tape
from sottovoce.simulate.task import prepare
from sottovoce.trees import tree

B = sv.graphs.paper_b()
ONE_WAY = sv.Graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (2, 0), (4, 1)])  # diameter 5
PAIRS = sv.graphs.ring(6, hops=(1,), two_way=True)
VALUES = np.random.default_rng(3).normal(size=(5, 3)) * [1.0, 1e6, 1e-9]
LEAST = sv.problems.estimation(n=5, d=3, s=4, seed=2)


def task_of(method, problem, graph, iterations=1, runs=1, **parameters):
    return prepare(
        method, problem, graph, stepsize=0.1, iterations=iterations, runs=runs, seed=0, mechanisms=(), record=True, x0=None,
        every=1, tolerance=None, parameters=parameters,
    )  # fmt: skip


# fixed point ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [1, 2])
def test_numbers_are_rounded_to_the_step_once_and_sums_are_exact(words):
    rng = np.random.default_rng(words)
    fixed = FixedPoint(7, 1000.0, words)
    v = np.concatenate([rng.normal(size=(7, 40)) * 10.0 ** rng.integers(-30, 3, 40), [[1000.0]] * 7, [[-1000.0]] * 7], 1)[..., None]
    step = Fraction(fixed.step)
    digits = fixed.digits(np, v)
    whole = sum((d.astype(object) << (32 * k)) for k, d in enumerate(digits))
    assert all(abs(Fraction(float(a)) - int(w) * step) <= step / 2 for a, w in zip(v.ravel(), whole.ravel(), strict=True))
    exact = [float(sum(int(w) for w in column) * step) for column in whole[..., 0].T]
    found = fixed.values(np, settled(np, [d.sum(0) for d in digits]))[:, 0]
    assert np.all(np.abs(found - exact) <= np.spacing(np.abs(exact)))
    n_range = 7 * 1000
    assert 2.0 ** -(64 * words - 2) * n_range <= fixed.step <= 2.0 ** -(64 * words - 3) * n_range
    again = unpacked(np, packed(np, settled(np, digits)), words)
    assert np.array_equal(fixed.values(np, again), fixed.values(np, settled(np, digits)))


def test_what_leaves_the_last_digit_is_the_modulus():
    top = 2**32 - 1
    assert [int(d[0]) for d in settled(np, [np.array([d]) for d in (top + 1, top, top, top)])] == [0, 0, 0, 0]
    assert [int(d[0]) for d in settled(np, [np.array([d]) for d in (-1, 0)])] == [top, top]


# the sum -------------------------------------------------------------------------------------------------------------


def unmasked(method):
    """The same method with its words in the clear."""

    class Bare:
        def __init__(self, node):
            self.inner = node

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def shared(self, law, like):
            return tuple(0 * r for r in self.inner.shared(law, like))

    found = algorithm(method)
    kept = {name: getattr(found, name) for name in vars(found)} | {"name": f"bare-{method}"}
    return Algorithm(**kept | {"step": lambda node, s: found.step(Bare(node), s)})


@pytest.mark.parametrize(("graph", "words"), [(B, 2), (ONE_WAY, 1)])
def test_masked_and_unmasked_are_the_same_bits_on_every_player(graph, words):
    values = np.random.default_rng(8).normal(size=(graph.n, 3)) * [1.0, 1e5, 1e-7]
    problem = sv.problems.total(values)
    exact = FixedPoint(graph.n, 2.0**40, words)
    wanted = exact.values(np, settled(np, [d.sum(0) for d in exact.digits(np, values[..., None])]))[:, 0]
    for method, backends in (("private-sum", ("eager", "compiled")), (unmasked("private-sum"), ("eager",))):
        for backend in backends:
            result = sv.run(method, problem, graph, backend=backend, runs=2, words=words)
            assert np.array_equal(result.x, np.broadcast_to(wanted, result.x.shape))
        alone = threads.play(task_of(method, problem, graph, words=words)).x[..., 0]
        assert np.array_equal(alone, np.broadcast_to(wanted, alone.shape))
    assert np.abs(wanted - problem.optimum).max() <= graph.n * exact.step


def words_on_a_link(method):
    result = sv.run(method, sv.problems.total(VALUES), B, runs=400, record=True, words=1)
    sent = result.transcript.sent[0, 0]
    assert sent.dtype == np.uint64
    assert (sent[:, 0, 0] == [s for s, _ in result.transcript.edges]).all()
    return sent[0, 1:].ravel() / 2.0**64


def test_words_on_a_link_are_uniform_and_unmasked_ones_are_not():
    assert kstest(words_on_a_link("private-sum"), "uniform").pvalue > 0.01
    assert kstest(words_on_a_link(unmasked("private-sum")), "uniform").pvalue < 1e-12


def test_no_word_is_sent_twice_when_a_sum_is_opened_again():
    t = sv.run("private-newton", LEAST, B, iterations=3, record=True, seed=4).transcript
    first = [t.sent[k, 0][:, 1:] for k in range(3)]
    assert not any((a == b).any() for a, b in ((first[0], first[1]), (first[1], first[2])))


def test_a_share_out_of_range_is_refused_on_every_player():
    v = VALUES.copy()
    v[3, 1] = 2.0**41
    problem = sv.problems.total(v)
    for backend in ("eager", "compiled"):
        with pytest.raises(Refused, match=r"iteration 1, node 3, run 0: a share is larger than 1\.0995"):
            sv.run("private-sum", problem, B, backend=backend, runs=2)
    assert sv.run("private-sum", problem, B, range=2.0**42).final[0] < 1e-3
    with pytest.raises(Refused, match="node 3"):
        threads.play(task_of("private-sum", problem, B))
    with pytest.raises(ParameterError, match="range must be a number from 1e-30"):
        sv.run("private-sum", problem, B, range=0)


def test_a_later_refusal_names_its_iteration_on_the_compiled_player():
    def growing(node, s):
        return s._replace(own=1e5 * s.own, sums=summing.opened(node, s.own))

    method = algorithm("private-sum")
    kept = {name: getattr(method, name) for name in vars(method)} | {"name": "growing", "step": growing}
    for backend in ("eager", "compiled"):
        with pytest.raises(Refused, match="iteration 4, node"):
            sv.run(Algorithm(**kept), sv.problems.total(np.ones((5, 1))), B, backend=backend, iterations=9)


class Traded(EveryNode):
    """The mask on edge 0 is less by `h`, in digits."""

    h: Any = None

    def shared(self, law, like):
        out, inbox = super().shared(law, like)
        if self.h is None:
            return out, inbox
        moved = out.copy()
        moved[:1] = packed(np, settled(np, [r[:1] - h for r, h in zip(unpacked(np, out, 2), self.h, strict=True)]))
        return moved, moved


@pytest.mark.parametrize("method", ["private-sum", "private-newton"])
def test_two_neighbours_trade_a_shift_and_no_word_changes(method):
    """f_i + h, f_m - h and another mask between them: the same words everywhere, for any h; without the mask they differ."""
    i, m = B.edges[0]
    dyadic = lambda v: np.round(v * 1024) / 1024  # so that the sums of shares are the same to the bit
    if method == "private-sum":
        values, h = dyadic(VALUES), np.array([3.25, -70.5, 1e4])
        other = values.copy()
        other[i], other[m] = values[i] + h, values[m] - h
        worlds = [sv.problems.total(v) for v in (values, other)]
        shares = [w.values for w in worlds]
    else:
        H, b = (dyadic(part) for part in LEAST.data[:2])
        turn, t = np.array([[9.0, 4.0, 0.5], [4.0, -8.0, 2.0], [0.5, 2.0, 1.0]]), np.array([5.0, -7.0, 1.5])
        other = H.copy(), b.copy()
        other[0][i], other[0][m], other[1][i], other[1][m] = H[i] + turn, H[m] - turn, b[i] - t, b[m] + t
        worlds = [sv.problems.quadratic(*w) for w in ((H, b), other)]
        upper = np.triu_indices(3)
        shares = [np.concatenate([w.data[0][:, upper[0], upper[1]], -w.data[1]], 1) for w in worlds]
    one, two = (FixedPoint(5, 2.0**40).digits(np, s[i : i + 1, :, None]) for s in shares)
    trade = [y - x for x, y in zip(one, two, strict=True)]
    first, second, bare = (words_of(method, *world) for world in ((worlds[0], None), (worlds[1], trade), (worlds[1], None)))
    equal = lambda a, b: all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert equal(first, second)
    assert not equal(first, bare)


def words_of(method, problem, h):
    """All messages of the first iteration, and the answer."""
    stage, tape = eager.stage_of(task_of(method, problem, B)), Tape()
    state = algorithm(method).start(EveryNode(stage, -1), np.zeros((5, 3, 1)))
    node = Traded(stage, 0, tape)
    node.h = h
    state = algorithm(method).step(node, state)
    return [*tape.sent(np, stage.layout), state.x]


@pytest.mark.parametrize("graph", [B, ONE_WAY, sv.graphs.star(5)])
def test_a_tree_carries_the_same_sums_in_fewer_bytes(graph):
    problem = sv.problems.total(np.random.default_rng(9).normal(size=(graph.n, 3)))
    flooded, carried = (sv.run("private-sum", problem, graph, runs=2, carry=carry) for carry in ("flood", "tree"))
    assert np.array_equal(flooded.x, carried.x)
    edges, D = len(graph.edges), graph.diameter
    assert carried.messages[1] == 2 * D * edges
    assert carried.bytes[1] == 8 * edges * 2 * D * 6 < flooded.bytes[1]
    alone = threads.play(task_of("private-sum", problem, graph, carry="tree")).x[..., 0]
    assert np.array_equal(alone, flooded.x[0])
    if graph is B:
        assert np.array_equal(sv.run("private-sum", problem, graph, runs=2, carry="tree", backend="compiled").x, flooded.x)


def test_the_tree_leads_from_everybody_to_node_0_and_back():
    for graph in (B, ONE_WAY, sv.graphs.ring(9)):
        up, down = (part[:, 0, 0] for part in tree(graph))
        assert sorted(s for e, (s, _) in enumerate(graph.edges) if up[e]) == list(range(1, graph.n))
        assert sorted(r for e, (_, r) in enumerate(graph.edges) if down[e]) == list(range(1, graph.n))
        for chosen, nearer in ((up, lambda s, r: (s, r)), (down, lambda s, r: (r, s))):
            parent = dict(nearer(*graph.edges[e]) for e in np.flatnonzero(chosen))
            for i in range(graph.n):
                steps = 0
                while i:
                    i, steps = parent[i], steps + 1
                assert steps <= graph.diameter


def test_what_a_sum_costs():
    for graph in (B, ONE_WAY, sv.graphs.complete(5)):
        problem = sv.problems.total(np.ones((graph.n, 4)))
        edges, D = len(graph.edges), graph.diameter
        for words in (1, 2):
            result = sv.run("private-sum", problem, graph, words=words)
            assert result.messages.tolist() == [0, D * edges]
            assert result.bytes.tolist() == [0, 8 * edges * (4 * words + 1 + (D - 1) * graph.n * 4 * words)]
        assert algorithm("private-sum").payloads(D) == ("uint64",) * D


def test_as_many_iterations_as_a_method_takes_unless_others_are_asked_for():
    assert sv.run("private-sum", sv.problems.total(VALUES), B).iterations == 1
    assert sv.run("private-newton", LEAST, B).iterations == 10
    assert sv.run("private-newton", LEAST, B, iterations=2).iterations == 2


# means ---------------------------------------------------------------------------------------------------------------


def test_average_opens_one_sum_unless_another_method_is_asked_for():
    result = sv.average(VALUES, B)
    assert (result.algorithm, result.iterations) == ("private-sum", 1)
    assert np.allclose(result.x, VALUES.mean(0), rtol=1e-14, atol=0)
    assert sv.average(VALUES, B, by="push-sum", iterations=100).algorithm == "push-sum"


def test_columns_are_standardised_over_sites_with_names():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) * [1, 1e4, 1e-3] + [5, -1e5, 0]
    X = np.column_stack([X, np.full(40, 7.0)])
    where = np.array(["Jena", "Halle", "Leipzig", "Gera", "Erfurt"])[rng.integers(0, 5, 40)]
    graph = sv.Graph(5, B.edges, labels=sorted(set(where)))
    found = sv.standardise(X, where, graph, seed=3)
    scale = np.where(X.std(0) > 0, X.std(0), 1)
    assert np.allclose(found.mean, X.mean(0), rtol=1e-13)
    assert np.allclose(found.X, (X - X.mean(0)) / scale, atol=1e-9)
    assert found.count == 40
    assert np.array_equal(found(X), found.X)
    with pytest.raises(ProblemError, match="shape"):
        sv.standardise(X[:0], 5, graph)


# least squares, Newton, quasi-Newton -------------------------------------------------------------------------------------


def test_least_squares_from_one_sum():
    rng = np.random.default_rng(4)
    X, w = rng.normal(size=(200, 10)), rng.normal(size=10)
    y = X @ w + rng.normal(size=200)
    result = sv.run("private-least-squares", sv.problems.least_squares(X, y, 5, intercept=True), B)
    wanted = np.linalg.lstsq(np.column_stack([X, np.ones(200)]), y, rcond=None)[0]
    assert np.abs(result.x - wanted).max() < 1e-12
    one = sv.run("private-least-squares", sv.problems.least_squares(X, y, 5), B, words=1, range=1024.0)
    assert one.final[0] < 1e-12
    assert one.bytes.sum() < 0.52 * result.bytes.sum()
    with pytest.raises(ProblemError, match="take private-newton"):
        sv.run("private-least-squares", sv.problems.logistic(X, np.sign(y), 5), B)


def test_newton_on_breast_cancer_is_scikit_learns_optimum():
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    graph = sv.graphs.complete(6)
    standard = sv.standardise(X, 6, graph)
    wanted = LogisticRegression(C=1.0, tol=1e-13, solver="newton-cholesky").fit((X - X.mean(0)) / X.std(0), y)
    wanted = np.append(wanted.coef_[0], wanted.intercept_)
    result = sv.solve(sv.problems.logistic(standard.X, y, 6, intercept=True), graph)
    assert result.algorithm == "private-newton"
    assert np.abs(result.x - wanted).max() < 1e-8
    assert result.error[0, 9] < 1e-8  # after the ninth sum
    assert result.iterations <= 11
    assert {v.verdict for v in result.audit.verdicts if v.asset == "curvature"} == {"READ UP TO"}


def test_newton_is_damped_where_its_full_step_runs_away():
    centres = np.linspace(2.0, 4.0, 5)
    gradient = lambda x, c: (x - c) / np.sqrt(1 + (x - c) ** 2)
    problem = sv.Problem(gradient=gradient, data=[np.array([c]) for c in centres], d=1)
    x = 0.0
    for _ in range(4):
        x -= gradient(x, centres).sum() / ((1 + (x - centres) ** 2) ** -1.5).sum()
    assert abs(x) > 1e3  # Newton's own
    result = sv.run("private-newton", problem, B, iterations=25)
    assert result.final[0] < 1e-9
    far = sv.Problem(gradient=lambda x, c: np.tanh((x - c) / 10), data=[np.array([c]) for c in 80 + centres], d=1)
    assert sv.run("private-newton", far, B, iterations=40).final[0] < 1e-9  # a full step is 1e7 long


def problems_for_gradients():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 6))
    return {
        "huber": sv.problems.huber(X, X.sum(1) + rng.standard_cauchy(150), 5, delta=0.5),
        "logistic": sv.problems.logistic(X, np.sign(X @ rng.normal(size=6) + rng.normal(size=150)), 5, intercept=True),
        "stiff": sv.problems.least_squares(X * 10.0 ** np.linspace(-1, 1, 6), X.sum(1), 5),
    }


@pytest.mark.parametrize("name", ["huber", "logistic", "stiff"])
def test_gradients_alone_find_the_optimum(name):
    problem = problems_for_gradients()[name]
    result = sv.run("private-gradient", problem, B)
    assert result.final[0] < 1e-10 * (1 + np.linalg.norm(problem.optimum))
    assert (result.x == result.x[:, :1]).all()  # every node to the bit


@pytest.mark.parametrize(
    ("method", "iterations", "given"),
    [("private-newton", 9, {}), ("private-newton", 9, {"carry": "tree"}), ("private-sum", 1, {"words": 1})],
)
def test_nodes_with_keys_of_their_own_open_the_sum_lose_messages_and_are_killed(tmp_path, method, iterations, given):
    """Masks from the X25519 keys of the two ends, each node by itself: other words, the same sums, every node to the bit."""
    pytest.importorskip("cryptography")
    peers = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("test_peer_core.py"))))
    problem = sv.problems.average(np.round(VALUES, 3)) if method == "private-sum" else problems_for_gradients()["logistic"]
    task = peers.task_of(method, iterations, problem=problem, **given)
    roster, lossy = peers.roster_of(task, private=peers.PRIVATE), {"lose": 0.1, "double": 0.1, "end": 0.02}
    rig = peers.Rig(tmp_path, roster, 3, peers.node_draws, problem=problem, network=lossy)
    rig.play(peers.fates(5, 4, 40 * iterations))
    rig.close()
    assert rig.deaths
    assert all(len(frames) == 1 for frames in rig.received.values())  # no message was ever made twice with another mask
    x = np.array([rig.xs[i][iterations] for i in range(5)])
    assert (x == x[0]).all()
    wanted, slack = (5 * problem.optimum, 5 * 2.0**-19) if method == "private-sum" else (problem.optimum, 1e-12)
    assert np.abs(x - wanted).max() <= slack


# what the auditor says -------------------------------------------------------------------------------------------------


def verdicts(report, asset, adversary):
    (found,) = report.of(0, asset, adversary)
    return found


@pytest.mark.parametrize("method", ["private-sum", "private-least-squares", "private-newton", "private-gradient"])
def test_the_honest_sum_is_read_and_a_lone_honest_node_whole(method):
    problem = sv.problems.average(VALUES) if method == "private-sum" else LEAST
    asked = [{1}, {1, 2, 3, 4}]
    report = sv.audit(method, problem, B, curious=asked, victims=[0], wiretap=True, advise=False, **(
        {"iterations": 12} if method == "private-gradient" else {}))  # fmt: skip
    one = verdicts(report, "group-sum", (1,))
    assert (one.verdict, one.evidence["nodes"], one.evidence["attack"]) == ("READ UP TO", [0, 2, 3, 4], "A30")
    assert verdicts(report, "offset", (1,)).verdict == "WITNESSED"
    assert verdicts(report, "offset", (1,)).evidence["difference"] == 0
    assert verdicts(report, "offset", (1, 2, 3, 4)).verdict == "READ"
    assert verdicts(report, "group-sum", "wire").evidence["nodes"] == [0, 1, 2, 3, 4]
    assert verdicts(report, "offset", "wire").verdict == "WITNESSED"
    if method != "private-sum":
        assert verdicts(report, "curvature", (1,)).evidence["nodes"] == [0, 2, 3, 4]
        assert verdicts(report, "curvature", (1, 2, 3, 4)).verdict == "READ"
    assert algorithm(method).opens in report.public[0]


@pytest.mark.parametrize("carry", ["flood", "tree"])
def test_a_coalition_that_parts_the_honest_reads_the_sum_of_each_part(carry):
    problem = sv.problems.estimation(n=6, d=2, seed=3)
    report = sv.audit("private-least-squares", problem, PAIRS, curious=[{1, 4}], advise=False, carry=carry)
    groups = {v.node: v.evidence["nodes"] for v in report.verdicts if v.asset == "curvature"}
    assert groups == {0: [0, 5], 5: [0, 5], 2: [2, 3], 3: [2, 3]}
    assert all(v.evidence["error"] < 1e-12 for v in report.verdicts if v.asset in ("curvature", "group-sum"))
    assert {v.verdict for v in report.verdicts if v.asset == "offset"} == {"WITNESSED"}
    lone = sv.audit("private-least-squares", problem, PAIRS, curious=[{1, 5}], victims=[0], advise=False, carry=carry, wiretap=True)
    assert [v.verdict for v in lone.of(0, "curvature")] == ["READ", "READ UP TO"]
    assert lone.of(0, "curvature", "wire")[0].evidence["nodes"] == list(range(6))


def test_a_single_record_behind_a_lone_honest_node_is_read_up_to_its_sign():
    rng = np.random.default_rng(5)
    problem = sv.problems.least_squares(rng.normal(size=(5, 3)), rng.normal(size=5), sites=5)
    report = sv.audit("private-least-squares", problem, B, curious=[{1, 2, 3, 4}], victims=[0], advise=False)
    (found,) = report.of(0, "record")
    assert (found.verdict, found.evidence["text"]) == ("READ UP TO", "up to sign")


def test_a_record_that_is_not_the_replay_gets_no_other_world():
    from sottovoce.auditor.search import Witnesses

    t = sv.run("private-sum", sv.problems.average(VALUES), B, record=True).transcript
    assert Witnesses(t).evidence(0, {1})["difference"] == 0
    sent = {key: np.array(m) for key, m in t.sent.items()}
    sent[0, 0][0, 1, 0] += np.uint64(1)
    t.sent = sent
    assert Witnesses(t).evidence(0, {1}) is None
    assert Witnesses(t).evidence(0, {*B.in_neighbours(0), *B.out_neighbours(0)}) is None


# noise -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("honest", [1, 4])
def test_noise_on_a_sum_has_the_variance_that_was_calibrated(honest):
    noise = sv.mechanism("calibrated-noise", sensitivity=2.0, epsilon=0.5, delta=1e-6, honest=honest)
    result = sv.run("private-sum", sv.problems.total(VALUES), B, mechanisms=noise, runs=3000)
    assert (result.x == result.x[:, :1]).all()
    sigma = 2.0 / sv.accountant.mu_of(0.5, 1e-6)
    errors = result.x[:, 0] - VALUES.sum(0)
    assert np.abs(errors.std(0) / (sigma * np.sqrt(5 / honest)) - 1).max() < 0.05
    assert np.abs(errors.mean(0)).max() < 4 * sigma * np.sqrt(5 / honest / 3000)
    assert result.spent["epsilon"] == pytest.approx(0.5, rel=1e-4)
    assert result.spent["epsilon"] > 0.5  # what rounding adds is counted
    assert result.spent["delta"] == 1e-6


def test_every_opened_sum_is_counted():
    noise = sv.mechanism("calibrated-noise", sensitivity=0.01, sums=4)
    run = lambda iterations: sv.run("private-newton", LEAST, B, iterations=iterations, mechanisms=noise)
    assert run(4).spent["epsilon"] == pytest.approx(1.0, rel=1e-4)
    assert run(9).spent["epsilon"] == pytest.approx(sv.accountant.epsilon_of(1.5 * sv.accountant.mu_of(1.0, 1e-5), 1e-5), rel=1e-4)


def test_noise_is_refused_where_there_is_no_sum_or_no_room_for_it():
    with pytest.raises(ParameterError, match="opens no sums"):
        sv.run("ab", LEAST, B, mechanisms="calibrated-noise")
    with pytest.raises(ParameterError, match="take words=2"):
        sv.run("private-sum", sv.problems.total(VALUES), B, words=1, mechanisms=sv.mechanism("calibrated-noise", sensitivity=1e-3))


def test_noise_takes_the_reading_away():
    noise = sv.mechanism("calibrated-noise", sensitivity=10.0)
    report = sv.audit("private-least-squares", LEAST, B, mechanisms=noise, curious=[{1, 2, 3, 4}], victims=[0], advise=False)
    assert {v.verdict for v in report.verdicts} == {"NOT DECIDED"}


# solve -----------------------------------------------------------------------------------------------------------------


def wide():
    return sv.problems.quadratic(np.broadcast_to(np.eye(301), (5, 301, 301)), np.ones((5, 301)))


@pytest.mark.parametrize(
    ("problem", "private", "method"),
    [
        (lambda: LEAST, "strong", "private-least-squares"),
        (lambda: problems_for_gradients()["logistic"], "strong", "private-newton"),
        (lambda: problems_for_gradients()["huber"], "strong", "private-gradient"),
        (wide, "strong", "private-gradient"),
        (lambda: sv.problems.total(VALUES), "strong", "private-sum"),
        (lambda: LEAST, "paper", "private-gradient-tracking"),
        (lambda: LEAST, "none", "push-pull"),
    ],
)
def test_solve_picks_a_method_and_says_why(problem, private, method):
    result = sv.solve(problem(), B, private=private, audit=False)
    assert result.algorithm == method
    assert result.final[0] < 1e-7
    first, second = result.why.splitlines()
    assert first.startswith(method)
    assert second == f"What that tells, from a node's view: {algorithm(method).leaks}"
    assert result.audit is None


def test_solve_takes_a_tree_then_gradients_then_masks_as_sums_grow_dear(monkeypatch):
    from sottovoce import solving

    plan = solving.plan
    problem = sv.problems.quadratic(np.broadcast_to(np.eye(20), (400, 20, 20)), np.ones((400, 20)))
    chosen = plan(problem, sv.graphs.ring(400), "strong", True)
    assert (chosen.method, chosen.options) == ("private-least-squares", {"carry": "tree"})
    assert plan(LEAST, B, "strong", True).options == {}
    monkeypatch.setattr(solving, "EVERYWHERE", 2**25)
    assert plan(problem, sv.graphs.ring(400), "strong", True).method == "private-gradient"
    monkeypatch.setattr(solving, "EVERYWHERE", 2**20)
    assert plan(problem, sv.graphs.ring(400), "strong", True).why.startswith("gradient-tracking with function-masks: the network")
    assert plan(LEAST, sv.GraphSequence([B]), "strong", True).method == "ab-tv"


def test_solve_audits_what_it_played(tmp_path):
    result = sv.solve(LEAST, B, curious=[{1, 2, 3, 4}])
    assert {v.adversary for v in result.audit.verdicts} == {(1, 2, 3, 4)}
    assert result.audit.facts["algorithm"] == "private-least-squares"
    assert sv.Result.load(result.save(tmp_path / "kept")).why == result.why
    with pytest.raises(ParameterError, match="strong, paper, none"):
        sv.solve(LEAST, B, private="very")


def test_solve_masks_the_costs_where_nobody_can_wait_for_everybody():
    result = sv.solve(LEAST, B, barrier=False, audit=False, iterations=3000)
    assert result.mechanisms[0].startswith("function-masks")
    assert result.final[0] < 1e-6


def test_solve_on_the_command_line(capsys, tmp_path):
    page = tmp_path / "audit.html"
    asked = ["solve", "--problem", "least-squares:d=2", "--graph", "complete:n=5", "--curious", "1,2"]
    assert cli.main([*asked, "--html", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["algorithm"], facts["messages"], len(facts["why"])) == ("private-least-squares", 20, 2)
    assert facts["final_error"] < 1e-12
    assert {tuple(v["adversary"]) for v in facts["audit"]["verdicts"]} == {(1, 2)}
    assert page.exists()
    assert cli.main([*asked, "--no-audit"]) == 0
    assert "14 numbers" not in capsys.readouterr().out
    assert cli.main([*asked, "--no-audit", "--html", str(page)]) == 2
    assert "choose one of them" in capsys.readouterr().err
