"""The compiled player on an accelerator, where JAX finds one: the same trajectory, and many runs at once.

Without one it gives no rows. `python -m bench accelerator` asks for it by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import sottovoce as sv
from sottovoce.draws import UNIT, WEIGHTS, WORDS, CounterDraws, Stream
from sottovoce.laws import LAWS, Law
from sottovoce.simulate.compiled import float64

from .report import Row

FIGURE = "accelerator"
ITERATIONS, RUNS = 500, (1_000, 10_000, 100_000)


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    import jax

    if jax.default_backend() == "cpu":
        return []
    problem, graph = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0), sv.graphs.paper_b()
    wrong, far = different(), deviation(problem, graph)
    rows = [
        Row(FIGURE, "draws that differ from NumPy's, of 420,000", "draws", wrong, wrong, at_most=0),
        Row(FIGURE, "largest deviation of a trajectory from NumPy's", "of its largest entry", far, far, at_most=1e-12),
    ]
    device = jax.devices()[0].device_kind
    for runs in RUNS[: 2 if quick else 3]:
        play = lambda runs=runs: sv.run(
            "private-gradient-tracking", problem, graph, stepsize=0.06, K=3, iterations=ITERATIONS, runs=runs, backend="compiled"
        )
        play()
        times = [1e9 * t / (ITERATIONS * runs) for t in (timed(play) for _ in range(5))]
        rows.append(Row(FIGURE, f"{runs:,} runs on {device}, each", "ns an iteration", min(times), float(np.median(times))))
    return rows


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def different() -> int:
    """How many words, uniforms and draws of every law are not the same bits on the device."""
    import jax

    here, wrong = CounterDraws(3, 100), 0
    place = (Stream(WEIGHTS), 5, np.arange(50), np.arange(50) + 1, 3)
    for law in (UNIT, WORDS, *(Law(name) for name in LAWS)):
        with float64():
            draw = jax.jit(lambda seed, runs, law=law: CounterDraws.traced(seed, runs).four(jax.numpy, law, *place))
            there = [np.asarray(v) for v in draw(here.seed, here.runs)]
        wrong += sum(int((a != b).sum()) for a, b in zip(here.four(np, law, *place), there, strict=True))
    return wrong


def deviation(problem: sv.Problem, graph: sv.Graph) -> float:
    """Of every method's trajectory over 200 iterations (or as many as it takes) and 20 runs."""
    worst, values = 0.0, sv.problems.average(np.random.default_rng(0).normal(size=(5, 2)))
    for name, method in sv.registry.algorithms().items():
        if "compiled" not in method.players:
            continue
        network = graph if method.graphs in ("directed", "helpers") else sv.graphs.ring(5, two_way=True)
        costs = problem if method.minimises else values
        options = {"stepsize": 0.05, "iterations": method.takes or 200, "runs": 20, "record": True}
        one, other = (np.asarray(sv.run(name, costs, network, backend=b, **options).trajectory) for b in ("eager", "compiled"))
        scale = np.maximum(np.abs(one).max((1, 2, 3)), 1e-300)
        worst = max(worst, float((np.abs(one - other).max((1, 2, 3)) / scale).max()))
    return worst
