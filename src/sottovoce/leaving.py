"""How a process ends in which Zenoh has run: its threads may call into an interpreter that is being taken apart, so none is."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def leave(code: int) -> None:
    """End the process at once where Zenoh has been loaded; everything that matters is closed by then. Else do nothing."""
    if "zenoh" not in sys.modules:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(code)
