"""What the commands run, compare, stepsize and audit do: texts become values, results become plain facts. Nothing is shown here."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import GraphError, InputError, ParameterError
from .graph import Graph
from .pooling import pooled
from .problem import Problem
from .registry import algorithm, mechanism, parse_options, parse_value
from .simulate.checks import named
from .simulate.helpers import joined
from .simulate.result import Result
from .transcript import Transcript

if TYPE_CHECKING:
    from .auditor.report import Report
    from .auditor.verdict import Verdict
    from .cli_options import Auditing, Playing, Setting
    from .stepsize import Advice

SCHEMA = 1


class Ran(NamedTuple):
    """A run, and what was advised for it (None where the stepsize was given)."""

    result: Result
    graph: Graph
    advice: Advice | None


def run(text: str, playing: Playing) -> Ran:
    """Run, then write; what cannot be written is refused before anything runs."""
    from .run import run
    from .stepsize import stepsize

    _check_outputs(playing)
    name, own = method(text, playing.set)
    problem, graph = scene(playing)
    options = {**options_of(playing), **own}
    advice = None
    if options["stepsize"] == "auto":
        given = {k: v for k, v in own.items() if k != "stepsize"}
        advice = stepsize(name, problem, graph, mechanisms=playing.mechanism, **given)
        options["stepsize"] = advice.good
    result = run(name, problem, graph, **options)
    if playing.plot:
        result.plot(playing.plot)
    if playing.save:
        result.save(playing.save)
    return Ran(result, graph, advice)


def compare(texts: Sequence[str], playing: Playing) -> dict[str, Any]:
    """Compare, then write: a folder a method."""
    from .run import compare

    _check_outputs(playing)
    problem, graph = scene(playing)
    methods: dict[str, Any] = {}
    for text in texts:
        if text in methods:
            raise ParameterError(f"{text!r} is there twice; give other parameters, such as private-gradient-tracking:K=5")
        methods[text] = method(text, playing.set)
    results = compare(methods, problem, graph, **options_of(playing))
    if playing.plot:
        results.plot(playing.plot)
    for text, result in results.items() if playing.save else ():
        result.save(Path(str(playing.save)) / text.replace("/", "-").replace(":", "-"))
    rows = [{**row, "leaks": algorithm(results[row["name"]].algorithm).leaks} for row in results.table()]
    return plain({"schema": SCHEMA, **_scene_facts(playing, graph), **_how(results[texts[0]]), **_files(playing), "methods": rows})


def stepsize(text: str, setting: Setting) -> dict[str, Any]:
    """The adviser's answer."""
    from .stepsize import stepsize

    name, own = method(text, setting.set)
    problem, graph = scene(setting)
    if "stepsize" in own:
        raise ParameterError("this command advises the stepsize; leave it out of the algorithm's parameters")
    advice = stepsize(name, problem, graph, mechanisms=setting.mechanism, **own)
    return plain({"schema": SCHEMA, "algorithm": name, **_scene_facts(setting, graph), **_advice(advice), "says": str(advice)})


def audit(texts: Sequence[str], auditing: Auditing) -> Report:
    """Audit a rehearsal, the transcript in a folder, or the parts in several folders together; write the page."""
    from .auditing import audit, audit_transcript, with_commands

    if auditing.html is not None:
        check_page(auditing.html)
    told, text = parse_options(auditing.side_information or ""), texts[0]
    if len(texts) > 1 or Path(text).is_dir():
        transcript = _transcript(texts, auditing)
        asked = _adversaries(auditing, transcript.graph)
        report, seed = audit_transcript(transcript, side_information=told, worlds=auditing.witness, **asked), None
    else:
        name, own = method(text, auditing.set)
        problem, graph = scene(auditing)
        options = {name: getattr(auditing, name) for name in ("iterations", "runs", "seed")}
        options |= {"mechanisms": auditing.mechanism, "stepsize": step(auditing.stepsize), "advise": auditing.advise, **own}
        everybody = joined(graph, algorithm(name).helpers, False)  # a helper may be curious too
        options |= {"side_information": told, "worlds": auditing.witness, **_adversaries(auditing, everybody)}
        report, seed = audit(name, problem, graph, **options), auditing.seed
    report = with_commands(report, functools.partial(_command, texts, auditing), seed)
    if auditing.html is not None:
        report.save(auditing.html)
    return report


