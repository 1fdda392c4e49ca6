"""Problems by name, for the command line: "estimation:n=5,d=2,scale=0.5", or one's own records from a CSV file."""

from __future__ import annotations

import csv as csv_module
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from sottovoce import problems
from sottovoce.errors import ParameterError, ProblemError, UnknownName
from sottovoce.problem import Problem
from sottovoce.problem_data import positive_integer


def rendezvous(n: int = 5, d: int = 2, seed: int = 0) -> Problem:
    """Meet at the mean of n points, standard normal."""
    return problems.rendezvous(_normal(seed, n=n, d=d))


def average(n: int = 5, d: int = 1, seed: int = 0) -> Problem:
    """The mean of n values, standard normal."""
    return problems.average(_normal(seed, n=n, d=d))


def total(n: int = 5, d: int = 1, seed: int = 0) -> Problem:
    """The sum of n values, standard normal."""
    return problems.total(_normal(seed, n=n, d=d))


def estimation(
    n: int = 5,
    d: int = 2,
    s: int = 3,
    scale: float = 1.0,
    sigma: float = 0.0,
    noise: float = 0.1,
    seed: int = 0,
) -> Problem:
    """The paper's section 5.2: s noisy measurements of one vector at each node."""
    return problems.estimation(n, d, s, scale=scale, sigma=sigma, noise=noise, seed=seed)


def least_squares(
    n: int = 5,
    d: int = 3,
    records: int = 30,
    l2: float = 0.0,
    intercept: bool = False,
    seed: int = 0,
    csv: str | None = None,
    target: str | None = None,
    site: str | None = None,
    features: str | None = None,
) -> Problem:
    """Least squares on drawn data (`records` at each of n sites), or on a CSV file."""
    X, y, sites = records_of(n, d, records, seed, csv, target, site, features, np.asarray)
    return problems.least_squares(X, y, sites, l2=l2, intercept=intercept)


def logistic(
    n: int = 5,
    d: int = 3,
    records: int = 30,
    l2: float = 1.0,
    intercept: bool = False,
    seed: int = 0,
    csv: str | None = None,
    target: str | None = None,
    site: str | None = None,
    features: str | None = None,
) -> Problem:
    """Logistic regression on drawn data (`records` at each of n sites), or on a CSV file."""
    X, y, sites = records_of(n, d, records, seed, csv, target, site, features, np.sign, words=True)
    return problems.logistic(X, y, sites, l2=l2, intercept=intercept)


def huber(
    n: int = 5,
    d: int = 3,
    records: int = 30,
    delta: float = 1.0,
    l2: float = 0.0,
    intercept: bool = False,
    seed: int = 0,
    csv: str | None = None,
    target: str | None = None,
    site: str | None = None,
    features: str | None = None,
) -> Problem:
    """Huber regression on drawn data (`records` at each of n sites), or on a CSV file."""
    X, y, sites = records_of(n, d, records, seed, csv, target, site, features, np.asarray)
    return problems.huber(X, y, sites, delta=delta, l2=l2, intercept=intercept)


def catalogue() -> dict[str, Callable[..., Problem]]:
    """Name -> constructor with plain keyword parameters, all with defaults."""
    listed = (average, estimation, huber, least_squares, logistic, rendezvous, total)
    return {function.__name__.replace("_", "-"): function for function in listed}


def build(text: str) -> Problem:
    """The problem that "name:parameter=value,parameter=value" names."""
    name, given = parse(text)
    return catalogue()[name](**given)


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """The name of "name:parameter=value,parameter=value" and what it gives; the default of a parameter gives its kind."""
    name, _, rest = text.partition(":")
    known, name = catalogue(), name.strip().replace("_", "-")
    if name not in known:
        raise UnknownName("problem", name, known)
    accepted = inspect.signature(known[name]).parameters
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        key = key.replace("-", "_")
        if not equals or key not in accepted or key in given:
            problem = "is given twice" if key in given else "is not a parameter=value of it"
            raise ParameterError(f"{name}: {part!r} {problem}; the parameters are {', '.join(accepted)}")
        given[key] = _read(name, key, value, accepted[key].default)
    return name, given


