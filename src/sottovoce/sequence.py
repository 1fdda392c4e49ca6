"""A graph for every iteration, for the methods that allow it; and whatever a user may pass as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from .errors import GraphError
from .graph import Graph, frozen, is_networkx


class GraphSequence:
    """A graph for every iteration, for the algorithms that allow them.

    From a sequence, repeated cyclically, or from a function of the iteration, which `prepared` evaluates. The function
    must be a pure one of k: it is asked once for each iteration, and every later run gets the same answer. Each graph
    may be a Graph, a networkx graph or an adjacency matrix.
    """

    def __init__(self, graphs: Sequence[Any] | Callable[[int], Any]):
        self._function = cache(lambda k: _element(k, graphs(k))) if callable(graphs) else None
        self._ready = self._function is None
        self._set([self._function(0)] if self._function else [_element(k, g) for k, g in enumerate(graphs)])  # type: ignore[arg-type]

    def _set(self, graphs: list[Graph]) -> None:
        if not graphs:
            raise GraphError("a sequence of graphs holds at least one; this one is empty")
        for k, graph in enumerate(graphs):
            if (graph.n, graph.labels) != (graphs[0].n, graphs[0].labels):
                raise GraphError(
                    f"iteration {k}: every graph has the same nodes and labels; the first has n={graphs[0].n}, "
                    f"this one n={graph.n}" + (" and other labels" if graph.n == graphs[0].n else "")
                )
        number: dict[Graph, int] = {}
        self._order = np.array([number.setdefault(graph, len(number)) for graph in graphs])
        self._graphs, self._distinct, self.n = graphs, tuple(number), graphs[0].n

    def prepared(self, iterations: int) -> GraphSequence:
        """This sequence with its graphs for 0 to iterations-1 known: a function is evaluated, once for each."""
        if self._function is None or (self._ready and iterations <= len(self._graphs)):
            return self
        known = GraphSequence.__new__(GraphSequence)
        known._function, known._ready = self._function, True
        known._set(self._graphs + [self._function(k) for k in range(len(self._graphs), iterations)])
        return known

    def _need_graphs(self) -> None:
        if not self._ready:
            raise GraphError("these graphs come from a function of the iteration; call prepared(iterations) first")

    @property
    def distinct(self) -> tuple[Graph, ...]:
        """The graphs that occur, each once, in the order of their first appearance."""
        self._need_graphs()
        return self._distinct

    @property
    def cycle(self) -> tuple[Graph, ...]:
        """The graphs of one round, as they were given."""
        if self._function is not None:
            raise GraphError("a function of the iteration is no public schedule; give the graphs as a list, which is repeated")
        return tuple(self._graphs)

    def index(self, start: int, stop: int) -> np.ndarray:
        """Which of the distinct graphs is in force at iterations start to stop-1."""
        self._need_graphs()
        if not 0 <= start <= stop:
            raise GraphError(f"iterations run from start >= 0 to stop >= start; got {start} to {stop}")
        if self._function is not None and stop > len(self._order):
            raise GraphError(f"the graphs are known for {len(self._order)} iterations; call prepared({stop}) first")
        return self._order[np.arange(start, stop) % len(self._order)]

    @cached_property
    def union(self) -> Graph:
        """The graph of every edge that occurs."""
        keys = np.unique(np.concatenate([graph.keys for graph in self.distinct]))
        return Graph(self.n, np.column_stack((keys % self.n, keys // self.n)), labels=self._graphs[0].labels)

    @cached_property
    def active(self) -> np.ndarray:
        """(distinct graphs, edges of the union): which edges each graph has."""
        return frozen(np.array([np.isin(self.union.keys, graph.keys, assume_unique=True) for graph in self.distinct]))

    @property
    def strongly_connected(self) -> bool:
        """Whether the union is; no single graph need be."""
        return self.union.strongly_connected

    def __repr__(self) -> str:
        if not self._ready:
            return f"GraphSequence(n={self.n}, a function of the iteration)"
        span = f"{len(self._order)} known" if self._function else f"repeating every {len(self._order)}"
        return f"GraphSequence(n={self.n}, {len(self._distinct)} distinct, {span})"


def as_graph(value: Any) -> Graph | GraphSequence:
    """A Graph or GraphSequence from whatever stands for one."""
    if isinstance(value, Graph | GraphSequence):
        return value
    if getattr(value, "ndim", 0) == 3 or (isinstance(value, list | tuple) and any(_whole(item) for item in value)):
        return GraphSequence(list(value))
    if callable(value) and not isinstance(value, type) and not is_networkx(value):
        return GraphSequence(value)
    graph = _graph(value)
    if graph is not None:
        return graph
    raise GraphError(
        f"a graph is a Graph, a GraphSequence, a list of Graphs, a function of the iteration, a networkx graph or a "
        f"square array A with A[i, j] = 1 when j can send to i; got {type(value).__name__}"
    )


def _whole(item: Any) -> bool:
    """Whether an item of a list is a graph, and not a row of an adjacency matrix."""
    rows = isinstance(item, list | tuple) and len(item) > 0 and isinstance(item[0], list | tuple | np.ndarray)
    return rows or isinstance(item, Graph) or is_networkx(item) or len(getattr(item, "shape", ())) == 2


def _graph(value: Any) -> Graph | None:
    """One graph from whatever stands for one; None from what does not."""
    if isinstance(value, Graph):
        return value
    if is_networkx(value):
        return Graph.from_networkx(value)
    if hasattr(value, "__array__") or hasattr(value, "tocoo") or (isinstance(value, list | tuple) and len(value)):
        return Graph.from_adjacency(value)
    return None


def _element(k: int, value: Any) -> Graph:
    try:
        graph = _graph(value)
    except GraphError as error:
        raise GraphError(f"iteration {k}: {error}") from None
    if graph is None:
        raise GraphError(
            f"iteration {k}: expected a Graph, got {type(value).__name__}; a networkx graph or an adjacency matrix will do too"
        )
    return graph
