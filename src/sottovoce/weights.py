"""How nodes choose their weights: rows by the receiver, columns by the sender.

A rule is written once for a player of all nodes and for a node alone. It has a constant (from the graph), perhaps a raw
draw, and two small functions between which its groups are summed: `measure` gives what is summed, `finish` the weight.

    identity      my own value only; nothing is sent
    uniform       1 / (number in my group): row- or column-stochastic                              (the default)
    metropolis    1 / (1 + the larger degree), two-way graphs: doubly stochastic
    sinkhorn      doubly stochastic on any strongly connected digraph (computed from the whole graph)
    doubly        metropolis where the graph is two-way, else sinkhorn
    paper         the sampler below Table II: random numbers in [eta, 1] that sum to one
    links         doubly stochastic on a two-way graph whose links are up or down at random
    a matrix      your own, checked
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .draws import UNIT
from .errors import UnknownName, WeightError
from .graph import Graph
from .laws import Law
from .layout import Columns, Rows, Side, layout
from .options import parse_options

Array = Any
NORMAL = Law()
SLACK = 1e-9  # how far from one a row or column of your own matrix may sum


@dataclass(frozen=True)
class Rule:
    """One way of choosing a weight; `side` says who chooses it: "row" the receiver, "column" the sender."""

    side: str = "row"
    name = "rule"
    known = "all"  # who is taken to know the draw, as the paper's information set has it
    law: ClassVar[Any] = None  # what the raw draw follows; None: nothing is drawn
    fresh = True  # drawn anew in every iteration, or once
    per_coordinate = False
    doubly = False  # whether rows and columns both sum to one
    pairwise = False  # both directions of a link share one draw

    def constant(self, graph: Graph) -> np.ndarray:
        """A number for each entry."""
        raise NotImplementedError

    def mean(self, graph: Graph) -> np.ndarray:
        """The expected weight of each entry."""
        return self.constant(graph)

    def played(self) -> Rule:
        """Itself without what its constant already holds, so that a compiled player need not compile it again."""
        return Given(self.side, self.known) if self.law is None else self

    def aid(self, side: Side, constant: np.ndarray) -> tuple[Array, ...]:
        """What else follows from the constant: worked out once, not in every iteration. Numbers of entries, then of groups."""
        return ()

    def measure(self, xp: Any, side: Side, raw: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        """What is summed over each group."""
        return constant

    def finish(self, side: Side, measured: Array, total: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        """The weight of each entry; `total` is the sum of each group."""
        return measured

    def weigh(self, xp: Any, side: Side, raw: Array, constant: Array, aid: tuple[Array, ...] | None = None) -> Array:
        """Both at once."""
        if self.law is None:
            return constant
        aid = self.aid(side, constant) if aid is None else aid
        measured = self.measure(xp, side, raw, constant, aid)
        return self.finish(side, measured, side.sum(measured), constant, aid)


@dataclass(frozen=True)
class Identity(Rule):
    name = "identity"
    doubly = True

    def constant(self, graph: Graph) -> np.ndarray:
        return layout(graph).is_loop[:, 0, 0].astype(float)


@dataclass(frozen=True)
class Uniform(Rule):
    name = "uniform"

    def constant(self, graph: Graph) -> np.ndarray:
        entries = layout(graph)
        return (1 / (1 + graph.indegree))[entries.target] if self.side == "row" else (
            1 / (1 + graph.outdegree))[entries.source]  # fmt: skip


@dataclass(frozen=True)
class Metropolis(Rule):
    name = "metropolis"
    doubly = True

    def constant(self, graph: Graph) -> np.ndarray:
        if not graph.undirected:
            raise WeightError(
                "metropolis weights need a two-way graph (both ends compute the same number); "
                "use 'sinkhorn' on a digraph, or make the graph two-way"
            )
        entries = layout(graph)
        degree = graph.outdegree
        w = 1.0 / (1 + np.maximum(degree[entries.source], degree[entries.target]))
        return _complete(w, entries)


@dataclass(frozen=True)
class Sinkhorn(Rule):
    name = "sinkhorn"
    doubly = True

    def constant(self, graph: Graph) -> np.ndarray:
        if not graph.strongly_connected:
            raise WeightError("sinkhorn weights need a strongly connected graph; some row or column would vanish")
        entries = layout(graph)
        rows, columns = Rows(entries), Columns(entries)
        w = np.ones((len(entries.source), 1, 1))
        for _ in range(100_000):
            w = w / columns.spread(columns.sum(w))
            row = rows.sum(w)
            if np.abs(row - 1).max() < 4e-16 * len(w) ** 0.5 + 2e-16:
                return w[:, 0, 0]
            w = w / rows.spread(row)
        raise WeightError("sinkhorn weights did not settle in 100,000 sweeps; give a doubly stochastic matrix of your own")


@dataclass(frozen=True)
class Doubly(Rule):
    name = "doubly"
    doubly = True

    def constant(self, graph: Graph) -> np.ndarray:
        return (Metropolis if graph.undirected else Sinkhorn)().constant(graph)


@dataclass(frozen=True)
class Paper(Rule):
    """w = (1 - m eta) q / sum(q) + eta with q = (1 - eta) p + eta, p uniform in [0, 1], m the size of the group."""

    eta: float | None = None
    fresh: bool = True
    known: str = "all"
    per_coordinate: bool = False
    name = "paper"
    law = UNIT

    def __post_init__(self) -> None:
        if self.eta is not None:
            _check_number("eta", self.eta, "the lower bound of the weights")
        if not isinstance(self.fresh, bool):
            raise WeightError(f"fresh is true (drawn in every iteration) or false (drawn once), not {self.fresh!r}")

    def constant(self, graph: Graph) -> np.ndarray:
        entries = layout(graph)
        index = entries.target if self.side == "row" else entries.source
        size = np.bincount(index, minlength=graph.n)
        if self.eta is None:
            return (0.5 / size)[index]
        if not 0 < self.eta <= 1 / size.max():
            node = int(size.argmax())
            raise WeightError(
                f"eta = {self.eta:g} is outside (0, 1/(degree + 1)]: node {graph.labels[node]} weighs {size[node]} values "
                f"({self.side}), so eta can be at most {1 / size[node]:.6g}"
            )
        return np.full(len(index), float(self.eta))

    def mean(self, graph: Graph) -> np.ndarray:
        return Uniform(self.side).constant(graph)  # the entries of a group are exchangeable

    def played(self) -> Rule:
        return Paper(self.side, known=self.known, per_coordinate=self.per_coordinate)

    def aid(self, side: Side, constant: np.ndarray) -> tuple[Array, ...]:
        """Each group's eta and size; before them, only where some edge is missing now, which entries there are."""
        present = 1.0 * (constant > 0)
        size = side.sum(present)
        groups = side.sum(constant) / size, size
        return groups if present.all() else (present, *groups)

    def measure(self, xp: Any, side: Side, raw: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        return raw if len(aid) == 2 else raw * aid[0]

    def finish(self, side: Side, measured: Array, total: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        """The same line by group: w = s (1 - eta) p + (1 + s) eta with s = (1 - m eta) / sum(q)."""
        *present, eta, size = aid
        s = (1 - size * eta) / ((1 - eta) * total + size * eta)
        measured *= side.spread(s * (1 - eta))  # in place in NumPy, where a draw is used once
        measured += side.spread((1 + s) * eta)
        return measured * present[0] if present else measured


@dataclass(frozen=True)
class Links(Rule):
    """Each two-way link is up with probability `awake`; Metropolis weights on those, the rest stays at home."""

    awake: float = 0.5
    name = "links"
    doubly = True
    law = UNIT
    pairwise = True
    known = "pair"

    def __post_init__(self) -> None:
        _check_number("awake", self.awake, "the probability that a link is up")

    def constant(self, graph: Graph) -> np.ndarray:
        if not 0 < self.awake <= 1:
            raise WeightError(f"awake is a probability above 0 and at most 1, not {self.awake!r}")
        return Metropolis().constant(graph)

    def mean(self, graph: Graph) -> np.ndarray:
        entries = layout(graph)
        return _complete(np.where(entries.is_loop[:, 0, 0], 0, self.awake * self.constant(graph)), entries)

    def measure(self, xp: Any, side: Side, raw: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        return xp.where(side.is_loop | (raw >= self.awake), 0.0, constant)

    def finish(self, side: Side, measured: Array, total: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        return measured + side.is_loop * (1 - side.spread(total))


@dataclass(frozen=True)
class Raw(Rule):
    """Table II for k < K: any numbers at all, a number a coordinate; only columns must sum to one."""

    law: Law = NORMAL  # type: ignore[misc]  # here it is chosen
    name = "raw"
    known = "me"
    per_coordinate = True

    def constant(self, graph: Graph) -> np.ndarray:
        return np.ones(len(layout(graph).source))

    def measure(self, xp: Any, side: Side, raw: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        raw = raw * constant  # zero where there is no edge now
        return raw if self.side == "row" else xp.where(side.is_loop, 0.0, raw)

    def finish(self, side: Side, measured: Array, total: Array, constant: Array, aid: tuple[Array, ...]) -> Array:
        return measured if self.side == "row" else measured + side.is_loop * (1 - side.spread(total))


@dataclass(frozen=True)
class Given(Rule):
    """Weights that are there already, in a table."""

    known: str = "all"
    name = "given"

    def constant(self, graph: Graph) -> np.ndarray:
        """Of no meaning, only of the right size: the table holds the numbers."""
        return np.ones(len(layout(graph).source))


@dataclass(frozen=True, eq=False)
class Matrix(Rule):
    """Your own matrix, W[i, j] the weight of what j sends to i."""

    matrix: Any = None
    checked: bool = True
    name = "matrix"

    def constant(self, graph: Graph) -> np.ndarray:
        try:
            w = np.asarray(self.matrix, dtype=float)
        except (TypeError, ValueError):
            raise WeightError(f"a weight matrix holds one real number a pair of nodes, shape ({graph.n}, {graph.n})") from None
        if w.shape != (graph.n, graph.n):
            raise WeightError(f"expected a weight matrix of shape ({graph.n}, {graph.n}), one row a node; got {w.shape}")
        entries = layout(graph)
        if self.checked:
            _check_matrix(w, entries, graph, self.side)
        return w[entries.target, entries.source]


def _check_number(what: str, value: Any, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise WeightError(f"{what} is a number, {meaning}; got {value!r}")


def _complete(w: np.ndarray, entries: Any) -> np.ndarray:
    """The own share is what is missing from one."""
    loop = entries.is_loop[:, 0, 0]
    rest = np.bincount(entries.target, np.where(loop, 0, w), minlength=entries.n)
    return np.where(loop, (1 - rest)[entries.target], w)


def _check_matrix(w: np.ndarray, entries: Any, graph: Graph, side: str) -> None:
    if not np.isfinite(w).all():
        raise WeightError("the weight matrix holds NaN or infinity")
    outside = w.copy()
    outside[entries.target, entries.source] = 0
    if outside.any():
        i, j = (int(v[0]) for v in np.nonzero(outside))
        raise WeightError(f"the weight matrix has W[{i}, {j}] = {w[i, j]:g}, but there is no edge from {j} to {i}")
    if (w < 0).any():
        i, j = (int(v[0]) for v in np.nonzero(w < 0))
        raise WeightError(f"the weight matrix has a negative entry, W[{i}, {j}] = {w[i, j]:g}")
    for axis, what in ((1, "row"), (0, "column")):
        sums = w.sum(axis)
        if side in (what, "both") and np.abs(sums - 1).max() > SLACK:
            i = int(np.abs(sums - 1).argmax())
            raise WeightError(
                f"expected a {what}-stochastic matrix, but {what} {i} sums to {sums[i]:.12g}; "
                f"divide each {what} by its sum, or name a rule such as 'uniform' or 'sinkhorn'"
            )


RULES = {rule.name: rule for rule in (Identity, Uniform, Metropolis, Sinkhorn, Doubly, Paper, Links)}


def rule(value: Any, side: str, **options: Any) -> Rule:
    """A rule from a name ("uniform", "paper", "paper:eta=0.1"), a matrix, or a rule; options such as eta go to the named rule."""
    if isinstance(value, str):
        return _named(value, side, options)
    if isinstance(value, Rule):
        if value.side != side and not value.doubly and value.name != "matrix":
            raise WeightError(f"the rule {value.name!r} makes {value.side}s sum to one, but this weight needs {_NEEDS[side]}")
        return value
    listed = isinstance(value, list | tuple) and all(isinstance(row, list | tuple | np.ndarray) for row in value)
    if isinstance(value, np.ndarray) or listed:
        return Matrix(side=side, matrix=value)
    raise WeightError(f"expected the name of a weight rule ({', '.join(RULES)}), a matrix or a Rule; got {type(value).__name__}")


_NEEDS = {"row": "rows that do", "column": "columns that do", "both": "both: 'doubly', 'metropolis' or 'sinkhorn'"}


def options_of(value: Any) -> set[str]:
    """The options that a named rule would take and does not say itself."""
    if not isinstance(value, str) or (name := value.partition(":")[0]) not in RULES:
        return set()
    return _options(name) - set(parse_options(value.partition(":")[2]))


def _options(name: str) -> set[str]:
    return {f.name for f in fields(RULES[name])} - {"side", "known", "per_coordinate"}  # those are a mechanism's to say


def _named(text: str, side: str, options: dict[str, Any]) -> Rule:
    name, _, own = text.partition(":")
    if name not in RULES:
        raise UnknownName("weight rule", name, RULES)
    known, given = _options(name), parse_options(own)
    if not set(given) <= known:
        raise WeightError(f"the weight rule {name!r} takes {', '.join(sorted(known)) or 'no options'}, not {', '.join(given)}")
    chosen = RULES[name](side=side, **{**{k: v for k, v in options.items() if k in known}, **given})
    if side == "both" and chosen.law is not None and not chosen.doubly:
        raise WeightError(f"the rule {name!r} makes only rows or only columns sum to one; this weight needs {_NEEDS[side]}")
    return chosen
