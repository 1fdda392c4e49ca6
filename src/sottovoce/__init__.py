"""sottovoce: private decentralised optimisation.

Parties that share no server minimise the sum of their private costs over a directed graph, exactly.

    import sottovoce as sv
    result = sv.run("private-gradient-tracking", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b())
    result.error[:, -1]
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import accountant as accountant
from . import errors as errors
from . import graphs as graphs
from . import problems as problems
from . import registry as registry
from .auditing import audit as audit
from .auditing import audit_transcript as audit_transcript
from .auditor.report import Report as Report
from .averaging import average as average
from .graph import Graph as Graph
from .masks import MaskBook as MaskBook
from .paper.reproduce import reproduce as reproduce
from .pooling import pooled as pooled
from .privacy_comparison import compare_privacy as compare_privacy
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
from .solving import solve as solve
from .standardising import standardise as standardise
from .stepsize import stepsize as stepsize
from .transcript import Transcript as Transcript
from .version import __version__ as __version__
from .view import View as View

if _TYPE_CHECKING:
    from .peer.node import Node as Node


def __getattr__(name: str) -> _Any:
    """`Node` and what it needs are loaded when somebody asks for it."""
    if name == "Node":
        from .peer.node import Node

        return Node
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
