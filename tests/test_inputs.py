"""Bad input through sv.run: an error of our own that says what was expected, what came and what to do; nothing is left."""

from __future__ import annotations

import os

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import GraphError, InputError, ParameterError, ProblemError, SottovoceError, UnknownName, WeightError
from sottovoce.laws import Law
from sottovoce.registry import Parameter, at_least, one_of, parse_options, parse_value, positive, settle

NAN = float("nan")
PROBLEM = sv.problems.average(np.arange(5.0))
GRAPH = sv.graphs.paper_b()
WAY = sv.graphs.cycle(5, two_way=True)
PGT = "private-gradient-tracking"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch, capfd):
    """Whatever a test does here, nothing is printed and no file appears."""
    monkeypatch.chdir(tmp_path)
    yield
    assert tuple(capfd.readouterr()) == ("", "")
    assert os.listdir(tmp_path) == []


def refused(error, said, method="ab", problem=PROBLEM, graph=GRAPH, **options):
    options = {"stepsize": 0.1, "iterations": 3, **options}
    with pytest.raises(error, match=f"(?s){said}") as caught:
        sv.run(method, problem, graph, **options)
    assert isinstance(caught.value, SottovoceError)
    return caught.value


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "near"), [("abb", "'ab'"), ("private-gradient-traking", f"'{PGT}'"), ("pushpull", "'push-pull'"), ("", "known: ")]
)
def test_an_unknown_algorithm_gets_its_nearest_name(method, near):
    refused(UnknownName, f"there is no algorithm named '{method}'; .*{near}", method)


@pytest.mark.parametrize("backend", ["jax", "Eager", "gpu", "", None])
def test_backends(backend):
    refused(ParameterError, f"backend must be one of auto, eager, compiled, not {backend!r}", backend=backend)


def test_mechanisms():
    refused(UnknownName, "no mechanism named 'random-strat'; did you mean 'random-start'", mechanisms="random-strat")
    refused(ParameterError, "random-start.*has no parameter 'L'; it takes: K, law, scale", mechanisms="random-start:L=3")
    refused(ParameterError, "expected name=value, got 'K'", mechanisms="random-start:K")
    refused(ParameterError, "K must be a whole number, at least 0, not 'abc'", mechanisms="random-start:K=abc")
    refused(ParameterError, "cannot be used with dgd: it randomises the weights R, A, C and B", "dgd", mechanisms="random-start")
    refused(UnknownName, "no law named 'gauss'", mechanisms="random-start:law=gauss")
    refused(ParameterError, "contains the mechanism random-start already.*--set K=1", PGT, mechanisms=("random-start",))
    refused(ParameterError, "both change weights; choose one", mechanisms=("random-start", "random-start"))


@pytest.mark.parametrize("bad", [3, None, [3], {"random-start": 1}])
def test_mechanisms_that_are_none(bad):
    refused(InputError, "mechanism", mechanisms=bad)


# options -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iterations", "every", "runs"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "10", None, True, NAN])
def test_counts(name, bad):
    if (name, bad) == ("iterations", None):
        return  # as many as the method needs
    refused(ParameterError, f"{name} must be", **{name: bad})


@pytest.mark.parametrize("bad", [[], [-1], [0.5], [[1, 2]], ["1"], np.zeros((2, 2), int), [True], [2**64]])
def test_lists_of_runs(bad):
    refused(ParameterError, "runs must be how many, or a list of run numbers", runs=bad)


@pytest.mark.parametrize("bad", [0, 0.0, -1e-6, NAN, "small", [1e-3, 1e-4]])
def test_tolerances(bad):
    refused(ParameterError, "tolerance must be", tolerance=bad)


@pytest.mark.parametrize("bad", [-1, 2**64, 1.5, "7", NAN, None, [0]])
def test_seeds(bad):
    refused(ParameterError, "seed", seed=bad)


@pytest.mark.parametrize("bad", [0, -0.1, NAN, float("inf"), [0.1] * 5, np.full(5, 0.1), [[0.1]], None, "big", "0.1", 1j])
def test_stepsizes_of_a_method_with_one(bad):
    refused(ParameterError, "stepsize", stepsize=bad)


@pytest.mark.parametrize("bad", [[0.1] * 4, [0.1] * 4 + [0], [0.1] * 4 + [NAN], np.full((5, 1), 0.1), ["a"] * 5])
def test_stepsizes_one_a_node(bad):
    refused(ParameterError, "stepsize", "gradient-tracking", stepsize=bad)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (4, 1), (5, 2), (3, 5, 1), (1, 1, 5, 1), ()])
def test_shapes_of_x0(shape):
    refused(ParameterError, r"x0 must have shape \(5, 1\) or \(2, 5, 1\), not", x0=np.zeros(shape), runs=2)


