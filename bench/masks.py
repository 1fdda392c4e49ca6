"""The price of masks on costs: iterations until the error is 1e-8 of the first, masked over unmasked, mu = 1 (largest record).

Gradient tracking, 30 records a node, five nodes on few links (paper-b), on a ring with chords, and where all hear all: there
equal weights average at once, masks cancel before anybody moves, and they cost nothing. mu holds against everybody but one
neighbour. Stepsizes are the advised ones, of the masked costs behind masks; of several draws of masks the median counts. Rounds
are mixings of x and y: with `consensus=q` q of them come to an iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sottovoce as sv

from .report import Row

FIGURE = "masks"
FAR = 1e-8
RECORDS, MOST, DRAWS = 30, 4000, 5
BENT = 1200  # iterations at most behind random features, of which there must be 2 (T + 1) d
GT = "gradient-tracking"
GRAPHS = {"paper-b": sv.graphs.paper_b(), "ring": sv.graphs.ring(5), "complete": sv.graphs.complete(5)}


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    draws = 2 if quick else DRAWS
    rows = []
    for name, graph in GRAPHS.items():
        rows += [quadratic(name, graph, d, draws) for d in (3, 10)]
    return rows + [bent("paper-b", q, draws) for q in (1, 3)]


def data(d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(5 * RECORDS, d))
    return X, X @ rng.normal(size=d) + 0.5 * rng.normal(size=len(X))


def needed(problem: sv.Problem, graph: sv.Graph, draws: int, most: int, **given: Any) -> float:
    """Iterations until the error is 1e-8 of the first, the median over draws of masks and starts; infinite if never."""
    found = []
    for seed in range(draws):
        step = sv.stepsize(GT, problem, graph, seed=seed, **given).good
        error = sv.run(GT, problem, graph, stepsize=step, iterations=most, seed=seed, **given).error[0]
        there = np.flatnonzero(error <= FAR * error[0])
        found.append(float(there[0]) if len(there) else np.inf)
    return float(np.median(found))


def quadratic(name: str, graph: sv.Graph, d: int, draws: int) -> Row:
    X, y = data(d)
    problem, largest = sv.problems.least_squares(X, y, 5), (np.linalg.norm(X, axis=1).max(), np.abs(y).max())
    told = sv.protection(problem, graph, "function-masks:scale=1", bound=largest)
    masks = sv.mechanism("function-masks", scale=told.times(1.0))
    plain, masked = needed(problem, graph, draws, MOST), needed(problem, graph, draws, MOST, mechanisms=masks)
    ratio, note = masked / plain, f"{masked:.0f} over {plain:.0f}, scale {told.times(1.0):.3g}"
    return Row(FIGURE, f"least squares, d = {d}, {name}: iterations", "times", ratio, ratio, 3, note=note)


def bent(name: str, q: int, draws: int) -> Row:
    """Features hide where the run goes, so the run is rehearsed to scale them."""
    graph, (X, y) = GRAPHS[name], data(3)
    problem, largest = sv.problems.logistic(X, np.sign(y), 5), np.linalg.norm(X, axis=1).max()
    options: dict[str, Any] = {"kind": "matern", "scale": 1.0, "amplitude": 3.0, "features": 2 * (BENT + 1) * 3}
    masks = sv.mechanism("function-masks", **options)
    way = sv.run(GT, problem, graph, mechanisms=masks, iterations=BENT // 3, consensus=q, record=True)
    factor = sv.protection(problem, graph, masks, bound=largest, result=way).times(1.0)
    masks = sv.mechanism("function-masks", **{**options, "scale": factor, "amplitude": 3.0 * factor})
    plain = needed(problem, graph, draws, BENT)
    masked = needed(problem, graph, draws, BENT, mechanisms=masks, consensus=q)
    ratio, note = q * masked / plain, f"{masked:.0f} over {plain:.0f} iterations, amplitude {3.0 * factor:.3g}"
    return Row(FIGURE, f"logistic, d = 3, {name}, q = {q}: rounds", "times", ratio, ratio, 8 if q == 1 else 4, note=note)
