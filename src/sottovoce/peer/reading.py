"""Settings files, read strictly: what is not understood, or is missing, is refused with its place."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ParameterError


def read(file: Path, known: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    """What a TOML file says: all of `known` but the optional, and nothing else."""
    try:
        facts = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; `sottovoce init FOLDER` writes a federation") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not TOML: {error}") from None
    for name in facts:
        if name not in known:
            raise InputError(f"{file} says {name!r}, which means nothing here; known: {', '.join(known)}")
    missing = [name for name in known if name not in facts and name not in optional]
    if missing:
        raise InputError(f"{file} must say {', '.join(missing)}")
    return facts


def of(file: Path, facts: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """One entry of the right kind."""
    value = facts.get(name, default)
    good = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not good or (isinstance(value, bool) and kind is not bool):
        what = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise InputError(f"{file}: {name} is {what}, not {value!r}")
    return value


def mapping(file: Path, name: str, value: Any) -> Mapping[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise InputError(f"{file}: [{name}] is a table, not {value!r}")
    return value


def split(address: str) -> tuple[str, int]:
    """host:port apart."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and 0 < int(port) < 65536):
        raise InputError(f"an address is host:port, such as site-a.example.org:7440, or hidden; got {address!r}")
    return host, int(port)


def plain(value: Any) -> Any:
    """Numbers, words, and tuples of them: lists are tuples, hyphens in names underscores."""
    if isinstance(value, Mapping):
        return {name.replace("-", "_"): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(plain(one) for one in value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"{value} is no number to agree on")
    return value
