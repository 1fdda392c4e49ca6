"""The audit as a whole: verdicts that stand, and fall with a mutation; coalitions, names, files, pages, advice."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce import controls
from sottovoce.auditor.verdict import PROTECTION, WORDS

PAPER = "private-gradient-tracking"
P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
B = sv.graphs.paper_b()
GOLDEN = Path(__file__).with_name("golden") / "audit.json"
QUICK = {"iterations": 80, "stepsize": 0.02, "advise": False}


def word(report, node, asset, adversary=None):
    """The worst verdict on an asset of a node."""
    return min((v.verdict for v in report.of(node, asset, adversary)), key=PROTECTION.get)


def against(method, curious, victim=0, problem=P, graph=B, **options):
    return sv.audit(method, problem, graph, curious=[curious], victims=[victim], **{**QUICK, **options})


def forged(transcript, change):
    """The transcript with some of its draws changed after the run; `change` gives another draw, or None to keep it."""
    draws = {key: transcript.draws[key] for key in transcript.draws}
    return replace(transcript, draws={key: change(key, d) or d for key, d in draws.items()})


# verdicts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "offset", "curvature"),
    [
        ("ab", "READ", "READ"), ("diging", "READ", "READ"), ("push-pull-zhang", "READ", "READ"),
        ("push-pull", "NOT DECIDED", "READ"), (PAPER, "WITNESSED", "READ"),
    ],
)
def test_an_out_neighbour(method, offset, curvature):
    report = against(method, {1})
    assert word(report, 0, "offset") == offset
    assert word(report, 0, "curvature") == curvature
    assert {v.asset for v in report.verdicts} == {"offset", "curvature", "along-the-way", "record", "group-sum", "start"}
    assert all(v.verdict in WORDS for v in report.verdicts)


def test_evidence_says_how_to_see_it_again():
    (curvature,) = against(PAPER, {1}, K=3).of(0, "curvature")
    assert curvature.evidence["error"] < 1e-10
    assert curvature.evidence["seed"] == 0
    again = eval(curvature.evidence["command"], {"sv": sv, "problem": P, "graph": B})
    assert again.of(0, "curvature")[0].evidence["error"] == curvature.evidence["error"]


def test_an_enclosed_node_and_a_pocket():
    leaf = against(PAPER, {1}, graph=controls.LEAF)
    assert word(leaf, 0, "offset") == "READ"
    pocket = against(PAPER, {2}, graph=controls.POCKET, iterations=120)
    assert word(pocket, 0, "group-sum") == "READ UP TO"
    assert word(pocket, 0, "offset") == "WITNESSED"


def test_a_wire_tapper_and_sealed_links():
    options = {"curious": [], "wiretap": True, **QUICK}
    assert word(sv.audit(PAPER, P, B, **options), 0, "offset") == "READ"
    sealed = sv.audit(PAPER, P, B, mechanisms="encrypted-links", **options)
    assert {v.verdict for v in sealed.verdicts} == {"NOT DECIDED"}


# mutations, made in the transcript where a player would refuse them --------------------------------------------------


def test_no_random_start_is_read():
    assert word(against(PAPER, {1}, K=0), 0, "offset") == "READ"


def test_a_column_that_does_not_sum_to_one_has_no_witness():
    transcript = sv.run(PAPER, P, B, iterations=60, stepsize=0.02, record=True).transcript
    assert word(sv.audit_transcript(transcript, curious=[{1}], victims=[0]), 0, "offset") == "WITNESSED"
    off = lambda key, d: d._replace(value=d.value + 1e-6) if key == ("C", 0) else None
    assert word(sv.audit_transcript(forged(transcript, off), curious=[{1}], victims=[0]), 0, "offset") == "NOT DECIDED"


def test_weights_that_are_reused_are_no_secret():
    assert word(against(PAPER, {1}, mechanisms="secret-late-weights"), 0, "curvature") == "NOT DECIDED"
    transcript = sv.run(PAPER, P, B, late="fixed", iterations=80, stepsize=0.02, record=True).transcript
    kept = lambda key, d: d._replace(known="me") if d.known == "all" else None
    report = sv.audit_transcript(forged(transcript, kept), curious=[{1}], victims=[0])
    assert word(report, 0, "curvature") == "READ UP TO"
    assert report.of(0, "curvature")[0].evidence["attack"] == "A20"


def test_a_constant_seed_is_found():
    transcript = sv.run(PAPER, P, B, iterations=60, stepsize=0.02, seed=7, record=True).transcript
    live = replace(transcript, header={**transcript.header, "kind": "deployment"})
    assert word(sv.audit_transcript(transcript, curious=[{1}], victims=[0]), 0, "offset") == "WITNESSED"
    assert word(sv.audit_transcript(live, curious=[{1}], victims=[0]), 0, "offset") == "READ"


def test_messages_of_noise_are_not_read():
    transcript = sv.run("ab", P, B, iterations=60, stepsize=0.02, record=True).transcript
    rng = np.random.default_rng(0)
    noise = replace(transcript, sent={key: rng.standard_normal(m.shape) for key, m in transcript.sent.items()})
    report = sv.audit_transcript(noise, curious=[{1}], victims=[0])
    assert not {v.verdict for v in report.verdicts} & {"READ", "READ UP TO", "WITNESSED"}


# what must hold for every graph --------------------------------------------------------------------------------------

STRONG = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda e: e[0] != e[1]), unique=True, max_size=5).map(
    lambda more: sv.Graph(4, sorted({(0, 1), (1, 2), (2, 3), (3, 0), *more}))
)
FOUR = sv.problems.estimation(n=4, d=2, s=3, scale=0.5, seed=3)


def words(graph, problem, curious, victim, x0):
    report = sv.audit(PAPER, problem, graph, curious=[set(c) for c in curious], victims=[victim], x0=x0, iterations=40,
        stepsize=0.01, advise=False)  # fmt: skip
    return {(v.asset, v.adversary): v.verdict for v in report.verdicts}


@settings(max_examples=6, deadline=None, derandomize=True)
@given(STRONG, st.permutations(range(4)))
def test_a_larger_coalition_is_never_held_off_better(graph, order):
    victim, a, b, c = order
    nested = [(a,), tuple(sorted((a, b))), tuple(sorted((a, b, c)))]
    found = words(graph, FOUR, nested, victim, None)
    for asset in {asset for asset, _ in found}:
        levels = [PROTECTION[found[asset, who]] for who in nested]
        assert levels == sorted(levels, reverse=True), (asset, levels)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(STRONG, st.permutations(range(4)), st.permutations(range(4)))
def test_other_names_change_nothing(graph, names, order):
    """Node i becomes names[i]; its cost and its start go with it, the random numbers do not."""
    victim, a, b, _ = order
    H, g, _ = FOUR.data
    new = np.argsort(names)
    moved = sv.problems.quadratic(np.asarray(H)[new], np.asarray(g)[new])
    there = sv.Graph(4, [(names[s], names[r]) for s, r in graph.edges])
    x0 = np.random.default_rng(0).standard_normal((4, 2))
    coalitions = [(a,), tuple(sorted((a, b)))]
    renamed = [tuple(sorted(names[j] for j in c)) for c in coalitions]
    one, two = words(graph, FOUR, coalitions, victim, x0), words(there, moved, renamed, names[victim], x0[new])
    for before, after in zip(coalitions, renamed, strict=True):
        for asset in {asset for asset, _ in one}:
            assert one[asset, before] == two[asset, after]


# transcripts, files, pages -------------------------------------------------------------------------------------------


def test_a_recorded_run_without_its_truth(tmp_path):
    transcript = sv.run(PAPER, P, B, iterations=120, stepsize=0.02, record=True).transcript
    loaded = sv.Transcript.load(transcript.save(tmp_path))
    report = sv.audit_transcript(loaded, curious=[{1}], victims=[0])
    assert word(report, 0, "curvature") == "READ"  # it foretold messages that it was not shown
    assert any("foretold" in line or "held back" in line for line in report.assumptions)


def test_late_weights_that_a_transcript_does_not_hold_are_not_taken_for_known():
    transcript = sv.run(PAPER, P, B, iterations=80, stepsize=0.02, record=True).transcript
    kept = {key: d for key in transcript.draws if (d := transcript.draws[key]).known != "all"}
    without = replace(transcript, draws=kept)
    assert word(sv.audit_transcript(without, curious=[{1}], victims=[0]), 0, "curvature") != "READ"


def settled(tree):
    """A report's JSON without what another processor rounds otherwise: three digits, and nothing of errors at rounding level."""
    if isinstance(tree, dict):
        return {key: settled(value) for key, value in tree.items() if key not in ("versions", "sottovoce", "numpy", "python")}
    if isinstance(tree, list):
        return [settled(value) for value in tree]
    if isinstance(tree, float):
        return 0.0 if abs(tree) < 1e-6 else float(f"{tree:.3g}")
    return tree