def _transcript(folders: Sequence[str], auditing: Auditing) -> Transcript:
    """Folders as Transcript.save or Result.save wrote them, or nodes' own; what a recorded run fixes cannot be asked for again."""
    fixed = ("problem", "graph", "mechanism", "set", "stepsize", "iterations", "runs", "seed")
    given = [f"--{name}" for name in fixed if getattr(auditing, name) != getattr(type(auditing)(), name)]
    if given:
        raise ParameterError(f"{folders[0]} holds a recorded run, which fixes {', '.join(given)}; leave that out")
    inner = [Path(folder) / "transcript" for folder in folders]
    return pooled(*(path if path.is_dir() else path.parent for path in inner))


def _adversaries(auditing: Auditing, graph: Graph) -> dict[str, Any]:
    """Who looks at whom, refused before anything runs."""
    from .auditor.theorems import coalitions

    curious = [{graph.labels[i] for i in nodes(text, graph, "--curious")} for text in auditing.curious] or None
    coalitions(graph, curious, auditing.at_most)
    victims = None if auditing.victims is None else nodes(auditing.victims, graph, "--victims")
    return {"curious": curious, "at_most": auditing.at_most, "wiretap": auditing.wiretap, "victims": victims}


def nodes(text: str, graph: Graph, option: str) -> list[int]:
    """"0,3" as node numbers; nodes are given by their names, or by their numbers where no name is one."""
    known = {str(label): i for i, label in enumerate(graph.labels)}
    found = [part.strip() for part in text.split(",")]
    if not any(isinstance(label, int | np.integer) for label in graph.labels):
        known = {str(i): i for i in range(graph.n)} | known
    for part in found:
        if part not in known:
            some = ", ".join([*map(str, graph.labels[:6]), *(["..."] if graph.n > 6 else [])])
            raise ParameterError(f"{option} takes nodes, such as 0,3; got {part!r}, and the nodes are {some}")
    return [known[part] for part in found]


def check_page(file: str) -> None:
    path = Path(file)
    if path.suffix != ".html":
        raise ParameterError(f"--html takes a file that ends in .html, not {file}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.parent}, where {path.name} should go; make it first")


def _command(texts: Sequence[str], auditing: Auditing, verdict: Verdict | None = None) -> str:
    """The line that gives the same report, or the same verdict, again."""
    words = ["sottovoce", "audit", *texts]
    if verdict is not None:
        wire = isinstance(verdict.adversary, str)
        who: dict[str, Any] = {"wiretap": True} if wire else {"curious": (",".join(map(str, verdict.adversary)),), "wiretap": False}
        auditing = replace(auditing, victims=str(verdict.node), at_most=None, advise=False, **who)
    for field in fields(auditing):
        value, flag = getattr(auditing, field.name), "--" + field.name.replace("_", "-")
        if value == field.default or field.name in ("json", "html", "witness"):
            continue
        if value is False:
            flag, value = "--no-" + field.name.replace("_", "-"), True
        words += [flag] if value is True else [w for v in (value if isinstance(value, tuple) else (value,)) for w in (flag, str(v))]
    return shlex.join(words)


