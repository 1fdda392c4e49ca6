"""The auditor on every registered method and mechanism: nothing fails, and what a few lines can read is read, and no more."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import controls
from sottovoce.auditor.affine import Affine, Book, Entangled, Functions, unknown
from sottovoce.auditor.attack import attacks, error_of, register
from sottovoce.auditor.linear import Solved
from sottovoce.auditor.page import page
from sottovoce.auditor.replay import played
from sottovoce.auditor.verdict import WORDS
from sottovoce.errors import InputError, ParameterError
from sottovoce.view import View

NEW = {a.id: a for a in attacks().values() if a.id in {f"A{i}" for i in range(21, 30)}}
B = sv.graphs.paper_b()
TWO = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])  # node 1 hears 0 and 2, which hear each other
ALL = sv.graphs.complete(5)
P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
VALUES = np.random.default_rng(5).normal(size=(5, 2))
MEAN, SUM = sv.problems.average(VALUES), sv.problems.total(VALUES)
METHODS = sv.registry.algorithms()
COSTS = {"offset", "curvature", "along-the-way"}


def scene(name):
    """Problem, graph, victim, and its neighbours."""
    method = METHODS[name]
    graph = TWO if method.graphs == "two-way" or name == "diging-tv" else B
    problem = MEAN if method.averages else P if method.minimises else SUM
    victim = 1 if graph is TWO else 0
    return problem, graph, victim, {*graph.in_neighbours(victim), *graph.out_neighbours(victim)}


def audit(name, curious=None, mechanisms=(), scene_of=None, **options):
    problem, graph, victim, near = scene(name) if scene_of is None else scene_of
    asked = [near] if curious is None else curious
    given = {"iterations": min(METHODS[name].takes or 12, 12), "advise": False, "victims": [victim], **options}
    return sv.audit(name, problem, graph, curious=asked, mechanisms=mechanisms, **given)


def read(report, adversary=None):
    """What was read, by asset."""
    return {v.asset: v.verdict for v in report.verdicts if adversary in (None, v.adversary) and v.verdict.startswith("READ")}


def outright(report, adversary=None):
    return {asset for asset, word in read(report, adversary).items() if word == "READ"}


def noise(view, seed=0):
    rng = np.random.default_rng(seed)
    fresh = lambda m: rng.standard_normal(m.shape) if m.dtype.kind == "f" else rng.integers(0, 2**63, m.shape).astype(m.dtype)
    return replace(view, sent={key: fresh(m) for key, m in view.sent.items()}, states={})


# each attack ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", NEW)
def test_breaks_its_control_from_disk_too_and_reads_nothing_from_noise(id, tmp_path):
    view, victim, truth = NEW[id].control()
    said = NEW[id].run(view, victim)
    assert said
    assert {e.asset for e in said} <= set(NEW[id].assets)
    assert NEW[id].serves(view.header)
    assert max(error_of(e, truth) for e in said) < 1e-8
    loaded = View.load(view.save(tmp_path))
    assert [error_of(e, truth) for e in NEW[id].run(loaded, victim)] == [error_of(e, truth) for e in said]
    assert all(error_of(e, truth) > 0.05 for e in NEW[id].run(noise(view), victim))
    for nothing in (replace(view, sent={}), replace(view, sent={}, draws={}, states={})):
        assert NEW[id].run(nothing, victim) == []
    for other in (*view.coalition, 77):
        assert NEW[id].run(view, other) == []


def test_a_number_is_one_attack_s():
    ids = [a.id for a in attacks().values()]
    assert len(set(ids)) == len(ids)
    with pytest.raises(ParameterError, match="has the number A1, which 'start-gradient' has already"):
        register(replace(attacks()["tail-secants"], name="another", id="A1"))
    assert "another" not in attacks()


def test_the_page_lists_every_attack():
    told = (Path(__file__).parents[1] / "docs" / "auditing.md").read_text().splitlines()
    listed = [line for line in told if line.startswith("| A")]
    assert listed == [f"| {a.id} | {a.name} | {', '.join(a.assets)} | {a.uses} |" for a in attacks().values()]


# every method and mechanism ------------------------------------------------------------------------------------------


def sound(report):
    assert report.verdicts
    assert all(v.verdict in WORDS for v in report.verdicts)
    tree = json.loads(report.to_json())
    assert {v["asset"] for v in tree["verdicts"]} == {v.asset for v in report.verdicts}
    drawn = page(report)
    assert drawn.startswith("<!DOCTYPE html>")
    assert all(f">{asset}<" in drawn for asset in {v.asset for v in report.verdicts})
    assert report.table()
    for line in (*report.assumptions, *report.public):
        assert "from iteration 0" not in line or {"R", "A", "C", "B"} <= set(report.facts["parameters"])


def short(name):
    """Few iterations for those whose attacks on longer runs have tests of their own, and cost seconds."""
    return 1 if METHODS[name].takes else 2 if set("RACB") <= set(METHODS[name].weights) else 4


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_audited(name):
    problem, _, victim, near = scene(name)
    curious = [near, {max(set(range(5)) - near - {victim}, default=min(near))}]
    curious += [{5}, {5, 6}] if METHODS[name].helpers else []
    report = audit(name, curious, wiretap=True, iterations=short(name))
    sound(report)
    assert ("value" in {v.asset for v in report.verdicts}) == (problem.values is not None)


LAYERS = {
    "aggregate-only": ("push-diging", {}), "calibrated-noise:epsilon=1,delta=1e-6,sensitivity=1": ("private-sum", {}),
    "correlated-noise": ("extra", {}), "encrypted-links": ("admm", {}), "function-masks": ("dgd", {}),
    "function-sharing": ("extra", {}), "function-sharing:curvature=0": ("pdmm", {}), "message-noise": ("push-sum", {}),
    "nozari": ("dgd", {}), "paillier-links:key_bits=256,weak_keys=true": ("admm", {"iterations": 3}),
    "quiet": ("private-gradient-tracking", {"iterations": 4}), "random-start": ("ab", {"iterations": 4}),
    "secret-late-weights": ("subgradient-push", {"C": "paper"}),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_every_mechanism_is_audited(layer):
    name, given = LAYERS[layer]
    sound(audit(name, mechanisms=(layer,), wiretap=True, **given))


def test_no_mechanism_is_left_out():
    assert {layer.partition(":")[0] for layer in LAYERS} == set(sv.registry.mechanisms())


@pytest.mark.parametrize(
    ("given", "layer", "said"),
    [
        ({}, (), []),
        ({"consensus": 3}, (), ["A8 and A9 are built for one mixing"]),
        ({}, "function-masks", ["A9 fits the coalition's own costs as they are"]),
        ({}, ("aggregate-only", "function-masks"), ["A9 fits the coalition's own costs as they are"]),
        ({"consensus": 3, "iterations": 3}, "function-masks", ["A8 and A9", "A9 fits"]),
    ],
)  # fmt: skip
def test_a_report_says_which_attacks_were_not_tried(given, layer, said):
    report = audit("gradient-tracking", mechanisms=layer, **{"iterations": 4, **given})
    found = [line for line in report.assumptions if "not tried" in line]
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


# what is read --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dgd", "extra", "subgradient-push", "yan", "admm", "pdmm", "paillier", "paillier-admm"])
def test_who_hears_a_node_and_its_neighbours_inverts_its_update(name):
    report = audit(name, wiretap=True)
    for adversary in {v.adversary for v in report.verdicts}:
        assert outright(report, adversary) >= COSTS
    assert max(v.evidence["error"] for v in report.verdicts if v.verdict == "READ") < 1e-9


@pytest.mark.parametrize("name", ["dgd", "yan", "subgradient-push"])
def test_one_neighbour_that_does_not_hear_the_others_does_not(name):
    (first, *_) = sorted(scene(name)[3])
    assert not set(read(audit(name, [{first}, {3}]))) & COSTS


def test_pdmm_without_the_draws_gives_increments_and_no_constant():
    """On the complete graph anybody hears everybody; the draws of a link belong to its two ends."""
    report = audit("pdmm", scene_of=(P, ALL, 1, {0}))
    assert outright(report) == {"curvature", "start"}


def test_push_sum_methods_give_curvature_to_one_out_neighbour():
    for name in ("add-opt", "push-diging"):
        assert "curvature" in outright(audit(name, [{1}]))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("huang", {}), ("tailoring", {}), ("tailoring-tracking", {}), ("extra", {"mechanisms": "message-noise"}),
        ("admm", {"mechanisms": "message-noise"}), ("dgd", {"mechanisms": "function-masks"}),
    ],
)
def test_nothing_exact_is_read_from_noise(name, given):
    assert not set(read(audit(name, **given))) & COSTS


def test_what_mechanisms_leave():
    everybody = (P, ALL, 1, {0, 2, 3, 4})
    assert outright(audit("extra", mechanisms="correlated-noise", scene_of=everybody)) >= COSTS
    assert outright(audit("extra", mechanisms="function-sharing", scene_of=everybody)) >= COSTS
    some = (P, ALL, 1, {0, 2})
    assert not set(read(audit("extra", mechanisms="correlated-noise", scene_of=some))) & COSTS
    assert not set(read(audit("extra", mechanisms="function-sharing", scene_of=some))) & COSTS
    linear = audit("admm", mechanisms="function-sharing:curvature=0", scene_of=some)
    assert outright(linear) & COSTS == {"curvature"}  # linear shares leave it as it is
    sealed = audit("admm", mechanisms="encrypted-links", wiretap=True)
    assert outright(sealed, "wire") == set()
    assert outright(sealed, (0, 2)) >= COSTS
    keys = audit("admm", mechanisms="paillier-links:key_bits=256,weak_keys=true", iterations=4)
    assert outright(keys) >= COSTS  # the receiver reads everything


def test_a_projection_that_acts_hides_that_gradient_and_no_other():
    """One start lies outside a small ball; steps that end on its border are not inverted."""
    far = np.full((5, 2), 0.3)
    view, truth = controls.recorded("yan", P, B, {1, 2, 4}, stepsize=0.4, iterations=12, within="ball:0.5", x0=far)
    x = np.array([truth.states[k]["x"][0, :, 0] for k in range(-1, 12)])
    border = np.isclose(np.linalg.norm(x[1:], axis=1), 0.5)
    assert 0 < border[:11].sum() < 11
    (way,) = (e for e in NEW["A21"].run(view, 0) if e.asset == "along-the-way")
    assert error_of(way, truth) < 1e-10
    assert len(way.value) == 11 - border[:11].sum()


def test_a_sequence_of_graphs_is_inverted_too():
    always = {e for e in B.edges if e[0] == 0}  # else node 0 says nothing in every other iteration
    turns = sv.GraphSequence([sv.Graph(5, sorted({*B.edges[i::2], *always})) for i in range(2)])
    near = {*B.in_neighbours(0), *B.out_neighbours(0)}
    report = sv.audit("subgradient-push", P, turns, curious=[near], victims=[0], iterations=14, stepsize=0.02, advise=False)
    assert outright(report) >= COSTS
    mean = sv.audit("push-sum", MEAN, turns, curious=[near], victims=[0], iterations=14, advise=False, K=3)
    assert mean.of(0, "value")[0].verdict == "READ"


def test_secret_stepsizes_leave_the_direction():
    report = audit("lou")
    assert read(report) == {"offset": "READ UP TO"}
    assert report.of(0, "offset")[0].evidence["attack"] == "A24"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("push-sum", {"K": 3}), ("push-sum", {"K": 0}), ("push-sum", {"K": 2, "messages": "drawn"}), ("manitara", {}),
        ("state-decomposition", {}), ("paillier-consensus", {}), ("mo-murray", {"phi": 0.3, "iterations": 60}),
    ],
)  # fmt: skip
def test_who_hears_all_links_of_a_node_has_its_value(name, given):
    report = audit(name, wiretap=True, **given)
    for adversary in {v.adversary for v in report.verdicts}:
        (value,) = report.of(scene(name)[2], "value", adversary)
        assert value.verdict == "READ", adversary
        assert value.evidence["error"] < 1e-8


def test_values_that_stay_open():
    """One neighbour of two has the sum over the rest, by design, and not the value."""
    for name in ("push-sum", "manitara"):
        (value,) = audit(name, [{1}]).of(0, "value")
        assert value.verdict == "READ UP TO"
        assert value.evidence["nodes"] == [0, 2, 3, 4]
    for name in ("state-decomposition", "mo-murray"):
        assert not read(audit(name, scene_of=(MEAN, controls.CYCLE, 0, {1})))
    early = audit("mo-murray", iterations=12, phi=0.6).of(1, "value")[0]
    assert early.verdict == "NARROWED"  # the noise has not faded yet


def test_a_sum_that_is_opened():
    report = audit("private-sum", [{1}, {1, 2, 3, 4}])
    assert report.of(0, "value", (1,))[0].evidence["nodes"] == [0, 2, 3, 4]
    assert report.of(0, "value", (1, 2, 3, 4))[0].verdict == "READ"
    lone = audit("private-sum", [], wiretap=True).of(0, "value")[0]
    assert (lone.verdict, len(lone.evidence["nodes"])) == ("READ UP TO", 5)


def test_gradients_of_means_are_values():
    report = audit("dgd", scene_of=(MEAN, B, 0, {1, 2, 4}))
    assert report.of(0, "value")[0].verdict == "READ"


def test_two_servers():
    report = audit("two-servers", [{5}, {5, 6}, {1}, {1, 2, 3, 4}], wiretap=True)
    assert not read(report, (5,))
    for whole in ((5, 6), "wire", (1, 2, 3, 4)):
        assert outright(report, whole) == COSTS
    assert read(report, (1,)) == {"curvature": "READ UP TO", "group-sum": "READ UP TO"}
    assert report.of(0, "group-sum", (1,))[0].evidence["nodes"] == [0, 2, 3, 4]


# what a report rests on ----------------------------------------------------------------------------------------------


def test_who_is_taken_to_know_the_weights():
    about = lambda report: [line for line in (*report.assumptions, *report.public) if "weights" in line]
    assert about(audit("admm")) == []
    assert about(audit("dgd")) == [
        "weights are known to all", "who can send to whom, the method, its parameters and laws, and the weights",
    ]  # fmt: skip
    secret = audit(controls.PAPER, [{1}], mechanisms="secret-late-weights", iterations=6)
    assert about(secret) == ["stepsizes are known to all, weights from iteration 1 on are known to their owners only"]
    assert not any("x*" in line for line in audit("push-sum").public)
    assert not any(v.evidence.get("theorem") for v in audit("dgd").verdicts)  # the paper's theorems speak of another method


def test_a_view_that_the_method_did_not_make_is_not_replayed():
    view, _, _ = NEW["A21"].control()
    assert played(view) is not None
    off = {key: m.copy() for key, m in view.sent.items()}
    off[5, 0] += 0.01
    assert played(replace(view, sent=off)) is None
    assert played(replace(view, header={**view.header, "algorithm": "somebody's own"})) is None


# numbers that are not known ------------------------------------------------------------------------------------------


def test_what_equations_fix_against_the_null_space():
    """Random sparse systems: a functional is fixed if and only if it is orthogonal to the null space."""
    rng = np.random.default_rng(0)
    for size, rows in itertools.product((4, 9, 25), (2, 7, 20)):
        E = rng.integers(-2, 3, (rows, size)) * (rng.random((rows, size)) < 0.3)
        truth = rng.standard_normal(size)
        book = Book()
        u = book.array(size)
        for row in E:
            book.say(sum((float(c) * v for c, v in zip(row, u, strict=True) if c), 0.0), float(row @ truth))
        solved = Solved(book)
        assert solved.consistent
        _, s, V = np.linalg.svd(E)
        null = V[(s > 1e-9).sum() :]
        for functional in (*np.eye(size), *E, *rng.integers(-1, 2, (5, size))):
            value = solved.value(sum((float(c) * v for c, v in zip(functional, u, strict=True) if c), 0.0))
            if np.abs(null @ functional).max(initial=0.0) < 1e-9:
                assert abs(value - functional @ truth) < 1e-9
            else:
                assert np.isnan(value)


def test_equations_that_contradict_each_other_are_seen():
    book = Book()
    a, b = book.array(2)
    for form, value in ((a + b, 1.0), (a - b, 0.0), (a + 2 * b, 7.0)):
        book.say(form, value)
    assert not Solved(book).consistent


def test_arithmetic_with_unknowns():
    book = Book()
    a, b = book.array(2)
    book.say(a, 3.0)
    book.say(b, -2.0)
    value = Solved(book).value
    assert value(2 * a - b / 4 + 1) == 7.5
    assert value(1 - a) == -2
    assert value(a * b) == -6  # both are known by now
    assert a - a == 0
    c, d = book.array(2)
    assert isinstance(c * d, Affine)
    assert np.isnan(Solved(book).value(c * d))
    for stuck in (lambda: c > 0, lambda: bool(c), lambda: float(c), lambda: Functions(book).linalg.norm(np.array([c]))):
        with pytest.raises((Entangled, TypeError)):
            stuck()
    assert unknown(Functions(book).sqrt(np.array([c, 1.0], dtype=object)))
    assert Functions(book).sqrt(np.array([4.0, 1.0], dtype=object)).tolist() == [2.0, 1.0]


def test_what_cannot_be_asked_is_refused_as_before():
    with pytest.raises(InputError):
        audit("two-servers", [{1}], victims=[5])
