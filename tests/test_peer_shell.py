"""Real nodes: who they are, what passes between them, and that a run of theirs is the one that was rehearsed."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import json
import os
import pickle
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.draws import WORDS, CounterDraws, Stream
from sottovoce.errors import IdentityError, InputError, SottovoceError, StoreError

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

import zenoh

from sottovoce.peer import certificates, greeting, identity, wiring
from sottovoce.peer.checking import check
from sottovoce.peer.costs import cost
from sottovoce.peer.crew import Crew
from sottovoce.peer.federation import Federation
from sottovoce.peer.identity import Identity
from sottovoce.peer.node import Node
from sottovoce.peer.node_file import NodeFile
from sottovoce.peer.rehearsal import rehearse, whole
from sottovoce.peer.status import Log, Status
from sottovoce.peer.store import Store
from sottovoce.tables import toml

ROOT = Path(__file__).parents[1]
nodes = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("nodes.py"))))
Member, Proxy, federation, until = nodes.Member, nodes.Proxy, nodes.federation, nodes.until


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A federation of three in a cycle, for whoever only looks."""
    folder = tmp_path_factory.mktemp("fed") / "three"
    federation(folder)
    return folder


# who is who ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def issuer():
    return certificates.new_authority("ours")


def refusal(issued, authority, name, now=None):
    read = certificates.read_certificate
    with pytest.raises(IdentityError) as caught:
        certificates.check(read(issued.certificate), read(authority.certificate), name, now)
    return str(caught.value)


def test_a_certificate_is_refused_for_what_is_wrong_with_it(issuer):
    good, foreign = certificates.issue(issuer, "a"), certificates.issue(certificates.new_authority("theirs"), "a")
    read, year = certificates.read_certificate, datetime.timedelta(days=366)
    certificates.check(read(good.certificate), read(issuer.certificate), "a")
    now = datetime.datetime.now(datetime.UTC)
    assert "was not signed by this federation's authority" in refusal(foreign, issuer, "a")
    assert "expired on" in refusal(good, issuer, "a", now + year)
    assert "set the clock" in refusal(good, issuer, "a", now - year)
    assert "is of 'a', and 'b' was expected" in refusal(good, issuer, "b")
    twin = certificates.new_authority("ours")  # the same names, other keys
    assert "was not signed" in refusal(certificates.issue(twin, "a"), issuer, "a")
    assert "no authority's" in refusal(issuer, issuer, "ours authority")


def test_a_certificate_without_a_common_name_is_refused(issuer):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key, now = certificates.new_key(), datetime.datetime.now(datetime.UTC)
    nameless = x509.CertificateBuilder(
        x509.Name([]), x509.Name([]), key.public_key(), 1, now, now + datetime.timedelta(days=1)
    ).sign(key, hashes.SHA256())  # fmt: skip
    with pytest.raises(IdentityError, match="one common name"):
        certificates.check(nameless, certificates.read_certificate(issuer.certificate), "a")


def test_a_borrowed_certificate_and_a_key_that_many_can_read_are_refused(tmp_path, issuer):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        identity.create(tmp_path / name, issuer, name)
    borrowed = tmp_path / "a" / identity.CERTIFICATE
    borrowed.write_bytes((tmp_path / "b" / identity.CERTIFICATE).read_bytes())
    with pytest.raises(IdentityError, match="is not the key of the certificate"):
        Identity.load(tmp_path / "a", "b")
    with pytest.raises(IdentityError, match="'a' was expected"):
        Identity.load(tmp_path / "a", "a")
    (tmp_path / "b" / identity.KEY).chmod(0o644)
    with pytest.raises(IdentityError, match="can be read by others"):
        Identity.load(tmp_path / "b", "b")
    with pytest.raises(InputError, match="not overwritten"):
        identity.create(tmp_path / "b", issuer, "b")


def test_keys_are_their_owners_alone_and_the_authoritys_lies_apart(three):
    secret = [*three.glob("node-*/*key*"), *three.glob("node-*/exchange.pem"), three / "authority" / identity.KEY]
    assert len(secret) == 3 * 3 + 1
    kept = [*three.glob("*/certificate.pem"), *three.glob("node-*/authority.pem"), *three.glob("node-*/node.toml")]
    assert len(kept) == 3 * 3 + 1
    assert {file.stat().st_mode & 0o777 for file in secret + kept} == {0o600}
    assert {folder.stat().st_mode & 0o777 for folder in three.glob("node-*/result")} == {0o700}
    assert not list(three.glob("node-*/authority.key"))
    who = Identity.load(three / "node-0", "node-0")
    assert who.secret.hex() not in repr(who)
    with pytest.raises(IdentityError, match="does not travel"):
        pickle.dumps(who)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a*", "-a", "a" * 64, "ä"])
def test_names_are_fit_for_a_host_a_folder_and_a_key(name):
    with pytest.raises(IdentityError, match="1 to 63 letters"):
        certificates.check_name(name)


def greeting_of(folder, name, **changed):
    found, who, _ = NodeFile.read(folder / name).load()
    return greeting.greeting(replace(found.roster, **changed), who), found.roster, who


def test_a_roster_that_differs_is_refused_with_the_field_named(three):
    shown, roster, who = greeting_of(three, "node-1")

    def trouble(*given):
        with pytest.raises(IdentityError) as refused:
            greeting.read(*given)
        return str(refused.value)

    assert greeting.read(shown, 1, roster, who.authority) == (bytes(32), (-1, 0))
    other, *_ = greeting_of(three, "node-1", stepsize=0.06)
    assert "stepsize: 0.05 here, 0.06 there" in trouble(other, 1, roster, who.authority)
    assert "of 'node-1'" in trouble(shown, 2, roster, who.authority)
    for said in ({"nonce": "01" * 32}, {"has": [3, 0]}):
        facts = {**json.loads(shown), **said}
        assert "signature of node-1" in trouble(json.dumps(facts).encode(), 1, roster, who.authority)
    facts = json.loads(shown)
    facts["signature"] = facts["signature"][:-2] + "00"
    assert "signature of node-1" in trouble(json.dumps(facts).encode(), 1, roster, who.authority)
    assert "does not show" in trouble(b"\xff{", 1, roster, who.authority)
    reissued = replace(roster, fingerprints=("x", "y", "z"))
    assert "another certificate" in trouble(shown, 1, reissued, who.authority)


