"""One node as a process, without sockets: protocol, store, frames, draws and loop, through every order of events and any kill."""

import itertools
import os
import random
import threading
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.draws import UNIT, WORDS, CounterDraws, Stream
from sottovoce.errors import Ended, MessageRefused, ParameterError, ProblemError, RunError, StoreError
from sottovoce.laws import Law
from sottovoce.peer import ears, log, loop, store
from sottovoce.peer.codec import decode, encode
from sottovoce.peer.draws import NodeDraws
from sottovoce.peer.frame import HEADER_BYTES, MOVING, QUESTION_BYTES, WHERE, WHO, Frames, Question, limit
from sottovoce.peer.loop import Loop, Watch
from sottovoce.peer.memory import MemoryLink, Network
from sottovoce.peer.plan import agreed, planned
from sottovoce.peer.protocol import Protocol
from sottovoce.peer.replay import Wait
from sottovoce.peer.roster import Roster
from sottovoce.peer.store import Store, new_key, read_key
from sottovoce.simulate import eager
from sottovoce.simulate.task import prepare

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
DIGRAPH = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1, 3), (2, 0)])  # irregular
TWO_WAY = sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)])
SEQUENCE = sv.GraphSequence([sv.Graph(5, DIGRAPH.edges[i::2]) for i in range(2)])
KEY = bytes(range(32))
PLACES = ("append", "written", "committed", "ask", "answer", "folder")  # where a node may be killed


def task_of(name, iterations, graph=DIGRAPH, problem=P, tolerance=None, stepsize=0.02, mechanisms=(), **parameters):
    return prepare(
        name, problem, graph, stepsize=stepsize, iterations=iterations, runs=1, seed=0, mechanisms=mechanisms, record=True,
        x0=None, every=1, tolerance=tolerance, parameters=parameters,
    )  # fmt: skip


def roster_of(task, magnitude=1e9, private=None):
    keys = tuple(f"{i:064x}" for i in range(5)) if private is None else tuple(public(key).hex() for key in private)
    return Roster(
        run="test", labels=tuple("abcde"), magnitude=magnitude, fingerprints=tuple("vwxyz"), keys=keys, seed=0, **agreed(task)
    )


def cost_of(i, problem=P):
    values = None if problem.values is None else problem.values[i : i + 1]
    return sv.Problem.of(problem.family, problem.only(i), problem.d, values=values)


def public(key):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()


PRIVATE = [bytes([i + 1]) * 32 for i in range(5)]


def node_draws(i, roster):
    return NodeDraws(i, PRIVATE[i], tuple(map(bytes.fromhex, roster.keys)), roster.digest, roster.seed)


class Killed(BaseException):
    """The process of a node is gone, wherever it was."""

    def __init__(self, me):
        self.me = me


class Rig:
    """Five nodes in one thread: at each turn the network delivers something or a node goes on; and nodes are killed."""

    def __init__(self, folder, roster, seed=0, draws=None, problem=P, network=None, **options):
        self.folder, self.roster, self.problem, self.options = folder, roster, problem, options
        self.draws = draws or (lambda i, roster: CounterDraws(0))
        self.chance = random.Random(seed)
        self.network = Network(seed, tap=self.tap, **(network or {}))
        self.loops, self.stores, self.xs = {}, {}, {i: {} for i in range(5)}
        self.fuse = {}  # node -> how many of the points it still passes before it dies
        self.deaths, self.passed = [], dict.fromkeys(PLACES, 0)
        self.received = {}  # (sender, receiver, place) -> every payload that ever arrived
        self.seen = b""

    def tap(self, sender, receiver, frame):
        self.received.setdefault((sender, receiver, frame[4:8], WHERE.unpack_from(frame, WHO.size)[:2]), set()).add(frame)

    def point(self, me, place):
        """A place where a process may die."""
        self.passed[place] += 1
        if me in self.fuse:
            self.fuse[me] -= 1
            if self.fuse[me] < 0:
                del self.fuse[me]
                self.deaths.append((me, place))
                raise Killed(me)

    def start(self, me):
        self.stores[me] = FragileStore(self, me)
        self.stores[me].__enter__()
        self.loops[me] = Loop(
            self.roster, me, cost_of(me, self.problem), self.stores[me], FragileLink(self, me), self.draws(me, self.roster),
            patient=False, clock=lambda: 0.0, **self.options,
        )  # fmt: skip
        self.loops[me].begin()

    def die(self, me):
        self.stores.pop(me).close()
        dead = self.loops.pop(me, None)
        if dead is not None:
            dead.link.close()

    def go_on(self, me):
        """As far as it comes; True when its neighbours have all that they need."""
        node = self.loops[me]
        try:
            while not node.over:
                node.iterate()
                self.xs[me][node.replay.saved.k] = node.x
        except Wait:
            node.let_leave()
            return False
        if not node.protocol.over:
            node.finish()
        node.let_leave()
        return node._everybody()

    def turn(self):
        me = self.chance.randrange(5)
        if me not in self.loops:
            self.start(me)
        for _ in range(self.chance.randrange(6)):
            self.network.deliver()
        self.go_on(me)
        self.loops[me].ask_again(1.0)

    def play(self, kills=()):
        """Until everybody has everything. `kills`: (turn, node, how many points it still passes)."""
        kills = sorted(kills)
        for turn in itertools.count():
            assert turn < 20_000, "nobody gets on any more"
            while kills and kills[0][0] <= turn:
                _, me, points = kills.pop(0)
                self.fuse[me] = points
            try:
                self.turn()
            except Killed as killed:
                self.die(killed.me)
            if len(self.loops) == 5 and all(node.protocol.over and node._everybody() for node in self.loops.values()):
                break
        return np.stack([self.xs[i][node.replay.saved.k] for i, node in sorted(self.loops.items())])

    def close(self):
        for me in list(self.stores):
            self.die(me)


class FragileLog(log.Log):
    def sync(self):
        self.rig.point(self.me, "written")
        super().sync()


