"""Stacks are played and audited: what becomes of each, and what each mu costs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .auditor.attack import ASSETS
from .auditor.judge import Adversary, Judge
from .auditor.search import Witnesses
from .auditor.verdict import PROTECTION
from .errors import ParameterError
from .graph import Graph
from .privacy_stacks import AUDITED, Sizes, Stack, masked
from .problem import Problem
from .run import run
from .simulate.result import Result
from .simulate.task import applied
from .stepsize import cautious
from .stepsize import stepsize as advised
from .transcript import Transcript
from .view import truth_of, view_of

FAR = 1e-8  # the error at which rounds are counted, in units of the first one
NEAR = 1e-4  # and in the curve of masks of features, of which twice as many iterations take four times as long
MUS = (4.0, 2.0, 1.0, 0.5)  # of the curve
USUAL, SHORT = 5000, 400  # iterations at most; of what would not get there in any case
MARGIN, ADDED = 1.05, 20  # of iterations that are foretold
FALLING = 0.5  # of the smallest error in the first half: one that is smaller in the end goes on falling
LONGER = (1.5, 2.5)  # times what the rate at the optimum foretells: the way there may be slower
TRIES = 3  # at a number of iterations that its own masks agree with
SPEED = 4e7  # values of features in a second, on a laptop
WORK = 15 * SPEED  # in a run; one that needs more is played where it is asked for


STOPPED = f"played until the error is {FAR:g} of the first and no further: more iterations take more features"


@dataclass(frozen=True)
class Row:
    """What became of one stack."""

    name: str
    method: str
    mechanisms: tuple[str, ...]
    error: float  # of the optimum, where it stopped
    iterations: int | None  # until the error is FAR of the first; None: not reached
    rounds: int | None  # exchanges in these, the set-up among them
    bytes: int | None  # over all edges
    microseconds: float  # an iteration of all nodes together, on this machine, in NumPy
    verdicts: tuple[dict[str, Any], ...]  # adversary, asset, verdict, attack, error
    mu: float | None = None
    epsilon: float | None = None
    note: str = ""  # what was done otherwise than in other rows

    def worst(self, asset: str) -> dict[str, Any]:
        """The worst verdict on an asset."""
        return min((v for v in self.verdicts if v["asset"] == asset), key=lambda v: PROTECTION[v["verdict"]])


class Plan(NamedTuple):
    """How a stack is to be played."""

    settings: dict[str, Any]
    iterations: int
    note: str = ""
    needed: int | None = None  # iterations for the error to become small, where they are not played


class Played(NamedTuple):
    """A run without a record, and how to play it again."""

    settings: dict[str, Any]
    result: Result
    seconds: float
    note: str

    @property
    def microseconds(self) -> float:
        return 1e6 * self.seconds / max(self.result.iterations, 1)


class Scene(NamedTuple):
    """What all stacks have in common."""

    problem: Problem
    graph: Graph
    iterations: int | None
    seed: int
    victim: int
    adversaries: list[Adversary]

    @property
    def most(self) -> int:
        return USUAL if self.iterations is None else self.iterations


class Stage:
    """Where stacks are played; what is asked twice is played once."""

    def __init__(self, scene: Scene, sizes: Sizes):
        self.scene, self.sizes = scene, sizes
        self._advice: dict[str, tuple[float, float | None]] = {}
        self._played: dict[str, Played] = {}
        self._mu: dict[str, tuple[float, float]] = {}

    def row(self, stack: Stack) -> Row:
        played = self.played(stack)
        return self.told(stack, played, self.recorded(stack, played))

    def told(self, stack: Stack, played: Played, short: Result) -> Row:
        """Its row, as the auditor judges the record `short`."""
        result, s = played.result, self.scene
        assert short.transcript is not None
        return Row(
            stack.name, stack.method, tuple(map(repr, applied(played.settings["mechanisms"]))), float(np.median(result.final)),
            *counted(result, s.graph), played.microseconds, tuple(judged(short.transcript, s)), *self._budget(stack, played, short),
            note=("" if played.note == STOPPED and reached(result) is None else played.note) or falling(result),
        )  # fmt: skip

    @property
    def near(self) -> float:
        """The error at which the curve counts."""
        return FAR if self.sizes.kind == "quadratic" else NEAR

    def curve(self, mixings: int, mu: float | None) -> dict[str, Any]:
        """What one mu costs in iterations and in rounds; where that would take too long, nothing."""
        stack = masked(f"mu = {mu}", mixings, mu)
        plan = self._planned(stack, self.near)
        point = {"consensus": mixings, "mu": mu, "iterations": None, "rounds": None, "rate": None, "needs": plan.needed}
        if plan.needed is not None:
            return point
        result = self._reaching(stack, self.near).result
        at, rounds, _ = counted(result, self.scene.graph, self.near)
        return {**point, "iterations": at, "rounds": rounds, "rate": float(result.rate())}

    def played(self, stack: Stack) -> Played:
        return self._reaching(stack, FAR)

    def _reaching(self, stack: Stack, far: float) -> Played:
        """Played until the error is so small; where foretold iterations were too few, anew with more."""
        played = self._play(stack, self._planned(stack, far))
        for longer in LONGER:
            if played.note != STOPPED or reached(played.result, far) is not None:
                break
            played = self._play(stack, self._planned(stack, far, longer))
        return played

    def _play(self, stack: Stack, plan: Plan) -> Played:
        key = _named(stack.method, plan.settings, plan.iterations)
        if key not in self._played:
            begun = time.perf_counter()
            result = run(stack.method, *self.scene[:2], iterations=plan.iterations, backend="eager", **plan.settings)
            self._played[key] = Played(plan.settings, result, time.perf_counter() - begun, plan.note)
        return self._played[key]

    def recorded(self, stack: Stack, played: Played) -> Result:
        """Its first iterations again, as they are audited."""
        few = min(played.result.iterations, AUDITED)
        return run(stack.method, *self.scene[:2], iterations=few, record=True, backend="eager", **played.settings)

    def _budget(self, stack: Stack, played: Played, short: Result) -> tuple[float | None, float | None]:
        """mu and epsilon of masks of this law, on the way that they were first played on: what is around them is no part of it."""
        masks = next((a for a in applied(played.settings["mechanisms"]) if a.mechanism.name == "function-masks"), None)
        if masks is None or self.sizes.bound is None:
            return None, None
        key = _named(masks, stack.options)
        if key not in self._mu:
            self._mu[key] = self.sizes.mu(masks, short)
        return self._mu[key]

    def _planned(self, stack: Stack, far: float, longer: float = 1.0) -> Plan:
        most = self.scene.most if stack.iterations is None else min(self.scene.most, stack.iterations)
        if stack.masks is not None and self.sizes.kind == "matern":
            return self._counted_out(stack, most, far, longer)
        return Plan(self._settings(stack, most), most)

    def _settings(self, stack: Stack, iterations: int) -> dict[str, Any]:
        mixings = stack.options.get("consensus", 1)
        masks = None if stack.masks is None else self.sizes.masks(mixings, stack.masks.mu, iterations)
        settings = {"mechanisms": stack.dressed(masks), "seed": self.scene.seed, **stack.options}
        return {**settings, "stepsize": self._advised(stack.method, settings)[0]}

    def _counted_out(self, stack: Stack, most: int, far: float, longer: float) -> Plan:
        """Masks of features are as many as iterations ask for, so these are foretold, from the rate that the adviser finds."""
        kept = tuple(one for one in stack.mechanisms if one is not stack.masks)
        plain = {"mechanisms": kept, "seed": self.scene.seed, **stack.options}
        needed, plan = foretold(self._advised(stack.method, plain)[1], far, longer), Plan(plain, 0)
        for _ in range(TRIES):
            iterations = min(needed, most)
            if self._too_long(needed, iterations):
                return self._short(stack, min(SHORT, most), needed, far)
            plan = Plan(self._settings(stack, iterations), iterations)
            needed = foretold(self._advised(stack.method, plan.settings)[1], far, longer)
            if needed <= iterations:
                return plan._replace(iterations=needed, note=STOPPED)
            if iterations == most:
                break
        return plan

    def _short(self, stack: Stack, short: int, needed: int, far: float) -> Plan:
        """The beginning alone, and what the whole would take."""
        settings = self._settings(stack, short)
        needed = max(needed, foretold(self._advised(stack.method, settings)[1], far))
        return Plan(settings, short, self._why(needed, short), needed)

    def _too_long(self, needed: int, iterations: int) -> bool:
        """Whether it would take long and nobody asked for it."""
        return self.scene.iterations is None and (needed > iterations or self._work(iterations) > WORK)

    def _work(self, iterations: int) -> int:
        return iterations * self.sizes.features(iterations) * self.scene.problem.n

    def _why(self, needed: int, played: int) -> str:
        features, long = self.sizes.features(needed), _long(self._work(needed))
        return (
            f"it needs about {needed:,} iterations and {features:,} features an edge, {long}; {played} were played "
            f"(all with --iterations {needed})"
        )

    def _advised(self, method: str, settings: dict[str, Any]) -> tuple[float, float | None]:
        """The advised stepsize and its rate; a cautious one where the adviser finds none."""
        around = applied(settings["mechanisms"])
        bent = around if any("gradient" in a.mechanism.overrides for a in around) else ()  # else costs are seen as they are
        given = {**{k: v for k, v in settings.items() if k != "stepsize"}, "mechanisms": bent}
        key = _named(method, given)
        if key not in self._advice:
            self._advice[key] = self._ask(method, given)
        return self._advice[key]

    def _ask(self, method: str, given: dict[str, Any]) -> tuple[float, float | None]:
        try:
            advice = advised(method, *self.scene[:2], **given)
            return advice.good, advice.rate
        except ParameterError as error:
            if "no stepsize" not in str(error):
                raise
            return cautious(method, *self.scene[:2], **given), None


def _named(*parts: Any) -> str:
    """In full, matrices too."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(parts)


