"""A new federation in a folder: what all share, a folder a node, and the authority's key apart from both.

    FOLDER/federation.toml               the same for all, public
    FOLDER/node-0/node.toml              what this machine needs; its certificate, its keys and its data beside it
    FOLDER/authority/                    issues certificates; belongs on none of the nodes' machines

All is checked before anything is written: the method runs on this graph, the stepsize is a number, every node can be reached.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import GraphError, InputError, ParameterError
from ..graph import Graph
from ..registry import Applied, algorithm
from ..run import ITERATIONS, usual
from ..sequence import GraphSequence
from ..tables import toml
from . import certificates, identity
from .costs import cost
from .federation import FILE, HIDDEN, Federation, Member
from .handing_out import Share, shares
from .plan import planned
from .reading import split
from .store import new_key

PORT = 7440
REHEARSED = 64  # masks that a stepsize is tried on
AUTHORITY, RESULT = "authority", "result"  # folders
UNASSIGNED = 15_000, 32_000  # below the ports that systems give to connections that go out
OWN_COST = "own"  # in place of a ready problem's name
LOCAL = ("127.0.0.1", "localhost", "::1")
CHOSEN = """# This node's own. Its name, certificate and keys say who it is; [cost] is its secret and is never sent.
"""
OWN = """
[cost]  # to be filled in by this node's operator; one of:
# kind = "logistic", csv = "records.csv", target = "y", positive = "yes", features = ["a", "b"], intercept = true, l2 = 0.1
# kind = "least-squares", csv = "records.csv", target = "y", features = ["a", "b"]
# kind = "rendezvous", point = [0.0, 0.0]
# kind = "python", entry = "module:function"    # function(x) gives the gradient
"""


@dataclass(frozen=True)
class Plan:
    """What a federation is to be; `problem` is a ready one by name, or "own:d=3", and then each node fills in its cost."""

    graphs: tuple[Graph, ...]
    algorithm: str
    parameters: Mapping[str, Any]
    problem: str = "estimation"
    mechanisms: tuple[Applied, ...] = ()
    stepsize: Any = "auto"
    iterations: int | None = None  # 1000, or as many as the method takes
    tolerance: float | None = None
    hosts: Mapping[str, str] | None = None  # addresses by name; the others are on this machine
    port: int = PORT  # the first one on this machine; 0 takes free ones
    days: int = certificates.DAYS
    transcript: bool = False  # every node keeps what it sees and draws


def found(folder: str | Path, plan: Plan) -> tuple[Federation, str | None]:
    """Write it all; gives the federation, and what the adviser said of the stepsize."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already; a federation begins in a new folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.absolute().parent}, where {folder.name} should go; make it first")
    _check_schedule(plan)
    names = _names(_called(plan))
    addresses = _addresses(names, plan)
    own, d = _shares(plan, len(names))
    stepsize, advice = _stepsize(plan, own, d)
    draft = Federation(
        run=os.urandom(8).hex(), algorithm=algorithm(plan.algorithm).name, d=d, stepsize=stepsize,
        iterations=usual(algorithm(plan.algorithm), plan.iterations, ITERATIONS),
        members=tuple(Member(n, a, f"sha256:{i}", f"{i}") for i, (n, a) in enumerate(zip(names, addresses, strict=True))),
        graphs=tuple(graph.edges for graph in plan.graphs), public=os.urandom(8).hex(), tolerance=plan.tolerance,
        parameters={k: v for k, v in plan.parameters.items() if v is not None},
        mechanisms=tuple({"name": a.mechanism.name, **dict(a.parameters)} for a in plan.mechanisms),
    )  # fmt: skip
    _check_playable(draft, own)
    return _written(folder, draft, own, plan), advice


def _check_playable(draft: Federation, own: list[Share] | None) -> None:
    """Whatever the nodes would refuse when they start is refused before anything is written."""
    roster = draft.roster
    for name in draft.names:
        draft.wiring(name, None)
    if own is not None:
        with _Temporary(own[:1]) as (folder,):
            planned(roster, cost(own[0].table, folder, draft.d))


def _check_schedule(plan: Plan) -> None:
    """Rows for graphs that change: which graph comes when must be known to all beforehand."""
    method, several = algorithm(plan.algorithm), len(plan.graphs) > 1
    if method.name == "asyn-dgm":
        raise GraphError(
            "asyn-dgm's links are up or down at random, and nodes on their own cannot agree on that; with a public schedule of "
            "graphs (--graph several times) diging-tv, ab-tv and push-diging run"
        )
    if method.name == "diging-tv" and not several:
        raise GraphError("diging-tv is for graphs that change: give its schedule, --graph once for each graph, or take diging")
    if several and method.graphs != "sequence":
        raise GraphError(f"{method.name} runs on one graph; a schedule of several is for diging-tv, ab-tv and push-diging")


def _called(plan: Plan) -> Graph:
    """The first graph, its nodes called as the problem's sites are where they have no names and these can be folders: records must
    not go to a wrong one."""
    from ..problems.catalogue import build
    from ..simulate.checks import named

    if plan.problem.partition(":")[0] == OWN_COST:
        return plan.graphs[0]
    graph = named(plan.graphs[0], build(plan.problem))
    return graph if all(certificates.NAME.fullmatch(str(label)) for label in graph.labels) else plan.graphs[0]


def _names(graph: Graph) -> list[str]:
    """Each node's name: a folder of its own, on disks too that take North and north for one."""
    names, known = [_name(label) for label in graph.labels], {AUTHORITY: "the folder of the authority's key"}
    for name in names:
        other = known.setdefault(name.casefold(), name)
        if other is not name:
            raise ParameterError(f"a node cannot be named {name!r} beside {other}: names are folders; choose another name")
    return names


