"""The mean of what the nodes hold, which is the rendezvous problem."""

from __future__ import annotations

from typing import Any

from . import problems
from .registry import Algorithm, algorithm
from .run import run
from .simulate.result import Result


def average(values: Any, graph: Any, *, by: str | Algorithm = "private-sum", **options: Any) -> Result:
    """The mean of `values`, (n, d) or (n,), one row a node, at every node over `graph`, no node showing its own.

    by        the method: private-sum opens the sum, at once and exactly; one that averages (push-sum, mo-murray, manitara,
              state-decomposition, ...) needs the values alone, too; any other minimises the sum of |x - v_i|^2 / 2, whose optimum
              is the mean
    options   those of `sottovoce.run`, and the method's own (K=3, law="laplace", iterations=200, tolerance=1e-12, record=True)

    `result.x` is the mean at every node, (runs, n, d); `result.error` its distance from the exact one.
    """
    mean = {"of": "mean"} if "of" in algorithm(by).parameters else {}
    return run(by, problems.average(values), graph, **{**mean, **options})
