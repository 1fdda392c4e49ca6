"""A federation's own certificate authority: it issues one certificate a node, and says of any certificate why it is refused.

A node is whoever holds the key of a certificate that the federation's authority signed, with the node's name as its common
name (which the access rules of the link match) and among its alternative names, beside the hosts that peers dial. Nothing
here trusts a certificate for anything but its name: what a node may ask for is decided by the graph.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import IdentityError, NotInstalled

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # a label of a host name, also fit for a folder
DAYS = 365
EARLY = datetime.timedelta(hours=1)  # a certificate is valid from a little before it was made: clocks differ


class Issued(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def crypto() -> Any:
    """The library, or the sentence that says how to get it."""
    try:
        import cryptography.x509  # noqa: F401
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise NotInstalled("a node's certificate", "node") from None
    return hashes, serialization, ec


def check_name(name: str) -> str:
    """A node's name, which is also a host name's label, a folder and the common name of its certificate."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise IdentityError(f"a node's name has 1 to 63 letters, digits and hyphens, none of these at its ends; got {name!r}")
    return name


def new_authority(name: str, days: int = DAYS) -> Issued:
    """A new authority for one federation; its key signs certificates and is needed for nothing else."""
    from cryptography import x509

    key = new_key()
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # certificates and revocations only
    parts = [(x509.BasicConstraints(True, 0), True), (usage, True)]
    signed = _signed(f"{name} authority", f"{name} authority", key.public_key(), key, days, parts)
    return Issued(to_pem(signed), key_to_pem(key))


def issue(authority: Issued, name: str, hosts: Sequence[str] = (), days: int = DAYS) -> Issued:
    """A certificate for the node `name`, which peers dial as one of `hosts`."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID as Use

    check_name(name)
    parent, key = read_certificate(authority.certificate), new_key()
    names = [_alternative(host) for host in dict.fromkeys((name, *hosts))]
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)  # it signs handshakes and the roster
    parts = [
        (x509.BasicConstraints(False, None), True),
        (usage, True),
        (x509.ExtendedKeyUsage([Use.SERVER_AUTH, Use.CLIENT_AUTH]), False),
        (x509.SubjectAlternativeName(names), False),
    ]
    signed = _signed(name, common_name(parent), key.public_key(), read_key(authority.key), days, parts)
    return Issued(to_pem(signed), key_to_pem(key))


def _alternative(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signed(subject: str, issuer: str, public: Any, key: Any, days: int, parts: Sequence[tuple[Any, bool]]) -> Certificate:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    hashes, _, _ = crypto()
    called = lambda name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        called(issuer), called(subject), public, x509.random_serial_number(), now - EARLY, now + datetime.timedelta(days=days)
    )
    for part, critical in parts:
        builder = builder.add_extension(part, critical)
    return builder.sign(key, hashes.SHA256())


def check(certificate: Certificate, authority: Certificate, name: str, now: datetime.datetime | None = None) -> None:
    """Refuse a certificate that is not the one of `name` in this federation, and say which of its claims is wrong."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    called, now = common_name(certificate), now or datetime.datetime.now(datetime.UTC)
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise IdentityError(
            f"the certificate of {called!r} was not signed by this federation's authority; have its operator issue one"
        ) from None
    if called != name:
        raise IdentityError(f"the certificate is of {called!r}, and {name!r} was expected; give each node its own")
    if now > certificate.not_valid_after_utc:
        raise IdentityError(f"the certificate of {name} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; issue a new one")
    if now < certificate.not_valid_before_utc:
        begins = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise IdentityError(f"the certificate of {name} is valid from {begins} on, which this clock has not reached; set the clock")
    try:
        limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        limits = None
    if limits is None or limits.ca:
        raise IdentityError(f"the certificate of {name} does not say that it is a node's and no authority's; issue a new one")


def common_name(certificate: Certificate) -> str:
    """The one common name; a certificate without is refused, since access rules could not match it."""
    from cryptography.x509.oid import NameOID

    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(found) != 1:
        raise IdentityError(f"a certificate must have one common name, and this one has {len(found)}; issue a new one")
    return str(found[0].value)


def fingerprint(certificate: Certificate) -> str:
    """sha256 of the certificate, as a roster lists it."""
    hashes, _, _ = crypto()
    return "sha256:" + certificate.fingerprint(hashes.SHA256()).hex()


def new_key() -> Any:
    """A private key on P-256, which every TLS library of today can use."""
    _, _, ec = crypto()
    return ec.generate_private_key(ec.SECP256R1())


def read_certificate(pem: bytes) -> Certificate:
    """A certificate from PEM."""
    crypto()
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise IdentityError("this is no certificate in PEM; expected one that begins with -----BEGIN CERTIFICATE-----") from None


def read_key(pem: bytes) -> Any:
    """A private key from PEM; nothing of it is ever said in an error."""
    _, serialization, _ = crypto()
    try:
        return serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise IdentityError("this is no private key in PEM without a password; issue a new certificate with its key") from None


def to_pem(certificate: Certificate) -> bytes:
    _, serialization, _ = crypto()
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_to_pem(key: Any) -> bytes:
    """A private key as PEM (PKCS 8)."""
    _, s, _ = crypto()
    return key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
