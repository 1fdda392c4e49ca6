"""What the graph alone decides: the conditions of the paper's Theorems 2 to 5 and what a coalition sums up.

A coalition takes itself out of the graph; the node asked about keeps the component that is left around it, its anonymity
set. What crosses the border of that component is known to the coalition, so the sum of the component's gradients is too
(maths.md 3, privacy.md 1, finding 6). All this holds in the paper's model: late weights known to all, links sealed.
"Protected" speaks of the constant offset of one gradient, for all offsets but a null set, and of nothing else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

import numpy as np

from ..errors import GraphError, ParameterError
from ..graph import Graph

LIMIT = 20_000  # coalitions that at_most may stand for
VISITS = 1_000_000  # branches that smallest_within may try: some seconds
SHOWN = 6  # nodes that a sentence names

Near = tuple[frozenset[int], ...]  # who is next to whom when directions are forgotten


@dataclass(frozen=True)
class Standing:
    """Where one node stands against one coalition."""

    node: int
    coalition: frozenset[int] | None  # None: whoever taps all links
    theorem: str  # of the paper, the one whose condition is met: "2", "3", "4", "5", or "remark 7" for the wire-tapper
    condition: str  # that condition, in the words of this graph
    protected: bool  # the constant offset of the node's gradient is covered by Theorem 2 or 4
    group: tuple[int, ...]  # the anonymity set
    at: str  # when the coalition knows the group's sum: "every late iterate", or "the optimum" (in the limit)
    equation: str  # what the coalition learns about the group

    @property
    def size(self) -> int:
        return len(self.group)


@dataclass(frozen=True)
class Table:
    """Every node against every coalition; `group_size[i, j]` is node i against coalition j, 0 where i is in it."""

    graph: Graph
    coalitions: tuple[frozenset[int], ...]
    group_size: np.ndarray

    @property
    def protected(self) -> np.ndarray:
        """Whether the offset of i is covered against coalition j; True where i is in it, as it has nothing to hide from itself."""
        return self.group_size != 1  # alone in its component: exactly when no neighbour is honest

    def standing(self, i: int, j: int) -> Standing:
        """Node i against coalition j, in words."""
        return standing(self.graph, i, self.coalitions[j])


def standing(graph: Graph, node: int, curious: Collection[int]) -> Standing:
    """Node against a coalition of other nodes, all given by their numbers."""
    near = _neighbours(graph)
    node, coalition = _node(graph, node), frozenset(_node(graph, j) for j in curious)
    if not coalition or node in coalition:
        who = f"node {node} itself" if coalition else "nobody"
        raise ParameterError(f"a coalition is one or more nodes other than node {node}; got {who} in it")
    group = _component(near, node, coalition)
    theorem, condition = _condition(graph, node, near[node], coalition)
    # y of a node, and so its part of the sum, is read late by whoever it sends to
    seen = all(not coalition.isdisjoint(graph.out_neighbours(i)) for i in group)
    at = "every late iterate" if seen else "the optimum"
    return Standing(node, coalition, theorem, condition, len(group) > 1, group, at, _equation(graph, group, at))


def standing_wiretap(graph: Graph, node: int) -> Standing:
    """Node against whoever reads all links in the clear: the border of each single node is known (attack A7)."""
    _neighbours(graph)
    group, at = (_node(graph, node),), "every late iterate"
    condition = f"every link of {_named(graph, group)} is read in the clear"
    return Standing(group[0], None, "remark 7", condition, False, group, at, _equation(graph, group, at))


def smallest_breach(graph: Graph, node: int) -> frozenset[int]:
    """The smallest coalition that exposes the node alone: all its neighbours, in and out. There is no other."""
    return _neighbours(graph)[_node(graph, node)]


def smallest_within(graph: Graph, node: int, size: int) -> frozenset[int]:
    """A smallest coalition that leaves the node a group of at most `size`.

    Exact: it tries the connected sets around the node, each neighbour of the set so far either taken in or left to the
    coalition, and gives up a branch once its coalition cannot be smaller than the best: at most (neighbours + size choose
    size) branches end. Where that is too much the size is refused, after some seconds.
    """
    near, node = _neighbours(graph), _node(graph, node)
    if _whole(size, "size") < 1:
        raise ParameterError(f"size is the number of nodes in a group, at least 1; got {size}")
    if size >= graph.n - 1:  # whoever it is, one other leaves no more
        return frozenset((min(near[node]),))
    best, visits = near[node], 0
    todo = [(frozenset((node,)), near[node], frozenset[int]())]  # the group, those next to it, those left to the coalition
    while todo:
        group, border, left = todo.pop()
        if len(border) < len(best):
            best = border
        free = border - left
        room = min(size - len(group), len(free))
        if not room or len(border) - room >= len(best):  # at best `room` of the border are taken in
            continue
        if (visits := visits + 1) > VISITS:
            raise ParameterError(f"node {node} has too many neighbours for an exact answer with size={size}; ask for a smaller one")
        new = min(free)
        todo.append((group, border, left | {new}))
        todo.append((group | {new}, (border | near[new]) - group - {new}, left))
    return best


def table(graph: Graph, curious: Any = None, at_most: int | None = None) -> Table:
    """Every node against every coalition asked for (see `coalitions`); each single node by default, in O(n + m)."""
    asked = coalitions(graph, curious, at_most)
    near = _neighbours(graph)
    if curious is None and at_most is None:
        return Table(graph, asked, _without_each(near))
    sizes = np.zeros((len(asked), graph.n), dtype=np.int32)
    for row, coalition in zip(sizes, asked, strict=True):
        todo = set(range(graph.n)) - coalition
        while todo:
            group = _component(near, todo.pop(), coalition)
            row[list(group)] = len(group)
            todo.difference_update(group)
    return Table(graph, asked, sizes.T)


def coalitions(graph: Graph, curious: Any = None, at_most: int | None = None) -> tuple[frozenset[int], ...]:
    """The coalitions asked for, as sets of node numbers: None is each single node, in order; a node, or a set of nodes,
    is one; a list of sets is several; `at_most=t` is every set of up to t nodes. Nodes are given by label or by number."""
    if curious is not None and at_most is not None:
        raise ParameterError("expected curious or at_most, got both; leave one of them out")
    if curious is None:
        return _up_to(graph.n, 1 if at_most is None else _whole(at_most, "at_most"), limited=at_most is not None)
    several = isinstance(curious, list | tuple) and not _is_label(graph, curious)
    if several and not all(isinstance(each, set | frozenset) for each in curious):
        raise ParameterError(f"a list holds coalitions, each a set of nodes, like [{{0}}, {{1, 2}}]; got {curious!r}")
    found = tuple(dict.fromkeys(_coalition(graph, each) for each in (curious if several else (curious,))))
    if not found:
        raise ParameterError("expected at least one coalition, got an empty list; None stands for each single node")
    return found


def _up_to(n: int, t: int, limited: bool) -> tuple[frozenset[int], ...]:
    if not 1 <= t < n and limited:
        raise ParameterError(f"at_most is a whole number from 1 to n - 1 = {n - 1}; got {t}")
    count = sum(math.comb(n, size) for size in range(1, t + 1))
    if limited and count > LIMIT:
        raise ParameterError(f"at_most={t} of {n} nodes are {count} coalitions, and {LIMIT} is the most; name those that matter")
    return tuple(map(frozenset, chain.from_iterable(combinations(range(n), size) for size in range(1, t + 1))))


def _coalition(graph: Graph, nodes: Any) -> frozenset[int]:
    members = nodes if isinstance(nodes, set | frozenset) and not _is_label(graph, nodes) else (nodes,)
    found = frozenset(_numbered(graph, node) for node in members)
    if not 1 <= len(found) < graph.n:
        raise ParameterError(f"a coalition has from 1 to n - 1 = {graph.n - 1} of the nodes; got {len(found)}")
    return found


def _is_label(graph: Graph, value: Any) -> bool:
    return any(type(label) is type(value) and label == value for label in graph.labels)


def _numbered(graph: Graph, node: Any) -> int:
    """A label's number; a number stands for itself where no label is a number."""
    whole = isinstance(node, int | np.integer)
    if isinstance(node, bool):
        raise ParameterError(f"a node is given by its label or its number; got {node}")
    if whole and not any(isinstance(label, int | np.integer) for label in graph.labels):
        return _node(graph, node)
    return graph.index(node)