@pytest.mark.parametrize("bad", [np.full((5, 1), NAN), [[np.inf]] * 5, [["a"]] * 5, [[1.0], [1.0, 2.0]], np.full((5, 1), 1j)])
def test_contents_of_x0(bad):
    refused(ParameterError, "x0", x0=bad)


@pytest.mark.parametrize("bad", [-1, 1.5, "3", NAN, float("inf"), [3], None])
def test_K(bad):
    refused(ParameterError, f"{PGT}: K must be a whole number, at least 0", PGT, K=bad)


@pytest.mark.parametrize("bad", [0, -1, NAN, float("inf"), "1", None])
def test_scale(bad):
    refused(ParameterError, "scale", PGT, scale=bad)


@pytest.mark.parametrize("bad", ["gauss", "", None, 3, "log-laplace:wide", "log-laplace:1e", "log-laplace:0"])
def test_laws(bad):
    refused(InputError, "law|spread", PGT, law=bad)


def test_a_law_with_its_scale_and_another_scale():
    refused(ParameterError, "scale", PGT, law=Law("cauchy", 5.0), scale=2.0)


@pytest.mark.parametrize("bad", [0.4, 0, -0.1, NAN, 1])
def test_eta(bad):
    refused(WeightError, "eta = .* is outside .* node [0-9] weighs 3 values .* at most 0.3333", PGT, eta=bad)


@pytest.mark.parametrize("bad", ["0.1", [0.1], 1j])
def test_eta_that_is_no_number(bad):
    refused(InputError, "eta", PGT, eta=bad)


def test_eta_for_weights_that_do_not_use_it():
    refused(ParameterError, "eta", "ab-tv", eta=0.2)


@pytest.mark.parametrize("bad", ["never", None, True, ["fresh"]])
def test_late(bad):
    refused(ParameterError, "late must be one of fresh, fixed", PGT, late=bad)


def test_unknown_parameters():
    refused(ParameterError, "ab has no parameter 'K'; it takes: R, A, C, B", K=3)
    refused(ParameterError, "has no parameter 'step_size'", **{"step-size": 1})
    refused(ParameterError, "dgd: decay must be in \\[0, 1\\], not 2", "dgd", decay=2)
    refused(ParameterError, "dgd: decay must be in \\[0, 1\\], not 'fast'", "dgd", decay="fast")
    refused(ParameterError, "awake must be a chance in", "asyn-dgm", graph=WAY, awake=0)


def test_weights():
    refused(UnknownName, "no weight rule named 'unifrom'; did you mean 'uniform'", R="unifrom")
    refused(WeightError, "metropolis weights need a two-way graph", R="metropolis")
    refused(WeightError, r"shape \(5, 5\), one row a node; got \(4, 4\)", R=np.eye(4))
    refused(WeightError, "row-stochastic matrix, but row 0 sums to 2", R=2 * np.eye(5))
    refused(WeightError, "no edge from 1 to 3", R=np.eye(5)[::-1])
    refused(WeightError, "expected the name of a weight rule", R=3)
    refused(WeightError, "NaN", C=np.full((5, 5), NAN))
    refused(WeightError, "expected the name of a weight rule", R=None)


# graphs --------------------------------------------------------------------------------------------------------------