@pytest.fixture(scope="module")
def five():
    """The paper's algorithm on five nodes, everybody asked about everybody."""
    return sv.audit(PAPER, P, B, K=3, stepsize=0.06, iterations=100)


def test_the_report_of_the_five_nodes_is_what_it_was(five):
    """Write it anew with GOLDEN=write in the environment, and read the difference."""
    tree = settled(json.loads(five.to_json()))
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(tree, indent=1, sort_keys=True) + "\n")
    assert tree == json.loads(GOLDEN.read_text())


def test_a_page_stands_alone(five, tmp_path):
    page = five.save(tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    order = [page.index(title) for title in ("What this rests on", "What everybody learns by design", "Every verdict")]
    assert order == sorted(order)
    assert page.count("<svg") >= 1
    assert "@media print" in page
    for phrase in ("is private", "is safe", "is secure", "are private"):
        assert phrase not in page.lower()
    assert json.loads(five.save(tmp_path / "report.json").read_text())["schema"] == 1


def test_a_name_with_a_tag_in_it_stays_a_name():
    named = sv.Graph(5, B.edges, labels=["<b>A</b>", "B", "C", "D", "E"])
    page = sv.audit(PAPER, P, named, victims=[0], curious=[{1}], **QUICK)
    from sottovoce.auditor.page import page as draw

    assert "<b>A</b>" not in draw(page)
    assert "&lt;b&gt;A" in draw(page)


def test_worlds_are_written_side_by_side(tmp_path):
    against(PAPER, {1}, worlds=tmp_path)
    assert (tmp_path / "node-0-against-1").is_dir()
    assert list((tmp_path / "node-0-against-1").iterdir())


def test_the_table_of_attacks_is_what_was_expected_or_explained():
    """`make` itself refuses a letter that differs from the expected one without a reason, and a reason without a difference."""
    from sottovoce.paper.figures import audit_table

    numbers = audit_table.make(True, lambda text: None)
    letters = {row["title"]: "".join(c["letter"] for c in row["cells"]) for row in numbers["rows"]}
    assert letters["A7 sealed links tapped"] == "NNNNNNNN"
    assert letters["A3 curvature"][2:5] == "EEE"
    read = [c["error"] for row in numbers["rows"] for c in row["cells"] if c["letter"] == "E"]
    assert len(read) > 25
    assert max(read) < 1e-9
    assert max(c["error"] for c in numbers["rows"][-1]["cells"][:7]) < 1e-12
    page = audit_table.text(numbers)
    assert page.count("[") >= len(numbers["reasons"])
    wrong = audit_table.REASONS.pop(("A3 curvature", "AB"))
    try:
        with pytest.raises(sv.errors.ParameterError, match="nobody says why"):
            audit_table._explained(numbers["rows"][:-1])
    finally:
        audit_table.REASONS["A3 curvature", "AB"] = wrong


# advice --------------------------------------------------------------------------------------------------------------


def test_advice_holds_when_it_is_followed():
    said = against(PAPER, {1}, K=0, advise=True).advice
    assert any("offset" in line and "K=1" in line and "READ into WITNESSED" in line for line in said)
    assert word(against(PAPER, {1}, K=1), 0, "offset") == "WITNESSED"
    tapped = sv.audit(PAPER, P, B, curious=[], wiretap=True, victims=[0], **{**QUICK, "advise": True}).advice
    assert any("encrypted-links" in line for line in tapped)


def test_an_edge_is_advised_where_one_would_help():
    leaf = sv.audit(PAPER, P, controls.LEAF, curious=[{1}], victims=[0], **{**QUICK, "advise": True}).advice
    assert any("an edge both ways" in line and "READ into WITNESSED" in line for line in leaf)


def test_what_cannot_be_asked(five):
    with pytest.raises(sv.errors.InputError, match=r"\.json or \.html"):
        five.save("report.pdf")
    for wrong in ({"victims": [7]}, {"curious": [{9}]}, {"curious": [set()]}, {"at_most": 0}):
        with pytest.raises(sv.errors.InputError):
            sv.audit(PAPER, P, B, **{**QUICK, **wrong})