@lru_cache(maxsize=16)
def _neighbours(graph: Graph) -> Near:
    """Every node's neighbours, in and out; only where the theorems speak."""
    if graph.n < 2:
        raise GraphError("the graph has one node, so there is nobody to be protected from; two or more are needed")
    if (missing := graph.no_path()) is not None:
        i, j = missing
        raise GraphError(f"the theorems ask for a strongly connected graph, and no path leads from {i} to {j}; add edges")
    near: list[set[int]] = [set() for _ in range(graph.n)]
    for s, r in zip(graph.sender.tolist(), graph.receiver.tolist(), strict=True):
        near[s].add(r)
        near[r].add(s)
    return tuple(map(frozenset, near))


def _condition(graph: Graph, node: int, around: frozenset[int], coalition: frozenset[int]) -> tuple[str, str]:
    """The theorem whose condition is met, and the condition. One node alone is Theorems 2 and 3, except that they are
    silent about a stranger to a node with one neighbour; there Theorem 4 speaks, of a coalition of one."""
    me, honest = _named(graph, (node,)), around - coalition
    if len(coalition) == 1 and len(around) > 1:
        return "2", f"{me} has two or more neighbours, in or out: {_named(graph, around)}"
    if honest:
        return "4", f"{me} has a neighbour outside the coalition: {_named(graph, honest)}"
    if len(coalition) == 1:
        return "3", f"{_named(graph, around)} is the only in-neighbour and the only out-neighbour of {me}"
    return "5", f"every neighbour of {me} is in the coalition: {_named(graph, around)}"


