"""Weight rules: what sums to one, within which bounds, and what is refused; as dense matrices on random digraphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.draws import WEIGHTS, CounterDraws, Stream
from sottovoce.errors import GraphError, UnknownName, WeightError
from sottovoce.laws import Law
from sottovoce.layout import Columns, Rows, layout
from sottovoce.simulate.task import prepare
from sottovoce.weights import Doubly, Identity, Links, Matrix, Metropolis, Paper, Raw, Sinkhorn, Uniform, rule

few = settings(max_examples=40, deadline=None)
SIDES = ("row", "column")


@st.composite
def digraphs(draw, two_way=False):
    """A cycle through all nodes in some order, and some more edges."""
    n = draw(st.integers(2, 8))
    order = draw(st.permutations(range(n)))
    cycle = set(zip(order, order[1:] + order[:1], strict=True))
    more = draw(st.lists(st.sampled_from(list(itertools.permutations(range(n), 2))), max_size=12))
    edges = cycle | set(more)
    return sv.Graph(n, sorted(edges | {e[::-1] for e in edges} if two_way else edges))


def dense(graph, entries):
    """(..., entries, c, runs) as (..., c, runs, n, n)."""
    place = layout(graph)
    W = np.zeros((*entries.shape[:-3], *entries.shape[-2:], graph.n, graph.n))
    W[..., place.target, place.source] = np.moveaxis(entries, -3, -1)
    return W


def table(graph, rule):
    return dense(graph, rule.constant(graph)[:, None, None])[0, 0]


def weighed(graph, rule, runs=5, k=0, coordinates=1, seed=1):
    """A drawn rule's weights as dense matrices."""
    place = layout(graph)
    ends = place.source, place.target
    if rule.pairwise:
        ends = np.minimum(*ends), np.maximum(*ends)
    (raw,) = CounterDraws(seed, runs).four(np, rule.law, Stream(WEIGHTS), k, *ends, coordinates, (0,))
    side = (Columns if rule.side == "column" else Rows)(place)
    return dense(graph, rule.weigh(np, side, raw, rule.constant(graph)[:, None, None]))


def allowed(graph):
    return graph.adjacency() + np.eye(graph.n) > 0


@few
@given(digraphs())
def test_rules_of_one_side(graph):
    for number, side in enumerate(SIDES):
        W = table(graph, Uniform(side))
        assert np.allclose(W.sum(1 - number), 1, rtol=1e-15)
        assert ((W > 0) == allowed(graph)).all()
        assert np.allclose(W, allowed(graph) / allowed(graph).sum(1 - number, keepdims=True))
        assert np.array_equal(table(graph, Identity(side)), np.eye(graph.n))


@few
@given(digraphs())
def test_sinkhorn_is_doubly_stochastic_on_the_edges_that_a_cycle_can_use(graph):
    W = table(graph, Sinkhorn())
    assert np.abs(W.sum(0) - 1).max() < 1e-13
    assert np.abs(W.sum(1) - 1).max() < 1e-13
    assert ((W > 0) == allowed(graph)).all()
    assert np.array_equal(table(graph, Doubly()), table(graph, Metropolis()) if graph.undirected else W)


@few
@given(digraphs(two_way=True))
def test_metropolis(graph):
    W, degree = table(graph, Metropolis()), allowed(graph).sum(0)
    assert np.array_equal(W, W.T)
    assert np.abs(W.sum(1) - 1).max() < 1e-15
    assert (np.diag(W) > 0).all()
    for i, j in graph.edges:
        assert W[i, j] == 1 / max(degree[i], degree[j])


@few
@given(digraphs(), st.sampled_from(SIDES), st.one_of(st.none(), st.floats(0.01, 1)))
def test_the_papers_sampler(graph, side, share):
    """Numbers in [eta, 1] whose rows or columns sum to one."""
    axis = -1 if side == "row" else -2
    sizes = allowed(graph).sum(axis)
    eta = None if share is None else share / sizes.max()
    W = weighed(graph, Paper(side, eta), runs=20)
    least = np.expand_dims(0.5 / sizes, axis) if eta is None else eta
    assert np.abs(W.sum(axis) - 1).max() <= 1e-15 * sizes.max()
    assert (np.where(allowed(graph), least, 0) * (1 - 1e-15) <= W).all()
    assert W.max() <= 1
    assert (W[..., ~allowed(graph)] == 0).all()
    assert W.std(1).max() > 1e-3 or share is not None


def test_the_papers_sampler_as_printed():
    """Row of node 2 of paper_b by hand: w = (1 - m eta) q / sum q + eta, q = (1 - eta) p + eta."""
    graph, eta = sv.graphs.paper_b(), 0.2
    senders = np.array([0, 1, 2])
    (p,) = CounterDraws(1, 1).four(np, "unit", Stream(WEIGHTS), 0, senders, np.full(3, 2), 1, (0,))
    q = (1 - eta) * p.ravel() + eta
    assert np.allclose(weighed(graph, Paper("row", eta), runs=1)[0, 0, 2, senders], (1 - 3 * eta) * q / q.sum() + eta, rtol=1e-14)


