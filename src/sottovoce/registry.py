"""What a file registers at its end: an algorithm or a mechanism. They are found by being there, no list is edited."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from .errors import ParameterError, UnknownName
from .options import parse_options as parse_options
from .options import parse_value as parse_value
from .options import underscored as underscored
from .sets import FORMS, region


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm or a mechanism: its default, one line of help, and what it must satisfy."""

    default: Any
    help: str
    check: Callable[[Any], bool] | None = None
    expected: str = ""
    read: Callable[[Any], Any] | None = None  # makes the value of what was given, a text say

    def accepts(self, value: Any) -> bool:
        """None only where it is the default: nothing was given."""
        if value is None:
            return self.default is None
        try:
            return self.check is None or bool(self.check(value))
        except (TypeError, ValueError, OverflowError):
            return False

    @property
    def type(self) -> str:
        return "value" if self.default is None else type(self.default).__name__


def positive(default: Any, help: str) -> Parameter:
    """A number above zero."""
    return Parameter(default, help, lambda v: 0 < v < math.inf, "a number above 0")


def at_least(lowest: int, default: int, help: str) -> Parameter:
    """A whole number from `lowest` on."""
    check = lambda v: v == int(v) and v >= lowest and not isinstance(v, bool)
    return Parameter(default, help, check, f"a whole number, at least {lowest}")


def between(lowest: int, highest: int, default: int, help: str) -> Parameter:
    """A whole number from `lowest` to `highest`."""
    check = lambda v: v == int(v) and lowest <= v <= highest and not isinstance(v, bool)
    return Parameter(default, help, check, f"a whole number from {lowest} to {highest}")


def one_of(choices: tuple[Any, ...], default: Any, help: str) -> Parameter:
    """One of a few words."""
    return Parameter(default, help, lambda v: isinstance(v, str) and v in choices, "one of " + ", ".join(map(str, choices)))


def one_of_numbers(choices: tuple[int, ...], default: int, help: str) -> Parameter:
    """One of a few whole numbers."""
    known = lambda v: isinstance(v, int) and not isinstance(v, bool) and v in choices
    return Parameter(default, help, known, "one of " + ", ".join(map(str, choices)))


