"""A file of sealed records, whole after a kill at any instant.

    header    magic, roster's hash, salt, and the mark: how many records and bytes are committed
    record    its length, then AES-256-GCM of it; nonce = its number, the roster's hash as associated data

A record is appended, brought to the disk (`durable`), and then the mark moves; only then is it committed. What lies behind the
mark was cut short by a kill: a record that is whole there counts, one that is not is dropped. Before the mark everything
must be there and unaltered, else the file is refused: going on from an older state would draw a second mask for a message
that is out already. The key of a file comes from the operator's key and the file's own salt by HKDF, and a file is written by one
process only: no nonce is used twice.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import NotInstalled, StoreError

HEADER, MARK = struct.Struct("<8s32s32s"), struct.Struct("<QQ")
MAGIC, LENGTH, CRC = b"svstore1", struct.Struct("<Q"), struct.Struct("<I")
START = HEADER.size + MARK.size + CRC.size
TAG, SPARE = 16, 64  # bytes of the seal, and room that the cipher wants behind what it writes
LARGE = 1 << 16  # bytes from which a record is sealed piece by piece
CHECK = b"sottovoce"  # the first record: whether the key is right
NO_WAY_BACK = (
    "going on from anything older could send a second message in the place of one that is out, so this node cannot go on: "
    "make a new run of the same nodes with `sottovoce again`"
)


class Log:
    """A file to write to: a new one, in the place of whatever was there."""

    def __init__(self, path: Path, key: bytes, digest: bytes, durable: bool):
        self.digest, self.durable, self.end, self.count = digest, durable, START, 0
        salt = os.urandom(32)
        self._key = derived(key, salt)
        self._cipher, self._head, self._memory = sealer(self._key), HEADER.pack(MAGIC, digest, salt), bytearray()
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self.append([CHECK], last=False)

    def append(self, pieces: Iterable[Any], last: bool = True) -> None:
        """One record; committed when this returns, or together with those after it where it is not the `last`."""
        sealed = self._sealed(list(pieces))
        try:
            self._put([LENGTH.pack(len(sealed)), sealed], self.end)
            if last:
                self.sync()
        except OSError:
            os.ftruncate(self.file, self.end)
            raise
        self.end, self.count = self.end + LENGTH.size + len(sealed), self.count + 1
        if last:
            self.mark()

    def _sealed(self, pieces: list[Any]) -> Any:
        """A record sealed; a large one piece by piece into memory that is there: new memory costs more than the cipher."""
        size = sum(map(len, pieces))
        if size < LARGE:
            return self._cipher.encrypt(nonce(self.count), b"".join(pieces), self.digest)
        if len(self._memory) < size + SPARE:
            self._memory = bytearray(size + size // 8 + SPARE)
        room, at, stream = memoryview(self._memory), 0, streamed(self._key, nonce(self.count), self.digest)
        for piece in pieces:
            at += stream.update_into(piece, room[at:])
        stream.finalize()
        room[at : at + TAG] = stream.tag
        return room[: at + TAG]

    def mark(self) -> None:
        """All that is there is committed."""
        head = self._head + MARK.pack(self.count, self.end)
        self._put([head, CRC.pack(zlib.crc32(head))], 0)

    def sync(self) -> None:
        if self.durable:
            getattr(os, "fdatasync", os.fsync)(self.file)  # not every system has the lighter one

    def _put(self, pieces: list[Any], at: int) -> None:
        written, wanted = os.pwritev(self.file, pieces, at), sum(map(len, pieces))
        if written != wanted:  # a disk that is nearly full takes a part
            rest = memoryview(b"".join(pieces))
            while written < wanted:
                written += os.pwrite(self.file, rest[written:], at + written)

    def destroy(self) -> None:
        """Without its salt it opens no more, wherever the disk keeps copies of the rest."""
        self._put([bytes(START)], 0)
        self.sync()
        os.ftruncate(self.file, 0)
        self.sync()

    def close(self) -> None:
        os.close(self.file)


def read(path: Path, key: bytes, digest: bytes) -> Iterator[bytes]:
    """Every record of a file, the oldest first; refused where something that was committed is missing or altered."""
    with path.open("rb") as file:
        size = path.stat().st_size
        salt, marked, committed = _opened(file.read(START), digest, path)
        if size < committed:
            raise StoreError(f"{path} has been cut short: {size} bytes of {committed}; {NO_WAY_BACK}")
        cipher, number = sealer(derived(key, salt)), 0
        while (record := _record(file, size, cipher, number, digest)) is not None:
            if number:
                yield record
            number += 1
        if number == 0 < marked:
            raise StoreError(f"{path} does not open with this key: it is another key, or the file is damaged; {NO_WAY_BACK}")
        if number < marked:
            raise StoreError(f"record {number} of {path} is damaged; {NO_WAY_BACK}")


def _opened(head: bytes, digest: bytes, path: Path) -> tuple[bytes, int, int]:
    if len(head) < START or not head.startswith(MAGIC) or zlib.crc32(head[: -CRC.size]) != CRC.unpack(head[-CRC.size :])[0]:
        raise StoreError(f"the beginning of {path} is damaged, or it is no store of ours; {NO_WAY_BACK}")
    _, found, salt = HEADER.unpack_from(head)
    marked, committed = MARK.unpack_from(head, HEADER.size)
    if found != digest:
        raise StoreError(f"{path} belongs to another run, or its roster has changed; move it away, or give this node a new folder")
    return salt, marked, committed


def _record(file: Any, size: int, cipher: Any, number: int, digest: bytes) -> bytes | None:
    """The next record; None where none is whole."""
    from cryptography.exceptions import InvalidTag

    head = file.read(LENGTH.size)
    length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
    sealed = file.read(length) if TAG <= length <= size else b""
    if len(sealed) != length:
        return None
    try:
        return cipher.decrypt(nonce(number), sealed, digest)
    except (InvalidTag, ValueError):
        return None


def derived(key: bytes, salt: bytes) -> bytes:
    """The key of one file."""
    try:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise NotInstalled("a node", "node") from None
    return HKDF(SHA256(), 32, salt, b"sottovoce store").derive(key)


def sealer(key: bytes) -> Any:
    """The cipher of one file."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def streamed(key: bytes, nonce: bytes, digest: bytes) -> Any:
    """The same cipher for one record that is given piece by piece."""
    from cryptography.hazmat.primitives.ciphers import Cipher, modes
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    stream = Cipher(AES(key), modes.GCM(nonce)).encryptor()
    stream.authenticate_additional_data(digest)
    return stream


def nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")
