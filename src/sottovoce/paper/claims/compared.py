"""The comparisons of sections 5.2.2 and 5.2.3: what differential privacy costs, and how slow secret stepsizes are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import NotInstalled
from ...registry import mechanism
from ...run import run
from .. import setting
from ..item import UNCHECKED, Claim, Finding, judged, register


def trade_off(quick: bool) -> Finding:
    """Median errors from epsilon = 1 to a million, and without noise, beside the private algorithm."""
    runs, problem = 100 if quick else 1000, setting.problem()
    epsilons = (1.0, 10.0, 100.0, 1e3, 1e6, np.inf)
    options: dict[str, Any] = {"iterations": 600, "runs": runs, "bound": setting.longest_gradient(problem), **setting.HUANG}
    errors = [float(np.median(run("huang", problem, setting.two_way(), epsilon=e, **options).final)) for e in epsilons]
    ours = run("private-gradient-tracking", problem, setting.graph(), K=setting.K, stepsize=setting.STEPSIZE, iterations=2000,
               runs=runs).final  # fmt: skip
    change = (
        "It does not lose accuracy; but the two do not hide the same. An epsilon bounds what all messages together tell of a "
        "whole cost. Here one constant of each gradient is hidden, and how likely its values are is not bounded (entire-domain, "
        "side-information): the comparison is of accuracy alone."
    )
    falls = all(a > 1.2 * b for a, b in pairwise(errors[1:5]))
    said = ", ".join(f"{error:.2g} for epsilon = {e:g}" for e, error in zip(epsilons, errors, strict=True))
    return judged(
        falls and errors[-1] > 1e-3 and ours.max() < 1e-12,
        f"median errors of Huang's method: {said}. Up to epsilon = 10 the iterates end anywhere in the ball of radius "
        f"{setting.BALL:g}, so the errors differ little there. Even without noise it does not arrive, as its steps are summable. "
        f"The private algorithm: {ours.max():.0e} at worst in {runs} runs.",
        {"epsilons": epsilons, "errors": errors, "ours": float(ours.max())},
        change,
    )  # fmt: skip


def slower(quick: bool) -> Finding:
    """Iterations for each further digit, late in the run."""
    runs, lengths = 20 if quick else 200, (2000, 20_000)
    options: dict[str, Any] = {**setting.LOU, "iterations": lengths[1], "runs": runs, "every": 100}
    found: dict[str, Any] = {}
    for reading in ("exact", "literal"):
        result = run("lou", setting.problem(), setting.graph(), reading=reading, **options)
        middle = np.median(result.error, axis=0)
        found[reading] = [float(middle[result.recorded == k][0]) for k in lengths]
    ours = run("private-gradient-tracking", setting.problem(), setting.graph(), K=setting.K, stepsize=setting.STEPSIZE,
               iterations=2000, runs=runs)  # fmt: skip
    ratio = found["exact"][0] / found["exact"][1]
    numbers = {"k": lengths, **found, "ours": float(np.median(ours.final))}
    return judged(
        5 < ratio < 20 and ours.final.max() < 1e-12 and found["literal"][1] > 100 * found["exact"][1],
        f"with their steps at the best of a few sizes, the median error of the exact reading is {found['exact'][0]:.0e} after "
        f"{lengths[0]:,} iterations and {found['exact'][1]:.0e} after {lengths[1]:,}: as 1/k. The literal reading stays at "
        f"{found['literal'][1]:.0e}, as it minimises another sum. The private algorithm has {np.median(ours.final):.0e} after "
        "2,000.", numbers,
    )  # fmt: skip


def overhead(quick: bool) -> Finding:
    """What crosses an edge in an iteration, plain, sealed, and as ciphertexts of a 2048-bit key; the times are figure 11."""
    options: dict[str, Any] = {"stepsize": setting.STEPSIZE, "iterations": 1}
    bits = {"key_bits": 2048}
    try:
        plain = run("private-gradient-tracking", setting.problem(), setting.graph(), **options)
        sizes = {"plain": int(plain.bytes[-1]) // len(setting.graph().edges)}
        for name, layer in (("sealed links", "encrypted-links"), ("Paillier links", mechanism("paillier-links", **bits))):
            kept = setting.recorded(plain.algorithm, setting.problem(), setting.graph(), mechanisms=layer, **options)
            sizes[name] = sum(int(kept.wire[0, exchange].shape[1]) for exchange in (0, 1))
        inside = run("paillier", setting.problem(), setting.two_way(), mode="encrypted", **bits, **options)
        sizes["Paillier descent"] = int(inside.bytes[-1]) // len(setting.two_way().edges)
    except NotInstalled as error:
        return Finding(UNCHECKED, "nothing, as a library is missing.", f"{error}.")
    ratios = {name: size / sizes["plain"] for name, size in sizes.items()}
    said = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return judged(
        ratios["Paillier links"] > 10 and ratios["Paillier descent"] > 10 and ratios["sealed links"] < 2,
        f"bytes over an edge in an iteration: {said}, which is {ratios['Paillier descent']:.0f} times as many with Paillier in "
        "the method. The times, which are others on every machine, are in figure 11.", {"bytes": sizes},
        "It holds for homomorphic encryption. Encryption as such is light: sealing the links (ChaCha20-Poly1305) adds 16 bytes "
        "a message, and against a wire-tapper that is all that Remark 7 needs.",
    )  # fmt: skip


register(Claim(
    "encryption-overhead", 28, "Approaches based on homomorphic encryption incur heavy computation and communication overhead.",
    "Section 1", overhead,
))  # fmt: skip
register(Claim(
    "dp-trade-off", 23, "Differential privacy trades accuracy for privacy; the algorithm here does not.", "Figure 5; section 5.2.2",
    trade_off,
))  # fmt: skip
register(Claim("lou-slower", 24, "The convergence of Lou et al. is much slower than R-linear.", "Figure 6; section 5.2.3", slower))
