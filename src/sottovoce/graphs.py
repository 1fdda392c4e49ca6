"""Ready-made graphs, and a graph from a line of text or a file.

A public function of this room is a builder by being here: `builders` finds it, `build("ring:n=100,hops=1+2")` and the
command line call it. Edges are (sender, receiver); cycles and rings are directed unless two_way is true.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.errors import GraphError, NotInstalled, ParameterError, UnknownName
from sottovoce.graph import Graph
from sottovoce.paths import SMALL

TRIES = 100  # how often a random graph is drawn before giving up on strong connectivity
MOST = 10**8  # edges of a ready graph: 1.6 GB, and several times that while they are sorted
FILES = (".graphml", ".edges", ".txt", ".csv")


def cycle(n: int, two_way: bool = False) -> Graph:
    """Node i sends to i + 1, and the last to 0."""
    return ring(n, hops=(1,), two_way=two_way)


def ring(n: int, hops: tuple[int, ...] = (1, 2), two_way: bool = False) -> Graph:
    """Node i sends to i + h (mod n) for every hop h; the paper's network of 100 nodes is ring(100)."""
    n = _at_least("n", n, 2)
    hops = tuple(_at_least("a hop", h, 1) for h in hops)
    if not hops or max(hops) >= n or len(set(hops)) < len(hops):
        raise GraphError(f"hops are different whole numbers from 1 to n-1 = {n - 1}; got {hops}")
    _bearable(n * len(hops) * (1 + two_way))
    sender = np.repeat(np.arange(n), len(hops))
    return _graph(n, sender, (sender + np.tile(hops, n)) % n, two_way)


def complete(n: int) -> Graph:
    """Every node sends to every other."""
    n = _at_least("n", n, 1)
    _bearable(n * (n - 1), "a ring, exponential or scattered graph has few for as many nodes")
    sender, receiver = np.nonzero(~np.eye(n, dtype=bool))
    return _graph(n, sender, receiver)


def star(n: int) -> Graph:
    """Two-way between node 0, the hub, and every other node."""
    _bearable(2 * _at_least("n", n, 1))
    leaves = np.arange(1, n)
    return _graph(n, np.zeros_like(leaves), leaves, two_way=True)


def path(n: int) -> Graph:
    """Two-way between i and i + 1, in a line."""
    _bearable(2 * _at_least("n", n, 1))
    nodes = np.arange(n)
    return _graph(n, nodes[:-1], nodes[1:], two_way=True)


def grid(rows: int, columns: int) -> Graph:
    """Two-way between neighbours in a rectangle; the node in row r and column c is r * columns + c."""
    rows, columns = _at_least("rows", rows, 1), _at_least("columns", columns, 1)
    _bearable(4 * rows * columns)
    nodes = np.arange(rows * columns).reshape(rows, columns)
    sender = np.concatenate((nodes[:, :-1].ravel(), nodes[:-1].ravel()))
    receiver = np.concatenate((nodes[:, 1:].ravel(), nodes[1:].ravel()))
    return _graph(rows * columns, sender, receiver, two_way=True)


def exponential(n: int) -> Graph:
    """Node i sends to i + 1, i + 2, i + 4, ... (mod n): few edges, and few steps between any two nodes."""
    n = _at_least("n", n, 2)
    return ring(n, hops=tuple(2**j for j in range((n - 1).bit_length())))


def erdos_renyi(n: int, p: float, seed: int = 0, two_way: bool = False) -> Graph:
    """Every possible edge with probability p, drawn anew until the graph is strongly connected."""
    n = _at_least("n", n, 2)
    if not 0 < p <= 1:
        raise GraphError(f"p is a probability, above 0 and at most 1; got {p}")

    _bearable(round(n * (n - 1) * p), "take a smaller p, or fewer nodes")

    def draw(rng: np.random.Generator) -> Graph:
        sender, other = np.divmod(_successes(rng, n * (n - 1), p), n - 1)
        receiver = other + (other >= sender)
        keep = sender < receiver if two_way else slice(None)  # a two-way edge is one draw
        return _graph(n, sender[keep], receiver[keep], two_way)

    enough = min(1.0, (math.log(n) + 4) / n)
    return _connected(draw, seed, f"p = {p:g}", f"about p = {max(enough, min(1.0, 1.5 * p)):.2g} would do")


