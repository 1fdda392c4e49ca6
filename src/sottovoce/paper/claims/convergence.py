"""Theorem 1 and what follows from it: linear, exact, as fast for every K, later by K."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import problems
from ...auditor.worlds import in_fractions, replay, world_of
from ...run import run
from .. import arithmetic, setting
from ..item import Claim, Finding, judged, register

METHOD = "private-gradient-tracking"
KS = (0, 1, 2, 3, 5, 10, 20)
WINDOW = 200


def linear(quick: bool) -> Finding:
    """For strongly convex costs and for costs that are only convex: by how much the error falls in any 200 iterations."""
    costs = {"s = 3": setting.problem(), "s = 1, each f_i flat in one direction": problems.estimation(n=5, d=2, s=1, seed=3)}
    asked = (("s = 3", 0.03), ("s = 3", 0.06), ("s = 1, each f_i flat in one direction", 0.02))
    rows = {}
    for what, step in asked:
        result = run(METHOD, costs[what], setting.graph(), K=setting.K, stepsize=step, iterations=6000, runs=10 if quick else 100)
        ratio = max(_slowest(error) for error in result.error)
        rows[f"{what}, stepsize {step}"] = {"rate": result.rate(), "window": ratio, "worst": float(result.final.max())}
    fine = all(row["rate"] < 1 and row["window"] < 0.2 and row["worst"] < 1e-11 for row in rows.values())
    said = "; ".join(f"{name}: rate {row['rate']:.4f}" for name, row in rows.items())
    window, worst = (max(row[what] for row in rows.values()) for what in ("window", "worst"))
    return judged(
        fine,
        f"{said}. From its top down to 1e-11 the error of every run falls to {window:.2g} of itself or less in any {WINDOW} "
        f"iterations; largest final error {worst:.0e}.", rows,
    )  # fmt: skip


def _slowest(error: Any) -> float:
    """The largest ratio of the error to the one WINDOW iterations before, from the top down to 1e-11."""
    before = error[error.argmax() :]
    later = before[WINDOW:]
    return float((later / before[:-WINDOW])[later > 1e-11].max())


def rate_and_k(quick: bool) -> Finding:
    rates = {K: arithmetic.kept(K, 20 if quick else 200).rate() for K in KS}
    digit = {K: -np.log(10) / np.log(rate) for K, rate in rates.items()}
    off = max(abs(d / digit[0] - 1) for d in digit.values())
    said = ", ".join(f"{rate:.4f}" for rate in rates.values())
    return judged(
        off < 0.03,
        f"rates for K = {', '.join(map(str, KS))}: {said}; iterations a digit differ from those for K = 0 by at most {off:.2%}.",
        {"K": KS, "rates": list(rates.values()), "largest_difference": off},
    )


def delay(quick: bool) -> Finding:
    reached = [float(np.median(setting.reached(arithmetic.kept(K, 20 if quick else 200), 1e-6))) for K in KS]
    later = [r - reached[0] for r in reached]
    slope = float(np.polyfit(KS, later, 1)[0])
    exact = int(np.argmax(arithmetic.exact(3) < 1e-6))
    kept = int(setting.reached(arithmetic.kept(3, 1), 1e-6)[0])
    change = (
        "The error falls from iteration K on, but it falls from a height that grows with K: each unit of K costs about "
        f"{slope:.0f} iterations here, not one. K = 1 costs least."
    )
    said = f"an error of 1e-6 comes {', '.join(f'{v:.0f}' for v in later)} iterations later for K = {', '.join(map(str, KS))}"
    return judged(
        slope > 1 and exact == kept,
        f"{said} (medians). No matter of rounding: at K = 3 run 0 needs {kept} iterations in float64 and {exact} in 100 digits.",
        {"K": KS, "later": later, "a_unit": slope},
        change,
    )


def sums(quick: bool) -> Finding:
    options: dict[str, Any] = {"K": 3, "stepsize": setting.STEPSIZE, "iterations": 10}
    world = in_fractions(world_of(setting.recorded(METHOD, setting.problem(), setting.graph(), **options)))
    played = replay(world)
    off = max(abs(y.sum(0) - world.gradient(x).sum(0)).max() for x, y in zip(played.x, played.y, strict=True))
    kept, plain = arithmetic.kept(10, 5), arithmetic.plain(10, 5)
    numbers = {"rational": str(off), "kept": kept.invariant, "plain": plain.invariant}
    return judged(
        off == 0 and kept.invariant < 1000,
        f"10 iterations with K = 3 in rational numbers: the difference is {off}. In float64 with K = 10, rounding moves it by "
        f"{kept.invariant:.1g} n eps max|y| an iteration, which is taken back; left alone, it is {plain.invariant:.1g} of these "
        "off.",
        numbers,
    )


def exact(quick: bool) -> Finding:
    K = 20
    errors = {
        "100 digits": float(arithmetic.exact(K)[-1]), "float64, sum kept": float(arithmetic.kept(K, 20).final.max()),
        "plain float64": float(arithmetic.plain(K, 20).final.max()),
    }  # fmt: skip
    change = (
        "In exact arithmetic it is so. In float64 every random iteration costs digits, for good, unless sum y = sum g is kept "
        "to rounding in each (docs/exactness.md): the text needs that line."
    )
    said = ", ".join(f"{name} {error:.0e}" for name, error in errors.items())
    fine = errors["100 digits"] < 1e-20 and errors["float64, sum kept"] < 1e-13
    return judged(fine, f"final error at K = {K}: {said}.", {"K": K, **errors}, change if errors["plain float64"] > 1e-9 else "")


for number, name, text, where, check in (
    (1, "r-linear", "The algorithm converges R-linearly when the stepsize is sufficiently small.", "Theorem 1", linear),
    (2, "rate-and-k", "The randomness of the first K iterations has no influence on the rate.", "Remark 2; section 5.2.1",
     rate_and_k),
    (3, "delay", "It delays convergence: the algorithm only starts to converge after iteration K.", "Remark 5; section 5.2.1",
     delay),
    (4, "sums", "The sum of all y stays the sum of all gradients, whatever is drawn for k < K.", "Section 4.2", sums),
    (5, "exact", "The added randomness has no influence on the accuracy: the limit is the optimum.", "Abstract; Remark 5", exact),
):  # fmt: skip
    register(Claim(name, number, text, where, check))
