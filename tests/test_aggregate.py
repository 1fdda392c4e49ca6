"""Sums that are all a receiver can read: bit for bit the run without masks, uniform words on a link, and what remains readable."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import sottovoce as sv
from sottovoce.auditor.attack import attacks, error_of
from sottovoce.auditor.judge import Judge
from sottovoce.draws import SETUP, CounterDraws
from sottovoce.errors import ParameterError, Refused
from sottovoce.layout import co_senders
from sottovoce.simulate import eager, threads
from sottovoce.simulate.everynode import EveryNode
from sottovoce.simulate.onenode import OneNode
from sottovoce.simulate.own import Own
from sottovoce.simulate.task import prepare
from sottovoce.view import truth_of, view_of

B = sv.graphs.paper_b()
P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
MASKED, BARE = "aggregate-only", "aggregate-only:masks=absent"
CASES = [
    ("gradient-tracking", {"consensus": 2}, "", False), ("ab", {}, "", False), ("add-opt", {}, "", True),
    ("aug-dgm", {}, "", False), ("private-gradient-tracking", {"K": 1}, "pulls=open", False), ("subgradient-push", {}, "", False),
]  # fmt: skip


def played(method, mechanisms, graph=B, problem=P, **given):
    given = {"stepsize": 0.02, "iterations": 60, "record": True, "runs": 2, **given}
    return sv.run(method, problem, graph, mechanisms=mechanisms, **given)


def task_of(method, mechanisms, graph=B, **own):
    return prepare(
        sv.registry.algorithm(method), P, graph, stepsize=0.02, iterations=60, runs=1, seed=0, mechanisms=mechanisms, record=True,
        x0=None, every=1, tolerance=None, parameters=own,
    )  # fmt: skip


@pytest.mark.parametrize(("method", "own", "option", "compiled"), CASES)
def test_masks_change_no_bit(method, own, option, compiled):
    masked, bare = (sv.mechanism(f"aggregate-only:{option}", masks=masks) for masks in ("pairwise", "absent"))
    players = {
        "eager": lambda m: played(method, m, **own).trajectory,
        "threads": lambda m: np.moveaxis(threads.play(task_of(method, m, **own)).answers, -1, 1),
    } | ({"compiled": lambda m: played(method, m, backend="compiled", **own).trajectory} if compiled else {})
    found = {}
    for name, play in players.items():
        found[name] = play(masked)
        assert np.array_equal(found[name], play(bare)), name
    size = lambda a: np.maximum.accumulate(np.abs(a).max((1, 2, 3)))
    for name in found:  # the players round gradients otherwise, and fixed point steps by 2^-48
        gap = np.abs(found[name][:, :1] - found["eager"][:, :1]).max((1, 2, 3))
        assert (gap <= 1e-12 * size(found["eager"])).all()
    plain = played(method, (), **own).trajectory
    assert np.abs(plain - found["eager"]).max() < 1e-12  # fixed point is all that differs


def test_the_optimum_and_the_promise():
    """sum y = sum g in whole numbers, after any number of iterations, and the optimum to what 2^-48 allows."""
    method = "gradient-tracking"
    result = played(method, MASKED, iterations=1500, stepsize=0.06, runs=1)
    assert result.final.max() < 1e-12
    assert played("add-opt", MASKED, iterations=4500, stepsize=0.02, runs=1).final.max() < 1e-12
    for k in (9, 700, 1499):
        states = result.transcript.states[k]
        words = lambda v: [round(float(x) * 2**48) for x in v]  # y below 2^4 is a multiple of 2^-48
        for j in range(2):
            y, g = (states[name][:, j, 0] for name in "yg")
            assert np.abs(y).max() < 2**4
            assert sum(words(y)) == sum(words(np.rint(g * 2.0**48) / 2.0**48))
    masked, plain = (played(method, mechanisms, iterations=3) for mechanisms in (MASKED, ()))
    assert masked.messages.tolist() == plain.messages.tolist()
    assert masked.bytes.tolist() == plain.bytes.tolist()


def test_words_of_a_link_are_uniform_and_cancel():
    t = played("gradient-tracking", MASKED, iterations=600, runs=1).transcript
    bare = played("gradient-tracking", BARE, iterations=600, runs=1).transcript
    for exchange in (0, 1):
        for e, (_, r) in enumerate(B.edges):
            words, plain = (np.concatenate([tr.sent[k, exchange][e, :, 0] for k in range(600)]) for tr in (t, bare))
            assert words.dtype == np.uint64
            hidden = stats.kstest(words / 2.0**64, "uniform").pvalue, stats.kstest((words % 2**20) / 2.0**20, "uniform").pvalue
            assert (min(hidden) > 1e-4) == (len(B.in_neighbours(r)) > 1)  # a lone sender's words are bare
            assert stats.kstest(plain / 2.0**64, "uniform").pvalue < 1e-10
        for r in range(5):
            into = [e for e, edge in enumerate(B.edges) if edge[1] == r]
            for k in (0, 300):
                total = lambda tr, into=into, k=k, x=exchange: tr.sent[k, x][into, :, 0].sum(0)
                assert np.array_equal(total(t), total(bare))
    lanes = np.array([[t.sent[k, 1][e, 0, 0] / 2.0**64 for k in range(600)] for e in range(len(B.edges))])
    several = [len(B.in_neighbours(r)) > 1 for _, r in B.edges]
    fresh = [np.corrcoef(lane[1:], lane[:-1])[0, 1] for lane in lanes[several]]
    assert np.abs(fresh).max() < 0.2  # 599 pairs: five standard deviations


@pytest.mark.parametrize("graph", [B, sv.graphs.complete(6), sv.Graph(5, [(i, (i + 1) % 5) for i in range(5)])])
def test_a_node_makes_its_words_from_its_own_streams(graph):
    """The rows of the player of all nodes, each made by its node alone, which asks for no stream but those it shares."""
    problem = sv.problems.estimation(n=graph.n, d=3, seed=0)
    task = prepare(
        sv.registry.algorithm("ab"), problem, graph, stepsize=0.02, iterations=5, runs=1, seed=3, mechanisms=MASKED, record=False,
        x0=None, every=1, tolerance=None, parameters={},
    )  # fmt: skip
    like, whole = np.zeros((1, 3, 1)), EveryNode(eager.stage_of(task), -1, None, SETUP)
    rows, again = whole.cancelling(like), whole.cancelling(like)
    assert not rows.any() or not np.array_equal(rows, again)
    for me in range(graph.n):
        asked = []

        class Mine(CounterDraws):
            def between(self, xp, law, stream, k, sender, receiver, *rest, asked=asked):
                asked.extend(zip(np.atleast_1d(sender), np.atleast_1d(receiver), strict=True))
                return CounterDraws.four(self, xp, law, stream, k, sender, receiver, *rest)

        own = Own.of(task, me, None)
        own.draws = Mine(3)
        node = OneNode(own, -1, SETUP)
        mine = [e for e, (s, _) in enumerate(graph.edges) if s == me]
        assert np.array_equal(node.cancelling(like), rows[mine])
        assert all(me in pair and pair[0] != pair[1] for pair in asked)
    for r in range(graph.n):
        into = rows[[e for e, edge in enumerate(graph.edges) if edge[1] == r]]
        assert not into.sum(0).any()
        assert (len(into) == 1) == (not into.any())
    found = co_senders(graph)
    assert len(set(found.word.tolist())) == len(found.word)  # no block twice


def test_only_the_pair_knows_its_stream():
    graph = sv.graphs.complete(4)
    problem = sv.problems.estimation(n=4, d=2, seed=0)
    t = played("ab", MASKED, graph=graph, problem=problem, iterations=3, runs=1).transcript
    name = next(name for (name, k), d in t.draws.items() if k == 1 and d.law == "words")
    assert t.draws[name, 1][:3] == ("co-senders", "pair", "words")
    pairs = co_senders(graph)
    for coalition in ({0}, {0, 3}):
        seen = view_of(t, coalition).draws[name, 1].value[:, :, 0]
        for row, a, b in zip(seen, pairs.first, pairs.second, strict=True):
            assert row.any() == bool({int(a), int(b)} & coalition)


def test_a_lone_sender_is_read_and_the_audit_says_so():
    """Of node 1's in-neighbours only node 0 is honest: alone or with its colluder it has the gradient, masks or none."""
    lone = sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (2, 0), (0, 3)])
    problem = sv.problems.estimation(n=4, d=2, s=3, scale=0.5, seed=2)
    gallery = [a for a in attacks().values() if a.id in ("A1", "A2", "A3", "A8", "A17")]

    def words(mechanisms, graph, problem, who):
        t = played("ab", mechanisms, graph=graph, problem=problem, iterations=25, runs=1).transcript
        judge = Judge(lambda coalition: view_of(t, coalition), truth_of(t), graph, [0], lambda *_: None, gallery)
        return {v.asset: v for v in judge.verdicts(who)}

    offset = words(MASKED, lone, problem, (1,))["offset"]
    assert offset.verdict == "READ"
    assert offset.evidence["attack"] in ("A8", "A17")  # both work from the receiver's own states
    hidden = words(MASKED, B, P, (1,))
    assert {hidden[asset].verdict for asset in ("offset", "curvature")} == {"NOT DECIDED"}
    assert words(MASKED, B, P, (1, 3))["offset"].verdict == "READ"  # node 1 hears nodes 0 and 3
    assert words((), B, P, (1,))["offset"].verdict == "READ"  # without the mechanism


