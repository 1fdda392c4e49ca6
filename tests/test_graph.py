"""Graphs, sequences of graphs, builders: against networkx and against definitions written out."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce import graphs
from sottovoce.errors import GraphError, ParameterError, UnknownName
from sottovoce.graph import Graph
from sottovoce.sequence import GraphSequence, as_graph

few = settings(max_examples=60, deadline=None)


@st.composite
def random_graphs(draw):
    n = draw(st.integers(1, 8))
    possible = list(itertools.permutations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    return n, edges


def reference(n, edges):
    g = nx.DiGraph()
    g.add_nodes_from(range(n))
    g.add_edges_from(edges)
    return g


def path_edges(n):
    return [(i, i + 1) for i in range(n - 1)] + [(i + 1, i) for i in range(n - 1)]


@few
@given(random_graphs())
def test_against_networkx(case):
    n, edges = case
    graph, g = Graph(n, edges), reference(n, edges)
    assert graph.edges == tuple(sorted(edges, key=lambda e: (e[1], e[0])))
    assert graph.indegree.tolist() == [g.in_degree(i) for i in range(n)]
    assert graph.outdegree.tolist() == [g.out_degree(i) for i in range(n)]
    for i in range(n):
        assert graph.in_neighbours(i) == tuple(sorted(g.predecessors(i)))
        assert graph.out_neighbours(i) == tuple(sorted(g.successors(i)))
    assert np.array_equal(graph.adjacency(), nx.to_numpy_array(g, nodelist=range(n)).T)
    assert graph.undirected == all((r, s) in edges for s, r in edges)


@few
@given(random_graphs())
def test_connectivity_against_networkx(case):
    n, edges = case
    graph, g = Graph(n, edges), reference(n, edges)
    assert graph.strongly_connected == nx.is_strongly_connected(g)
    if graph.strongly_connected:
        assert graph.no_path() is None
        assert graph.diameter == nx.diameter(g)
    else:
        i, j = graph.no_path()
        assert not nx.has_path(g, i, j)
        with pytest.raises(GraphError, match=f"no path from {i} to {j}"):
            _ = graph.diameter


@few
@given(random_graphs())
def test_round_trips(case):
    n, edges = case
    graph = Graph(n, edges)
    assert Graph.from_adjacency(graph.adjacency()) == graph
    assert Graph.from_networkx(graph.to_networkx()) == graph
    assert Graph(n, np.array(edges, dtype=np.int32).reshape(-1, 2)) == graph == Graph(n, iter(edges))
    assert hash(Graph(n, edges[::-1])) == hash(graph)


@pytest.mark.parametrize("broken", [False, True])
def test_large_search_agrees_with_networkx(broken):
    rng = np.random.default_rng(3)
    n = 700
    edges = {(i, (i + 1) % n) for i in range(n)} | {(int(a), int(b)) for a, b in rng.integers(0, n, (900, 2)) if a != b}
    if broken:
        edges = {(s, r) for s, r in edges if r != 77}
    graph, g = Graph(n, edges), reference(n, edges)
    assert graph.strongly_connected == nx.is_strongly_connected(g) != broken
    if broken:
        i, j = graph.no_path()
        assert not nx.has_path(g, i, j)
    else:
        assert graph.diameter == nx.diameter(g)


@pytest.mark.parametrize("n", [499, 500, 501, 502])
def test_diameter_on_both_sides_of_the_threshold(n):
    assert graphs.cycle(n).diameter == n - 1
    assert Graph(n, path_edges(n)).diameter == n - 1


def test_reverse():
    graph = graphs.grid(3, 4)
    assert all(graph.edges[graph.reverse[e]] == (r, s) for e, (s, r) in enumerate(graph.edges))
    with pytest.raises(GraphError, match=re.escape("edge (4, 0): there is no edge back")):
        _ = graphs.cycle(5).reverse
    assert len(Graph(1, []).reverse) == 0


def test_arrays_are_read_only_and_apart_from_the_input():
    given_edges = np.array([(1, 0), (0, 1)])
    graph = Graph(2, given_edges)
    given_edges[:] = 7
    assert graph.edges == ((1, 0), (0, 1))
    for array in (graph.sender, graph.receiver, graph.indegree, graph.outdegree, graph.reverse):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_equality_hash_digest_repr():
    graph = graphs.paper_b()
    assert repr(graph) == "Graph(n=5, edges=8, directed, strongly connected)"
    assert repr(Graph(3, [(0, 1), (1, 0)])) == "Graph(n=3, edges=2, two-way, not strongly connected)"
    named = Graph(5, graph.edges, labels="abcde")
    assert named != graph
    assert named.digest() == graph.digest() != Graph(6, graph.edges).digest()
    assert graph.digest() != graphs.cycle(5).digest()
    assert len(graph.digest()) == 64
    assert graph != "graph"


def test_labels():
    graph = Graph(3, [(0, 1), (1, 2)], labels=["x", "y", "z"])
    assert graph.index("z") == 2
    assert set(graph.to_networkx().edges) == {("x", "y"), ("y", "z")}
    with pytest.raises(GraphError, match=r"no node has the label 'w'; the labels are 'x', 'y', 'z'"):
        graph.index("w")
    with pytest.raises(GraphError, match=r"in all"):
        graphs.cycle(30).index([1])
    with pytest.raises(GraphError, match="'q', which is not among the 1 nodes"):
        Graph.from_labels(["p"], [("p", "q")])


def test_from_networkx():
    undirected = nx.Graph([("b", "a"), ("a", "c")])
    graph = Graph.from_networkx(undirected)
    assert graph.labels == ("b", "a", "c")
    assert graph.undirected
    assert len(graph.edges) == 4
    assert Graph.from_networkx(nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])).edges == ((1, 0), (0, 1))
    scrambled = Graph.from_networkx(nx.DiGraph([(2, 0), (0, 1)]))
    assert scrambled == Graph(3, [(2, 0), (0, 1)])  # node 0 is node 0, whatever came first
    with pytest.raises(GraphError, match=r"edge \(0, 0\).*a node does not send to itself"):
        Graph.from_networkx(nx.DiGraph([("a", "a")]))
    with pytest.raises(GraphError, match="expected a networkx graph, got int"):
        Graph.from_networkx(3)


@pytest.mark.parametrize(
    ("n", "edges", "options", "message"),
    [
        (0, [], {}, "at least one node; n is 0"),
        (2.5, [], {}, "whole number; got 2.5"),
        (3, [(2, 2)], {}, "edge (2, 2): a node does not send to itself; leave self-loops out"),
        (3, [(0, 1), (0, 3)], {}, "edge (0, 3): there is no such node; the nodes are 0 to 2 (n=3)"),
        (3, [(-1, 1)], {}, "edge (-1, 1)"),
        (3, [(0, 2**70)], {}, f"edge (0, {2**70})"),
        (3, np.array([(0, 2**63)], dtype=np.uint64), {}, f"edge (0, {2**63})"),
        (3, [(0, 1), (1, 2), (0, 1)], {}, "edge (0, 1): it is there more than once"),
        (2, [(0, 1), (0, 1)], {"labels": "ab"}, "edge (0, 1), labels ('a', 'b')"),
        (3, [(0, 1.0)], {}, "edge (0, 1.0): nodes are integers"),
        (3, [("a", "b")], {}, "edge ('a', 'b'): nodes are integers from 0; number them and pass names as labels="),
        (3, np.array([[0.0, 1.0]]), {}, "edge (0.0, 1.0): nodes are integers"),
        (3, [(0, 1, 2)], {}, "pairs (sender, receiver)"),
        (3, [(0, 1), (2,)], {}, "pairs (sender, receiver)"),
        (3, np.zeros((2, 3), dtype=int), {}, "an array of shape (2, 3)"),
        (3, 7, {}, "got int"),
        (3, [], {"labels": "ab"}, "one label for each of the 3 nodes is needed; got 2"),
        (3, [], {"labels": "aba"}, "label 'a' is there more than once"),
        (1, [], {"labels": [[0]]}, "cannot be hashed"),
    ],
)
def test_errors(n, edges, options, message):
    with pytest.raises(GraphError, match=re.escape(message)):
        Graph(n, edges, **options)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.zeros((2, 3)), "square; this has the shape (2, 3)"),
        ([[0, 1], [1, 1]], "A[1, 1] is 1: a node does not send to itself"),
        ([[0, 0.5], [1, 0]], "A[0, 1] is 0.5: an adjacency matrix holds 0 and 1; if these are weights, A != 0 has their links"),
        ([[1, -1], [-1, 1]], "A[0, 1] is -1: an adjacency matrix holds 0 and 1"),
        ([[0, np.nan], [1, 0]], "A[0, 1] is nan"),
        ([["x", "y"], ["z", "w"]], "square array of numbers"),
        ([[0, 1], [1]], "square array of numbers"),
    ],
)
def test_adjacency_errors(A, message):
    with pytest.raises(GraphError, match=re.escape(message)):
        Graph.from_adjacency(A)


def test_adjacency_direction():
    assert Graph.from_adjacency([[0, 0], [True, 0]]).edges == ((0, 1),)


def test_a_graph_that_fits_in_no_memory_is_refused():
    n = 10**9
    for text in (f"complete:{n}", f"ring:n={n}", f"star:{n}", f"path:{n}", f"exponential:{n}", f"scattered:{n}",
                 f"grid:rows={n},columns={n}", f"erdos-renyi:n={n},p=0.5"):  # fmt: skip
        with pytest.raises(GraphError, match="more than the 100,000,000 that fit in memory"):
            graphs.build(text)


@pytest.mark.parametrize("i", [-1, 3, 1.5])
def test_neighbours_of_nobody(i):
    with pytest.raises(GraphError, match=r"node"):
        graphs.cycle(3).in_neighbours(i)


def test_sequence():
    a, b = Graph(3, [(0, 1), (1, 2)]), Graph(3, [(2, 0)])
    sequence = GraphSequence([a, b, Graph(3, [(0, 1), (1, 2)])])
    assert sequence.distinct == (a, b)
    assert sequence.index(1, 7).tolist() == [1, 0, 0, 1, 0, 0]
    assert sequence.union == graphs.cycle(3)
    assert sequence.strongly_connected
    for row, graph in zip(sequence.active, sequence.distinct, strict=True):
        assert [e for e, there in zip(sequence.union.edges, row, strict=True) if there] == list(graph.edges)
    assert sequence.prepared(100) is sequence


def test_sequence_from_a_function():
    asked = []

    def at(k):
        asked.append(k)
        return graphs.cycle(4) if k % 2 else graphs.complete(4)

    sequence = GraphSequence(at)
    for read in ("union", "active", "distinct", "strongly_connected"):
        with pytest.raises(GraphError, match=r"function of the iteration; call prepared\(iterations\)"):
            getattr(sequence, read)
    with pytest.raises(GraphError, match="call prepared"):
        sequence.index(0, 1)
    known = sequence.prepared(5)
    assert asked == [0, 1, 2, 3, 4]
    assert known.index(0, 5).tolist() == [0, 1, 0, 1, 0]
    assert known.prepared(3) is known
    with pytest.raises(GraphError, match=r"known for 5 iterations; call prepared\(6\)"):
        known.index(0, 6)
    assert known.prepared(6).index(4, 6).tolist() == [0, 1]
    assert asked == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("given_graphs", "message"),
    [
        ([], "at least one"),
        ([graphs.cycle(3), 4], "iteration 1: expected a Graph, got int"),
        ([graphs.cycle(3), graphs.cycle(4)], "the first has n=3, this one n=4"),
        ([graphs.cycle(3), Graph(3, [], labels="abc")], "other labels"),
        (lambda k: "no", "iteration 0: expected a Graph, got str"),
    ],
)
def test_sequence_errors(given_graphs, message):
    with pytest.raises(GraphError, match=message):
        GraphSequence(given_graphs)
    with pytest.raises(GraphError, match="stop >= start"):
        GraphSequence([graphs.cycle(3)]).index(3, 1)


def test_as_graph():
    graph = graphs.paper_b()
    assert as_graph(graph) is graph
    assert as_graph(graph.adjacency()) == as_graph(graph.adjacency().tolist()) == graph
    assert as_graph(graph.to_networkx()) == graph
    assert as_graph([graph, graph]).distinct == (graph,)
    assert as_graph(lambda k: graph).prepared(2).union == graph
    assert as_graph(s := GraphSequence([graph])) is s
    for wrong in (None, "paper-b", 5, [], Graph):
        with pytest.raises(GraphError, match="a function of the iteration, a networkx graph or a square array"):
            as_graph(wrong)


@few
@given(st.integers(3, 12), st.data())
def test_builders_have_the_edges_of_their_definitions(n, data):
    everyone = range(n)
    two_way = data.draw(st.booleans())
    hops = tuple(data.draw(st.sets(st.integers(1, n - 1), min_size=1)))
    arcs = {(i, (i + h) % n) for i in everyone for h in hops}
    back = {(r, s) for s, r in arcs} if two_way else set()
    assert set(graphs.ring(n, hops, two_way).edges) == arcs | back
    assert graphs.cycle(n, two_way) == graphs.ring(n, (1,), two_way)
    assert set(graphs.complete(n).edges) == set(itertools.permutations(everyone, 2))
    assert set(graphs.star(n).edges) == {e for i in range(1, n) for e in ((0, i), (i, 0))}
    assert set(graphs.path(n).edges) == set(path_edges(n))
    powers = {2**j for j in range(n) if 2**j < n}
    assert set(graphs.exponential(n).edges) == {(i, (i + h) % n) for i in everyone for h in powers}


@few
@given(st.integers(1, 5), st.integers(1, 5))
def test_grid(rows, columns):
    expected = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    assert graphs.grid(rows, columns) == Graph.from_networkx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(0, 1000), st.booleans())
def test_random_builders(n, seed, two_way):
    for graph in (graphs.erdos_renyi(n, 0.7, seed, two_way), graphs.geometric(n, seed=seed)):
        assert graph.n == n
        assert graph.strongly_connected
    assert graphs.geometric(n, seed=seed).undirected
    assert graphs.erdos_renyi(n, 0.7, seed, two_way) == graphs.erdos_renyi(n, 0.7, seed, two_way)
    degree = seed % (n - 1)
    scattered = graphs.scattered(n, degree, seed)
    assert set(scattered.outdegree.tolist()) == {degree + 1}
    assert {(i, (i + 1) % n) for i in range(n)} <= set(scattered.edges)


def test_random_edges_have_their_probability():
    count = sum(graphs.erdos_renyi(40, 0.3, seed).adjacency() for seed in range(300))
    off = count[~np.eye(40, dtype=bool)] / 300
    assert abs(off.mean() - 0.3) < 0.005
    assert off.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 300), rel=0.1)
    count = sum(graphs.scattered(12, 3, seed).adjacency() for seed in range(2000)) / 2000
    others = [count[(i + h) % 12, i] for i in range(12) for h in range(2, 12)]
    assert np.abs(np.array(others) - 0.3).max() < 0.06  # over five standard deviations


def test_geometric_joins_near_points_only():
    near, far = graphs.geometric(600, radius=0.12, seed=1), graphs.geometric(600, radius=0.2, seed=1)
    assert set(near.edges) < set(far.edges)
    small = graphs.geometric(20, radius=1.5)
    assert small == graphs.complete(20)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.cycle(1), "n is a whole number, at least 2; got 1"),
        (lambda: graphs.ring(4, hops=(1, 4)), r"from 1 to n-1 = 3; got \(1, 4\)"),
        (lambda: graphs.ring(4, hops=()), "different whole numbers"),
        (lambda: graphs.complete(2.0), "whole number"),
        (lambda: graphs.erdos_renyi(10, 1.2), "p is a probability"),
        (lambda: graphs.erdos_renyi(50, 0.01), r"none of 100 graphs drawn with p = 0.01.*about p = 0.16 would do"),
        (lambda: graphs.geometric(50, radius=0.02), "about radius = 0.4 would do"),
        (lambda: graphs.geometric(50, radius=-1), "positive number"),
        (lambda: graphs.scattered(5, degree=4), "at most n - 2 = 3"),
        (lambda: graphs.scattered(50, seed=-1), "seed is a whole number, at least 0"),
    ],
)
def test_builder_errors(make, message):
    with pytest.raises(GraphError, match=message):
        make()


def test_the_advised_probability_does():
    graphs.erdos_renyi(50, 0.16)
    graphs.geometric(50, radius=0.4)


def test_paper_graphs():
    assert graphs.paper_a() == graphs.cycle(3)
    listed = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (2, 4), (3, 1)}
    assert set(graphs.paper_b().edges) == listed
    assert set(graphs.ring(100).edges) == {(i, (i + h) % 100) for i in range(100) for h in (1, 2)}


def test_builders_are_found():
    names = "complete cycle erdos-renyi exponential geometric grid paper-a paper-b path ring scattered star"
    assert " ".join(graphs.builders()) == names
    assert all(builder.__doc__ for builder in graphs.builders().values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("paper-b", graphs.paper_b()),
        ("paper_b", graphs.paper_b()),
        ("cycle:5", graphs.cycle(5)),
        ("cycle:5, two-way=yes", graphs.cycle(5, two_way=True)),
        ("ring:n=10,hops=1+2,two_way=true", graphs.ring(10, (1, 2), True)),
        ("grid:2,3", graphs.grid(2, 3)),
        ("erdos-renyi:20,p=0.4,seed=3", graphs.erdos_renyi(20, 0.4, 3)),
        ("geometric:20,radius=0.9", graphs.geometric(20, 0.9)),
        ("geometric:20,radius=none", graphs.geometric(20)),
    ],
)
def test_build(text, expected):
    assert graphs.build(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("rinng:5", UnknownName, "there is no graph named 'rinng'; did you mean 'ring'"),
        ("ring:n=5,hop=1", ParameterError, r"ring cannot use 'hop=1'; it accepts n, hops=1\+2, two_way=false"),
        ("ring:hops=1", ParameterError, "ring needs n; it accepts"),
        ("ring:n=5,n=6", ParameterError, "n is given twice"),
        ("ring:n=5,7", ParameterError, "cannot use '7'"),
        ("paper-b:5", ParameterError, "it accepts no parameters"),
        ("cycle:five", ParameterError, "cycle: n is a whole number; got 'five'"),
        ("cycle:5,two_way=maybe", ParameterError, "true or false; got 'maybe'"),
        ("ring:5,hops=1-2", ParameterError, "whole numbers joined by"),
        ("erdos-renyi:5,p=x", ParameterError, "p is a number"),
        ("nowhere.csv", GraphError, "there is no file nowhere.csv"),
    ],
)
def test_build_errors(text, error, message):
    with pytest.raises(error, match=message):
        graphs.build(text)


@pytest.mark.parametrize("ending", [".edges", ".txt", ".csv"])
def test_edge_files(tmp_path, ending):
    file = tmp_path / f"network{ending}"
    file.write_text("# a comment\nsender,receiver\n2,0\n0 1  # another\n\n1\t2\n")
    assert graphs.build(str(file)) == Graph(3, [(2, 0), (0, 1), (1, 2)])
    file.write_text("york,leeds\nleeds,york\n")
    assert graphs.build(str(file)) == Graph(2, [(0, 1), (1, 0)], labels=["york", "leeds"])
    file.write_text("5 7\n7 5\n")
    assert graphs.build(str(file)).labels == (5, 7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0 1\n0 1 2\n", "line 2: expected 'sender receiver'"),
        (b"# nothing\n", "holds no edges"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"a b\na b\n", r"edge \(0, 1\), labels \('a', 'b'\): it is there more than once"),
    ],
)
def test_edge_file_errors(tmp_path, content, message):
    file = tmp_path / "network.txt"
    file.write_bytes(content)
    with pytest.raises(GraphError, match=message):
        graphs.build(str(file))


def test_graphml(tmp_path):
    file = tmp_path / "network.graphml"
    for graph in (graphs.paper_b(), graphs.star(12), Graph(2, [(0, 1)], labels=["p", "q"])):
        nx.write_graphml(graph.to_networkx(), file)
        assert graphs.build(str(file)) == graph
    file.write_text("<graphml")
    with pytest.raises(GraphError, match="cannot be read as GraphML"):
        graphs.build(str(file))


def test_a_hundred_thousand_nodes():
    start = time.perf_counter()
    graph = graphs.scattered(100_000)
    edges = np.column_stack((graph.sender, graph.receiver))[::-1]
    assert Graph(100_000, edges) == graph
    assert graph.strongly_connected
    assert time.perf_counter() - start < 5


def test_small_graphs_load_no_scipy():
    code = (
        "import sys; from sottovoce import graphs; g = graphs.ring(100); g.diameter, repr(g), graphs.geometric(50);"
        "print([m for m in ('scipy', 'networkx', 'jax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
