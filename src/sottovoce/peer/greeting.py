"""How two neighbours find out that they are who they say and have agreed on the same: each shows its signed roster.

Before a number crosses an edge, each end asks the other for three things: the roster as the other holds it, its certificate,
and its signature of that roster. A roster that differs is refused with the differing field named, before anything else.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import IdentityError, SottovoceError
from . import identity as identities
from .identity import Identity
from .roster import Roster


def greeting(roster: Roster, identity: Identity) -> bytes:
    """What I show to every neighbour."""
    shown = {
        "roster": roster.canonical.decode(), "certificate": identity.pem.decode(),
        "signature": identity.sign(roster.canonical).hex(),
    }  # fmt: skip
    return json.dumps(shown).encode()


def trouble(shown: bytes, other: int, roster: Roster, authority: Any) -> str | None:
    """Why this neighbour is refused, in words; None where all is as it must be."""
    name = roster.labels[other]
    try:
        theirs, pem, signature = _read(shown, name)
        identities.verify(signature, theirs, name, pem, roster.fingerprints[other], authority)
        differs = roster.difference(Roster.of(theirs))
    except SottovoceError as error:
        return str(error)
    return None if differs is None else f"{name} has agreed to another roster: {differs}; give both the same federation.toml"


def _read(shown: bytes, name: str) -> tuple[bytes, bytes, bytes]:
    try:
        parts = json.loads(shown)
        return parts["roster"].encode(), parts["certificate"].encode(), bytes.fromhex(parts["signature"])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise IdentityError(f"{name} does not show a roster, a certificate and a signature; is it the same release?") from None