def _equation(graph: Graph, group: tuple[int, ...], at: str) -> str:
    what = "the gradient" if len(group) == 1 else "the sum of the gradients"
    return f"{what} of {_named(graph, group)} at {at}"


def _named(graph: Graph, nodes: Collection[int]) -> str:
    names = [str(graph.labels[i]) for i in sorted(nodes)]
    if len(names) > SHOWN:
        return f"{len(names)} nodes ({', '.join(names[:SHOWN])}, ...)"
    return f"node {names[0]}" if len(names) == 1 else f"nodes {', '.join(names[:-1])} and {names[-1]}"


def _node(graph: Graph, node: Any) -> int:
    number = _whole(node, "a node's number")
    if not 0 <= number < graph.n:
        raise GraphError(f"there is no node {number}; the nodes are 0 to {graph.n - 1}")
    return number


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool):
        raise ParameterError(f"{what} is a whole number; got {value}")
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterError(f"{what} is a whole number; got {value!r}") from None


def _component(near: Near, node: int, without: frozenset[int]) -> tuple[int, ...]:
    found, todo = {node}, [node]
    while todo:
        new = near[todo.pop()] - found - without
        found |= new
        todo.extend(new)
    return tuple(sorted(found))


def _without_each(near: Near) -> np.ndarray:
    """[i, j]: how many nodes stay together with i when j is taken out; 0 on the diagonal.

    Only a cut vertex parts the others. In a depth-first search the nodes below j are a run of the order of visit, and the
    run of its child c comes off when nothing in it reaches back beyond j.
    """
    n = len(near)
    order, parent = _depth_first(near)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    below, back = [1] * n, [int(place[list(around)].min()) for around in near]
    runs: list[list[slice]] = [[] for _ in range(n)]
    for c in reversed(order[1:]):  # children before parents
        j, first = parent[c], int(place[c])
        below[j] += below[c]
        back[j] = min(back[j], back[c])
        if back[c] >= place[j]:
            runs[j].append(slice(first, first + below[c]))
    sizes = np.empty((n, n), dtype=np.int32)  # [j, place of i]
    for j, row in enumerate(sizes):
        row[:] = n - 1 - sum(run.stop - run.start for run in runs[j])
        for run in runs[j]:
            row[run] = run.stop - run.start
        row[place[j]] = 0
    return sizes[:, place].T


def _depth_first(near: Near) -> tuple[list[int], list[int]]:
    """The order of visit from node 0, and who led to whom."""
    order, parent = [0], [-1] * len(near)
    seen, path = {0}, [(0, iter(near[0]))]
    while path:
        node, rest = path[-1]
        new = next((u for u in rest if u not in seen), None)
        if new is None:
            path.pop()
            continue
        seen.add(new)
        order.append(new)
        parent[new] = node
        path.append((new, iter(near[new])))
    return order, parent
