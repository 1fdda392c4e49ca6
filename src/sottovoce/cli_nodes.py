"""What the commands init, check, node, up and rehearse do and show; the work itself is in peer/."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError, ParameterError, Stopped
from .registry import mechanism

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from .cli_options import Founding
    from .peer.node import Node

Facts = Mapping[str, Any]
SCHEMA = 1
REFRESH = 4  # times a second that a live table is drawn


def init(folder: str, founding: Founding) -> dict[str, Any]:
    """Write a federation."""
    from .cli_work import method, plain, step
    from .graphs import build
    from .peer.founding import Plan, found

    name, own = method(founding.algorithm, founding.set)
    stepsize = own.pop("stepsize", None) or step(founding.stepsize)
    hosts = dict(_pair(text) for text in founding.host)
    plan = Plan(
        tuple(build(text) for text in founding.graph), name, own, founding.problem, tuple(map(mechanism, founding.mechanism)),
        stepsize, founding.iterations, founding.tolerance, hosts, founding.port, founding.days,
        founding.transcript,
    )  # fmt: skip
    federation, advice = found(folder, plan)
    return plain({
        "schema": SCHEMA, "folder": folder, "run": federation.run, "algorithm": federation.algorithm, "d": federation.d,
        "stepsize": federation.stepsize, "advice": advice, "iterations": federation.iterations,
        "edges": len(federation.graph.edges), "nodes": {member.name: member.address for member in federation.members},
        "costs": founding.problem,
    })  # fmt: skip


def again(folder: str) -> dict[str, Any]:
    """Another run of the same nodes."""
    from .peer.again import again

    federation = again(folder)
    return {"schema": SCHEMA, "folder": folder, "run": federation.run, "nodes": list(federation.names)}


def _pair(text: str) -> tuple[str, str]:
    name, equals, address = (part.strip() for part in text.partition("="))
    if not (name and equals and address):
        raise ParameterError(f"--host takes NAME=HOST:PORT, such as node-0=site-a.example.org:7440, not {text!r}")
    return name, address


def check(file: str, patience: float) -> dict[str, Any]:
    """Every line that a check has to say."""
    from .peer.checking import check

    lines = [vars(line) for line in check(file, patience)]
    return {"schema": SCHEMA, "file": file, "good": all(line["good"] is not False for line in lines), "lines": lines}


def node(file: str, deadline: float | None, quiet: bool) -> dict[str, Any]:
    """Run one node to its end, with a live table; whoever stops it loses nothing."""
    import time

    from .peer.node import Node

    one, began, x = Node(file, deadline=deadline), time.perf_counter(), None
    if one.over:
        raise InputError(f"this run has ended, and its result is in {one.result}; for another one say `sottovoce again`")
    _mind_sigterm()
    try:
        with _Live(lambda: _status([one.status.facts()]), quiet):
            for _, now in one.run():
                x = now
    except KeyboardInterrupt:
        raise Stopped(f"stopped at iteration {one.status.k}; the same command goes on from there") from None
    return _ended(one, x, time.perf_counter() - began)


def _mind_sigterm() -> None:
    """SIGTERM is as good as ctrl-c."""
    import signal
    import threading

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupted)


def _ended(one: Node, x: Any, seconds: float) -> dict[str, Any]:
    from .cli_work import plain

    facts = one.status.facts()
    return plain({
        "schema": SCHEMA, "name": facts["name"], "iterations": facts["iteration"], "x": x, "sent": facts["sent"],
        "received": facts["received"], "seconds": seconds, "result": str(one.result),
        "transcript": str(one.file.transcript) if one.file.recorded else None,
    })  # fmt: skip


def up(folder: str, quiet: bool) -> dict[str, Any]:
    """Run all nodes of a folder, with a live table."""
    from .cli_work import plain
    from .peer.crew import up

    rows: list[Facts] = []
    _mind_sigterm()
    try:
        with _Live(lambda: _status(rows), quiet):
            facts = up(folder, lambda crew: rows.__setitem__(slice(None), crew.rows()))
    except KeyboardInterrupt:
        raise Stopped(f"stopped, all nodes; sottovoce up {folder} goes on from there") from None
    return plain({"schema": SCHEMA, **facts})


def rehearse(folder: str, seed: int, runs: int, save: str | None) -> dict[str, Any]:
    """Simulate what `up` would do."""
    from .cli_work import plain
    from .peer.rehearsal import rehearse

    result = rehearse(folder, seed, runs)
    if save:
        result.save(save)
    return plain({
        "schema": SCHEMA, "folder": folder, "kind": result.provenance["kind"], "algorithm": result.algorithm,
        "iterations": result.iterations, "runs": len(result.x), "seed": result.seed, "x": result.answer, "optimum": result.optimum,
        "final_error": {"median": np.median(result.final), "worst": result.final.max()}, "messages": result.messages.sum(),
        "bytes": result.bytes.sum(), "saved": save,
    })  # fmt: skip


def demo(quiet: bool) -> dict[str, Any]:
    """The demonstration with real processes."""
    from .cli_work import plain
    from .demo_nodes import demo

    rows: list[Facts] = []
    with _Live(lambda: _status(rows), quiet):
        return plain({"schema": SCHEMA, **demo(lambda crew: rows.__setitem__(slice(None), crew.rows()))})


# how it is shown ---------------------------------------------------------------------------------------------------


class _Live:
    """A table that is drawn again and again while the block runs; nothing where nobody looks."""

    def __init__(self, table: Any, quiet: bool):
        self.table, self.quiet = table, quiet

    def __enter__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, highlight=False)
        self.live = None if self.quiet or not console.is_terminal else Live(
            console=console, get_renderable=self.table, refresh_per_second=REFRESH, transient=True
        )  # fmt: skip
        if self.live:
            self.live.start()

    def __exit__(self, *_: Any) -> None:
        if self.live:
            self.live.stop()


def _status(rows: Sequence[Facts]) -> Table:
    from .cli_views import ruled_table

    table = ruled_table("node", ">iteration", ">a second", ">sent", ">received", "waits for")
    for row in rows:
        waits = f"{', '.join(row['waiting'])}, {row['seconds']:.0f} s" if row["waiting"] else ""
        refused = "; ".join(f"{name} refused: {why}" for name, why in row["refused"].items())
        done = f"{max(row['iteration'], 0):,} of {row['iterations']:,}"
        both = "; ".join(filter(None, (waits, refused)))
        table.add_row(row["name"], done, f"{row['rate']:.0f}", f"{row['sent']:,}", f"{row['received']:,}", both)
    return table


def show_init(console: Console, facts: Facts) -> None:
    """What was written, and what comes next."""
    console.print(f"{facts['folder']}: {len(facts['nodes'])} nodes, {facts['edges']} edges, run {facts['run']}", markup=False)
    console.print(f"{facts['algorithm']}, stepsize {facts['stepsize']}, {facts['iterations']:,} iterations", markup=False)
    if facts["advice"]:
        console.print(f"advised: {facts['advice']}", markup=False)
    for name, address in facts["nodes"].items():
        console.print(f"  {name}  {address}", markup=False)
    console.print("\n".join(_next(facts)), markup=False, soft_wrap=True)


def _next(facts: Facts) -> list[str]:
    """What to do now, for whoever has just founded it; commands can be copied whatever the folder is called."""
    from .peer.founding import AUTHORITY, HIDDEN, LOCAL, OWN_COST
    from .peer.reading import split

    folder, first = shlex.quote(facts["folder"]), next(iter(facts["nodes"]))
    own = facts["costs"].startswith(OWN_COST)
    remote = any(split(address)[0] not in LOCAL for address in facts["nodes"].values() if address != HIDDEN)
    here = [
        *([] if own and remote else [f"sottovoce rehearse {folder} to try it"]),
        *([] if remote else [f"sottovoce up {folder} to run all on this machine"]),
    ]
    return [
        *(["First fill in [cost] in each node.toml: without it a node does not start."] if own else []),
        f"Each node's folder goes to its own machine, federation.toml one folder up; {facts['folder']}/{AUTHORITY} goes to none.",
        f"There: sottovoce check {first}/node.toml, then sottovoce node {first}/node.toml",
        *([f"Here: {', '.join(here)}"] if here else []),
    ]


def show_again(console: Console, facts: Facts) -> None:
    """What is new, and what to do with it."""
    console.print(
        f"{facts['folder']}: run {facts['run']} of the same {len(facts['nodes'])} nodes; "
        "what the run before left here is put aside\n"
        f"Give every node the new federation.toml. Here: sottovoce up {facts['folder']} to run all on this machine",
        markup=False,
    )


def show_check(console: Console, facts: Facts) -> None:
    """A line each."""
    from .cli_views import plain_table

    marks = {True: "[green]ok[/]", False: "[red]NO[/]", None: ""}
    table = plain_table(3)
    from rich.text import Text

    for line in facts["lines"]:
        table.add_row(marks[line["good"]], line["what"], Text(line["says"]))
    console.print(table)


def show_node(console: Console, facts: Facts) -> None:
    """The end of one node."""
    took = f"{facts['iterations']:,} iterations in {facts['seconds']:.1f} s"
    console.print(f"{facts['name']}: {took}, {facts['sent']:,} bytes sent", markup=False)
    console.print(f"x = {facts['x']}\nresult: {facts['result']}", markup=False)
    if facts["transcript"]:
        console.print(f"transcript: {facts['transcript']}, which holds secrets", markup=False)


def show_up(console: Console, facts: Facts) -> None:
    """The end of all."""
    if facts["earlier"]:
        console.print(
            f"Run {facts['run']} ended earlier, and nothing was run now: this is its result. "
            "For another run of the same nodes, with other data perhaps, say sottovoce again",
            markup=False,
        )
    else:
        console.print(f"{facts['nodes']} nodes, {facts['iterations']:,} iterations in {facts['seconds']:.1f} s", markup=False)
    console.print(f"x = {facts['x']}, the nodes apart by {facts['apart']:.1e}", markup=False)
    if facts["transcripts"]:
        console.print(f"{len(facts['transcripts'])} of them kept a transcript, which holds secrets: NODE/transcript", markup=False)


def show_demo(console: Console, facts: Facts) -> None:
    """What was done, what came, and what the theorems cover."""
    from .cli_views import _number, ruled_table

    says = "agrees" if facts["good"] else "DOES NOT agree"
    console.print(
        f"{facts['nodes']} processes over mutual TLS, {facts['links']} one-way links on {facts['connections']} connections\n"
        f"{facts['algorithm']}, {facts['iterations']:,} iterations; {facts['kills']} kills (SIGKILL), each node once\n"
        f"x {says} with the closed form: largest error {_number(facts['error'])}, nodes apart by {_number(facts['apart'])}; "
        f"{facts['seconds']:.1f} s",
        markup=False,
    )
    table = ruled_table("node", "theorem", "against", "covered", "since", wraps=(2, 4))
    for row in facts["theorems"]:
        alone = row["against"].count(",") == facts["nodes"] - 2
        against = "any other one" if alone else row["against"]
        table.add_row(row["node"], row["theorem"], against, "yes" if row["protected"] else "NO", row["condition"])
    console.print(table)
    console.print("covered: a constant shift of the node's gradient, against one curious node, by the graph alone; nothing else")
    console.print(f"What stays readable: {facts['readable']}", markup=False)


def show_rehearse(console: Console, facts: Facts) -> None:
    """What would come."""
    error = facts["final_error"]
    console.print(
        f"A rehearsal with seed {facts['seed']}: whoever knows the seed knows every secret of it.\n"
        f"{facts['algorithm']}, {facts['iterations']:,} iterations, {facts['runs']} runs\n"
        f"final error {error['median']:.2g} (median), {error['worst']:.2g} (worst); "
        f"{facts['messages']:,} messages, {facts['bytes']:,} bytes a run",
        markup=False,
    )
