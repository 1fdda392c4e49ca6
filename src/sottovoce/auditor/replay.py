"""The method itself, which is public, played on unknowns: what a view shows of each exchange is put in, everything else stays open.

Whatever a step does to a gradient is thereby inverted where that can be done, for any method and any mechanism whose steps are sums
of known multiples; no formula of a single method is written here.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import SottovoceError
from ..options import parse_options
from ..registry import Applied, algorithm, algorithms, mechanism, mechanisms, settle
from ..view import View
from .affine import Affine, Book, Entangled
from .linear import Solved
from .unknown_nodes import Asked, Confined, UnknownNodes

Array = np.ndarray
STEPS, LATE = 12, 4  # iterations that are played, and that many after what comes first has ended
WORK = 12000  # edges times coordinates times iterations
STUMBLES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)  # what a step may end in without a number
SAME = 12  # products with the same factor that are compared
EDGE = 1e-7  # how far inside a set a point has to lie for its projection to have done nothing


class Played(NamedTuple):
    """What a replay leaves."""

    solved: Solved
    start: Array
    value: Array
    gradients: list[Asked]


def played(view: View, steps: int | None = None) -> Played | None:
    """The replay of a view, so many iterations of it, made once; None where the method needs numbers to go on, or was not played as
    it says."""
    memo: dict[Any, Any] = view.__dict__.setdefault("_played", {})
    steps = _steps(view) if steps is None else steps
    if steps not in memo:
        memo[steps] = _played(view, steps)
    return memo[steps]


def _played(view: View, steps: int) -> Played | None:
    if not view.sent or "coordinates" not in view.header or view.header["algorithm"] not in algorithms():
        return None
    try:
        method, parameters, stack = of_header(view.header)
        node = UnknownNodes(view, parameters)
        x = node.book.array(node.n, node.coordinates, 1)
        _iterate(method, node, stack, x, steps)
        solved = _solved(node)
    except (Entangled, SottovoceError, *STUMBLES):
        return None
    return Played(solved, x, node.value, node.gradients) if solved.consistent else None


def _steps(view: View) -> int:
    """How many iterations are played: enough for a curvature and for what comes first, fewer on a large network."""
    d = int(view.header["coordinates"])
    wanted = max(STEPS, d + LATE, view.settled + LATE)
    return min(wanted, view.iterations, max(d + 2, reach(view)))


def reach(view: View) -> int:
    """How many iterations can be played in good time."""
    return WORK // (int(view.header["coordinates"]) * max(len(view.graph.edges), 1))


def _iterate(method: Any, node: UnknownNodes, stack: tuple[Applied, ...], x: Array, steps: int) -> None:
    """The start and the steps, through the mechanisms that act: the leftmost nearest the step."""
    acting = [a for a in stack if a.until is None or a.until > 0]
    ms: list[Any] = []
    for applied in reversed(acting):
        ms.insert(0, applied.mechanism.start(_dressed(node, acting[len(acting) - len(ms) :], ms)[0], applied.options))
    seen, layers = _dressed(node, acting, ms)
    state = node.noted(method.start(seen, x))
    kept = {id(a): layer.m for a, layer in zip(acting, layers, strict=True)}
    for k in range(steps):
        node.at(k)
        now = [a for a in acting if a.until is None or k < a.until]
        seen, layers = _dressed(node, now, [kept[id(a)] for a in now])
        state = node.noted(method.step(seen, state))
        kept |= {id(a): layer.m for a, layer in zip(now, layers, strict=True)}


def _dressed(node: Any, stack: list[Applied], ms: list[Any]) -> tuple[Any, list[Any]]:
    layers: list[Any] = []
    for applied, m in zip(reversed(stack), reversed(ms), strict=True):
        node = applied.mechanism.wrap(node, m, applied.options)
        layers.insert(0, node)
    return node, layers


def _solved(node: UnknownNodes) -> Solved:
    """What follows, and what follows from that: projections that did nothing, and secret factors that were used twice."""
    solved, told = Solved(node.book), 0
    while len(node.book.rows) > told:
        told = len(node.book.rows)
        _say_inside(node, solved)
        _say_factors(node.book, solved)
        solved = Solved(node.book) if len(node.book.rows) > told else solved
    return solved


def _say_inside(node: UnknownNodes, solved: Solved) -> None:
    """Where what came of a projection lies inside the set, it is what went in."""
    waiting: list[Confined] = []
    for c in node.confined:
        inside = np.array([_inside(c.region, solved.array(after[:, 0])) for after in c.after], dtype=bool)
        for form, came in zip(c.before[inside].flat, c.after[inside].flat, strict=True):
            node.book.say(came - form)
        if not inside.all():
            waiting.append(Confined(c.region, c.before[~inside], c.after[~inside]))
    node.confined = waiting


def _say_factors(book: Book, solved: Solved) -> None:
    """c from p = c a and q = c b, where p, q and a - b are known; then every product with c is a known multiple."""
    same: dict[Any, list[tuple[Affine, Affine, Affine]]] = {}
    for found in book.products:
        same.setdefault((tuple(found[1].terms.items()), found[1].constant), []).append(found)
    for products in same.values():
        c = _factor(products, solved)
        if c is not None:
            book.say(products[0][1], c)
            for product, _, other in products:
                book.say(product - other * c)
            gone = {id(product) for product, _, _ in products}
            book.products = [found for found in book.products if id(found[0]) not in gone]


def _factor(products: list[tuple[Affine, Affine, Affine]], solved: Solved) -> float | None:
    for (p, _, a), (q, _, b) in itertools.combinations(products[:SAME], 2):
        turned = solved.value(p - q), solved.value(a - b)
        if np.isfinite(turned).all() and abs(turned[1]) > 0:
            return turned[0] / turned[1]
    return None


def _inside(region: Any, point: Array) -> bool:
    if not np.isfinite(point).all():
        return False
    margin = EDGE * max(1.0, float(np.abs(point).max()))
    return all(region.holds(point + sign * margin * e) for e in np.eye(len(point)) for sign in (1, -1))


def of_header(header: Any) -> tuple[Any, Any, tuple[Applied, ...]]:
    """The method, its parameters, and its stack of mechanisms, as a transcript's header tells them."""
    method, told = algorithm(header["algorithm"]), header["parameters"]
    read = lambda known: {k: _value(known[k], v) for k, v in known_of(told, known).items()}
    parameters = SimpleNamespace(**settle(method.name, method.parameters, read(method.parameters)))
    own = method.mechanisms(parameters)
    stack = (*own, *(_applied(text) for text in header["mechanisms"][len(own) :]))
    return method, parameters, tuple(a for a in stack if not hasattr(a.mechanism.wrap, "wire"))  # those change what a tap sees


def known_of(told: dict[str, str], known: Any) -> dict[str, str]:
    """What is told of the parameters that are known."""
    return {name: told[name] for name in known if name in told}


def _value(parameter: Any, text: str) -> Any:
    """A parameter from its text."""
    kind = type(parameter.default)
    if text == "None":
        return None
    if parameter.read is not None or kind is str:
        return text
    return next(iter(parse_options(f"value={text}").values()))


def _applied(text: str) -> Applied:
    """A mechanism from what a header says of it: "message-noise(law=normal, scale=0.001)"."""
    name, _, inside = text.partition("(")
    if name not in mechanisms():
        raise Entangled
    known = mechanisms()[name].parameters
    given = dict(part.split("=", 1) for part in inside.removesuffix(")").split(", ") if "=" in part)
    return mechanism(name, **{key: _value(known[key], value) for key, value in given.items()})

