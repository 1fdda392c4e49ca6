"""A world: everything that decides a run of Algorithm 1, its replay, and what a coalition sees of it.

The replay is written from the paper alone and shares nothing with the simulator. It is plain arithmetic, so the same lines run
in float64 and, on object arrays of fractions.Fraction, exactly. Weights lie over entries: every edge and every node's own
share, sorted by receiver, then sender.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..family import Quadratic
from ..graph import Graph
from ..laws import LAWS, Law
from ..transcript import Draw, Transcript

Array = np.ndarray
WEIGHTS = ("R", "A", "C", "B")
EQUAL = 1e-12  # how far two views in float64 may be apart
FAITHFUL = 1e-9  # how far a replay may be from the recorded states, in units of the largest entry so far


class Iteration(NamedTuple):
    """The numbers of one iteration: stepsizes (node, coordinate), weights (entry, coordinate)."""

    stepsize: Array
    R: Array  # chosen by the receiver
    A: Array
    C: Array  # chosen by the sender
    B: Array


class Quadratics(NamedTuple):
    """Gradients H_i x - b_i; H (n, d, d), b (n, d)."""

    H: Array
    b: Array

    def __call__(self, x: Array) -> Array:
        return (self.H * x[:, None, :]).sum(-1) - self.b


@dataclass(frozen=True, eq=False)
class World:
    """Costs, start and draws of one run."""

    graph: Graph
    x0: Array  # (n, d), float64 or Fractions
    costs: Callable[[Array], Array]  # the gradient of f_i at x_i, all nodes at once: (n, d) -> (n, d)
    iterations: tuple[Iteration, ...]
    settled: int  # K: from here on every number is public
    shift: Array  # (n, d), what is added to the gradients
    law: Law | None = None  # what the numbers before K were drawn from, where it is declared

    def __post_init__(self) -> None:
        n, d = self.x0.shape
        entries = len(self.sender)
        for k, numbers in enumerate(self.iterations):
            for name, value in zip(Iteration._fields, numbers, strict=True):
                rows = n if name == "stepsize" else entries
                if value.shape not in ((rows, d), (rows, 1)):
                    raise InputError(f"expected {name} of iteration {k} to be ({rows}, {d}) or ({rows}, 1), got {value.shape}")
        if n != self.graph.n or self.shift.shape != (n, d):
            raise InputError(f"expected x0 and shift of shape ({self.graph.n}, d), got {self.x0.shape} and {self.shift.shape}")
        object.__setattr__(self, "x0", frozen(self.x0))
        object.__setattr__(self, "shift", frozen(self.shift))
        object.__setattr__(self, "iterations", tuple(_frozen_iteration(numbers) for numbers in self.iterations))

    @property
    def exact(self) -> bool:
        """Whether it is reckoned in rational numbers."""
        return self.x0.dtype == object

    @cached_property
    def _ends(self) -> Array:
        own = [(i, i) for i in range(self.graph.n)]
        edges = [(int(s), int(r)) for s, r in self.graph.edges]
        return np.array(sorted(edges + own, key=lambda e: e[::-1]))

    @property
    def sender(self) -> Array:
        """(entries,) who sends."""
        return self._ends[:, 0]

    @property
    def receiver(self) -> Array:
        """(entries,) who receives."""
        return self._ends[:, 1]

    @cached_property
    def played(self) -> Replay:
        """Its replay, made once; not to be written into."""
        return replay(self)

    @cached_property
    def fault(self) -> str | None:
        """What of Table II it does not meet, looked at once."""
        return table_two(self)

    def gradient(self, x: Array) -> Array:
        """(n, d), the shift included."""
        return self.costs(x) + self.shift

    def column_sums(self, weight: Array) -> Array:
        """Over what each node sends: (n, coordinate)."""
        return summed(weight, self.sender, self.graph.n)


def table_two(world: World, iterations: int | None = None) -> str | None:
    """What of Table II a world does not meet, in its first iterations only if wanted; None where it meets it."""
    if world.settled < 1 or not world.iterations:
        return "K = 0: no draw is secret"
    for k, numbers in enumerate(world.iterations[:iterations]):
        for name, weight in (("C", numbers.C), ("B", numbers.B)):
            off = abs(world.column_sums(weight) - 1)
            allowed = 0 if world.exact else EQUAL * np.maximum(1, world.column_sums(abs(weight)))
            if not (off <= allowed).all():
                return f"a column of {name} does not sum to one in iteration {k}, it is {float(off.max()):.1e} off"
    return None


def in_fractions(world: World, iterations: int | None = None) -> World:
    """The same world in rational numbers, its first iterations only if wanted; what nodes keep of C and B is completed to one.

    Each iteration adds some hundred bits to every number: 50 iterations of five nodes are a matter of a second.
    """
    if not isinstance(world.costs, Quadratics):
        raise InputError("only quadratic costs have rational gradients; give a problem such as estimation, or stay in float64")
    own = world.sender == world.receiver

    def completed(weight: Array) -> Array:
        weight = _fractions(weight)
        weight[own] += 1 - world.column_sums(weight)
        return weight

    def one(w: Iteration) -> Iteration:
        return Iteration(_fractions(w.stepsize), _fractions(w.R), _fractions(w.A), completed(w.C), completed(w.B))

    costs = Quadratics(*map(_fractions, world.costs))
    numbers = tuple(one(w) for w in world.iterations[:iterations])
    return replace(world, x0=_fractions(world.x0), shift=_fractions(world.shift), costs=costs, iterations=numbers)


def _fractions(array: Array) -> Array:
    return np.array([Fraction(v) for v in array.ravel().tolist()], dtype=object).reshape(array.shape)


class Replay(NamedTuple):
    """States before each iteration and after the last, and what was sent: x, u = Lambda y, and M = C y + B dg."""

    x: list[Array]  # (n, d)
    y: list[Array]
    u: list[Array]  # goes out with x, the same to everybody
    M: list[Array]  # (entries, d): to each neighbour another; on a loop what the node keeps


def replay(world: World) -> Replay:
    """Algorithm 1, lines (a) to (d)."""
    x, n = world.x0, world.graph.n
    g = y = world.gradient(x)
    out = Replay([x], [y], [], [])
    for w in world.iterations:
        u = w.stepsize * y
        x = summed(w.R * x[world.sender] - w.A * u[world.sender], world.receiver, n)
        before, g = g, world.gradient(x)
        M = w.C * y[world.sender] + w.B * (g - before)[world.sender]
        y = summed(M, world.receiver, n)
        for kept, new in zip(out, (x, y, u, M), strict=True):
            kept.append(new)
    return out


def summed(values: Array, index: Array, n: int) -> Array:
    """The sum over the entries of each node."""
    out = np.zeros((n, values.shape[1]), dtype=values.dtype)
    np.add.at(out, index, values)
    return out


def wide(array: Array, d: int) -> Array:
    """One number a coordinate."""
    return np.broadcast_to(array, (len(array), d))


def frozen(array: Array) -> Array:
    """The same numbers, read-only."""
    if not array.flags.writeable:
        return array
    array = array.view()
    array.flags.writeable = False
    return array


def _frozen_iteration(numbers: Iteration) -> Iteration:
    return Iteration(*map(frozen, numbers)) if any(a.flags.writeable for a in numbers) else numbers


def seen(world: World, played: Replay, coalition: Iterable[int]) -> dict[str, list[Array]]:
    """I_A: the coalition's states, what crosses its edges, its own draws and costs, and every number from K on."""
    member = np.isin(np.arange(world.graph.n), list(coalition))
    sends, hears = member[world.sender], member[world.receiver]
    heard = member.copy()
    heard[world.sender[hears]] = True
    last = len(world.iterations)
    found = {
        "x": [x[heard] for x in played.x[:last]] + [played.x[last][member]],
        "y": [y[member] for y in played.y],
        "u": [u[heard] for u in played.u],
        "M": [M[sends | hears] for M in played.M],
        "shift": [world.shift[member]],
    }
    rows = {"stepsize": member, "R": hears, "A": hears, "C": sends, "B": sends}
    for name, mine in rows.items():
        numbers = [getattr(w, name) for w in world.iterations]
        found[name] = [w if k >= world.settled else w[mine] for k, w in enumerate(numbers)]
    if isinstance(world.costs, Quadratics):
        found |= {name: [value[member]] for name, value in world.costs._asdict().items()}
    return found


