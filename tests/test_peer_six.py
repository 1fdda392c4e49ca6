"""Protections that keep the optimum, on real nodes: sums over processes that die at every moment, masks over bad links."""

from __future__ import annotations

import csv
import json
import runpy
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.draws import CounterDraws
from sottovoce.errors import ParameterError

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from sottovoce.peer.crew import Crew
from sottovoce.peer.draws import NodeDraws
from sottovoce.peer.federation import Federation
from sottovoce.peer.plan import planned
from sottovoce.peer.rehearsal import whole
from sottovoce.peer.replay import Replay

HERE = Path(__file__).parent
nodes, core = (SimpleNamespace(**runpy.run_path(str(HERE / name))) for name in ("nodes.py", "test_peer_core.py"))

# opened sums over processes that die -------------------------------------------------------------------------------------

FATES = {  # every moment, the first iteration and the last, several nodes at once and one node twice
    "node-0": ("0:0:drawn", "4:1:offered"),
    "node-1": ("0:1:written", "5:2:heard"),
    "node-2": ("1:2:offered",),
    "node-3": ("2:0:heard", "9:0:drawn"),
    "node-4": ("3:1:drawn", "9:2:written"),
    "node-5": ("3:1:written", "0:0:finished"),
}


class Mortal(Crew):
    """Processes that kill themselves where their fates say, and are started again each time."""

    def command(self, name):
        return [sys.executable, str(HERE / "dying.py"), str(self.files[name].folder / "node.toml"), *self.told(name)]

    def told(self, name):
        return str(self.folder / f"{name}.notes"), *FATES[name]

    def revive(self, patience):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            codes = {name: process.poll() for name, process in self.processes.items()}
            if all(code == 0 for code in codes.values()):
                return
            for name, code in codes.items():
                if code == -signal.SIGKILL:
                    self.kill(name)  # it is dead: this reads what it said and counts it
                    self.start(name)
                elif code not in (None, 0):
                    raise AssertionError(f"{name} ended with {code}: {self._said(name)}")
            time.sleep(0.02)
        raise AssertionError(f"not at the end after {patience} s: {[(r['name'], r['iteration']) for r in self.rows()]}")

    def notes(self):
        """(who noted it, its words)."""
        for name in self.federation.names:
            for line in Path(self.told(name)[0]).read_text().splitlines():
                yield name, line.split()


