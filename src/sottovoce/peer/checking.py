"""Is this node ready? Every part that could keep it from running, looked at before it runs, and what it is protected from.

Nothing here sends a number of the node's: neighbours are dialled, asked who they are, and shown nothing but the roster.
"""

from __future__ import annotations

import datetime
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..auditor.theorems import smallest_breach, standing
from ..errors import ProblemError, SottovoceError
from ..graph import Graph
from ..problem import Problem
from .dialling import PATIENCE, dialled
from .federation import HIDDEN, Federation
from .identity import Identity
from .node_file import NodeFile
from .reading import split
from .roster import Roster
from .store import read_key
from .zenoh_link import ZenohLink

SOON = 30  # days before its end when a certificate is worth a word


@dataclass(frozen=True)
class Line:
    """One thing looked at: in order, not in order (False), or only told (None)."""

    what: str
    good: bool | None
    says: str


def check(file: str | Path, patience: float = PATIENCE) -> list[Line]:
    """Every line; what cannot be looked at because something before it failed is left out."""
    lines: list[Line] = []
    look = partial(_looked, lines)
    node = look("node.toml", lambda: NodeFile.read(file), lambda found: found.name)
    federation = node and look("federation.toml", lambda: Federation.read(node.federation), _holds)
    who = node and look("certificate", lambda: Identity.load(node.identity, node.name), _validity)
    roster = federation and look("roster", lambda: federation.roster, _plays)
    listed = roster and who and look("listed", node.load, lambda _: "this certificate and exchange key; the cost can be read")
    if not (node and federation and who and roster and listed):
        return lines
    look("store key", lambda: read_key(node.key), lambda _: "only its owner can read it")
    lines.append(_clock(who))
    if node.recorded:
        says = f"on: what this node sees and draws will be in {node.transcript}, which holds secrets"
        lines.append(Line("transcript", None, says))
    lines += [_port(node), *_graph(federation, node.number(federation)), _bound(listed[2], roster)]
    return lines + list(_neighbours(node, federation, who, roster, patience))


def _looked(lines: list[Line], what: str, look: Callable[[], Any], say: Callable[[Any], str]) -> Any:
    """Look, and say what was found or why not; None where not."""
    try:
        found = look()
        lines.append(Line(what, True, say(found)))
    except SottovoceError as error:
        lines.append(Line(what, False, str(error)))
        return None
    return found


def _holds(federation: Federation) -> str:
    return f"run {federation.run}, {len(federation.names)} nodes"


def _validity(who: Identity) -> str:
    left = (who.certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)).days
    return f"{who.name}, valid for {left} more days{'; renew it soon' if left < SOON else ''}"


def _plays(roster: Roster) -> str:
    return f"{roster.algorithm}, {roster.iterations} iterations, stepsize {roster.stepsize}; digest {roster.digest.hex()[:16]}"


def _clock(who: Identity) -> Line:
    """A clock that is off shows in certificates that are not valid yet, or not any more."""
    now = datetime.datetime.now(datetime.UTC)
    early, late = who.authority.not_valid_before_utc, who.authority.not_valid_after_utc
    good = early <= now <= late
    where = "within" if good else "OUTSIDE"
    return Line("clock", good, f"{now:%Y-%m-%d %H:%M} UTC, {where} the authority's {early:%Y-%m-%d} to {late:%Y-%m-%d}")


def _port(node: NodeFile) -> Line:
    if not node.listen:
        return Line("port", None, "nobody dials this node; it dials its neighbours")
    host, port = split(node.listen)
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        return Line("port", None, f"{node.listen} is in use ({error.strerror}): this node runs already, or another program does")
    return Line("port", True, f"{node.listen} is free")


