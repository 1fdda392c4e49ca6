"""The network of 100 nodes, and what of the simulations is not published."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Diverged
from ...run import run
from ...stepsize import stepsize
from .. import ring, setting
from ..item import UNCHECKED, Claim, Finding, judged, register

METHOD = "private-gradient-tracking"
EQUAL: dict[str, Any] = {"R": "uniform", "A": "R", "C": "uniform", "B": "C"}


def n100(quick: bool) -> Finding:
    """By spectral radius and by running: the paper's step, the best one for equal weights, and other weights on the same links."""
    problem, graph, hub = ring.problem(), ring.one_way(), ring.through_a_hub()
    try:
        run(METHOD, problem, graph, K=setting.K, stepsize=setting.STEPSIZE, iterations=2000)
        diverged = 0
    except Diverged as error:
        diverged = error.result.iterations
    equal = stepsize("push-pull", problem, graph)
    other = stepsize("push-pull", problem, graph, R=hub["R"], C=hub["C"])
    last = 100_000 if quick else 600_000
    long = run(METHOD, problem, graph, K=setting.K, stepsize=equal.good, iterations=last, every=1000, **EQUAL)
    short = run(METHOD, problem, graph, K=setting.K, stepsize=other.good, iterations=5000, every=10, **hub)
    third = ring.uniform(graph)[0]
    radius = {
        "equal weights": ring.rate(problem, third, third, equal.good),
        "through a hub": ring.rate(problem, hub["R"], hub["C"], other.good),
    }
    digits = {name: _digit(rate) for name, rate in radius.items()}
    rates = {"equal weights": _digit(long.rate()), "through a hub": _digit(short.rate())}
    numbers = {
        "diverged_at": diverged, "stepsize": {"equal weights": equal.good, "through a hub": other.good},
        "a_digit_by_radius": digits, "a_digit_measured": rates,
        "final": {"equal weights": float(long.final[0]), "through a hub": float(short.final[0])},
    }  # fmt: skip
    fine = diverged > 0 and short.final[0] < 1e-10 and all(abs(rates[name] / digits[name] - 1) < 0.1 for name in rates)
    return judged(
        fine,
        f"with the stepsize 0.06 of the other simulations it diverges (stopped at iteration {diverged}). With equal weights the "
        f"best step is {equal.good:.1e}: linear, {digits['equal weights']:,.0f} iterations a digit by spectral radius and "
        f"{rates['equal weights']:,.0f} on a run of {last:,}. With weights through a hub, {other.good:.1e}: "
        f"{rates['through a hub']:,.0f} a digit, down to an error of {short.final[0]:.0e}.", numbers,
        "The paper names neither stepsize nor weights for it, and with what it names elsewhere it diverges. Linear it is, with "
        "a step a thousand times smaller and equal weights very slowly, whatever the data; a picture of some thousand "
        "iterations needs weights that keep values from going round (figure 7), or links both ways.",
    )  # fmt: skip


def _digit(rate: Any) -> float:
    return float(-np.log(10) / np.log(rate))


def data(quick: bool) -> Finding:
    optimum = ", ".join(f"{v:.4f}" for v in setting.problem().optimum)
    why = "Q_i and z_i are not published, nor are the seeds, and the code is not. All figures here are for data of our own."
    return Finding(UNCHECKED, f"the optimum of the data drawn here is [{optimum}].", why, {"optimum": optimum})


def graph(quick: bool) -> Finding:
    why = "The drawing is not in the source that is available, and no adjacency matrix is printed. The figures here use a stand-in."
    b = setting.graph()
    return Finding(
        UNCHECKED,
        f"the stand-in has {b.n} nodes, {len(b.edges)} links, and is strongly connected.",
        why,
        {"edges": [list(edge) for edge in b.edges]},
    )


for number, name, text, where, check in (
    (25, "n100", "With 100 nodes, each sending to the next two, convergence is still linear.", "Figure 7; section 5.2.4", n100),
    (30, "data", "The optimum of the estimation problem is [0.6881, 0.5103].", "Section 5.2.2", data),
    (31, "graph-b", "The simulations of section 5.2 play on the graph of figure 1 (b).", "Figure 1; section 5.2", graph),
):
    register(Claim(name, number, text, where, check))