class FragileStore(Store):
    def __init__(self, rig, me):
        super().__init__(rig.folder / str(me), KEY, rig.roster.digest, durable=False)
        self.rig, self.me = rig, me

    def _new(self, path):
        made = super()._new(path)
        made.__class__, made.rig, made.me = FragileLog, self.rig, self.me
        return made

    def _sync_folder(self):
        self.rig.point(self.me, "folder")
        super()._sync_folder()

    def append(self, pieces):
        self.rig.point(self.me, "append")
        end, size = self._log.end, self._log.end + 40
        try:
            super().append(pieces)
        except Killed:
            size = os.fstat(self._log.file).st_size
            if self.rig.chance.random() < 0.5:  # a part of it never reached the disk
                os.ftruncate(self._log.file, self.rig.chance.randint(end, size))
            raise
        self.rig.point(self.me, "committed")


class FragileLink(MemoryLink):
    def __init__(self, rig, me):
        super().__init__(rig.network, me)
        self.rig = rig

    def ask(self, sender, question):
        self.rig.point(self.me, "ask")
        super().ask(sender, question)

    def answer(self, receiver, frame, last):
        self.rig.point(self.me, "answer")
        super().answer(receiver, frame, last)


# the same trajectory as a simulation -----------------------------------------------------------------------------------

METHODS = {
    "private-gradient-tracking": {"K": 3}, "ab": {}, "subgradient-push": {}, "add-opt": {},
}  # fmt: skip


def compare(tmp_path, task, problem=P, seed=0, **network):
    rig = Rig(tmp_path, roster_of(task), seed, problem=problem, network=network)
    rig.play()
    rig.close()
    got = np.stack([[rig.xs[i][k] for i in range(5)] for k in range(task.iterations + 1)])
    expected = eager.play(task).answers[..., 0]
    size = np.maximum.accumulate(np.abs(expected).max((1, 2)))[:, None, None]
    assert (np.abs(got - expected) / size).max() < 1e-12
    return rig


@pytest.mark.parametrize("name", METHODS)
def test_the_same_trajectory_as_the_simulation(tmp_path, name):
    compare(tmp_path, task_of(name, 40, **METHODS[name]))


@pytest.mark.parametrize(
    ("name", "graph", "options"),
    [
        ("ab-tv", SEQUENCE, {"R": "paper", "C": "paper"}),
        ("private-gradient-tracking", DIGRAPH, {"late": "fixed"}),
        ("gradient-tracking", DIGRAPH, {"R": "paper", "C": "paper", "mechanisms": ("secret-late-weights",)}),
        ("gradient-tracking", DIGRAPH, {"stepsize": [0.01, 0.015, 0.02, 0.025, 0.03]}),
        ("dgd", TWO_WAY, {}),
        ("paillier-admm", TWO_WAY, {"mode": "encrypted", "key_bits": 256, "weak_keys": True}),
    ],
)
def test_sequences_fixed_weights_mechanisms_and_own_stepsizes_too(tmp_path, name, graph, options):
    compare(tmp_path, task_of(name, 12, graph, **options), lose=0.1, double=0.1, end=0.02)


@pytest.mark.parametrize(
    ("name", "mechanisms", "words"),
    [
        ("two-servers", (), "asks for 2 helper nodes, and a federation consists of its parties alone"),
        ("ab", (("paillier-links", (("key_bits", 256), ("weak_keys", True))),), "links is for simulation only: .* leave it out"),
        ("paillier", (), "paillier is for simulation only: .* give mode='encrypted'"),
    ],
)
def test_what_only_a_simulation_plays(name, mechanisms, words):
    roster = replace(roster_of(task_of("ab", 5, TWO_WAY)), algorithm=name, parameters=(), mechanisms=mechanisms)
    with pytest.raises(sv.errors.ParameterError, match=words):
        planned(roster, cost_of(0))


# kills -----------------------------------------------------------------------------------------------------------------


def fates(seed, kills, turns):
    """Kill points: several at once, and twice in a row, on any node."""
    chance, found = random.Random(seed), []
    while len(found) < kills:
        turn, me = chance.randrange(turns), chance.randrange(5)
        found.append((turn, me, chance.randrange(12)))
        if chance.random() < 0.3:
            found.append((turn, (me + 1) % 5, chance.randrange(6)))  # two at once
        if chance.random() < 0.3:
            found.append((turn + 1 + chance.randrange(8), me, chance.randrange(4)))  # again, soon after it is back
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    found = {}
    for name in METHODS:
        rig = Rig(tmp_path_factory.mktemp("calm"), roster_of(task_of(name, 10, **METHODS[name])), 1)
        found[name] = rig.play()
        rig.close()
    return found


@pytest.mark.parametrize("group", range(4))
def test_fifty_kills_change_no_bit_and_no_message(tmp_path, monkeypatch, undisturbed, group):
    monkeypatch.setattr(store, "SMALL", 2048)  # so that logs are written anew on the way
    monkeypatch.setattr(store, "GROWTH", 2)
    deaths = [place for seed in range(10 * group, 10 * group + 10) for place in survived(tmp_path / str(seed), undisturbed, seed)]
    assert len(deaths) >= 50
    assert set(deaths) == set(PLACES)


def survived(folder, undisturbed, seed):
    """One run under kills and a faulty network, with everything that must hold afterwards; the places where somebody died."""
    name = list(METHODS)[seed % 4 if seed % 8 else 0]
    system = seed % 3 == 2  # the operating system's randomness: a second draw would be another number
    task = task_of(name, 10, **METHODS[name])
    rig = Rig(
        folder, roster_of(task, private=PRIVATE), seed, draws=node_draws if system else None, ahead=1 + seed % 4,
        network={"lose": 0.05, "double": 0.05, "end": 0.01},
    )  # fmt: skip
    final, states = rig.play(fates(seed, 12, 90)), [rig.loops[i].replay.saved.state for i in range(5)]
    rig.close()
    if name in ("private-gradient-tracking", "ab"):  # a message that was lost, doubled or drawn twice would stay in this sum
        assert np.abs(sum(s.y - s.g for s in states)).max() < 1e-12 * max(np.abs(s.g).max() for s in states)
    if not system:
        assert np.array_equal(final, undisturbed[name])
    assert {len(frames) for frames in rig.received.values()} == {1}
    sent = {(s, r, place) for s, r, what, place in rig.received if what[1] == 0}
    assert sent == {(s, r, (k, phase)) for s, r in DIGRAPH.edges for k in range(10) for phase in range(task.algorithm.exchanges)}
    return [place for _, place in rig.deaths]


