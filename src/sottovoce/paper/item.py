"""What a file of figures/ or claims/ registers at its end. They are found by being there, no list is edited."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError, UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Numbers = dict[str, Any]
Watch = Callable[[str], None]  # told, in a few words, what is being done

HOLDS, CHANGED, FAILS, UNCHECKED = "holds", "holds with a change", "does not hold", "cannot be checked"
VERDICTS = (HOLDS, CHANGED, FAILS, UNCHECKED)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure, or a table.

    make(quick, watch) -> numbers   everything that is shown, as plain data: numbers, words, arrays, lists and dictionaries of
                                    them. `parameters` among them says what they were made with, the seed too; only what stands
                                    under `timings` may be another when made again. quick: less of it, in seconds
    draw(numbers, canvas)           onto an empty matplotlib figure, one column of a paper wide and `height` times that high;
                                    numbers are as the data file has them: lists for arrays, None where a number is not finite
    text(numbers) -> str            a table in Markdown, instead of a picture or beside it
    """

    name: str  # what is typed
    number: int | None  # in the paper up to 7, beyond it from 8 on; None: a table, typed by its name alone
    title: str
    make: Callable[[bool, Watch], Numbers]
    draw: Callable[[Any, Canvas], None] | None = None
    text: Callable[[Any], str] | None = None
    height: float = 0.8

    def __post_init__(self) -> None:
        if self.draw is None and self.text is None:
            raise ParameterError(f"the figure {self.name!r} has neither draw nor text, so there is nothing to see; give one")

    @property
    def stem(self) -> str:
        """The name of its files, without what follows the point."""
        return self.name if self.number is None else f"figure-{self.number:02}-{self.name}"


@dataclass(frozen=True)
class Finding:
    """What came of checking a claim."""

    verdict: str
    measured: str  # with its numbers
    why: str = ""  # what must change, why not, or why it cannot be checked
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ParameterError(f"a verdict is one of {', '.join(VERDICTS)}; got {self.verdict!r}")
        if (self.verdict == HOLDS) == bool(self.why):
            raise ParameterError("a claim that holds needs no reason, and every other verdict says what changes, or why")


def judged(borne_out: Any, measured: str, numbers: Mapping[str, Any], change: str = "") -> Finding:
    """Holds, or holds with a change, where the numbers bear it out; else it does not."""
    if not borne_out:
        return Finding(FAILS, measured, "The numbers do not bear it out.", numbers)
    return Finding(CHANGED if change else HOLDS, measured, change, numbers)


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim of the paper; `check(quick)` gives the same Finding whenever it is asked."""

    name: str
    number: int  # its place on the page
    text: str
    where: str  # in the paper
    check: Callable[[bool], Finding]


_FIGURES: dict[str, Figure] = {}
_CLAIMS: dict[str, Claim] = {}


def register(item: Figure | Claim) -> None:
    """Make it known; a file of figures/ or claims/ ends with this."""
    book: dict[str, Any] = _FIGURES if isinstance(item, Figure) else _CLAIMS
    for other in book.values():
        if other is not item and (other.name == item.name or other.number == item.number is not None):
            raise ParameterError(f"{item.name!r}, number {item.number}, is registered twice; names and numbers are unique")
    book[item.name] = item


@functools.cache
def _discover() -> None:
    for folder in ("figures", "claims"):
        package = importlib.import_module(f"{__package__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def figures() -> dict[str, Figure]:
    """All figures by name, in the order of their numbers; tables come last."""
    _discover()
    return dict(sorted(_FIGURES.items(), key=lambda one: (one[1].number is None, one[1].number or 0, one[0])))


def claims() -> dict[str, Claim]:
    """All claims by name, in the order of the page."""
    _discover()
    return dict(sorted(_CLAIMS.items(), key=lambda one: one[1].number))


def chosen(names: Iterable[Any]) -> list[Figure]:
    """The figures that names or numbers stand for, each once."""
    known = figures()
    numbers = {str(figure.number): figure for figure in known.values() if figure.number is not None}
    found = []
    for name in names:
        typed = str(name).strip().replace("_", "-")
        figure = known.get(typed) or numbers.get(typed)
        if figure is None and typed.isdigit():
            raise ParameterError(f"there is no figure {typed}; the numbers are {', '.join(numbers)}")
        if figure is None:
            raise UnknownName("figure", typed, [*known, "claims"])
        found.append(figure)
    return list(dict.fromkeys(found))
