"""Several problems as one: their nodes side by side, whatever kind of cost each has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import ProblemError
from sottovoce.family import Family, Verbs
from sottovoce.problem import Problem


class Joint(Verbs):
    """Every node with a family of its own; data ((number of the family, its data), ...)."""

    name: ClassVar[str] = "joint"
    traceable: ClassVar[bool] = False

    def __init__(self, families: Sequence[Family]):
        self.families = tuple(families)
        self.has_value = all(family.has_value for family in self.families)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return all(family.exact for family in self.families)

    def prox(self, xp: Any, data: tuple, p: Any, q: Any) -> Any:
        q = np.broadcast_to(q, (len(p), 1, p.shape[-1]))
        return np.concatenate([self._family(one).prox(xp, one[1], p[i : i + 1], q[i : i + 1]) for i, one in enumerate(data)])

    def smoothness(self, data: tuple) -> np.ndarray | None:
        bounds = [self._family(one).smoothness(one[1]) for one in data]
        return None if any(bound is None for bound in bounds) else np.concatenate(bounds)  # type: ignore[arg-type]

    def count(self, data: tuple) -> int:
        return len(data)

    def only(self, data: tuple, i: int) -> tuple:
        return (data[i],)

    def _family(self, one: tuple) -> Family:
        return self.families[int(one[0])]

    def each(self, verb: str, xp: Any, data: tuple, x: Any) -> Any:
        return np.concatenate([getattr(self._family(one), verb)(xp, one[1], x[i : i + 1]) for i, one in enumerate(data)])

    def __repr__(self) -> str:
        return f"joint of {', '.join(map(repr, self.families))}"


def joint(problems: Sequence[Problem], labels: Sequence[Any] | None = None) -> Problem:
    """One problem of several of one node each, for a rehearsal: the same costs, node by node."""
    d, families = problems[0].d, [one.family for one in problems]
    for i, one in enumerate(problems):
        if one.n != 1 or one.d != d:
            raise ProblemError(f"problem {i} has {one.n} nodes and d = {one.d}; each has one node, and d = {d} like the first")
    have = [one.values for one in problems]
    values = None if any(value is None for value in have) else np.concatenate(have)  # type: ignore[arg-type]
    alike = [[np.shape(part)[1:] for part in one.data if isinstance(part, np.ndarray)] for one in problems]
    if all(f == families[0] for f in families) and all(a == alike[0] and len(a) == len(problems[0].data) for a in alike):
        data = tuple(np.concatenate(parts) for parts in zip(*(one.data for one in problems), strict=True))
        return Problem.of(families[0], data, d, values=values, labels=labels)
    data = tuple((np.array(i), one.data) for i, one in enumerate(problems))
    return Problem.of(Joint(families), data, d, values=values, labels=labels)
