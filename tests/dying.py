"""A node as a process that notes what it draws and says, and kills itself where it is told: `dying.py NODE.toml NOTES FATE...`

A fate is "k:exchange:moment", one for each life, the rest of them lived to the end. Moments: `drawn`, all is drawn and nothing
written; `written`, the message is on the disk and was shown to nobody; `offered`, it may be with some and not with others; `heard`,
everybody else's is here; `finished` (whatever k and exchange), the end is on the disk, the result not
written, some were told.

The notes hold digests of what was drawn and said:
"mask SENDER RECEIVER STREAM K DIGEST", "said SENDER RECEIVER WHAT K EXCHANGE DIGEST".
"""

import hashlib
import os
import signal
import sys

import numpy as np

from sottovoce.peer import loop, process, store, zenoh_link
from sottovoce.peer.draws import NodeDraws
from sottovoce.peer.frame import WHERE, WHO

file, notes, *fates = sys.argv[1:]
out = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
with open(notes) as before:
    deaths = sum(line.startswith("died") for line in before)
fate = fates[deaths] if deaths < len(fates) else None
digest = lambda data: hashlib.sha256(data).hexdigest()
place_now = None


def note(*words):
    os.write(out, (" ".join(map(str, words)) + "\n").encode())  # no buffer: it outlives the process


def moment(place, what):
    if fate == f"{place[0]}:{place[1]}:{what}":
        note("died", fate)
        os.kill(os.getpid(), signal.SIGKILL)


def wrapped(owner, name, before=lambda *a: None, after=lambda found, *a: None):
    inner = getattr(owner, name)

    def call(*arguments, **options):
        before(*arguments)
        found = inner(*arguments, **options)
        after(found, *arguments)
        return found

    setattr(owner, name, call)


def sending(node, place, parts):
    global place_now
    place_now = place
    moment(place, "drawn")


def sent(_, node, place, parts):
    global place_now
    place_now = None
    moment(place, "offered")


def written(_, place, *rest):
    if place_now is not None:
        moment(place_now, "written")


def drawn(found, draws, xp, law, stream, k, sender, receiver, *rest):
    for row, (s, r) in enumerate(zip(np.atleast_1d(sender), np.atleast_1d(receiver), strict=True)):
        words = b"".join(np.ascontiguousarray(part[row]).tobytes() for part in found)
        note("mask", s, r, "-".join(map(str, stream)), k, digest(words))


def said(link, receiver, frame, last):
    if frame:
        k, exchange, *_ = WHERE.unpack_from(frame, WHO.size)
        _, _, what, *_, sender, receiver = WHO.unpack_from(frame)
        note("said", sender, receiver, what, k, exchange, digest(bytes(frame)))


def finished(_, node):
    if fate is not None and fate.endswith("finished"):
        note("died", fate)
        os.kill(os.getpid(), signal.SIGKILL)


loop.CONFIRM = 1.0  # who died at the very end waits no minute for those who have left
wrapped(loop.Loop, "send", sending, sent)
wrapped(loop.Loop, "receive", after=lambda _, node, place: moment(place, "heard"))
wrapped(loop.Loop, "finish", after=finished)
wrapped(store.Store, "append", after=written)
wrapped(zenoh_link.ZenohLink, "answer", said)
wrapped(NodeDraws, "between", after=drawn)
sys.exit(process.main(file))
