"""Figure 11: what encryption costs an iteration: none, sealed links, Paillier on the links (Remark 7), Paillier in the method.

CPU times are those of this machine now, of all five nodes' work one after the other; made again they are others, bytes are not. On
the links the sender's half is measured (what the wire carries); Paillier in the method (Zhang and Wang) is measured whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...errors import NotInstalled
from ...run import run
from .. import setting
from ..item import Figure, Numbers, Watch, register
from ..looks import note

KEY_BITS, LONG = 2048, 2000
NAMES = {
    "nothing": "nothing", "encrypted-links": "sealed links", "paillier-links": "Paillier links", "paillier": "Paillier descent",
    "paillier-admm": "Paillier ADMM",
}  # fmt: skip


def make(quick: bool, watch: Watch) -> Numbers:
    iterations = 1 if quick else 5
    asked: dict[str, Callable[[], tuple[float, int]]] = {
        "nothing": _plain,
        "encrypted-links": lambda: _links("encrypted-links", 10 * iterations),
        "paillier-links": lambda: _links(f"paillier-links:key_bits={KEY_BITS}", iterations),
        "paillier": lambda: _inside("paillier", 0.1, iterations),
        "paillier-admm": lambda: _inside("paillier-admm", 1.0, iterations),
    }
    seconds, sizes, missing = {}, {}, {}
    for name, measured in asked.items():
        watch(NAMES[name])
        try:
            seconds[name], sizes[name] = measured()
        except NotInstalled as error:
            missing[name] = str(error)
    told = setting.told(key_bits=KEY_BITS, iterations=iterations, two_way="links of paillier and paillier-admm")
    return {
        "parameters": told, "bytes_an_edge": sizes, "missing": missing,
        "timings": {"seconds_an_iteration": seconds, "note": "measured then, another number each time"},
    }  # fmt: skip


def _plain() -> tuple[float, int]:
    _private(LONG)
    began = time.process_time()
    result = _private(LONG)
    return (time.process_time() - began) / LONG, _an_edge(int(result.bytes[-1]), setting.graph())


def _links(mechanism: str, iterations: int) -> tuple[float, int]:
    """Playing, and what the senders seal."""
    kept = _private(iterations + 1, mechanisms=mechanism, record=True).transcript
    assert kept is not None
    for exchange in (0, 1):
        kept.wire[0, exchange]  # keys are made by now
    began = time.process_time()
    wire = [kept.wire[k, exchange] for k in range(1, iterations + 1) for exchange in (0, 1)]
    spent = (time.process_time() - began) / iterations
    return spent + _plain()[0], sum(int(w.shape[1]) for w in wire) // iterations


def _private(iterations: int, **options: Any) -> Any:
    told: dict[str, Any] = {"K": setting.K, "stepsize": setting.STEPSIZE, "iterations": iterations, "seed": setting.SEED}
    return run("private-gradient-tracking", setting.problem(), setting.graph(), backend="eager", **told, **options)


def _inside(method: str, step: float, iterations: int) -> tuple[float, int]:
    """A longer run less one of a single iteration, which makes the same keys."""
    graph = setting.two_way()

    def play(length: int) -> tuple[float, int]:
        began = time.process_time()
        result = run(method, setting.problem(), graph, stepsize=step, iterations=length, mode="encrypted", key_bits=KEY_BITS)
        return time.process_time() - began, int(result.bytes[-1])

    once, _ = play(1)
    more, size = play(1 + iterations)
    return max(more - once, 0.0) / iterations, _an_edge(size, graph)


def _an_edge(size: int, graph: Any) -> int:
    return size // len(graph.edges)


def draw(shown: Any, canvas: Any) -> None:
    left, right = canvas.subplots(1, 2, sharey=True)
    seconds, sizes = shown["timings"]["seconds_an_iteration"], shown["bytes_an_edge"]
    for axes, values, unit, low in ((left, seconds, "CPU seconds an iteration", 1e-5), (right, sizes, "bytes an edge", 10)):
        names = list(values)
        bars = axes.barh([NAMES[name] for name in names], list(values.values()), color="0.6", edgecolor="black", linewidth=0.6)
        axes.bar_label(bars, [f"{v:.2g}" if v < 1000 else f"{v:,.0f}" for v in values.values()], padding=2, fontsize=7)
        axes.set(xscale="log", xlabel=unit, xlim=(low, 60 * max(values.values())))
        axes.grid(axis="y", visible=False)
    left.invert_yaxis()
    lacking = "".join(f"; {NAMES[name]} is not installed" for name in shown["missing"])
    note(left, f"n = 5, d = 2, {shown['parameters']['key_bits']} bits; times of one machine, once{lacking}")


register(
    Figure(
        name="encryption",
        number=11,
        title="What encryption costs an iteration in time (measured, another number each time) and in bytes",
        make=make,
        draw=draw,
        height=0.6,
    )
)
