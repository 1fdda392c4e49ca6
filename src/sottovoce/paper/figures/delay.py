"""Figure 8: what K costs: iterations until the error is 1e-6, and digits at the end, in three arithmetics.

Remark 5 speaks of a delay, and has exact arithmetic in mind. In plain float64 the random start costs digits, because rounding
moves sum y away from sum g; with that sum kept (docs/exactness.md) float64 does what a hundred digits do, down to its own floor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arithmetic, setting
from ..item import Figure, Numbers, Watch, register
from ..looks import curve, legend, note

CLOSE = 1e-6
KS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30)
NAMES = {"kept": "float64, sum kept", "plain": "plain float64", "exact": "100 digits"}


def make(quick: bool, watch: Watch) -> Numbers:
    runs, replayed = (20, 1) if quick else (400, 5)
    found: dict[str, Any] = {"kept": [], "plain": [], "exact": []}
    for K in KS:
        watch(f"K = {K}")
        kept, plain = arithmetic.kept(K, runs), arithmetic.plain(K, runs)
        found["kept"].append(_summary(setting.reached(kept, CLOSE), kept.final))
        found["plain"].append(_summary(setting.reached(plain, CLOSE), plain.final))
        exact = np.stack([arithmetic.exact(K, i) for i in range(replayed)])
        reached = np.argmax(exact < CLOSE, axis=1).astype(float)
        same = np.abs(reached - setting.reached(kept, CLOSE)[:replayed]).max()
        found["exact"].append({**_summary(reached, exact[:, -1]), "off_from_kept": float(same)})
    told = setting.told(K=KS, runs=runs, replayed=replayed, digits=arithmetic.DIGITS, iterations="1500 + 60 K")
    return {"parameters": told, "K": KS, **{name: _columns(rows) for name, rows in found.items()}}


def _summary(reached: Any, final: Any) -> dict[str, float]:
    low, middle, high = np.quantile(reached, (0.05, 0.5, 0.95), method="nearest")
    reach = {"reached": middle, "reached_low": low, "reached_high": high}
    return {**reach, "final": float(np.median(final)), "worst": float(final.max())}


def _columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def draw(shown: Any, canvas: Any) -> None:
    above, below = canvas.subplots(2, 1, sharex=True)
    for i, (name, label) in enumerate(NAMES.items()):
        one, look = shown[name], {"markevery": 1}
        band = (one["reached_low"], one["reached_high"]) if name == "kept" else ()
        curve(above, i, label, shown["K"], one["reached"], *band, **(look | ({"linestyle": ""} if name == "exact" else {})))
        curve(below, i, label, shown["K"], one["final"], **look)
    above.set(ylabel="iterations to 1e-6")
    below.set(yscale="log", xlabel="K, iterations with random weights", ylabel="error at the end")
    told = shown["parameters"]
    note(above, f"median of {told['runs']} runs, band 5 to 95 % (100 digits: {told['replayed']} of them)")
    legend(canvas, columns=3)


register(
    Figure(
        name="delay",
        number=8,
        title="Delay and digits against K, in float64 with and without the kept sum, and in a hundred digits",
        make=make,
        draw=draw,
        height=1.15,
    )
)
