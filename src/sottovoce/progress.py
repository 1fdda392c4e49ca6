"""A progress bar for what takes longer than two seconds in a terminal; nothing otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, ClassVar

PATIENCE = 2.0  # seconds before anything is shown


class Bar:
    """`with Bar("what", total) as watch: watch(done)`. One at a time: what begins inside another's is not shown."""

    showing: ClassVar[bool] = False

    def __init__(self, what: str, total: int):
        self.what, self.total, self.began = what, total, time.monotonic()
        self.progress: Any = None
        self.shown = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, what: str | None = None) -> None:
        if not self.shown or (self.progress is None and time.monotonic() - self.began < PATIENCE):
            return
        if self.progress is None:
            if Bar.showing:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self.progress.start()
            Bar.showing = True
            self.task = self.progress.add_task(self.what, total=self.total)
        self.progress.update(self.task, completed=done, description=self.what if what is None else f"{self.what}: {what}")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.progress is not None:
            self.progress.stop()
            Bar.showing = False
