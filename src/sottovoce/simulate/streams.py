"""The streams of words that one node shares with those who send to the same receivers; with them it masks what it sends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..layout import CoSenders, Layout


class Streams(NamedTuple):
    """The streams of words that a node shares with those who send to the same receivers."""

    first: np.ndarray  # (terms,) the two who share it
    second: np.ndarray
    block: list[int]  # which part of it
    edge: list[int]  # for which of my out-edges
    adds: list[bool]  # I add it; the other takes it away, or the other way round
    most: int  # parts that a stream may have

    def added(self, streams: np.ndarray, edges: int, size: int) -> np.ndarray:
        """What goes on each of my out-edges, (edges, size, 1), mod 2^64."""
        out = np.zeros((edges, size, 1), np.uint64)
        for stream, block, edge, adds in zip(streams, self.block, self.edge, self.adds, strict=True):
            part = stream[block * size : (block + 1) * size]
            out[edge] += part if adds else 0 - part
        return out


def streams_of(pairs: CoSenders | None, layout: Layout, column: np.ndarray) -> Streams | None:
    """Those of the node with the entries `column`, its own share first; the graph is public, so who shares with whom is too."""
    if pairs is None:
        return None
    mine = {int(e): j for j, e in enumerate(np.searchsorted(layout.edges, column[1:]))}
    terms = [
        (word, mine[e], adds)
        for edges, adds in ((pairs.plus, True), (pairs.minus, False))
        for word, e in zip(pairs.word.tolist(), edges.tolist(), strict=True)
        if e in mine
    ]
    most = len(pairs.blocks)
    which = np.array([word for word, _, _ in terms], int) // max(most, 1)
    blocks = [word % most for word, _, _ in terms]
    return Streams(pairs.first[which], pairs.second[which], blocks, [e for _, e, _ in terms], [a for _, _, a in terms], most)
