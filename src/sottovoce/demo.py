"""The demonstration: the paper's estimation problem, the private algorithm beside five others, and what that shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError, NotInstalled
from .run import Comparison

K, STEPSIZE, ITERATIONS, RUNS = 3, 0.06, 1500, 20
OURS, PLAIN, SLOW = f"private, K = {K}", "private, K = 0", "subgradient-push"
METHODS: dict[str, Any] = {
    OURS: ("private-gradient-tracking", {"K": K}),
    "diging": "diging",
    "ab": "ab",
    "add-opt": "add-opt",
    "push-pull": "push-pull",
    SLOW: (SLOW, {"stepsize": 1.0, "decay": 1.0}),  # 1 / k, the paper's choice
}
READABLE = (
    "an out-neighbour of a node computes how its gradient changes from step to step, hence the curvature of its cost. "
    "The random start hides only a constant shift of that gradient; do not call the rest private."
)


def demo(out: str | Path = "out") -> dict[str, Any]:
    """Run it, draw out/demo.png (if matplotlib is there), and return the table and the claims with their numbers."""
    from .cli_work import plain

    out = Path(out)
    if not out.absolute().parent.is_dir() or (out.exists() and not out.is_dir()):
        raise InputError(f"{out} must be a folder, or a new one in a folder that exists")
    results, plainly = play()
    figure, missing = _draw(results, out)
    claims = claims_of(results, plainly)
    problem = "estimation:n=5,d=2,s=3,scale=0.5,seed=0"
    return plain({
        "schema": 1, "problem": problem, "graph": "paper-b", "iterations": ITERATIONS, "runs": RUNS,
        "methods": results.table(), "claims": claims, "readable": READABLE, "figure": figure, "no_figure": missing,
    })  # fmt: skip


def play() -> tuple[Comparison, Any]:
    """The six methods, and the private one without its random start."""
    from . import graphs, problems
    from .run import compare, run

    problem = problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
    options: dict[str, Any] = {"stepsize": STEPSIZE, "iterations": ITERATIONS, "runs": RUNS, "backend": "eager"}
    results = compare(METHODS, problem, graphs.paper_b(), **options)
    return results, run("private-gradient-tracking", problem, graphs.paper_b(), K=0, **options)


def claims_of(results: Comparison, plainly: Any) -> list[dict[str, Any]]:
    """What the run bears out, each with its number and whether it holds."""
    ours, slow = results[OURS], results[SLOW]
    worst = float(ours.final.max())
    speed = float(np.log(plainly.rate()) / np.log(ours.rate()))  # iterations a digit, with against without
    delay = _reaches(ours, 1e-6) - _reaches(plainly, 1e-6)
    behind = float(np.median(slow.final) / max(np.median(ours.final), 1e-16))
    return [
        {
            "claim": f"the exact optimum, although the first {K} iterations use random weights and stepsizes",
            "measured": f"largest final error of {RUNS} runs {worst:.1e}", "number": worst, "holds": worst < 1e-12,
        },
        {
            "claim": "as fast as without the random start, once it is over",
            "measured": f"rate {ours.rate():.4f} and {plainly.rate():.4f}; {abs(speed - 1):.2%} more or fewer iterations a digit",
            "number": speed, "holds": abs(speed - 1) < 0.01,
        },
        {
            "claim": "what the random start costs is a delay",
            "measured": f"{delay:.0f} iterations later at an error of 1e-6", "number": delay, "holds": bool(np.isfinite(delay)),
        },
        {
            "claim": "the sum of the trackers y stays the sum of the gradients, which is why the optimum survives",
            "measured": f"off by at most {ours.invariant:.2g} roundings (n eps max|y|) in an iteration",
            "number": ours.invariant, "holds": ours.invariant < 100,
        },
        {
            "claim": "subgradient-push, with the paper's steps 1/k, is far behind",
            "measured": f"error {np.median(slow.final):.1e} after {ITERATIONS} iterations, {behind:.0e} times ours",
            "number": float(np.median(slow.final)), "holds": behind > 1e6,
        },
    ]  # fmt: skip


def _reaches(result: Any, error: float) -> float:
    below = np.median(result.error, axis=0) < error
    return float(result.recorded[below.argmax()]) if below.any() else float("inf")


def _draw(results: Comparison, out: Path) -> tuple[str | None, str | None]:
    """The figure's name, or why there is none."""
    try:
        from .plot import required

        required()
    except NotInstalled as error:
        return None, str(error)
    out.mkdir(exist_ok=True)
    results.plot(out / "demo.png")
    return str(out / "demo.png"), None
