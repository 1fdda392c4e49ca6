"""A14: random numbers that follow from a small or time-like seed are no secret.

The generator of simulations is public code. An attacker who guesses that it was used draws the victim's x^0 for every seed
below a bound (or near a point in time), compares with the x^0 that the victim sends, and has the early weights with the seed.
The one file of attacks that may import the generator. A rehearsal (kind "simulation" in the header) has a seed by design, which
a deployment has not: there the attack is silent unless it is handed the seeds to try.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...draws import START, STEPSIZE, CounterDraws, Stream
from ...laws import Law
from ...view import View
from ..attack import Attack, Estimate, register
from .magnitude_game import early_law, first_messages

Array = np.ndarray
BOUND = 1 << 16  # seeds tried unless more are asked for
TOGETHER = 1 << 14


def below(bound: int = BOUND) -> Iterator[Array]:
    """All seeds below a bound, in pieces."""
    return (np.arange(a, min(a + TOGETHER, bound), dtype=np.uint64) for a in range(0, bound, TOGETHER))


def around(moment: int, seconds: int = 86_400) -> Iterator[Array]:
    """Seeds that are a clock's seconds, from `seconds` before a moment to as many after it."""
    first = max(moment - seconds, 0)
    return (piece + np.uint64(first) for piece in below(moment + seconds + 1 - first))


def regenerated(seeds: Array, law: Law, kind: int, k: int, node: int, run: int, coordinates: int) -> Array:
    """What the node would have drawn, (seed, coordinate)."""
    out = []
    for c in range(0, len(seeds), size := max(1, TOGETHER // coordinates)):
        source = CounterDraws.traced(seeds[c : c + size, None], np.uint64(run))
        out.append(source.four(np, law, Stream(kind), k, [node], [node], coordinates, (0,))[0][:, 0])
    return np.concatenate(out)


def found_seed(x0: Array, node: int, run: int, seeds: Iterator[Array]) -> int | None:
    """The first seed whose x^0 is the one that was seen: the first coordinate sieves, the others confirm."""
    for piece in seeds:
        hits = piece[regenerated(piece, Law(), START, -1, node, run, 1)[:, 0] == x0[0]]
        if len(hits):
            whole = (regenerated(hits, Law(), START, -1, node, run, len(x0)) == x0).all(1)
            if whole.any():
                return int(hits[whole.argmax()])
    return None


def run(view: View, victim: int, seeds: Iterator[Array] | None = None) -> list[Estimate]:
    """The protected start gradient, exactly: Lambda y^0 divided by the regenerated Lambda."""
    law, seen = early_law(view), first_messages(view, victim)
    if law is None or seen is None or (seeds is None and view.header.get("kind") == "simulation"):
        return []
    x, u, number = seen[0][:, 0], seen[1][:, 0], int(view.header["runs"][0])
    seed = found_seed(x, victim, number, below() if seeds is None else seeds)
    if seed is None:
        return []
    factor = regenerated(np.array([seed], np.uint64), law, STEPSIZE, 0, victim, number, len(x))[0]
    return [Estimate((victim,), "offset", u / factor, x)]


def control() -> tuple[Any, int, Any]:
    """Played with a seed below 2^16, and taken for a deployment."""
    from dataclasses import replace

    from ... import controls, graphs, problems

    options = {"K": 3, "seed": 54_321, "iterations": 5, "stepsize": 0.02}
    problem = problems.estimation(n=5, d=2, seed=3)
    view, truth = controls.recorded("private-gradient-tracking", problem, graphs.paper_b(), {1}, **options)
    return replace(view, header={**view.header, "kind": "deployment"}), 0, truth


register(
    Attack(
        name="seed-search",
        id="A14",
        assets=("offset",),
        uses="the victim's first messages x^0 and Lambda y^0, and a guess at the generator",
        idea="x^0 is drawn anew for every small or time-like seed and compared; the seed that fits gives the secret\n"
        "stepsizes too, and the start gradient by division.",
        metric="whether a seed is found; relative error of the start gradient",
        run=run,
        control=control,
    )
)
