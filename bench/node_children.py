"""What the processes of `nodes` and `soak` run: one real node, or one end of a bare TLS exchange of the same bytes.

    python -m bench.node_children node FOLDER NAME
    python -m bench.node_children raw FOLDER NAME
    python -m bench.node_children span FOLDER NAME

The first two print one line of JSON: iterations a second once it runs, when its first iteration was done (wall clock), its peak
memory. `span` prints when the set-up, the first and the last iteration but one were done, and the answer.
"""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import sys
import time
from pathlib import Path

WARM = 0.1  # of the way, before the clock starts


def node(folder: Path, name: str) -> list[tuple[float, int]]:
    """A node as it is deployed: (time, iteration) of the first, of the start of the clock, and of the last before the one that
    comes with its result written down."""
    from sottovoce.peer.node import Node

    one = Node(folder / name)
    warm, marks = max(2, int(WARM * one.roster.iterations)), []
    for k, _ in one.run():
        if k in (1, warm, one.roster.iterations - 1):
            marks.append((time.time(), k))
    return marks


def span(folder: Path, name: str) -> dict[str, object]:
    """A run by the clock, without what comes before its set-up and after the last iteration but one: with the last one its
    result is written down."""
    from sottovoce.peer.node import Node

    found: dict[str, object] = {}
    one = Node(folder / name)
    for k, x in one.run():
        when = {0: "begun", 1: "first", one.roster.iterations - 1: "last"}.get(k)
        found |= {"x": x.tolist()} | ({when: time.time()} if when else {})
    return found


def raw(folder: Path, name: str) -> list[tuple[float, int]]:
    """The same messages by nothing but asyncio and TLS: no checks, no step, nothing on the disk."""
    from sottovoce.peer.federation import FILE, Federation

    return asyncio.run(_exchange(folder, Federation.read(folder / FILE), name))


async def _exchange(folder: Path, federation, name: str) -> list[tuple[float, int]]:
    me = federation.names.index(name)
    ins, outs = federation.graph.in_neighbours(me), federation.graph.out_neighbours(me)
    sizes = [8 * sum(count for _, count in exchange) for exchange in federation.roster.payloads[-1][1]]
    arrived: dict[int, asyncio.Future] = {i: asyncio.get_running_loop().create_future() for i in ins}

    async def met(reader, writer):
        arrived[int.from_bytes(await reader.readexactly(4), "big")].set_result((reader, writer))

    where = lambda i: federation.members[i].address.rpartition(":")
    server = await asyncio.start_server(met, where(me)[0], int(where(me)[2]), ssl=_context(folder / name, True), limit=1 << 20)
    tell = [await _dialled(where(i), _context(folder / name, False), me) for i in outs]
    hear = [(await arrived[i])[0] for i in ins]
    bodies, marks = [bytes(size) for size in sizes], []
    for k in range(1, federation.iterations + 1):
        for body, size in zip(bodies, sizes, strict=True):
            for writer in tell:
                writer.write(body)
            await asyncio.gather(*(writer.drain() for writer in tell), *(reader.readexactly(size) for reader in hear))
        if k in (1, max(2, int(WARM * federation.iterations)), federation.iterations):
            marks.append((time.time(), k))
    await asyncio.sleep(0.5)
    for writer in tell:
        writer.close()
    server.close()
    return marks


async def _dialled(where, context, me):
    while True:
        try:
            _, writer = await asyncio.open_connection(where[0], int(where[2]), ssl=context)
        except OSError:
            await asyncio.sleep(0.02)
            continue
        writer.write(me.to_bytes(4, "big"))
        return writer


def _context(folder: Path, server: bool) -> ssl.SSLContext:
    from sottovoce.peer import identity

    purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
    context = ssl.create_default_context(purpose, cafile=str(folder / identity.AUTHORITY))
    context.load_cert_chain(folder / identity.CERTIFICATE, folder / identity.KEY)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def main() -> dict[str, object]:
    what, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if what == "span":
        return span(folder, name)
    (first, _), (begun, k0), (ended, k1) = {"node": node, "raw": raw}[what](folder, name)
    return {"rate": (k1 - k0) / (ended - begun), "first": first, "peak": peak()}


def peak() -> int:
    """The largest resident memory of this process in bytes; what getrusage says may be its parent's, from before it began."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(json.dumps(main()))
