"""A10: the early weights hide a number behind a factor whose law is public, so its magnitude leaks.

A message lambda y says ln|y| = ln|lambda y| - ln|lambda|: a number plus noise of a known law. `game` says what that is
worth: bits learnt about ln|y| over a prior that is flat between 10^-3 and 10^3, and the AUC of telling 10 y from y. The
law is symmetric, so signs stay open: `run` speaks only of one coordinate, up to its sign, and only when it is narrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...laws import Law
from ...view import View
from ..attack import Attack, Estimate, Measured, register
from ..leakage import Game, play

Array = np.ndarray
GRID = np.linspace(np.log(1e-3), np.log(1e3), 2401)  # of ln|y|; the prior is flat on it
RATIOS = np.exp(np.linspace(np.log(1e-2), np.log(1e2), 41))  # |dg| / |y|, which nobody told us
NARROW = 0.05  # posterior spread of ln|y|
_LAW = re.compile(r"random-start\(K=(\d+), law=([a-z-]+)(?::([\d.e+-]+))?(?:\(scale ([\d.e+-]+)(?:, spread ([\d.e+-]+))?\))?"
                  r", scale=([\d.e+-]+)\)")  # fmt: skip


@dataclass(frozen=True)
class Magnitudes:
    """What the view says about ln|y^0| of a node: a posterior a coordinate."""

    posterior: Array  # (coordinate, grid), each row sums to one
    bits: Array  # (coordinate,), over the flat prior
    auc: float  # of 10 y against y, all coordinates together


def early_law(view: View) -> Law | None:
    """The declared law of the early weights and stepsizes; None where nothing is random at the start."""
    for text in view.header.get("mechanisms", ()):
        found = _LAW.fullmatch(text)
        if found and int(found[1]) > 0:
            spread = float(found[3] or found[5] or 8.0)
            return Law(found[2], float(found[4] or found[6]), spread)
    return None


def log_density(law: Law, t: Array) -> Array:
    """Log-density of ln|w| at t, w of the law, up to a constant."""
    t = t - np.log(law.scale)
    with np.errstate(over="ignore"):
        return {
            "normal": lambda: t - np.exp(2 * t) / 2,
            "laplace": lambda: t - np.exp(t),
            "uniform": lambda: np.where(t <= 0, t, -np.inf),
            "cauchy": lambda: t - np.logaddexp(0, 2 * t),
            "log-laplace": lambda: -np.abs(t) / law.spread,
        }[law.name]()


def log_sample(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draws of ln|w|."""
    t = np.log(law.magnitude(1 - rng.random(shape))) + np.log(law.scale)
    return np.where(rng.random(shape) < 0.5, 2 * np.log(law.scale) - t, t) if law.mirrored else t


def separation(density: Callable[[Array], Array], drawn: Array, ratio: float = 10.0) -> Game:
    """The game of y against ratio y; `density` is that of ln|w|, `drawn` (samples, views) holds draws of ln|w|."""
    half, shift = len(drawn) // 2, np.log(ratio)
    score = lambda t: np.clip(density(t - shift), -1e300, None).sum(1) - np.clip(density(t), -1e300, None).sum(1)
    return play(score(drawn[:half]), score(drawn[half:] + shift))


def first_messages(view: View, victim: int) -> tuple[Array, Array, Array] | None:
    """(x^0, Lambda y^0, [C y^0 + B dg of each out-edge that is seen]) with the axis of the runs last; None where not seen."""
    d, edges = int(view.header["coordinates"]), np.flatnonzero(view.graph.sender == victim)
    pulled, pushed = view.sent.get((0, 0)), view.sent.get((0, 1))
    if pulled is None or pushed is None or pulled.shape[1] != 2 * d or pushed.shape[1] != d:
        return None
    edges = [e for e in edges if np.isfinite(pulled[e]).all() and np.isfinite(pushed[e]).all()]
    return (pulled[edges[0], :d], pulled[edges[0], d:], pushed[edges]) if edges else None