# what Zenoh is told --------------------------------------------------------------------------------------------------


def wires(three, name="node-0"):
    found, who, _ = NodeFile.read(three / name).load()
    return found.wiring(name, "127.0.0.1:1"), who


def test_the_effective_configuration_is_what_it_must_be(three):
    mine, who = wires(three)
    config = wiring.configuration(mine, who, 1000)
    assert wiring.effective(config) == wiring.EFFECTIVE
    assert json.loads(config.get_json("transport/link/rx/max_message_size")) == 1000 + wiring.ROOM
    rules = json.loads(config.get_json("access_control/rules"))
    keys = {key for rule in rules for key in rule["key_exprs"]}  # node-0 hears node-2 and tells node-1
    edges = {"sottovoce/edge/node-2/node-0", "sottovoce/edge/node-0/node-1"}
    assert {key for key in keys if "/edge/" in key} == edges
    assert {message for rule in rules for message in rule["messages"]} == {"query", "reply", "declare_queryable"}


BAD_SETTINGS = {
    "scouting/multicast/enabled": "true", "scouting/gossip/enabled": "true", "transport/shared_memory/enabled": "true",
    "transport/unicast/compression/enabled": "true", "transport/auth/pubkey/known_keys_file": '"keys"',
    "transport/link/tls/enable_mtls": "false", "access_control/enabled": "false", "access_control/default_permission": '"allow"',
    "access_control/rules": "[]", "access_control/policies": "[]", "transport/link/protocols": '["tcp", "tls"]',
}  # fmt: skip


@pytest.mark.parametrize("setting", BAD_SETTINGS)
def test_a_node_does_not_start_where_a_setting_is_wrong_or_its_access_rules_are_missing(three, setting):
    mine, who = wires(three)
    config = wiring.configuration(mine, who, 1000)
    if setting == "access_control/rules":
        config.insert_json5("access_control/policies", "[]")
    config.insert_json5(setting, BAD_SETTINGS[setting])
    with pytest.raises(IdentityError, match="does not start with"):
        wiring.check(config, mine)


def test_nothing_is_ever_published():
    import ast

    for file in (ROOT / "src/sottovoce/peer").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith(("declare_publisher", "declare_subscriber", "liveliness")), file
                assert not (node.attr in ("put", "delete") and "session" in ast.unparse(node.value)), file


# spies, forgers, wire-taps -------------------------------------------------------------------------------------------

MARKER = b"MARKED: who reads this has read a secret"


class Plain:
    """A handler that answers every question with the marker, and keeps what comes."""

    def __init__(self):
        self.frames, self.questions, self.why = [], 0, []

    def asked(self, receiver, question):
        self.questions += 1
        self.link.answer(receiver, MARKER, False)

    def came(self, sender, frame):
        self.frames.append(frame)

    def ended(self, sender, question): ...

    def told(self, other):
        return bytes(32), (-1, 0)

    def met(self, other, nonce, has): ...

    def refused(self, other, reason):
        self.why.append(reason)


OPEN: list = []


@pytest.fixture(autouse=True)
def nobody_is_left_open():
    yield
    while OPEN:
        OPEN.pop().close()


def opened(folder, name, change=lambda link: None):
    member = Member(folder, name, None, change)
    handler = Plain()
    handler.link = member.link
    member.link.open(handler)
    OPEN.append(member.link)
    return member.link, handler


def without_rules(link):
    link.config.insert_json5("access_control", '{"enabled": false, "default_permission": "allow"}')


def spied(folder, change, tries):
    """What node-2, with its own good certificate and no rules, reads and forges of the edge from node-0 to node-1, in so many
    tries at most."""
    listener, teller = opened(folder, "node-1", change), opened(folder, "node-0", change)
    found, who, _ = NodeFile.read(folder / "node-2").load()
    mine = replace(found.wiring("node-2", None), dial=tuple(member.address for member in found.members[:2]))
    config = wiring.configuration(mine, who, 1000)
    config.insert_json5("access_control", '{"enabled": false, "default_permission": "allow"}')
    read = []
    assert until(lambda: {0, 1} <= {*listener[0].greeted, *teller[0].greeted})
    with zenoh.open(config) as spy:
        heard = spy.declare_subscriber("**", lambda sample: read.append(sample.payload.to_bytes()))
        faked = spy.declare_queryable("sottovoce/edge/node-0/*", lambda q: q.reply(q.key_expr, b"FORGED"), complete=True)
        assert until(lambda: len(spy.info.links()) >= 2)
        for _ in range(tries):
            listener[0].ask(0, b"?" * 72)
            for key in ("sottovoce/edge/node-0/node-1", "sottovoce/edge/node-0/*"):
                for reply in spy.get(key, payload=b"!" * 72, timeout=0.2):
                    if reply.ok is not None:
                        read.append(reply.ok.payload.to_bytes())
            if MARKER in read:
                break
        assert until(lambda: MARKER in listener[1].frames)
        teller[0].close()  # now only the spy would answer
        for _ in range(4 * tries):
            listener[0].ask(0, b"?" * 72)
            if until(lambda: b"FORGED" in listener[1].frames, 0.1):
                break
        faked.undeclare()
        heard.undeclare()
    listener[0].close()
    return [frame for frame in read if MARKER in frame], [frame for frame in listener[1].frames if frame != MARKER]


def test_a_spy_and_a_forger_with_a_good_certificate_read_and_forge_nothing(three):
    assert spied(three, lambda link: None, 5) == ([], [])
    read, forged = spied(three, without_rules, 100)  # the control: without access rules both succeed
    assert read
    assert forged