def _long(work: float) -> str:
    """How long that takes, roughly."""
    seconds = work / SPEED
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"some {seconds / size:.0f} {unit}"
    return f"some {seconds:.0f} s"


def foretold(rate: float | None, far: float, longer: float = 1.0) -> int:
    """How many iterations a rate asks for, and some more."""
    if rate is None or not 0 < rate < 1:
        return SHORT
    return math.ceil(longer * MARGIN * math.log(far) / math.log(rate)) + ADDED


def reached(result: Result, far: float = FAR) -> int | None:
    """The first recorded iteration whose median error is so small a share of the first."""
    errors = np.median(result.error, 0)
    there = np.flatnonzero(errors <= far * errors[0])
    return int(result.recorded[there[0]]) if len(there) else None


def falling(result: Result) -> str:
    """A note on a run that ended before it was there."""
    errors = np.median(result.error, 0)
    if reached(result) is not None or errors[-1] > FALLING * errors[: len(errors) // 2 + 1].min():
        return ""
    return f"still falling after {result.iterations:,} iterations; --iterations plays more"


def counted(result: Result, graph: Graph, far: float = FAR) -> tuple[int | None, int | None, int | None]:
    """Iterations, rounds and bytes until there."""
    at = reached(result, far)
    if at is None:
        return None, None, None
    return at, int(result.messages[: at + 1].sum() // len(graph.edges)), int(result.bytes[: at + 1].sum())


def judged(transcript: Transcript, scene: Scene) -> Iterable[dict[str, Any]]:
    """The verdict of each adversary on each asset: what it reads as a whole, not through its parts; where nothing, the witness."""
    victim, found = scene.victim, Witnesses(transcript)
    judge = Judge(lambda who: view_of(transcript, who), truth_of(transcript), scene.graph, [victim], found.evidence)
    for adversary in scene.adversaries:
        for asset in ASSETS:
            verdict = judge.alone(victim, asset, adversary)
            told = {name: verdict.evidence.get(name) for name in ("attack", "error", "text")}
            yield {"adversary": list(adversary), "asset": asset, "verdict": verdict.verdict, **told}
