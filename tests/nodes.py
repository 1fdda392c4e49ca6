"""What the tests of real nodes share: a federation in a folder, its nodes as threads, a proxy that records, delays and cuts."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import sottovoce as sv
from sottovoce.peer.federation import Federation
from sottovoce.peer.founding import Plan, found, free_ports
from sottovoce.peer.loop import Loop, Watch
from sottovoce.peer.node_file import NodeFile
from sottovoce.peer.store import Store, read_key
from sottovoce.peer.zenoh_link import ZenohLink

LISTENING = """import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "sottovoce"
runpy.run_module("sottovoce", run_name="__main__")
"""  # the command line as from a terminal: what was started in the background ignores ctrl-c, and hands that down
PATIENCE = 60.0  # seconds after which a test gives up; nothing is expected to take a tenth of it


def federation(folder: Path, graph=None, algorithm="ab", parameters=None, problem="estimation", **options) -> Federation:
    """A federation on free ports of this machine."""
    options = {"stepsize": 0.05, "iterations": 30, "port": 0, **options}
    graphs = graph if isinstance(graph, tuple) else (graph or sv.graphs.cycle(3),)
    return found(folder, Plan(graphs, algorithm, parameters or {}, problem, **options))[0]


class Heard(Watch):
    """Who looks on: what was refused."""

    def __init__(self):
        self.reasons: list[tuple[int, str]] = []

    def refused(self, other, reason):
        self.reasons.append((other, reason))


class Member:
    """A node of a federation in this process, with draws that the test chooses."""

    def __init__(self, folder: Path, name: str, draws, change=lambda link: None):
        self.file = NodeFile.read(folder / name)
        self.federation, identity, cost = self.file.load()
        self.me, self.watch, self.x = self.file.number(self.federation), Heard(), {}
        self.link = ZenohLink(self.federation.roster, identity, self.federation.wiring(name, self.file.listen))
        change(self.link)
        self.cost, self.draws, self.failure = cost, draws, None

    def play(self):
        try:
            roster = self.federation.roster
            with Store(self.file.store, read_key(self.file.key), roster.digest, durable=False) as store:
                for k, x in Loop(roster, self.me, self.cost, store, self.link, self.draws, watch=self.watch).run():
                    self.x[k] = x
        except BaseException as error:  # told by `together`
            self.failure = error


def together(members: list[Member]) -> None:
    """Play all, each in a thread, until all have ended."""
    threads = [threading.Thread(target=member.play, daemon=True) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for member, thread in zip(members, threads, strict=True):
        if member.failure is not None:
            raise member.failure
        assert not thread.is_alive(), f"{member.file.name} is still at iteration {max(member.x, default=-1)}"


def until(true, seconds: float = PATIENCE) -> bool:
    """Wait for something that is expected to happen."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(found)


def free_port() -> int:
    return free_ports(1)[0]


class Proxy:
    """Stands between two nodes: keeps every byte that passes, holds each back for a moment, and can cut the line."""

    def __init__(self, target: int, delay: float = 0.0):
        self.target, self.delay, self.bytes, self.lines = target, delay, bytearray(), []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                line, _ = self.server.accept()
                onwards = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                if self.server.fileno() < 0:
                    return
                line.close()
                continue
            self.lines += [line, onwards]
            for a, b in ((line, onwards), (onwards, line)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        try:
            while data := a.recv(1 << 16):
                self.bytes += data
                time.sleep(self.delay)
                b.sendall(data)
        except OSError:
            pass
        for end in (a, b):
            end.close()

    def cut(self):
        """Every line breaks; new ones may be made."""
        lines, self.lines = self.lines, []
        for line in lines:
            try:
                line.shutdown(socket.SHUT_RDWR)
            except OSError:
                line.close()

    def close(self):
        self.server.close()
        self.cut()
