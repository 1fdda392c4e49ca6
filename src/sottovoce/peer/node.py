"""One node of a federation, from its files to its result.

    async for k, x in sottovoce.Node("node.toml"):     # x after k iterations; steer towards it while the others agree
        drive_to(x)

It can be stopped at any instant, by any means, and started again: it goes on where it was. Its randomness comes from the
operating system; there is no seed to give.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, SottovoceError
from ..tables import write_toml
from ..version import __version__
from .draws import NodeDraws
from .loop import Loop, Watch
from .node_file import NodeFile
from .status import Log, Status
from .store import Store, read_key
from .zenoh_link import ZenohLink

Array = np.ndarray
RESULT, LOG = "result.toml", "node.log"


class Node(Watch):
    """A node that can be iterated over, from `async` code or, by `run`, from plain."""

    def __init__(self, file: str | Path = "node.toml", *, deadline: float | None = None):
        """`deadline`: after so many seconds the run is ended for all nodes, to be resumed."""
        self.file = NodeFile.read(file)
        self.federation, self.identity, self.cost = self.file.load()
        self.me, self.deadline = self.file.number(self.federation), deadline
        self.roster = self.federation.roster
        self.status = Status(self.file.name, self.roster.iterations)
        self.link: ZenohLink | None = None
        self.log: Log | None = None

    @property
    def result(self) -> Path:
        """Where the result is, once there is one."""
        return self.file.result / RESULT

    @property
    def over(self) -> bool:
        """Whether this run has come to its end here, and the result is written."""
        return self.result.is_file() and f'roster = "{self.roster.digest.hex()}"' in self.result.read_text()

    def run(self) -> Iterator[tuple[int, Array]]:
        """(k, x) after every iteration, from the one that is on the disk on."""
        self._check_result()
        key, log = read_key(self.file.key), Log(self.file.folder / LOG, self.file.name)
        self.log, k, x = log, -1, None
        try:
            with Store(self.file.store, key, self.roster.digest, durable=self.file.durable) as store:
                log.write("start", run=self.roster.run, iterations=self.roster.iterations, version=__version__)
                for k, x in self._loop(store).run():
                    self.status.reached(k)
                    yield k, x
                self._write(x, k)
                store.erase()
            log.write("end", iteration=k, bytes=self.status.sent)
        except (KeyboardInterrupt, GeneratorExit):
            log.write("stopped", iteration=self.status.k)
            raise
        except Exception as error:
            log.write("failed", iteration=self.status.k, error=type(error).__name__)
            raise
        finally:
            self.log = None
            log.close()

    def _loop(self, store: Store) -> Loop:
        wires = self.federation.wiring(self.file.name, self.file.listen)
        self.link = ZenohLink(self.roster, self.identity, wires, counts=self.status)
        keys = tuple(map(bytes.fromhex, self.roster.keys))
        draws = NodeDraws(self.me, self.identity.secret, keys, self.roster.digest, self.roster.seed)
        return Loop(
            self.roster, self.me, self.cost, store, self.link, draws, x0=self.file.x0, watch=self, deadline=self.deadline
        )

    # what the loop tells -----------------------------------------------------------------------------------------

    def waiting(self, who: list[int], what: str, seconds: float) -> None:
        names = [self.roster.labels[other] for other in who]
        if self.log is not None and set(names) != set(self.status.waiting):
            self.log.write("waiting", names=names, iteration=self.status.k, ms=round(1000 * seconds))
        self.status.waits(names, seconds)

    def refused(self, other: int, reason: str) -> None:
        name = self.roster.labels[other]
        if self.log is not None and self.status.refused.get(name) != reason:
            self.log.write("refused", names=[name], reason=reason)
        self.status.refused[name] = reason

    # the result --------------------------------------------------------------------------------------------------

    def _check_result(self) -> None:
        """Refuse before anything runs what could not be written, or has been."""
        if self.over:
            raise InputError(f"this run has ended, and its result is in {self.result}; another run needs a new federation")
        if self.result.exists():
            raise InputError(f"{self.result} holds the result of another run; move it away, or name another folder in node.toml")
        self.file.result.mkdir(parents=True, exist_ok=True)

    def _write(self, x: Any, k: int) -> None:
        provenance = {
            "sottovoce": __version__, "python": platform.python_version(), "numpy": np.__version__, "kind": "deployment",
            "run": self.roster.run, "roster": self.roster.digest.hex(), "node": self.file.name,
            "certificate": self.identity.fingerprint,
        }  # fmt: skip
        facts = {"algorithm": self.roster.algorithm, "iterations": k, "x": x, "provenance": provenance}
        write_toml(self.result, facts)

    # from asynchronous code --------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[tuple[int, Array]]:
        """The same; the node runs in a thread of its own, and waits for whoever takes the numbers."""
        loop, there = asyncio.get_running_loop(), asyncio.Queue[Any](1)
        stop = threading.Event()

        def play() -> None:
            put = lambda one: asyncio.run_coroutine_threadsafe(there.put(one), loop).result()
            running = self.run()
            try:
                for one in running:
                    if stop.is_set():
                        break
                    put((one, None))
                put((None, None))
            except (SottovoceError, OSError) as error:
                put((None, error))
            finally:
                running.close()  # type: ignore[attr-defined]

        thread = threading.Thread(target=play, name=self.file.name, daemon=True)
        thread.start()
        try:
            while True:
                one, error = await there.get()
                if error is not None:
                    raise error
                if one is None:
                    return
                yield one
        finally:
            stop.set()
            while thread.is_alive():
                while not there.empty():
                    there.get_nowait()
                await asyncio.sleep(0.01)
