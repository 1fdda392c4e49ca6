"""When a run began at each node: a nonce a node, so that what two nodes draw together is never drawn again for other data.

A node draws its nonce once a run, keeps it in its store, and shows it with its signed roster. The key of what both ends of an edge
know is made of both nonces: a node that has lost its store begins with another one, and the masks of the two starts have
nothing in common. Whoever has met the first start keeps its nonce, and refuses the second.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import StoreError

BYTES = 32


class Begun(NamedTuple):
    """What a store says of the start: my nonce, what my cost was (a hash), and the nonces of those whom I have met."""

    nonce: bytes
    cost: bytes
    known: tuple[tuple[int, bytes], ...]


class Starts:
    """My own start and my neighbours'."""

    def __init__(self, me: int, cost: bytes):
        self.me, self.cost, self.nonce = me, cost, os.urandom(BYTES)
        self.known: dict[int, bytes] = {}  # on my disk
        self.heard: dict[int, bytes] = {}  # said since this process began

    def resume(self, begun: Begun | None) -> None:
        """Go on with what the store says; refused where the cost has become another one."""
        if begun is None:
            return
        if begun.cost != self.cost:
            raise StoreError(
                "this node's [cost], or a file that it names, is not what it was when this run began, and one run is of one cost: "
                "put the old one back, or make a new run of the same nodes with `sottovoce again`"
            )
        self.nonce, self.known = begun.nonce, dict(begun.known)

    def differs(self, other: int, nonce: bytes) -> str | None:
        """Why a neighbour with this nonce is refused, if it is."""
        if nonce == self.known.get(other, self.heard.get(other, nonce)):
            return None
        return (
            f"node {other} has begun this run a second time, its store is gone: what it sent the first time is out; make a new run "
            "of the same nodes with `sottovoce again`"
        )

    @property
    def new(self) -> bool:
        """Whether I have met somebody who is not on my disk."""
        return len(self.heard.keys() - self.known.keys()) > 0

    def begun(self) -> Begun:
        """What the store is to say; from now on it counts as said."""
        self.known |= self.heard
        return Begun(self.nonce, self.cost, tuple(self.known.items()))