def geometric(n: int, radius: float | None = None, seed: int = 0) -> Graph:
    """Points in the unit square, two-way within the radius (default sqrt(2 log(n) / n)), until connected."""
    n = _at_least("n", n, 2)
    enough = math.sqrt(2 * math.log(n) / n)
    radius = enough if radius is None else radius
    if not 0 < radius < math.inf:
        raise GraphError(f"the radius is a positive number; got {radius}")

    def draw(rng: np.random.Generator) -> Graph:
        return _graph(n, *_within(rng.random((n, 2)), radius), two_way=True)

    return _connected(draw, seed, f"radius = {radius:g}", f"about radius = {max(enough, 1.2 * radius):.2g} would do")


def scattered(n: int, degree: int = 8, seed: int = 0) -> Graph:
    """Node i sends to i + 1 (mod n), so that all are connected, and to `degree` other nodes drawn at random."""
    n, degree = _at_least("n", n, 2), _at_least("degree", degree, 0)
    others = n - 2  # neither itself nor i + 1
    if degree > others:
        raise GraphError(f"degree is at most n - 2 = {others}, the nodes other than i and i + 1; got {degree}")
    _bearable(n * (degree + 1))
    rng = np.random.default_rng(_at_least("seed", seed, 0))
    chosen = np.empty((n, degree), dtype=np.int64)
    for s, top in enumerate(range(others - degree, others)):  # Floyd's sampling: distinct without trying again
        drawn = rng.integers(0, top + 1, size=n)
        chosen[:, s] = np.where((chosen[:, :s] == drawn[:, None]).any(axis=1), top, drawn)
    hops = np.column_stack((np.ones(n, dtype=np.int64), chosen + 2))
    sender = np.repeat(np.arange(n), degree + 1)
    return _graph(n, sender, (sender + hops.ravel()) % n)


def paper_a() -> Graph:
    """Three nodes in a directed cycle."""
    return cycle(3)


def paper_b() -> Graph:
    """Five nodes, irregular, strongly connected: a stand-in, as the paper's own figure 1(b) is not available."""
    return Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (2, 4), (3, 1)])


def builders() -> dict[str, Callable[..., Graph]]:
    """Every builder by the name that text and the command line use: "erdos-renyi", "paper-b"."""
    found = {name: value for name, value in globals().items() if inspect.isfunction(value) and not name.startswith("_")}
    return {
        name.replace("_", "-"): value
        for name, value in sorted(found.items())
        if value.__module__ == __name__ and name not in ("build", "builders")
    }


def build(text: str) -> Graph:
    """A graph from "paper-b", "cycle:5", "ring:n=100,hops=1+2,two_way=true" or the name of a file."""
    if Path(text).suffix.lower() in FILES:
        return _read(Path(text))
    name, _, rest = text.partition(":")
    known = builders()
    builder = known.get(name.strip().replace("_", "-"))
    if builder is None:
        raise UnknownName("graph", name, known)
    return builder(**_arguments(name, builder, [part.strip() for part in rest.split(",") if part.strip()]))


def _arguments(name: str, builder: Callable, parts: list[str]) -> dict[str, Any]:
    parameters = inspect.signature(builder).parameters
    types = typing.get_type_hints(builder)
    accepted = ", ".join(str(p).split(":")[0] + _default(p) for p in parameters.values()) or "no parameters"
    values: dict[str, Any] = {}
    for i, part in enumerate(parts):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:  # by position, as long as no name came before
            named = any("=" in earlier for earlier in parts[:i])
            key, value = ("" if named or i >= len(parameters) else list(parameters)[i]), part
        if key not in parameters:
            raise ParameterError(f"{name} cannot use {part!r}; it accepts {accepted}")
        if key in values:
            raise ParameterError(f"{name}: {key} is given twice; it accepts {accepted}")
        values[key] = _convert(f"{name}: {key}", value.strip(), types[key])
    missing = [k for k, p in parameters.items() if p.default is p.empty and k not in values]
    if missing:
        raise ParameterError(f"{name} needs {' and '.join(missing)}; it accepts {accepted}")
    return values


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    if isinstance(parameter.default, tuple):
        return "=" + "+".join(map(str, parameter.default))
    return f"={str(parameter.default).lower()}"


