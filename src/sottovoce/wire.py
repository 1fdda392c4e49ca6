"""What crosses the links instead of the messages, where a mechanism changes that and not what the ends read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

Key = tuple[int, int]  # iteration, exchange


class OnWire(Mapping[Key, np.ndarray]):
    """(k, exchange) -> uint8 (edge, bytes, run); a subclass makes it from `self.sent` when it is asked for."""

    def __init__(self, sent: Mapping[Key, np.ndarray]):
        self.sent = sent

    def __iter__(self) -> Iterator[Key]:
        return iter(self.sent)

    def __len__(self) -> int:
        return len(self.sent)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy that leaves the process holds what crossed the wire, not what opens it."""
        return dict, (dict(self),)
