"""Options as text, "K=3,law=cauchy", and the two spellings of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ParameterError


def parse_options(text: str) -> dict[str, Any]:
    """'K=3,law=cauchy' as a dictionary; numbers and true/false are read as such."""
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name):
            raise ParameterError(f"expected name=value, got {part!r}")
        if name.replace("-", "_") in options:
            raise ParameterError(f"{name} is given twice in {text!r}")
        options[name.replace("-", "_")] = parse_value(value)
    return options


def underscored(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same with underscores for hyphens, each name once."""
    found = {name.replace("-", "_"): value for name, value in given.items()}
    if len(found) < len(given):
        raise ParameterError(f"a parameter is given with a hyphen and with an underscore: {', '.join(given)}")
    return found


def parse_value(text: str) -> Any:
    """A number, true, false, none, or the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
