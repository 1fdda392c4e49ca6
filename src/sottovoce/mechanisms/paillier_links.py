"""Paillier on the links: Remark 7 of Gao, Wang, Nedic (Automatica 2023), as it is worded: "let each node generate and flood its
public key before the optimization iteration starts. Then [...] a node encrypts its messages to be sent, which can be decrypted by a
legitimate recipient without the help of any third party."

    set-up: a table of public keys crosses every edge, as often as the graph's diameter says, until all have all
    wire = E_receiver(the payload's bytes), as many in a ciphertext as the key holds

Bytes are packed, nothing is encoded: the ends read the payload exactly, so trajectory and optimum are those without it (a method
that draws at its start draws after the keys). Nothing is added or multiplied under encryption either: Paillier does here what any
public-key cipher would. The set-up really floods keys that the nodes drew, and is not encrypted itself. What the wire carries from
then on is worked out when a transcript's `wire` is read, with randomness of the operating system's for this transcript alone.

Worth: against whoever taps the wire, everything but lengths, times and who talks to whom. Against the receiver, nothing. Against
somebody who may alter messages, little: sixteen zero bytes ahead of the payload tell another key or a flipped byte (luck: one in
2^127), but anybody can write a new message under a public key or add to what is in an old one, and flooded keys are not signed.
encrypted-links does that too, and thousands of times faster.
"""

import functools
import hashlib
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import RunError
from ..node import Array, Layer
from ..paillier import STRONG, Paillier, check_key, libraries, number
from ..registry import Mechanism, Parameter, at_least, register
from ..wire import Key, OnWire

ZEROS = 16  # bytes ahead of a payload that tell whether the key was right


def start(node: Any, parameters: Any) -> tuple[Array, Array]:
    """Everybody's public key, and my secret one."""
    cipher = Paillier(int(parameters.key_bits))
    public, secret = cipher.keys(node.draw("words", like=np.empty((1, cipher.key_words, 1))))
    n, length = node.public.n + node.public.helpers, cipher.key_bytes
    mine = np.arange(n)[None, :, None] == node.me  # my place in the table; the others are zero until their key comes
    table = (mine[..., None] * public[:, None]).reshape(len(public), n * length, -1)
    for _ in range(node.public.diameter):
        table = np.maximum(table, node.largest(node.hear(table)))  # a key that comes twice is the same both times
    return table, secret


class Enciphered(OnWire):
    """(k, exchange) -> what crosses each edge, uint8 (edge, bytes, run); enciphered when it is asked for."""

    def __init__(self, sent: Mapping[Key, np.ndarray], edges: tuple[tuple[int, int], ...], options: Any):
        super().__init__(sent)
        self._edges, self._cipher = edges, Paillier(int(options.key_bits))
        self._seed = os.urandom(32)  # what this transcript's ciphertexts are made with; nowhere else
        self._room = self._cipher.key_bytes - ZEROS
        self._keys: dict[tuple[int, int], Any] = {}

    def __getitem__(self, key: Key) -> np.ndarray:
        payload = raw(self.sent[key])
        if key in self._flood:
            return payload
        edges, _, runs = payload.shape
        found = [self._sealed(key, e, r, payload[e, :, r].tobytes()) for e, r in np.ndindex(edges, runs)]
        return np.stack([np.frombuffer(m, np.uint8) for m in found]).reshape(edges, runs, -1).swapaxes(1, 2)

    def opened(self, key: Key, edge: int, message: bytes, secret: bytes) -> np.ndarray:
        """What an edge's receiver reads out of a message with its secret key, or a refusal."""
        private, largest, size = self._cipher.private(secret), 256**self._room - 1, self._cipher.cipher_bytes
        found = []
        for at in range(0, len(message), size):
            m = self._cipher.decrypt(private, number(message[at : at + size]), largest)
            if m < 0:
                raise RunError("a ciphertext was altered, or is for another key: what it holds is no payload")
            found.append(m.to_bytes(self._room, "big"))
        payload = self.sent[key]
        length = payload.shape[1] * payload.itemsize
        return np.frombuffer(b"".join(found)[:length], payload.dtype.newbyteorder("<"))

    @functools.cached_property
    def _flood(self) -> list[Key]:
        """The exchanges of the set-up in which the keys crossed."""
        width = (max(map(max, self._edges)) + 1) * self._cipher.key_bytes
        of_keys = lambda key: self.sent[key].dtype == np.uint8 and self.sent[key].shape[1] == width
        return [key for key in self.sent if key[0] == -1 and of_keys(key)]

    def _sealed(self, key: Key, edge: int, run: int, plain: bytes) -> bytes:
        """A payload under the key of the edge's receiver, block by block."""
        public, out = self._public(self._edges[edge][1], run), []
        for block, at in enumerate(range(0, len(plain), self._room)):
            m = number(plain[at : at + self._room].ljust(self._room, b"\0"))
            place = struct.pack("<5q", *key, edge, run, block)
            drawn = hashlib.shake_256(self._seed + place).digest(8 * self._cipher.cipher_words)
            c = self._cipher.encrypt(public, m, np.frombuffer(drawn, np.uint64))
            out.append(c.to_bytes(self._cipher.cipher_bytes, "big"))
        return b"".join(out)

    def _public(self, node: int, run: int) -> Any:
        """A node's public key as all have it: in the first table that it sends."""
        if (node, run) not in self._keys:
            edge = next(e for e, (sender, _) in enumerate(self._edges) if sender == node)
            at = node * self._cipher.key_bytes
            key = self.sent[self._flood[0]][edge, at : at + self._cipher.key_bytes, run]
            self._keys[node, run] = self._cipher.public(key.tobytes())
        return self._keys[node, run]


def raw(payload: np.ndarray) -> np.ndarray:
    """Numbers as little-endian bytes along the second axis."""
    flat = np.ascontiguousarray(payload.swapaxes(1, 2)).astype(payload.dtype.newbyteorder("<"), copy=False)
    return flat.view(np.uint8).swapaxes(1, 2)


class PaillierLinks(Layer):
    """Every verb as it is: it changes what crosses the wire, not what the ends read."""

    wire = Enciphered  # how the transcript's messages look there


def needs(algorithm: Any, parameters: Any, outside: Any) -> str | None:
    libraries()
    return check_key(int(parameters.key_bits), parameters.weak_keys)


register(
    Mechanism(
        name="paillier-links",
        source="Gao, Wang, Nedic 2023, Remark 7",
        start=start,
        wrap=PaillierLinks,
        needs=needs,
        needs_text="the extra [crypto]",
        parameters={
            "key_bits": at_least(256, STRONG, "length of the keys"),
            "weak_keys": Parameter(False, "allow keys below 2048 bits", lambda v: isinstance(v, bool), "true or false"),
        },
        leaks="Lengths, times and who talks to whom; the receiver reads everything; who may write can forge messages.",
        overrides=("wire",),
        floods=True,
        simulated="what it costs and hides is worked out; the links of real nodes are sealed by TLS, so leave it out",
    )
)
