"""Rows that really encrypt, with Paillier's cipher: what it costs is measured over as many iterations as a few seconds allow.

`paillier-links` encrypts whole messages for their receivers (Remark 7 of the paper), and the method is what it was. The algorithm
`paillier` encrypts what its neighbours compute with, and is another method, whose steps get smaller. Where it goes does not depend
on the cipher, so it is played to its end in the clear; cost, size and verdicts are those of its encrypted iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .errors import ParameterError
from .paillier import Paillier, libraries
from .privacy_rows import Row, Stage
from .privacy_stacks import GT, TRACKED, Stack
from .run import run
from .simulate.task import applied

SECONDS = 4.0  # that are spent on encrypted iterations, unless a single one takes longer
PATIENCE = 60.0  # seconds that a single one may take
TRIALS = 4  # encryptions by which that is foretold
LINKS = Stack("Paillier on the links", GT, ("paillier-links",), TRACKED)
BETWEEN = Stack("Paillier between neighbours", "paillier")


def links(stage: Stage, stack: Stack) -> Row:
    """Its messages enciphered and opened again, one after another."""
    played = stage.played(stack)
    short = stage.recorded(stack, played)
    row, transcript = stage.told(stack, played, short), short.transcript
    assert transcript is not None
    cipher: Any = transcript.wire
    secrets = _secrets(transcript, int(applied(stack.mechanisms)[0].options.key_bits))
    keys, begun, spent, size, k = sorted(key for key in cipher if key[0] >= 0), time.perf_counter(), 0.0, 0, 0
    while k < transcript.iterations and (k == 0 or spent * (k + 1) / k < SECONDS):
        for key in (key for key in keys if key[0] == k):
            crossed = cipher[key]
            size += crossed.size
            for e, (_, receiver) in enumerate(transcript.edges):
                cipher.opened(key, e, crossed[e, :, 0].tobytes(), secrets[receiver])
        spent, k = time.perf_counter() - begun, k + 1
    at = row.iterations
    carried = None if at is None else int(played.result.bytes[0]) + at * size // k
    note = f"every message really encrypted and opened again, over {_times(k)}; whoever taps a link reads its ciphertexts"
    return replace(row, bytes=carried, microseconds=played.microseconds + 1e6 * spent / k, note=note)


def between(stage: Stage, stack: Stack) -> Row:
    """Encrypted for as long as is bearable, in the clear to the end."""
    scene = stage.scene
    clear = stage.played(stack)
    expected = _foretold(int(clear.result.parameters["key_bits"]), scene.problem.d, scene.graph.n, len(scene.graph.edges))
    if expected > PATIENCE:
        raise ParameterError(
            f"one encrypted iteration would take about {expected:.0f} s here, more than {PATIENCE:.0f}; to play one, "
            "sottovoce run paillier --set mode=encrypted --iterations 1"
        )
    few = max(1, min(int(SECONDS / expected), clear.result.iterations))
    settings = {**clear.settings, "mode": "encrypted"}
    begun = time.perf_counter()
    short = run(stack.method, *scene[:2], iterations=few, record=True, backend="eager", **settings)
    spent = time.perf_counter() - begun
    row = stage.told(stack, clear, short)
    size = int(short.bytes[1:].sum()) // few
    at = row.iterations
    carried = None if at is None else int(short.bytes[0]) + at * size
    note = (
        f"really encrypted, and judged, over {_times(few)} of {size:,} bytes, the making of keys counted in; the error is that of "
        "the same numbers in the clear"
    )
    return replace(row, bytes=carried, microseconds=1e6 * spent / few, note=note)


ENCRYPTED: tuple[tuple[Stack, Callable[[Stage, Stack], Row]], ...] = ((LINKS, links), (BETWEEN, between))


def _secrets(transcript: Any, bits: int) -> dict[int, bytes]:
    """Everybody's secret key, from the words that it drew: a rehearsal knows them."""
    secret = Paillier(bits).keys(transcript.draws["draw-0", -1].value)[1]
    return {i: key[:, 0].tobytes() for i, key in enumerate(secret)}


def _foretold(bits: int, d: int, n: int, edges: int) -> float:
    """Seconds of an iteration: all nodes encrypt, all edges encrypt and decrypt, each coordinate by itself."""
    libraries()
    cipher, rng = Paillier(bits), np.random.default_rng(0)
    words = lambda count: rng.integers(0, 2**64, (1, count, 1), dtype=np.uint64)
    public, secret = cipher.keys(words(cipher.key_words))
    numbers = np.arange(TRIALS).astype(object).reshape(1, TRIALS, 1)
    begun = time.perf_counter()
    sealed = cipher.encrypted(public, numbers, words(TRIALS * cipher.cipher_words))
    there = time.perf_counter()
    cipher.decrypted(secret, sealed, TRIALS, lambda _: "a trial")
    one, other = (there - begun) / TRIALS, (time.perf_counter() - there) / TRIALS
    return d * ((n + edges) * one + edges * other)


def _times(k: int) -> str:
    return f"{k} iteration{'s' * (k > 1)}"
