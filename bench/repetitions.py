"""A thousand repetitions of the paper's algorithm on five nodes, against a NumPy loop that plays one.

The loop is what one writes from the paper in an afternoon: dense matrices, drawn in every iteration, no bookkeeping (no errors
recorded, nothing restored), while sottovoce records every error. Each plays 500 iterations; compiling is not counted. Judged by
the time that somebody waits; the CPU time of both stands beside it.
"""

from __future__ import annotations

import numpy as np

import sottovoce as sv

from .measure import Times, interleaved, least_and_median, speedup
from .report import Row

FIGURE = "repetitions"
N, D, S, K, ITERATIONS, STEPSIZE, RUNS = 5, 2, 3, 3, 500, 0.06, 1000
LONG = 4000  # iterations after which the error is rounding
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (2, 4), (3, 1)]  # (sender, receiver)


def costs(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Q (n, s, d) and z (n, s) of f_i = |z_i - Q_i x|^2."""
    rng = np.random.default_rng(seed)
    Q = 0.5 * rng.standard_normal((N, S, D))
    return Q, Q @ rng.standard_normal(D) + 0.1 * rng.standard_normal((N, S))


def adjacency() -> np.ndarray:
    """(n, n), true where j may send to i, and on the diagonal."""
    mask = np.eye(N, dtype=bool)
    for sender, receiver in EDGES:
        mask[receiver, sender] = True
    return mask


class Loop:
    """Algorithm 1 with Table II's schedule for one run, in plain NumPy."""

    def __init__(self, Q: np.ndarray, z: np.ndarray, mask: np.ndarray):
        self.mask = mask
        self.H, self.h = 2 * np.einsum("nsi,nsj->nij", Q, Q), 2 * np.einsum("nsi,ns->ni", Q, z)
        self.sizes = {1: mask.sum(1, keepdims=True), 0: mask.sum(0, keepdims=True)}
        self.etas = {axis: 0.5 / size for axis, size in self.sizes.items()}

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return np.einsum("nij,nj->ni", self.H, x) - self.h

    def stochastic(self, rng: np.random.Generator, axis: int) -> np.ndarray:
        """The sampler below Table II: rows (axis 1) or columns (axis 0) sum to one, no entry below eta."""
        eta = self.etas[axis]
        q = ((1 - eta) * rng.random((N, N)) + eta) * self.mask
        return ((1 - self.sizes[axis] * eta) * q / q.sum(axis, keepdims=True) + eta) * self.mask

    def random(self, rng: np.random.Generator, columns: bool) -> np.ndarray:
        """Any numbers at all, one a coordinate; columns are completed to one."""
        w = rng.standard_normal((N, N, D)) * self.mask[:, :, None]
        if columns:
            own = np.arange(N)
            w[own, own] = 0
            w[own, own] = 1 - w.sum(0)
        return w

    def run(self, seed: int, iterations: int = ITERATIONS) -> np.ndarray:
        rng = np.random.default_rng(seed)
        mix = lambda w, v: np.einsum("ijc,jc->ic", w, v)
        x = rng.standard_normal((N, D))
        y = g = self.gradient(x)
        for _ in range(K):
            R, A, C, B = (self.random(rng, columns) for columns in (False, False, True, True))
            x = mix(R, x) - mix(A, rng.standard_normal((N, D)) * y)
            new = self.gradient(x)
            y, g = mix(C, y) + mix(B, new - g), new
        for _ in range(iterations - K):
            R, A, C, B = (self.stochastic(rng, axis) for axis in (1, 1, 0, 0))
            x = R @ x - A @ (STEPSIZE * y)
            new = self.gradient(x)
            y, g = C @ y + B @ (new - g), new
        return x


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    Q, z = costs()
    loop, problem, graph = Loop(Q, z, adjacency()), sv.problems.estimation(Q=Q, z=z), sv.Graph(N, EDGES)

    def play(runs: int, backend: str, iterations: int = ITERATIONS) -> sv.Result:
        return sv.run(
            "private-gradient-tracking", problem, graph, stepsize=STEPSIZE, K=K, iterations=iterations, runs=runs, backend=backend
        )

    _check(loop, problem, play(3, "eager", LONG))
    actions = {
        "loop": lambda: loop.run(0), "compiled": lambda: play(RUNS, "compiled"), "compiled one": lambda: play(1, "compiled"),
        "eager one": lambda: play(1, "eager"),
    }  # fmt: skip
    times = interleaved(actions, 5 if quick else 25)
    times |= interleaved({"eager": lambda: play(RUNS, "eager")}, 1 if quick else 3, warmups=0)
    times["compiled"], times["eager"] = times["compiled"] / RUNS, times["eager"] / RUNS
    return _rows(times)


def _check(loop: Loop, problem: sv.Problem, result: sv.Result) -> None:
    """Both come to the same optimum: a loop that does something else is no measure."""
    errors = [float(np.linalg.norm(loop.run(seed, LONG) - problem.optimum)) for seed in range(3)]
    if max(*errors, result.final.max()) > 1e-9:
        raise RuntimeError(f"the loop is {max(errors):.2g} away from the optimum, sottovoce {result.final.max():.2g}")


def _rows(times: dict[str, Times]) -> list[Row]:
    fast, loop = times["compiled"], times["loop"]
    one = f"n = {N}, d = {D}, K = {K}, fresh weights, {ITERATIONS} iterations"
    rows = [
        Row(FIGURE, f"{RUNS:,} compiled runs, faster than the loop", "times", *speedup(loop.wall, fast.wall), None, 90, one),
        Row(FIGURE, "the same by CPU time", "times", *speedup(loop.cpu, fast.cpu), note="compiled code uses all cores"),
    ]
    for name, what in (
        ("loop", "NumPy loop, one run"), ("compiled", "compiled, 1,000 runs, each"), ("eager", "eager, 1,000 runs, each"),
        ("compiled one", "compiled, one run"), ("eager one", "eager, one run"),
    ):  # fmt: skip
        rows.append(Row(FIGURE, what, "us an iteration wall", *least_and_median([1e6 * t / ITERATIONS for t in times[name].wall])))
    return rows