def test_eta_at_its_bound_is_uniform_and_above_it_refused():
    graph = sv.graphs.paper_b()
    for side, degree in (("row", graph.indegree), ("column", graph.outdegree)):
        m = degree.max() + 1
        W = weighed(sv.graphs.complete(4), Paper(side, 0.25))
        assert np.allclose(W, 0.25, rtol=1e-14)
        for eta in (1 / m * (1 + 1e-9), 1.0, 0.0, -0.1, float("nan"), float("inf")):
            expected = rf"eta = .* outside \(0, 1/\(degree \+ 1\)\]: node {degree.argmax()} weighs {m} values"
            with pytest.raises(WeightError, match=expected):
                Paper(side, eta).constant(graph)


def test_refusals_of_the_doubly_stochastic_rules():
    with pytest.raises(WeightError, match=r"metropolis weights need a two-way graph.*sinkhorn"):
        Metropolis().constant(sv.graphs.paper_b())
    with pytest.raises(WeightError, match="two-way"):
        Links().constant(sv.graphs.paper_b())
    with pytest.raises(WeightError, match="strongly connected"):
        Sinkhorn().constant(sv.Graph(3, [(0, 1), (1, 2)]))
    for awake in (0, -1, 1.1, float("nan")):
        with pytest.raises(WeightError, match="probability above 0"):
            Links(awake=awake).constant(sv.graphs.cycle(4, two_way=True))


@few
@given(digraphs(two_way=True), st.floats(0.05, 1))
def test_links_are_doubly_stochastic_for_any_draw(graph, awake):
    W = weighed(graph, Links(awake=awake), runs=20)[0]
    assert np.allclose(W, W.swapaxes(1, 2), atol=0)
    assert np.abs(W.sum(1) - 1).max() < 1e-14
    assert W.min() > -1e-15
    full = table(graph, Metropolis())
    off = ~np.eye(graph.n, dtype=bool)
    assert (np.isin(W[:, off], [0]) | (W[:, off] == full[off])).all()


@few
@given(digraphs(), st.sampled_from(["normal", "cauchy", "uniform"]))
def test_raw_columns_sum_to_one_and_rows_are_free(graph, name):
    columns = weighed(graph, Raw("column", Law(name)), coordinates=3)
    size = np.maximum(1, np.abs(columns).sum(-2))
    assert (np.abs(columns.sum(-2) - 1) / size).max() < 1e-14
    assert len(np.unique(columns[..., allowed(graph) & ~np.eye(graph.n, dtype=bool)])) == 3 * 5 * len(graph.edges)
    rows = weighed(graph, Raw("row", Law(name)), coordinates=3)
    assert np.abs(rows.sum(-1) - 1).min() > 0
    assert (rows < 0).any()


@pytest.mark.parametrize(
    "one", [Paper("row"), Paper("column"), Paper("row", 0.05), Links(awake=0.3), Uniform("row"), Sinkhorn("both")], ids=repr
)
def test_the_mean_is_the_mean(one):
    graph = sv.graphs.grid(2, 3) if one.pairwise else sv.graphs.paper_b()
    mean = dense(graph, one.mean(graph)[:, None, None])[0, 0]
    if one.law is None:
        assert np.array_equal(mean, table(graph, one))
        return
    drawn = weighed(graph, one, runs=20_000)[0]
    error = 5 * drawn.std(0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(0) - mean) <= error + 1e-15).all()


# your own matrix -----------------------------------------------------------------------------------------------------


def good():
    return table(sv.graphs.paper_b(), Uniform("row"))


def spoilt(i, j, value):
    W = good()
    W[i, j] = value
    return W


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.ones((4, 4)) / 4, r"expected a weight matrix of shape \(5, 5\).*got \(4, 4\)"),
        (good()[:, :4], r"got \(5, 4\)"),
        (spoilt(0, 1, 0.1), r"W\[0, 1\] = 0.1, but there is no edge from 1 to 0"),
        (spoilt(0, 4, -0.5), r"negative entry, W\[0, 4\] = -0.5"),
        (spoilt(2, 2, 0.5), r"row-stochastic.*row 2 sums to 1.16.*divide each row by its sum"),
        (spoilt(0, 4, np.nan), "NaN or infinity"),
        (spoilt(0, 4, np.inf), "NaN or infinity"),
        (spoilt(0, 1, np.nan), "NaN or infinity"),
        (spoilt(0, 0, 0.5 + 1e-6), r"row 0 sums to 1.000001"),
    ],
)
def test_bad_matrices_are_refused(matrix, said):
    with pytest.raises(WeightError, match=said):
        Matrix("row", matrix=matrix).constant(sv.graphs.paper_b())


def test_a_column_matrix_is_judged_by_its_columns():
    graph = sv.graphs.paper_b()
    W = table(graph, Uniform("column"))
    assert np.array_equal(table(graph, Matrix("column", matrix=W)), W)
    with pytest.raises(WeightError, match="row-stochastic"):
        Matrix("row", matrix=W).constant(graph)
    with pytest.raises(WeightError, match="column-stochastic"):
        Matrix("column", matrix=good()).constant(graph)
    with pytest.raises(WeightError, match=r"(row|column)-stochastic"):
        Matrix("both", matrix=W).constant(graph)


