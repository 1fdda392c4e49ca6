"""Which stepsize: the largest that is stable, and a good one.

Found from the exact recursion of the method on this graph (see simulate/linear.py): the spectral radius where weights are
constant, the growth of sampled products where they are drawn afresh or the graph changes. Costs that are not quadratic are
replaced by their quadratic models at the optimum, so there it is advice, not a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import ParameterError, ProblemError
from .problem import Problem
from .registry import Algorithm, algorithm
from .simulate.linear import DENSE, Linearised, behind, radius
from .simulate.task import Task, prepare, run_numbers
from .simulate.weigh import drawn
from .weights import Rule

LARGEST = 600_000  # entries times coordinates up to which sampling takes seconds
SLOW = 0.985  # a rate above this does not show in the few hundred iterations that are sampled
HIGHEST = 1e5  # times 1 / smoothness: masks far steeper than the costs, which cancel at once, leave steps as large
LOWEST = 1e-9  # times 1 / smoothness: below this nothing would ever converge


@dataclass(frozen=True)
class Advice:
    """What the adviser says."""

    good: float
    largest: float | None  # None: the method has a rule of its own
    rate: float | None  # error ratio of an iteration to the next at `good`
    how: str

    def __str__(self) -> str:
        if self.largest is None:
            return f"stepsize {self.good:.4g}: {self.how}"
        slow = np.log(10) / -np.log(self.rate) if self.rate and 0 < self.rate < 1 else float("inf")
        return f"stepsize {self.good:.4g} ({slow:,.0f} iterations a digit); stable up to {self.largest:.4g} ({self.how})"


def stepsize(
    method: str | Algorithm, /, problem: Problem, graph: Any, *, mechanisms: Any = (), seed: int = 0, runs: Any = 1,
    **parameters: Any,
) -> Advice:  # fmt: skip
    """Advise a stepsize for `method` on `problem` over `graph`; the weights among `parameters` count, and, where mechanisms mask
    costs, which `seed` and `runs` the masks are of."""
    method = algorithm(method)
    if not isinstance(problem, Problem):
        raise ProblemError(f"expected a sottovoce Problem, got {type(problem).__name__}; see sottovoce.problems")
    task = prepare(
        method, problem, graph, stepsize=1.0, iterations=400, runs=1, seed=0, mechanisms=mechanisms, record=False,
        x0=np.zeros((problem.n, problem.d)), every=1, tolerance=None, parameters=parameters, advised=True,
    )  # fmt: skip
    return advise(task, seed, run_numbers(runs))


def cautious(
    method: str | Algorithm, problem: Problem, graph: Any, *, mechanisms: Any = (), seed: int = 0, **parameters: Any
) -> float:
    """A quarter of 1 / smoothness, of the costs as the method sees them: for networks that the adviser cannot speak of."""
    task = prepare(
        method, problem, graph, stepsize=1.0, iterations=1, runs=1, seed=seed, mechanisms=mechanisms, record=False,
        x0=np.zeros((problem.n, problem.d)), every=1, tolerance=None, parameters=parameters, advised=True,
    )  # fmt: skip
    return 0.25 / float(np.max(behind(task, seed, task.runs).smoothness))


def advise(task: Task, seed: int | None = None, runs: Any = None) -> Advice:
    """The same for a task that is prepared already; its own seed and runs unless given."""
    if not task.algorithm.minimises:
        return Advice(1.0, None, None, "the method takes no steps, so any will do")
    exact = task.problem.quadratic_model() is task.problem
    task = replace(task, problem=behind(task, task.seed if seed is None else seed, task.runs if runs is None else runs))
    beta = float(np.max(task.problem.smoothness, initial=0.0))
    if not beta > 0:
        return Advice(1.0, None, None, "these costs have no curvature, so any will do")
    if task.algorithm.own_steps is not None:
        return _own(task, beta)
    kind = "quadratic" if exact else "linearised at the optimum"
    fresh = task.sequence is not None or any(drawn(rule) for rule in task.rules.values())
    sampled = f"growth of {'sampled products' if fresh else 'the recursion'}, {kind}"
    if len(task.layout.source) * task.problem.d > LARGEST:
        raise ParameterError(
            f"this network is too large to advise a stepsize for; give one (1 / smoothness is {1 / beta:.3g}, and a method on a "
            "graph that mixes slowly needs far less); try it on a smaller network of the same kind first"
        )
    linear = Linearised(task)
    if fresh or linear.size > DENSE:
        found = _by_growth(linear, beta, sampled)
        if found is not None:
            return found
    if task.sequence is not None:
        raise ParameterError("no stepsize could be found: these graphs mix too slowly; give a stepsize, far below 1 / smoothness")
    if linear.size > 20_000:
        raise ParameterError("no stepsize could be found: this network is large and mixes slowly; give a small one")
    exact = _by_radius(Linearised(_with_means(task)), beta, f"spectral radius, {kind}")
    if not fresh:
        return exact
    assert exact.largest is not None  # weights that change can need half the step that would do for their mean
    how = f"half of what the mean weights allow, {kind}"
    return Advice(min(exact.good, 0.4 * exact.largest), exact.largest / 2, exact.rate, how)


def _own(task: Task, beta: float) -> Advice:
    """Where a method with a rule of its own starts."""
    how, good_step = f"the method's own rule, {task.algorithm.own_steps}; started at", task.algorithm.good_step
    if good_step is None:
        return Advice(1 / beta, None, None, f"{how} 1 / smoothness")
    mean = task.problem.hessian(task.problem.optimum).mean(0)
    least = max(float(np.linalg.eigvalsh((mean + mean.T) / 2)[0]), 1e-6 * beta)
    degree = len(task.graph.sender) / task.graph.n
    return Advice(good_step(beta, least, degree), None, None, f"{how} what suits curvatures from {least:.3g} to {beta:.3g}")


def _with_means(task: Task) -> Task:
    """The same with each drawn weight at its mean."""
    from .weights import Given

    rules, tables = dict(task.rules), dict(task.tables)
    for name, rule in task.rules.items():
        if isinstance(rule, Rule) and drawn(rule):
            tables[name] = rule.mean(task.graph)[:, None, None]
            rules[name] = Given(rule.side)
    return replace(task, rules=rules, tables=tables)


def _by_radius(linear: Linearised, beta: float, how: str) -> Advice:
    recursion = linear.recursion()
    rho = lambda s: radius(recursion.at(s), recursion.starts, recursion.d)
    largest = _edge(rho, beta)
    grid = largest * np.geomspace(0.02, 0.98, 12)
    rates = [rho(s) for s in grid]
    best = int(np.argmin(rates))
    good, rate = _golden(rho, grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    return Advice(float(good), float(largest), float(rate), how)


def _edge(rho: Any, beta: float) -> float:
    """Where the radius passes one: the top of the stable range that reaches down to zero."""
    stable = lambda s: rho(s) < 1
    s = 1e-3 / beta
    while not stable(s):
        s /= 4
        if s < LOWEST / beta:
            raise ParameterError("no stepsize is stable: the sum of the costs is flat somewhere, or the weights do not mix")
    low = s
    while stable(2 * low) and low < HIGHEST / beta:
        low *= 2
    high = 2 * low
    for _ in range(14):
        s = np.sqrt(low * high)
        low, high = (s, high) if stable(s) else (low, s)
    return low


def _golden(rho: Any, low: float, high: float) -> tuple[float, float]:
    """The smallest radius in an interval, to a few per cent of the stepsize."""
    ratio = (np.sqrt(5) - 1) / 2
    a, b = np.log(low), np.log(high)
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    fc, fd = rho(np.exp(c)), rho(np.exp(d))
    for _ in range(6):
        if fc < fd:
            b, d, fd = d, c, fc
            c = b - ratio * (b - a)
            fc = rho(np.exp(c))
        else:
            a, c, fc = c, d, fd
            d = a + ratio * (b - a)
            fd = rho(np.exp(d))
    return (np.exp(c), fc) if fc < fd else (np.exp(d), fd)


def _by_growth(linear: Linearised, beta: float, how: str) -> Advice | None:
    """A ladder of steps, then a finer one around the edge; None where mixing is too slow for growth to show."""
    numbers = linear.n * linear.d * len(linear.task.layout.source) / linear.n
    repeats = int(np.clip(2e4 / numbers, 1, 8))
    rungs, iterations = 12, int(np.clip(6e7 / (numbers * repeats * 12), 120, 300))
    ladder = lambda top, bottom: np.geomspace(top, bottom, rungs)
    coarse = ladder(4 / beta, 4e-4 / beta)
    rates = linear.growth(coarse, repeats, iterations)
    if rates.min() > SLOW:
        return None
    edge = int(np.argmax([(rates[i:] < 1 + 1e-9).all() or rates[i] < SLOW for i in range(rungs)]))
    fine = ladder(coarse[max(edge - 1, 0)], coarse[edge])
    fine_rates = linear.growth(fine, repeats, iterations)
    stable = np.array([(fine_rates[i:] < 1).all() for i in range(rungs)])
    largest = float(fine[stable.argmax()]) if stable.any() else float(coarse[edge])
    tried, found = np.concatenate([coarse, fine]), np.concatenate([rates, fine_rates])
    middle = tried[np.argmin(np.where(tried <= 0.8 * largest, found, np.inf))]
    last = ladder(min(2 * middle, 0.8 * largest), middle / 2)
    best = linear.growth(last, repeats, iterations)
    return Advice(float(last[best.argmin()]), largest, float(best.min()), how)


def hint(task: Task) -> str:
    """What to add to the message of a run that diverged."""
    try:
        advice = advise(task)
    except Exception:  # the hint must never hide the error that it is added to
        return "; try a smaller stepsize"
    if advice.largest is None:
        return f"; {advice}"
    if float(task.stepsize.max()) <= advice.good:
        return (
            "; the stepsize is not to blame, it is what is advised: the random start was too wild for float64 "
            "(a smaller K, another law or a smaller scale), or the costs are far from their quadratic models"
        )
    return f"; the advised one is {advice.good:.4g}, stable up to about {advice.largest:.4g}"
