"""What a report rests on: assumptions, facts, what everybody learns anyway, what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..graph import Graph
from ..registry import algorithms
from ..transcript import Transcript
from ..version import __version__
from ..view import Truth
from .attack import attacks
from .attacks.masked_records import HOLDING
from .judge import WHOLE
from .records import MOST, fits

WEIGHTS = ("R", "A", "C", "B", "W")
TOLD = {"low": float, "high": float, "integer": bool}  # what side information may say of every node's values
CURIOUS = "the curious follow the protocol and keep everything they see (honest but curious); they do not deviate from it"
KNOWN = "each coalition knows its own costs, states and draws, the messages on its edges, the graph, the method and its laws"
OPEN = "known to all"
EXPECTED = "expect the records to be read"
PARTS = f"a coalition of more than {WHOLE} is asked through each member and all together, not through every part of it"
DEPLOYED = "a deployed run was audited: its draws came from the operating system"
REHEARSED = "a rehearsal was audited: its draws come from a simulation seed, which a deployment does not have"
NEIGHBOURS = (
    "where a method is exact, all neighbours of a node together still learn its gradient at x*, and no exact method can prevent "
    "that; with honest nodes left beside it, they learn the sum over those"
)
SCORED = "estimates are scored against the truth"
FORETOLD = (
    "there is no truth to score against: READ means that later messages, held back from the attack, were foretold, that a sum was "
    "opened, or that a fit of records explains all that was told and leaves nothing open; a rehearsal can show more"
)


def checked(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """Side information, as plain numbers."""
    told = dict(told or {})
    if unknown := sorted(set(told) - set(TOLD)):
        raise ParameterError(f"side information says low, high or integer of all values; it does not know {', '.join(unknown)}")
    try:
        found = {name: kind(told[name]) for name, kind in TOLD.items() if name in told}
    except (TypeError, ValueError):
        raise ParameterError(f"side information is two numbers and a yes or no: low=0, high=1, integer=true; got {told}") from None
    if not found.get("low", -np.inf) < found.get("high", np.inf):
        raise ParameterError(f"side information needs low below high; got {found}")
    return found


def assumptions(transcript: Transcript, truth: Truth | None, told: Mapping[str, Any]) -> tuple[str, ...]:
    """What the verdicts rest on."""
    beforehand = ", ".join(f"{name} = {value}" for name, value in told.items())
    return (
        CURIOUS,
        KNOWN,
        *([f"and of every value beforehand: {beforehand}"] if told else []),
        *_kept(transcript),
        *_weights(transcript),
        PARTS,
        *_untried(transcript),
        REHEARSED if transcript.header["kind"] == "simulation" else DEPLOYED,
        FORETOLD if truth is None else SCORED,
    )


def _kept(transcript: Transcript) -> list[str]:
    """Whose parts of a deployed run there are."""
    if transcript.nodes is None:
        return []
    names = ", ".join(str(transcript.graph.labels[i]) for i in transcript.nodes)
    return [f"what {names} kept of the run is all there is: weights that others drew are not in it, and it makes no witness"]


def _untried(transcript: Transcript) -> list[str]:
    """What the gallery does not model."""
    found, header = [], transcript.header
    masks = next((text for text in header.get("mechanisms", ()) if text.startswith("function-masks")), "")
    if int(header["parameters"].get("consensus", 1)) > 1:
        found.append("A8 and A9 are built for one mixing a gradient and were not tried on several: ask about consensus=1 too")
    if masks and tracks(transcript):
        found.append(
            "A9 fits the coalition's own costs as they are and was not tried behind masks on costs, where what it fits is masked: "
            "ask without function-masks too"
        )
    if "kind=matern" in masks:
        found.append("A26 and A27 know masks of the quadratic class and were not tried on these")
    if header.get("costs") == "logistic":
        found.append(
            f"records were looked for where a sum is of at most {MOST}, and behind masks where a node has at most {HOLDING}: more "
            "may be read by a longer search, as long as less numbers make them up than are told"
        )
    return found


def tracks(transcript: Transcript) -> bool:
    """Whether it is gradient tracking, of which the paper speaks."""
    return {"R", "A", "C", "B"} <= set(transcript.header["parameters"])


def _weights(transcript: Transcript) -> list[str]:
    """Who is taken to know weights and stepsizes, for a method that has them."""
    K, known = transcript.header["settled"], _late_weights(transcript)
    if tracks(transcript):
        what = "weights and stepsizes" if known == OPEN else "stepsizes are known to all, weights"
        return [f"{what} from iteration {K} on are {known}{', as the paper assumes' * (known == OPEN)}"]
    if not {name for name, _ in transcript.draws} & set(WEIGHTS):
        return []
    return [f"weights{f' from iteration {K} on' * (K > 0)} are {known}"]


def _late_weights(transcript: Transcript) -> str:
    late = {d.known for (name, k), d in transcript.draws.items() if k >= transcript.header["settled"] and name in WEIGHTS}
    if not late:
        return "not in the transcript, hence not taken to be known to anybody"
    return OPEN if late == {"all"} else "known to their owners only"


def facts_of(transcript: Transcript, graph: Graph) -> dict[str, Any]:
    """What was audited."""
    header, names = transcript.header, transcript.header["graph"].get("labels")
    drawn = {"n": graph.n, "edges": [list(e) for e in graph.edges], "digest": graph.digest()}
    return {
        "algorithm": header["algorithm"], "parameters": header["parameters"], "mechanisms": header["mechanisms"],
        "kind": header["kind"], "stepsize": header["stepsize"], "iterations": transcript.iterations,
        "graph": drawn | ({"labels": names} if names else {}), "sottovoce": __version__,
    }  # fmt: skip


def gallery(header: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
    """The attacks that are tried on such a method."""
    tried = [a for a in attacks().values() if a.serves(header)]
    return tuple({"id": a.id, "name": a.name, "uses": a.uses, "idea": a.idea, "metric": a.metric} for a in tried)


def public(transcript: Transcript) -> list[str]:
    """What everybody learns by design: what the method opens, and what no method hides."""
    opens, n = transcript.header.get("opens", ""), transcript.graph.n - transcript.header.get("helpers", 0)
    return [
        *([f"{opens}: the method opens it to all, so every coalition has the sum over the honest"] if opens else []),
        *_counted(transcript),
        *_result(transcript),
        f"who can send to whom, the method, its parameters and laws{_weights_told(transcript)}",
        f"how many parties there are ({n}) and how many numbers a message has",
    ]


def _counted(transcript: Transcript) -> list[str]:
    """Where more numbers are opened than all records hold, the records follow from them."""
    costs, last = transcript.costs, transcript.states.get(transcript.iterations - 1, {})
    if not fits(transcript.header) or not transcript.header.get("opens") or "sums" not in last:
        return []
    told = transcript.iterations * last["sums"].shape[1]
    if costs is None:
        return [f"{told} numbers: where the records of the honest nodes hold fewer in all, expect them to be read"]
    held = int(costs.data[2].sum()) * costs.d
    return [f"{told} numbers, and all records hold {held}: {EXPECTED}, even where no attack here read them"] * (told >= held)


def _result(transcript: Transcript) -> list[str]:
    """What a run is for, and what follows from it."""
    method = algorithms().get(transcript.header["algorithm"])
    if method is not None and not method.minimises:
        what = "the mean of all values, hence" if method.averages else "the result, hence"
        return [f"{what} the sum of everybody else's values together"]
    return [
        "the optimum x* and the late iterates, which are near it",
        "the sum of all gradients (it vanishes at x*), hence the gradient at x* of everybody else together",
        NEIGHBOURS,
    ]


def _weights_told(transcript: Transcript) -> str:
    if _late_weights(transcript) != OPEN:
        return ""
    return ", and from K on the weights, as the paper assumes" if tracks(transcript) else ", and the weights"
