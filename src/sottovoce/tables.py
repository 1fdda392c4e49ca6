"""Plain files: TOML out (the standard library only reads it) and arrays, for results, transcripts and settings."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def toml(tree: Mapping[str, Any], prefix: str = "") -> str:
    """A tree of dictionaries as TOML, lists of dictionaries as [[tables]]; None is left out."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in tree.items() if v is not None and not _branches(v)]
    for name, value in tree.items():
        path, several = f"{prefix}{_key(name)}", not isinstance(value, Mapping)
        for branch in _branches(value):
            heading = f"[[{path}]]" if several else f"[{path}]"
            lines.append(f"\n{heading}\n{toml(branch, path + '.')}".rstrip())
    return "\n".join(lines) + "\n"


def _branches(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        return [value]
    several = isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(one, Mapping) for one in value)
    return list(value) if several else []


def write_toml(file: Path, tree: Mapping[str, Any]) -> None:
    """Write a tree to a file that only its owner can read, whole or not at all."""
    new, out = _owned(file)
    with open(out, "w") as text:
        text.write(toml(tree))
    new.replace(file)


def write_arrays(file: Path, arrays: Iterable[tuple[str, Any]]) -> None:
    """The same for arrays, as np.savez_compressed writes them, but one after the other: they need not all be in memory."""
    new, out = _owned(file)
    with open(out, "wb") as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as packed:
        for name, array in arrays:
            with packed.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    new.replace(file)


def read_arrays(file: Path) -> dict[str, dict[tuple[str, str], np.ndarray]]:
    """Arrays that are named kind/a/b, by kind, then by (a, b)."""
    found: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    with np.load(file, allow_pickle=False) as stored:
        for key in stored.files:
            kind, _, rest = key.partition("/")
            a, _, b = rest.rpartition("/")
            found.setdefault(kind, {})[a, b] = stored[key]
    return found


def nested(arrays: Mapping[tuple[str, str], np.ndarray]) -> dict[int, dict[str, np.ndarray]]:
    """(name, number) -> array, as number -> name -> array."""
    found: dict[int, dict[str, np.ndarray]] = {}
    for (name, number), array in arrays.items():
        found.setdefault(int(number), {})[name] = array
    return found


def numbered(arrays: Mapping[tuple[str, str], np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
    """The same with two numbers for a name."""
    return {(int(a), int(b)): array for (a, b), array in arrays.items()}


def _owned(file: Path) -> tuple[Path, int]:
    """A new file beside this one, open for writing, that only its owner can read."""
    new = file.with_suffix(file.suffix + ".new")
    new.unlink(missing_ok=True)
    return new, os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _key(name: Any) -> str:
    text = str(name)
    return text if text and all(c.isalnum() or c in "-_" for c in text) and text.isascii() else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return repr(float(value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        write = repr if all(type(v) is float for v in value) else _value
        return "[" + ", ".join(map(write, value)) + "]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'
