"""States as bytes and back: arrays, numbers, words, and tuples of them; no pickle, and nothing is imported by name.

A NamedTuple is written with the name of its class and comes back only as one of the classes that the reader is given. What is
written is read back to the last bit, or refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import StoreError

U32, I64, F64 = struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<d")
DTYPES = tuple(map(np.dtype, ("<f8", "<u8", "|u1", "<i8", "|b1", "<u4", "<i4", "<f4")))
CODES = {dtype: bytes([i]) for i, dtype in enumerate(DTYPES)}
NONE, TRUE, FALSE, INT, LONG, FLOAT, TEXT, BYTES, ARRAY, TUPLE, LIST, NAMED = (bytes([i]) for i in range(12))


def encode(value: Any) -> list[Any]:
    """The pieces of its bytes, to be joined or written one after the other; large arrays are not copied."""
    pieces: list[Any] = []
    _write(pieces.append, value)
    return pieces


def _write(put: Any, value: Any) -> None:
    writer = WRITERS.get(type(value))
    if writer is not None:
        writer(put, value)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        put(NAMED)
        _text(put, type(value).__qualname__)
        _items(put, value)
    elif isinstance(value, np.generic):
        _array(put, np.asarray(value))
    else:
        raise StoreError(
            f"a state holds a {type(value).__name__}, which cannot be written to disk; it may hold arrays, numbers, words, None, "
            "and tuples or lists of them"
        )


def _array(put: Any, value: np.ndarray) -> None:
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    code = CODES.get(little.dtype)
    if code is None:
        raise StoreError(f"a state holds an array of {value.dtype}, which cannot be written to disk")
    put(b"".join((ARRAY, code, bytes([value.ndim]), *map(U32.pack, value.shape))))
    put(little.data.cast("B") if little.size and little.flags.c_contiguous else little.tobytes())


def _bytes(put: Any, value: Any) -> None:
    put(U32.pack(len(value)))
    put(value)


def _text(put: Any, value: str) -> None:
    _bytes(put, value.encode())


def _items(put: Any, value: Any) -> None:
    put(U32.pack(len(value)))
    for item in value:
        _write(put, item)


def _int(put: Any, value: int) -> None:
    if -(2**63) <= value < 2**63:
        put(INT + I64.pack(value))
    else:
        put(LONG)
        _bytes(put, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _tagged(tag: bytes, write: Any) -> Any:
    def tagged(put: Any, value: Any) -> None:
        put(tag)
        write(put, value)

    return tagged


WRITERS: dict[type, Any] = {
    type(None): lambda put, value: put(NONE),
    bool: lambda put, value: put(TRUE if value else FALSE),
    int: _int,
    float: lambda put, value: put(FLOAT + F64.pack(value)),
    str: _tagged(TEXT, _text),
    bytes: _tagged(BYTES, _bytes),
    np.ndarray: _array,
    tuple: _tagged(TUPLE, _items),
    list: _tagged(LIST, _items),
}


def decode(data: bytes, classes: Mapping[str, Any] | None = None) -> Any:
    """What `encode` wrote, all of it; arrays are copies that may be written to."""
    reader = _Reader(data, classes or {})
    try:
        value = reader.value()
    except (struct.error, IndexError, ValueError, UnicodeDecodeError):
        raise StoreError("a record of the store cannot be read: it ends too early, or is of another release") from None
    if reader.at != len(data):
        raise StoreError(f"a record of the store is longer than what it holds, by {len(data) - reader.at} bytes")
    return value


class _Reader:
    def __init__(self, data: bytes, classes: Mapping[str, Any]):
        self.data, self.classes, self.at = memoryview(data), classes, 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def count(self) -> int:
        return U32.unpack(self.take(4))[0]

    def value(self) -> Any:
        return READERS[self.take(1)[0]](self)

    def text(self) -> str:
        return str(self.take(self.count()), "utf-8")

    def items(self) -> list[Any]:
        return [self.value() for _ in range(self.count())]

    def array(self) -> np.ndarray:
        dtype, ndim = DTYPES[self.take(1)[0]], self.take(1)[0]
        shape = tuple(self.count() for _ in range(ndim))
        size = 1
        for length in shape:
            size *= length
        return np.frombuffer(self.take(size * dtype.itemsize), dtype).reshape(shape).copy()

    def named(self) -> Any:
        name = self.text()
        if name not in self.classes:
            raise StoreError(f"the store holds a {name}, which this algorithm and its mechanisms do not have")
        return self.classes[name](*self.items())


READERS = (
    lambda r: None, lambda r: True, lambda r: False, lambda r: I64.unpack(r.take(8))[0],
    lambda r: int.from_bytes(r.take(r.count()), "little", signed=True), lambda r: F64.unpack(r.take(8))[0], _Reader.text,
    lambda r: bytes(r.take(r.count())), _Reader.array, lambda r: tuple(r.items()), _Reader.items, _Reader.named,
)  # fmt: skip