def _graph(federation: Federation, me: int) -> Iterator[Line]:
    """Strongly connected, and what the paper's theorems say of this node against each other one."""
    pair = federation.graph.no_path()
    if pair is not None:
        yield Line("graph", False, f"not strongly connected: {pair[0]} cannot reach {pair[1]}")
        return
    yield Line("graph", True, f"strongly connected, {federation.graph.n} nodes, {len(federation.graph.edges)} edges")
    for row in theorems(federation, me):
        yield Line(f"theorem {row['theorem']}", None, f"against {row['against']}: {row['condition']}; {row['says']}")
    breach = ", ".join(federation.names[j] for j in sorted(smallest_breach(federation.graph, me)))
    yield Line("coalition", None, f"{breach} together would expose this node's gradient: all its neighbours")


def theorems(federation: Federation, me: int) -> list[dict[str, Any]]:
    """Which theorem of the paper covers a node against each single other one; equal lines are told once."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    numbered = all(name == f"node-{i}" for i, name in enumerate(federation.names))
    graph = Graph(federation.graph.n, federation.graph.edges) if numbered else federation.graph  # for "node 3", not "node node-3"
    for j in range(graph.n):
        if j != me:
            where = standing(graph, me, {j})
            found.setdefault((where.theorem, where.condition, where.protected), []).append(federation.names[j])
    covered = {True: "a constant shift of the gradient is covered, nothing else", False: "nothing is covered"}
    return [
        {"node": federation.names[me], "theorem": theorem, "against": ", ".join(others), "condition": condition,
         "protected": protected, "says": covered[protected]}
        for (theorem, condition, protected), others in found.items()
    ]  # fmt: skip


def _bound(cost: Problem, roster: Roster) -> Line:
    """The most that my own cost could bear; the others' costs and the graph may need far less."""
    try:
        curvature = float(cost.smoothness[0])
    except ProblemError as error:
        return Line("stepsize", None, f"no bound from this cost alone ({error})")
    if not curvature > 0:
        return Line("stepsize", None, "this cost has no curvature, so it bounds nothing")
    largest, steps = 2 / curvature, roster.stepsize if isinstance(roster.stepsize, tuple) else (roster.stepsize,)
    good = max(steps) < largest
    says = f"{max(steps):.4g} agreed; this cost alone would bear less than {largest:.4g}"
    return Line("stepsize", good, f"{says}, which is no guarantee: the graph and the others' costs may need far less")


def _neighbours(node: NodeFile, federation: Federation, who: Identity, roster: Roster, patience: float) -> Iterator[Line]:
    """Dial each neighbour, look at its certificate, then let both show their rosters."""
    wires = federation.wiring(node.name, None)
    members = {member.name: member for member in federation.members}
    reached = []
    for name in wires.neighbours:
        if members[name].address == HIDDEN:
            yield Line(name, None, "hidden: it dials this node, and cannot be looked at from here")
            continue
        why = dialled(who, members[name].address, name, members[name].fingerprint, patience)
        yield Line(name, why is None, why or f"reachable at {members[name].address}, with the certificate that is listed")
        reached += [name] if why is None else []
    if reached:
        dial = tuple(members[name].address for name in reached)
        yield from _greeted(ZenohLink(roster, who, replace(wires, listen=None, dial=dial), edges=False), reached, roster, patience)


class _Quiet:
    """What a link calls, where only greetings matter."""

    def asked(self, *_: Any) -> None: ...

    came = ended = refused = asked

    def met(self, *_: Any) -> None:
        """Nobody is refused for what it says of its run."""


def _greeted(link: ZenohLink, names: list[str], roster: Roster, patience: float) -> Iterator[Line]:
    numbers = [roster.labels.index(name) for name in names]
    link.open(_Quiet())  # type: ignore[arg-type]
    try:
        until = time.monotonic() + patience
        while time.monotonic() < until and not all(other in link.greeted or other in link.strangers for other in numbers):
            time.sleep(0.02)
    finally:
        link.close()
    for name, other in zip(names, numbers, strict=True):
        if other in link.greeted:
            yield Line(f"{name}'s roster", True, "the same, signed by it")
        else:
            yield Line(f"{name}'s roster", False, link.strangers.get(other) or "it did not say; is it the same release?")