class Twice(NamedTuple):
    x: Any
    v: Any
    z: Any
    y: Any
    g: Any


def _twice_start(node, x):
    g = node.gradient(x)
    return Twice(x, 0 * x[:, :1] + 1, x, g, g)


def _twice_step(node, s):
    """Two promised sums and a pull behind them: what is played again must not be booked again."""
    w = node.weights
    y = node.push((w.C, s.y), total=s.g)
    x, v = node.push((w.C, (s.x, s.v)), total=(None, 1))
    z = node.pull((w.R, (x - w.stepsize * y) / v))
    g = node.gradient(z)
    return Twice(x - w.stepsize * y, v, z, y + g - s.g, g)


@pytest.fixture
def twice():
    method = sv.registry.Algorithm(
        "twice", _twice_start, _twice_step, source="of this test", leaks="everything", exchanges=3,
        weights={"R": sv.registry.rows(), "C": sv.registry.columns()}, answer=lambda s: s.z,
    )  # fmt: skip
    sv.registry.register(method)
    yield "twice"
    del sv.registry._ALGORITHMS["twice"]


def test_two_pushes_and_a_pull_are_booked_once(tmp_path, twice):
    task = task_of(twice, 12)
    for seed in (3, 4):
        rig = Rig(tmp_path / str(seed), roster_of(task), seed, network={"lose": 0.1, "end": 0.02})
        final = rig.play(fates(seed, 6, 60))
        rig.close()
        assert np.abs(final - eager.play(task).answers[-1][..., 0]).max() < 1e-12 * np.abs(final).max()
        assert rig.deaths


def test_who_leaves_is_needed_by_nobody(tmp_path, undisturbed):
    """Each node is gone for good as soon as it may go; the others come to their end without it."""
    for seed in range(6):
        rig = Rig(tmp_path / str(seed), roster_of(task_of("ab", 10)), seed, ahead=1 + seed % 3)
        left, final = {}, undisturbed["ab"]
        for turn in itertools.count():
            assert turn < 5000, "somebody left who was needed"
            me = rig.chance.choice([i for i in range(5) if i not in left])
            if me not in rig.loops:
                rig.start(me)
            for _ in range(rig.chance.randrange(4)):
                rig.network.deliver()
            rig.loops[me].ask_again(1.0)
            if rig.go_on(me):
                left[me] = turn
                assert np.array_equal(rig.loops[me].x, final[me])
                rig.die(me)
            if len(left) == 5:
                break
        assert max(left.values()) > min(left.values())


def test_a_node_that_is_killed_at_the_very_end_does_not_wait_for_those_who_left(tmp_path, monkeypatch):
    """Its receivers have said that they have everything, its senders know the same of it; all have left, nobody says it again."""
    monkeypatch.setattr(loop, "CONFIRM", 0.05)
    monkeypatch.setattr(loop, "LINGER", 0.01)
    rig = Rig(tmp_path, roster_of(task_of("ab", 4)), 1)
    final = rig.play()
    rig.close()  # nobody has noted yet that all is done
    for me in range(5):
        with Store(tmp_path / str(me), KEY, rig.roster.digest, durable=False) as place:
            one = Loop(rig.roster, me, cost_of(me), place, Network().link(me), CounterDraws(0))
            ((k, x),) = one.run()
            assert k == 4
            assert np.array_equal(x, final[me])
            assert one.done


# in threads: the step waits where it is --------------------------------------------------------------------------------


class Noted(Watch):
    def __init__(self):
        self.waits, self.refusals = [], []

    def waiting(self, who, what, seconds):
        self.waits.append((who, what))

    def refused(self, other, reason):
        self.refusals.append(reason)


class Threads:
    """A thread a node and one that delivers; the loop as it is deployed, but for the link."""

    def __init__(self, folder, roster, nodes=range(5), deadlines=None, durable=True, problem=P):
        self.network, self.stop, self.errors, self.xs = Network(0, lose=0.02), threading.Event(), {}, {}
        self.folder, self.roster, self.durable, self.problem, self.watch = folder, roster, durable, problem, Noted()
        threads = [threading.Thread(target=self.live, args=(i, (deadlines or {}).get(i)), daemon=True) for i in nodes]
        pump = threading.Thread(target=self.pump, daemon=True)
        for thread in (*threads, pump):
            thread.start()
        for thread in threads:
            thread.join(100)
            assert not thread.is_alive()
        self.stop.set()
        pump.join()

    def pump(self):
        idle = 0
        while not self.stop.is_set():
            if not self.network.deliver() and not self.network.moving:
                self.stop.wait(0.001)
                idle += 1
                if idle % 50 == 0:
                    self.network.expire()

    def live(self, me, deadline):
        with Store(self.folder / str(me), KEY, self.roster.digest, durable=self.durable) as place:
            try:
                one = Loop(
                    self.roster, me, cost_of(me, self.problem), place, self.network.link(me), CounterDraws(0), deadline=deadline,
                    watch=self.watch,
                )  # fmt: skip
                self.xs[me] = dict(one.run())
                place.erase()
            except Exception as error:
                self.errors[me] = error


