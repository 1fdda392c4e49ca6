"""Figure 5: against the differential privacy of Huang, Mitra, Vaidya (2015) for epsilon 0.1, 1, 10, 100, a thousand repetitions.

The paper averages the trajectories; so does the lower panel. The mean over random starts is the mean of a heavy tail: it lies
far above the median and is made by a few runs, which is why the upper panel has medians and quantiles. c, q and p are not in the
paper; of a grid these show the trade-off best. Their method needs links both ways; the graph is the five-node one with those.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...run import run
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import ERROR, curve, legend, note, spread

EPSILONS = (0.1, 1.0, 10.0, 100.0)
OURS, NO_NOISE = "private, K = 3", "no noise"
ITERATIONS, RUNS = 600, 1000


def make(quick: bool, watch: Watch) -> Numbers:
    runs, problem = 100 if quick else RUNS, setting.problem()
    options: dict[str, Any] = {"iterations": ITERATIONS, "runs": runs, "seed": setting.SEED}
    bound = setting.longest_gradient(problem)
    curves, spent = {}, {}
    for epsilon in (*EPSILONS, np.inf):
        name = NO_NOISE if np.isinf(epsilon) else f"ε = {epsilon:g}"
        watch(f"Huang, {name}, {runs} runs")
        result = run("huang", problem, setting.two_way(), epsilon=epsilon, bound=bound, **setting.HUANG, **options)
        curves[name] = setting.thinned(result, spread(result.error), 200)
        spent[name] = None if result.spent is None else result.spent["epsilon"]
    watch(f"the private algorithm, {RUNS} runs, twice: the second time is measured")
    ours, timings = _timed()
    curves[OURS] = setting.thinned(ours, spread(ours.error), 200)
    early = ours.error[:, 10]
    tail = {"mean_over_median": float(early.mean() / np.median(early)), "share_of_ten_largest": _share(early)}
    huang = {**setting.HUANG, "bound": bound}
    told = setting.told(K=setting.K, runs={"private": RUNS, "huang": runs}, iterations=ITERATIONS, huang=huang)
    return {"parameters": told, "curves": curves, "spent": spent, "tail_at_10": tail, "timings": timings}


def _timed() -> tuple[Any, dict[str, Any]]:
    """A thousand repetitions, compiled where JAX is installed, and how long they take once they are."""
    options: dict[str, Any] = {"K": setting.K, "stepsize": setting.STEPSIZE, "iterations": ITERATIONS, "runs": RUNS}
    try:
        import jax  # noqa: F401

        options["backend"] = "compiled"
    except ImportError:
        options["backend"] = "eager"
    once = lambda: run("private-gradient-tracking", setting.problem(), setting.graph(), seed=setting.SEED, **options)
    once()
    began = time.perf_counter()
    result = once()
    return result, {"backend": result.backend, "runs": RUNS, "seconds": time.perf_counter() - began}


def _share(error: Any) -> float:
    """How much of the mean the ten largest of a thousand runs are."""
    return float(np.sort(error)[-10:].sum() / error.sum())


def draw(shown: Any, canvas: Any) -> None:
    above, below = canvas.subplots(2, 1, sharex=True)
    for i, name in enumerate((OURS, *(f"ε = {epsilon:g}" for epsilon in EPSILONS), NO_NOISE)):
        one = shown["curves"][name]
        band = (one["low"], one["high"]) if name in (OURS, "ε = 100") else ()
        curve(above, i, name if i == 0 else f"Huang, {name}", one["k"], one["median"], *band)
        curve(below, i, name, one["k"], one["mean"])
    runs = shown["parameters"]["runs"]
    note(above, f"medians of {runs['private']:,} runs (Huang: {runs['huang']:,}); two with 5 to 95 %")
    share = shown["tail_at_10"]["share_of_ten_largest"]
    note(below, f"means (private, k = 10: ten of the runs make {share:.0%} of it)")
    above.set(yscale="log", ylabel=ERROR)
    below.set(yscale="log", xlabel="iteration", ylabel="mean error")
    legend(canvas)


register(
    Figure(
        name="against-huang",
        number=5,
        title="Error of the private algorithm, and of Huang, Mitra, Vaidya (2015) for four epsilons and without noise",
        make=make,
        draw=draw,
        height=1.3,
    )
)
