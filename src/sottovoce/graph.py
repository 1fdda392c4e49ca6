"""Who can send to whom.

Edges are (sender, receiver), nodes are counted from 0, and an adjacency matrix follows the paper: A[i, j] = 1 when j
can send to i. Every array over edges has one order: by receiver, then by sender. No graph has self-loops: every node
keeps its own value anyway.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.errors import GraphError, NotInstalled
from sottovoce.paths import SMALL, dense_diameter, eccentricity, reached

LOOP = "a node does not send to itself; leave self-loops out, every node keeps its own value anyway"


class Graph:
    """Who can send to whom; equal graphs have the same nodes, edges and labels."""

    def __init__(self, n: int, edges: Iterable[tuple[int, int]] | np.ndarray, *, labels: Sequence | None = None):
        self.n = _integer(n, "the number of nodes")
        if self.n < 1:
            raise GraphError(f"a graph has at least one node; n is {self.n}")
        self.labels = _labels(self.n, labels)
        pairs = _pairs(edges)
        outside = (pairs.min(axis=1) < 0) | (pairs.max(axis=1) >= self.n)
        self._check(pairs, outside, f"there is no such node; the nodes are 0 to {self.n - 1} (n={self.n})")
        self._check(pairs, pairs[:, 0] == pairs[:, 1], LOOP)
        pairs = pairs.astype(np.int64)
        pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
        self._check(pairs[1:], (pairs[1:] == pairs[:-1]).all(axis=1), "it is there more than once; give each edge once")
        self.sender, self.receiver = (frozen(nodes.copy()) for nodes in pairs.T)

    def _check(self, pairs: np.ndarray, wrong: np.ndarray, why: str) -> None:
        if wrong.any():
            s, r = (int(node) for node in pairs[int(np.argmax(wrong))])
            named = self.labels != tuple(range(self.n)) and min(s, r) >= 0 and max(s, r) < self.n
            also = f", labels ({self.labels[s]!r}, {self.labels[r]!r})" if named else ""
            raise GraphError(f"edge ({s}, {r}){also}: {why}")

    @classmethod
    def from_labels(cls, nodes: Iterable[Hashable], pairs: Iterable[tuple[Any, Any]]) -> Graph:
        """The graph on named nodes. Names that are all integers are sorted, so that 0 to n-1 number themselves."""
        nodes = list(nodes)
        if all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in nodes):
            nodes = sorted(nodes)  # type: ignore[type-var]
        number = {node: i for i, node in enumerate(nodes)}
        try:
            edges = [(number[a], number[b]) for a, b in pairs]
        except KeyError as missing:
            raise GraphError(f"an edge names {missing}, which is not among the {len(nodes)} nodes") from None
        return cls(len(nodes), edges, labels=nodes)

    @classmethod
    def from_adjacency(cls, A: Any, labels: Sequence | None = None) -> Graph:
        """The graph of a square matrix, an array or SciPy's sparse: A[i, j] = 1 means that j can send to i; all else is 0."""
        n, i, j, values = _entries(A)
        without = "A - scipy.sparse.diags(A.diagonal())" if hasattr(A, "tocoo") else "A - np.diag(np.diag(A))"
        loop = f"{LOOP}; {without} has none"
        ones = "an adjacency matrix holds 0 and 1; if these are weights, A != 0 has their links, and A < 0 those of a Laplacian"
        for wrong, why in ((~np.isfinite(values), "an adjacency matrix holds finite numbers"), (values != 1, ones), (i == j, loop)):
            if wrong.any():
                at = int(np.argmax(wrong))
                raise GraphError(f"A[{i[at]}, {j[at]}] is {values[at]:g}: {why}")
        return cls(n, np.column_stack((j, i)), labels=labels)

    @classmethod
    def from_networkx(cls, g: Any) -> Graph:
        """The graph of a networkx graph: u -> v means that u sends to v, an undirected edge goes both ways."""
        if not is_networkx(g):
            raise GraphError(f"expected a networkx graph, got {type(g).__name__}")
        pairs = dict.fromkeys((u, v) for u, v, *_ in g.edges())  # parallel edges merge
        if not g.is_directed():
            pairs |= dict.fromkeys((v, u) for u, v in pairs)
        return cls.from_labels(g.nodes, pairs)

    def to_networkx(self) -> Any:
        """A networkx DiGraph on the labels."""
        try:
            import networkx as nx
        except ImportError:
            raise NotInstalled("to_networkx", "graphs") from None
        g = nx.DiGraph()
        g.add_nodes_from(self.labels)
        g.add_edges_from((self.labels[s], self.labels[r]) for s, r in self.edges)
        return g

    def adjacency(self) -> np.ndarray:
        """The (n, n) matrix with A[i, j] = 1 when j can send to i."""
        A = np.zeros((self.n, self.n))
        A[self.receiver, self.sender] = 1.0
        return A

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every edge as (sender, receiver), sorted by receiver, then by sender."""
        return tuple(zip(self.sender.tolist(), self.receiver.tolist(), strict=True))

    @cached_property
    def indegree(self) -> np.ndarray:
        """How many nodes each node hears, itself not counted."""
        return frozen(np.bincount(self.receiver, minlength=self.n))

    @cached_property
    def outdegree(self) -> np.ndarray:
        """How many nodes each node sends to, itself not counted."""
        return frozen(np.bincount(self.sender, minlength=self.n))

    def in_neighbours(self, i: int) -> tuple[int, ...]:
        """The nodes that i hears, sorted."""
        return self._near(i, *self._backward)

    def out_neighbours(self, i: int) -> tuple[int, ...]:
        """The nodes that i sends to, sorted."""
        return self._near(i, *self._forward)

    def _near(self, i: int, starts: np.ndarray, others: np.ndarray) -> tuple[int, ...]:
        i = _integer(i, "a node")
        if not 0 <= i < self.n:
            raise GraphError(f"there is no node {i}; the nodes are 0 to {self.n - 1}")
        return tuple(others[starts[i] : starts[i + 1]].tolist())

    # Compressed rows: the neighbours of i are those from starts[i] to starts[i + 1].
    @cached_property
    def _backward(self) -> tuple[np.ndarray, np.ndarray]:
        return np.append(0, np.cumsum(self.indegree)), self.sender

    @cached_property
    def _forward(self) -> tuple[np.ndarray, np.ndarray]:
        return np.append(0, np.cumsum(self.outdegree)), self.receiver[np.argsort(self.sender, kind="stable")]

    def index(self, label: Hashable) -> int:
        """The number of the node with this label."""
        try:
            return self._index[label]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self.labels[:20])) + (f", ... ({self.n} in all)" if self.n > 20 else "")
            raise GraphError(f"no node has the label {label!r}; the labels are {shown}") from None

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def keys(self) -> np.ndarray:
        """One number an edge, receiver * n + sender: ascending, equal in two graphs where the edge is."""
        return frozen(self.receiver * self.n + self.sender)

    @cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the edge back would stand, and whether it is there."""
        wanted = self.sender * self.n + self.receiver
        at = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        return at, self.keys[at] == wanted

    @property
    def undirected(self) -> bool:
        """Whether every edge goes both ways."""
        return bool(self._turned[1].all())

    @property
    def reverse(self) -> np.ndarray:
        """For every edge, the index of the edge back; only on a two-way graph."""
        at, there = self._turned
        self._check(np.column_stack((self.sender, self.receiver)), ~there, "there is no edge back; a two-way graph is needed")
        return frozen(at)

    @property
    def strongly_connected(self) -> bool:
        """Whether every node reaches every other."""
        return self.no_path() is None

    def no_path(self) -> tuple[int, int] | None:
        """Two nodes (i, j) such that nothing from i ever comes to j; None when every node reaches every other."""
        return self._no_path

    @cached_property
    def _no_path(self) -> tuple[int, int] | None:
        # all reach all exactly when node 0 reaches all and all reach node 0
        missed = ~reached(self.n, *self._forward)
        if missed.any():
            return 0, int(np.argmax(missed))
        missed = ~reached(self.n, *self._backward)
        return (int(np.argmax(missed)), 0) if missed.any() else None

    @cached_property
    def diameter(self) -> int:
        """The longest shortest path. A search from every node: seconds from some thousands of nodes on."""
        if self._no_path is not None:
            i, j = self._no_path
            raise GraphError(f"the graph is not strongly connected, so it has no diameter: no path from {i} to {j}")
        if self.n <= SMALL:
            return dense_diameter(self.adjacency())
        return max(eccentricity(self.n, start, *self._forward) for start in range(self.n))

    def digest(self) -> str:
        """SHA-256 (hex) of n and the edges; labels do not count."""
        parts = (np.array([self.n]), self.sender, self.receiver)
        return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.n == other.n and self.labels == other.labels and np.array_equal(self.keys, other.keys)

    @cached_property
    def _hash(self) -> int:
        return hash((self.n, self.keys.tobytes(), self.labels))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        ways = "two-way" if self.undirected else "directed"
        connected = "strongly connected" if self.strongly_connected else "not strongly connected"
        return f"Graph(n={self.n}, edges={len(self.sender)}, {ways}, {connected})"


