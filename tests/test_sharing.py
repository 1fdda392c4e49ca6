"""Functions and noise that neighbours share so that they cancel: the same optimum, and what the others see of it."""

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import GraphError, ParameterError, UnknownName
from sottovoce.problems import catalogue
from sottovoce.simulate import threads
from sottovoce.simulate.task import prepare

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
LOGISTIC = catalogue.build("logistic:records=10")
MEAN = sv.problems.average(np.random.default_rng(5).normal(size=(5, 2)))
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
SHARING, LINEAR, NOISE = "function-sharing", "function-sharing:curvature=0", "correlated-noise"


def played(method, mechanism, problem=P, graph=TWO_WAY, **given):
    return sv.run(method, problem, graph, mechanisms=mechanism, **{"stepsize": 0.02, "iterations": 60, **given})


def gap(a, b):
    return (np.abs(a - b).max((2, 3)) / np.abs(a).max((2, 3))).max()


@pytest.mark.parametrize(
    ("method", "mechanism", "problem"),
    [
        ("extra", SHARING, P),
        ("dgd", "function-sharing:law=laplace", LOGISTIC),
        ("pdmm", LINEAR, P),
        ("dgd", NOISE, P),
        ("mo-murray", NOISE, MEAN),
    ],
)
def test_all_players_agree(method, mechanism, problem):
    given = {"problem": problem, "record": True}
    one, two = (played(method, mechanism, backend=backend, runs=2, **given) for backend in ("eager", "compiled"))
    assert gap(one.trajectory, two.trajectory) < 1e-12
    task = prepare(
        method, problem, TWO_WAY, stepsize=0.02, iterations=60, runs=1, seed=0, mechanisms=mechanism, record=True, x0=None,
        every=1, tolerance=None, parameters={},
    )  # fmt: skip
    assert gap(one.trajectory[:, :1], np.moveaxis(threads.play(task).answers, -1, 1)) < 1e-12
    assert gap(one.trajectory, played(method, (), runs=2, **given).trajectory) > 1e-3


def shared(transcript, slope, curvature):
    """S (n, 2, 2) and t (n, 2) of the functions that a transcript says were sent."""
    S, t = np.zeros((5, 2, 2)), np.zeros((5, 2))
    for (i, l), (a, b, c, *d) in zip(transcript.edges, transcript.sent[-1, 0][:, :, 0], strict=True):
        for node, sign in ((i, -1), (l, 1)):
            S[node] += sign * curvature * np.array([[a, b], [b, c]])
            t[node] += sign * slope * np.array(d)
    return S, t


@pytest.mark.parametrize(
    ("method", "slope", "curvature"), [("extra", 10.0, 1.0), ("aug-dgm", 3.0, 0.5), ("pdmm", 10.0, 0.0), ("admm", 1.0, 0.0)]
)
def test_the_others_see_the_shared_costs_and_nothing_else(method, slope, curvature):
    """Every message is that of a network whose costs are f - out + in from the beginning."""
    t = played(method, f"{SHARING}:slope={slope},curvature={curvature}", record=True, stepsize=0.05).transcript
    S, b = shared(t, slope, curvature)
    assert max(np.abs(S.sum(0)).max(), np.abs(b.sum(0)).max()) < 1e-14 * slope
    assert np.abs(b).min() > 1e-3
    H, first, _ = P.data
    other = sv.problems.quadratic(H + S, first - b)
    assert np.allclose(other.optimum, P.optimum, atol=1e-12)
    if method == "pdmm":
        return  # its own draws come after those of the functions, and are others without them
    plain = played(method, (), problem=other, record=True, stepsize=0.05).transcript
    for k in range(60):
        assert np.allclose(t.sent[k, 0], plain.sent[k, 0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("method", "mechanism", "problem", "given"),
    [
        ("extra", SHARING, P, {"iterations": 3000}),
        ("private-gradient-tracking", SHARING, P, {"iterations": 3000}),
        ("diging", "function-sharing:slope=100,curvature=0", P, {"iterations": 1500, "stepsize": "auto"}),
        ("extra", SHARING, LOGISTIC, {"iterations": 2500}),
        ("admm", LINEAR, LOGISTIC, {"iterations": 300, "stepsize": "auto"}),
    ],
)
def test_the_optimum_is_exact(method, mechanism, problem, given):
    result = played(method, mechanism, problem=problem, **given)
    assert result.final.max() < 1e-10


def test_noise_cancels_over_all_nodes_and_fades():
    noisy, plain = (played("extra", m, iterations=1000, stepsize=0.3, record=True) for m in (NOISE, ()))
    x, y = noisy.trajectory[1, 0], plain.trajectory[1, 0]
    assert np.allclose(x.sum(0), y.sum(0), atol=1e-14)
    assert np.abs(x - y)[1:].min() > 1e-3  # node 0 weighs all alike, and hears the noise cancel
    for decay in (1, 3):
        error = played("extra", f"{NOISE}:decay={decay}", iterations=2000, stepsize=0.3).error[0]
        k = np.arange(400, 2000)
        assert abs(np.polyfit(np.log(k), np.log(error[k]), 1)[0] + decay) < 0.25
    assert noisy.messages[1:].tolist() == [20] * 1000  # s, then x
    mean = played("mo-murray", NOISE, problem=MEAN, record=True, iterations=20, phi=1e-9).transcript
    assert np.allclose(mean.states[19]["x"].sum(0), 5 * MEAN.optimum[:, None], atol=1e-9)


@pytest.mark.parametrize(
    ("error", "words", "method", "mechanism", "given"),
    [
        (GraphError, "function-sharing needs a two-way graph", "ab", SHARING, {"graph": sv.graphs.paper_b()}),
        (GraphError, "correlated-noise needs a two-way graph", "dgd", NOISE, {"graph": sv.graphs.paper_b()}),
        (ParameterError, "need not be convex, so its prox need not exist", "admm", SHARING, {}),
        (ParameterError, "it adds to costs, and this method has none", "mo-murray", SHARING, {"problem": MEAN}),
        (ParameterError, "one doubly stochastic weight, as in dgd", "diging", NOISE, {}),
        (ParameterError, "curvature must be 0 or above, not -1", "extra", "function-sharing:curvature=-1", {}),
        (ParameterError, "slope must be a number above 0", "extra", "function-sharing:slope=0", {}),
        (UnknownName, "no law named 'gauss'", "extra", "function-sharing:law=gauss", {}),
        (ParameterError, "law must be one of uniform", "extra", "correlated-noise:law=cauchy", {}),
        (ParameterError, "decay must be a number above 0", "extra", "correlated-noise:decay=0", {}),
    ],
)
def test_what_breaks_the_theory_is_refused(error, words, method, mechanism, given):
    with pytest.raises(error, match=words):
        played(method, mechanism, **given)