@pytest.fixture(scope="module")
def breast_cancer():
    """scikit-learn's data, columns standardised by a private mean and variance, and the coefficients that it finds itself."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    fitted = LogisticRegression(C=1.0, tol=1e-13, solver="newton-cholesky").fit((X - X.mean(0)) / X.std(0), y)
    standard = sv.standardise(X, 6, sv.graphs.cycle(6, two_way=True)).X
    return standard, y, np.append(fitted.coef_[0], fitted.intercept_)


def written(file, X, y):
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow([*(f"x{j}" for j in range(X.shape[1])), "benign"])
        rows.writerows([*map(repr, x.tolist()), int(label)] for x, label in zip(X, y, strict=True))


@pytest.mark.timeout(300)
def test_newton_on_six_processes_that_die_at_every_moment(tmp_path, breast_cancer):
    X, y, wanted = breast_cancer
    written(tmp_path / "records.csv", X, y)
    problem = f"logistic:n=6,csv={tmp_path / 'records.csv'},target=benign,intercept=true"
    graph = sv.graphs.cycle(6, two_way=True)
    nodes.federation(tmp_path / "six", graph, "private-newton", problem=problem, stepsize=1.0, iterations=10)
    with Mortal(tmp_path / "six") as crew:
        for name in crew.federation.names:
            crew.start(name)
        crew.revive(240)
        x, noted = crew.answers(), list(crew.notes())
    assert np.abs(x - wanted).max() < 1e-8
    assert (x == x[0]).all()  # the same opened words at every node
    assert [words[1] for _, words in noted if words[0] == "died"] == [fate for fates in FATES.values() for fate in fates]
    assert crew.kills == 11
    once_and_for_all(noted, graph, iterations=10, exchanges=3)


def once_and_for_all(noted, graph, iterations, exchanges):
    """No mask is drawn twice, no message is said in two ways, whatever died when."""
    masks, messages, ends = defaultdict(set), defaultdict(set), defaultdict(set)
    for name, (kind, *words) in noted:
        if kind == "mask":
            *where, digest = words
            masks[tuple(where)].add(digest)
            ends[tuple(where)].add(name)
        elif kind == "said":
            messages[tuple(words[:-1])].add(words[-1])
    assert {len(found) for found in masks.values()} == {1}  # both ends, and every life of each, have the same
    assert len({digest for (digest,) in masks.values()}) == len(masks) == iterations * len(graph.edges)  # and no two places
    assert {len(names) for names in ends.values()} == {2}
    assert {len(found) for found in messages.values()} == {1}
    payloads = {tuple(map(int, (s, r, k, e))) for s, r, what, k, e in messages if what == "0"}
    assert payloads == {(s, r, k, e) for s, r in graph.edges for k in range(iterations) for e in range(exchanges)}


# masks over bad links, from the keys of the two ends ---------------------------------------------------------------------

BAD = {"lose": 0.05, "double": 0.1, "end": 0.01}
ALL = sv.graphs.complete(5)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((100, 2))
LOGISTIC = sv.problems.logistic(X, (X @ [1.0, -0.5] + 0.5 * RNG.standard_normal(100) > 0).astype(int), 5)


class Rig(core.Rig):
    """More is on its way at once on twenty edges."""

    def turn(self):
        for _ in range(self.chance.randrange(60)):
            self.network.deliver()
        super().turn()


def rig_of(folder, method, mechanisms, problem=core.P, seed=0, stepsize=0.02, iterations=40, graph=ALL, loop=None, **parameters):
    """Five nodes on the memory link, each with its own X25519 streams and its own randomness; messages are lost and doubled."""
    task = core.task_of(method, iterations, graph, problem, None, stepsize, mechanisms, **parameters)
    roster = core.roster_of(task, private=core.PRIVATE)
    return Rig(folder, roster, seed, core.node_draws, problem, BAD, **(loop or {}))


def path(rig, iterations):
    return np.stack([[rig.xs[i][k] for i in range(5)] for k in range(iterations + 1)])


KILLS = ((20, 0, 3), (60, 3, 1), (90, 1, 7), (90, 2, 0))  # turn, node, how many points it still passes


def test_function_masks_are_on_the_costs_and_cancel(tmp_path):
    """What the nodes play is gradient tracking, written out here, on the masked costs; their sum is what it was."""
    masks, steps, graph = sv.mechanism("function-masks", scale=1.0), 40, core.DIGRAPH
    rig = rig_of(tmp_path, "gradient-tracking", masks, iterations=steps, graph=graph)
    rig.play(KILLS)
    hidden = [rig.loops[i].replay.saved.ms[0] for i in range(5)]
    H, b = np.stack([m.H[0, ..., 0] for m in hidden]), np.stack([m.b[0, :, 0] for m in hidden])
    rig.close()
    true, at0 = core.P.hessian(np.zeros(2)), core.P.gradient(np.zeros(2))
    assert np.abs(H - true).max((1, 2)).min() > 0.1  # nobody's cost is as it was
    assert np.abs(H.sum(0) - true.sum(0)).max() < 1e-12
    assert np.abs(b.sum(0) + at0.sum(0)).max() < 1e-12
    assert {len(frames) for frames in rig.received.values()} == {1}
    assert len(rig.deaths) == len(KILLS)
    found = path(rig, steps)
    assert np.abs(found - tracked(graph, found[0], H, b, 0.02, steps)).max() < 1e-12 * np.abs(found).max()


def tracked(graph, x, H, b, stepsize, steps):
    """Gradient tracking with uniform weights, dense."""
    gradient = lambda x: np.einsum("nij,nj->ni", H, x) - b
    links = np.eye(5)
    for sender, receiver in graph.edges:
        links[receiver, sender] = 1
    R, C, found = links / links.sum(1, keepdims=True), links / links.sum(0), [x]
    g = y = gradient(x)
    for _ in range(steps):
        x = R @ (x - stepsize * y)
        new = gradient(x)
        y, g = C @ (y + new - g), new
        found.append(x)
    return np.stack(found)


def test_masks_on_other_costs_begin_at_one_point_and_are_those_of_a_rehearsal(tmp_path):
    masks = sv.mechanism("function-masks", kind="matern", scale=1.0, amplitude=1.0, features=200)
    task = core.task_of("gradient-tracking", 12, problem=LOGISTIC, mechanisms=masks)
    rig = core.compare(tmp_path, task, LOGISTIC, **BAD)
    assert len({rig.xs[i][0].tobytes() for i in range(5)}) == 1


def test_one_vector_where_there_were_two_on_nodes(tmp_path):
    task = core.task_of("private-gradient-tracking", 12, mechanisms=("quiet",), K=2)
    rig = core.compare(tmp_path, task, **BAD)
    assert rig.roster.payloads[-1][1][0] == (("float64", 2),)


def words_of(rig, edge, exchange, iterations):
    """Every word that crossed an edge."""
    found = []
    for (s, r, what, (k, e)), frames in rig.received.items():
        if (s, r) == edge and what[1] == 0 and e == exchange and 0 <= k < iterations:
            (frame,) = frames
            found.append(np.frombuffer(frame[core.HEADER_BYTES :], "<u8"))
    return np.concatenate(found)


@pytest.mark.parametrize("method", ["gradient-tracking", "add-opt"])
def test_masked_words_change_no_bit_and_are_uniform(tmp_path, method):
    """The run on masked words is its bare fixed-point twin, bit for bit, whatever is lost, doubled or dies."""
    steps, runs, words = 30, {}, {}
    for masks, killed in (("absent", ()), ("pairwise", KILLS)):
        layer = sv.mechanism("aggregate-only", masks=masks)
        options = {"x0": np.array([0.5, -1.0])}
        rig = rig_of(tmp_path / masks, method, layer, seed=len(killed), iterations=steps, loop=options)
        rig.play(killed)
        assert len(rig.deaths) == len(killed)
        runs[masks], words[masks] = path(rig, steps), {edge: words_of(rig, edge, 0, steps) for edge in ALL.edges}
        rig.close()
        assert {len(frames) for frames in rig.received.values()} == {1}
    assert np.array_equal(runs["absent"], runs["pairwise"])
    for edge in ALL.edges:
        assert uniform(words["pairwise"][edge]) > 1e-7
        assert uniform(words["absent"][edge]) < 1e-10


def uniform(words):
    return stats.kstest(words / 2.0**64, "uniform").pvalue


def test_an_opened_sum_is_exact_to_the_bit(tmp_path):
    """Whole numbers, so that the sum without masks is known to the bit."""
    values = np.random.default_rng(7).integers(-(2**30), 2**30, size=(5, 3)).astype(float)
    problem = sv.problems.total(values)
    for carry in ("flood", "tree"):
        rig = rig_of(tmp_path / carry, "private-sum", (), problem, stepsize=1.0, iterations=1, graph=core.DIGRAPH, carry=carry)
        final = rig.play(((1, 0, 2), (3, 2, 1)))
        rig.close()
        assert np.array_equal(final, np.broadcast_to(values.sum(0), (5, 3)))
        assert {len(frames) for frames in rig.received.values()} == {1}


# by the command line -----------------------------------------------------------------------------------------------------


def call(capsys, *words):
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


MATERN = "function-masks:kind=matern,features=4000"
FEDERATIONS = {"function-masks:scale=0.5": "estimation:d=2", MATERN: "logistic:d=2", "aggregate-only": "estimation:d=2"}


@pytest.mark.parametrize("layer", FEDERATIONS)
def test_a_federation_behind_a_mechanism_is_founded_and_runs(tmp_path, capsys, layer):
    folder = tmp_path / "three"
    common = "--graph", "complete:3", "--algorithm", "gradient-tracking", "--port", 0, "--iterations", 400
    code, out, err = call(capsys, "init", folder, *common, "--problem", FEDERATIONS[layer], "--mechanism", layer, "--json")
    assert code == 0, err
    assert ("draws of masks like the nodes' own" in json.loads(out)["advice"]) == layer.startswith("function")
    facts = Federation.read(folder / "federation.toml")
    members = [nodes.Member(folder, name, None) for name in facts.names]
    for member in members:
        keys = tuple(bytes.fromhex(key) for key in facts.roster.keys)
        member.draws = NodeDraws(member.me, member.file.load()[1].secret, keys, facts.roster.digest, facts.roster.seed)
    nodes.together(members)
    x, exact = np.stack([member.x[400] for member in members]), whole(folder)[1].optimum
    assert np.abs(x - exact).max() < 1e-9
    if layer == MATERN:
        assert len({member.x[0].tobytes() for member in members}) == 1
        with pytest.raises(ParameterError, match="leave this node's own start out"):
            Replay(planned(facts.roster, members[0].cost), 0, members[0].cost, CounterDraws(0), None, np.zeros(2))


WRONG = [
    ("function-masks", "logistic:d=2", "take kind='matern'"),
    (MATERN, "estimation:d=2", "take kind='quadratic'"),
    ("function-masks:kind=matern,features=100", "own:d=2", "counted out by 400 iterations"),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "problem", "said"), WRONG)
def test_masks_that_cannot_serve_are_refused_before_anything_is_written(tmp_path, capsys, layer, problem, said):
    common = "--graph", "complete:3", "--algorithm", "gradient-tracking", "--iterations", 400, "--stepsize", 0.01
    code, _, err = call(capsys, "init", tmp_path / "new", *common, "--problem", problem, "--mechanism", layer)
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert list(tmp_path.iterdir()) == []
