"""Everything that sottovoce raises on purpose.

    SottovoceError
    ├── InputError (also a ValueError)   what you passed in cannot be used
    │   ├── GraphError                   nodes, edges, connectivity
    │   ├── ProblemError                 costs, data, shapes
    │   ├── WeightError                  matrices, rules, eta
    │   ├── ParameterError               options and their ranges
    │   ├── IdentityError                certificates, keys, signatures: who somebody is
    │   └── UnknownName                  no such algorithm, mechanism, graph or problem
    ├── NotInstalled (also an ImportError)   an extra is missing; the message is the command that installs it
    └── RunError                         a run that started and could not go on
        ├── Refused                      a step met numbers that it must not go on with, such as one out of range
        ├── Diverged                     it left the finite numbers, or grew a million times
        ├── InvariantBroken              the sum over all nodes is no longer what it must be
        ├── MessageRefused               what a neighbour sent is not what was agreed
        ├── StoreError                   what a node keeps on its disk cannot be read, or not be written
        ├── Ended                        an operator has ended the run of real nodes; it can be resumed
        └── Stopped                      nodes were stopped by hand; the same command goes on

Every message says what was expected, what came and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class SottovoceError(Exception):
    """The root: catch this to catch everything of ours."""


class InputError(SottovoceError, ValueError):
    """What was passed in cannot be used."""


class GraphError(InputError):
    """Nodes, edges, connectivity."""


class ProblemError(InputError):
    """Costs, data, shapes."""


class WeightError(InputError):
    """Weight matrices, rules, eta."""


class ParameterError(InputError):
    """An option, or its range."""


class IdentityError(InputError):
    """A certificate, a key or a signature: somebody is not who they must be."""


class UnknownName(InputError):
    """No such name; the nearest ones are suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        import difflib

        known = sorted(known)
        folded = {one.lower(): one for one in known}
        near = [folded[one] for one in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}"
        super().__init__(f"there is no {kind} named {name!r}; {hint}")


class NotInstalled(SottovoceError, ImportError):
    """An optional part is missing."""

    def __init__(self, what: str, extra: str):
        super().__init__(f"{what} needs the extra [{extra}]: pip install 'sottovoce[{extra}]'")


class RunError(SottovoceError):
    """A run that started and could not go on; `result` holds what there was, if anything."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


class Refused(RunError):
    """A step met numbers that it must not go on with (one that does not fit the agreed fixed point, say)."""


class Diverged(RunError):
    """Not finite, or a million times further away than when the random start ended."""


class InvariantBroken(RunError):
    """A sum over all nodes that the algorithm promises was not kept (a wrong column, a lost message)."""


class MessageRefused(RunError):
    """What a neighbour sent is not what was agreed; `what` says in a word which check it failed."""

    def __init__(self, what: str, message: str):
        super().__init__(message)
        self.what = what


class StoreError(RunError):
    """What a node keeps on its disk cannot be read, or cannot be written."""


class Ended(RunError):
    """An operator has ended the run of real nodes, by a deadline; what is on the disks can be resumed."""


class Stopped(RunError):
    """Nodes were stopped by hand; what they need to go on is on their disks."""
