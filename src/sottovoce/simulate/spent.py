"""What a run gave away in epsilon and delta, as the method and its mechanisms state it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..accountant import total
from ..weights import Rule
from .task import Task


def spent(task: Task, iterations: int) -> dict[str, float] | None:
    """Over so many iterations; what several state adds up. None: nobody states anything."""
    around = {"stepsize": float(task.stepsize.max()), "shares": shares(task)}
    method = SimpleNamespace(**{**task.parameters, **around})
    stated = [task.algorithm.spends(method, task.problem, iterations)]
    for one in task.mechanisms:
        options = SimpleNamespace(**{**dict(one.parameters), **around})
        stated.append(one.mechanism.spends(options, task.problem, iterations))
    return total(stated)


def shares(task: Task) -> dict[str, Any]:
    """What each node keeps of its own value, (n,), by the name of the weight; only weights that stay the same, in all runs."""
    found: dict[str, Any] = {}
    for name, rule in task.rules.items():
        if isinstance(rule, str):
            found |= {name: found[rule]} if rule in found else {}
        elif rule is None:
            found[name] = np.ones(task.graph.n)
        elif isinstance(rule, Rule) and rule.law is None and task.sequence is None and task.tables[name].shape[-1] == 1:
            found[name] = task.tables[name][task.layout.loops, 0, 0]
    return found
