"""How two neighbours find out that they are who they say and have agreed on the same: each shows its signed roster.

Before a number crosses an edge, each end asks the other for the roster as the other holds it, its certificate, the nonce of its
start, how much it has of the asker's messages, and its signature of all that. A roster that differs is refused with the differing
field named, before anything else.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import IdentityError
from . import identity as identities
from .frame import Place
from .identity import Identity
from .roster import Roster
from .starts import BYTES


def greeting(roster: Roster, identity: Identity, nonce: bytes = bytes(BYTES), has: Place = (-1, 0)) -> bytes:
    """What I show to a neighbour."""
    shown = {
        "roster": roster.canonical.decode(), "certificate": identity.pem.decode(),
        "nonce": nonce.hex(), "has": has, "signature": identity.sign(_signed(roster.canonical, nonce, has)).hex(),
    }  # fmt: skip
    return json.dumps(shown).encode()


def read(shown: bytes, other: int, roster: Roster, authority: Any) -> tuple[bytes, Place]:
    """The nonce of a neighbour, and what it has of my messages; refused with a reason where anything is not as it must be."""
    name = roster.labels[other]
    theirs, pem, signature, nonce, has = _read(shown, name)
    identities.verify(signature, _signed(theirs, nonce, has), name, pem, roster.fingerprints[other], authority)
    differs = roster.difference(Roster.of(theirs))
    if differs is not None:
        raise IdentityError(f"{name} has agreed to another roster: {differs}; give both the same federation.toml")
    return nonce, has


def _signed(canonical: bytes, nonce: bytes, has: Place) -> bytes:
    return canonical + b"\0" + nonce + b"\0%d %d" % has


def _read(shown: bytes, name: str) -> tuple[bytes, bytes, bytes, bytes, Place]:
    try:
        parts = json.loads(shown)
        nonce, (k, phase) = bytes.fromhex(parts["nonce"]), map(int, parts["has"])
        if len(nonce) != BYTES:
            raise ValueError
        return parts["roster"].encode(), parts["certificate"].encode(), bytes.fromhex(parts["signature"]), nonce, (k, phase)
    except (ValueError, TypeError, KeyError, AttributeError):
        parts = "a roster, a certificate, a nonce and a signature"
        raise IdentityError(f"{name} does not show {parts}; is it the same release?") from None
