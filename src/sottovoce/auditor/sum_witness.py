"""Another world for a method that opens sums (summing.py): two honest neighbours trade a shift, and no message changes by a bit.

    share_i' = share_i + h,   share_m' = share_m - h,   r' = r - h on an edge from i to m, or r + h on one from m to i    mod 2^64

Masked words are share + masks, so i's and m's stay what they were, and everybody else's are not touched. The mask r is uniform and
known to i and m alone: both worlds are equally likely, whatever h is. Replayed here on the recorded shares and masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fixed_point import FixedPoint, packed, settled, unpacked
from ..transcript import Transcript

Array = np.ndarray


def sum_witness(transcript: Transcript, victim: int, edge: int, delta: Array) -> dict[str, Any] | None:
    """The evidence for a gradient shifted by `delta`, which the other end of an edge takes up; None where it is not the record."""
    difference = 0.0
    for k in range(transcript.iterations):
        found = _difference(transcript, k, edge, victim, delta)
        if found is None:
            return None
        difference = max(difference, found)
    s, r = transcript.edges[edge]
    return {
        "delta": delta.tolist(), "neighbour": int(r if s == victim else s), "case": "I" if s == victim else "II",
        "difference": difference, "log_likelihood_ratio": 0.0,
        "text": "another share, shifted by a constant, gives the same words on all links, and is as likely",
    }  # fmt: skip


def _difference(transcript: Transcript, k: int, edge: int, victim: int, delta: Array) -> float | None:
    """How many of the first messages differ between the two worlds; None where this one's are not the recorded ones."""
    parameters, n = transcript.header["parameters"], int(transcript.header["graph"]["n"])
    fixed = FixedPoint(n, float(parameters["range"]), int(parameters["words"]))
    own = np.asarray(transcript.states[k]["own"])[..., :1]
    masks = [d.value for (_, i), d in transcript.draws.items() if i == k and (d.known, d.law) == ("edge", "words")]
    if len(masks) != 1:
        return None
    shares, masks = fixed.digits(np, own), unpacked(np, np.asarray(masks[0])[..., :1], fixed.words)
    named = parameters.get("carry") != "tree"  # the sender's number comes before its words
    sent = np.asarray(transcript.sent[k, 0])[:, int(named) :, :1]
    senders = [s for s, _ in transcript.edges]
    if not np.array_equal(_masked(transcript, shares, masks)[senders], sent):
        return None
    s, r = transcript.edges[edge]
    moved = fixed.digits(np, _shift(transcript, own, delta))
    turn = 1 if s == victim else -1
    for share, mask, h in zip(shares, masks, moved, strict=True):
        share[victim] += h
        share[r if s == victim else s] -= h
        mask[edge] -= turn * h
    return float(np.sum(_masked(transcript, shares, masks)[senders] != sent))


def _masked(transcript: Transcript, shares: list[Array], masks: list[Array]) -> Array:
    """Everybody's masked words, anew."""
    found = [share.copy() for share in shares]
    for e, (s, r) in enumerate(transcript.edges):
        for digit, mask in zip(found, masks, strict=True):
            digit[s] += mask[e]
            digit[r] -= mask[e]
    return packed(np, settled(np, found))


def _shift(transcript: Transcript, own: Array, delta: Array) -> Array:
    """What the shift of a gradient adds to a share: at its end; a value's own gradient is x - v."""
    h = np.zeros_like(own[0])
    h[-len(delta) :, 0] = -delta if transcript.header["parameters"].get("of") else delta
    return h
