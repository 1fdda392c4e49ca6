"""The verb: make the figures and check the claims, write them with what they were made from, and say what came."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..version import __version__
from .item import Claim, Figure, Watch, chosen, claims, figures

SCHEMA = 1
CLAIMS = "claims"  # typed among the names of figures


def reproduce(*names: Any, quick: bool = False, out: str | Path = "out", watch: Watch = lambda text: None) -> dict[str, Any]:
    """Make the paper's figures, and those beyond it, and check its claims.

    names        figures by number or name (4, "convergence"), and "claims"; all of it if left out
    quick        less of everything, in less than three minutes; what is written says so
    out          the folder for a PNG, a PDF and a data file (JSON) a figure, claims.json and claims.md
    watch        called with a line of text whenever something begins
    """
    out = _folder(out)
    asked = [name for name in names if str(name) != CLAIMS]
    wanted = chosen(asked) if names else list(figures().values())
    checked = list(claims().values()) if not names or len(asked) < len(names) else []
    if any(figure.draw for figure in wanted):
        from ..plot import required

        required()
    out.mkdir(exist_ok=True)
    began, total = time.monotonic(), len(wanted) + len(checked)
    drawn = [_made(figure, quick, out, watch, f"{i} of {total}") for i, figure in enumerate(wanted, 1)]
    found = [_checked(claim, quick, watch, f"{i} of {total}") for i, claim in enumerate(checked, len(wanted) + 1)]
    return {
        "schema": SCHEMA, "version": __version__, "quick": quick, "out": str(out), "figures": drawn, "claims": found,
        "files": _written_claims(found, quick, out), "seconds": time.monotonic() - began,
    }  # fmt: skip


def listing() -> dict[str, Any]:
    """What can be made and checked, as plain facts."""
    return {
        "schema": SCHEMA,
        "figures": [{"name": f.name, "number": f.number, "title": f.title} for f in figures().values()],
        "claims": [{"name": c.name, "claim": c.text, "where": c.where} for c in claims().values()],
    }


def _folder(out: str | Path) -> Path:
    out = Path(out)
    if not out.absolute().parent.is_dir() or (out.exists() and not out.is_dir()):
        raise InputError(f"{out} must be a folder, or a new one in a folder that exists")
    return out


def _made(figure: Figure, quick: bool, out: Path, watch: Watch, place: str) -> dict[str, Any]:
    """One figure: its numbers, then what is drawn from them, then the files."""
    from ..cli_work import plain

    label = figure.name if figure.number is None else f"figure {figure.number}, {figure.name}"
    watch(f"{place}: {label}: {figure.title}")
    began = time.monotonic()
    numbers = plain(figure.make(quick, lambda text: watch(f"    {text}")))
    about = {
        "schema": SCHEMA, "figure": figure.name, "number": figure.number, "title": figure.title, "version": __version__,
        "quick": quick, "parameters": numbers.pop("parameters"), "timings": numbers.pop("timings", None),
    }  # fmt: skip
    files = {out / f"{figure.stem}.json": (json.dumps({**about, "numbers": numbers}, allow_nan=False) + "\n").encode()}
    shown = {**numbers, **{name: about[name] for name in ("quick", "parameters", "timings")}}
    if figure.text is not None:
        files[out / f"{figure.stem}.md"] = figure.text(shown).encode()
    if figure.draw is not None:
        from .looks import pictures

        files |= {out / f"{figure.stem}.{kind}": data for kind, data in pictures(figure, shown, about).items()}
    for file, data in files.items():
        file.write_bytes(data)
    made = {"name": figure.name, "number": figure.number, "title": figure.title}
    return {**made, "files": [str(file) for file in files], "seconds": time.monotonic() - began}


def _checked(claim: Claim, quick: bool, watch: Watch, place: str) -> dict[str, Any]:
    from ..cli_work import plain

    watch(f"{place}: claim: {claim.name}")
    found = claim.check(quick)
    return plain({
        "name": claim.name, "claim": claim.text, "where": claim.where, "verdict": found.verdict, "why": found.why,
        "measured": found.measured, "numbers": found.numbers,
    })  # fmt: skip


def _written_claims(found: list[dict[str, Any]], quick: bool, out: Path) -> list[str]:
    """claims.json and claims.md; nothing where no claim was asked for."""
    if not found:
        return []
    from .page import page

    told = {"schema": SCHEMA, "version": __version__, "quick": quick, "claims": found}
    (out / "claims.json").write_text(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    (out / "claims.md").write_text(page(told))
    return [str(out / "claims.json"), str(out / "claims.md")]
