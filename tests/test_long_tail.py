"""What is rare and must be right all the same: sequences with mechanisms, odd starts, divergence in the dark, what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import Diverged
from sottovoce.node import Layer
from sottovoce.registry import Mechanism, Parameter
from sottovoce.simulate.task import prepare
from sottovoce.simulate.threads import play as play_threads
from sottovoce.weights import Uniform

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
G = sv.graphs.paper_b()
HALVES = [sv.Graph(5, [(0, 1), (2, 3), (4, 0)]), sv.Graph(5, [(1, 2), (3, 4)])]
BOTH = pytest.mark.parametrize("backend", ["eager", "compiled"])


@BOTH
def test_nothing_is_sent_over_an_edge_that_is_down_even_in_a_random_start(backend):
    result = sv.run("ab-tv", P, HALVES, mechanisms="random-start:K=3", stepsize=0.01, iterations=6, record=True, backend=backend)
    union = result.transcript.edges
    for k in range(6):
        up = [edge in HALVES[k % 2].edges for edge in union]
        for exchange in (0, 1):
            sent = result.transcript.sent[k, exchange]
            assert (np.isfinite(sent).all((1, 2)) == up).all()
        assert result.messages[k + 1] == 2 * sum(up)
    assert result.invariant < 10


def test_a_random_start_on_a_sequence_is_the_same_one_thread_a_node():
    options: dict[str, Any] = {"stepsize": 0.01, "iterations": 12, "mechanisms": "random-start:K=3"}
    eager = sv.run("ab-tv", P, HALVES, backend="eager", **options)
    task = prepare("ab-tv", P, HALVES, runs=1, seed=0, record=False, x0=None, every=1, tolerance=None, parameters={}, **options)
    assert np.abs(play_threads(task).x[:, :, 0] - eager.x[0]).max() < 1e-12 * np.abs(eager.x).max()


@BOTH
@pytest.mark.parametrize("options", [{"iterations": 100, "every": 100}, {"iterations": 49}, {"iterations": 300, "every": 7}])
def test_divergence_is_seen_however_seldom_one_looks(backend, options):
    with pytest.raises(Diverged, match=r"stepsize was 5; the advised one is 0\.2"):
        sv.run("private-gradient-tracking", P, G, stepsize=5.0, K=3, backend=backend, **options)


@BOTH
def test_a_start_at_zero_with_the_optimum_at_zero_is_no_divergence(backend):
    problem = sv.problems.average([[1.0], [-1.0], [2.0], [-2.0], [0.0]])
    options: dict[str, Any] = {"x0": np.zeros((5, 1)), "iterations": 600, "every": 60, "stepsize": 0.05}
    assert sv.run("ab", problem, sv.graphs.cycle(5), backend=backend, **options).final[0] < 1e-12


def test_a_run_that_a_wild_start_overflowed_does_not_blame_the_stepsize():
    with pytest.raises(Diverged, match="the stepsize is not to blame"):
        sv.run("private-gradient-tracking", P, G, K=30, law="log-laplace", iterations=600, stepsize=0.06)


@BOTH
def test_a_diverged_run_keeps_its_last_numbers(backend):
    with pytest.raises(Diverged) as caught:
        sv.run("ab", P, G, stepsize=0.9, iterations=2000, runs=3, backend=backend)
    result = caught.value.result
    assert result.x.shape == (3, 5, 2)
    assert np.isfinite(result.x).all()
    assert result.iterations == result.recorded[-1] == result.error.shape[1] - 1


def test_extra_does_not_drift():
    problem, graph = sv.problems.estimation(n=2, d=2, seed=0), sv.graphs.cycle(2)
    assert sv.run("extra", problem, graph, iterations=20_000, every=1000).final[0] < 1e-13


def test_what_a_cost_closes_over_is_read_when_the_problem_is_made():
    jnp = pytest.importorskip("jax.numpy")
    points = np.arange(6.0).reshape(3, 2)
    factor = 0.1
    cost = lambda x, p: jnp.sum((x - p) ** 2) + factor * jnp.sum(x**2)
    before = sv.Problem(cost, points, 2).optimum
    factor = 10.0
    after = sv.Problem(cost, points, 2).optimum
    assert np.allclose(before, points.mean(0) / 1.1)
    assert np.allclose(after, points.mean(0) / 11)


class Evenly(Layer):
    """Constant weights for a while."""

    @property
    def weights(self) -> Any:
        return self.inner.weighed({name: Even("row" if name in "RA" else "column") for name in "RACB"})


class Even(Uniform):
    """A mechanism's rule has no constant: it makes everybody stay at home."""

    def weigh(self, xp, side, raw, constant, aid=None):
        return side.is_loop * 1.0


HOME = Mechanism("home", "a test", Evenly, parameters={"K": Parameter(3, "how long")}, lasts="K", overrides=("weights",))


@BOTH
def test_a_mechanism_with_constant_weights_does_not_outlive_its_end(backend):
    from sottovoce.registry import Applied

    played = sv.run(
        "push-pull", P, G, mechanisms=Applied(HOME, (("K", 3),)), stepsize=0.06, iterations=1500, backend=backend, seed=1
    )
    assert played.final[0] < 1e-12


class Noisy(Layer):
    """Draws on edges under the call number that the method uses afterwards for pairs."""

    def pull(self, *terms: Any) -> Any:
        self.inner.draw("normal", terms[0][1], "edge")
        return self.inner.pull(*terms)


EDGY = Mechanism("edgy", "a test", Noisy, parameters={"K": Parameter(3, "how long")}, lasts="K", overrides=("pull",))


def gossip(node, s):
    w = node.weights
    x = node.pull((w.W, s.x))
    return s._replace(x=x + 0.01 * node.gather(node.exchange(node.draw("normal", s.x, "pair"))))


def test_what_was_drawn_ahead_for_a_mechanism_is_not_taken_for_the_method_s_own():
    from sottovoce.algorithms.dgd import start
    from sottovoce.registry import Applied

    method = sv.Algorithm("gossip", start, gossip, "a test", "nothing", graphs="two-way", weights={"W": sv.doubly("metropolis")})
    graph, stack = sv.graphs.star(5), Applied(EDGY, (("K", 3),))
    one, two = (
        sv.run(method, P, graph, mechanisms=stack, stepsize=0.1, iterations=10, record=True, backend=b).trajectory
        for b in ("eager", "compiled")
    )
    assert np.abs(one - two).max() < 1e-12


def test_weights_that_are_not_drawn_stay_what_they_are_beside_others_too_large_to_hold():
    problem = sv.problems.average(np.random.default_rng(0).normal(size=(400, 1)))
    options: dict[str, Any] = {"iterations": 3, "stepsize": 0.05, "R": "paper", "C": "uniform", "B": "identity"}
    many = sv.run("gradient-tracking", problem, sv.graphs.ring(400), runs=4800, every=3, backend="eager", **options)
    some = sv.run("gradient-tracking", problem, sv.graphs.ring(400), runs=[0, 4799], backend="eager", **options)
    assert np.abs(many.x[[0, -1]] - some.x).max() < 1e-12
