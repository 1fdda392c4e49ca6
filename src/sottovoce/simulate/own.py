"""What one node has for a whole run: its own data and draws, its row and its column of every weight, its mailbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..draws import CounterDraws, Draws
from ..ledger import Ledger
from ..trees import Tree
from .eager import active_of, diameter_of, pairs_of, tree_of, values_of
from .entries import Entries
from .helpers import share_of
from .streams import Streams, streams_of
from .task import Task
from .weigh import Rules

Array = np.ndarray


@dataclass
class Own:
    """What a node has for a whole run."""

    me: int
    n: int  # the parties; a number beyond is a helper's
    helpers: int
    diameter: int | None
    row: Entries
    column: Entries
    rules: Rules
    tables: dict[str, tuple[Array, Array]]  # constants of my row and of my column
    active: tuple[Array, Array] | None  # of a sequence: which of them each graph has
    schedule: Array | None
    stepsize: Array
    family: Any
    data: Any
    value: Array | None
    coordinates: int
    parameters: Any
    draws: Draws
    mail: Any
    keeps: bool = True
    streams: Streams | None = None
    tree: Tree | None = None  # my in-edges
    fixed: tuple[Any, Any] | None = None  # tables, and the weights that follow from them alone
    ledgers: dict[tuple[int, int, int], Ledger] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, me: int, mail: Any) -> Own:
        """Node `me` of a task, run 0."""
        values, draws = values_of(task), CounterDraws(task.seed, task.runs[:1])
        family, data = share_of(task.problem, me)
        return cls.alone(task, me, data, None if values is None else values[me : me + 1], draws, mail, family)

    @classmethod
    def alone(cls, task: Task, me: int, data: Any, value: Array | None, draws: Draws, mail: Any, family: Any = None) -> Own:
        """Node `me` with its own data and draws; nothing of a task is used that another node would have to say."""
        layout = task.layout
        row, column = (Entries(layout, me, np.flatnonzero(ends == me)) for ends in (layout.target, layout.source))
        pick = lambda table, entries: table[..., entries.index, :, :1]
        tables = {name: (pick(table, row), pick(table, column)) for name, table in task.tables.items()}
        active = active_of(task)
        return cls(
            me, task.problem.n, task.helpers, diameter_of(task), row, column, task.rules, tables,
            None if active is None else (pick(active, row), pick(active, column)), task.schedule,
            task.stepsize[me : me + 1] if len(task.stepsize) > 1 else task.stepsize,
            task.problem.family if family is None else family,
            data, value, task.problem.d, task.step_parameters, draws, mail, task.keeps,
            streams_of(pairs_of(task), layout, column.index), _branches(task, me),
        )  # fmt: skip

    def ledger(self, kind: int, call: int, part: int) -> Ledger:
        return self.ledgers.setdefault((kind, call, part), Ledger(self.n))


def _branches(task: Task, me: int) -> Tree | None:
    """A node's in-edges of the tree."""
    found = tree_of(task)
    return found and Tree(*(part[task.graph.receiver == me] for part in found))
