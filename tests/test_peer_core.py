"""One node as a process, without sockets: protocol, store, frames, draws and loop, through every order of events and any kill."""

import itertools
import os
import random

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.draws import CounterDraws
from sottovoce.peer import log, store
from sottovoce.peer.draws import NodeDraws
from sottovoce.peer.frame import WHERE, WHO
from sottovoce.peer.loop import Loop
from sottovoce.peer.memory import MemoryLink, Network
from sottovoce.peer.plan import agreed
from sottovoce.peer.replay import Wait
from sottovoce.peer.roster import Roster
from sottovoce.peer.store import Store
from sottovoce.simulate import eager
from sottovoce.simulate.task import prepare

P = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
DIGRAPH = sv.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1, 3), (2, 0)])  # irregular
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
            return False
        if not node.protocol.over:
            node.finish()
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
        ("dgd", sv.Graph(5, [*sv.graphs.star(5).edges, (1, 2), (2, 1)]), {}),
    ],
)
def test_sequences_fixed_weights_mechanisms_and_own_stepsizes_too(tmp_path, name, graph, options):
    compare(tmp_path, task_of(name, 12, graph, **options), lose=0.1, double=0.1, end=0.02)


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
    monkeypatch.setattr(store, "SMALL", 4096)  # so that logs are written anew on the way
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
    final = rig.play(fates(seed, 9, 90))
    rig.close()
    if not system:
        assert np.array_equal(final, undisturbed[name])
    assert {len(frames) for frames in rig.received.values()} == {1}
    sent = {(s, r, place) for s, r, what, place in rig.received if what[1] == 0}
    assert sent == {(s, r, (k, phase)) for s, r in DIGRAPH.edges for k in range(10) for phase in range(task.algorithm.exchanges)}
    return [place for _, place in rig.deaths]
