"""The entries of one node: its row and its column, and the weights that lie on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..layout import Alone, Layout

Array = np.ndarray


class Entries:
    """A node's row or column: its own share first, then its edges, sorted by the other end."""

    def __init__(self, layout: Layout, me: int, index: Array):
        mine = layout.source == layout.target
        self.index = np.concatenate([index[mine[index]], index[~mine[index]]])
        self.sender, self.receiver, self.side = layout.source[self.index], layout.target[self.index], Alone(len(index))

    def ends(self, pairwise: bool) -> tuple[Array, Array]:
        """Sender and receiver as a draw is keyed: the same for both directions of a link if it is the pair's."""
        if not pairwise:
            return self.sender, self.receiver
        return np.minimum(self.sender, self.receiver), np.maximum(self.sender, self.receiver)


class Pair:
    """The entries of one weight at one node: its row part for a pull, its column part for a push, drawn when asked for."""

    def __init__(self, entries: Callable[[str], Array], side: str):
        self._entries, self.side = entries, side

    row = functools.cached_property(lambda self: self._entries("row"))
    column = functools.cached_property(lambda self: self._entries("column"))

    def cut(self, _: Any = None) -> tuple[Array, Array]:
        """My own share and my edges, on the side that chooses this weight."""
        mine = self.column if self.side == "column" else self.row
        return mine[:1], mine[1:]
