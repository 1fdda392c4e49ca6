"""The command line: parse, call the function of the same name, show what came. What is shown is in cli_views.py."""

from __future__ import annotations

import json as json_module
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from .cli_options import (
    AUDITING,
    COMPARING,
    FOUNDING,
    PLAYING,
    SETTING,
    SOLVING,
    Auditing,
    Comparing,
    Flag,
    Founding,
    Json,
    Playing,
    Setting,
    Solving,
)
from .errors import InputError, SottovoceError, Stopped
from .leaving import leave
from .version import __version__

EXAMPLES = """Examples:

  sottovoce run private-gradient-tracking --set K=3 --runs 20 --plot error.png
  sottovoce run ab --problem estimation:d=4 --graph ring:n=10,hops=1+3 --json
"""
COMPARED = """Example:

  sottovoce compare private-gradient-tracking:K=3 ab add-opt \\
      --runs 20 --plot figure.pdf
"""
AUDITED = """Examples:

  sottovoce audit private-gradient-tracking --set K=3 --html report.html
  sottovoce audit ab --curious 1,2 --victims 0 --wiretap --json
  sottovoce audit kept/transcript
  sottovoce audit five/node-1/transcript five/node-3/transcript
"""
FOUNDED = """Examples:

  sottovoce init five --set K=3
  sottovoce init sites --graph links.csv --problem own:d=4 --stepsize 0.01
"""

REPRODUCED = """Examples:

  sottovoce reproduce --quick
  sottovoce reproduce 4 n100 claims --out figures
"""

PROTECTED = """Examples:

  sottovoce compare-privacy --problem estimation:d=2 --bound 4,8
  sottovoce compare-privacy --graph complete:n=6 --bound 8 --html page.html \\
      --problem logistic:csv=records.csv,target=y
"""

SOLVED = """Examples:

  sottovoce solve --problem least-squares:d=4 --graph complete:n=5
  sottovoce solve --graph complete:n=6 --html audit.html \\
      --problem logistic:csv=records.csv,target=y,site=hospital
"""