def test_a_thread_a_node_waits_inside_the_step(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LINGER", 0.02)
    monkeypatch.setattr(ears, "PAUSES", (0.001, 0.02))
    task = task_of("private-gradient-tracking", 25, K=2)
    ran = Threads(tmp_path, roster_of(task))
    assert not ran.errors
    got = np.stack([[ran.xs[i][k] for i in range(5)] for k in range(26)])
    expected = eager.play(task).answers[..., 0]
    assert np.abs(got - expected).max() < 1e-12 * np.abs(expected).max()
    assert sorted(os.listdir(tmp_path / "0")) == ["ended", "lock"]
    with pytest.raises(StoreError, match="this run has ended"), Store(tmp_path / "0", KEY, ran.roster.digest):
        pass


def test_a_deadline_ends_the_run_for_all_and_it_goes_on_later(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LINGER", 0.05)
    monkeypatch.setattr(loop, "FAREWELL", 1.0)
    monkeypatch.setattr(loop, "REPORT", 0.05)
    monkeypatch.setattr(ears, "PAUSES", (0.001, 0.02))
    task = task_of("ab", 6)
    ran = Threads(tmp_path, roster_of(task), nodes=range(4), deadlines={0: 0.3}, durable=False)
    assert {i: type(error) for i, error in ran.errors.items()} == dict.fromkeys(range(4), Ended)
    assert "deadline of node 0" in str(ran.errors[0])
    assert ([4], "for iteration 0, exchange 0") in ran.watch.waits
    again = Threads(tmp_path, roster_of(task), durable=False)
    assert not again.errors
    got = np.stack([again.xs[i][6] for i in range(5)])
    assert np.abs(got - eager.play(task).answers[6, ..., 0]).max() < 1e-12


def test_all_stop_at_the_same_iteration_by_a_tolerance(tmp_path):
    task = task_of("ab", 400, stepsize=0.05, tolerance=1e-3)
    rig = Rig(tmp_path, roster_of(task), ahead=3)
    rig.play([(40, 2, 3), (90, 4, 5)])
    ends = {node.replay.saved.k for node in rig.loops.values()}
    rig.close()
    answers = eager.play(replace(task, tolerance=None)).answers
    moved = np.abs(np.diff(answers, axis=0)).max((1, 2, 3))
    quiet = next(k for k in range(5, 400, 5) if moved[k - 1] <= 1e-3)  # nobody moved when this window began
    assert ends == {quiet + 5}
    assert quiet < 300


# what is refused -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain():
    return roster_of(task_of("add-opt", 20))


def protocols(roster, ahead=1):
    """Nodes 0 (sender) and 1 (receiver), the first message of 0 committed and asked for."""
    sender, receiver = (Protocol(Frames(roster, me), roster.iterations, ahead) for me in (0, 1))
    parts = tuple(np.full((1, size, 1), 1.5) for _, size in sender.shapes.of(0)[0].agreed)
    payloads = sender.frames.payloads((0, 0), parts)
    assert sender.committed((0, 0), payloads) == []
    asks = {ask.sender: ask.question for ask in receiver.reached(0)}
    (answer,) = sender.asked(1, asks[0])
    return sender, receiver, asks, answer


def changed(frame, **fields):
    magic, version, kind, spare, digest, s, r = WHO.unpack_from(frame)
    k, phase, flags, size = WHERE.unpack_from(frame, WHO.size)
    given = {"magic": magic, "version": version, "kind": kind, "digest": digest, "s": s, "r": r, "k": k, "phase": phase}
    given |= {"flags": flags, "size": size, "body": frame[HEADER_BYTES:], **fields}
    who = WHO.pack(given["magic"], given["version"], given["kind"], spare, given["digest"], given["s"], given["r"])
    return who + WHERE.pack(given["k"], given["phase"], given["flags"], given["size"]) + given["body"]


def with_number(value, at=0):
    def change(frame):
        numbers = np.frombuffer(frame[HEADER_BYTES:], "<f8").copy()
        numbers[at] = value
        return changed(frame, body=numbers.tobytes())

    return change


BAD = {
    "empty": ("length", lambda f: b""),
    "short": ("length", lambda f: f[:40]),
    "cut": ("length", lambda f: f[:-1]),
    "long": ("length", lambda f: f + b"\0"),
    "lying": ("length", lambda f: changed(f, size=8)),
    "oversized": ("length", lambda f: changed(f, size=2**60)),
    "magic": ("magic", lambda f: changed(f, magic=b"HTTP")),
    "version": ("version", lambda f: changed(f, version=2)),
    "roster": ("roster", lambda f: changed(f, digest=bytes(32))),
    "sender": ("edge", lambda f: changed(f, s=2)),
    "receiver": ("edge", lambda f: changed(f, r=3)),
    "question": ("what", lambda f: changed(f, kind=3)),
    "unknown": ("what", lambda f: changed(f, kind=9)),
    "flag": ("place", lambda f: changed(f, flags=6)),
    "iteration": ("place", lambda f: changed(f, k=-2)),
    "exchange": ("place", lambda f: changed(f, phase=1)),
    "later": ("unasked", lambda f: changed(f, k=5)),
    "notice": ("length", lambda f: changed(f, kind=2)),
    "shape": ("shape", lambda f: changed(f, body=f[HEADER_BYTES:-8], size=32)),
    "nan": ("number", with_number(np.nan)),
    "infinite": ("number", with_number(-np.inf, 2)),
    "huge": ("number", with_number(-1.1e9, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused_and_changes_nothing(plain, name):
    _, receiver, _, answer = protocols(plain)
    reason, change = BAD[name]
    before = repr(vars(receiver.ins[0]))
    with pytest.raises(MessageRefused) as refused:
        receiver.came(0, change(answer.frame))
    assert refused.value.what == reason
    assert "1.5" not in str(refused.value)
    assert "1.1" not in str(refused.value)
    assert repr(vars(receiver.ins[0])) == before
    receiver.came(0, answer.frame)
    assert receiver.missing((0, 0)) == []
    assert receiver.came(0, answer.frame) is None
    with pytest.raises(MessageRefused, match="two messages for one place"):
        receiver.came(0, with_number(2.5)(answer.frame))


def test_questions_that_do_not_fit_are_refused(plain):
    sender, _, asks, answer = protocols(plain)
    question = asks[0]
    bad = (
        question[:-1], question + b"x", changed(question, k=-2), changed(question, flags=1), changed(question, kind=0), b"",
        changed(question, s=2), changed(question, r=2), changed(question, size=2**63),
    )  # fmt: skip
    for one in bad:
        with pytest.raises(MessageRefused):
            sender.asked(1, one)
    with pytest.raises(MessageRefused):
        sender.asked(3, question)  # no edge from 0 to 3
    assert len(question) == QUESTION_BYTES
    assert sender.asked(1, question) == [answer]  # asked again, answered again with the same bytes


def test_a_message_is_kept_until_the_next_iteration_is_asked_for(plain):
    sender, receiver, asks, answer = protocols(plain)
    receiver.came(0, answer.frame)
    assert list(sender.kept()) == [(0, 0)]
    (ask,) = receiver.reached(1)
    assert sender.asked(1, ask.question) == []  # parked: it is not there yet
    assert sender.kept() == {}
    with pytest.raises(MessageRefused, match="said to have"):
        sender.asked(1, asks[0])
    (later,) = sender.committed((1, 0), {1: answer.frame[HEADER_BYTES:]})
    assert receiver.came(0, later.frame) == (1, 0)


def test_a_receiver_with_more_than_was_ever_sent_stops_the_sender(plain):
    sender, receiver, *_ = protocols(plain)
    for k, phase in ((2, 0), (1, 1), (7, 0)):
        with pytest.raises(StoreError, match="old copy"):
            sender.asked(1, receiver.frames.ask(0, Question(k, phase, k + 1)))


def test_an_old_copy_of_a_store_draws_nothing_anew(tmp_path):
    """Somebody puts back yesterday's disk: its receivers say how far they are before it draws anything or commits a message."""
    rig = Rig(tmp_path, roster_of(task_of("private-gradient-tracking", 30)), 5, draws=node_draws, ahead=1)
    while rig.xs[1].keys() < set(range(8)):
        rig.turn()
    rig.die(1)
    copy = (tmp_path / "1" / "store").read_bytes()
    while rig.xs[1].keys() < set(range(20)):
        rig.turn()
    rig.die(1)
    (tmp_path / "1" / "store").write_bytes(copy)
    away = rig.chance.choice([0, 3])  # one of its receivers is not there for a while; the other has more, or both wait
    rig.die(away)
    rig.start(1)
    one, appended = rig.loops[1], rig.passed["append"]
    with pytest.raises((StoreError, Wait)):
        one.iterate()
    rig.start(away)
    with pytest.raises(StoreError, match="old copy"):
        one.iterate()
    assert not one.replay.journal.answers[one.replay.journal.written :]
    assert rig.passed["append"] == appended
    assert {len(frames) for frames in rig.received.values()} == {1}
    rig.close()


def test_a_node_that_was_stopped_draws_nothing_before_all_its_receivers_have_spoken(tmp_path):
    rig = Rig(tmp_path, roster_of(task_of("ab", 10)), 2)
    while rig.xs[1].keys() < set(range(4)):
        rig.turn()
    for me in (1, 3):  # 1 sends to 0, 2 and 3
        rig.die(me)
    rig.start(1)
    with pytest.raises(Wait):
        rig.loops[1].iterate()
    assert rig.loops[1]._whom() == [3]
    rig.start(3)
    assert rig.loops[1]._silent() == []
    rig.play()
    rig.close()


def test_a_node_whose_messages_are_all_made_waits_for_nobody_to_speak(tmp_path):
    """At the very end its receivers may have left."""
    rig = Rig(tmp_path, roster_of(task_of("ab", 10)), 2)
    while 1 not in rig.loops or rig.loops[1].protocol.place != (10, 0):
        rig.turn()
    assert rig.loops[1].replay.saved.k == 9
    for me in range(5):
        if me in rig.loops:
            rig.die(me)
    rig.start(1)
    assert rig.loops[1]._silent() == [0, 2, 3]
    rig.loops[1]._wait = None  # who calls it fails
    with pytest.raises(Wait):
        rig.loops[1].iterate()
    rig.close()


def test_what_two_nodes_draw_together_is_never_drawn_again_in_another_run_of_the_roster(tmp_path):
    """Stores and results are gone and all begin anew: other masks. A node that is stopped and goes on has the same."""
    roster = roster_of(task_of("ab", 10), private=PRIVATE)
    draw = lambda rig, me: rig.loops[me].replay.draws.between(np, WORDS, Stream(3), 0, [0], [1], 6, (0,))[0].tobytes()
    first, second = (Rig(tmp_path / name, roster, draws=node_draws) for name in ("first", "second"))
    found = []
    for rig in (first, second):
        for me in range(5):
            rig.start(me)
        found.append(draw(rig, 0))
        assert draw(rig, 1) == found[-1]
    assert found[0] != found[1]
    for me in (0, 1):
        first.die(me)
    first.start(0)  # alone: what it knew of its neighbour is on its disk
    assert draw(first, 0) == found[0]
    first.close()
    second.close()


def test_a_node_that_begins_a_second_time_is_refused(tmp_path):
    """Its store is gone; who has met its first start says so, and it draws nothing that the first one drew."""
    watch = Noted()
    rig = Rig(tmp_path, roster_of(task_of("ab", 10), private=PRIVATE), 3, draws=node_draws, watch=watch)
    while rig.xs[1].keys() < set(range(4)):
        rig.turn()
    rig.die(1)
    (tmp_path / "1" / "store").unlink()
    for me in (0, 2, 3, 4):
        rig.die(me)
        rig.start(me)
    rig.start(1)
    one = rig.loops[1]
    assert "second time" in rig.loops[0].met(1, *one.told(0))
    with pytest.raises(StoreError, match="does not remember sending them"):
        one.iterate()
    rig.close()


def test_after_a_restart_nothing_is_served_that_nobody_needs(tmp_path):
    rig = Rig(tmp_path, roster_of(task_of("ab", 40)), 4, ahead=16)
    while rig.xs[1].keys() < set(range(20)):
        rig.turn()
    rig.go_on(1)
    before = rig.loops[1].protocol
    kept, needs = before.kept(), before.needs
    assert min(needs.values()) > 10
    rig.die(1)
    rig.start(1)
    after = rig.loops[1].protocol
    assert after.kept().keys() >= kept.keys()
    assert min(after.needs.values()) >= max(needs.values()) - 3
    assert min(k for k, _ in after.kept()) >= min(after.needs.values())
    with pytest.raises(MessageRefused, match="said to have"):
        after.asked(2, rig.loops[2].protocol.frames.ask(1, Question(0, 0, 1)))
    rig.close()


def test_masks_together_only_where_there_is_a_link_to_agree_on_it():
    masked = (("aggregate-only", ()),)
    task = task_of("ab", 5, sv.Graph(5, [*DIGRAPH.edges, (2, 1), (0, 3)]), mechanisms=("aggregate-only",))
    with pytest.raises(ParameterError, match="no link between them"):
        planned(replace(roster_of(task), mechanisms=masked), cost_of(0))
    whole = task_of("ab", 5, sv.graphs.complete(5), mechanisms=("aggregate-only",))
    assert planned(roster_of(whole), cost_of(0)).mechanisms


def test_a_run_that_was_begun_is_not_begun_again_without_its_store(tmp_path):
    used, digest = tmp_path / "used", bytes(32)
    with Store(tmp_path / "a", KEY, digest, used=used) as place:
        place.begun()
    with Store(tmp_path / "a", KEY, digest, used=tmp_path / "none") as place:
        place.rewrite([[b"record 0"]])
    with pytest.raises(StoreError, match="begun before and its store is gone"), Store(tmp_path / "b", KEY, digest, used=used):
        pass
    with Store(tmp_path / "a", KEY, digest, used=used), Store(tmp_path / "b", KEY, bytes([1]) * 32, used=used) as other:
        other.begun()
    assert used.stat().st_mode & 0o777 == 0o600
    assert used.read_text().split() == [digest.hex(), "01" * 32]


def test_a_cost_that_changed_on_the_way_is_refused(tmp_path):
    roster = roster_of(task_of("ab", 6))
    rig = Rig(tmp_path, roster, hashed=b"mine")
    rig.start(0)
    rig.die(0)
    rig.start(0)
    rig.die(0)
    rig.options["hashed"] = b"another"
    with pytest.raises(StoreError, match="is not what it was when this run began"):
        rig.start(0)
    rig.close()


def test_fuzzed_frames_crash_nothing_and_change_nothing():
    """A hundred thousand; `python -m bench.soak` does a million."""
    sender, receiver, asks, answer = protocols(roster_of(task_of("ab", 20)))
    receiver.came(0, answer.frame)
    receiver.came(0, changed(answer.frame, phase=1))
    assert fuzz(sender, receiver, asks[0], answer.frame, 100_000) > 99_000


def fuzz(sender, receiver, question, frame, count, seed=0):
    """Mutated frames and questions; how many were refused. Everything else was a repetition, and nothing has changed."""
    chance, refused = random.Random(seed), 0
    there = lambda: (repr(vars(receiver.ins[0])), receiver.k, receiver.stopped)
    state = lambda: (*there(), repr(sender.kept()), sender.outs[1].needs, sender.place)
    before = state()
    for i in range(count):
        target, other, original = (receiver.came, 0, frame) if i % 4 else (sender.asked, 1, question)
        mutated = bytearray(original)
        for _ in range(1 + i % 3):
            mutated[chance.randrange(len(mutated))] ^= 1 << chance.randrange(8)
        if i % 7 == 0:
            mutated = mutated[: chance.randrange(len(mutated))]
        elif i % 11 == 0:
            mutated += bytes(chance.randrange(64))
        try:
            target(other, bytes(mutated))
        except MessageRefused:
            refused += 1
        except StoreError:  # a question for what was never sent: the node would stop, and has changed nothing
            refused += 1
    assert state() == before
    return refused


def test_a_step_that_sends_what_was_not_agreed_is_stopped_at_home(tmp_path):
    task = task_of("ab", 5)
    other = replace(roster_of(task), payloads=((-1, ()), (0, ((("float64", 3),), (("float64", 2),)))))
    with pytest.raises(RunError, match="the step sends 2 float64, but the roster says 3 float64"):
        Rig(tmp_path / "a", other).play()
    small = roster_of(task, magnitude=1e-3)
    with pytest.raises(RunError, match=r"larger than the agreed 0\.001"):
        Rig(tmp_path / "b", small).play()


def test_rosters_name_what_differs(plain):
    assert Roster.of(plain.canonical) == plain
    assert Roster.of(plain.canonical).digest == plain.digest
    assert plain.difference(plain) is None
    edges = plain.graphs[0]
    for change, named in (
        ({"iterations": 21}, "iterations: 20 here, 21 there"),
        ({"iterations": 20.0}, "iterations: 20 here, 20.0 there"),
        ({"graphs": ((*edges, (0, 2)),)}, "graphs[0]: 8 here, 9 there; (0, 2) only there"),
        ({"keys": (*plain.keys[:4], "f")}, "keys[4]"),
        ({"parameters": (("C", "paper"),)}, "parameters.C: 'uniform' here, 'paper' there"),
    ):
        other = replace(plain, **change)
        assert named in plain.difference(other)
        assert other.digest != plain.digest
    with pytest.raises(ParameterError, match="one a node and no two the same"):
        replace(plain, fingerprints=("a",) * 5)
    with pytest.raises(ParameterError, match="colour"):
        Roster.of(plain.canonical[:-1] + b',"colour":1}')


def test_a_cost_that_is_not_the_roster_s_is_refused(tmp_path, plain):
    for cost, said in ((P, "5 nodes"), (sv.problems.estimation(n=1, d=3, seed=0), "d = 3")):
        with pytest.raises(ProblemError, match=said):
            Loop(plain, 0, cost, Store(tmp_path, KEY, plain.digest), Network().link(0), CounterDraws(0))


# the store -------------------------------------------------------------------------------------------------------------


def written(folder, records=3, digest=bytes(32), durable=True):
    with Store(folder, KEY, digest, durable=durable) as place:
        place.rewrite([])
        for i in range(records):
            place.append([b"record %d" % i, bytes(100)])
    return folder / "store"


def records_of(folder, key=KEY, digest=bytes(32)):
    with Store(folder, key, digest) as place:
        return [record[:8] for record in place.records()]


def test_a_store_gives_back_what_was_committed_and_hides_it(tmp_path):
    path = written(tmp_path / "a")
    assert records_of(tmp_path / "a") == [b"record 0", b"record 1", b"record 2"]
    assert b"record" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_a_damaged_or_foreign_store_is_refused(tmp_path):
    path = written(tmp_path / "a")
    good = path.read_bytes()
    for at in [*range(0, log.START, 7), *range(log.START, len(good), 11)]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(StoreError, match=r"damaged|cut short|another run"):
            records_of(tmp_path / "a")
    for size in range(0, len(good), 13):
        path.write_bytes(good[:size])
        with pytest.raises(StoreError, match=r"damaged|cut short"):
            records_of(tmp_path / "a")
    path.write_bytes(good)
    with pytest.raises(StoreError, match="another key"):
        records_of(tmp_path / "a", key=bytes(32))
    with pytest.raises(StoreError, match="another run"):
        records_of(tmp_path / "a", digest=bytes([1]) * 32)


def test_what_lies_behind_the_mark_counts_if_it_is_whole(tmp_path):
    path = written(tmp_path / "a", 2)
    short = path.read_bytes()
    with Store(tmp_path / "b", KEY, bytes(32)) as place:
        place.rewrite([])
        place.append([b"record 0"])
        head = (tmp_path / "b" / "store").read_bytes()[: log.START]
        place.append([b"record 1"])
    whole = (tmp_path / "b" / "store").read_bytes()
    for size in range(len(whole) - 30, len(whole) + 1):  # the mark did not move: a kill before it
        (tmp_path / "b" / "store").write_bytes(head + whole[log.START : size])
        assert records_of(tmp_path / "b") == [b"record 0", b"record 1"][: 1 + (size == len(whole))]
    assert len(short) > log.START


def test_one_process_a_store_and_no_append_before_a_new_log(tmp_path):
    with Store(tmp_path, KEY, bytes(32)) as place:
        with pytest.raises(StoreError, match="a node runs once"):
            Store(tmp_path, KEY, bytes(32)).__enter__()
        with pytest.raises(StoreError, match="rewrite"):
            place.append([b"x"])
    with pytest.raises(StoreError, match="32 bytes"):
        Store(tmp_path, b"short", bytes(32))


def test_a_full_disk_is_named_and_what_was_committed_stays(tmp_path, monkeypatch):
    with Store(tmp_path, KEY, bytes(32)) as place:
        place.rewrite([])
        place.append([b"record 0"])

        def full(file, pieces, at):
            os.pwrite(file, b"a part of it", at)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwritev", full)
        for write in (lambda: place.append([b"record 1"]), lambda: place.rewrite([[b"record 9"]])):
            with pytest.raises(StoreError, match=r"No space left on device.*make room"):
                write()
        monkeypatch.undo()
        place.append([b"record 2"])
    assert records_of(tmp_path) == [b"record 0", b"record 2"]


def test_a_store_does_not_grow(tmp_path):
    with Store(tmp_path, KEY, bytes(32), durable=False) as place:
        place.rewrite([])
        largest = 0
        for _ in range(20_000):
            place.append([bytes(500)])
            if place.heavy:
                place.rewrite([[bytes(500)]])
            largest = max(largest, place._log.end)
        assert largest < 1.1 * store.SMALL
        assert len(os.listdir(tmp_path)) == 2


def test_an_erased_store_opens_no_more(tmp_path):
    with Store(tmp_path, KEY, bytes(32)) as place:
        place.rewrite([[b"record 0"]])
        link = tmp_path.parent / "kept"
        os.link(tmp_path / "store", link)  # what a disk may keep
        place.erase()
    assert link.read_bytes() == b""
    assert not (tmp_path / "store").exists()


def test_keys_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    path, text = tmp_path / "key", new_key()
    path.write_text(text)
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        read_key(path)
    path.chmod(0o600)
    monkeypatch.setenv("STORE", text)
    assert read_key(path) == read_key("env:STORE") == bytes.fromhex(text)
    for wrong in ("env:NOTHING", tmp_path / "none"):
        with pytest.raises(StoreError):
            read_key(wrong)
    monkeypatch.setenv("STORE", text[:-1] + "z")
    with pytest.raises(StoreError, match="64 hexadecimal digits") as refused:
        read_key("env:STORE")
    assert text[:8] not in str(refused.value)


def test_states_come_back_to_the_last_bit():
    rng = np.random.default_rng(0)
    value = (
        Twice(rng.normal(size=(1, 3, 1)), np.full((2, 1, 1), 2**63 + 1, np.uint64), np.arange(5, dtype=np.uint8), 1.5, None),
        [None, True, False, -7, 2**200, -(2**90), 0.1, np.float64(0.3), "word", b"\0\1", (), [], np.zeros((0, 4, 1))],
    )
    data = b"".join(encode(value))
    back = decode(data, {"Twice": Twice})
    assert b"".join(encode(back)) == data
    assert type(back[0]) is Twice
    assert back[0].v.dtype == np.uint64
    for cut in range(len(data)):
        with pytest.raises(StoreError):
            decode(data[:cut], {"Twice": Twice})
    with pytest.raises(StoreError, match="holds a Twice"):
        decode(data)
    for strange in ({1: 2}, np.array(["a"]), object()):
        with pytest.raises(StoreError, match="cannot be written"):
            encode(strange)


def test_no_planted_number_is_found_anywhere(tmp_path, monkeypatch, caplog, capfd):
    """A planted cost, start and key: not in a file, a log, an output, an exception or a repr."""
    plant = 12345.678987
    values = np.full((5, 2), plant) + np.arange(10).reshape(5, 2)
    problem = sv.problems.average(values)
    roster = roster_of(task_of("ab", 6, problem=problem), private=PRIVATE)
    watch, said = Noted(), []
    rig = Rig(tmp_path, roster, 2, problem=problem, draws=node_draws, watch=watch, x0=values[0])
    files = b""
    for turn in range(60):
        rig.turn()
        me = turn % 5
        files += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        if me in rig.loops:
            rig.loops[me].came(0, b"strange")
            said += [repr(rig.loops[me].replay.draws.draws), repr(rig.loops[me]), repr(rig.stores[me])]
    small = replace(roster, magnitude=1.0)
    with pytest.raises(RunError) as stopped:
        Rig(tmp_path / "small", small, problem=problem, x0=values[0]).play()
    said += [str(stopped.value), *watch.refusals, caplog.text, *capfd.readouterr()]
    assert watch.refusals
    assert len(files) > 10_000
    rig.close()
    sought = [np.float64(v).tobytes() for v in values.ravel()] + [str(plant)[:7].encode(), KEY, KEY.hex().encode(), *PRIVATE]
    everything = files + "\n".join(said).encode()
    assert not [one for one in sought if one in everything]
    assert any(sought[0] in frame for frames in rig.received.values() for frame in frames)  # the search finds what is there


# draws -----------------------------------------------------------------------------------------------------------------


def test_both_ends_of_an_edge_draw_the_same_and_nobody_else(plain):
    roster = replace(plain, keys=tuple(public(key).hex() for key in PRIVATE))
    zero, one, two = (node_draws(i, roster) for i in range(3))
    stream, edges = Stream(3, 1), (np.array([0, 1]), np.array([1, 0]))
    for law in (UNIT, WORDS, Law("normal", 2.0), Law("cauchy")):
        a, b = (node.between(np, law, stream, 4, *edges, 6, (0, 3)) for node in (zero, one))
        assert a[0].shape == (2, 6, 1)
        assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
        assert not np.array_equal(a[0][0], a[0][1])  # an edge and its way back
        assert not np.array_equal(a[0], a[1])
    draw = lambda node, stream=stream, k=4, edge=(0, 1): node.between(np, WORDS, stream, k, [edge[0]], [edge[1]], 6, (0,))[0]
    others = [
        draw(zero, k=5), draw(zero, Stream(3, 2)), draw(zero, Stream(4, 1)), draw(zero, edge=(1, 0)), draw(zero, edge=(0, 2)),
        draw(node_draws(0, replace(roster, run="another"))), draw(zero, k=-1), draw(zero, edge=(0, 0)),
    ]  # fmt: skip
    assert len({x.tobytes() for x in [draw(zero), *others]}) == 9
    with pytest.raises(ParameterError, match="cannot know"):
        draw(two)
    with pytest.raises(TypeError):
        __import__("pickle").dumps(zero)
    assert not set("0123456789abcdef" * 2) <= set(repr(zero))


def test_what_outlasts_a_run_is_the_same_again_and_hangs_on_no_roster(plain):
    roster = replace(plain, keys=tuple(public(key).hex() for key in PRIVATE))
    zero, again, one = node_draws(0, roster), node_draws(0, replace(roster, run="another")), node_draws(1, roster)
    for who in ("four", "between", "common"):
        draw = lambda node, label=7, who=who: getattr(node.kept(label), who)(np, WORDS, Stream(5), -1, [0], [1], 6, (0,))[0]
        assert np.array_equal(draw(zero), draw(again))
        assert not np.array_equal(draw(zero), draw(zero, 8))
        assert np.array_equal(draw(zero), draw(one)) == (who != "four")  # that one is its own


def test_streams_are_uniform_and_the_system_s_draws_never_repeat(plain):
    roster = replace(plain, keys=tuple(public(key).hex() for key in PRIVATE))
    zero = node_draws(0, roster)
    (u,) = zero.between(np, UNIT, Stream(3), 0, [0], [1], 20_000, (2,))
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / 20_000) ** 0.5
    assert ((u > 0) & (u < 1)).all()
    bits = zero.between(np, WORDS, Stream(3), 0, [0], [1], 4000, (1,))[0].ravel()
    ones = sum(int(word).bit_count() for word in bits)
    assert abs(ones - 32 * 4000) < 5 * (16 * 4000) ** 0.5
    mine = [zero.four(np, Law(), Stream(3), 0, [0], [0], 5, (0,))[0].tobytes() for _ in range(3)]
    assert len(set(mine)) == 3
    common = [node.common(np, UNIT, Stream(3), 2, [0], [0], 5, (0,))[0] for node in (zero, node_draws(3, roster))]
    assert np.array_equal(*common)


def test_frames_have_the_size_that_is_agreed(plain):
    frames = Frames(plain, 0)
    frame = frames.write(1, (0, 0), MOVING, bytes(40))
    assert len(frame) == limit(plain) == HEADER_BYTES + 40
    assert Frames(plain, 1).read(0, frame).flags == MOVING


def test_nothing_kept_is_never_begun_twice(tmp_path):
    digest = bytes(32)
    with store.MemoryStore(tmp_path, KEY, digest) as place:
        place.rewrite([[b"secret"]])
        place.append([b"secret"])
        assert list(place.records()) == []
        assert not place.heavy
    assert sorted(file.name for file in tmp_path.iterdir()) == ["begun", "lock"]
    with pytest.raises(StoreError, match="sottovoce again"), store.MemoryStore(tmp_path, KEY, digest):
        pass
    with store.MemoryStore(tmp_path, KEY, bytes(31) + b"1") as place:  # another run
        place.erase()
    with pytest.raises(StoreError, match="has ended"), store.MemoryStore(tmp_path, KEY, bytes(31) + b"1"):
        pass
    assert isinstance(store.store_of("memory", tmp_path, KEY, digest), store.MemoryStore)
    assert [store.store_of(word, tmp_path, KEY, digest).durable for word in ("disk", "process")] == [True, False]
