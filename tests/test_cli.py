"""The command line: what it shows, what it refuses, what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import main

QUICK = ("--iterations", "60", "--stepsize", "0.05")
ALGORITHM_KEYS = {
    "name", "source", "certainty", "graphs", "exchanges", "messages_per_edge", "bytes_per_edge", "kinds", "players", "parameters",
    "leaks",
}  # fmt: skip


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: (code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def _call(*arguments):
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return _call


@pytest.mark.parametrize("words", ["", "run", "compare", "stepsize", "demo", "algorithms"])
def test_help_fits_the_terminal(call, words):
    code, out, err = call(*words.split(), "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", ["run", "compare", "audit", "init", "reproduce", "compare-privacy", "solve"])
def test_the_examples_of_the_help_can_be_copied(call, command):
    out = call(command, "--help")[1]
    lines = out[out.index("Example") :].splitlines()[2:]
    assert max(map(len, lines)) <= 80
    for before, line in zip([""] + lines, lines, strict=False):
        starts = line.startswith(f"  sottovoce {command} ")
        assert not line or starts or (before.endswith(" \\") and line.startswith("      --")), line


def test_the_help_of_run_has_every_option_on_one_line_and_ends_with_examples(call):
    _, out, _ = call("run", "--help")
    lines = out.splitlines()
    options = [i for i, line in enumerate(lines) if line.startswith("│ --")]
    names = [lines[i].split()[1] for i in options]
    wanted = "problem graph stepsize iterations runs seed mechanism set backend every tolerance record plot save json"
    assert sorted(names) == sorted(f"--{name}" for name in wanted.split())
    assert options == list(range(options[0], options[0] + len(options)))
    assert sum(line.startswith("  sottovoce run ") for line in lines[options[-1] :]) == 2


def test_the_options_have_the_defaults_of_the_function(call):
    import inspect

    from sottovoce.cli_options import Playing

    declared, playing = inspect.signature(sv.run).parameters, Playing()
    for name in ("stepsize", "iterations", "runs", "seed", "record", "backend", "every", "tolerance"):
        assert getattr(playing, name) == declared[name].default, name


def test_run_shows_a_table_and_what_leaks(call):
    code, out, _ = call("run", "private-gradient-tracking", "--set", "K=3", "--runs", "2", "--iterations", "200")
    assert code == 0
    for word in ("paper-b: 5 nodes, 8 edges", "advised", "K=3", "median", "worst", "messages", "invariant", "What it leaks"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_run_as_json_is_what_the_function_gives(call):
    code, out, _ = call("run", "ab", "--json", "--runs", 3, "--problem", "estimation:d=3,seed=4", "--graph", "cycle:4", *QUICK)
    facts = json.loads(out)
    problem = sv.problems.estimation(n=4, d=3, seed=4)
    result = sv.run("ab", problem, sv.graphs.cycle(4), runs=3, iterations=60, stepsize=0.05)
    assert code == 0
    assert facts["final_error"] == {"median": np.median(result.final), "worst": result.final.max()}
    assert (facts["messages"], facts["bytes"]) == (result.messages.sum(), result.bytes.sum())
    np.testing.assert_array_equal(facts["answer"], result.answer)


def test_run_shows_the_answer_and_how_far_the_nodes_are_from_it(call):
    result = sv.run("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b(), iterations=60, stepsize=0.05)
    _, out, _ = call("run", "ab", *QUICK)
    said = " ".join(next(out[at:] for at in [out.index("answer ")]).split("final error")[0].split())
    assert said == f"answer {', '.join(f'{v:.6g}' for v in result.answer)}; the nodes are within {result.apart:.2g} of it"
    assert result.apart == np.abs(result.x[0] - result.x[0].mean(0)).max() > 0


def test_run_says_that_it_has_not_converged_and_what_helps(call, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) * [1, 1000]
    rows = [f"{a},{b},{int(a + b / 1000 + rng.standard_normal() > 0)}" for a, b in X]
    (tmp_path / "r.csv").write_text("\n".join(["a,b,y", *rows]))
    arguments = ("run", "ab", "--graph", "complete:n=3", "--iterations", 200)
    _, out, _ = call(*arguments, "--problem", "logistic:csv=r.csv,target=y")
    said = " ".join(out.split())
    assert "warning not converged" in said
    assert "iterations a digit" in said
    assert "sv.standardise" in said
    assert "warning" not in call("run", "ab", "--iterations", 200)[1]


def test_the_problem_takes_its_nodes_from_the_graph(call):
    assert json.loads(call("run", "ab", "--graph", "cycle:7", "--json", *QUICK)[1])["nodes"] == 7
    code, _, err = call("run", "ab", "--problem", "estimation:n=7", *QUICK)
    assert code == 2
    assert "default graph, paper-b," in err
    assert "--graph cycle:7" in err


def test_mechanisms_and_weights_are_passed_on(call):
    layers = ("--mechanism", "random-start:K=2,law=laplace", "--set", "R=metropolis")
    facts = json.loads(call("run", "push-pull", "--graph", "cycle:n=5,two_way=true", "--json", *layers, *QUICK)[1])
    assert facts["mechanisms"] == ["random-start(K=2, law=laplace, scale=1.0)"]
    assert facts["weights"]["R"] == "metropolis"


def test_the_page_calls_the_nodes_what_the_records_call_them(call, tmp_path):
    rng = np.random.default_rng(0)
    sites = ["north", "south", "east"] * 12
    rows = [f"{site},{a},{b}" for site, (a, b) in zip(sites, rng.standard_normal((36, 2)), strict=True)]
    (tmp_path / "r.csv").write_text("\n".join(["hospital,a,y", *rows]))
    words = ("--problem", "least-squares:csv=r.csv,target=y,site=hospital", "--graph", "complete:n=3")
    code, out, _ = call("solve", *words, "--html", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert code == 0
    assert "over the nodes north, south" in " ".join(out.split())
    for text in (out, page):
        assert "south" in text
        assert "node 0" not in text
    for who in ("south", "2"):  # by its name or its number
        facts = json.loads(call("audit", "ab", *words, "--curious", who, "--no-advise", "--iterations", 20, "--json")[1])
        assert {tuple(v["adversary"]) for v in facts["verdicts"]} == {(2,)}
    assert "the nodes are east, north, south" in call("audit", "ab", *words, "--curious", "west")[2]


def test_save_and_load(call, tmp_path):
    assert call("run", "ab", "--save", "kept", "--record", *QUICK)[0] == 0
    loaded = sv.Result.load(tmp_path / "kept")
    result = sv.run("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b(), iterations=60, stepsize=0.05)
    np.testing.assert_array_equal(loaded.error, result.error)
    assert loaded.transcript is not None


def test_compare(call, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("private-gradient-tracking:K=2", "ab:stepsize=0.02", "--runs", 2, "--save", "kept", "--plot", "both.png", *QUICK)
    code, out, _ = call("compare", *arguments)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.glob("kept/*/result.toml"))) == 2
    rows = json.loads(call("compare", *arguments[:2], "--json", *QUICK)[1])["methods"]
    assert [row["stepsize"] for row in rows] == [0.05, 0.02]


def test_stepsize(call):
    facts = json.loads(call("stepsize", "ab", "--json")[1])
    advice = sv.stepsize("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b())
    assert (facts["good"], facts["largest"]) == (advice.good, advice.largest)


def test_the_listing_of_algorithms(call):
    listing = json.loads(call("algorithms", "--json")[1])
    assert list(listing) == ["schema", "algorithms"]
    rows = {row["name"]: row for row in listing["algorithms"]}
    assert set(rows) == set(sv.registry.algorithms())
    assert all(set(row) == ALGORITHM_KEYS for row in rows.values())
    assert all(set(p) == {"default", "type", "help"} for row in rows.values() for p in row["parameters"].values())
    ours = rows["private-gradient-tracking"]  # x and y pulled, one weighted sum pushed: three numbers an edge
    assert (ours["exchanges"], ours["messages_per_edge"], ours["bytes_per_edge"], ours["kinds"]) == (2, 2, 24, ["float64"] * 2)
    assert (rows["dgd"]["messages_per_edge"], rows["dgd"]["bytes_per_edge"]) == (1, 8)


@pytest.mark.parametrize(
    ("what", "keys"),
    [
        ("mechanisms", {"name", "source", "needs", "parameters", "leaks"}),
        ("graphs", {"name", "help", "parameters"}),
        ("problems", {"name", "help", "parameters"}),
    ],
)
def test_the_other_listings(call, what, keys):
    listing = json.loads(call(what, "--json")[1])
    assert list(listing) == ["schema", what]
    assert listing[what]
    assert all(set(row) == keys for row in listing[what])
    missing = [p for row in listing[what] for p, about in row["parameters"].items() if not about["help"]]
    assert missing == []


@pytest.mark.parametrize("what", ["algorithms", "mechanisms", "graphs", "problems"])
@pytest.mark.parametrize("columns", [80, 120])
def test_listings_fit_the_terminal(call, monkeypatch, what, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = call(what)
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns
    known = getattr(sv.registry, what)() if what in ("algorithms", "mechanisms") else ()
    assert all(name in out for name in known)


BAD = [
    (("run", "private-gradient-trackng"), "did you mean 'private-gradient-tracking'"),
    (("rum",), "run"),
    (("run",), "ALGORITHM"),
    (("run", "ab", "--iterations", "many"), "--iterations"),
    (("run", "ab", "--iterations", "0"), "at least 1"),
    (("run", "ab", "--set", "K"), "NAME=VALUE"),
    (("run", "ab", "--set", "method=3"), "'method'"),
    (("run", "ab", "--set", "stepsize=3"), "--stepsize"),
    (("run", "private-gradient-tracking", "--set", "K=-1"), "at least 0"),
    (("run", "ab", "--stepsize", "-1"), "above 0"),
    (("run", "ab", "--stepsize", "small"), "auto"),
    (("run", "ab", "--backend", "fast"), "--backend"),
    (("run", "ab", "--mechanism", "randomstart"), "did you mean 'random-start'"),
    (("run", "ab", "--save", "no/kept"), "no folder no"),
    (("run", "ab", "--plot", "picture.jpg"), ".png"),
    (("run", "ab", "--plot", "no/picture.png"), "no folder no"),
    (("run", "ab", "--record"), "--save"),
    (("run", "extra"), "two-way graph"),
    (("run", "ab", "--graph", "missing.csv"), "missing.csv"),
    (("run", "ab", "--graph", "circle:5"), "did you mean 'cycle'"),
    (("run", "ab", "--graph", "cycle:6", "--problem", "estimation:n=5"), "5 nodes"),
    (("run", "ab", "--problem", "least-squares:csv=sick.csv,target=y", "--graph", "cycle:2"), "row 3, column 'b'"),
    (("compare", "ab", "ab"), "twice"),
    (("stepsize", "ab:stepsize=1"), "leave it out"),
    (("demo", "--simulate", "--out", "no/out"), "no/out"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_bad_input_is_refused_and_nothing_is_written(call, tmp_path, words, said):
    (tmp_path / "sick.csv").write_text("a,b,y\n1,2,3\n1,,2\n")
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("sottovoce: ")
    assert len(err.splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["sick.csv"]


@pytest.mark.parametrize("words", [("run", "abc"), ("init", "five", "--problem", "own"), ("run", "ab", "--nothing")])
def test_what_goes_wrong_is_json_where_json_is_asked_for(call, words):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    told = call(*words, "--json")
    assert (told[0], told[2]) == (code, err)
    assert json.loads(told[1]) == {"schema": 1, "error": err.removeprefix("sottovoce: ").removesuffix("\n")}


def test_records_that_are_not_separated_by_commas(call, tmp_path):
    (tmp_path / "r.csv").write_text("hospital;age;y\nnorth;2;1\n")
    _, _, err = call("run", "ab", "--problem", "logistic:csv=r.csv,target=y")
    assert "no column 'y'; it has hospital;age;y; is it separated by ;? It must be by commas" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_output_that_cannot_be_written_is_said_in_words(more):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "sottovoce", "graphs", *more]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no space left on device" in done.stderr
    assert "Errno" not in done.stderr


def test_a_run_that_diverges_writes_nothing(call, tmp_path):
    code, out, err = call("run", "ab", "--stepsize", "9", "--save", "kept", "--json")
    assert (code, json.loads(out)["error"]) == (1, err.removeprefix("sottovoce: ").removesuffix("\n"))
    assert "advised" in err
    assert not list(tmp_path.iterdir())


def test_stopped_by_hand(call, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sottovoce.simulate.eager.play", stop)
    assert call("run", "ab", *QUICK)[0] == 130


def test_without_matplotlib(call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = call("run", "ab", "--plot", "error.png", *QUICK)
    assert code == 1
    assert "sottovoce[plot]" in err
    code, out, _ = call("demo", "--simulate")
    assert code == 0
    assert "sottovoce[plot]" in out
    assert not list(tmp_path.iterdir())


def test_demo(call, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = call("demo", "--simulate", "--json")
    facts = json.loads(out)
    assert code == 0
    assert len(facts["methods"]) == 6
    assert len(facts["claims"]) == 5
    assert all(claim["holds"] for claim in facts["claims"])
    assert "curvature" in facts["readable"]
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    assert facts["figure"] == str(Path("out") / "demo.png")


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)


def test_as_a_process_listing_without_anything_heavy():
    heavy = "('jax', 'matplotlib', 'scipy')"
    code = f"import sys; from sottovoce.cli import main; main(['algorithms']); print([m for m in {heavy} if m in sys.modules])"
    done = process("-W", "error", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("[]\n")


def test_as_a_process_with_an_error():
    done = process("-W", "error", "-m", "sottovoce", "run", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no algorithm named 'nothing'" in done.stderr