def view_difference(world: World, other: World, coalition: Iterable[int]) -> Any:
    """How far apart the views of both worlds are: the largest difference, in units of the largest entry of its kind so far.

    Zero when, and in rational numbers only when, they are the same to the last digit.
    """
    return compared(world, replay(world), other, replay(other), tuple(coalition))


def compared(world: World, played: Replay, other: World, replayed: Replay, coalition: tuple[int, ...]) -> Any:
    """The same for replays that are there already."""
    if (world.graph, world.settled, len(world.iterations)) != (other.graph, other.settled, len(other.iterations)):
        raise InputError("two worlds can be compared only on the same graph, with the same K and as many iterations")
    here, there = seen(world, played, coalition), seen(other, replayed, coalition)
    return max(gap(here[kind], there[kind]) for kind in here)


def views_equal(world: World, other: World, coalition: Iterable[int], tolerance: float = 1e-12) -> bool:
    """Whether a coalition sees the same in both: to the last digit in rational numbers, to the tolerance in float64."""
    return bool(view_difference(world, other, coalition) <= (0 if world.exact and other.exact else tolerance))


def gap(here: list[Array], there: list[Array]) -> Any:
    """The largest difference along two lists of arrays, in units of the largest entry so far; infinite where not a number."""
    worst: Any = 0
    scale: Any = 0
    for a, b in zip(here, there, strict=True):
        if a is b or not a.size:
            continue
        scale = max(scale, abs(a).max())
        difference = abs(a - b).max()
        if not difference < np.inf:
            return np.inf
        if difference:
            worst = max(worst, difference / scale if scale else difference)
    return worst


