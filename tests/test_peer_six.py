"""Protections that keep the optimum, on real nodes: sums over processes that die at every moment, masks over bad links."""

from __future__ import annotations

import csv
import runpy
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from sottovoce.peer.crew import Crew

HERE = Path(__file__).parent
nodes = SimpleNamespace(**runpy.run_path(str(HERE / "nodes.py")))

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
