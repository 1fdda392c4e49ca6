"""Sets that iterates are kept in: closed, convex, bounded, the same for every node, and known to all.

    Ball(5)                      |x| <= 5                                       as text  ball:5
    Box(-1, 1)                   -1 <= x_c <= 1 in every coordinate             as text  box:-1..1
    Box((-1, 0), (1, 2))         other bounds for each coordinate               as text  box:-1+0..1+2

A method takes one as `within=...`, in Python either way, on the command line as text. Sets are values: equal ones share
compiled code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ParameterError

FORMS = "a set such as sv.Ball(5), sv.Box(-1, 1), 'ball:5' or 'box:-1..1'"


@dataclass(frozen=True)
class Ball:
    """All points at most `radius` away from the origin."""

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _number("the radius of a ball", self.radius))
        if not self.radius > 0:
            raise ParameterError(f"the radius of a ball must be above 0, not {self.radius:g}")

    def project(self, xp: Any, x: Any) -> Any:
        """The nearest point of the set; x (node, coordinate, run)."""
        length = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))
        return x * (self.radius / xp.maximum(length, self.radius))  # inside, the factor is exactly one

    def misfit(self, d: int) -> str | None:
        """Why it is no set of points with d coordinates; None: it is one."""
        return None

    def holds(self, x: np.ndarray) -> bool:
        """Is the point (d,) inside, up to rounding?"""
        return bool(np.linalg.norm(x) <= self.radius * (1 + 1e-12))

    def __str__(self) -> str:
        return f"ball:{_text(self.radius)}"


@dataclass(frozen=True)
class Box:
    """All points between two bounds in every coordinate; a bound is a number, or one a coordinate."""

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = _bounds("low", self.low), _bounds("high", self.high)
        if isinstance(low, tuple) != isinstance(high, tuple):
            low, high = (v if isinstance(v, tuple) else (v,) * max(_count(low), _count(high)) for v in (low, high))
        if _count(low) != _count(high):
            raise ParameterError(f"a box has as many lower bounds as upper ones; got {_count(low)} and {_count(high)}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if not (np.asarray(low) < np.asarray(high)).all():
            raise ParameterError(f"the lower bounds of a box must be below the upper ones; got {self}")

    def project(self, xp: Any, x: Any) -> Any:
        """The nearest point of the set; x (node, coordinate, run)."""
        low, high = (xp.asarray(v).reshape(-1, 1) for v in (self.low, self.high))
        return xp.minimum(xp.maximum(x, low), high)

    def sides(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of each of d coordinates."""
        return np.broadcast_to(self.low, (d,)).astype(float), np.broadcast_to(self.high, (d,)).astype(float)

    def misfit(self, d: int) -> str | None:
        """Why it is no set of points with d coordinates; None: it is one."""
        given = _count(self.low)
        return None if not isinstance(self.low, tuple) or given == d else f"it has bounds for {given} coordinates, not for {d}"

    def holds(self, x: np.ndarray) -> bool:
        """Is the point (d,) inside, up to rounding?"""
        slack = 1e-12 * np.maximum(np.abs(self.low), np.abs(self.high))
        return bool((x >= self.low - slack).all() and (x <= self.high + slack).all())

    def __str__(self) -> str:
        return f"box:{_joined(self.low)}..{_joined(self.high)}"


def region(value: Any) -> Ball | Box:
    """A set as it is, or from its text; the one place where such a text is read."""
    if isinstance(value, Ball | Box):
        return value
    kind, _, rest = str(value).partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "ball" and rest:
        return Ball(_read(rest, value))
    low, dots, high = rest.partition("..")
    if kind == "box" and low and dots and high:
        return Box(_read_all(low, value), _read_all(high, value))
    raise ParameterError(f"expected {FORMS}, not {value!r}")


def _read(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{text!r} in {whole!r} is not a number; expected {FORMS}") from None


def _read_all(text: str, whole: str) -> Any:
    """One number, or several joined by + ("-1+0")."""
    numbers = [_read(part, whole) for part in text.split("+")]
    return tuple(numbers) if len(numbers) > 1 else numbers[0]


def _number(what: str, value: Any) -> float:
    plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (plain and math.isfinite(value)):
        raise ParameterError(f"{what} must be a finite number, not {value!r}")
    return float(value)


def _bounds(which: str, value: Any) -> Any:
    """A finite number, or a tuple of them."""
    what, value = f"{which} of a box", value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(_number(what, v) for v in value) if isinstance(value, list | tuple) else _number(what, value)


def _count(bounds: Any) -> int:
    return len(bounds) if isinstance(bounds, tuple) else 1


def _joined(bounds: Any) -> str:
    return "+".join(map(_text, bounds)) if isinstance(bounds, tuple) else _text(bounds)


def _text(number: float) -> str:
    """The shortest text that reads back as the same number, without the + that joins bounds."""
    return repr(number).removesuffix(".0").replace("e+", "e")
