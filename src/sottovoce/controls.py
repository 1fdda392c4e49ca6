"""Recorded runs that attacks must break, or must not: small scenes, as a coalition or a wire-tapper saw them, with the truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .graph import Graph
from .graphs import paper_b
from .problem import Problem
from .problems import estimation, least_squares, logistic
from .run import run
from .view import Truth, View, truth_of, view_of

PAPER = "private-gradient-tracking"
LEAF = Graph(5, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 1), (3, 1)])  # node 0 talks to node 1 alone
POCKET = Graph(5, [(0, 1), (1, 0), (0, 2), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])  # nodes 0 and 1 lie behind node 2

CYCLE = Graph(5, [(i, (i + step) % 5) for i in range(5) for step in (1, 4)])  # everybody talks to two, both ways


def recorded(
    algorithm: Any, problem: Problem, graph: Any, who: Iterable[int] | str, *, stepsize: Any, iterations: int, seed: int = 0,
    mechanisms: Any = (), **parameters: Any,
) -> tuple[View, Truth]:  # fmt: skip
    """Run, record, and take what `who` (node numbers, or "wire") saw; the truth is for the scorer."""
    result = run(
        algorithm, problem, graph, stepsize=stepsize, iterations=iterations, seed=seed, mechanisms=mechanisms, record=True,
        **parameters,
    )  # fmt: skip
    assert result.transcript is not None
    truth = truth_of(result.transcript)
    assert truth is not None
    return view_of(result.transcript, who), truth


def five(
    who: Iterable[int] | str = (1,), algorithm: Any = PAPER, *, d: int = 2, graph: Any = None, **options: Any
) -> tuple[View, Truth]:
    """The paper's estimation problem, five nodes on its irregular graph unless another is given."""
    settings: dict[str, Any] = {"stepsize": 0.02, "iterations": 80, **options}
    problem = estimation(n=5, d=d, s=max(3, d), scale=0.5, seed=1)
    return recorded(algorithm, problem, paper_b() if graph is None else graph, who, **settings)


def leaf(algorithm: Any = PAPER, **options: Any) -> tuple[View, Truth]:
    """Node 0 has one neighbour, node 1, and that one is curious."""
    return five((1,), algorithm, graph=LEAF, **options)


def pocket(algorithm: Any = PAPER, **options: Any) -> tuple[View, Truth]:
    """Nodes 0 and 1 have no neighbour but each other and node 2, which is curious."""
    return five((2,), algorithm, graph=POCKET, **options)


def one_record(who: Iterable[int] | str = (1,), algorithm: Any = PAPER, **options: Any) -> tuple[View, Truth]:
    """Every node holds a single record of three features."""
    rng = np.random.default_rng(5)
    settings: dict[str, Any] = {"stepsize": 0.05, "iterations": 80, **options}
    problem = least_squares(rng.standard_normal((5, 3)), rng.standard_normal(5), sites=5)
    return recorded(algorithm, problem, paper_b(), who, **settings)


def few_records(count: int, d: int = 2) -> Problem:
    """Logistic regression over five nodes that hold so many records each."""
    rng = np.random.default_rng(count)
    X = rng.standard_normal((5 * count, d))
    y = rng.permutation(np.arange(5 * count) % 2)
    return logistic(X, y, sites=5)


def late_weights_secret(view: View) -> View:
    """The same view where nobody's weights are public."""
    return replace(view, draws={key: d for key, d in view.draws.items() if d.known != "all"})