def test_curvature_is_fitted_from_the_sums():
    """System identification needs no message: a known linear system shows in the coalition's own x and y."""
    problem = sv.problems.estimation(n=5, d=1, s=3, scale=0.5, seed=2)
    t = played("gradient-tracking", MASKED, problem=problem, stepsize=0.1, iterations=80, runs=1).transcript
    view, truth = view_of(t, {1, 2}), truth_of(t)
    assert view.sent[5, 0].dtype == np.uint64
    found = attacks()["system-identification"].run(view, 0)
    assert found
    assert error_of(found[0], truth) < 1e-6


REFUSED = [
    ("no room for K=2", "private-gradient-tracking", "aggregate-only:pulls=open", {"K": 2}),
    ("take weights that follow from the graph", "private-gradient-tracking", MASKED, {"K": 0}),
    ("take weights that follow from the graph", "gradient-tracking", (MASKED, "random-start:K=1"), {}),
    ("only if all of them send", "push-diging", MASKED, {"graph": sv.GraphSequence([B, B])}),
    ("masks must be one of pairwise, absent", "ab", "aggregate-only:masks=some", {}),
    ("both change exchange, hear, pull, push", "ab", (MASKED, "message-noise"), {}),
]


@pytest.mark.parametrize(("words", "method", "mechanisms", "own"), REFUSED)
def test_refused_with_a_reason(words, method, mechanisms, own):
    with pytest.raises(ParameterError, match=words):
        played(method, mechanisms, **own)


def test_messages_that_are_no_sums_are_refused():
    said = SimpleNamespace()
    layer = sv.registry.mechanisms()["aggregate-only"].wrap(said, None, None)
    for verb in (layer.exchange, layer.hear):
        with pytest.raises(ParameterError, match="messages that are no sums"):
            verb(None)


def test_overflow_is_refused():
    large = np.full((5, 2), 2.0**15 / 5)
    for backend in ("eager", "compiled"):
        with pytest.raises(Refused, match=r"iteration 1, node 0.*stay below 2\^15 only if each is below 6.55e\+03"):
            played("gradient-tracking", MASKED, x0=large * 4, backend=backend)
    assert played("gradient-tracking", MASKED, x0=large * 0.2, stepsize=1e-4, iterations=2, runs=1).iterations == 2
    with pytest.raises(Refused, match=r"iteration 1, node \d: a number is too large"):
        threads.play(prepare(
            sv.registry.algorithm("ab"), P, B, stepsize=0.02, iterations=3, runs=1, seed=0, mechanisms=MASKED, record=False,
            x0=large * 4, every=1, tolerance=None, parameters={},
        ))  # fmt: skip
