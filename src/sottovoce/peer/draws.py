"""The randomness of a real node: nothing here can be given a seed.

    what it keeps to itself           the operating system, anew each time
    what both ends of an edge know    a stream of AES-256 in counter mode; the key by HKDF-SHA256 from the X25519 secret of the
                                      two nodes, the roster's hash (hence the run) and the nonces with which both began it
                                      (see starts.py), one key for each edge and stream; the counter begins with the iteration
    what everybody knows              the public seed of the roster

A stream is read as the simulation's generator is: four 32-bit words for each coordinate, turned into numbers by exact tables,
so that both ends hold the very same bits whatever their machines make of a logarithm.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..draws import CounterDraws, OsDraws, Stream, from_words
from ..errors import NotInstalled, ParameterError
from ..laws import Law

Array = np.ndarray
BOTH = (0, 1, 2, 3)


class NodeDraws:
    """One node's sources; `private` is its X25519 private key, `keys` everybody's public ones (32 bytes each)."""

    runs = 1

    def __init__(self, me: int, private: bytes, keys: tuple[bytes, ...], digest: bytes, seed: int):
        self._me, self._keys, self._digest = me, keys, digest
        self._private = private
        self.start: Callable[[int], bytes] = lambda node: b""  # the nonce with which a node began the run; the loop knows them
        self._mine, self._all = OsDraws(), CounterDraws(seed)
        self.four, self.common = self._mine.four, self._all.common
        once = functools.lru_cache(maxsize=4096)  # the key of an edge and a stream is worked out once
        self._both, self._alone = once(self._shared_key), once(self._own_key)
        self._labels: dict[int, NodeDraws] = {}

    def between(
        self, xp: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int,
        which: tuple[int, ...] = BOTH,
    ) -> tuple[Any, ...]:  # fmt: skip
        """For each edge of mine what its other end gets too. A node with itself: known to it alone, the same each time."""
        return self._streamed(self._both, law, stream, k, sender, receiver, coordinates, which)

    def kept(self, label: int) -> NodeDraws:
        """The same for what outlasts a run: the label stands in for the roster's hash and for its seed, and what this node keeps to
        itself comes from a stream of its private key, so that it is there again after a crash and in the next run."""
        if label not in self._labels:
            named = hashlib.sha256(b"sottovoce kept\0" + label.to_bytes(8, "big")).digest()
            self._labels[label] = one = NodeDraws(self._me, self._private, self._keys, named, label)
            one.four = one._mine_again
        return self._labels[label]

    def _mine_again(
        self, xp: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int,
        which: tuple[int, ...] = BOTH,
    ) -> tuple[Any, ...]:  # fmt: skip
        return self._streamed(self._alone, law, stream, k, sender, receiver, coordinates, which)

    def _streamed(
        self, key: Any, law: Law | str, stream: Stream, k: Any, sender: Any, receiver: Any, coordinates: int, which: tuple[int, ...]
    ) -> tuple[Any, ...]:
        if np.ndim(k):
            raise ParameterError("a node draws one iteration at a time")
        pairs = zip(np.atleast_1d(sender).tolist(), np.atleast_1d(receiver).tolist(), strict=True)
        blocks = [_words(key((s, r), stream), int(k), coordinates) for s, r in pairs]
        words = np.concatenate([np.empty((0, coordinates, 4), np.uint64), *blocks])[..., None]
        return tuple(from_words(np, law, words.transpose(2, 0, 1, 3), w) for w in which)

    def _shared_key(self, edge: tuple[int, int], stream: Stream) -> bytes:
        if self._me not in edge:
            raise ParameterError(f"node {self._me} cannot know what nodes {edge[0]} and {edge[1]} draw together")
        other = edge[0] if edge[1] == self._me else edge[1]
        starts = b"".join(map(self.start, sorted(edge)))
        return self._derived(b"sottovoce between", self._secret(other), edge, stream, starts)

    def _own_key(self, edge: tuple[int, int], stream: Stream) -> bytes:
        return self._derived(b"sottovoce alone", self._private, edge, stream)

    def _derived(self, purpose: bytes, secret: bytes, edge: tuple[int, int], stream: Stream, starts: bytes = b"") -> bytes:
        try:
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError:
            raise NotInstalled("a node", "node") from None
        label = purpose + b"\0" + b"".join(number.to_bytes(8, "big") for number in (*edge, *stream)) + starts
        return HKDF(SHA256(), 32, self._digest, label).derive(secret)

    def _secret(self, other: int) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

        if other == self._me:
            return self._private
        return X25519PrivateKey.from_private_bytes(self._private).exchange(X25519PublicKey.from_public_bytes(self._keys[other]))

    def __repr__(self) -> str:
        return f"NodeDraws(node {self._me})"

    def __reduce__(self) -> Any:
        raise TypeError("the draws of a node hold its private key and are not written anywhere")


def _words(key: bytes, k: int, coordinates: int) -> Array:
    """Four 32-bit words a coordinate: (1, coordinates, 4)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, modes
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    start = (k + 1).to_bytes(8, "big") + bytes(8)
    cipher = Cipher(AES(key), modes.CTR(start)).encryptor()
    return np.frombuffer(cipher.update(bytes(16 * coordinates)), "<u4").astype(np.uint64).reshape(1, coordinates, 4)