def is_networkx(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("is_directed", "nodes", "edges", "adj"))


def frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _integer(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise GraphError(f"{what} is a whole number; got {value!r}") from None


def _labels(n: int, labels: Sequence | None) -> tuple:
    if labels is None:
        return tuple(range(n))
    labels = tuple(labels)
    if len(labels) != n:
        raise GraphError(f"one label for each of the {n} nodes is needed; got {len(labels)}")
    seen = set()
    for label in labels:
        try:
            if label in seen:
                raise GraphError(f"the label {label!r} is there more than once; every node needs its own")
            seen.add(label)
        except TypeError:
            raise GraphError(f"the label {label!r} cannot be hashed; use names, numbers or tuples") from None
    return labels


def _entries(A: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """(n, row, column, value) of what is not zero in a square matrix; a sparse one stays sparse."""
    try:
        matrix = A.tocoo(copy=True) if hasattr(A, "tocoo") else np.asarray(A, dtype=np.float64)
    except (TypeError, ValueError):
        raise GraphError("an adjacency matrix is a square array of numbers; this is not one") from None
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"an adjacency matrix is square; this has the shape {matrix.shape}")
    if isinstance(matrix, np.ndarray):
        i, j = np.nonzero(matrix)
        return len(matrix), i, j, matrix[i, j]
    matrix.sum_duplicates()
    kept = matrix.data != 0
    return matrix.shape[0], matrix.row[kept], matrix.col[kept], matrix.data[kept].astype(np.float64)


def _pairs(edges: Any) -> np.ndarray:
    """The edges as an (E, 2) array of integers, or the first that is not a pair of them."""
    try:
        edges = edges if isinstance(edges, np.ndarray) else list(edges)
        array = np.asarray(edges)
    except TypeError:
        raise GraphError(f"edges are pairs (sender, receiver); got {type(edges).__name__}") from None
    except ValueError:
        array = np.array(0)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        got = f"an array of shape {array.shape}" if array is edges else f"{edges[:3]!r}, ..."
        raise GraphError(f"edges are pairs (sender, receiver); got {got}")
    if array.dtype.kind in "iu":
        return array
    for sender, receiver in array.tolist() if array is edges else edges:
        if not all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in (sender, receiver)):
            raise GraphError(
                f"edge ({sender!r}, {receiver!r}): nodes are integers from 0; number them and pass names as labels="
            )
    return np.array(edges, dtype=object)  # integers too large for an array: the check of n names them
