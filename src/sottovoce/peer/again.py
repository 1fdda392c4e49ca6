"""Another run of the same nodes: a new run name and a new public seed in federation.toml; names, keys and costs stay.

What the run before has left in the folders that are here (results, transcripts, a store if it did not come to its end, the old
federation.toml) is put aside under its name, so that nothing is lost and nothing is in the way.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from .federation import FILE, Federation
from .node_file import NodeFile
from .store import locked


def again(folder: str | Path) -> Federation:
    """Give a federation another run; refused while one of its nodes runs here."""
    file = Path(folder) / FILE
    if not file.is_file():
        raise InputError(f"there is no {file}; give the folder that `sottovoce init` made")
    old = Federation.read(file)
    new = replace(old, run=os.urandom(8).hex(), public=os.urandom(8).hex())
    nodes = [NodeFile.read(here) for name in old.names if (here := file.parent / name / "node.toml").is_file()]
    with ExitStack() as held:
        for node in nodes:
            if node.store.is_dir():
                held.callback(os.close, locked(node.store / "lock"))
        for path in (path for node in nodes for path in (node.store, node.result, node.transcript)):
            if path.is_dir():
                os.replace(path, path.with_name(f"{path.name}-{old.run}"))
        fresh = file.with_name(f"{FILE}.new")
        fresh.unlink(missing_ok=True)
        new.write(fresh)
        (file.with_name(f"federation-{old.run}.toml")).write_bytes(file.read_bytes())
        os.replace(fresh, file)
    return new