@pytest.mark.parametrize("days", [None, -1], ids=["foreign", "expired"])
def test_whoever_has_no_good_certificate_gets_no_connection(tmp_path, three, days):
    """The stranger knows all there is to know, our authority's certificate included, but holds no good one of its own."""
    listener, _ = opened(three, "node-1")
    found, *_ = NodeFile.read(three / "node-2").load()
    ours = certificates.Issued(*((three / "authority" / file).read_bytes() for file in (identity.CERTIFICATE, identity.KEY)))
    issued = certificates.issue(certificates.new_authority("sottovoce") if days is None else ours, "node-2", days=days or 1)
    identity.write(tmp_path / identity.CERTIFICATE, issued.certificate)
    identity.write(tmp_path / identity.KEY, issued.key)
    identity.write(tmp_path / identity.AUTHORITY, ours.certificate)
    who = SimpleNamespace(folder=tmp_path)
    wanted = replace(found.wiring("node-2", None), dial=(found.members[1].address,))
    links = lambda session: session.info.links()
    with zenoh.open(wiring.configuration(wanted, who, 1000)) as stranger:
        assert not until(lambda: links(stranger), 1.0)
    with zenoh.open(wiring.configuration(wanted, NodeFile.read(three / "node-2").load()[1], 1000)) as known:
        assert until(lambda: links(known))  # the control
    listener.close()


def on_tcp(link):
    """The control: the same link without TLS."""
    settings = json.loads(str(link.config))
    settings["access_control"] = {"enabled": False, "default_permission": "allow"}
    settings["transport"]["link"]["protocols"] = ["tcp"]
    for side in ("listen", "connect"):
        settings[side]["endpoints"] = [point.replace("tls/", "tcp/") for point in settings[side]["endpoints"]]
    link.config = zenoh.Config.from_json5(json.dumps(settings))


@pytest.mark.parametrize("encrypted", [True, False], ids=["tls", "plain"])
def test_a_wire_tap_finds_a_marker_only_where_tls_is_off(tmp_path, encrypted):
    inner = nodes.free_port()
    tap = Proxy(inner)
    try:
        folder = tmp_path / "two"
        federation(folder, sv.graphs.cycle(2), hosts={"node-0": f"127.0.0.1:{tap.port}"})
        listening(folder / "node-0", inner)
        first, second = (opened(folder, name, (lambda link: None) if encrypted else on_tcp) for name in ("node-0", "node-1"))
        assert until(lambda: 0 in second[0].greeted)
        second[0].ask(0, b"?" * 72)
        assert until(lambda: second[1].frames == [MARKER])
        assert len(tap.bytes) > 1000
        assert (MARKER in bytes(tap.bytes)) is not encrypted
        for link, _ in (first, second):
            link.close()
    finally:
        tap.close()


def listening(folder, port):
    """node.toml with another port to listen on: what the address names is something in between."""
    file = folder / "node.toml"
    facts = tomllib.loads(file.read_text())
    file.write_text(toml({**facts, "listen": f"127.0.0.1:{port}"}))


# the same run --------------------------------------------------------------------------------------------------------

METHODS = [("private-gradient-tracking", {"K": 3}), ("ab", {}), ("subgradient-push", {}), ("add-opt", {})]


@pytest.mark.parametrize(("algorithm", "parameters"), METHODS, ids=lambda value: value if isinstance(value, str) else "")
def test_nodes_do_what_was_rehearsed(tmp_path, algorithm, parameters):
    folder, seed = tmp_path / "five", 7
    stepsize = 1.0 if algorithm == "subgradient-push" else 0.02
    facts = federation(folder, sv.graphs.paper_b(), algorithm, parameters, stepsize=stepsize, iterations=25)
    members = [Member(folder, name, CounterDraws(seed, [0])) for name in facts.names]
    nodes.together(members)
    rehearsed = rehearse(folder, seed, record=True)
    assert rehearsed.provenance["kind"] == "rehearsal"
    wanted = rehearsed.trajectory[:, 0]  # (k, n, d)
    found = np.stack([[member.x[k] for member in members] for k in range(26)])
    largest = np.maximum.accumulate(np.abs(wanted).max((1, 2)))
    assert (np.abs(found - wanted).max((1, 2)) <= 1e-12 * largest).all()


def test_numbers_that_two_nodes_share_come_from_their_keys(tmp_path):
    """The masks of private-sum cancel only where both ends of an edge draw the very same words."""
    folder = tmp_path / "three"
    facts = federation(folder, sv.graphs.cycle(3, two_way=True), "private-sum", {}, "rendezvous:d=2", iterations=4)

    async def answer(name):
        return [x async for _, x in sv.Node(folder / name)][-1]

    async def all_three():
        return await asyncio.gather(*map(answer, facts.names))

    wanted = whole(folder)[1].values.sum(0)
    assert np.abs(np.array(asyncio.run(all_three())) - wanted).max() < 1e-9


def test_every_algorithm_makes_a_federation_or_says_why_not(tmp_path):
    made = []
    for name in sv.registry.algorithms():
        with contextlib.suppress(InputError):
            federation(tmp_path / name, sv.graphs.cycle(3, two_way=True), name, problem="rendezvous:d=2")
            made.append(name)
        assert (tmp_path / name).exists() == (name in made)
    assert {"private-gradient-tracking", "ab", "subgradient-push", "add-opt", "private-sum"} <= set(made)


def test_a_delaying_proxy_that_cuts_the_line_changes_nothing(tmp_path):
    inner = nodes.free_port()
    proxy = Proxy(inner, delay=0.005)
    try:
        folder = tmp_path / "three"
        facts = federation(folder, sv.graphs.cycle(3), hosts={"node-0": f"127.0.0.1:{proxy.port}"}, iterations=60)
        listening(folder / "node-0", inner)
        members = [Member(folder, name, CounterDraws(3, [0])) for name in facts.names]

        def cut():
            for k in (10, 30):
                until(lambda k=k: max(members[0].x, default=0) >= k)
                proxy.cut()

        cutter = threading.Thread(target=cut, daemon=True)
        cutter.start()
        nodes.together(members)
        cutter.join()
        wanted = rehearse(folder, 3).x[0]
        assert np.abs(np.stack([member.x[60] for member in members]) - wanted).max() <= 1e-12 * np.abs(wanted).max()
        assert all(member.watch.reasons == [] for member in members)
    finally:
        proxy.close()


# processes -----------------------------------------------------------------------------------------------------------


