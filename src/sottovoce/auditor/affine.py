"""Numbers of which only some are known: each is a constant plus known multiples of unknowns, so a step can be reckoned with them.

They live in NumPy arrays of objects. A product of two unknown numbers, or any other function of one, is a new unknown: what is said
of it stays true, and no more is said. What a step must know to go on (a comparison) and is unknown raises `Entangled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


class Entangled(Exception):
    """The step cannot go on without a number that is not known."""


class Book:
    """The unknowns, and the equations between them: rows of coefficients, and what each row sums to."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: list[dict[int, float]] = []
        self.values: list[float] = []
        self.known: dict[int, float] = {}  # what a single equation told at once
        self.products: list[tuple[Affine, Affine, Affine]] = []  # an unknown number, and the two whose product it is

    def new(self) -> Affine:
        self.count += 1
        return Affine(self, {self.count - 1: 1.0}, 0.0)

    def array(self, *shape: int) -> Array:
        """An array of new unknowns."""
        out = np.empty(shape, dtype=object)
        out.reshape(-1)[:] = [self.new() for _ in range(out.size)]
        return out

    def say(self, form: Any, value: float = 0.0) -> None:
        """form = value."""
        if not isinstance(form, Affine) or not np.isfinite(value):
            return
        self.rows.append(form.terms)
        self.values.append(value - form.constant)
        if len(form.terms) == 1:
            ((unknown, factor),) = form.terms.items()
            self.known.setdefault(unknown, (value - form.constant) / factor)


class Affine:
    """constant + sum of terms[u] * unknown u; one without terms does not occur, it is a plain float."""

    __slots__ = ("book", "constant", "terms")

    def __init__(self, book: Book, terms: dict[int, float], constant: float):
        self.book, self.terms, self.constant = book, terms, constant

    def reduced(self) -> Any:
        """With what is known by now put in."""
        known = {u: factor for u, factor in self.terms.items() if u in self.book.known}
        if not known:
            return self
        rest = {u: factor for u, factor in self.terms.items() if u not in known}
        return _made(self.book, rest, self.constant + sum(f * self.book.known[u] for u, f in known.items()))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Affine):
            return Affine(self.book, self.terms, self.constant + float(other))
        terms = dict(self.terms)
        for u, factor in other.terms.items():
            terms[u] = terms.get(u, 0.0) + factor
        return _made(self.book, {u: f for u, f in terms.items() if f}, self.constant + other.constant)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            mine, other = self.reduced(), other.reduced()
            if isinstance(mine, Affine) and isinstance(other, Affine):
                self.book.products.append((self.book.new(), mine, other))
                return self.book.products[-1][0]
            return mine * other
        factor = float(other)
        return Affine(self.book, {u: f * factor for u, f in self.terms.items()}, self.constant * factor) if factor else 0.0

    def __truediv__(self, other: Any) -> Any:
        other = other.reduced() if isinstance(other, Affine) else other
        return self.book.new() if isinstance(other, Affine) else self * (1.0 / float(other))

    def __rtruediv__(self, other: Any) -> Any:
        mine = self.reduced()
        return self.book.new() if isinstance(mine, Affine) else other / mine

    def __neg__(self) -> Any:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def _other(self, _: Any = None) -> Affine:
        return self.book.new()

    __mod__ = __rmod__ = __pow__ = __rpow__ = __abs__ = _other

    def _stuck(self, *_: Any) -> Any:
        raise Entangled

    __bool__ = __float__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _stuck
    __hash__ = None  # type: ignore[assignment]


def _made(book: Book, terms: dict[int, float], constant: float) -> Any:
    return Affine(book, terms, constant) if terms else constant


def unknown(array: Any) -> bool:
    """Whether any entry is not a plain number."""
    return isinstance(array, np.ndarray) and array.dtype.kind == "O" and any(isinstance(v, Affine) for v in array.flat)


class Functions:
    """NumPy for a step: functions of known numbers as they are, of unknown ones new unknowns."""

    MOVES = ("concatenate", "sum", "reshape", "stack", "where", "zeros_like", "broadcast_to", "moveaxis", "asarray", "repeat")

    def __init__(self, book: Book):
        self.book = book

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if not callable(function) or name.startswith("__"):
            return function
        return lambda *args, **options: self._applied(name, function, args, options)

    def _applied(self, name: str, function: Any, args: Any, options: Any) -> Any:
        plain = [a.astype(float) if isinstance(a, np.ndarray) and a.dtype.kind == "O" and not unknown(a) else a for a in args]
        if name in self.MOVES or not any(unknown(a) for a in plain):
            return function(*plain, **options)
        if not isinstance(function, np.ufunc) or function.signature is not None:  # no function of single numbers
            raise Entangled
        return self.book.array(*np.broadcast_shapes(*(np.shape(a) for a in plain)))
