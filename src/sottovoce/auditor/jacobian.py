"""Which directions of the private costs a view determines: a linearised posterior about one recorded world.

The world is a simulated transcript of gradient tracking on quadratic costs. Every number that the coalition does not know (H, b and
x^0 of the others, their early weights, their late ones where these are secret) is a secret with the spread of its declared law;
the derivative of every message with respect to every secret is exact (tangents.py), messages are read to `noise` of their size,
and the posterior spread of each asset follows by one QR. The verdict is local: it holds near this world, and what is called
determined elsewhere can be narrower or wider. A weight's law is the only thing that keeps an average over many runs in sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..errors import ParameterError
from ..layout import Layout, layout
from ..transcript import Transcript
from ..view import View, view_of
from .tangents import NAMES, Nudge, Round, owner_of, play, said_in, weight_of
from .unknowns import Secrets, weight_secrets

Array = np.ndarray
DETERMINED = 0.03  # posterior spread over prior spread, below which a direction counts as determined
ASSETS = ("curvature", "offset", "start")


class Directions(NamedTuple):
    """What a view tells of one asset of one node."""

    node: int
    asset: str  # "curvature" H_i, "offset" b_i, "start" x_i^0
    spreads: tuple[float, ...]  # posterior over prior, a number a direction, smallest first
    bits: float  # learnt, over the prior

    @property
    def determined(self) -> int:
        return sum(s < DETERMINED for s in self.spreads)

    @property
    def protected(self) -> int:
        return len(self.spreads) - self.determined


def directions(
    transcript: Transcript, who: Iterable[int] | str, *, iterations: int = 24, noise: float = 1e-12, run: int = 0,
    late_spread: float | None = None,
) -> list[Directions]:  # fmt: skip
    """What `who` (a set of nodes, or "wire") determines of each other node's H, b and x^0, linearised at this transcript's run.

    late_spread   how far late secret weights are taken to stray from their mean; unless given, as far as their law lets them
    """
    J, secrets = jacobian(transcript, who, iterations=iterations, noise=noise, run=run, late_spread=late_spread)
    R = np.asarray(np.linalg.qr(np.vstack([J, np.eye(secrets.total)]), mode="r"))  # large rows first, so that small ones survive
    spread = np.linalg.inv(R[secrets.weights :, secrets.weights :])  # marginal over the weights, which come first
    table = []
    for (node, asset), where in secrets.assets.items():
        s = np.linalg.svd(spread[where.start - secrets.weights : where.stop - secrets.weights], compute_uv=False)
        table.append(Directions(node, asset, tuple(float(v) for v in s[::-1]), float(-np.log2(s).sum())))
    return table


def jacobian(
    transcript: Transcript, who: Iterable[int] | str, *, iterations: int = 24, noise: float = 1e-12, run: int = 0,
    late_spread: float | None = None,
) -> tuple[Array, Secrets]:  # fmt: skip
    """Derivatives of all messages that `who` receives, over their read-out noise, with respect to the secrets."""
    view, problem = view_of(transcript, who), transcript.costs
    if problem is None or problem.quadratic_model() is not problem:
        raise ParameterError("the Jacobian needs a simulated run on quadratic costs; this transcript has no quadratic costs")
    if not set(NAMES) <= set(transcript.header["parameters"]):
        raise ParameterError(f"the Jacobian knows gradient tracking and Table I; not {transcript.header['algorithm']}")
    T = min(iterations, transcript.iterations)
    entries = layout(view.graph)
    secrets = weight_secrets(transcript, view, T, late_spread)
    world = _world(transcript, view, secrets, run)
    rounds = [_round(transcript, entries, secrets, k, run) for k in range(T)]
    rows = [row for k, sent in enumerate(play(entries, *world, rounds)) for row in _seen(transcript, view, k, sent, run)]
    if not rows:
        return np.zeros((0, secrets.total)), secrets
    return np.concatenate([row[:, 1:] / (noise * max(np.abs(row[:, 0]).max(), 1e-300)) for row in rows]), secrets


def _seen(transcript: Transcript, view: View, k: int, sent: tuple[Array, Array], run: int) -> Iterator[Array]:
    """The messages of iteration k that tell something: from others, on edges that are seen."""
    ends = layout(view.graph).sender
    for exchange, mine in enumerate((sent[0][ends], sent[1])):
        if (k, exchange) not in view.sent:
            continue
        read, real = view.sent[k, exchange][..., run], transcript.sent[k, exchange][..., run]
        if read.shape != mine.shape[:2] or not np.allclose(mine[..., 0], real, rtol=1e-6, atol=1e-6 * np.abs(real).max()):
            raise ParameterError("the transcript is not that of gradient tracking alone: its messages differ from the model's")
        fresh = set()
        for e in np.flatnonzero(np.isfinite(read[:, 0])):
            if ends[e] not in view.coalition and (exchange == 1 or ends[e] not in fresh):  # all out-neighbours pull the same
                fresh.add(ends[e])
                yield from np.split(mine[e], len(mine[e]) // _d(view))  # x and u are read apart


def _d(view: View) -> int:
    return int(view.header["coordinates"])


def _world(transcript: Transcript, view: View, secrets: Secrets, run: int) -> tuple[Array, Array, Array, Array]:
    """H, its derivative, and x^0 and y^0 with theirs; the secrets of each honest node are numbered here."""
    problem, graph = transcript.costs, view.graph
    d, honest = problem.d, [i for i in range(graph.n) if i not in view.coalition]
    H = problem.hessian(np.zeros(d))
    b, x0 = -problem.gradient(np.zeros(d)), transcript.states[-1]["x"][:, :, run]
    upper, size = np.triu_indices(d), {"curvature": d * (d + 1) // 2, "offset": d, "start": d}
    at = secrets.weights
    for i in honest:
        for asset in ASSETS:
            secrets.assets[i, asset] = slice(at, at + size[asset])
            at += size[asset]
    dH, db, x = np.zeros((*H.shape, at)), np.zeros((*b.shape, at)), np.zeros((*b.shape, 1 + at))
    x[..., 0] = x0
    for i in honest:
        p = np.arange(at)
        h, o, s = (p[secrets.assets[i, asset]] for asset in ASSETS)
        dH[i, upper[0], upper[1], h] = dH[i, upper[1], upper[0], h] = _rms(H)
        db[i, range(d), o], x[i, range(d), 1 + s] = _rms(b), _rms(x0)
    y = H @ x
    y[..., 1:] += np.einsum("iabp,ib->iap", dH, x0) - db
    y[..., 0] -= b
    return H, dH, x, y


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) or 1.0


def _round(transcript: Transcript, entries: Layout, secrets: Secrets, k: int, run: int) -> Round:
    """The weights of iteration k with their derivatives."""
    draws, parameters, d = transcript.draws, transcript.header["parameters"], transcript.costs.d
    weights, nudges = {}, {}
    secret = {name: Nudge(*(np.concatenate(part) for part in zip(*found, strict=True)))
              for name, found in secrets.nudges.get(k, {}).items()}  # fmt: skip
    for name in NAMES:
        value = weight_of(draws, parameters, entries, name, k, run)
        if value is None:
            raise ParameterError(f"the transcript does not hold the weight {name} of iteration {k}")
        weights[name] = np.broadcast_to(value, (len(value), d))
        if (owner := owner_of(draws, parameters, name, k)) in secret:
            nudges[name] = secret[owner]
    drawn = draws.get(("stepsize", k))
    step = np.reshape(transcript.header["stepsize"], (-1, 1)) if drawn is None else drawn.value[..., run]
    nudges |= {"stepsize": secret["stepsize"]} if "stepsize" in secret else {}
    return Round(weights, np.broadcast_to(step, (entries.n, d)), said_in(draws, parameters, k), nudges)