def game(view: View, victim: int, ratio: float = 10.0, samples: int = 20_000) -> Magnitudes | None:
    """The posterior of the victim's |y^0|, the bits in it, and how well `ratio` y is told from y (at most 64 views of it)."""
    law, posterior = early_law(view), magnitudes(view, victim)
    if law is None or posterior is None:
        return None
    bits = (posterior * np.log2(np.maximum(posterior, 1e-300) * len(GRID))).sum(1)
    seen = first_messages(view, victim)
    views = 1 if seen is None else min(seen[1][:, _repeats(seen[0])].size, 64)
    drawn = log_sample(law, np.random.default_rng(0), (samples, views))
    return Magnitudes(posterior, bits, separation(lambda t: log_density(law, t), drawn, ratio).auc)


def magnitudes(view: View, victim: int) -> Array | None:
    """The posterior of ln|y^0| on the grid, a row a coordinate."""
    law, seen = early_law(view), first_messages(view, victim)
    if law is None or seen is None:
        return None
    x, u, pushed = seen
    runs = _repeats(x)
    logs = np.array([_log_posterior(law, u[c, runs], pushed[:, c, runs]) for c in range(len(u))])
    weight = np.exp(logs - logs.max(1, keepdims=True))
    return weight / weight.sum(1, keepdims=True)


def _repeats(x: Array) -> slice:
    """The same start means the same y; else the runs have nothing in common."""
    return slice(None) if (x == x[:, :1]).all() else slice(0, 1)


def moments(posterior: Array) -> tuple[Array, Array]:
    """Mean and spread of ln|y|, a coordinate."""
    centre = posterior @ GRID
    return centre, np.sqrt(np.maximum(posterior @ GRID**2 - centre**2, 0))


def _log_posterior(law: Law, u: Array, pushed: Array) -> Array:
    """Over the grid: Lambda y (run,), and for stable laws the pushed sums (edge, run), whose width adds an unknown dg."""
    logs = _summed(law, u)
    if law.name not in ("normal", "cauchy"):
        return logs
    wider = np.log(np.sqrt(1 + RATIOS**2) if law.name == "normal" else 1 + RATIOS)
    each = np.array([[_summed(law, m, w) for w in wider] for m in pushed.T[:64]])  # dg is another in every run
    return logs + np.logaddexp.reduce(each, axis=1).sum(0)


def _summed(law: Law, seen: Array, wider: float = 0.0) -> Array:
    t = np.log(np.maximum(np.abs(seen), 1e-300))
    out = np.zeros(len(GRID))
    for part in np.array_split(t, max(1, len(t) // 512)):
        out += np.maximum(log_density(law, part[:, None] - GRID - wider), -1e9).sum(0)
    return out


def run(view: View, victim: int) -> list[Estimate]:
    """|y^0| of a single coordinate, where the posterior is narrow: many runs from one start, or a narrow law."""
    seen = first_messages(view, victim)
    if seen is None or len(seen[0]) != 1 or (posterior := magnitudes(view, victim)) is None:
        return []
    centre, spread = moments(posterior)
    return [Estimate((victim,), "offset", np.exp(centre), seen[0][:, 0], "sign")] if spread.max() < NARROW else []


def measure(view: View, victim: int) -> Measured | None:
    """Bits about ln|y^0|: beside the verdict, since the prior is ours and not declared."""
    posterior = magnitudes(view, victim)
    if posterior is None:
        return None
    bits = float((posterior * np.log2(np.maximum(posterior, 1e-300) * len(GRID))).sum(1).mean())
    return Measured("offset", bits, False, f"its size shows: {bits:.2g} bits a number about ln|y|, over a flat prior")


def control() -> tuple[Any, int, Any]:
    """Two thousand runs from one start: the factor averages out."""
    from ... import controls, graphs, problems

    problem = problems.average(np.array([2.0, -1.0, 4.0]))
    options = {"K": 1, "x0": np.zeros((3, 1)), "runs": 2000, "iterations": 2, "stepsize": 0.1}
    view, truth = controls.recorded("private-gradient-tracking", problem, graphs.paper_a(), {1}, **options)
    return view, 0, truth


register(
    Attack(
        name="magnitude-game",
        id="A10",
        assets=("offset",),
        uses="the victim's first messages Lambda y and C y + B dg, and the public law of the early weights",
        idea="ln|message| is ln|y| plus noise of a known law: a posterior over the magnitude, sharper with every\n"
        "coordinate, colluder and repetition from the same start. The sign stays open.",
        metric="bits learnt about ln|y| and AUC of 10 y against y (`game`); relative error of |y| where it is narrow",
        run=run,
        control=control,
        measure=measure,
    )
)
