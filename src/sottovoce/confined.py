"""The minimiser of the sum of all costs inside a set, to rounding: errors are measured from it where a set leaves the other out.

In a ball it is the minimiser of F + mu |x|^2 / 2 with mu such that it lies on the sphere. In a box, steps of projected gradient
descent find which bounds it lies on, and Newton's method the other coordinates. Either is accepted only when the conditions of
Karush, Kuhn and Tucker hold to rounding and the sum is convex there.
"""

from __future__ import annotations

import copy

import numpy as np

from .errors import ProblemError
from .problem import Problem
from .sets import Ball, Box
from .solver import Total

Array = np.ndarray
ROUNDS, STEPS = 200, 40  # of looking for the bounds; steps of gradient descent in each


def confined(problem: Problem, region: Ball | Box) -> Problem:
    """The same problem, its optimum that of the set; the problem itself where the set holds its optimum."""
    if region.holds(problem.optimum):
        return problem
    total, x = Total(problem.family, problem.data, problem.n, problem.d), problem.optimum
    with np.errstate(all="ignore"):
        found = _on_sphere(total, x, region.radius) if isinstance(region, Ball) else _in_box(total, x, region)
    if found is None:
        raise ProblemError(
            f"the minimiser of the sum inside {region} was not found, so there is nothing to measure errors from; "
            f"take a set that holds the minimiser over the whole space, {np.array2string(x, precision=4, threshold=6)}"
        )
    inside = copy.copy(problem)
    found.flags.writeable = False
    inside.__dict__["optimum"] = found
    return inside


def _on_sphere(total: Total, x: Array, radius: float) -> Array | None:
    """Newton's method on grad F + mu x = 0 and (|x|^2 - r^2) / 2 = 0 from the end of a path: radii from |x*| down to r."""
    mu, eye = 0.0, np.eye(total.d)
    for length in np.linalg.norm(x) * np.linspace(1, radius / np.linalg.norm(x), 21)[1:]:
        for _ in range(50):
            rest = np.append(total.gradient(x) + mu * x, (x @ x - length**2) / 2)
            matrix = np.block([[total.hessian(x) + mu * eye, x[:, None]], [x[None], np.zeros((1, 1))]])
            if not np.isfinite(matrix).all():
                return None
            step = np.linalg.solve(matrix, rest)
            x, mu = x - step[:-1], mu - step[-1]
            if np.abs(step[:-1]).max() <= 4e-16 * np.abs(x).max():
                break
    x = x * (radius / np.linalg.norm(x))
    return x if mu > 0 and _convex(total, x) and _small(total, x, total.gradient(x) + mu * x) else None


def _in_box(total: Total, x: Array, box: Box) -> Array | None:
    """Gradient steps inside, then Newton's method in the coordinates that lie on no bound; again until all conditions hold."""
    low, high = box.sides(total.d)
    x = np.clip(x, low, high)
    for _ in range(ROUNDS):
        curvature = np.linalg.eigvalsh(total.hessian(x))
        if not (np.isfinite(curvature).all() and curvature[-1] > 0):
            return None
        for _ in range(STEPS):
            x = np.clip(x - total.gradient(x) / curvature[-1], low, high)
        slope = total.gradient(x)
        held = ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))
        found = _free_newton(total, x, ~held)
        slope = total.gradient(found)
        outward = np.where(found <= low, slope > 0, slope < 0)
        inside = bool(((found >= low) & (found <= high)).all())
        if inside and outward[held].all() and _small(total, found, np.where(held, 0, slope)):
            return found if _convex(total, found) else None
    return None


def _free_newton(total: Total, x: Array, free: Array) -> Array:
    x = x.copy()
    for _ in range(50 if free.any() else 0):
        step = np.linalg.lstsq(total.hessian(x)[np.ix_(free, free)], total.gradient(x)[free])[0]
        x[free] -= step
        if np.abs(step).max() <= 4e-16 * np.abs(x).max():
            break
    return x


def _convex(total: Total, x: Array) -> bool:
    curvature = np.linalg.eigvalsh(total.hessian(x))
    return bool(curvature[0] >= -1e-12 * curvature[-1])


def _small(total: Total, x: Array, rest: Array) -> bool:
    """Is what should be zero no more than rounding leaves of the terms that cancel in it?"""
    points = np.broadcast_to(x[None, :, None], (total.n, total.d, 1)).copy()
    slopes = np.abs(total.family.gradient(np, total.data, points)[..., 0]).sum(0)
    matrices = np.abs(total.family.hessian(np, total.data, points)[..., 0]).sum(0)
    rounding = 1e3 * np.finfo(float).eps * (slopes + matrices @ np.abs(x)).max()
    return bool(np.isfinite(rest).all() and (np.abs(rest) <= rounding).all())
