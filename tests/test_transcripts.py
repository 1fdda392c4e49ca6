"""Transcripts of real nodes: what each kept, number for number, and what those who pool it read of the others."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import threading
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import main
from sottovoce.errors import InputError, StoreError
from sottovoce.layout import layout
from sottovoce.simulate import eager
from sottovoce.tables import toml
from sottovoce.transcript import written
from sottovoce.view import WIRE, view_of

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from sottovoce.peer.frame import HEADER_BYTES
from sottovoce.peer.recorder import Recorder, erased

HERE = Path(__file__).parent
core = SimpleNamespace(**runpy.run_path(str(HERE / "test_peer_core.py")))

# on a memory link, against a simulation with the same draws ------------------------------------------------------------


class Rig(core.Rig):
    """Five nodes that keep their parts; whoever is killed may be killed while it keeps something, too."""

    def start(self, me):
        roster, cost = self.roster, core.cost_of(me, self.problem)
        recorder = Recorder(self.folder / str(me), self.part(me), core.KEY, roster, me, cost, durable=False)
        recorder.store.__class__ = Fragile
        recorder.store.rig, recorder.store.me = self, me
        self.recorders[me] = recorder.__enter__()
        self.options = {"recorder": recorder}
        super().start(me)

    @property
    def recorders(self):
        return self.__dict__.setdefault("kept", {})

    def part(self, me):
        return self.folder / str(me) / "transcript"

    def die(self, me):
        self.recorders.pop(me).__exit__()
        super().die(me)

    def transcripts(self):
        """What each has written down, read back."""
        for me, recorder in self.recorders.items():
            recorder.write(self.loops[me].replay.task)
            erased(self.folder / str(me))
        return [sv.Transcript.load(self.part(me)) for me in range(5)]


class Fragile(core.FragileStore):
    def __init__(self, *arguments, **options):
        raise AssertionError("made by Recorder")


def played(folder, task, kills=(), seed=0, **options):
    rig = Rig(folder, core.roster_of(task), seed, **options)
    rig.play(kills)
    found = rig.transcripts()
    rig.close()
    return found, rig


VALUES = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.0], [2.0, 2.0], [-1.0, 1.5]]
COMPLETE = sv.graphs.complete(5)
RUNS = [
    ("private-gradient-tracking", core.DIGRAPH, {"K": 3}),
    ("private-gradient-tracking", core.DIGRAPH, {"K": 2, "late": "fixed"}),
    ("gradient-tracking", core.DIGRAPH, {"R": "paper", "C": "paper", "mechanisms": ("secret-late-weights",)}),
    ("gradient-tracking", core.DIGRAPH, {"mechanisms": ("message-noise",)}),
    ("ab", core.DIGRAPH, {"mechanisms": ("function-masks",)}),
    ("ab-tv", core.SEQUENCE, {"R": "paper", "C": "paper"}),
    ("subgradient-push", core.DIGRAPH, {}),
    ("pdmm", core.TWO_WAY, {"stepsize": 1.0}),
    ("dgd", core.TWO_WAY, {"mechanisms": ("correlated-noise",)}),
    ("dgd", COMPLETE, {"mechanisms": ("aggregate-only",)}),
    ("private-gradient", COMPLETE, {}),
    ("private-sum", COMPLETE, {"problem": sv.problems.average(VALUES)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "graph", "options"), RUNS, ids=lambda value: value if isinstance(value, str) else "")
def test_parts_are_what_a_simulation_records_of_those_nodes(tmp_path, name, graph, options):
    task = core.task_of(name, 8, graph, **options)
    parts, _ = played(tmp_path, task, problem=options.get("problem", core.P))
    whole = written(task, eager.play(task))
    for who in ({0}, {3}, {1, 4}):
        mine = view_of(sv.pooled(*(parts[i] for i in sorted(who))), who)
        compare(mine, view_of(whole, who), who)


def test_on_a_link_that_the_schedule_leaves_out_nothing_is_said(tmp_path):
    """The frames themselves: zeros, so that a receiver which need not weigh a value does not learn it either."""
    task = core.task_of("ab-tv", 8, core.SEQUENCE, R="paper", C="paper")
    _, rig = played(tmp_path, task)
    said = {True: [], False: []}
    for (s, r, what, (k, _)), frames in rig.received.items():
        if what[1] == 0 and k >= 0:
            (frame,) = frames
            said[(s, r) in core.SEQUENCE.cycle[k % 2].edges].append(np.frombuffer(frame[HEADER_BYTES:], "<f8"))
    assert len(said[True]) == len(said[False]) == 8 * len(core.DIGRAPH.edges)
    assert all(np.all(numbers != 0) for numbers in said[True])
    assert not any(np.any(numbers) for numbers in said[False])


def compare(mine, theirs, who):
    """The same numbers and the same gaps; but what others drew is not here, even where a method takes it for known to all."""
    same = ("algorithm", "parameters", "mechanisms", "settled", "stepsize", "coordinates", "opens", "runs")
    assert {name: mine.header[name] for name in same} == {name: theirs.header[name] for name in same}
    assert mine.coalition == theirs.coalition == tuple(sorted(who))
    for kind in ("sent", "draws", "states"):
        assert set(getattr(mine, kind)) == set(getattr(theirs, kind)), kind
    largest, entries = 0.0, layout(theirs.graph)
    for key in sorted(theirs.sent):
        largest = equal(mine.sent[key], theirs.sent[key], largest)
    for k, leaves in theirs.states.items():
        for name, value in leaves.items():
            largest = equal(mine.states[k][name], value, largest)
    for key, d in theirs.draws.items():
        drawn = d.law != "constant" or theirs.header["parameters"].get("late") == "fixed"  # else it follows from the graph
        late = drawn and d.known == "all" and d.owner in ("receiver", "sender")
        assert mine.draws[key][:3] == (d.owner, "me" if late else d.known, d.law)
        told = d.known == "edge" and theirs.header["algorithm"] in ("pdmm", "dgd")  # by a message: the receiver has it there
        value = d.value
        if late or told:
            drew = {"receiver": entries.target, "sender": entries.source, "edge": entries.sender}[d.owner]
            value = np.where(np.isin(drew, sorted(who))[:, None, None], d.value, np.nan)
            assert 0 < np.isnan(value).sum() < value.size
        equal(mine.draws[key].value, value, 1.0)
    assert set(mine.costs) == set(theirs.costs)
    for i, cost in theirs.costs.items():
        for name, value in cost.items():
            np.testing.assert_allclose(mine.costs[i][name], value, rtol=1e-13)


def equal(mine, theirs, largest):
    """To 1e-12 of the largest number so far, gaps at the same places; to the last bit where numbers are whole."""
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    if theirs.dtype.kind != "f":
        np.testing.assert_array_equal(mine, theirs)
        return largest
    largest = max(largest, float(np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0)))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12 * max(largest, 1e-300))
    return largest


# kills, and a node that was told too late -------------------------------------------------------------------------------


def same(parts, others):
    for mine, theirs in zip(parts, others, strict=True):
        assert (mine.header, mine.edges) == (theirs.header, theirs.edges)
        for kind in ("sent", "draws", "states"):
            assert list(getattr(mine, kind)) == list(getattr(theirs, kind))
        for key in theirs.sent:
            np.testing.assert_array_equal(mine.sent[key], theirs.sent[key])
        for key, d in theirs.draws.items():
            assert mine.draws[key][:3] == d[:3]
            np.testing.assert_array_equal(mine.draws[key].value, d.value)
        for k, leaves in theirs.states.items():
            for name, value in leaves.items():
                np.testing.assert_array_equal(mine.states[k][name], value)


def test_kills_leave_no_gap_and_change_no_bit(tmp_path):
    task = core.task_of("private-gradient-tracking", 10, K=3)
    calm, _ = played(tmp_path / "calm", task, seed=1)
    deaths = []
    for seed in range(3):
        faulty = {"lose": 0.05, "double": 0.05, "end": 0.01}
        kills = [*core.fates(seed, 16, 120), (0, seed, 1), (0, seed + 1, 4)]  # two while a log is put in its place
        parts, rig = played(tmp_path / str(seed), task, kills, seed, network=faulty)
        same(parts, calm)
        deaths += rig.deaths
        assert not any((tmp_path / str(seed) / str(me) / "transcript" / "store").exists() for me in range(5))
    assert len(deaths) > 20
    assert {place for _, place in deaths} == set(core.PLACES)


def test_what_the_system_drew_is_what_was_sent(tmp_path):
    """With real randomness, over kills: each message that a node kept is what its own kept draws and state make of it."""
    task = core.task_of("private-gradient-tracking", 6, K=3)
    rig = Rig(tmp_path, core.roster_of(task, private=core.PRIVATE), 2, draws=core.node_draws)
    rig.play(core.fates(2, 6, 60))
    parts = rig.transcripts()
    rig.die(0)  # after its part was written, and before all was said
    rig.start(0)
    same(rig.transcripts(), parts)
    rig.close()
    whole = sv.pooled(*parts)
    entries = layout(whole.graph)
    for k in range(6):
        C, B, y, g, before = (
            *(whole.draws[name, k].value for name in "CB"), *(whole.states[k - 1][name] for name in "yg"), whole.states[k]["g"]
        )  # fmt: skip
        pushed = C * y[entries.source] + B * (before - g)[entries.source]
        np.testing.assert_allclose(whole.sent[k, 1], pushed[entries.edges], rtol=1e-9)
    assert not any(np.isnan(m).any() for m in whole.sent.values())


def test_half_a_transcript_is_refused(tmp_path):
    """A node that kept nothing in the first half of a run says so and does not go on as if it had."""
    task = core.task_of("ab", 6)
    rig = core.Rig(tmp_path, core.roster_of(task), 0)
    while rig.xs[2].get(3) is None:
        rig.turn()
    rig.close()
    late = Rig(tmp_path, core.roster_of(task), 0)
    with pytest.raises(StoreError, match=r'transcript = "on", but .* does not hold all iterations before'):
        late.start(2)
    late.close()


# parts that do not belong together --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ab(tmp_path_factory):
    parts, _ = played(tmp_path_factory.mktemp("ab"), core.task_of("ab", 12))
    return parts


def changed(part, key, row, by):
    sent = {k: np.array(m) for k, m in part.sent.items()}
    sent[key][row] += by
    return replace(part, sent=sent)


def test_parts_that_do_not_belong_together_are_refused(ab, tmp_path):
    other, _ = played(tmp_path, core.task_of("ab", 5))
    edge = ab[0].edges.index((0, 1))
    refused = [
        ((ab[0], ab[0]), "the part of node a was given twice"),
        ((ab[0], other[1]), "not belong to the same run: roster is"),
        ((ab[0], replace(ab[1], header={**ab[1].header, "run": "no"})), "same run: run is test in one and no in the other"),
        ((ab[0], changed(ab[1], (3, 0), edge, 1e-9)), r"contradict each other: message \(3, 0\)"),
        ((ab[0], sv.run("ab", core.P, core.DIGRAPH, iterations=5, record=True).transcript), "only the parts"),
        ((), "expected the parts of a run"),
        ((tmp_path,), "expected a folder with transcript.toml"),
    ]  # fmt: skip
    for parts, said in refused:
        with pytest.raises(InputError, match=said):
            sv.pooled(*parts)


def test_a_view_is_of_those_who_kept_something(ab):
    both = sv.pooled(ab[1], ab[3])
    assert both.nodes == (1, 3)
    assert view_of(both, {3}).coalition == (3,)
    for who, said in (({1, 2}, "the nodes b, c saw; here are those of b, d"), (WIRE, "wire-tapper, who hears all links")):
        with pytest.raises(InputError, match=said):
            view_of(both, who)
    with pytest.raises(InputError, match="wire-tapper"):
        sv.audit_transcript(both, wiretap=True)
    with pytest.raises(InputError, match="the nodes c saw"):
        sv.audit_transcript(both, curious=[{"c"}])
    assert {v.adversary for v in sv.audit_transcript(both, at_most=2).verdicts} == {(1,), (3,), (1, 3)}
    report = sv.audit_transcript(both)
    assert {(v.adversary, v.node) for v in report.verdicts} == {((1, 3), node) for node in (0, 2, 4)}
    assert report.facts["kind"] == "deployment"
    assert any("what b, d kept of the run is all there is" in line for line in report.assumptions)
    everybody = sv.audit_transcript(sv.pooled(*ab))  # together they have nobody left to look at
    assert {(v.adversary, v.node) for v in everybody.verdicts} == {((i,), j) for i in range(5) for j in range(5) if i != j}


def test_a_part_goes_to_a_file_and_back(ab, tmp_path):
    both = sv.pooled(ab[1], ab[3])
    same([sv.Transcript.load(both.save(tmp_path / "both"))], [both])
    assert {i: sorted(cost) for i, cost in sv.Transcript.load(tmp_path / "both").own.items()} == {1: ["H", "b"], 3: ["H", "b"]}
    assert "holds secrets" in (tmp_path / "both" / "transcript.toml").read_text().splitlines()[0]
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "both").iterdir()} == {0o600}


# from node.toml to the verdict ------------------------------------------------------------------------------------------


def call(capsys, *words):
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


def run_all(folder, names):
    """Every node of a folder, each in a thread."""
    failures = []

    def one(name):
        try:
            for _ in sv.Node(folder / name).run():
                pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


PUBLIC = tuple(word for name in "RACB" for word in ("--set", f"{name}=uniform"))  # late weights that follow from the graph
FOUNDED = ("--set", "K=2", *PUBLIC, "--port", "0", "--iterations", "60", "--stepsize", "0.02")


def read(capsys, *folders):
    """What is read, and of whom, by the nodes of these folders together."""
    code, out, _ = call(capsys, "audit", *folders, "--json")
    assert code == 0
    return {(v["node"], v["asset"]) for v in json.loads(out)["verdicts"] if v["verdict"] != "NOT DECIDED"}


def test_from_init_to_the_verdict(tmp_path, capsys):
    """Real nodes over TLS: a curious one reads its neighbour's curvature by foretelling; one that is not asked keeps nothing."""
    folder = tmp_path / "five"
    assert call(capsys, "init", folder, "--transcript", *FOUNDED)[0] == 0
    (folder / "node-4" / "node.toml").write_text((folder / "node-4" / "node.toml").read_text().replace('"on"', '"off"'))
    names = [f"node-{i}" for i in range(5)]
    run_all(folder, names)
    assert not (folder / "node-4" / "transcript").exists()
    assert not (folder / "node-4" / "store" / "transcript").exists()
    part = folder / "node-1" / "transcript"
    assert {file.name for file in part.iterdir()} == {"transcript.toml", "transcript.npz"}
    assert {path.stat().st_mode & 0o077 for path in (part, *part.iterdir())} == {0}
    assert not (folder / "node-1" / "store" / "transcript" / "store").exists()  # what it was kept in while it ran
    assert read(capsys, part) == {(0, "curvature"), (3, "curvature")}  # of those whom it hears
    assert read(capsys, folder / "node-2") == {(0, "curvature"), (1, "curvature")}
    assert read(capsys, part, folder / "node-2") == {(0, "curvature"), (3, "curvature")}
    _, out, _ = call(capsys, "audit", folder / "node-1", folder / "node-3", "--json", "--victims", "2")
    both = json.loads(out)
    assert {(*v["adversary"], v["node"]) for v in both["verdicts"]} == {(1, 3, 2)}
    assert both["facts"]["command"].endswith("node-3 --victims 2")
    logs = "".join(file.read_text() for file in folder.rglob("node.log"))
    x = tomllib.loads((folder / "node-1" / "result" / "result.toml").read_text())["x"]
    states = sv.Transcript.load(part).states
    secrets = [f"{number:.6g}"[:6] for k in (-1, 0, 5, 59) for number in states[k]["x"][1, :, 0]]
    assert "start" in logs
    assert not any(secret in logs for secret in [*secrets, *(str(v)[:6] for v in x)])
    assert call(capsys, "again", folder)[0] == 0
    assert not part.exists()
    assert list((folder / "node-1").glob("transcript-*"))