def played(folder, each=lambda crew: None):
    with Crew(folder) as crew:
        for name in crew.federation.names:
            crew.start(name)
        crew.watch(each)
        return crew.answers(), crew.kills


def test_kills_and_a_stopped_process_change_no_bit(tmp_path):
    """A method without randomness from a start that is written down: two runs differ only by what is done to them."""
    found = {}
    for name in ("calm", "stormy"):
        folder = tmp_path / name
        federation(folder, sv.graphs.cycle(3), iterations=300)
        for i in range(3):
            file = folder / f"node-{i}" / "node.toml"
            facts = tomllib.loads(file.read_text())
            file.write_text(toml({**facts, "start": [float(i), -1.0]}))
        due = [("node-0", 60), ("node-2", 120), ("node-1", 180)] if name == "stormy" else []
        stops = [("node-1", 30)] if name == "stormy" else []

        def each(crew, due=due, stops=stops):
            if due and crew.iteration(due[0][0]) >= due[0][1]:
                crew.kill(due[0][0])
                crew.start(due.pop(0)[0])
            if stops and crew.iteration(stops[0][0]) >= stops[0][1]:
                process = crew.processes[stops.pop()[0]]
                process.send_signal(signal.SIGSTOP)
                time.sleep(1.5)
                process.send_signal(signal.SIGCONT)

        x, kills = played(folder, each)
        found[name] = x.tobytes()
        assert kills == (3 if name == "stormy" else 0)
        exact = whole(folder)[1].optimum
        assert np.abs(x - exact).max() < 1e-4
    assert found["calm"] == found["stormy"]


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())


@pytest.fixture
def two_hosts():
    """Two network namespaces with a wire between them: ((name, address, end of the wire), the same for the other)."""
    me = f"sv{os.getpid() % 10**6}"
    hosts = [(f"{me}{letter}", f"10.213.77.{i}", f"{me}{letter}") for i, letter in ((1, "a"), (2, "b"))]
    try:
        for space, *_ in hosts:
            ip("netns", "add", space)
        ip("link", "add", hosts[0][2], "netns", hosts[0][0], "type", "veth", "peer", hosts[1][2], "netns", hosts[1][0])
        for space, address, end in hosts:
            ip("-n", space, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", space, "link", "set", end, "up")
        yield hosts
    except OSError as error:
        pytest.skip(f"this machine allows no network namespaces: {error}")
    finally:
        for space, *_ in hosts:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def test_a_wire_that_is_cut_between_two_hosts_loses_nothing(tmp_path, two_hosts):
    folder = tmp_path / "two"
    addresses = {f"node-{i}": f"{address}:7440" for i, (_, address, _) in enumerate(two_hosts)}
    federation(folder, sv.graphs.cycle(2), hosts=addresses, iterations=300, stepsize=0.1)
    cuts = [100]

    class Apart(Crew):
        def command(self, name):
            return ["ip", "netns", "exec", two_hosts[self.federation.names.index(name)][0], *super().command(name)]

    with Apart(folder) as crew:
        for name in crew.federation.names:
            crew.start(name)

        def cut(crew):
            if cuts and crew.iteration("node-0") >= cuts[0]:
                cuts.pop()
                space, _, end = two_hosts[0]
                ip("-n", space, "link", "set", end, "down")
                time.sleep(1.0)
                ip("-n", space, "link", "set", end, "up")

        crew.watch(cut)
        x = crew.answers()
    assert cuts == []
    assert np.abs(x - whole(folder)[1].optimum).max() < 1e-8


CANARY = 7.123456789123


def test_no_value_is_written_where_it_does_not_belong(tmp_path, capfd):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), problem="rendezvous:d=1", iterations=200, stepsize=0.001)
    for i in range(2):
        file = folder / f"node-{i}" / "node.toml"
        facts = tomllib.loads(file.read_text())
        cost = {"kind": "least-squares", "csv": "planted.csv", "target": "y"}
        file.write_text(toml({**facts, "cost": cost}))
        (file.parent / "planted.csv").write_text(f"a,y\n{CANARY},{3 * CANARY + i}\n1,3\n")
    seen = {}

    def each(crew):
        for file in folder.rglob("store"):
            if file.is_file():
                seen[file] = file.read_bytes()

    played(folder, each)
    assert seen
    needles = [str(CANARY)[:10].encode(), np.float64(CANARY).tobytes(), np.float64(2 * CANARY**2).tobytes()]
    told = b"".join(capfd.readouterr()[i].encode() for i in (0, 1))
    logs = b"".join(file.read_bytes() for file in folder.rglob("node.log"))
    assert b"start" in logs
    for needle in needles:
        assert all(needle not in text for text in (told, logs, *seen.values()))
    with Crew(folder) as crew:  # the line that a process says of itself
        assert set(Status("a", 1).facts()) == {
            "name", "iteration", "iterations", "rate", "waiting", "seconds", "refused", "sent", "received",
        }  # fmt: skip
        assert crew.rows() == []


def test_the_log_takes_what_is_on_its_list_and_nothing_else(tmp_path):
    log = Log(tmp_path / "node.log", "a")
    log.write("end", iteration=3, bytes=10)
    for wrong in ({"x": 1.0}, {"gradient": 2}, {"value": "1"}):
        with pytest.raises(InputError, match="the log takes no"):
            log.write("end", **wrong)
    log.close()
    assert "gradient" not in (tmp_path / "node.log").read_text()
    assert (tmp_path / "node.log").stat().st_mode & 0o077 == 0


def test_a_node_in_asynchronous_code_and_one_identity_once(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), problem="rendezvous:d=2", iterations=80, stepsize=0.2)

    async def steer(name):
        return [(k, x) async for k, x in sv.Node(folder / name)]

    async def both():
        return await asyncio.gather(steer("node-0"), steer("node-1"))

    first, second = asyncio.run(both())
    assert [k for k, _ in first] == list(range(81))
    exact = whole(folder)[1].optimum
    assert np.abs(first[-1][1] - exact).max() < 1e-6
    result = tomllib.loads((folder / "node-1" / "result" / "result.toml").read_text())
    assert result["x"] == second[-1][1].tolist()
    assert result["provenance"]["kind"] == "deployment"
    assert "seed" not in (folder / "node-1" / "result" / "result.toml").read_text()
    assert Node(folder / "node-0").over
    with pytest.raises(InputError, match="has ended"):
        next(Node(folder / "node-0").run())