def world_of(transcript: Transcript, run: int = 0, problem: Any = None) -> World:
    """The world that a recorded run of gradient tracking was played in; `problem` where the transcript holds no costs."""
    problem = transcript.costs if problem is None else problem
    header, start = transcript.header, transcript.states[-1]
    if problem is None:
        raise InputError("a world holds everybody's costs and this transcript has none; give the problem as problem=...")
    if not ({"x", "y"} <= set(start) and set(WEIGHTS) <= set(header["parameters"])):
        raise InputError(f"a witness is for gradient tracking (weights R, A, C, B); {header['algorithm']} is another method")
    if not 0 <= run < start["x"].shape[-1]:
        raise InputError(f"there are the runs 0 to {start['x'].shape[-1] - 1}, no run {run}")
    graph = Graph(header["graph"]["n"], [tuple(e) for e in header["graph"]["edges"]])
    x0 = np.asarray(start["x"])[..., run]
    iterations = tuple(_iteration(transcript, graph, k, run) for k in range(transcript.iterations))
    secret, law = _secret(transcript.draws)
    settled = int(header["settled"]) if secret else 0
    world = World(graph, x0, _costs(problem), iterations, settled, np.zeros_like(x0), law)
    _check_faithful(world, transcript, run)
    return world


def _costs(problem: Any) -> Callable[[Array], Array]:
    if not isinstance(problem.family, Quadratic):
        return problem.gradient
    zero = np.zeros(problem.d)
    return Quadratics(problem.hessian(zero), -problem.gradient(zero))


def _iteration(transcript: Transcript, graph: Graph, k: int, run: int) -> Iteration:
    """The numbers of iteration k; a weight that was not drawn is another one, or the identity."""

    def weight(name: str) -> Array:
        while (name, k) not in transcript.draws and transcript.header["parameters"].get(name) in WEIGHTS:
            name = transcript.header["parameters"][name]
        drawn = _value(transcript.draws, name, k, run)
        return identity if drawn is None else drawn

    ends = sorted([*((r, s) for s, r in graph.edges), *((i, i) for i in range(graph.n))])
    identity = np.array([[float(r == s)] for r, s in ends])
    step = _value(transcript.draws, "stepsize", k, run)
    if step is None:
        step = np.broadcast_to(np.asarray(transcript.header["stepsize"], dtype=float)[:, None], (graph.n, 1))
    return Iteration(step, *(weight(name) for name in WEIGHTS))


def _value(draws: Mapping[tuple[str, int], Draw], name: str, k: int, run: int) -> Array | None:
    drawn = draws.get((name, k))
    if drawn is None or drawn.value is None:
        return None
    return np.asarray(drawn.value)[..., min(run, drawn.value.shape[-1] - 1)]


def _secret(draws: Mapping[tuple[str, int], Draw]) -> tuple[bool, Law | None]:
    """Whether the first stepsizes and column weights are known to their owners alone, and the law they share."""
    first = [draws.get((name, 0)) for name in ("stepsize", "C")]
    kept = [d for d in first if d is not None and d.known == "me"]
    laws = {d.law for d in kept}
    return len(kept) == 2, law_of(laws.pop()) if len(laws) == 1 else None


def law_of(text: str) -> Law | None:
    """A law from what a transcript says of it ("normal(scale 1)"); None where it says no such thing."""
    found = re.fullmatch(r"([a-z-]+)\(scale ([^,()]+)(?:, spread ([^,()]+))?\)", text)
    if found is None or found[1] not in LAWS:
        return None
    return Law(found[1], float(found[2]), float(found[3])) if found[3] else Law(found[1], float(found[2]))


def _check_faithful(world: World, transcript: Transcript, run: int) -> None:
    """Noise on messages, or a number changed afterwards, and the replay is not what was recorded."""
    played = replay(world)
    for name in ("x", "y"):
        recorded = [np.asarray(transcript.states[k][name])[..., run] for k in range(-1, transcript.iterations)]
        found = gap(recorded, getattr(played, name))
        if not found <= FAITHFUL:
            raise InputError(
                f"expected a run of Algorithm 1 with the recorded draws, but its replay is {found:.1e} off in {name}; "
                "a mechanism changed the messages, or the transcript was altered: no world can be read from it"
            )
