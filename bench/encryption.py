"""What encryption costs: an iteration of a method in the clear, with sealed links, with Paillier; and one message of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.mechanisms.encrypted_links import new_cipher
from sottovoce.paillier import Paillier

from .measure import interleaved, least_and_median
from .report import Row

FIGURE = "encryption"
NUMBERS = 2  # in a message: d = 2


def measure(quick: bool) -> list[Row]:
    """Rows of this figure."""
    rounds = 3 if quick else 10
    return [*_iterations(rounds), *_messages(rounds)]


def _iterations(rounds: int) -> list[Row]:
    problem, links = sv.problems.estimation(n=5, d=NUMBERS, s=3, scale=0.5, seed=0), sv.graphs.ring(5, two_way=True)

    def play(method: str, count: int, **given: Any) -> Callable[[], sv.Result]:
        return lambda: sv.run(method, problem, links, stepsize=0.1, iterations=count, backend="eager", **given)

    def wire(mechanism: str, count: int) -> Callable[[], Any]:
        """All messages of a recorded run as they cross the wire; keys are made before."""
        transcript = play("ab", count, record=True, mechanisms=mechanism)().transcript
        assert transcript is not None
        return lambda: [transcript.wire[k, exchange].sum() for k in range(count) for exchange in (0, 1)]

    actions: dict[str, tuple[Callable[[], Any], int]] = {
        "ab, nothing encrypted": (play("ab", 1000), 1000),
        "ab, what encrypted-links adds (ChaCha20-Poly1305)": (wire("encrypted-links", 50), 50),
        "ab, what paillier-links adds, 2048 bits": (wire("paillier-links", 2), 2),
        "two-servers, links open": (play("two-servers", 1000), 1000),
        "paillier-admm, in the clear": (play("paillier-admm", 1000), 1000),
        "paillier-admm, 2048 bits": (play("paillier-admm", 12, mode="encrypted"), 10),
        "the same without ten of its iterations": (play("paillier-admm", 2, mode="encrypted"), 10),
    }
    times = interleaved({name: action for name, (action, _) in actions.items()}, rounds)
    each = {name: np.array(times[name].cpu) * 1e6 / count for name, (_, count) in actions.items()}
    each["paillier-admm, 2048 bits"] -= each.pop("the same without ten of its iterations")  # the set-up, which makes the keys
    row = lambda name, t: Row(FIGURE, f"{name} (n = 5, ring both ways, d = 2)", "us an iteration", *least_and_median(list(t)))
    return [row(name, t) for name, t in each.items()]


def _messages(rounds: int) -> list[Row]:
    cipher, link = Paillier(), new_cipher()
    drawn = lambda count: np.random.default_rng(0).integers(0, 2**64, (1, count, 1), dtype=np.uint64)
    public, secret = cipher.keys(drawn(cipher.key_words))
    plain, words = np.array([12345, -678], object).reshape(1, NUMBERS, 1), drawn(NUMBERS * cipher.cipher_words)
    sealed, numbers = cipher.encrypted(public, plain, words), np.array([1.0, 2.0]).tobytes()

    def many() -> None:
        for count in range(1000):
            link.encrypt(count.to_bytes(12, "little"), numbers, None)

    actions: dict[str, tuple[Callable[[], Any], int]] = {
        "Paillier, 2048 bits: a pair of keys": (lambda: cipher.keys(drawn(cipher.key_words)), 1),
        "Paillier, 2048 bits: encrypt a message of two numbers": (lambda: cipher.encrypted(public, plain, words), 1),
        "Paillier, 2048 bits: decrypt it": (lambda: cipher.decrypted(secret, sealed, 2**80, str), 1),
        "ChaCha20-Poly1305: seal a message of two numbers": (many, 1000),
    }
    times = interleaved({name: action for name, (action, _) in actions.items()}, rounds)
    each = lambda name, count: least_and_median([1e6 * t / count for t in times[name].cpu])
    return [Row(FIGURE, name, "us", *each(name, count)) for name, (_, count) in actions.items()]