def _read(name: str, key: str, value: str, default: Any) -> Any:
    if isinstance(default, bool):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
    elif isinstance(default, (int, float)):
        try:
            return type(default)(value)
        except ValueError:
            pass
    elif value:
        return value
    kind = {bool: "true or false", int: "an integer", float: "a number"}.get(type(default), "a text")
    raise ParameterError(f"{name}: {key} must be {kind}; it is {value!r}")


def _normal(seed: int, **shape: int) -> np.ndarray:
    sizes = [positive_integer(what, size) for what, size in shape.items()]
    return np.random.default_rng(seed).standard_normal(sizes)


def records_of(
    n: int,
    d: int,
    records: int,
    seed: int,
    csv: str | None,
    target: str | None,
    site: str | None,
    features: str | None,
    label: Callable[[Any], Any],
    words: bool = False,
) -> tuple[Any, Any, Any]:
    """(X, y, sites): drawn from a linear model with noise, or read from the file."""
    if csv is not None:
        return from_file(csv, target, site, features, n, words)
    if target or site or features:
        raise ParameterError("target, site and features name columns of a file: give csv=FILE too")
    for what, size in (("n", n), ("d", d), ("records", records)):
        positive_integer(what, size)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n * records, d))
    return X, label(X @ rng.standard_normal(d) + rng.standard_normal(n * records)), n


def from_file(
    path: str, target: str | None, site: str | None, features: str | None, n: int, words: bool
) -> tuple[Any, Any, Any]:
    if target is None:
        raise ParameterError("csv=FILE needs target=COLUMN, the column to explain; site=COLUMN says who holds a record")
    columns, rows = _table(path)
    chosen = features.split("+") if features else [c for c in columns if c not in (target, site)]
    for column in [target, *([site] if site else []), *chosen]:
        if column not in columns:
            raise ProblemError(f"{path} has no column {column!r}; it has {', '.join(columns)}{_separated(columns)}")
    X = [[_number(path, line, column, row[column]) for column in chosen] for line, row in rows]
    if words:
        y = [_filled(path, line, target, row[target]) for line, row in rows]
    else:
        y = [_number(path, line, target, row[target]) for line, row in rows]
    return X, y, [_filled(path, line, site, row[site]) for line, row in rows] if site else n


def _separated(columns: list[str]) -> str:
    """What a single column with a strange name mostly is."""
    for sign, name in ((";", ";"), ("\t", "tabs")):
        if len(columns) == 1 and sign in columns[0]:
            return f"; is it separated by {name}? It must be by commas"
    return ""


def _table(path: str) -> tuple[list[str], list[tuple[int, dict[str, str | None]]]]:
    """(columns, [(line, record)]) of a CSV file with a header."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv_module.DictReader(file, restkey="", skipinitialspace=True)
            rows = [(reader.line_num, row) for row in reader]
            columns = list(reader.fieldnames or [])
    except (OSError, UnicodeDecodeError, csv_module.Error) as error:
        raise ProblemError(f"cannot read {path}: {error}") from None
    if not rows or len(set(columns)) < len(columns):
        raise ProblemError(f"{path} must have a header of different names and at least one record below it")
    for line, row in rows:
        if "" in row and "" not in columns:
            raise ProblemError(f"{path}, row {line}: more values than the {len(columns)} columns of the header")
    return columns, rows


def _filled(path: str, line: int, column: str, text: str | None) -> str:
    if text is None or not text.strip():
        raise ProblemError(f"{path}, row {line}, column {column!r}: the value is missing")
    return text.strip()


def _number(path: str, line: int, column: str, text: str | None) -> float:
    text = _filled(path, line, column, text)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise ProblemError(f"{path}, row {line}, column {column!r}: what stands there is not a finite number")
    return number
