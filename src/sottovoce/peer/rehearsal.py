"""What a federation's nodes would do, simulated on one machine: with a seed, and stamped as a rehearsal.

The very files that the nodes read are read here: the same graph, parameters, stepsize and costs. Only the randomness is
another: a rehearsal can be repeated, and whoever knows its seed knows all its secrets.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..graph import Graph
from ..problem import Problem
from ..problem_joint import joint
from ..registry import mechanism
from ..run import run
from ..sequence import GraphSequence
from ..simulate.result import Result
from .costs import cost
from .federation import FILE, Federation
from .node_file import NodeFile

KIND = "rehearsal"


def rehearse(folder: str | Path, seed: int = 0, runs: int = 1, record: bool = False) -> Result:
    """Simulate what `up` would do with the federation in this folder."""
    federation, problem = whole(folder)
    roster = federation.roster
    graphs = [Graph(roster.n, edges, labels=federation.names) for edges in roster.graphs]
    result = run(
        roster.algorithm, problem, graphs[0] if len(graphs) == 1 else GraphSequence(graphs), stepsize=roster.stepsize,
        iterations=roster.iterations, runs=runs, seed=seed, mechanisms=[mechanism(n, **dict(o)) for n, o in roster.mechanisms],
        record=record, tolerance=roster.tolerance, **dict(roster.parameters),
    )  # fmt: skip
    result.provenance |= {"kind": KIND, "run": roster.run, "roster": roster.digest.hex()}
    return result


def whole(folder: str | Path) -> tuple[Federation, Problem]:
    """The federation and all costs together; only where every node's folder is there."""
    folder = Path(folder)
    federation = Federation.read(folder / FILE)
    files = [folder / name / "node.toml" for name in federation.names]
    absent = [file for file in files if not file.is_file()]
    if absent:
        raise InputError(f"all nodes' folders are needed here, and there is no {absent[0]}; one node runs by `sottovoce node`")
    costs = [cost(node.cost, node.folder, federation.d, node.name) for node in map(NodeFile.read, files)]
    return federation, joint(costs, federation.names)