def test_of_a_masked_node_nothing_is_read(tmp_path, capsys):
    folder = tmp_path / "masked"
    assert call(capsys, "init", folder, "--transcript", "--mechanism", "function-masks", *FOUNDED)[0] == 0
    run_all(folder, [f"node-{i}" for i in range(5)])
    assert read(capsys, folder / "node-1") == set()
    assert read(capsys, folder / "node-2", folder / "node-3") == set()
    # what is heard is foretold as before, but it is of the masked cost: the words of the other page would be wrong here
    assert any(d.known == "edge" for d in sv.Transcript.load(folder / "node-1" / "transcript").draws.values())


WRONG = [("yes", "transcript must be one of off, on, not 'yes'"), (True, "transcript must be one of off, on, not True")]


@pytest.mark.parametrize(("value", "said"), WRONG, ids=str)
def test_a_node_file_says_on_or_off(tmp_path, capsys, value, said):
    assert call(capsys, "init", tmp_path / "two", "--graph", "cycle:2", "--port", "0", "--stepsize", "0.01")[0] == 0
    file = tmp_path / "two" / "node-0" / "node.toml"
    facts = tomllib.loads(file.read_text())
    assert facts["transcript"] == "off"
    file.write_text(toml({**facts, "transcript": value}))
    with pytest.raises(InputError, match=said):
        sv.Node(file)
    file.write_text(toml({**facts, "transcript": "on"}))
    _, out, _ = call(capsys, "check", file, "--json")
    assert any(line["what"] == "transcript" and "holds secrets" in line["says"] for line in json.loads(out)["lines"])
    (file.parent / "transcript").mkdir()
    (file.parent / "transcript" / "transcript.toml").write_text('[header]\nroster = "of another run"\n')
    with pytest.raises(InputError, match="holds the transcript of another run; move it away"):
        next(sv.Node(file).run())


