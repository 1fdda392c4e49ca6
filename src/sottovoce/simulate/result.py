"""What a run gives back: NumPy arrays, plain files, and a picture."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..tables import write_toml
from ..transcript import Transcript

Array = np.ndarray
ARRAYS = ("x", "error", "recorded", "messages", "bytes", "stepsize", "optimum", "trajectory")
FACTS = (
    "algorithm", "iterations", "invariant", "seed", "backend", "spent", "parameters", "mechanisms", "provenance", "advice", "why"
)  # fmt: skip
VERSION = 1
GIVEN = "parameter."  # before the names of parameters that are arrays
CLOSE, CRAWL = 1e-6, 0.999  # further than this from where it began, and slower than this: not converged


@dataclass(repr=False)
class Result:
    """A run of one algorithm, or of many repetitions of it."""

    x: Array  # (runs, n, d), the last iterate
    error: Array  # (runs, recorded), ||x^k - 1 (x) x*||, k = 0 first
    recorded: Array  # (recorded,), the k of each
    iterations: int
    messages: Array  # (iterations + 1,), over all edges; entry 0 is the set-up
    bytes: Array  # (iterations + 1,), payload only
    invariant: float  # largest shift that kept a promised sum, in units of n eps max(|y|, |total|)
    algorithm: str
    stepsize: Array  # (1,) or one a node
    optimum: Array  # (d,)
    backend: str
    seed: int | None = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    mechanisms: list[str] = field(default_factory=list)
    trajectory: Array | None = None  # (recorded, runs, n, d)
    transcript: Transcript | None = None
    spent: dict[str, float] | None = None  # epsilon and delta, where a method spends them
    audit: Any = None
    provenance: dict[str, Any] = field(default_factory=dict)
    advice: str | None = None  # what the adviser said of the stepsize, where it was asked
    why: str | None = None  # why this method, where `solve` picked it

    @property
    def final(self) -> Array:
        """The last error of each run."""
        return self.error[:, -1]

    @property
    def answer(self) -> Array:
        """What the nodes agree on: the mean of the last iterates of the first run."""
        return self.x[0].mean(0)

    @property
    def apart(self) -> float:
        """How far the nodes are from agreeing on it: the largest distance of one of their numbers from the answer's, first run."""
        return float(np.abs(self.x[0] - self.answer).max(initial=0.0))

    def rate(self) -> float:
        """Error ratio of one iteration to the next where it decays, above rounding: the median over the runs."""
        return float(np.median([_rate(self.recorded, e) for e in self.error]))

    @property
    def warning(self) -> str | None:
        """That a run has not converged and will not soon; None where there is nothing to warn of."""
        first, last, rate = np.median(self.error[:, 0]), np.median(self.final), self.rate()
        rounding = 1e-12 * max(1.0, float(np.abs(self.optimum).max(initial=0.0)))
        if not last > max(CLOSE * first, rounding) or not rate > CRAWL:
            return None
        if rate >= 1:
            return "not converged, and not getting closer"
        return f"not converged: about {np.log(10) / -np.log(rate):,.0f} iterations a digit"

    def plot(self, file: str | Path | None = None) -> Any:
        """Error against iteration: the median of the runs, and where nine in ten of them lie."""
        from ..plot import errors

        return errors({self.algorithm: self}, file)

    def save(self, folder: str | Path) -> Path:
        """Write result.toml and result.npz (and the transcript, in a folder beside them)."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        facts = {name: getattr(self, name) for name in FACTS}
        tables = {k: table for k, v in self.parameters.items() if (table := _table(v)) is not None}
        facts["parameters"] = {k: _plain(v) for k, v in self.parameters.items() if k not in tables}
        facts["nothing"] = [k for k, v in self.parameters.items() if v is None]  # TOML has no word for it
        facts["recorded_messages"] = self.transcript is not None
        arrays = {name: value for name in ARRAYS if (value := getattr(self, name)) is not None}
        arrays |= {GIVEN + name: table for name, table in tables.items()}
        np.savez_compressed(folder / "result.npz", **arrays)
        write_toml(folder / "result.toml", {"version": VERSION, **facts})
        if self.transcript is not None:
            self.transcript.save(folder / "transcript")
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read what `save` wrote."""
        folder = Path(folder)
        missing = [name for name in ("result.toml", "result.npz") if not (folder / name).exists()]
        if missing:
            raise InputError(f"expected a folder with {' and '.join(missing)}, as Result.save writes it; {folder} has none")
        facts = tomllib.loads((folder / "result.toml").read_text())
        if facts.pop("version", None) != VERSION:
            raise InputError(f"the result in {folder} is not of version {VERSION}")
        with np.load(folder / "result.npz", allow_pickle=False) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
        transcript = Transcript.load(folder / "transcript") if facts.pop("recorded_messages", False) else None
        about: dict[str, Any] = {name: facts.get(name) for name in FACTS}
        about["parameters"] |= dict.fromkeys(facts.get("nothing", []))
        given = [name for name in arrays if name.startswith(GIVEN)]
        about["parameters"] |= {name.removeprefix(GIVEN): arrays.pop(name) for name in given}
        return cls(**arrays, **about, transcript=transcript)

    def __repr__(self) -> str:
        runs, n, d = self.x.shape
        many = f"{runs} runs, median " if runs > 1 else ""
        rate = "" if np.isnan(self.rate()) else f", rate {self.rate():.4f}"  # too short to have one
        size = f"{self.stepsize.min():.4g}" if np.ptp(self.stepsize) == 0 else "one a node"
        return (
            f"<{self.algorithm}: {n} nodes, d = {d}, {self.iterations} iterations ({self.backend}), stepsize {size}; "
            f"{many}final error {np.median(self.final):.2g}{rate}, "
            f"{int(self.bytes.sum()):,} bytes sent{self._spent()}{f'; {self.warning}' if self.warning else ''}>"
        )

    def _spent(self) -> str:
        return "" if self.spent is None else f"; spent {told(self.spent)}"


def told(spent: Mapping[str, float]) -> str:
    """What was spent in words; a delta of zero goes without saying."""
    return ", ".join(f"{what} {value:.4g}" for what, value in spent.items() if value or what == "epsilon")


def _table(value: Any) -> Array | None:
    """The parameters that are arrays of numbers (weights, say) go to the npz."""
    if not isinstance(value, np.ndarray | list | tuple):
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.ndim and array.dtype.kind in "biuf" else None


def _plain(value: Any) -> Any:
    """A value as TOML has it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _rate(ks: Array, errors: Array) -> float:
    """Slope of log(error) over the second half of the way down to 100 times its floor."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(errors)
    usable = np.isfinite(logs)
    if usable.sum() < 3:
        return float("nan")
    floor = logs[usable].min()
    top = int(np.argmax(np.where(usable, logs, -np.inf)))
    bottom = np.flatnonzero(usable & (logs <= floor + np.log(100)) & (np.arange(len(logs)) >= top))
    end = int(bottom[0]) if len(bottom) and logs[-1] - floor < np.log(1e3) and errors.min() < 1e-11 * errors[top] else len(logs) - 1
    begin = (top + end) // 2
    if end - begin < 2:
        begin = max(0, end - 2)
    return float(np.exp(np.polyfit(ks[begin : end + 1], logs[begin : end + 1], 1)[0])) if end > begin else float("nan")
