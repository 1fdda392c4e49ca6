"""The parts of a deployed run's transcript that several nodes kept, put together: what they know when they pool what they have.

A part has NaN (or zero, where numbers are whole) for whatever its node did not see, so two parts complete each other entry by
entry; where both have a number it must be the same one. Parts that do not belong together are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError
from .transcript import Draw, Transcript

Array = np.ndarray
OWN, KIND = "nodes", "costs"  # the entries of a header in which the parts of a run differ, or may


def pooled(*parts: Transcript | str | Path) -> Transcript:
    """One transcript from the parts that several nodes of a run kept, each given as it is or as the folder it is in."""
    if not parts:
        raise InputError("expected the parts of a run, one transcript or folder a node; got none")
    first, *more = (part if isinstance(part, Transcript) else Transcript.load(part) for part in parts)
    for other in more:
        first = _both(first, other)
    return first


def _both(one: Transcript, other: Transcript) -> Transcript:
    """Two of them together."""
    return Transcript(
        {**one.header, OWN: _checked(one, other), KIND: _kind(one.header[KIND], other.header[KIND])},
        _joined(one.sent, other.sent, lambda key, a, b: _filled(a, b, f"message {key} (iteration, exchange)")),
        _joined(one.draws, other.draws, _drawn),
        _joined(one.states, other.states, lambda k, a, b: {n: _filled(a[n], b[n], f"{n} after iteration {k}") for n in a}),
        one.edges, own={**one.own, **other.own},
    )  # fmt: skip


def _checked(one: Transcript, other: Transcript) -> list[int]:
    """Whose parts they are; refused unless both are of the same run, and of different nodes."""
    if one.nodes is None or other.nodes is None:
        raise InputError("only the parts that nodes of a deployment kept are put together; one of these is of a whole run")
    for name in sorted({*one.header, *other.header} - {OWN, KIND}, key=lambda name: name not in ("run", "roster")):
        if one.header.get(name) != other.header.get(name):
            a, b = (part.header.get(name) for part in (one, other))
            raise InputError(f"these parts do not belong to the same run: {name} is {a} in one and {b} in the other")
    twice = sorted({*one.nodes} & {*other.nodes})
    if twice:
        raise InputError(f"the part of node {one.graph.labels[twice[0]]} was given twice; give each node's once")
    if one.iterations != other.iterations:
        raise InputError(f"these parts do not end together: one holds {one.iterations} iterations, the other {other.iterations}")
    return sorted({*one.nodes, *other.nodes})


def _kind(one: str, other: str) -> str:
    """What kind of cost the nodes have."""
    return one if one == other else "joint"


def _joined(one: Mapping[Any, Any], other: Mapping[Any, Any], both: Any) -> dict[Any, Any]:
    """What either has; where both have it, both together."""
    keys: Iterable[Any] = dict.fromkeys([*one, *other])
    return {k: both(k, one[k], other[k]) if k in one and k in other else one[k] if k in one else other[k] for k in keys}


def _drawn(key: tuple[str, int], one: Draw, other: Draw) -> Draw:
    return one._replace(value=_filled(one.value, other.value, f"{key[0]} of iteration {key[1]}"))


def _filled(one: Array, other: Array, what: str) -> Array:
    """What is missing in the one taken from the other."""
    missing = (lambda v: np.isnan(v)) if one.dtype.kind == "f" else (lambda v: v == 0)
    fits = one.shape == other.shape and one.dtype == other.dtype
    if not fits or (~missing(one) & ~missing(other) & (one != other)).any():
        raise InputError(f"these parts contradict each other: {what} is not the same in both; one of them was altered")
    return np.where(missing(one), other, one)