def test_a_rule_from_what_a_user_gives():
    assert rule("paper", "column", eta=0.1, K=3) == Paper("column", 0.1)
    assert rule(Paper("column"), "column", eta=0.3) == Paper("column")
    with pytest.raises(UnknownName, match="did you mean 'sinkhorn'"):
        rule("sinkhron", "row")
    for bad in (3, None, [1.0, 2.0]):
        with pytest.raises(WeightError, match=r"expected the name of a weight rule .*got"):
            rule(bad, "row")


def test_a_matrix_that_holds_no_numbers_is_refused():
    with pytest.raises(WeightError, match="number"):
        rule([["a", "b"], ["c", "d"]], "row").constant(sv.graphs.cycle(2))


def test_a_ragged_matrix_is_refused():
    with pytest.raises(WeightError):
        rule([[1.0, 0.0], [1.0]], "row").constant(sv.graphs.cycle(2))


# through the door ----------------------------------------------------------------------------------------------------


def task_of(method, graph, **parameters):
    problem = sv.problems.average(np.arange(5.0))
    return prepare(
        method, problem, graph, stepsize=0.1, iterations=4, runs=1, seed=0, mechanisms=(), record=False, x0=None, every=1,
        tolerance=None, parameters=parameters,
    )  # fmt: skip


def test_a_rule_of_the_wrong_side_is_refused():
    """Row weights where columns must sum to one lose sum y = sum g; columns for rows bias the answer quietly."""
    with pytest.raises(WeightError):
        task_of("ab", sv.graphs.paper_b(), C=Uniform("row"))
    with pytest.raises(WeightError):
        task_of("ab", sv.graphs.paper_b(), R=Uniform("column"))


def test_two_rules_where_weights_must_be_doubly_stochastic():
    with pytest.raises(WeightError, match=r"R must be doubly stochastic, but with the rule 'uniform' (row|column) . sums to"):
        task_of("diging", sv.graphs.paper_b(), R="uniform")
    assert task_of("diging", sv.graphs.cycle(5), R="uniform").tables["R"].shape == (10, 1, 1)


def test_a_drawn_rule_where_weights_must_be_doubly_stochastic():
    for method, name in (("diging", "R"), ("dgd", "W")):
        with pytest.raises(WeightError):
            task_of(method, sv.graphs.paper_b(), **{name: "paper"})


def test_eta_reaches_the_rule_and_late_fixes_it():
    graph = sv.graphs.paper_b()
    task = task_of("private-gradient-tracking", graph, eta=0.2, late="fixed")
    R, C = (dense(graph, task.tables[name])[0, 0] for name in "RC")
    assert np.abs(R.sum(1) - 1).max() < 1e-15
    assert np.abs(C.sum(0) - 1).max() < 1e-15
    assert R[allowed(graph)].min() >= 0.2 - 1e-15
    assert C[allowed(graph)].min() >= 0.2 - 1e-15
    assert len(np.unique(R[allowed(graph)])) == 13
    with pytest.raises(WeightError, match=r"eta = 0.4.*node"):
        task_of("private-gradient-tracking", graph, eta=0.4)


def test_tables_of_a_sequence():
    """Uniform on each graph, zero where an edge is absent, in the order of the schedule."""
    graphs = [sv.Graph(5, [(0, 1), (2, 3)]), sv.graphs.cycle(5), sv.Graph(5, [(4, 2), (1, 2)])]
    task = task_of("ab-tv", sv.GraphSequence([graphs[0], graphs[1], graphs[0], graphs[2]]))
    assert task.schedule.tolist() == [0, 1, 0, 2]
    for name, side, axis in (("R", "row", -1), ("C", "column", -2)):
        W = dense(task.graph, task.tables[name])[:, 0, 0]
        assert np.allclose(W.sum(axis), 1)
        for number, graph in enumerate(graphs):
            assert np.array_equal(W[number], table(graph, Uniform(side)))


def test_drawn_weights_on_a_sequence_keep_to_each_graph():
    graphs = [sv.Graph(5, [(0, 1), (2, 3)]), sv.graphs.cycle(5)]
    problem = sv.problems.average(np.arange(5.0))
    result = sv.run("ab-tv", problem, graphs, stepsize=0.1, iterations=4, R="paper", record=True)
    for k in range(4):
        W = dense(sv.GraphSequence(graphs).union, result.transcript.draws["R", k].value)[0, 0]
        assert np.abs(W.sum(1) - 1).max() < 1e-15
        assert ((W > 0) == allowed(graphs[k % 2])).all()


def test_one_matrix_cannot_serve_a_sequence_of_other_graphs():
    with pytest.raises((WeightError, GraphError), match="no edge"):
        task_of("ab-tv", [sv.graphs.cycle(5), sv.graphs.paper_b()], R=good())