def within(default: Any, help: str = "the set that iterates are projected onto, ball:5 or box:-1..1") -> Parameter:
    """A bounded convex set; None where a method can do without, and that is its default."""
    return Parameter(default, help, expected=FORMS, read=region)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A method: how a node starts, what it does in one iteration, and what is said of it.

    spends(parameters, problem, iterations) -> {"epsilon": ..., "delta": ...} or None     what so many iterations give away of one
                                         node's cost, worked out from what is public: `parameters` (with `stepsize`, the largest,
                                         and `shares`, what each node keeps of its own value, by the name of the weight), problem.n
                                         and problem.d, never its data. A mechanism may state the same
    """

    name: str
    start: Callable[..., Any]  # start(node, x) -> State
    step: Callable[..., Any]  # step(node, state) -> State
    source: str  # the paper
    leaks: str  # one sentence
    certainty: str = "A"  # A: from the source or verified; B: well known, re-derived; C: from memory
    graphs: str = "directed"  # "directed", "two-way", "sequence" (a graph an iteration) or "helpers" (talks to its helpers alone)
    weights: Mapping[str, Any] = field(default_factory=dict)  # {"R": rows("uniform"), "A": "R" (the same), ...}
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    exchanges: int | Callable[[int], int] = 1  # in one iteration; a method that floods says how many by the diameter
    kinds: tuple[str, ...] = ()  # payload kind of each exchange, or one for all of them; float64 where nothing is said
    players: tuple[str, ...] = ("eager", "compiled", "peer")
    helpers: int = 0  # nodes without a cost that the player appends, with links both ways to every party
    minimises: bool = True  # False: it needs no costs (a sum of values, say)
    averages: bool = False  # True: from the nodes' values it finds their mean, and only that
    floods: bool = False  # whether the step needs the graph's diameter (node.public.diameter)
    answer: Callable[[Any], Any] = lambda s: s.x  # what is compared with the optimum
    mechanisms: Callable[[Any], tuple[Any, ...]] = lambda parameters: ()  # that belong to the method, innermost
    takes: int | None = None  # iterations after which it is done, unless more are asked for; None: it has no end of its own
    quadratic: bool = False  # whether it serves quadratic costs only
    opens: str = ""  # what it opens to everybody by design, besides the optimum
    own_steps: str | None = None  # the method's own rule for its stepsizes, in words; then nothing is advised
    good_step: Callable[[float, float, float], float] | None = None  # with own_steps: from largest and least curvature, mean degree
    per_node_steps: bool = False  # whether every node may have its own stepsize
    refuses: Callable[[Any], str | None] = lambda parameters: None  # why it cannot work with these parameters, or None
    spends: Callable[..., Mapping[str, float] | None] = lambda parameters, problem, iterations: None  # see above
    simulated: str = ""  # why only a simulation plays it and real nodes refuse; empty: they play it
    otherwise: Callable[[Any], dict[str, Any]] = lambda parameters: {}  # fields that are others with these (kinds, players)

    def settled_for(self, parameters: Mapping[str, Any]) -> Algorithm:
        """The method as it is with these parameters: itself, unless they change how it is played."""
        changes = self.otherwise(SimpleNamespace(**parameters))
        return replace(self, **changes) if changes else self

    def __post_init__(self) -> None:
        _check_words(self)
        _check_weights(self)

    def payloads(self, diameter: int | None = None) -> tuple[str, ...]:
        """The payload kind of each exchange of one iteration, on a graph of this diameter."""
        count = self.exchanges if isinstance(self.exchanges, int) else self.exchanges(1 if diameter is None else diameter)
        return self.kinds if len(self.kinds) == count else (self.kinds or ("float64",)) * count

    @property
    def rounds(self) -> str:
        """How many exchanges an iteration has, in words."""
        if isinstance(self.exchanges, int):
            return str(self.exchanges)
        return "the diameter" if self.exchanges(1) == 1 else f"{self.exchanges(1)} times the diameter"


GRAPHS, PLAYERS, CERTAINTY = ("directed", "two-way", "sequence", "helpers"), ("eager", "compiled", "peer"), ("A", "B", "C")


def _check_words(method: Algorithm) -> None:
    """The fields that take one of a few words."""
    for what, value, words in (("graphs", method.graphs, GRAPHS), ("certainty", method.certainty, CERTAINTY)):
        if value not in words:
            raise ParameterError(f"{method.name}: {what} must be one of {', '.join(words)}, not {value!r}")
    players = method.players
    if not (isinstance(players, tuple) and players and all(player in PLAYERS for player in players)):
        raise ParameterError(f"{method.name}: players must be a tuple of one or more of {', '.join(PLAYERS)}, not {players!r}")
    if (method.graphs == "helpers" and not method.helpers) or (method.graphs == "sequence" and method.helpers):
        raise ParameterError(f"{method.name}: graphs={method.graphs!r} does not go with helpers={method.helpers}")
    if len(method.kinds) > 1 and len(method.kinds) != method.exchanges:
        raise ParameterError(
            f"{method.name}: kinds names the payload of each of {method.exchanges} exchanges, not of {len(method.kinds)}"
        )


def _check_weights(method: Algorithm) -> None:
    """A weight is a Choice, or the name of one that comes before it."""
    known: list[str] = []
    for name, choice in method.weights.items():
        if isinstance(choice, str) and choice not in known:
            raise ParameterError(
                f"{method.name}: the weight {name} is to be the same as {choice!r}, which must be a weight before it "
                f"({', '.join(known) or 'there is none'}); for a rule, write rows({choice!r}), columns(...) or doubly(...)"
            )
        if not isinstance(choice, str | Choice):
            raise ParameterError(f"{method.name}: the weight {name} must be rows(), columns(), doubly() or a name, not {choice!r}")
        known.append(name)


@dataclass(frozen=True)
class Choice:
    """Who chooses a weight, and how unless told otherwise."""

    side: str
    default: Any


def rows(default: Any = "uniform") -> Choice:
    """A weight that the receiver chooses; its rows sum to one."""
    return Choice("row", default)


def columns(default: Any = "uniform") -> Choice:
    """A weight that the sender chooses; its columns sum to one."""
    return Choice("column", default)


def doubly(default: Any = "doubly") -> Choice:
    """A weight whose rows and columns sum to one."""
    return Choice("both", default)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A privacy mechanism: a layer around a node, and what it needs.

    start(node, parameters) -> m         called once, before the algorithm starts; `node` is the one outside this layer, on which
                                         it may draw and exchange. m is what the mechanism keeps: an array, or a tuple of arrays
                                         (a NamedTuple, say), or None
    wrap(node, m, parameters) -> Layer   called in every iteration, with that iteration's node and the m of the one before; a new
                                         Layer each time: `Layer(node, m, parameters)` or a class of its own

    `fits` is shown what is to be played (problem, graph, iterations, x0, settled) before it begins, to refuse it or not.

    `parameters` has the settled options as attributes (parameters.K). A verb of the Layer that has something to remember
    assigns `self.m`: what `layer.m` is after the step is what wrap is given in the next iteration. Where iterations are
    compiled, m keeps its shapes and kinds.
    """

    name: str
    source: str
    wrap: Callable[..., Any]  # wrap(node, m, parameters) -> node
    start: Callable[..., Any] = lambda node, parameters: None  # start(node, parameters) -> m, may exchange
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    needs: Callable[..., str | None] = lambda algorithm, parameters, outside: None  # a reason to refuse, or None
    needs_text: str = "nothing"
    leaks: str = ""
    weights: Mapping[str, str] = field(default_factory=dict)  # choices of the method's weights that it settles: {"A": "R"}
    overrides: tuple[str, ...] = ()  # the verbs it changes
    allows: tuple[str, ...] = ()  # mechanisms that may change the same ones
    simulated: str = ""  # why only a simulation plays it and real nodes refuse; empty: they play it
    floods: bool = False  # whether its start needs the graph's diameter (node.public.diameter)
    lasts: str | None = None  # the parameter that says for how many iterations it acts; None: always
    fits: Callable[..., str | None] = lambda parameters, task: None  # a reason to refuse a run as a whole, or None
    cancels: bool = False  # whether it asks for node.cancelling
    together: Callable[..., bool] = lambda parameters: False  # whether all nodes must start at the same x^0
    breaks_invariant: bool = False
    spends: Callable[..., Mapping[str, float] | None] = lambda parameters, problem, iterations: None  # as an Algorithm's


