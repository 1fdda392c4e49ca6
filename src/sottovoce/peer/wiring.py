"""Zenoh's configuration for one node: what it may hear and say follows from the graph, everything else is denied or off.

One access rule for each direction of an edge, bound to the common name of the certificate at the other end: an
in-neighbour is asked and may answer, an out-neighbour may ask and is answered. Without these rules whoever holds a certificate
could read everything, so a configuration is read back before it is used, and a node refuses to start where it is not as it
must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import IdentityError, NotInstalled
from . import identity as files
from .identity import Identity

ROOM = 1 << 16  # bytes beyond the longest frame that a message of the link may have
LEASE = 10_000  # milliseconds without a sign of life after which a connection counts as gone
BATCHES = 16  # pieces of a long frame (64 kB) that may wait for the wire: with Zenoh's 2, two threads wake each other for every one
THREADS = "(acc:(handover:rx),rx:(worker_threads:1))"  # one thread hears all neighbours: with Zenoh's three, each message wakes two
RETRY = {"period_init_ms": 50, "period_max_ms": 250, "period_increase_factor": 2}

# What must be so, whatever the library's defaults become: nobody is looked for, nothing is unpacked, no key but TLS's
EFFECTIVE: dict[str, Any] = {
    "mode": "peer",
    "scouting/multicast/enabled": False,
    "scouting/gossip/enabled": False,
    "transport/shared_memory/enabled": False,
    "transport/unicast/compression/enabled": False,
    "transport/multicast/compression/enabled": False,
    "transport/auth/pubkey/public_key_pem": None,
    "transport/auth/pubkey/private_key_pem": None,
    "transport/auth/pubkey/public_key_file": None,
    "transport/auth/pubkey/private_key_file": None,
    "transport/auth/pubkey/known_keys_file": None,
    "transport/link/protocols": ["tls"],
    "transport/link/tls/enable_mtls": True,
    "transport/link/tls/verify_name_on_connect": True,
    "transport/link/tls/close_link_on_expiration": True,
    "adminspace/enabled": False,
    "plugins_loading/enabled": False,
    "access_control/enabled": True,
    "access_control/default_permission": "deny",
}
WRITTEN = tuple(key for key, value in EFFECTIVE.items() if value is not None)


@dataclass(frozen=True)
class Wiring:
    """Where one node stands: its neighbours, where it listens, whom it dials."""

    me: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    listen: str | None  # host:port, or None where nobody can dial this node
    dial: tuple[str, ...]  # host:port of those that it dials

    @property
    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted({*self.ins, *self.outs}))


def key(word: str, one: str, other: str) -> str:
    """What `other` asks of `one`: the frames of the edge one -> other, or who `one` is."""
    return f"sottovoce/{word}/{one}/{other}"


def configuration(wiring: Wiring, identity: Identity, limit: int) -> Any:
    """The configuration as Zenoh holds it, read back and found right."""
    config = _zenoh().Config()
    for where, value in _settings(wiring, identity, limit).items():
        config.insert_json5(where, json.dumps(value))
    check(config, wiring)
    return config


def _settings(wiring: Wiring, identity: Identity, limit: int) -> dict[str, Any]:
    own, authority = str(identity.folder / files.CERTIFICATE), str(identity.folder / files.AUTHORITY)
    key_file = str(identity.folder / files.KEY)
    return {
        **{where: EFFECTIVE[where] for where in WRITTEN if not where.startswith(("access_control", "transport/link/tls"))},
        "listen/endpoints": [f"tls/{wiring.listen}"] if wiring.listen else [],
        "connect/endpoints": [f"tls/{address}" for address in wiring.dial],
        "connect/timeout_ms": -1,
        "connect/exit_on_failure": False,
        "connect/retry": RETRY,
        "open/return_conditions": {"connect_scouted": False, "declares": False},  # opening waits for nobody
        "transport/unicast/max_sessions": 2 * len(wiring.neighbours) + 16,
        "transport/link/tx/lease": LEASE,
        "transport/link/rx/max_message_size": limit + ROOM,
        "transport/link/tx/queue/size/data": BATCHES,
        "transport/link/tls": {
            "root_ca_certificate": authority, "enable_mtls": True, "verify_name_on_connect": True, "close_link_on_expiration": True,
            "listen_certificate": own, "listen_private_key": key_file, "connect_certificate": own, "connect_private_key": key_file,
        },
        "access_control": access(wiring),
    }  # fmt: skip


def access(wiring: Wiring) -> dict[str, Any]:
    """Default deny, and for every neighbour what it may ask me and what I may ask it."""
    rules: list[dict[str, Any]] = []
    policies = []
    for other in wiring.neighbours:
        asks = [key("hello", other, wiring.me), *([key("edge", other, wiring.me)] if other in wiring.ins else [])]
        answers = [key("hello", wiring.me, other), *([key("edge", wiring.me, other)] if other in wiring.outs else [])]
        mine = [
            _rule(f"I ask {other}", ["query"], "egress", asks),
            _rule(f"{other} answers", ["reply", "declare_queryable"], "ingress", asks),
            _rule(f"{other} asks me", ["query"], "ingress", answers),
            _rule(f"I answer {other}", ["reply", "declare_queryable"], "egress", answers),
        ]
        rules += mine
        policies.append({"rules": [rule["id"] for rule in mine], "subjects": [other]})
    subjects = [{"id": other, "cert_common_names": [other]} for other in wiring.neighbours]
    return {"enabled": True, "default_permission": "deny", "rules": rules, "subjects": subjects, "policies": policies}


def _rule(name: str, messages: Sequence[str], flow: str, keys: Iterable[str]) -> dict[str, Any]:
    return {"id": name, "messages": list(messages), "flows": [flow], "permission": "allow", "key_exprs": list(keys)}


def check(config: Any, wiring: Wiring) -> None:
    """Refuse to start unless the effective configuration is what it must be, access rules first of all."""
    found = effective(config)
    for where, wanted in EFFECTIVE.items():
        if found[where] != wanted:
            raise IdentityError(f"a node does not start with {where} = {found[where]!r}: it must be {wanted!r}")
    rules = json.loads(config.get_json("access_control"))
    wanted = access(wiring)
    same = all(_plain(rules.get(part)) == _plain(wanted[part]) for part in ("rules", "subjects", "policies"))
    if not (same and wanted["rules"]):
        raise IdentityError(
            f"a node does not start without its access rules: expected {len(wanted['rules'])} that follow from the graph, "
            f"found {len(rules.get('rules') or ())}{'' if same else ' others'}; without them any certificate reads every message"
        )


def effective(config: Any) -> dict[str, Any]:
    """Every setting that must be as `EFFECTIVE` says, as it is."""
    found = {}
    for where in EFFECTIVE:
        value = config.get_json(where)
        found[where] = None if value is None else json.loads(value)
    return found


def _plain(listed: Any) -> Any:
    """The settings that we wrote, without what the library adds as null."""
    if isinstance(listed, Mapping):
        return {name: _plain(value) for name, value in listed.items() if value is not None}
    return [_plain(one) for one in listed] if isinstance(listed, list) else listed


def _zenoh() -> Any:
    try:
        import zenoh
    except ImportError:
        raise NotInstalled("a node", "node") from None
    return zenoh
