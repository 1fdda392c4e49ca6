"""A node as a process of its own, for whoever starts several: `python -m sottovoce.peer.process node.toml`.

It says how far it is, a JSON object a line on its standard output: names, iterations, seconds and bytes, no value. It stops at
SIGINT or SIGTERM, or when nobody reads its lines any more, and goes on from there when it is started again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from ..errors import SottovoceError
from ..leaving import leave
from .guard import told

EVERY = 0.1  # seconds between two lines


def main(file: str) -> int:
    """Run the node; 0 when the run has ended, 3 when it was stopped, 1 or 2 when it cannot go on."""
    from .node import Node

    signal.signal(signal.SIGTERM, _interrupted)
    try:
        node = Node(file)
        _play(node)
        return 0
    except KeyboardInterrupt:
        return 3
    except (SottovoceError, OSError, MemoryError) as error:
        print(str(error) or type(error).__name__, file=sys.stderr, flush=True)
        return 1
    except Exception as error:  # a mistake in this program; whoever started it hears no number
        print(told(error), file=sys.stderr, flush=True)
        return 1


def _play(node: Any) -> None:
    if node.over:
        node.status.reached(node.roster.iterations)
        return _say(node)
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(node, done), daemon=True)
    teller.start()
    try:
        for _ in node.run():
            pass
    finally:
        done.set()
        teller.join()
    return _say(node)


def _tell(node: Any, done: threading.Event) -> None:
    while not done.wait(EVERY):
        try:
            _say(node)
        except OSError:  # nobody reads any more: whoever started this is gone
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _say(node: Any) -> None:
    print(json.dumps(node.status.facts()), flush=True)


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    code = main(sys.argv[1])
    leave(code)
    sys.exit(code)
