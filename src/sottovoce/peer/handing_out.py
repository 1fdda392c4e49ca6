"""A ready problem handed out: each node's share as numbers in its own folder, so that no seed is left to draw them again."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ProblemError
from ..problems.catalogue import catalogue, parse, records_of
from ..problems.quadratics import measurements
from ..problems.records import share
from .identity import write

RECORDS = "records.csv"


class Share:
    """What one node gets: d, its `[cost]` table, and the rows of its file of records if it has one."""

    def __init__(self, d: int, table: dict[str, Any], rows: Sequence[Sequence[Any]] | None = None):
        self.d, self.table, self.rows = d, table, rows

    def write(self, folder: Path) -> None:
        """The file of records, if there is one, for its owner alone; the table goes into node.toml."""
        if self.rows is not None:
            text = io.StringIO(newline="")
            csv.writer(text).writerows(self.rows)
            write(folder / RECORDS, text.getvalue().encode())


def shares(text: str, n: int) -> list[Share]:
    """The problem that "name:parameter=value,..." names, in n shares."""
    name, given = parse(text)
    options = {**_defaults(name), **given}
    if given.get("csv") is None and given.setdefault("n", n) != n:
        raise ProblemError(f"the problem is to have {given['n']} nodes, but the graph has {n}; leave n out")
    options["n"] = n
    if name == "estimation":
        return _estimation(options)
    if name in ("rendezvous", "average"):
        points = catalogue()[name](**{**given, "n": n}).values
        assert points is not None
        return [Share(len(point), {"kind": "rendezvous", "point": point}) for point in points]
    if name in ("least-squares", "logistic", "huber"):
        return _records(name, options)
    raise ProblemError(f"nodes cannot be given {name} in files; take estimation, rendezvous, least-squares, logistic or huber")


def _defaults(name: str) -> dict[str, Any]:
    import inspect

    return {key: p.default for key, p in inspect.signature(catalogue()[name]).parameters.items()}


def _estimation(given: dict[str, Any]) -> list[Share]:
    shape = tuple(given[key] for key in ("n", "s", "d"))
    Q, z = measurements(shape, given["scale"], given["noise"], given["seed"])
    tables = [{"kind": "estimation", "Q": q, "z": t, "sigma": given["sigma"]} for q, t in zip(Q, z, strict=True)]
    return [Share(given["d"], table) for table in tables]


def _records(name: str, given: dict[str, Any]) -> list[Share]:
    """A file of records for each node; the penalty is shared out in equal parts."""
    words = name == "logistic"
    how = {key: given[key] for key in ("n", "d", "records", "seed", "csv", "target", "site", "features")}
    X, y, sites = records_of(**how, label=np.sign if words else np.asarray, words=words)
    labels = [str(label) for label in y]
    found = share(X, np.arange(len(labels), dtype=float) if words else y, sites, 0.0, False)
    if len(found.X) != given["n"]:
        raise ProblemError(f"the records are of {len(found.X)} sites, but the graph has {given['n']} nodes")
    target, features = given["target"] or "target", _columns(given, np.shape(X)[1])
    table = {"kind": name, "csv": RECORDS, "target": target, "features": features, "intercept": given["intercept"]}
    table["l2"] = given["l2"] / given["n"]
    table |= {"delta": given["delta"]} if name == "huber" else {}
    table |= {"positive": max(set(labels))} if words else {}
    value = (lambda t: labels[int(t)]) if words else (lambda t: repr(float(t)))
    rows = lambda i: [[*map(repr, map(float, x)), value(t)] for x, t in zip(found.X[i], found.y[i], strict=True)]
    d = len(features) + bool(given["intercept"])
    return [Share(d, table, [[*features, target], *rows(i)]) for i in range(len(found.X))]


def _columns(given: dict[str, Any], d: int) -> list[str]:
    if given["csv"] is None:
        return [f"x{j}" for j in range(d)]
    if given["features"]:
        return given["features"].split("+")
    with open(given["csv"], newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file, skipinitialspace=True))
    return [name for name in header if name not in (given["target"], given["site"])]