def method(text: str, given: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """"ab:R=paper" and the --set texts as a name and its parameters; the name's own win."""
    name, _, rest = text.partition(":")
    chosen, options = algorithm(name.strip()), {}
    for part in given:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ParameterError(f"--set takes NAME=VALUE, such as K=3, not {part!r}")
        options[key.replace("-", "_")] = parse_value(value)
    own = parse_options(rest)
    known = [*chosen.parameters, *chosen.weights]
    for key in (*options, *(key for key in own if key != "stepsize")):
        if key not in known:
            hint = "; a stepsize goes to --stepsize" if key == "stepsize" else ""
            raise ParameterError(f"{chosen.name} has no parameter {key!r}; it takes: {', '.join(known) or 'none'}{hint}")
    return chosen.name, {**options, **own}


def scene(setting: Setting) -> tuple[Problem, Graph]:
    """The problem and the graph; a problem that does not say how many nodes it has takes as many as the graph."""
    from .graphs import build as build_graph
    from .problems.catalogue import build as build_problem

    graph = build_graph(setting.graph)
    name, _, rest = setting.problem.partition(":")
    keys = [part.partition("=")[0].strip() for part in rest.split(",")]
    sized = "n" in keys or name.strip() == ""
    problem = build_problem(setting.problem if sized else f"{name}:{rest}{',' if rest else ''}n={graph.n}")
    if problem.n != graph.n:
        default = setting.graph == type(setting).graph
        which = f"the default graph, {setting.graph}," if default else f"the graph {setting.graph}"
        todo = f"give a graph of {problem.n} nodes, such as --graph cycle:{problem.n}"
        raise GraphError(f"the problem has {problem.n} nodes, but {which} has {graph.n}; {todo}")
    return problem, named(graph, problem)


def options_of(playing: Playing) -> dict[str, Any]:
    """The options that `run` and `compare` take under the same names."""
    same = ("iterations", "runs", "seed", "backend", "every", "tolerance", "record")
    return {
        **{name: getattr(playing, name) for name in same},
        "mechanisms": playing.mechanism,
        "stepsize": step(playing.stepsize),
    }


def step(text: str) -> Any:
    """auto, a number, or a number a node."""
    if text == "auto":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--stepsize is a number above 0, one a node (0.1,0.2,...), or auto; got {text!r}") from None
    return numbers[0] if len(numbers) == 1 else numbers


def facts(ran: Ran, playing: Playing) -> dict[str, Any]:
    """A run in plain facts."""
    result, weights = ran.result, algorithm(ran.result.algorithm).weights
    return plain({
        "schema": SCHEMA,
        "algorithm": result.algorithm,
        **_scene_facts(playing, ran.graph),
        "stepsize": result.stepsize[0] if len(result.stepsize) == 1 else result.stepsize,
        "advice": None if ran.advice is None else _advice(ran.advice),
        **_how(result),
        "parameters": {k: v for k, v in result.parameters.items() if k not in weights},
        "weights": {k: v for k, v in result.parameters.items() if k in weights},
        "final_error": {"median": np.median(result.final), "worst": result.final.max()},
        "rate": result.rate(),
        "warning": _warning(result, playing),
        "messages": result.messages.sum(),
        "bytes": result.bytes.sum(),
        "invariant": result.invariant,
        "spent": result.spent,
        "optimum": result.optimum,
        "answer": result.answer,
        "apart": result.apart,
        "leaks": algorithm(result.algorithm).leaks,
        "around_it": {text: mechanism(text).mechanism.leaks for text in playing.mechanism},
        **_files(playing),
    })  # fmt: skip


def _warning(result: Result, playing: Playing) -> str | None:
    """That it has not converged, and what mostly helps where the costs are made of somebody's columns."""
    if result.warning is None or "csv=" not in playing.problem:
        return result.warning
    helps = "bring the columns to one scale first (in Python, sv.standardise), or drop what repeats another column"
    return f"{result.warning}; {helps}"


def plain(value: Any) -> Any:
    """What JSON can say: lists for arrays, null for what is not a finite number."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _scene_facts(setting: Setting, graph: Graph) -> dict[str, Any]:
    return {"problem": setting.problem, "graph": setting.graph, "nodes": graph.n, "edges": len(graph.sender)}


def _how(result: Result) -> dict[str, Any]:
    return {
        "iterations": result.iterations, "runs": len(result.x), "seed": result.seed, "backend": result.backend,
        "mechanisms": result.mechanisms,
    }  # fmt: skip


def _advice(advice: Advice) -> dict[str, Any]:
    return {"good": advice.good, "largest": advice.largest, "rate": advice.rate, "how": advice.how}


def _files(playing: Playing) -> dict[str, Any]:
    return {"plot": playing.plot, "saved": playing.save}


def check_folder(save: str) -> None:
    """Where --save can write."""
    folder = Path(save)
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}, where {folder.name} should go; make it first")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--save takes a folder, and {folder} is a file")


def _check_outputs(playing: Playing) -> None:
    """Whatever would fail after a long run is found before it."""
    if playing.plot is not None:
        from .plot import required, suffix

        suffix(playing.plot)
        required()
    if playing.save is not None:
        check_folder(playing.save)
    elif playing.record:
        raise ParameterError("--record keeps all messages, and only --save FOLDER writes them; give both, or neither")
