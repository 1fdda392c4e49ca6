"""Which protections are compared, and how large their masks are made."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .graph import Graph
from .problem import Problem
from .protection import least_hidden, protection
from .registry import Applied, mechanism
from .run import run

AUDITED = 80  # iterations of a rehearsal that is audited
FEATURES, MANY = 5, 20_000  # masks of features have so many times 2 (T + 1) d of them, unless those would be many
LENGTH, REACH = 2.0, 12.0  # over which distance a mask changes: no further than a record does, whose norm times that is REACH
TRACKED = {"A": "uniform"}  # x and the stepsize times y ride side by side: the row that shows most
GT, PGT = "gradient-tracking", "private-gradient-tracking"
OPENED = (("private-least-squares", 1), ("private-newton", 40), ("private-gradient", 300))


@dataclass(frozen=True)
class Masks:
    """Masks on costs, of the kind that the costs take, as large as this mu asks for; how many features they have, a run says."""

    mu: float = 1.0


@dataclass(frozen=True)
class Stack:
    """A method and what is around it."""

    name: str
    method: str
    mechanisms: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    iterations: int | None = None  # of a method that needs only so many

    @property
    def masks(self) -> Masks | None:
        return next((one for one in self.mechanisms if isinstance(one, Masks)), None)

    def dressed(self, masks: Applied | None) -> tuple[Any, ...]:
        """Its mechanisms, with these masks."""
        return tuple(masks if isinstance(one, Masks) else one for one in self.mechanisms)


def known() -> list[Stack]:
    """Every stack that is compared unless told otherwise; what does not fit is found out by trying."""
    paper, late = {"K": 1}, "secret-late-weights:each=coordinate"
    return [
        Stack("nothing", GT, (), TRACKED),
        Stack("the paper, K = 1", PGT, (), paper),
        Stack("and a secret late weight a coordinate", PGT, (late,), paper),
        Stack("noise of 0.001 on messages", GT, ("message-noise:scale=0.001",), TRACKED),
        Stack("only sums are read", GT, ("aggregate-only",), TRACKED),
        masked("masks on the costs", 1),
        masked("masks on the costs, 3 mixings", 3),
        Stack("masks, and only sums are read", GT, (Masks(), "aggregate-only"), TRACKED),
        *(Stack(f"one opened sum, {name}", name, (), {}, n) for name, n in OPENED),
    ]


def masked(name: str, mixings: int, mu: float | None = 1.0) -> Stack:
    """Gradient tracking with masks of this mu; None: without any."""
    options = TRACKED if mixings == 1 else {**TRACKED, "consensus": mixings}
    return Stack(name, GT, () if mu is None else (Masks(mu),), options)


class Sizes:
    """How large masks are for a mu: one rehearsal for each number of mixings says it for every mu."""

    def __init__(self, problem: Problem, graph: Graph, bound: Any):
        self.problem, self.graph, self.bound = problem, graph, bound
        self.kind = "quadratic" if problem.family.quadratic else "matern"
        self.worst = functools.cache(self._worst)
        if bound is not None:
            protection(problem, graph, "function-masks", bound=bound)  # a bound that says nothing is refused before anything runs

    def features(self, iterations: int) -> int:
        least = 2 * (iterations + 1) * self.problem.d
        return max(least, min(FEATURES * least, MANY))

    def masks(self, mixings: int, mu: float, iterations: int) -> Applied:
        factor = 1.0 if self.bound is None else self.worst(mixings) / mu
        return self._of(iterations, factor)

    def mu(self, masks: Applied, recorded: Any) -> tuple[float, float]:
        """What masks give the node that the graph hides least, and its epsilon; along the way that was recorded."""
        nodes = [least_hidden(self.graph)]
        (row,) = protection(self.problem, self.graph, masks, bound=self.bound, result=recorded, nodes=nodes).rows
        return row.worst, row.epsilon

    def _of(self, iterations: int, factor: float = 1.0) -> Applied:
        if self.kind == "quadratic":
            return mechanism("function-masks", kind="quadratic", scale=10.0 * factor)
        sizes = {"scale": factor, "amplitude": 3.0 * factor}
        if self.bound is not None:
            sizes["length"] = min(LENGTH, REACH / float(np.ravel(self.bound)[0]))
        return mechanism("function-masks", kind="matern", features=self.features(iterations), **sizes)

    def _worst(self, mixings: int) -> float:
        """The mu of masks that are not scaled yet; where they hide along the way, the way is rehearsed."""
        masks, recorded = self._of(AUDITED), None
        if self.kind == "matern":
            options = masked("", mixings).options
            recorded = run(GT, self.problem, self.graph, mechanisms=masks, iterations=AUDITED, record=True, **options)
        return self.mu(masks, recorded)[0]