def test_who_leaves_a_run_in_asynchronous_code_is_not_kept_waiting(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), iterations=50)

    async def some(name, enough):
        async for k, _ in sv.Node(folder / name):
            if k >= enough:
                return True
        return False

    async def both():
        return await asyncio.wait_for(asyncio.gather(some("node-0", 5), some("node-1", 5)), nodes.PATIENCE)

    assert asyncio.run(both()) == [True, True]
    assert asyncio.run(asyncio.wait_for(some("node-0", 4), nodes.PATIENCE))  # it goes on where it was, alone


@pytest.mark.parametrize("when", ["before it begins", "while it waits"])
def test_a_node_in_asynchronous_code_is_cancelled_at_once(tmp_path, when):
    """Its neighbour is not up, and this method cannot even be set up without it."""
    folder, begins, goes_on = tmp_path / "two", threading.Event(), threading.Event()
    federation(folder, sv.graphs.cycle(2, two_way=True), "admm", problem="rendezvous:d=1", iterations=5)
    node = Node(folder / "node-1")
    node._check_alone = lambda: (begins.set(), goes_on.wait())

    async def one():
        async for _ in node:
            pass

    async def cancelled():
        running = asyncio.ensure_future(one())
        await asyncio.to_thread(begins.wait)
        if when == "while it waits":
            goes_on.set()
            await asyncio.to_thread(until, lambda: node.link is not None and node.link._session is not None)
        running.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(cancelled(), 20))
    assert node._playing is None


FAILING = """import sys, sottovoce as sv
running = sv.Node(sys.argv[1]).run()
for k, x in running:
    if k == 5:
        raise SystemExit(3)
"""


def test_a_program_that_ends_in_the_middle_of_a_run_ends_at_once_and_says_nothing(tmp_path):
    """The run is a global of the program: it is taken apart last, when Zenoh's threads get Python's lock no more."""
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), iterations=5000)
    with Crew(folder) as crew:
        crew.start("node-1")
        command = [sys.executable, "-c", FAILING, str(folder / "node-0")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=nodes.PATIENCE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "")


def test_whoever_deletes_all_and_runs_again_masks_with_other_numbers(tmp_path):
    """The same roster, other data, nothing left of the first run: what passes differs by more than the data do."""
    folder = tmp_path / "two"
    facts = federation(folder, sv.graphs.cycle(2, two_way=True), "private-sum", {}, "rendezvous:d=2", iterations=4)
    words = []

    async def answer(name):
        node = sv.Node(folder / name)
        async for k, now in node:
            x = now
            if k == 0 and name == "node-0":
                draws = node._playing.replay.draws.draws
                ask = functools.partial(draws.between, np, WORDS, Stream(3), 0, [0], [1], 4, (0,))
                words.append((await asyncio.to_thread(ask))[0].tobytes())
        return x

    async def both():
        return await asyncio.gather(*map(answer, facts.names))

    for _ in range(2):
        found = asyncio.run(both())
        assert np.abs(np.array(found) - whole(folder)[1].values.sum(0)).max() < 1e-9
        for name in facts.names:
            for gone in ("store", "result"):
                shutil.rmtree(folder / name / gone)
            (folder / name / "used").unlink()
    assert words[0] != words[1]


def test_an_old_store_is_refused_before_a_message_is_made(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), iterations=200)
    store = folder / "node-0" / "store" / "store"

    def upto(one, k):
        for at, _ in one:
            if at >= k:
                return

    other = Node(folder / "node-1").run()
    thread = threading.Thread(target=upto, args=(other, 29), daemon=True)
    thread.start()
    first = Node(folder / "node-0").run()
    upto(first, 5)
    copy = store.read_bytes()
    upto(first, 29)
    thread.join()
    first.close()
    store.write_bytes(copy)
    again = Node(folder / "node-0").run()
    assert next(again)[0] <= 6
    with pytest.raises(StoreError, match="one of the two stores is an old copy"):
        next(again)
    other.close()


def test_a_copy_of_a_node_does_not_run_beside_it(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2))
    shutil.copytree(folder, tmp_path / "copy")
    running = Node(folder / "node-0").run()
    assert next(running)[0] == 0
    with pytest.raises(IdentityError, match="runs already, at"):
        next(Node(tmp_path / "copy" / "node-0").run())
    running.close()


def test_a_port_that_is_taken_is_said(tmp_path):
    folder = tmp_path / "two"
    facts = federation(folder, sv.graphs.cycle(2))
    with socket.create_server(("127.0.0.1", int(facts.members[0].address.rpartition(":")[2]))) as taken:
        taken.settimeout(0)
        with pytest.raises(SottovoceError, match=r"cannot listen on 127\.0\.0\.1"):
            next(Node(folder / "node-0").run())


def test_ctrl_c_is_said_and_loses_nothing(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2))
    command = [sys.executable, "-c", nodes.LISTENING, "node", str(folder / "node-0")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert until(lambda: (folder / "node-0" / "store" / "store").exists())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=nodes.PATIENCE)
        assert process.returncode == 130
        assert "goes on from there" in said
    assert next(Node(folder / "node-0").run())[0] == 0


def test_two_processes_of_one_identity_are_refused_and_a_run_that_is_left_goes_on(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), iterations=10)
    running = Node(folder / "node-0").run()
    assert next(running)[0] == 0
    with pytest.raises(IdentityError, match="runs already"):
        next(Node(folder / "node-0").run())
    hidden = Node(folder / "node-0")
    hidden._check_alone = lambda: None  # as where the address cannot be dialled from here
    with pytest.raises(StoreError, match="another process"):
        next(hidden.run())
    running.close()
    again = Node(folder / "node-0").run()
    assert next(again)[0] == 0
    again.close()


# files and commands --------------------------------------------------------------------------------------------------


def call(capsys, *words):
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