def test_a_graph_that_is_not_strongly_connected_names_two_nodes():
    graph = sv.Graph(5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
    error = refused(GraphError, "not strongly connected: node . cannot reach node .; add edges", graph=graph)
    a, b = (int(word) for word in str(error).replace(";", " ").split() if word.isdigit())
    reach = np.linalg.matrix_power(graph.adjacency() + np.eye(5), 5)
    assert reach[b, a] == 0


def test_graphs_that_do_not_fit():
    refused(GraphError, "problem has 5 nodes but the graph has 4", graph=sv.graphs.cycle(4))
    refused(GraphError, "extra needs a two-way graph, but edge .* has no way back", "extra")
    refused(GraphError, "ab runs on one graph, not on a graph an iteration", graph=[GRAPH, GRAPH])
    refused(GraphError, "together are not strongly connected", "ab-tv", graph=[sv.Graph(5, [(0, 1)]), sv.Graph(5, [(1, 0)])])
    refused(GraphError, "every graph has the same nodes", "ab-tv", graph=[GRAPH, sv.graphs.cycle(4)])
    refused(GraphError, r"A\[0, 0\] is 1: a node does not send to itself; leave self-loops out", graph=np.ones((5, 5)))
    refused(GraphError, "square", graph=np.ones((5, 4)))
    refused(GraphError, "finite", graph=np.full((5, 5), NAN))
    refused(GraphError, "Graph", "ab-tv", graph=lambda k: None)


@pytest.mark.parametrize("bad", [None, 5, [], {}, "paper-b", sv.Graph])
def test_what_is_no_graph(bad):
    refused(GraphError, "a graph is a Graph|square", graph=bad)


def test_edges():
    with pytest.raises(GraphError, match=r"edge \(1, 1\).*does not send to itself"):
        sv.Graph(3, [(0, 1), (1, 1)])
    with pytest.raises(GraphError, match=r"edge \(0, 7\): there is no such node; the nodes are 0 to 2"):
        sv.Graph(3, [(0, 7)])


# problems ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [None, 3, np.zeros((5, 2)), lambda x: x, "estimation", sv.Problem])
@pytest.mark.parametrize("stepsize", [0.1, "auto"])
def test_what_is_no_problem(bad, stepsize):
    refused(ProblemError, "expected a sottovoce Problem, got", problem=bad, stepsize=stepsize)


def test_problem_and_graph_swapped():
    refused(ProblemError, "the problem comes before the graph", problem=GRAPH, graph=PROBLEM)


def test_a_numpy_gradient_cannot_be_compiled():
    problem = sv.Problem(gradient=lambda x, p: np.floor(x) - p, data=np.arange(5.0), d=1)
    said = "cannot trace a gradient written in NumPy; use backend='eager'"
    refused(ProblemError, said, problem=problem, backend="compiled")


def test_a_cost_that_jax_cannot_trace():
    pytest.importorskip("jax")
    with pytest.raises(ProblemError, match=r"JAX could not trace the cost .*write it with jax.numpy, or pass gradient="):
        sv.Problem(lambda x, p: float(x[0]) * p, np.arange(5.0), d=1)


def test_data_with_nan():
    for make in (sv.problems.average, sv.problems.rendezvous, sv.problems.total):
        with pytest.raises(ProblemError, match=r"holds nan at row 1.*remove or replace"):
            make([1.0, NAN, 2.0])
    with pytest.raises(ProblemError, match="nan"):
        sv.problems.estimation(Q=np.full((5, 3, 2), NAN), z=np.zeros((5, 3)))


def test_a_bad_option_is_found_before_anything_is_played():
    calls = []
    problem = sv.Problem(gradient=lambda x, p: calls.append(0) or x - p, data=np.arange(5.0), d=1)
    calls.clear()
    refused(ParameterError, "x0 must have shape", problem=problem, x0=np.zeros((1, 1)))
    refused(ParameterError, "tolerance", problem=problem, tolerance=0)
    assert calls == []


# settle and parse_options --------------------------------------------------------------------------------------------


def test_parse_options():
    assert parse_options("") == {}
    assert parse_options("K=3,law=cauchy") == {"K": 3, "law": "cauchy"}
    assert parse_options(" a-b = 1.5 ,c=True,d=none,,e=1e-3,f=x=y,g=") == {
        "a_b": 1.5, "c": True, "d": None, "e": 1e-3, "f": "x=y", "g": "",
    }  # fmt: skip
    for text in ("K", "K=1,law", "=,K"):
        with pytest.raises(ParameterError, match="expected name=value, got"):
            parse_options(text)


@pytest.mark.parametrize("text", ["=3", "K=1,K=2", "a-b=1,a_b=2"])
def test_options_without_a_name_or_given_twice(text):
    with pytest.raises(ParameterError):
        parse_options(text)


def test_parse_value_keeps_words():
    assert [parse_value(t) for t in ("3", "-2", "0.5", "true", "FALSE", "None", "abc", "1_0x")] == [
        3, -2, 0.5, True, False, None, "abc", "1_0x",
    ]  # fmt: skip


def test_settle():
    declared = {"K": at_least(0, 1, "help"), "scale": positive(1.0, "help"), "late": one_of(("a", "b"), "a", "help"),
                "eta": Parameter(None, "help")}  # fmt: skip
    assert settle("it", declared, {}) == {"K": 1, "scale": 1.0, "late": "a", "eta": None}
    assert settle("it", declared, {"K": 0, "eta": 3})["K"] == 0
    with pytest.raises(ParameterError, match="it has no parameter 'k'; it takes: K, scale, late, eta"):
        settle("it", declared, {"k": 3})
    with pytest.raises(ParameterError, match="it takes: none"):
        settle("it", {}, {"k": 3})
    for name, bad in (("K", -1), ("K", 0.5), ("K", "x"), ("scale", 0), ("scale", "x"), ("scale", NAN), ("late", "c")):
        with pytest.raises(ParameterError, match=f"it: {name} must be .*, not {bad!r}"):
            settle("it", declared, {name: bad})


def test_options_spelt_with_hyphen_and_underscore_at_once():
    with pytest.raises(ParameterError):
        settle("it", {"a_b": Parameter(0, "help")}, {"a-b": 1, "a_b": 2})
