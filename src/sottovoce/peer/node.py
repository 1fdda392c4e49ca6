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
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import Ended, IdentityError, InputError
from ..tables import write_toml
from ..version import __version__
from .costs import hashed
from .dialling import dialled
from .draws import NodeDraws
from .federation import HIDDEN
from .loop import Loop, Watch
from .node_file import NodeFile
from .recorder import Recorder, erased, written
from .status import Log, Status
from .store import Store, ended, read_key, store_of
from .zenoh_link import ZenohLink

Array = np.ndarray
RESULT, LOG, USED = "result.toml", "node.log", "used"
SEEN = 30 << 20  # bytes up to which memory is kept for what comes next: glibc gives larger pieces back to the system, and maps them
# anew page by page, unless it has seen such a piece come and go (it looks up to 32 MB)
ALONE = 1.0  # seconds to find out whether this node runs elsewhere


class Node(Watch):
    """A node that can be iterated over, from `async` code or, by `run`, from plain."""

    def __init__(self, file: str | Path = "node.toml", *, deadline: float | None = None):
        """`deadline`: after so many seconds the run is ended for all nodes, to be resumed."""
        self.file = NodeFile.read(file)
        self.federation, self.identity, self.cost = self.file.load()
        self.hashed = hashed(self.file.cost, self.file.folder)
        self.me, self.deadline = self.file.number(self.federation), deadline
        self.roster = self.federation.roster
        self.status = Status(self.file.name, self.roster.iterations)
        self.link: ZenohLink | None = None
        self.log: Log | None = None
        self._playing: Loop | None = None

    @property
    def result(self) -> Path:
        """Where the result is, once there is one."""
        return self.file.result / RESULT

    @property
    def over(self) -> bool:
        """Whether this run has come to its end here: the result is written, and nobody needs anything of this node any more."""
        return is_over(self.file, self.roster.digest)

    @property
    def _written(self) -> bool:
        return _written(self.file, self.roster.digest)

    def run(self) -> Iterator[tuple[int, Array]]:
        """(k, x) after every iteration, from the one that is on the disk on."""
        return self._run(threading.Event())

    def _run(self, left: threading.Event) -> Iterator[tuple[int, Array]]:
        """The same; `left`: whoever wanted it does not want it any more."""
        self._check_result()
        self._check_alone()
        key, log = read_key(self.file.key), Log(self.file.folder / LOG, self.file.name)
        self.log, k = log, -1
        try:
            place = store_of(self.file.keep, self.file.store, key, self.roster.digest, self.identity.folder / USED)
            with place as store, self._recorder(key) as recorder:
                log.write("start", run=self.roster.run, iterations=self.roster.iterations, version=__version__)
                self._playing = self._loop(store, recorder)
                if left.is_set():  # meanwhile; from here on `stop` finds whom to tell
                    self.stop()
                for k, x in self._playing.run():
                    self.status.reached(k)
                    if self._playing.over:
                        self._write(x, k, recorder)
                    yield k, x
                erased(self.file.store)
                store.erase()
            log.write("end", iteration=k, bytes=self.status.sent)
        except (KeyboardInterrupt, GeneratorExit):
            log.write("stopped", iteration=self.status.k)
            raise
        except Exception as error:
            log.write("failed", iteration=self.status.k, error=type(error).__name__)
            raise
        finally:
            self.log = self._playing = None
            log.close()

    def stop(self) -> None:
        """End the run of this node from another thread; it can be resumed."""
        if (playing := self._playing) is not None:
            playing.failure = Ended(f"{self.file.name} was stopped by its own program; started again, it goes on where it was")
            playing.wake.put(None)

    def _recorder(self, key: bytes) -> Recorder | nullcontext[None]:
        if not self.file.recorded:
            return nullcontext()
        durable = self.file.keep == "disk"
        return Recorder(self.file.store, self.file.transcript, key, self.roster, self.me, self.cost, durable)

    def _loop(self, store: Store, recorder: Recorder | None) -> Loop:
        np.empty(SEEN, np.uint8)  # freed at once, and glibc has seen it
        wires = self.federation.wiring(self.file.name, self.file.listen)
        self.link = ZenohLink(self.roster, self.identity, wires, counts=self.status)
        keys = tuple(map(bytes.fromhex, self.roster.keys))
        draws = NodeDraws(self.me, self.identity.secret, keys, self.roster.digest, self.roster.seed)
        return Loop(
            self.roster, self.me, self.cost, store, self.link, draws, x0=self.file.x0, watch=self, deadline=self.deadline,
            hashed=self.hashed, recorder=recorder,
        )  # fmt: skip

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
            raise InputError(f"this run has ended, and its result is in {self.result}; for another one say `sottovoce again`")
        if self.result.exists() and not self._written:
            raise InputError(f"{self.result} holds the result of another run; move it away, or name another folder in node.toml")
        if self.file.recorded:
            written(self.file.transcript, self.roster.digest)
        self.file.result.mkdir(parents=True, exist_ok=True)

    def _check_alone(self) -> None:
        """Refuse where a node with this very certificate runs already, be it from a copy of this folder on another machine."""
        member = self.federation.members[self.me]
        if member.address != HIDDEN and dialled(self.identity, member.address, member.name, member.fingerprint, ALONE) is None:
            raise IdentityError(
                f"{member.name} runs already, at {member.address}: two processes of one identity would send two messages in the "
                "place of one; stop that one first"
            )

    def _write(self, x: Any, k: int, recorder: Recorder | None) -> None:
        """The transcript, where one is kept, then the result: where that is, all is."""
        if recorder is not None and self._playing is not None:
            recorder.write(self._playing.replay.task)
        provenance = {
            "sottovoce": __version__, "python": platform.python_version(), "numpy": np.__version__, "kind": "deployment",
            "run": self.roster.run, "roster": self.roster.digest.hex(), "node": self.file.name,
            "certificate": self.identity.fingerprint,
        }  # fmt: skip
        facts = {"algorithm": self.roster.algorithm, "iterations": k, "x": x, "provenance": provenance}
        write_toml(self.result, facts)

    # from asynchronous code --------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[tuple[int, Array]]:
        """The same; the node runs in a thread of its own, and goes on when the numbers were taken."""
        loop, there, taken = asyncio.get_running_loop(), asyncio.Queue[Any](), threading.Semaphore(0)
        left, over = threading.Event(), asyncio.Event()

        def give(one: Any) -> None:
            with suppress(RuntimeError):  # the event loop is gone, and whoever waited with it
                loop.call_soon_threadsafe(there.put_nowait, one)

        def play() -> None:
            try:
                self._play(give, taken, left)
            finally:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(over.set)

        threading.Thread(target=play, name=self.file.name, daemon=True).start()
        try:
            while (one := await there.get()) is not None:
                if isinstance(one, Exception):
                    raise one
                yield one
                taken.release()
        finally:
            left.set()
            taken.release()
            self.stop()
            await _ended(over)

    def _play(self, give: Callable[[Any], None], taken: threading.Semaphore, left: threading.Event) -> None:
        """The thread: gives one pair after the other, then None; or the reason why there is no more."""
        with closing(cast(Generator[Any], self._run(left))) as running:
            try:
                for one in running:
                    give(one)
                    taken.acquire()
                    if left.is_set():
                        return
                give(None)
            except Exception as error:  # raised where the numbers are awaited
                give(error)


async def _ended(over: asyncio.Event) -> None:
    """Until the thread has let go of the node's folder, even where whoever waits is cancelled meanwhile."""
    cancelled = None
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def is_over(file: NodeFile, digest: bytes) -> bool:
    """Whether a run has come to its end at a node, by what is in its folder."""
    return _written(file, digest) and ended(file.store, digest)


def _written(file: NodeFile, digest: bytes) -> bool:
    result = file.result / RESULT
    return result.is_file() and f'roster = "{digest.hex()}"' in result.read_text()
