"""Sealed links: ChaCha20-Poly1305 (Nir, Langley, RFC 8439) on each edge, by the library `cryptography`.

    wire = E(key of the edge, nonce = (iteration, exchange), payload as little-endian numbers), 16 bytes longer than the payload

A key serves one edge of one run and a nonce one message, so none is ever used twice. The ends read the payload as before, so
trajectory, optimum and `sent` are those without it.

Worth: against whoever taps the wire, everything but lengths, times and who talks to whom. Against the receiver, nothing: it has
the key. A simulation seals nothing while it runs: what the wire would have carried is worked out when a transcript's `wire` is
read, with keys that the operating system drew for this transcript and that are in no header, no repr and no file.
"""

import importlib.util
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import NotInstalled, RunError
from ..node import Layer
from ..registry import Mechanism, register
from ..wire import Key, OnWire

TAG = 16  # bytes that tell a message from an altered one


class Sealed(OnWire):
    """(k, exchange) -> what crosses each edge, uint8 (edge, bytes, run); sealed when it is asked for."""

    def __init__(self, sent: Mapping[Key, np.ndarray], edges: Any = (), options: Any = None):
        super().__init__(sent)
        self._links: dict[tuple[int, int], Any] = {}  # (edge, run) -> its cipher; the key is nowhere else

    def __getitem__(self, key: Key) -> np.ndarray:
        payload = self.sent[key]
        payload = payload.astype(payload.dtype.newbyteorder("<"), copy=False)
        out = np.empty((len(payload), payload.shape[1] * payload.itemsize + TAG, payload.shape[2]), np.uint8)
        for edge, run in np.ndindex(len(payload), payload.shape[2]):
            message = self._link(edge, run).encrypt(nonce(key), payload[edge, :, run].tobytes(), None)
            out[edge, :, run] = np.frombuffer(message, np.uint8)
        return out

    def opened(self, key: Key, edge: int, message: bytes, run: int = 0) -> np.ndarray:
        """What an edge's receiver reads out of a message, or a refusal where a byte, the key or the moment is another."""
        from cryptography.exceptions import InvalidTag

        try:
            plain = self._link(edge, run).decrypt(nonce(key), message, None)
        except InvalidTag:
            raise RunError(
                f"message {key} (iteration, exchange) on edge {edge} was altered, or sealed with another key; ask for it again"
            ) from None
        return np.frombuffer(plain, self.sent[key].dtype.newbyteorder("<"))

    def _link(self, edge: int, run: int) -> Any:
        if (edge, run) not in self._links:
            self._links[edge, run] = new_cipher()
        return self._links[edge, run]


def nonce(key: Key) -> bytes:
    """Twelve bytes that no two messages of an edge share; the set-up is iteration -1."""
    return struct.pack("<QI", key[0] + 1, key[1])


def new_cipher() -> Any:
    """A cipher with a fresh key of the operating system's."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError:
        raise NotInstalled("encrypted-links", "node") from None
    return ChaCha20Poly1305(ChaCha20Poly1305.generate_key())


class EncryptedLinks(Layer):
    """Every verb as it is: it changes what crosses the wire, not what the ends read."""

    wire = Sealed  # how the transcript's messages look there


def needs(algorithm: Any, parameters: Any, outside: Any) -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise NotInstalled("encrypted-links", "node")


register(
    Mechanism(
        name="encrypted-links",
        source="Nir, Langley, RFC 8439 (ChaCha20-Poly1305)",
        wrap=EncryptedLinks,
        needs=needs,
        needs_text="the extra [node]",
        leaks="Lengths, times and who talks to whom; the receiver reads everything.",
        overrides=("wire",),
    )
)
