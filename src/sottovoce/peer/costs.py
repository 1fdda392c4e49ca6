"""A node's private cost from its own file: a choice in TOML, or a function in Python. Nothing of it ever leaves the machine.

    kind = "rendezvous"      point = [1.0, 2.0]                            |x - point|^2 / 2
    kind = "estimation"      Q = [[...], ...], z = [...], sigma = 0.0      |z - Q x|^2 + sigma |x|^2
    kind = "least-squares"   csv = "records.csv", target = "y"             sum of (x'w - y)^2 / 2
    kind = "logistic"        csv = ..., target = ..., positive = "yes"     sum of the log-losses
    kind = "huber"           csv = ..., target = ..., delta = 1.0
    kind = "python"          entry = "module:function"                     function(x) gives the gradient

Where a file of records is named, `features = ["age", "dose"]` are its columns in the order of the coordinates (all but the
target unless given), `intercept = true` adds a last coordinate, and `l2 = 0.1` is this node's share of the penalty l2 |w|^2 / 2.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError, ProblemError, UnknownName
from ..problem import Problem
from ..problem_data import numbers
from .guard import guarded

RECORDS = {"csv": None, "target": None, "features": None, "intercept": False, "l2": 0.0}
TABLE: dict[str, dict[str, Any]] = {  # kind: what it takes, None where it must be given
    "rendezvous": {"point": None},
    "estimation": {"Q": None, "z": None, "sigma": 0.0},
    "least-squares": RECORDS,
    "logistic": {**RECORDS, "positive": None},
    "huber": {**RECORDS, "delta": 1.0},
    "python": {"entry": None},
}
OPTIONAL = ("features",)


def cost(table: Mapping[str, Any], folder: Path, d: int, whose: str = "this node") -> Problem:
    """The problem of one node that a `[cost]` table describes; files are looked for beside it."""
    kind = str(table.get("kind", ""))
    if kind not in TABLE:
        raise UnknownName("kind of cost", kind, TABLE)
    known, given = TABLE[kind], {name: value for name, value in table.items() if name != "kind"}
    for name in given:
        if name not in known:
            raise ParameterError(f"[cost] of kind {kind} has no {name!r}; it takes {', '.join(known)}")
    missing = [name for name, default in known.items() if default is None and name not in given and name not in OPTIONAL]
    if missing:
        raise ParameterError(f"[cost] of kind {kind} needs {' and '.join(missing)}")
    found = guarded(lambda: MAKERS[kind]({**known, **given}, folder, d, whose), whose)
    if found.n != 1 or found.d != d:
        raise ProblemError(f"[cost]: the federation's x has {d} numbers, and this cost is of {found.d}")
    return found


def hashed(table: Mapping[str, Any], folder: Path) -> bytes:
    """What a cost is made of, as a hash: its table, and the file of records or the module that it names (not what that imports)."""
    made = hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode())
    files = [folder / str(table["csv"])] if "csv" in table else []
    if "entry" in table:
        module = str(table["entry"]).partition(":")[0]
        beside = (folder / module.replace(".", "/")).with_suffix(".py")
        files += [beside if beside.is_file() else Path(getattr(sys.modules.get(module), "__file__", None) or beside)]
    for file in files:
        made.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
    return made.digest()


def _rendezvous(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    from ..problems import rendezvous

    return rendezvous(numbers("[cost] point", given["point"], 1)[None])


def _estimation(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    from ..problems import estimation

    Q, z = numbers("[cost] Q", given["Q"], 2), numbers("[cost] z", given["z"], 1)
    return estimation(Q=Q[None], z=z[None], sigma=given["sigma"])


def _least_squares(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    from ..problems import least_squares

    X, y = _records(given, folder)
    return least_squares(X, y, 1, l2=given["l2"], intercept=given["intercept"])


def _huber(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    from ..problems import huber

    X, y = _records(given, folder)
    return huber(X, y, 1, delta=given["delta"], l2=given["l2"], intercept=given["intercept"])


def _logistic(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    """One site may hold one label only, so which of them counts as +1 is said and not found."""
    from ..problems.logit import Logistic
    from ..problems.records import share

    X, labels = _records(given, folder, words=True)
    others = sorted({label for label in labels if label != str(given["positive"])})
    if len(others) > 1:
        raise ProblemError(f"[cost]: beside {given['positive']!r} the target has {len(others)} other values; one is allowed")
    signs = [1.0 if label == str(given["positive"]) else -1.0 for label in labels]
    shares = share(X, signs, 1, given["l2"], given["intercept"])
    return Problem.of(Logistic(), (*shares.padded(), shares.penalty), shares.X[0].shape[1])


def _python(given: Mapping[str, Any], folder: Path, d: int, whose: str) -> Problem:
    module, _, name = str(given["entry"]).partition(":")
    if not (module and name):
        raise ParameterError(f'[cost] entry is "module:function", got {given["entry"]!r}')
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ProblemError(f"[cost]: the module {module!r} cannot be imported: {error}; put it beside node.toml") from None
    except AttributeError:
        raise ProblemError(f"[cost]: the module {module!r} has no {name!r}") from None
    if isinstance(found, Problem):
        return found
    return Problem(gradient=lambda x, _: guarded(lambda: found(x), whose), data=[0.0], d=d)


def _records(given: Mapping[str, Any], folder: Path, words: bool = False) -> tuple[np.ndarray, list[Any]]:
    """X and the target of a CSV file; what is missing in it is named by row and column."""
    from ..problems.catalogue import from_file

    features = given["features"]
    if features is not None and not (isinstance(features, list) and all(isinstance(name, str) for name in features)):
        raise ParameterError(f'[cost] features is a list of columns, such as ["age", "dose"], not {features!r}')
    chosen = None if features is None else "+".join(features)
    X, y, _ = from_file(str(folder / str(given["csv"])), str(given["target"]), None, chosen, 1, words)
    return np.asarray(X, dtype=float), y


MAKERS: dict[str, Callable[[Mapping[str, Any], Path, int, str], Problem]] = {
    "rendezvous": _rendezvous, "estimation": _estimation, "least-squares": _least_squares, "logistic": _logistic,
    "huber": _huber, "python": _python,
}  # fmt: skip
