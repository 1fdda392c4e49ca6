"""The laws that random numbers follow: each is symmetric about zero and given by its quantiles.

A law is written once, as the magnitude that goes with a uniform v in (0, 1]: the chance of exceeding it is v. Real nodes
evaluate that directly. Simulations read it from a table of 32 octaves of v with 256 cells each, linear inside a cell:
slopes have 24 bits, so that slope times offset is exact and NumPy and XLA give the same bits whether or not they fuse the
addition. A table follows its law to a few parts in 10^6 (log-laplace, whose range is vast: in 10^4).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import InputError, ParameterError, UnknownName

OCTAVES, CELLS = 32, 256
LAWS = ("normal", "laplace", "uniform", "cauchy", "log-laplace")


@dataclass(frozen=True)
class Law:
    """A symmetric law: sign times scale times magnitude.

    `log-laplace` is sign times scale times exp(spread * Laplace): a scale channel rather than an additive one.
    """

    name: str = "normal"
    scale: float = 1.0
    spread: float = 8.0

    def __post_init__(self) -> None:
        if self.name not in LAWS:
            raise UnknownName("law", self.name, LAWS)
        for what, value in (("scale", self.scale), ("spread", self.spread)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
                raise ParameterError(f"the {what} of a law must be positive and finite, not {value!r}")

    def magnitude(self, v: np.ndarray) -> np.ndarray:
        """The magnitude that is exceeded with probability v, for v in (0, 1]; the scale is not in it."""
        if self.name == "normal":
            return normal_upper(v / 2)
        if self.name == "laplace":
            return -np.log(v)
        if self.name == "uniform":
            return 1 - v
        if self.name == "cauchy":
            return 1 / np.tan(np.pi * v / 2)
        return np.exp(-self.spread * np.log(v))

    @property
    def mirrored(self) -> bool:
        """Whether the magnitude is inverted with probability one half (laws that are symmetric in its logarithm)."""
        return self.name == "log-laplace"

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Base and slope of each cell, as `sample` uses them."""
        return _table(self.name, self.spread if self.mirrored else 1.0)

    def __str__(self) -> str:
        spread = f", spread {self.spread:g}" if self.mirrored else ""
        return f"{self.name}(scale {self.scale:g}{spread})"


def law(value: str | Law, scale: float = 1.0) -> Law:
    """A law by name ("cauchy", "log-laplace:12" for another spread) or as it is."""
    if isinstance(value, Law):
        if scale not in (1.0, value.scale):
            raise ParameterError(f"the law has the scale {value.scale:g} and another one, {scale:g}, is asked for; give one")
        return value
    name, colon, spread = str(value).replace("_", "-").partition(":")
    found = Law(name, scale)
    if colon and not found.mirrored:
        raise ParameterError(f"{value!r}: the law {name} has no spread, only a scale; write {name!r} (log-laplace has a spread)")
    try:
        return Law(name, scale, float(spread)) if colon else found
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise ParameterError(f"the spread in {value!r} is not a number; write for example 'log-laplace:8'") from None


def normal_upper(p: np.ndarray) -> np.ndarray:
    """z with P(Z > z) = p for p in (0, 1/2]: Wichura's algorithm AS 241 (1988), good to 1e-16."""
    p = np.asarray(p, dtype=float)
    q = 0.5 - p
    central = q <= 0.425
    r = np.where(central, 0.180625 - q * q, np.sqrt(-np.log(p)))
    middle = q * _ratio(_AS241[0], r)
    tail = np.where(r <= 5, _ratio(_AS241[1], r - 1.6), _ratio(_AS241[2], r - 5))
    return np.where(central, middle, tail)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: np.ndarray) -> np.ndarray:
    numerator, denominator = (np.polynomial.polynomial.polyval(r, c) for c in coefficients)
    return numerator / denominator


_AS241 = (
    (
        (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
         4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
        (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
         2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
    (
        (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
         1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
        (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
    (
        (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
         2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
        (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)  # fmt: skip


@functools.cache
def _table(name: str, spread: float) -> tuple[np.ndarray, np.ndarray]:
    exponent = np.arange(-1, OCTAVES - 1, dtype=float)[:, None]
    left = 2.0**exponent * (1 + np.arange(CELLS) / CELLS)
    width = 2.0**exponent / CELLS
    edges = np.stack([left, left + width], -1) / 2.0 ** (OCTAVES - 1)
    low, high = np.moveaxis(Law(name, 1.0, spread).magnitude(edges), -1, 0)
    return _to_24_bits(low), _to_24_bits((high - low) / width)


def _to_24_bits(a: np.ndarray) -> np.ndarray:
    """So coarse that the last bits of a machine's logarithm do not show: the same table everywhere."""
    mantissa, exponent = np.frexp(a.ravel())
    return np.ldexp(np.round(np.ldexp(mantissa, 24)), exponent - 24)


def unit(xp: Any, words: Any, out: Any = None) -> Any:
    """Words as uniforms in (0, 1): exact, hence the same everywhere. NumPy can write them into `out`."""
    value = words * xp.asarray(2.0**-32) if out is None else np.multiply(words, 2.0**-32, out=out)
    value += 2.0**-33  # in place in NumPy
    return value


def sample(xp: Any, law: Law, words: Any, table: tuple[Any, Any] | None = None) -> Any:
    """Words as draws of a law, the same bits on NumPy and JAX. The lowest bit is the sign, the others the magnitude."""
    base, slope = (xp.asarray(t) for t in (table or law.table()))
    f = (words >> xp.asarray(1, xp.uint64)).astype(xp.float64) + 0.5
    bits = _bits(xp, f)
    cell = (bits >> 44) - (1022 << 8)
    left = _float(xp, (bits >> 44) << 44)
    value = base[cell] + slope[cell] * (f - left)
    if law.mirrored:  # the second lowest bit, which the magnitude hardly feels
        value = xp.where((words & xp.asarray(2, xp.uint64)) == 0, value, 1 / value)
    sign = 1 - 2 * (words & xp.asarray(1, xp.uint64)).astype(xp.float64)
    return (law.scale * sign) * value


def _bits(xp: Any, f: Any) -> Any:
    if xp is np:
        return f.view(np.int64)
    import jax

    return jax.lax.bitcast_convert_type(f, xp.int64)


def _float(xp: Any, bits: Any) -> Any:
    if xp is np:
        return bits.view(np.float64)
    import jax

    return jax.lax.bitcast_convert_type(bits, xp.float64)
