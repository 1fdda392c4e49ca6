"""Paillier's cipher (Eurocrypt 1999) on arrays of integers, by the library `phe` with GMP: it adds and multiplies what is inside.

    N = p q,   E(m; r) = (1 + N)^m r^N mod N^2,   E(a) E(b) = E(a + b),   E(a)^c = E(c a)

Keys and ciphertexts are uint8 arrays (node or edge, bytes, run), big-endian, of fixed length: N takes bits / 8, a ciphertext
bits / 4. All randomness comes in as uniform 64-bit words, which the caller draws from its node: a simulation can be repeated, a
deployment is as secret as its operating system. A prime is the next one after bits / 2 drawn bits, the two highest set (as phe does
it: primes behind a gap are a little likelier, less than a bit in all); r has 128 bits more than N, so it is uniform to 2^-128.

What is checked: a ciphertext lies below N^2 and is coprime to N; what comes out lies within the range that the caller states.
Another key, a flipped byte or a ciphertext from elsewhere gives a number that is as good as uniform mod N, which passes by luck
alone (2^-64 at the most, `check_range`). What is not: anybody may multiply what is inside by a small number or add one to it, for
that is what the cipher is for. Against those who could touch a message on its way, seal the link as well.
phe does not compute in constant time: do not let others measure how long a decryption takes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import NotInstalled, RunError
from .fixed import signed

STRONG = 2048  # bits from which a key is not called weak (NIST SP 800-57: 112 bits of strength)
SLACK = 64  # bits between what may come out and N: a ciphertext of another key passes the check with odds of 2^-SLACK
Key = bytes
Where = Callable[[int], str]  # a row in words, for a refusal


def libraries() -> tuple[Any, Any]:
    """phe's module and GMP, or the command that installs them; without GMP phe would be many times slower."""
    try:
        import gmpy2
        from phe import paillier
    except ImportError:
        raise NotInstalled("Paillier's cipher", "crypto") from None
    return paillier, gmpy2


def check_key(bits: Any, weak: bool) -> str | None:
    """A reason to refuse a length of keys, or None."""
    if bits % 128 or bits < 256:
        return f"key_bits must be a multiple of 128, at least 256, not {bits}"
    if bits < STRONG and not weak:
        return f"keys of {bits} bits can be broken; take {STRONG} or more, or say weak_keys=True where nothing is at stake (a test)"
    return None


def check_range(bits: int, largest: int) -> str | None:
    """A reason to refuse numbers of up to this size inside keys of so many bits, or None."""
    room = bits - 2 - SLACK - int(largest).bit_length()
    if room < 0:
        return f"keys of {bits} bits lack {-room} bits for this range; take fewer fraction_bits, a smaller largest or longer keys"
    return None


