"""What compiling costs: each registered algorithm at n = 100, its first call in a process where JAX is warm, then the second.

The first call is charged whole, playing its few iterations included. The second has another seed, stepsize and number of
iterations and must not compile anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import sottovoce as sv

from .measure import least_and_median, timed
from .report import Row

FIGURE = "compiling"
N, LIMIT = 100, 3.0
EVENT = "/jax/core/compile/backend_compile_duration"


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    import jax

    jax.config.update("jax_enable_compilation_cache", False)  # nothing from disk
    jax.jit(lambda v: v @ v + 1)(np.ones((3, 3), np.float32)).block_until_ready()
    methods = {name: m for name, m in sv.registry.algorithms().items() if "compiled" in m.players}
    first: dict[str, list[float]] = {name: [] for name in methods}
    programs, again = 0, 0
    for _ in range(1 if quick else 3):
        jax.clear_caches()
        for name, method in methods.items():
            cpu, compiled, later = calls(method)
            first[name].append(cpu)
            programs, again = programs + compiled, again + later
    if not programs:
        raise RuntimeError("no compilation was seen at all: this JAX reports them differently")
    rows = [Row(FIGURE, name, "s of CPU", *least_and_median(seconds), LIMIT) for name, seconds in first.items()]
    rows.sort(key=lambda row: -row.minimum)
    note = f"{programs} in the first calls; other seed, stepsize and number of iterations"
    return [*rows, Row(FIGURE, "programs compiled by the second calls", "programs", again, again, 0, note=note)]


def calls(method: Any) -> tuple[float, int, int]:
    """(CPU seconds of the first call, programs that it compiled, programs that the second compiled)."""
    values = np.random.default_rng(0).normal(size=(N, 2))
    problem = sv.problems.estimation(n=N, d=2, s=3, scale=0.5, seed=0) if method.minimises else sv.problems.average(values)
    graph = sv.graphs.ring(N, two_way=True)  # a graph that every one of them takes
    play = lambda **options: sv.run(method, problem, graph, backend="compiled", **options)
    with counted() as programs:
        cpu, _, _ = timed(lambda: play(stepsize=1e-6, iterations=method.takes or 20, seed=0))
    with counted() as later:
        play(stepsize=2e-6, iterations=method.takes or 25, seed=1)
    return cpu, len(programs), len(later)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The programs that JAX compiles meanwhile."""
    from jax import monitoring

    seen: list[str] = []
    active = [True]

    def listen(event: str, duration_secs: float, **facts: Any) -> None:
        if active and event == EVENT:
            seen.append(event)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        active.clear()  # JAX has no public way to take a listener back