@dataclass(frozen=True)
class Applied:
    """A mechanism with its parameters."""

    mechanism: Mechanism
    parameters: tuple[tuple[str, Any], ...]

    @property
    def options(self) -> SimpleNamespace:
        return SimpleNamespace(**dict(self.parameters))

    @property
    def until(self) -> int | None:
        """The first iteration in which it does nothing any more; None: it never stops."""
        return None if self.mechanism.lasts is None else int(dict(self.parameters)[self.mechanism.lasts])

    def __repr__(self) -> str:
        return f"{self.mechanism.name}({', '.join(f'{k}={v}' for k, v in self.parameters)})"


_ALGORITHMS: dict[str, Algorithm] = {}
_MECHANISMS: dict[str, Mechanism] = {}


def register(item: Algorithm | Mechanism) -> None:
    """Make it known; a file of algorithms/ or mechanisms/ ends with this."""
    book: dict[str, Any] = _ALGORITHMS if isinstance(item, Algorithm) else _MECHANISMS
    if item.name in book and book[item.name] is not item:
        raise ParameterError(f"the name {item.name!r} is registered twice; names are unique")
    book[item.name] = item


@functools.cache
def _discover() -> None:
    for folder in ("algorithms", "mechanisms"):
        package = importlib.import_module(f"{__package__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name."""
    _discover()
    return dict(sorted(_ALGORITHMS.items()))


def mechanisms() -> dict[str, Mechanism]:
    """All mechanisms by name."""
    _discover()
    return dict(sorted(_MECHANISMS.items()))


def algorithm(value: str | Algorithm) -> Algorithm:
    """An algorithm by name, or as it is."""
    if isinstance(value, Algorithm):
        return value
    return _by_name("algorithm", str(value), algorithms())


def mechanism(value: str | Applied, **parameters: Any) -> Applied:
    """A mechanism by name with its parameters: mechanism("random-start", K=3), or the text "random-start:K=3,law=cauchy"."""
    if isinstance(value, Applied):
        return value
    if not isinstance(value, str):
        raise ParameterError(f"a mechanism is given by its name, or as mechanism('name', ...), not as {value!r}")
    name, _, text = value.partition(":")
    found = _by_name("mechanism", name, mechanisms())
    options = {**parse_options(text), **parameters}
    return Applied(found, tuple(settle(f"mechanism {name!r}", found.parameters, options).items()))


def _by_name(kind: str, name: str, book: Mapping[str, Any]) -> Any:
    if name not in book:
        raise UnknownName(kind, name, book)
    return book[name]


def settle(owner: str, declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The declared parameters with the given values, each checked."""
    given = underscored(given)
    for name in given:
        if name not in declared:
            raise ParameterError(f"{owner} has no parameter {name!r}; it takes: {', '.join(declared) or 'none'}")
    settled = {}
    for name, parameter in declared.items():
        value = given.get(name, parameter.default)
        if parameter.read is not None and value is not None:
            value = _read(f"{owner}: {name}", parameter.read, value)
        if not parameter.accepts(value):
            raise ParameterError(f"{owner}: {name} must be {parameter.expected or 'given'}, not {value!r}")
        _check_plain(owner, name, value)
        settled[name] = value
    return settled


def _read(what: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except ParameterError as error:
        raise ParameterError(f"{what}: {error}") from None


def _check_plain(owner: str, name: str, value: Any) -> None:
    """Programs are compiled for the parameters, so they must be hashable."""
    try:
        hash(value)
    except TypeError:
        raise ParameterError(
            f"{owner}: {name} is of type {type(value).__name__}, but parameters of a step are numbers, words or tuples of them; "
            "pass data through the problem"
        ) from None
