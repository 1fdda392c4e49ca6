"""sottovoce: private decentralised optimisation.

Parties that share no server minimise the sum of their private costs over a directed graph, exactly.

    import sottovoce as sv
    result = sv.run("private-gradient-tracking", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b())
    result.error[:, -1]
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import accountant as accountant
from . import errors as errors
from . import graphs as graphs
from . import problems as problems
from . import registry as registry
from .averaging import average as average
from .graph import Graph as Graph
from .masks import MaskBook as MaskBook
from .problem import Problem as Problem
from .protection import protection as protection
from .registry import Algorithm as Algorithm
from .registry import Mechanism as Mechanism
from .registry import Parameter as Parameter
from .registry import columns as columns
from .registry import doubly as doubly
from .registry import mechanism as mechanism
from .registry import register as register
from .registry import rows as rows
from .run import compare as compare
from .run import run as run
from .sequence import GraphSequence as GraphSequence
from .sets import Ball as Ball
from .sets import Box as Box
from .simulate.result import Result as Result
from .standardising import standardise as standardise
from .stepsize import stepsize as stepsize
from .transcript import Transcript as Transcript
from .version import __version__ as __version__
from .view import View as View

if _TYPE_CHECKING:
    from .auditing import audit as audit
    from .auditing import audit_transcript as audit_transcript
    from .auditor.report import Report as Report
    from .paper.reproduce import reproduce as reproduce
    from .peer.node import Node as Node
    from .pooling import pooled as pooled
    from .privacy_comparison import compare_privacy as compare_privacy
    from .solving import solve as solve

_LATER = {
    "Node": "peer.node", "Report": "auditor.report", "audit": "auditing", "audit_transcript": "auditing",
    "compare_privacy": "privacy_comparison", "pooled": "pooling", "reproduce": "paper.reproduce", "solve": "solving",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    """What a first run can do without, with all that it needs, is loaded when somebody asks for it."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(_import_module(f".{_LATER[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
