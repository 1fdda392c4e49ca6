"""What a node keeps on its disk: state, journal and outbox, sealed; written before anything is offered, erased at the end.

It is a `log` in a folder of its own. Every process, and every time the log has grown to several times what it holds, writes a new
one and puts it in the place of the old in one step, so the store does not grow. One process works with a folder at a time.
Which runs were begun stands outside that folder too (`used`): where the folder is lost, its run is not begun a second time.
With `durable` a record is on the disk when it is committed; without, it survives the death of the process, not that of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .log import Log, read

KEEP = ("disk", "process", "memory")  # what a node survives: the death of the machine, of its process, nothing
SMALL, GROWTH = 1 << 20, 8  # a log is written anew when it has more bytes than this, and so many times what it began with


class Store:
    """One node's folder. Use it in a `with`: the folder is locked inside."""

    keeps = True

    def __init__(
        self, folder: str | os.PathLike[str], key: bytes, digest: bytes, *, durable: bool = True, used: Path | None = None
    ):
        """`used`: a file outside the folder that lists the runs which were begun."""
        if len(key) != 32:
            raise StoreError(f"the key of a store has 32 bytes, this one {len(key)}; make one with `new_key`")
        self.folder, self.digest, self.durable, self.used = Path(folder), digest, durable, used
        self._key, self._lock, self._base = key, -1, 0
        self._log: Log | None = None

    def __enter__(self) -> Store:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = locked(self.folder / "lock")
        try:
            self._check()
        except StoreError:
            self.close()
            raise
        return self

    def _check(self) -> None:
        """Whether this run may be begun here, or go on."""
        if ended(self.folder, self.digest):
            raise StoreError(
                f"this run has ended, {self.folder} says: its secrets are erased; for another run of the same nodes say "
                "`sottovoce again`"
            )
        if self.used is not None and self.digest.hex() in _listed(self.used) and not (self.folder / "store").is_file():
            raise StoreError(
                f"this run was begun before and its store is gone: {self.used} lists it, and there is nothing in {self.folder} to "
                "go on with; begun anew, it could send a second message in the place of one that is out: make a new run of the "
                "same nodes with `sottovoce again`"
            )

    def begun(self) -> None:
        """There is a log: note outside this folder that the run was begun, before anything is offered."""
        if self.used is not None and self.digest.hex() not in (runs := _listed(self.used)):
            _noted(self.used, *runs, self.digest.hex())

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; nothing is lost."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def records(self) -> Iterator[bytes]:
        """Every record of the log that is there, the oldest first; none if there is no log yet."""
        path = self.folder / "store"
        return read(path, self._key, self.digest) if path.exists() else iter(())

    def append(self, pieces: Iterable[Any]) -> None:
        """Commit one record; when this returns it may be offered."""
        if self._log is None:
            raise StoreError("a process begins by writing the log anew: call rewrite() first")
        try:
            self._log.append(pieces)
        except OSError as error:
            raise self._failed(error) from None

    @property
    def heavy(self) -> bool:
        """Whether the log should be written anew."""
        return self._log is not None and self._log.end > max(SMALL, GROWTH * self._base)

    def rewrite(self, records: Iterable[Iterable[Any]]) -> None:
        """Write a new log with these records alone, and put it in the place of the old one in one step."""
        new, log = self.folder / "store.new", None
        try:
            log = self._new(new)
            for pieces in records:
                log.append(pieces, last=False)
            log.mark()
            log.sync()
            os.replace(new, self.folder / "store")
            self._sync_folder()
        except OSError as error:
            if log is not None:
                log.close()
            raise self._failed(error) from None
        old, self._log, self._base = self._log, log, log.end
        if old is not None:
            old.close()

    def _new(self, path: Path) -> Log:
        return Log(path, self._key, self.digest, self.durable)

    def _sync_folder(self) -> None:
        if self.durable:
            _synced(self.folder)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self.folder} cannot be written ({error.strerror}); nothing was offered that is not on the disk: make room and "
            "start this node again, it goes on where it was"
        )

    def erase(self) -> None:
        """The end: the log is gone and opens no more, and the folder says that the run has ended."""
        _noted(self.folder / "ended", self.digest.hex())
        if self._log is not None:
            self._log.destroy()
        (self.folder / "store").unlink(missing_ok=True)
        (self.folder / "store.new").unlink(missing_ok=True)
        self._sync_folder()


def ended(folder: str | os.PathLike[str], digest: bytes) -> bool:
    """Whether this run has come to its end here: nobody needs anything of this node any more."""
    path = Path(folder) / "ended"
    return path.exists() and path.read_text().strip() == digest.hex()


class MemoryStore(Store):
    """Nothing is kept: faster, and a node that stops before the end cannot go on, nor can the run.

    That it has begun is on the disk before anything is offered: a second start could send a second message in the place of one
    that is out, so it is refused.
    """

    keeps = False

    def _check(self) -> None:
        begun = self.folder / "begun"
        if self.digest.hex() in _listed(begun) and not ended(self.folder, self.digest):
            raise StoreError(
                f"this run was begun with keep = \"memory\", {self.folder} says, and what it had sent is forgotten: going on could "
                "send a second message in the place of one that is out; make a new run of the same nodes with `sottovoce again`"
            )
        super()._check()
        _noted(begun, self.digest.hex())
        self._sync_folder()

    def append(self, pieces: Iterable[Any]) -> None:
        """Nowhere."""

    def rewrite(self, records: Iterable[Iterable[Any]]) -> None:
        """Nowhere."""


def _noted(path: Path, *runs: str) -> None:
    """A file that says which runs it is about, whole on the disk when this returns."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.writelines(f"{run}\n" for run in runs)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    _synced(path.parent)


def _listed(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def _synced(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def store_of(keep: str, folder: Path, key: bytes, digest: bytes, used: Path | None = None) -> Store:
    """A store by its word in node.toml."""
    if keep == "memory":
        return MemoryStore(folder, key, digest, used=used)
    return Store(folder, key, digest, durable=keep == "disk", used=used)


def locked(path: Path) -> int:
    """The lock of a folder, to be closed; refused where another process has it."""
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise StoreError(f"another process works with {path.parent}: a node runs once; stop that one first") from None
    return file


def new_key() -> str:
    """A fresh key, as it stands in a key file or an environment variable: 64 hexadecimal digits."""
    return os.urandom(32).hex()


def read_key(source: str | os.PathLike[str]) -> bytes:
    """The key from a file that only its owner can read, or, "env:NAME", from an environment variable."""
    name = os.fspath(source)
    if name.startswith("env:"):
        text, where = os.environ.get(name[4:], ""), f"the environment variable {name[4:]}"
    else:
        path, where = Path(name), f"the key file {name}"
        if not path.is_file():
            raise StoreError(f"there is no key file {path}; `sottovoce init` writes one, or name an environment variable: env:NAME")
        if path.stat().st_mode & 0o077:
            raise StoreError(f"others can read the key file {path}; run: chmod 600 {path}")
        text = path.read_text()
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != 32:
        raise StoreError(f"{where} must hold 64 hexadecimal digits (32 bytes), and does not")
    return key