def _name(label: Any) -> str:
    return f"node-{label}" if isinstance(label, int) else certificates.check_name(str(label))


def _addresses(names: Sequence[str], plan: Plan) -> list[str]:
    """Where each is dialled: as given, else a port of this machine."""
    given = dict(plan.hosts or {})
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(f"--host names {unknown[0]!r}, but the nodes are {', '.join(names)}")
    ports = iter(free_ports(len(names)) if plan.port == 0 else range(plan.port, plan.port + len(names)))
    found = [given.get(name) or f"{LOCAL[0]}:{next(ports)}" for name in names]
    for address in found:
        if address != HIDDEN:
            split(address)
    visible = [address for address in found if address != HIDDEN]
    if len(set(visible)) < len(visible):
        raise ParameterError("two nodes have the same address; each needs a host and port of its own")
    return found


def free_ports(many: int) -> list[int]:
    """Ports of this machine that nobody uses at the moment, and that it will not give to a connection that goes out either."""
    ports: set[int] = set()
    while len(ports) < many:
        port = UNASSIGNED[0] + secrets.randbelow(UNASSIGNED[1] - UNASSIGNED[0])
        with suppress(OSError):
            socket.create_server((LOCAL[0], port)).close()
            ports.add(port)
    return list(ports)


def _shares(plan: Plan, n: int) -> tuple[list[Share] | None, int]:
    """Each node's share of a ready problem, and d; None where every node brings its own cost."""
    name, _, rest = plan.problem.partition(":")
    if name == OWN_COST:
        key, _, value = rest.partition("=")
        if key != "d" or not value.isdigit() or int(value) < 1:
            raise ParameterError(f'a problem of one\'s own says how many numbers x has: "own:d=3", not {plan.problem!r}')
        return None, int(value)
    own = shares(plan.problem, n)
    return own, own[0].d


def _stepsize(plan: Plan, own: list[Share] | None, d: int) -> tuple[Any, str | None]:
    """A number to agree on: as given, or for a ready problem, whose costs are all here, advised."""
    if plan.stepsize != "auto":
        return plan.stepsize, None
    if own is None:
        raise ParameterError("no stepsize can be advised for costs that are not here; agree on one and give it: --stepsize 0.05")
    from ..problem_joint import joint
    from ..stepsize import stepsize

    with _Temporary(own) as folders:
        problem = joint([cost(share.table, folder, d) for share, folder in zip(own, folders, strict=True)])
    graph = plan.graphs[0] if len(plan.graphs) == 1 else GraphSequence(plan.graphs)
    unlabelled = Graph(graph.n, graph.edges) if isinstance(graph, Graph) else graph
    masks = any("gradient" in applied.mechanism.overrides for applied in plan.mechanisms)
    runs = REHEARSED if masks else 1
    advice = stepsize(plan.algorithm, problem, unlabelled, mechanisms=plan.mechanisms, runs=runs, **plan.parameters)
    if masks:  # the nodes' masks are not drawn yet, and nobody will ever see all of them
        return float(f"{advice.good / 2:.3g}"), f"half of {advice}, the steepest of {runs} draws of masks like the nodes' own"
    return float(f"{advice.good:.3g}"), str(advice)


class _Temporary:
    """The shares written where nobody else sees them, for as long as they are looked at."""

    def __init__(self, own: list[Share]):
        import tempfile

        self.own, self.folder = own, tempfile.TemporaryDirectory()

    def __enter__(self) -> list[Path]:
        folders = [Path(self.folder.name) / str(i) for i in range(len(self.own))]
        for share, folder in zip(self.own, folders, strict=True):
            folder.mkdir()
            share.write(folder)
        return folders

    def __exit__(self, *_: Any) -> None:
        self.folder.cleanup()


def _written(folder: Path, draft: Federation, own: list[Share] | None, plan: Plan) -> Federation:
    """The folders, the certificates, and last of all federation.toml: it is there when all is."""
    issuer = certificates.new_authority("sottovoce", plan.days)
    places = [folder / name for name in draft.names]
    for path in (folder, folder / AUTHORITY, *places, *(place / RESULT for place in places)):
        path.mkdir(mode=0o700, exist_ok=True)
    identity.write(folder / AUTHORITY / identity.KEY, issuer.key)
    identity.write(folder / AUTHORITY / identity.CERTIFICATE, issuer.certificate)
    members = []
    for i, member in enumerate(draft.members):
        place, hosts = folder / member.name, () if member.address == HIDDEN else (split(member.address)[0],)
        who = identity.create(place, issuer, member.name, hosts, plan.days)
        identity.write(place / "store.key", new_key().encode())
        identity.write(place / "node.toml", _node_file(member, None if own is None else own[i], plan.transcript).encode())
        if own is not None:
            own[i].write(place)
        members.append(replace(member, fingerprint=who.fingerprint, key=who.public))
    federation = replace(draft, members=tuple(members))
    federation.write(folder / FILE)
    return federation


def _node_file(member: Member, share: Share | None, recorded: bool) -> str:
    facts: dict[str, Any] = {"name": member.name, "federation": f"../{FILE}"}
    if member.address != HIDDEN:
        host, port = split(member.address)
        facts["listen"] = f"{host if host in LOCAL else '0.0.0.0'}:{port}"
    facts |= {"store": "store", "key": "store.key", "keep": "disk", "result": RESULT, "transcript": "on" if recorded else "off"}
    return CHOSEN + toml(facts) + (OWN if share is None else "\n" + toml({"cost": share.table}).lstrip())
