"""What errors are measured from: the minimiser of the sum, inside the method's set where it has one."""

from __future__ import annotations

from dataclasses import replace

from ..confined import confined
from ..errors import ParameterError
from ..sets import Ball, Box
from .checks import sets_of
from .task import Task


def aimed(task: Task) -> Task:
    """The same task; where the method keeps its iterates in a set, the optimum is that of the set."""
    problem = task.problem
    for owner, name, region in sets_of(task.algorithm, task.parameters, task.mechanisms):
        if owner == task.algorithm.name:
            problem = confined(problem, region)
        elif not region.holds(problem.optimum):
            _refuse(owner, name, region, task)
    return task if problem is task.problem else replace(task, problem=problem)


def _refuse(owner: str, name: str, region: Ball | Box, task: Task) -> None:
    """A mechanism keeps nobody inside: it only works there."""
    d, optimum = task.problem.d, task.problem.optimum
    point = ", ".join(f"{v:.4g}" for v in optimum[:6]) + (", ..." if d > 6 else "")
    raise ParameterError(f"{owner}: {name}={region} does not contain the minimiser of the sum, ({point}); give a larger one")