app = App(
    name="sottovoce",
    help="Parties that do not show their costs find the minimiser of the sum, exactly, with no server. Begin with: sottovoce demo",
    version=__version__,
    version_flags=["--version"],
    default_parameter=Parameter(negative=()),
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


@app.command(help_epilogue=EXAMPLES)
def run(algorithm: str, /, *, playing: Playing = PLAYING) -> int:
    """Run an algorithm: how close it came, what it sent and leaks.

    Parameters
    ----------
    algorithm
        Its name, with parameters if you like: private-gradient-tracking:K=3
    """
    from . import cli_views as views
    from . import cli_work as work

    ran = work.run(algorithm, playing)
    views.show(work.facts(ran, playing), views.run, playing.json)
    return 0


@app.command(help_epilogue=SOLVED)
def solve(*, solving: Solving = SOLVING) -> int:
    """Pick a method, solve, and say what that tells whom."""
    from .cli_solve import solve

    return solve(solving)


@app.command(help_epilogue=COMPARED)
def compare(algorithm: str, /, *more: str, playing: Playing = PLAYING) -> int:
    """Run several algorithms on the same problem and graph.

    Parameters
    ----------
    algorithm
        The first one's name, with parameters of its own if you like: private-gradient-tracking:K=3
    more
        The others.
    """
    from . import cli_views as views
    from . import cli_work as work

    facts = work.compare((algorithm, *more), playing)
    views.show(facts, views.compare, playing.json)
    return 1 if any(row["failed"] for row in facts["methods"]) else 0


@app.command(help_epilogue=PROTECTED)
def compare_privacy(*, comparing: Comparing = COMPARING) -> int:
    """Every protection that fits, side by side: what is read, what it costs."""
    from .cli_compare_privacy import run

    return run(comparing)


@app.command
def stepsize(algorithm: str, /, *, setting: Setting = SETTING) -> int:
    """Advise a stepsize: a good one, and the largest that is stable.

    Parameters
    ----------
    algorithm
        Its name, with parameters if you like: private-gradient-tracking:K=3
    """
    from . import cli_views as views
    from . import cli_work as work

    views.show(work.stepsize(algorithm, setting), views.stepsize, setting.json)
    return 0


@app.command(help_epilogue=AUDITED)
def audit(algorithm: str, /, *more: str, auditing: Auditing = AUDITING) -> int:
    """Say who would learn what of whom, with evidence.

    Parameters
    ----------
    algorithm
        Its name, with parameters if you like; or the folder of a recorded run's transcript
    more
        Folders of other nodes of that run, which pool what they kept.
    """
    from . import cli_work as work

    report = work.audit((algorithm, *more), auditing)
    if auditing.json:
        print(report.to_json(), end="")
        return 0
    from rich.console import Console

    from .cli_audit import show

    show(Console(highlight=False, soft_wrap=False), report)
    return 0


@app.command
def algorithms(*, json: Json = False) -> int:
    """List the algorithms: graphs, messages, source, certainty."""
    return _list("algorithms", json)


@app.command
def mechanisms(*, json: Json = False) -> int:
    """List the privacy mechanisms and what each needs."""
    return _list("mechanisms", json)


@app.command
def graphs(*, json: Json = False) -> int:
    """List the ready graphs and their parameters."""
    return _list("graphs", json)


@app.command
def problems(*, json: Json = False) -> int:
    """List the ready problems and their parameters."""
    return _list("problems", json)


@app.command(help_epilogue=FOUNDED)
def init(folder: str, /, *, founding: Founding = FOUNDING) -> int:
    """Make a federation: folders, certificates, what all share.

    Parameters
    ----------
    folder
        A new folder.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    show(nodes.init(folder, founding), nodes.show_init, founding.json)
    return 0


@app.command
def again(folder: str, /, *, json: Json = False) -> int:
    """Another run of the same nodes, after the data have changed.

    Parameters
    ----------
    folder
        As init made it; it gets a new run name, and what the last run left is put aside.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    show(nodes.again(folder), nodes.show_again, json)
    return 0


@app.command
def check(file: str = "node.toml", /, *, patience: float = 3.0, json: Json = False) -> int:
    """Say whether a node is ready: certificate, peers, graph, roster.

    Parameters
    ----------
    file
        Its node.toml, or the folder that holds it.
    patience
        Seconds for each neighbour.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    facts = nodes.check(file, patience)
    show(facts, nodes.show_check, json)
    return 0 if facts["good"] else 1


@app.command
def node(file: str = "node.toml", /, *, deadline: float | None = None, json: Json = False) -> int:
    """Run one node; ctrl-c is safe, and the same command goes on.

    Parameters
    ----------
    file
        Its node.toml, or the folder that holds it.
    deadline
        End the run for all after so many seconds of this process; it can be resumed.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    show(nodes.node(file, deadline, json), nodes.show_node, json)
    return 0


@app.command
def up(folder: str, /, *, json: Json = False) -> int:
    """Run all nodes of a federation on this machine, a process each.

    Parameters
    ----------
    folder
        As init made it.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    show(nodes.up(folder, json), nodes.show_up, json)
    return 0


@app.command
def rehearse(folder: str, /, *, seed: int = 0, runs: int = 1, save: str | None = None, json: Json = False) -> int:
    """Simulate exactly what up would do; seeded, and stamped so.

    Parameters
    ----------
    folder
        As init made it.
    seed
        The same seed gives the same numbers.
    runs
        Repetitions with other random numbers.
    save
        Write the result into this folder.
    """
    from . import cli_nodes as nodes
    from .cli_views import show

    show(nodes.rehearse(folder, seed, runs, save), nodes.show_rehearse, json)
    return 0


@app.command
def demo(*, simulate: Flag = False, out: str = "out", json: Json = False) -> int:
    """Five real nodes, killed on the way, solve the paper's problem.

    Parameters
    ----------
    simulate
        Instead, simulate six methods side by side: a table, a figure and the claims it bears out.
    out
        The folder for the figure of --simulate.
    """
    if simulate:
        from . import cli_views as views
        from .demo import demo

        shown = demo(out)
        views.show(shown, views.demo, json)
        return 0 if all(claim["holds"] for claim in shown["claims"]) else 1
    from . import cli_nodes as nodes
    from .cli_views import show

    facts = nodes.demo(json)
    show(facts, nodes.show_demo, json)
    return 0 if facts["good"] else 1


@app.command(help_epilogue=REPRODUCED)
def reproduce(*names: str, quick: Flag = False, out: str = "out", list: Flag = False, json: Json = False) -> int:
    """Make the paper's figures anew and check its claims.

    Parameters
    ----------
    names
        Figures by number or name, and claims; all if none.
    quick
        Less of everything: under three minutes, not about ten.
    out
        The folder for pictures, data and claims.md.
    list
        Say what there is, and stop.
    """
    from . import cli_paper as paper
    from . import cli_views as views
    from .paper.reproduce import listing, reproduce

    if list:
        views.show(listing(), paper.listing, json)
        return 0
    views.show(reproduce(*names, quick=quick, out=out, watch=paper.progress), paper.made, json)
    return 0


def _list(what: str, json: bool) -> int:
    from . import cli_views as views
    from . import listings

    rows = getattr(listings, what)()
    views.show({"schema": listings.SCHEMA, what: rows}, getattr(views, what), json)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code: 0, 1 a run that could not go on, 2 unusable input, 130 stopped by hand."""
    code = _ended(sys.argv[1:] if arguments is None else list(arguments))
    if arguments is None:  # this process is ours
        leave(code)
    return code


def _ended(arguments: list[str]) -> int:
    """The exit code of a command, what went wrong told."""
    code, wrong = 1, ""
    try:
        code, wrong = _guarded(partial(app, arguments, exit_on_error=False, print_error=False))
        if wrong:
            print(f"sottovoce: {wrong}", file=sys.stderr)
        if wrong and "--json" in arguments:
            print(json_module.dumps({"schema": 1, "error": wrong}, ensure_ascii=False))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has enough (| head)
        return _mute(1)
    except OSError as error:
        if not wrong:
            print(f"sottovoce: the output could not be written: {_plainly(error)}", file=sys.stderr)
        return _mute(code or 1)
    return code


def _guarded(work: Callable[[], Any]) -> tuple[int, str]:
    """The exit code of a command, and what went wrong."""
    try:
        return work() or 0, ""
    except CycloptsError as error:
        return 2, f"{error} (see: sottovoce --help)"
    except InputError as error:
        return 2, str(error)
    except Stopped as error:
        return 130, str(error)
    except SottovoceError as error:
        return 1, str(error)
    except KeyboardInterrupt:
        return 130, "stopped"
    except BrokenPipeError:
        raise
    except OSError as error:
        return 1, _plainly(error)
    except MemoryError as error:
        return 1, f"{error}" or "out of memory; fewer runs or a larger --every would need less"


def _plainly(error: OSError) -> str:
    """What the system says, without its numbers."""
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:] + (f": {error.filename}" if error.filename else "")


def _mute(code: int) -> int:
    """What is left to be written has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
