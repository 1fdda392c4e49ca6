"""What there is, as plain data: algorithms, mechanisms, graphs and problems, for `--json`, for tables and for the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .registry import Algorithm, Mechanism, Parameter

SCHEMA = 1
ENOUGH = 64  # iterations to look at; a random start is over by then
GRAPH_HELP = {  # parameters that several builders share
    "n": "how many nodes",
    "two_way": "every edge goes both ways",
    "seed": "seed of the drawing",
    "hops": "node i sends to i + h for each h, joined by +",
    "p": "the probability of an edge",
    "radius": "the distance that a link bridges",
    "degree": "random out-neighbours of each node",
    "rows": "rows of nodes",
    "columns": "columns of nodes",
}
PROBLEM_HELP = {
    "n": "how many nodes; unless given, as many as the graph has",
    "d": "unknowns",
    "s": "measurements of each node",
    "scale": "spread of the entries of Q",
    "sigma": "ridge of each node",
    "noise": "spread of the measurement noise",
    "seed": "seed of the drawn data",
    "records": "drawn records of each node",
    "l2": "ridge of the sum, shared by the nodes",
    "intercept": "add a column of ones",
    "delta": "where the loss turns from square to linear",
    "csv": "a file with a header, instead of drawn data",
    "target": "its column to explain",
    "site": "its column that says who holds a record; else split in n",
    "features": "its columns to explain by, joined by +; else all others",
}


def algorithms() -> list[dict[str, Any]]:
    """Every algorithm; what it sends is measured by playing it on three nodes, all linked, in one coordinate."""
    from .registry import algorithms

    return [_algorithm(method) for method in algorithms().values()]


def mechanisms() -> list[dict[str, Any]]:
    """Every mechanism."""
    from .registry import mechanisms

    return [_mechanism(layer) for layer in mechanisms().values()]


def graphs() -> list[dict[str, Any]]:
    """Every builder of graphs."""
    from .graphs import builders

    return [_function(name, build, GRAPH_HELP) for name, build in builders().items()]


def problems() -> list[dict[str, Any]]:
    """Every problem that a text can name."""
    from .problems.catalogue import catalogue

    return [_function(name, build, PROBLEM_HELP) for name, build in catalogue().items()]


def _algorithm(method: Algorithm) -> dict[str, Any]:
    messages, size = _traffic(method)
    return {
        "name": method.name,
        "source": method.source,
        "certainty": method.certainty,
        "graphs": method.graphs,
        "exchanges": len(method.payloads()),
        "messages_per_edge": messages,
        "bytes_per_edge": size,
        "kinds": list(method.payloads()),
        "players": list(method.players),
        "parameters": _parameters(method.parameters),
        "leaks": method.leaks,
    }


def _mechanism(layer: Mechanism) -> dict[str, Any]:
    return {
        "name": layer.name,
        "source": layer.source,
        "needs": layer.needs_text,
        "parameters": _parameters(layer.parameters),
        "leaks": layer.leaks,
    }


def _traffic(method: Algorithm) -> tuple[int, int]:
    """Messages and bytes over one edge in one iteration once the start is over, d = 1."""
    from . import graphs, problems
    from .run import traffic
    from .simulate.task import prepare

    graph, problem = graphs.complete(3), problems.average([[0.0], [1.0], [2.0]])
    task = prepare(
        method, problem, graph, stepsize=1.0, iterations=ENOUGH, runs=1, seed=0, mechanisms=(), record=False, x0=None,
        every=1, tolerance=None, parameters={},
    )  # fmt: skip
    messages, sizes = traffic(task, ENOUGH)
    edges = len(task.graph.sender)
    return int(messages[-1]) // edges, int(sizes[-1]) // edges


def _parameters(declared: Mapping[str, Parameter]) -> dict[str, dict[str, Any]]:
    return {name: {"default": p.default, "type": p.type, "help": p.help} for name, p in declared.items()}


def _function(name: str, build: Callable[..., Any], help: Mapping[str, str]) -> dict[str, Any]:
    said = inspect.getdoc(build) or ""
    parameters = {
        p.name: {
            "default": None if p.default is p.empty else p.default,
            "type": _type(p),
            "help": help.get(p.name, "") + (" (needed)" if p.default is p.empty else ""),
        }
        for p in inspect.signature(build).parameters.values()
    }
    return {"name": name, "help": said.splitlines()[0] if said else "", "parameters": parameters}


def _type(parameter: inspect.Parameter) -> str:
    """The kind in one word: "float | None" is a float that may be left out."""
    return str(parameter.annotation).split(" ")[0].split("[")[0]
