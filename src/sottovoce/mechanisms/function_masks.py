"""Masks on costs: function sharing, Gade, Vaidya (2016, arXiv 1612.05236), on digraphs and with any gradient method.

    f^_i = f_i - sum over out-edges R_il + sum over in-edges R_li,        R_il random, known to i and l alone

Over all nodes the masks cancel, so the sum and its minimiser stay exactly as they were, and everything that anybody sees is a
function of the f^. A change h of f_i that an honest neighbour takes up, f_m - h, is hidden by R_im + h: the same view, whatever the
coalition, the graph beyond, and the number of iterations. How plausible that other mask is, is the budget mu (`protection`).

kind="quadratic", for quadratic costs: R = x'Sx/2 + t'x; H + S is formed once, and from then on nothing else is used.
kind="matern", for all others: the same and a random function of the Matern-7/2 class, of frequencies that are common to all. It
hides where it was drawn to hide: no random start, everybody at the same x^0, and at least 2 (T + 1) d features for T iterations
(five times that to be on the good side), or they can be counted out.

Worth: the honest sum is known along the way and tells what it tells; where every honest node has a record or two, only whose they
are is hidden. Masks make costs steep and not convex, so steps are smaller: what is hidden is paid for in iterations, never in the
limit. Several mixings a gradient (`consensus=3` of gradient tracking) buy back rounds.
"""

from typing import Any, NamedTuple

from ..errors import ParameterError
from ..masks import Features, MaskBook, Quadratics, Waves
from ..node import Array, Layer
from ..registry import Mechanism, Parameter, at_least, one_of, positive, register

QUADRATIC, MATERN = "quadratic", "matern"


class Hidden(NamedTuple):
    """A quadratic cost and its masks, never apart: x'Hx/2 - b'x."""

    H: Array  # (n, d, d, run)
    b: Array  # (n, d, run)


class Bent(NamedTuple):
    """The masks on a cost that is not quadratic."""

    S: Array  # (n, d, d, run)
    t: Array  # (n, d, run)
    coefficients: Array  # (n, features, run)
    waves: Waves


class FunctionMasks(Layer):
    def gradient(self, x: Array) -> Array:
        if isinstance(self.m, Hidden):
            return self._times(self.m.H, x) - self.m.b
        m, features = self.m, features_of(self.options, self.coordinates)
        mask = self._times(m.S, x) + m.t + features.gradient(self.xp, m.coefficients, m.waves, x)
        return self.inner.gradient(x) + mask

    def hessian(self, x: Array) -> Array:
        if isinstance(self.m, Hidden):
            return self.m.H + 0 * x[:, None]
        m, features = self.m, features_of(self.options, self.coordinates)
        return self.inner.hessian(x) + m.S + features.hessian(self.xp, m.coefficients, m.waves, x)

    def prox(self, p: Array, q: Any) -> Array:
        raise ParameterError(
            "function-masks: a masked cost need not be convex, so its prox need not exist; take a method that uses gradients"
        )

    def _times(self, matrix: Array, x: Array) -> Array:
        return self.xp.einsum("nijs,njs->nis", matrix, x)


def features_of(options: Any, d: int) -> Features:
    return Features(d, options.amplitude, options.length, options.features)


def law_of(options: Any) -> str:
    """What masks are drawn from, in a line."""
    bent = f" amplitude {options.amplitude!r} length {options.length!r} features {options.features}"
    return f"{options.kind} scale {options.scale!r} tilt {options.tilt!r}{bent if options.kind == MATERN else ''}"


def start(node: Any, options: Any) -> Hidden | Bent:
    xp, d = node.xp, node.coordinates
    zero, square = xp.zeros((1, d, 1)), Quadratics(d, options.scale, options.tilt)
    labels = (None,) if options.book is None else options.book.labels(law_of(options))
    if options.kind == QUADRATIC:
        S, t = square.parts(_drawn(node, square.size, labels))
        H = node.hessian(zero + 0 * node.me) + S
        return Hidden(H, t * 0 - (node.gradient(zero + 0 * node.me) + t))
    features = features_of(options, d)
    coefficients = _drawn(node, square.size + features.count, labels)
    S, t = square.parts(coefficients[:, : square.size])
    normal, uniform = (
        node.draw(law, like=xp.zeros((1, size, 1)), known="all", shared=True, kept=options.book and options.book.named(law))
        for law, size in (("normal", features.numbers), ("uniform", features.count))
    )
    return Bent(S, t, coefficients[:, square.size :], features.waves(xp, normal, uniform))


def _drawn(node: Any, size: int, labels: tuple[int | None, ...]) -> Array:
    """The coefficients of all masks on a node's cost, (n, size, run): those that came in less those that went out."""
    found: Any = 0.0
    for label in labels:
        out, inbox = node.shared("normal", like=node.xp.zeros((1, size, 1)), kept=label)
        found = found + (node.gather(inbox) - node.collect(out))
    return found


def needs(algorithm: Any, options: Any, outside: Any) -> str | None:
    if not algorithm.minimises:
        return "it masks costs, and this method has none to minimise; take private sums for values"
    return None


def fits(options: Any, task: Any) -> str | None:
    """Whether this run keeps within what the masks can hide."""
    T, d, exact = task.iterations, task.problem.d, task.problem.family.quadratic
    if options.kind == QUADRATIC and exact is False:
        return f"quadratic masks leave the records of {task.problem.family.name} costs open to a fit; take kind='matern'"
    if options.kind == MATERN and exact:
        return "these costs are quadratic, and quadratic masks hide them whole, at less cost; take kind='quadratic'"
    if options.kind == MATERN and task.settled > 0:
        return "a random start throws x out of where the masks hide anything; take K=0, and no mechanism with a random start"
    if options.kind == MATERN and options.features < 2 * (T + 1) * d:
        return (
            f"{options.features} features are counted out by {T} iterations in {d} coordinates; give at least "
            f"features={2 * (T + 1) * d}, which is 2 (T + 1) d (five times as many come close to the full budget), or play fewer"
        )
    return None if options.book is None else options.book.unfit(task.problem, task.graph)


register(
    Mechanism(
        name="function-masks",
        source="Gade, Vaidya 2016 (function sharing), on digraphs; Matern features added here",
        wrap=FunctionMasks,
        start=start,
        parameters={
            "kind": one_of((QUADRATIC, MATERN), QUADRATIC, "the class: quadratic costs take quadratic masks, all others matern"),
            "scale": positive(10.0, "spread of the entries of S"),
            "tilt": positive(10.0, "how many times larger t is: slopes cost no iterations"),
            "amplitude": positive(10.0, "matern: spread of a mask's values"),
            "length": positive(2.0, "matern: over which distance a mask changes"),
            "features": at_least(1, 1000, "matern: how many, at least 2 (T + 1) d for T iterations"),
            "book": Parameter(None, "a sv.MaskBook: masks that outlast the run; fresh ones unless given",
                              lambda v: isinstance(v, MaskBook), "a sv.MaskBook"),
        },
        needs=needs,
        needs_text="a method with gradients; kind=matern: no random start, one x^0 for all, enough features",
        fits=fits,
        together=lambda options: options.kind == MATERN,
        leaks="The honest sum along the way; of a node beyond that as much as mu says, which the scale sets.",
        overrides=("gradient", "hessian", "prox"),
    )
)  # fmt: skip
