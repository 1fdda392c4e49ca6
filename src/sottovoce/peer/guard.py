"""What a user's own function raises is told by its kind and place alone: its message may hold the data that are to stay here."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import RunError, SottovoceError

NOT_THEIRS = (str(Path(__file__).parents[1]), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), "<frozen")


class GuardedCost:
    """A family of costs whose every answer is guarded."""

    def __init__(self, family: Any, whose: str):
        self.family, self.whose = family, whose

    def gradient(self, *arguments: Any) -> Any:
        return guarded(lambda: self.family.gradient(*arguments), self.whose)

    def hessian(self, *arguments: Any) -> Any:
        return guarded(lambda: self.family.hessian(*arguments), self.whose)

    def prox(self, *arguments: Any) -> Any:
        return guarded(lambda: self.family.prox(*arguments), self.whose)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.family, name)


def guarded(ask: Callable[[], Any], whose: str) -> Any:
    """What a cost answers; where it raises, a refusal that names no value, and holds none."""
    try:
        return ask()
    except SottovoceError as error:
        if error.__cause__ is None:  # a sentence of ours
            raise
        why = told(error.__cause__)
    except Exception as error:  # whatever a user's function may raise
        why = told(error)
    raise RunError(f"the cost of {whose} raised {why}; what it said is not shown, as it may hold data")


def told(error: BaseException) -> str:
    """The kind of an exception, and the innermost line of the user's that it came from."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__} in {Path(error.filename).name} line {error.lineno}"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [place for place in frames if not place[0].startswith(NOT_THEIRS)]
    file, line = (theirs or frames or [("an unknown place", 0)])[-1]
    return f"{type(error).__name__} in {Path(file).name} line {line}"