@dataclass(frozen=True)
class Paillier:
    """The cipher with keys of so many bits."""

    bits: int = STRONG

    @property
    def key_bytes(self) -> int:
        return self.bits // 8

    @property
    def cipher_bytes(self) -> int:
        return self.bits // 4

    @property
    def key_words(self) -> int:
        """Drawn words that a pair of keys takes."""
        return self.bits // 64

    @property
    def cipher_words(self) -> int:
        """Drawn words that an encryption takes."""
        return self.bits // 64 + 2

    # one message ---------------------------------------------------------------------------------------------------

    def pair(self, words: np.ndarray) -> tuple[Key, Key]:
        """(public: N, private: p and q) from drawn words."""
        half, primes, (_, gmp) = self.bits // 2, [], libraries()
        for part in np.split(words, 2):
            drawn = number(little(part)) | 3 << half - 2
            primes.append(int(gmp.next_prime(drawn)))
        if primes[0] == primes[1] or max(primes).bit_length() > half:
            raise RunError("the drawn words gave no pair of keys, which honest randomness never does; check where they came from")
        as_bytes = b"".join(p.to_bytes(half // 8, "big") for p in primes)
        return (primes[0] * primes[1]).to_bytes(self.key_bytes, "big"), as_bytes

    def public(self, key: Key) -> Any:
        """phe's public key, refused where the bytes are none."""
        found = number(key)
        if found.bit_length() != self.bits or found % 2 == 0:
            raise RunError(f"expected a public key of {self.bits} bits, got one of {found.bit_length()}: it was altered")
        return libraries()[0].PaillierPublicKey(found)

    def private(self, key: Key) -> Any:
        """phe's private key."""
        p, q = number(key[: len(key) // 2]), number(key[len(key) // 2 :])
        phe, _ = libraries()
        return phe.PaillierPrivateKey(phe.PaillierPublicKey(p * q), p, q)

    def encrypt(self, public: Any, m: int, words: np.ndarray) -> int:
        """E(m; r), r from drawn words."""
        r = number(little(words)) % (public.n - 1) + 1
        return public.raw_encrypt(m % public.n, r_value=r)

    def decrypt(self, private: Any, cipher: int, largest: int) -> int:
        """What is inside, refused where the ciphertext is none or holds what nobody would have put there."""
        n = private.public_key.n
        check_cipher(cipher, n)
        m = signed(private.raw_decrypt(cipher), n)
        if abs(m) > largest:
            raise RunError("a ciphertext was altered, or is for another key: what it holds is out of all range")
        return m

    # arrays --------------------------------------------------------------------------------------------------------

    def keys(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Public and private keys from words (node, key_words, run)."""
        pairs = rowwise(lambda _, drawn: b"".join(self.pair(drawn)), words)
        return pairs[:, : self.key_bytes], pairs[:, self.key_bytes :]

    def encrypted(self, keys: np.ndarray, integers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Integers (row, coordinate, run), a key a row, words (row, coordinates times cipher_words, run) -> ciphertexts."""

        def one(_: int, key: np.ndarray, numbers: np.ndarray, drawn: np.ndarray) -> bytes:
            public, parts = self.public(key.tobytes()), drawn.reshape(len(numbers), -1)
            return self._joined(self.encrypt(public, int(m), w) for m, w in zip(numbers, parts, strict=True))

        return rowwise(one, keys, integers, words)

    def combined(
        self, keys: np.ndarray, ciphers: np.ndarray, factors: np.ndarray, added: np.ndarray, words: np.ndarray, where: Where
    ) -> np.ndarray:
        """E(factor m + added) from E(m), with fresh randomness: what it was made of does not show. One factor a row."""
        gmp = libraries()[1]

        def one(row: int, key: np.ndarray, raw: np.ndarray, factor: np.ndarray, numbers: np.ndarray, drawn: np.ndarray) -> bytes:
            public, parts, found = self.public(key.tobytes()), drawn.reshape(len(numbers), -1), []
            for c, m, w in zip(self._split(raw), numbers, parts, strict=True):
                with named(where(row)):
                    check_cipher(c, public.n)
                raised = gmp.powmod(c, int(factor[0]), public.nsquare)
                found.append(int(raised * self.encrypt(public, int(m), w) % public.nsquare))
            return self._joined(found)

        return rowwise(one, keys, ciphers, factors, added, words)

    def decrypted(self, keys: np.ndarray, ciphers: np.ndarray, largest: int, where: Where) -> np.ndarray:
        """Python integers (row, coordinate, run); a key a row. `where` names a row in a refusal."""
        rows, length, runs = ciphers.shape
        out = np.empty((rows, length // self.cipher_bytes, runs), object)
        known: dict[bytes, Any] = {}
        for row, run in np.ndindex(rows, runs):
            key = keys[row, :, run].tobytes()
            private = known[key] = known.get(key) or self.private(key)
            with named(where(row)):
                out[row, :, run] = [self.decrypt(private, c, largest) for c in self._split(ciphers[row, :, run])]
        return out

    def _joined(self, ciphers: Any) -> bytes:
        return b"".join(c.to_bytes(self.cipher_bytes, "big") for c in ciphers)

    def _split(self, raw: np.ndarray) -> list[int]:
        return [number(part.tobytes()) for part in raw.reshape(-1, self.cipher_bytes)]


def check_cipher(cipher: int, n: int) -> None:
    """Is it a ciphertext of this key at all?"""
    if not 0 < cipher < n * n or math.gcd(cipher, n) != 1:
        raise RunError("a ciphertext was altered, or is for another key: it is no number that this key encrypts to")


@contextlib.contextmanager
def named(where: str) -> Iterator[None]:
    """A refusal says where it happened."""
    try:
        yield
    except RunError as error:
        raise RunError(f"{where}: {error}") from None


def number(raw: bytes) -> int:
    """Bytes, the highest first."""
    return int.from_bytes(raw, "big")


def little(words: np.ndarray) -> bytes:
    """Words as bytes, the same on every machine."""
    return words.astype("<u8", copy=False).tobytes()


def rowwise(f: Callable[..., bytes], *arrays: np.ndarray) -> np.ndarray:
    """f on each row and run: the row's number and slices along the second axis in, bytes out, uint8 (row, bytes, run)."""
    rows, runs = len(arrays[0]), max(a.shape[2] for a in arrays)
    slices = lambda row, run: (np.ascontiguousarray(a[row, :, run if a.shape[2] > 1 else 0]) for a in arrays)
    found = [np.frombuffer(f(row, *slices(row, run)), np.uint8) for row, run in np.ndindex(rows, runs)]
    return np.stack(found).reshape(rows, runs, -1).swapaxes(1, 2)