def test_init_writes_what_five_nodes_need_and_no_seed(tmp_path, capsys):
    code, out, _ = call(capsys, "init", tmp_path / "five", "--set", "K=2", "--port", "0", "--json")
    facts = json.loads(out)
    assert code == 0
    assert list(facts["nodes"]) == [f"node-{i}" for i in range(5)]
    assert facts["advice"].startswith("stepsize")
    texts = [file.read_text() for file in (tmp_path / "five").rglob("*.toml")]
    assert len(texts) == 6
    assert not any("seed" in text for text in texts)
    found, problem = whole(tmp_path / "five")
    np.testing.assert_array_equal(problem.optimum, sv.problems.estimation(n=5, d=2).optimum)
    assert found.roster.parameters[0] == ("K", 2)
    code, out, _ = call(capsys, "rehearse", tmp_path / "five", "--json", "--seed", "5")
    facts = json.loads(out)
    assert (code, facts["kind"], facts["seed"]) == (0, "rehearsal", 5)
    assert facts["final_error"]["worst"] < 1e-10


REFUSED = [
    (("--graph", "cycle:4", "--algorithm", "diging-tv"), "schedule"),
    (("--graph", "cycle:n=4,two_way=true", "--algorithm", "asyn-dgm"), "at random"),
    (("--graph", "paper-b", "--graph", "cycle:5", "--algorithm", "ab"), "runs on one graph"),
    (("--problem", "own:d=3",), "--stepsize"),
    (("--problem", "own",), "own:d=3"),
    (("--problem", "total",), "estimation"),
    (("--problem", "estimation:n=3",), "leave n out"),
    (("--host", "node-9=h:1",), "node-9"),
    (("--host", "node-0=h",), "host:port"),
    (("--host", "node-0=hidden", "--host", "node-1=hidden"), "neither can dial"),
    (("--host", "node-0=h:1", "--host", "node-1=h:1"), "same address"),
    (("--algorithm", "extra"), "two-way"),
    (("--stepsize", "0"), "above 0"),
    (("--set", "Q=1"), "no parameter 'Q'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_init_refuses_before_it_writes(tmp_path, capsys, words, said):
    code, _, err = call(capsys, "init", tmp_path / "new", *words)
    assert (code, said in err) == (2, True), err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("edges", ["authority,b\nb,authority\n", "North,north\nnorth,North\n"])
def test_init_refuses_names_that_would_share_a_folder(tmp_path, capsys, edges):
    (tmp_path / "links.csv").write_text(edges)
    words = ("--graph", tmp_path / "links.csv", "--problem", "own:d=2", "--stepsize", "0.1")
    code, _, err = call(capsys, "init", tmp_path / "new", *words)
    assert (code, "names are folders" in err) == (2, True), err
    assert not (tmp_path / "new").exists()


def test_init_says_what_comes_next_and_its_commands_can_be_copied(tmp_path, capsys):
    folder = tmp_path / "my five"
    _, out, _ = call(capsys, "init", folder, "--port", "0", "--problem", "least-squares:d=1", "--iterations", "5")
    assert f"sottovoce rehearse '{folder}' to try it, sottovoce up '{folder}' to run" in out
    assert "federation.toml one folder up" in out
    assert "fill in" not in out
    assert {file.stat().st_mode & 0o777 for file in folder.glob("node-*/records.csv")} == {0o600}
    hosts = [word for i in range(5) for word in ("--host", f"node-{i}=site-{i}.example.org:7440")]
    words = ("--problem", "own:d=2", "--stepsize", "0.1", *hosts)
    _, out, _ = call(capsys, "init", tmp_path / "sites", *words)
    assert "First fill in [cost] in each node.toml" in out
    assert "Here:" not in out


def test_init_asks_for_as_many_iterations_as_the_method_takes(tmp_path, capsys):
    words = ("--port", "0", "--problem", "average", "--algorithm", "private-sum", "--json")
    _, out, _ = call(capsys, "init", tmp_path / "sum", *words)
    assert json.loads(out)["iterations"] == 1


def test_a_public_schedule_of_graphs(tmp_path):
    both = (sv.graphs.cycle(4, two_way=True), sv.graphs.star(4))
    facts = federation(tmp_path / "four", both, "diging-tv", iterations=12)
    assert len(facts.roster.graphs) == 2
    members = [Member(tmp_path / "four", name, CounterDraws(1, [0])) for name in facts.names]
    nodes.together(members)
    wanted = rehearse(tmp_path / "four", 1).x[0]
    assert np.abs(np.stack([member.x[12] for member in members]) - wanted).max() <= 1e-12 * np.abs(wanted).max()


WRONG = [
    ("d = 2", "d = 2\ncolour = 3", "'colour', which means nothing"),
    ("stepsize = 0.05", "", "must say stepsize"),
    ("iterations = 30", "iterations = true", "whole number"),
    ('["node-2", "node-0"]', '["node-2", "node-7"]', "an edge is"),
    ("sha256:", "sha257:", "another certificate"),
    ("d = 2", "d = 3", "x has 3 numbers"),
    ("127.0.0.1:", "127.0.0.1;", "host:port"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[said for *_, said in WRONG])
def test_a_federation_file_is_read_strictly(tmp_path, three, old, new, said):
    shutil.copytree(three, tmp_path / "copy")
    file = tmp_path / "copy" / "federation.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(SottovoceError, match=said):
        NodeFile.read(tmp_path / "copy" / "node-0").load()


def test_records_that_are_missing_are_named_by_row_and_column_and_not_shown(tmp_path):
    (tmp_path / "r.csv").write_text("a,b,y\n1,2,3\n1,,2\n")
    table = {"kind": "least-squares", "csv": "r.csv", "target": "y"}
    with pytest.raises(InputError, match="row 3, column 'b': the value is missing"):
        cost(table, tmp_path, 2)
    (tmp_path / "r.csv").write_text("a,b,y\n1,2,3\n1,secret,2\n")
    with pytest.raises(InputError, match="row 3, column 'b'") as caught:
        cost(table, tmp_path, 2)
    assert "secret" not in str(caught.value)
    (tmp_path / "r.csv").write_text("a,b,y\n1,2,3\n")
    with pytest.raises(InputError, match="has 3 numbers, and this cost is of 2"):
        cost(table, tmp_path, 3)


def test_costs_of_a_node_against_their_formulas(tmp_path):
    rng, x = np.random.default_rng(0), np.array([0.3, -0.7])
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    labels = ["yes", "no", "yes", "yes", "no", "no"]
    (tmp_path / "r.csv").write_text("a,b,y,ill\n" + "".join(f"{p!r},{q!r},{t!r},{label}\n" for (p, q), t, label in zip(
        X.tolist(), y.tolist(), labels, strict=True)))  # fmt: skip
    (tmp_path / "own_cost.py").write_text("def slope(x):\n    return 3 * x\n")
    records = {"csv": "r.csv", "features": ["a", "b"]}
    signs = np.where(np.array(labels) == "yes", 1.0, -1.0)
    wanted = {
        "least-squares": ({**records, "target": "y", "l2": 0.5}, X.T @ (X @ x - y) + 0.5 * x),
        "logistic": ({**records, "target": "ill", "positive": "yes"}, -X.T @ (signs / (1 + np.exp(signs * (X @ x))))),
        "huber": ({**records, "target": "y", "delta": 0.1}, X.T @ np.clip(X @ x - y, -0.1, 0.1)),
        "rendezvous": ({"point": [1.0, 2.0]}, x - [1, 2]),
        "estimation": ({"Q": X[:3].tolist(), "z": y[:3].tolist(), "sigma": 0.1}, 2 * X[:3].T @ (X[:3] @ x - y[:3]) + 0.2 * x),
        "python": ({"entry": "own_cost:slope"}, 3 * x),
    }
    sys.modules.pop("own_cost", None)
    for kind, (table, gradient) in wanted.items():
        np.testing.assert_allclose(cost({"kind": kind, **table}, tmp_path, 2).gradient(x)[0], gradient, rtol=1e-12, err_msg=kind)
    wrong = (({"kind": "x"}, "kind of cost"), ({"kind": "python"}, "needs entry"), ({"kind": "huber", "z": 1}, "no 'z'"))
    for table, said in wrong:
        with pytest.raises(InputError, match=said):
            cost(table, tmp_path, 2)


COSTS = {
    "while it runs": ("def slope(x):\n    if x.any():\n        raise ValueError(f'{7.125} at {x}')\n    return x\n", 3),
    "when it is read": ("SECRET = 7.125\nraise KeyError(SECRET)\n", 2),
    "as no Python": ("a = 7.125\nb = 7.125 7.125\n", 2),
    "as a problem": ("import sottovoce as sv\ndef f(x, _):\n    raise ValueError('7.125')\nslope = sv.Problem(f, [0.0], d=1)", 3),
}  # fmt: skip


@pytest.mark.parametrize("when", COSTS)
def test_what_a_cost_of_ones_own_raises_is_told_without_its_words(tmp_path, capsys, when):
    folder, (text, line) = tmp_path / "two", COSTS[when]
    federation(folder, sv.graphs.cycle(2), problem="own:d=1")
    module = f"mine_{list(COSTS).index(when)}"
    for name in ("node-0", "node-1"):
        (folder / name / f"{module}.py").write_text(text)
        with (folder / name / "node.toml").open("a") as file:
            file.write(f'kind = "python"\nentry = "{module}:slope"\n')
    code, out, err = call(capsys, "up", folder)
    kind = {"when it is read": "KeyError", "as no Python": "SyntaxError"}.get(when, "ValueError")
    assert code == 1
    assert re.search(rf"the cost of node-[01] raised {kind} in {module}\.py line {line};", err)
    assert "7.125" not in out + err + "".join(file.read_text() for file in folder.rglob("node.log"))
    assert "Traceback" not in err


def test_a_cost_or_records_that_changed_on_the_way_are_refused(tmp_path):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), problem="least-squares:d=2,records=10", iterations=5)
    running = Node(folder / "node-0").run()
    next(running)
    running.close()
    file, records = folder / "node-0" / "node.toml", folder / "node-0" / "records.csv"
    was = file.read_text(), records.read_bytes()
    file.write_text(was[0].replace("l2 = ", "l2 = 1"))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is not what it was when this run began"):
            next(Node(folder / "node-0").run())
        file.write_text(was[0])
        records.write_bytes(was[1].rstrip().rpartition(b"\n")[0] + b"\n")
    records.write_bytes(was[1])
    running = Node(folder / "node-0").run()
    assert next(running)[0] == 0
    running.close()


def test_check_says_what_is_in_order_and_what_is_not(tmp_path, capsys):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2), iterations=10)
    alone = {line.what: line for line in check(folder / "node-0", 1.0)}
    assert alone["certificate"].good
    assert alone["graph"].good
    assert "no guarantee" in alone["stepsize"].says
    assert "theorem 3" in alone
    assert alone["node-1"].good is False
    other, _ = opened(folder, "node-1")
    try:
        together = {line.what: line for line in check(folder / "node-0", 20.0)}
        assert together["node-1"].good
        assert together["node-1's roster"].good
        file = folder / "federation.toml"
        file.write_text(file.read_text().replace("iterations = 10", "iterations = 11"))
        differs = {line.what: line for line in check(folder / "node-0", 20.0)}
        assert "iterations: 11 here, 10 there" in differs["node-1's roster"].says
        (folder / "node-0" / identity.CERTIFICATE).write_bytes((folder / "node-1" / identity.CERTIFICATE).read_bytes())
        code, out, _ = call(capsys, "check", folder / "node-0", "--json")
        lines = {line["what"]: line for line in json.loads(out)["lines"]}
        assert (code, lines["certificate"]["good"]) == (1, False)
    finally:
        other.close()


