"""Who a node is: its certificate, the key that signs the roster, and the key that it agrees on secrets with.

Both private keys lie in files that only their owner can read; a file that others can read is refused, as a key that many
know identifies nobody.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import IdentityError, InputError
from . import certificates
from .certificates import DAYS

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

ROSTER = b"sottovoce roster\0"  # before what is signed, so that a signature is good for nothing else
CERTIFICATE, KEY, EXCHANGE, AUTHORITY = "certificate.pem", "key.pem", "exchange.pem", "authority.pem"


@dataclass(frozen=True)
class Identity:
    """One node's: what it shows and, never printed, what it keeps."""

    name: str
    certificate: Certificate
    authority: Certificate
    folder: Path
    _key: Any = field(repr=False)
    _exchange: Any = field(repr=False)

    @classmethod
    def load(cls, folder: str | Path, name: str) -> Identity:
        """The identity of `name` in a folder, each of its claims checked."""
        folder = Path(folder)
        certificate = certificates.read_certificate(_read(folder / CERTIFICATE))
        authority = certificates.read_certificate(_read(folder / AUTHORITY))
        key, exchange = (certificates.read_key(_secret(folder / file)) for file in (KEY, EXCHANGE))
        certificates.check(certificate, authority, certificates.check_name(name))
        if key.public_key() != certificate.public_key():
            raise IdentityError(f"{folder / KEY} is not the key of the certificate beside it: whoever borrows one cannot use it")
        if not hasattr(exchange, "exchange") or len(_raw(exchange)) != 32:
            raise IdentityError(f"{folder / EXCHANGE} must hold an X25519 key; make one with sottovoce init")
        return cls(name, certificate, authority, folder, key, exchange)

    @property
    def fingerprint(self) -> str:
        return certificates.fingerprint(self.certificate)

    @property
    def public(self) -> str:
        """The public part of the exchange key, as the roster lists it."""
        return _raw(self._exchange).hex()

    @property
    def pem(self) -> bytes:
        """The certificate, for whoever is to check a signature."""
        return certificates.to_pem(self.certificate)

    def sign(self, message: bytes) -> bytes:
        """My signature of a roster, given as bytes."""
        hashes, _, ec = certificates.crypto()
        return self._key.sign(ROSTER + message, ec.ECDSA(hashes.SHA256()))

    @property
    def secret(self) -> bytes:
        """The private part of the exchange key, 32 bytes, for the draws that both ends of an edge know."""
        _, s, _ = certificates.crypto()
        return self._exchange.private_bytes(s.Encoding.Raw, s.PrivateFormat.Raw, s.NoEncryption())

    def __reduce__(self) -> Any:
        raise IdentityError("an identity holds private keys, and does not travel: load it where it is used")


def verify(signature: bytes, message: bytes, name: str, pem: bytes, fingerprint: str, authority: Certificate) -> None:
    """Refuse unless `name`, whose certificate the roster lists by this fingerprint, signed the message."""
    from cryptography.exceptions import InvalidSignature

    hashes, _, ec = certificates.crypto()
    certificate = certificates.read_certificate(pem)
    certificates.check(certificate, authority, name)
    if certificates.fingerprint(certificate) != fingerprint:
        raise IdentityError(f"{name} shows another certificate than the one whose fingerprint the federation lists")
    public: Any = certificate.public_key()
    try:
        public.verify(signature, ROSTER + message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise IdentityError(f"the signature of {name} is not one of this roster; both must run the same federation.toml") from None


def create(folder: str | Path, authority: certificates.Issued, name: str, hosts: tuple = (), days: int = DAYS) -> Identity:
    """Make a node's identity in its folder: a certificate, its key, an exchange key, and the authority's certificate."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    folder = Path(folder)
    issued = certificates.issue(authority, name, hosts, days)
    write(folder / CERTIFICATE, issued.certificate)
    write(folder / AUTHORITY, authority.certificate)
    write(folder / KEY, issued.key)
    write(folder / EXCHANGE, certificates.key_to_pem(X25519PrivateKey.generate()))
    return Identity.load(folder, name)


def write(file: Path, content: bytes) -> None:
    """A new file that only its owner can read, from its first byte on; one that exists is never overwritten."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{file} exists already, and keys are not overwritten; choose another folder") from None
    with open(handle, "wb") as out:
        out.write(content)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise IdentityError(f"cannot read {file}: {error.strerror}") from None


def _secret(file: Path) -> bytes:
    """A file that only its owner can read."""
    content = _read(file)
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise IdentityError(f"{file} can be read by others than its owner; say chmod 600, or better, issue a new one")
    return content


def _raw(exchange: Any) -> bytes:
    _, s, _ = certificates.crypto()
    return exchange.public_key().public_bytes(s.Encoding.Raw, s.PublicFormat.Raw)