def _convert(what: str, value: str, kind: Any) -> Any:
    kinds = typing.get_args(kind) or (kind,)
    try:
        if typing.get_origin(kind) is tuple:
            return tuple(int(part) for part in value.split("+"))
        if bool in kinds:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        if value.lower() == "none" and type(None) in kinds:
            return None
        return float(value) if float in kinds else int(value)
    except (ValueError, KeyError):
        wanted = "whole numbers joined by +" if tuple is typing.get_origin(kind) else {bool: "true or false"}.get(kind)
        wanted = wanted or ("a number" if float in kinds else "a whole number")
        raise ParameterError(f"{what} is {wanted}; got {value!r}") from None


def _read(file: Path) -> Graph:
    if not file.is_file():
        raise GraphError(f"there is no file {file}; a graph file ends in {', '.join(FILES)}")
    try:
        return _read_graphml(file) if file.suffix.lower() == ".graphml" else _read_edges(file)
    except UnicodeDecodeError:
        raise GraphError(f"{file} is not text in UTF-8; save it so") from None


def _read_edges(file: Path) -> Graph:
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words or (not pairs and [word.lower() for word in words] == ["sender", "receiver"]):
            continue
        if len(words) != 2:
            raise GraphError(f"{file}, line {number}: expected 'sender receiver' or 'sender,receiver', got {line!r}")
        pairs.append(tuple(words))
    if not pairs:
        raise GraphError(f"{file} holds no edges; write one a line, as 'sender receiver'")
    named = _names(word for pair in pairs for word in pair)
    return Graph.from_labels(dict.fromkeys(named.values()), [(named[a], named[b]) for a, b in pairs])


def _read_graphml(file: Path) -> Graph:
    try:
        import networkx as nx
    except ImportError:
        raise NotInstalled("reading GraphML", "graphs") from None
    try:
        g = nx.read_graphml(file)
    except (nx.NetworkXException, SyntaxError, KeyError, ValueError) as error:  # XML's own ParseError is a SyntaxError
        raise GraphError(f"{file} cannot be read as GraphML: {error}") from None
    return Graph.from_networkx(nx.relabel_nodes(g, _names(g.nodes)))


def _names(words: Iterable[str]) -> dict[str, int | str]:
    """Names as integers where every one is an integer."""
    words = list(dict.fromkeys(words))
    try:
        return {word: int(word) for word in words}
    except ValueError:
        return {word: word for word in words}


def _graph(n: int, sender: np.ndarray, receiver: np.ndarray, two_way: bool = False) -> Graph:
    if two_way:
        keys = np.unique(np.concatenate((receiver * n + sender, sender * n + receiver)))
        sender, receiver = keys % n, keys // n
    return Graph(n, np.column_stack((sender, receiver)))


def _at_least(what: str, value: Any, least: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise GraphError(f"{what} is a whole number, at least {least}; got {value!r}")
    return int(value)


def _bearable(edges: int, instead: str = "take fewer nodes") -> None:
    if edges > MOST:
        raise GraphError(f"this graph would have {edges:,} edges, more than the {MOST:,} that fit in memory; {instead}")


def _connected(draw: Callable[[np.random.Generator], Graph], seed: int, given: str, advice: str) -> Graph:
    """The first of the graphs drawn with sub-seeds 0, 1, ... that is strongly connected."""
    seed = _at_least("seed", seed, 0)
    for attempt in range(TRIES):
        graph = draw(np.random.default_rng([seed, attempt]))
        if graph.strongly_connected:
            return graph
    raise GraphError(f"none of {TRIES} graphs drawn with {given} was strongly connected; {advice}")


def _successes(rng: np.random.Generator, trials: int, p: float) -> np.ndarray:
    """Which of the trials succeed, from the gaps between successes: no memory for the failures."""
    at = np.array([-1])
    while at[-1] < trials:
        gaps = rng.geometric(p, size=int(trials * p + 6 * math.sqrt(trials * p)) + 10)
        at = np.append(at, at[-1] + np.cumsum(np.minimum(gaps, trials + 1)))
    return at[1:][at[1:] < trials]


def _within(points: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The pairs i < j of points at most the radius apart."""
    if len(points) > SMALL:
        from scipy.spatial import KDTree

        pairs = KDTree(points).query_pairs(radius, output_type="ndarray")
        return pairs[:, 0], pairs[:, 1]
    first, second = np.triu_indices(len(points), k=1)
    near = ((points[first] - points[second]) ** 2).sum(axis=1) <= radius**2
    return first[near], second[near]