def test_the_commands_of_the_documentation(tmp_path):
    page = (HERE.parent / "docs" / "running.md").read_text()
    (block,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    script = f'sottovoce() {{ "{sys.executable}" -m sottovoce "$@"; }}\n{block}'
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "what node-1, node-3 kept of the run" in " ".join(done.stdout.split())
    assert "5 of them kept a transcript, which holds secrets" in done.stdout
    assert "node-0  R by node-1" in done.stdout
    assert "<html" in (tmp_path / "pooled.html").read_text()


# foretold, without the truth -------------------------------------------------------------------------------------------

HUB, PAPER_B = sv.graphs.star(5), sv.graphs.paper_b()
PRIVATE = "private-gradient-tracking"
HEARD = [  # method, graph, who, options; what is read without the truth
    ("dgd", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("extra", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("admm", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("pdmm", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("subgradient-push", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("diging", HUB, {0}, {}, {"offset", "curvature", "along-the-way"}),
    ("add-opt", PAPER_B, {2}, {}, {"offset", "curvature", "along-the-way"}),
    ("push-diging", PAPER_B, {2}, {}, {"curvature"}),
    ("push-pull-zhang", PAPER_B, {2}, {}, {"curvature"}),
    (PRIVATE, PAPER_B, {2}, {"K": 2}, {"curvature"}),
    (PRIVATE, PAPER_B, {2}, {"K": 2, "mechanisms": ("function-masks",)}, set()),
    (PRIVATE, PAPER_B, {2}, {"K": 2, "mechanisms": ("secret-late-weights",)}, set()),
    ("gradient-tracking", PAPER_B, {2}, {"mechanisms": ("message-noise",)}, set()),
    ("dgd", HUB, {0}, {"mechanisms": ("function-masks",)}, None),
    ("dgd", HUB, {1}, {"mechanisms": ("function-masks",)}, None),
    ("dgd", HUB, {0}, {"mechanisms": ("nozari",)}, None),
    ("extra", HUB, {1}, {"mechanisms": ("correlated-noise",)}, None),
    ("extra", HUB, {0}, {"mechanisms": ("function-sharing",)}, None),
    ("extra", HUB, {1}, {"mechanisms": ("function-sharing",)}, None),
    ("tailoring", HUB, {0}, {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "graph", "who", "options", "wanted"), HEARD, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_foretold_is_what_is_read(method, graph, who, options, wanted):
    """Never more than the truth bears out; and where later messages speak of it, no less."""
    result = sv.run(method, core.P, graph, iterations=60, stepsize=0.02, record=True, **options)
    with_truth, without = (
        {(v.node, v.asset) for v in sv.audit_transcript(t, curious=[who]).verdicts if v.verdict in ("READ", "READ UP TO")}
        for t in (result.transcript, replace(result.transcript, costs=None))
    )
    assert without <= with_truth
    victim = 1 if graph is HUB else 0
    if wanted is not None:
        assert {asset for node, asset in without if node == victim} == wanted