def test_up_and_the_messages_of_the_commands(tmp_path, capsys):
    folder = tmp_path / "two"
    assert call(capsys, "init", folder, "--graph", "cycle:2", "--algorithm", "ab", "--iterations", 60, "--port", 0)[0] == 0
    code, out, _ = call(capsys, "up", folder, "--json")
    facts = json.loads(out)
    assert (code, facts["nodes"], len(facts["results"])) == (0, 2, 2)
    assert np.abs(np.array(facts["x"]) - whole(folder)[1].optimum).max() < 1e-3
    code, _, err = call(capsys, "node", folder / "node-0")
    assert code == 2
    assert "has ended" in err
    code, out, _ = call(capsys, "up", folder)
    assert code == 0
    assert "ended earlier, and nothing was run now" in " ".join(out.split())
    assert " iterations in " not in out


def test_a_run_is_not_begun_a_second_time_and_another_one_of_the_same_nodes_is(tmp_path, capsys):
    folder = tmp_path / "two"
    federation(folder, sv.graphs.cycle(2, two_way=True), "private-sum", {}, "rendezvous:d=2", iterations=4)
    facts = Federation.read(folder / "federation.toml")
    assert call(capsys, "up", folder, "--json")[0] == 0
    for name in facts.names:
        shutil.rmtree(folder / name / "store")
        shutil.rmtree(folder / name / "result")
        assert (folder / name / "used").stat().st_mode & 0o777 == 0o600
    code, _, err = call(capsys, "up", folder)
    assert code == 1
    assert "this run was begun before and its store is gone" in err
    assert not (folder / "node-0" / "result" / "result.toml").exists()
    code, out, _ = call(capsys, "again", folder)
    assert code == 0
    assert "what the run before left here is put aside" in " ".join(out.split())
    now = Federation.read(folder / "federation.toml")
    assert replace(now, run=facts.run, public=facts.public) == facts
    assert now.run != facts.run
    assert now.public != facts.public
    code, out, _ = call(capsys, "up", folder, "--json")
    assert code == 0
    assert np.abs(np.array(json.loads(out)["x"]) - whole(folder)[1].values.sum(0)).max() < 1e-9
    assert call(capsys, "again", folder)[0] == 0  # results that are there are put aside
    assert (folder / "node-0" / f"result-{now.run}" / "result.toml").is_file()
    running = Node(folder / "node-0").run()
    next(running)
    assert "stop that one first" in call(capsys, "again", folder)[2]
    running.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_up_that_is_stopped_ends_its_nodes_and_says_how_to_go_on(tmp_path, how):
    folder = tmp_path / "two"
    facts = federation(folder, sv.graphs.cycle(2), iterations=10**6)
    command = [sys.executable, "-c", nodes.LISTENING, "up", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert until(lambda: all((folder / name / "store" / "store").exists() for name in facts.names))
        process.send_signal(how)
        _, said = process.communicate(timeout=nodes.PATIENCE)
    assert process.returncode == 130
    assert f"sottovoce up {folder} goes on from there" in said
    for name in facts.names:  # nobody holds the folder any more
        with Store(folder / name / "store", bytes(32), facts.roster.digest):
            pass


def test_the_walk_through_of_the_documentation(tmp_path):
    """Every command of the page, in order; the sites are ports of this machine."""
    page = (ROOT / "docs" / "five-sites.md").read_text()
    here = re.sub(r"\w+\.example\.org:\d+", lambda _: f"127.0.0.1:{nodes.free_port()}", page)
    blocks = re.findall(r"^```sh\n(.*?)^```", here, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    script = f'sottovoce() {{ "{sys.executable}" -m sottovoce "$@"; }}\n' + "\n".join(blocks)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"{site}.json").read_text())["x"] for site in ("north", "east", "south", "west", "centre")]
    assert np.abs(np.array(found) - whole(tmp_path / "clinics")[1].optimum).max() < 1e-10
    assert "deployment" in done.stdout


@pytest.mark.timeout(120)
def test_the_demonstration(capsys):
    code, out, _ = call(capsys, "demo", "--json")
    facts = json.loads(out)
    assert (code, facts["good"], facts["nodes"], facts["kills"], facts["links"]) == (0, True, 5, 5, 8)
    assert facts["error"] < 1e-10
    assert facts["seconds"] > 0
    assert [row["node"] for row in facts["theorems"]] == [f"node-{i}" for i in range(5)]


def test_nothing_of_a_deployment_takes_a_seed():
    import inspect

    from sottovoce.peer.founding import Plan
    from sottovoce.peer.loop import Loop

    for what in (Node, Node.run, NodeFile, Federation, Plan, Loop, main):
        assert "seed" not in inspect.signature(what).parameters


@pytest.mark.parametrize("command", ["init", "again", "node", "up", "check"])
def test_no_command_of_a_deployment_takes_a_seed(capsys, command):
    assert main([command, "--help"]) == 0
    assert "--seed" not in capsys.readouterr().out


def test_folders_bear_the_names_of_the_sites_whose_records_they_hold(tmp_path):
    """Alphabetical numbers would send one hospital's records to another; names that cannot be folders stay numbers."""
    table = tmp_path / "records.csv"
    cases = (("south", "north", "east"), ["east", "north", "south"]), (("a b", "c", "d"), ["node-0", "node-1", "node-2"])
    for names, folders in cases:
        rows = [f"{10 * i + j},{j % 2},{name}" for i, name in enumerate(names) for j in range(4)]
        table.write_text("\n".join(["age,ill,site", *rows]) + "\n")
        place = tmp_path / folders[0]
        spec = f"logistic:csv={table},target=ill,features=age,site=site"
        federation(place, sv.graphs.ring(3), "private-newton", problem=spec, iterations=3)
        assert sorted(path.name for path in place.iterdir() if (path / "node.toml").exists()) == folders
    for i, name in enumerate(("south", "north", "east")):
        held = np.loadtxt(tmp_path / "east" / name / "records.csv", delimiter=",", skiprows=1)
        assert held[:, 0].tolist() == [10 * i + j for j in range(4)]


def test_check_looks_at_the_key_of_the_store(tmp_path):
    pytest.importorskip("zenoh")
    federation(tmp_path / "two", sv.graphs.cycle(2), iterations=3)
    key = tmp_path / "two" / "node-0" / "store.key"
    said = lambda: {line.what: line.good for line in check(tmp_path / "two" / "node-0", patience=0.1)}["store key"]
    assert said()
    key.chmod(0o644)
    assert said() is False
