"""Gradient descent over Paillier: Zhang, Wang, "Enabling privacy-preservation in decentralized optimization" (IEEE TCNS 2019).

    x_i+ = P(x_i + sum_j b_ij (x_j - x_i) - stepsize / (k + 1)^decay grad f_i(x_i)),    b_ij = w_ij b_i->j b_j->i

Nobody knows b_ij: i draws b_i->j and j draws b_j->i, afresh in every iteration, uniform in [low, 1]. i sends E_i(-x_i) under its
own key, j answers E_i(b_j->i (x_j - x_i)), which it makes of that without opening it, and i decrypts and multiplies by w_ij b_i->j.
Links go both ways. w_ij is public (Metropolis unless given), so every drawn matrix is doubly stochastic with a positive diagonal.
P projects onto the set `within`, where one is given.

mode="encrypted" really encrypts, with keys of 2048 bits (`paillier.py`). mode="clear" sends the same numbers as they are, for
simulation: the same trajectory up to the encoding (x at 48 bits after the point, |x| <= largest).

Two things are done beside the letter of the paper; neither costs more than the encoding does. The answer is
(E_i(-x_i))^b E_i(b x_j), not (E_i(x_j) E_i(-x_i))^b, so its randomness is fresh and does not tell whether b has a factor in common
with the order of i's group. And j blurs the integer b_j->i (x_j - x_i) below the encoding's last bit, because a product of two
integers that is known exactly is factored in no time.
"""

from typing import Any, NamedTuple

import numpy as np

from ..fixed import Fixed, real
from ..node import Array
from ..paillier import STRONG, Paillier, check_key, check_range, libraries
from ..registry import Algorithm, Parameter, at_least, between, doubly, one_of, positive, register, within

LEAKS = (
    "Encrypted, a neighbour reads b_j->i (x_j - x_i): its sign, its size up to a factor 1 / low, and slow changes better; a "
    "wire-tapper lengths and times. In the clear, which is for simulation, every x."
)
SIMULATED = "in the clear every neighbour reads x; give mode='encrypted'"
FACTOR_BITS = 16  # b is a multiple of 2^-16: the exponent of a ciphertext


class State(NamedTuple):
    x: Any


class Keyed(NamedTuple):
    x: Any
    theirs: Any  # the public key of the receiver of each of my out-edges
    mine: Any  # my own public key, and the two primes that it hides
    secret: Any


def start(node: Any, x: Any) -> Any:
    """In the clear nothing is sent; else each makes a pair of keys and tells its neighbours the public one."""
    x = inside(node, x)
    return Keyed(x, *keys(node)) if node.parameters.mode == "encrypted" else State(x)


def step(node: Any, s: Any) -> Any:
    w = node.weights
    mine, pulled = differences(node, s, s.x, factors(node, s.x))
    mixed = node.gather(w.W.edge * mine * pulled)
    size = w.stepsize / (node.k + 1.0) ** node.parameters.decay
    return s._replace(x=inside(node, s.x + mixed - size * node.gradient(s.x)))


def inside(node: Any, x: Array) -> Array:
    """The nearest point of the set; where there is none, x itself."""
    region = node.parameters.within
    return x if region is None else region.project(node.xp, x)


def keys(node: Any) -> tuple[Array, Array, Array]:
    """The keys of the receivers of my out-edges, my own, and my secret."""
    cipher = Paillier(int(node.parameters.key_bits))
    public, secret = cipher.keys(node.draw("words", like=spots(cipher.key_words)))
    return node.turn(node.hear(public)), public, secret


def factors(node: Any, x: Array) -> Array:
    """My b_i->j for each out-edge, as integers b 2^16."""
    low = node.parameters.low
    return node.xp.rint((low + (1 - low) * node.draw("unit", like=x[:, :1], each="edge")) * 2.0**FACTOR_BITS)


def differences(node: Any, s: Any, x: Array, whole: Array) -> tuple[Array, Array]:
    """For each of my in-edges from j: my b_i->j, and b_j->i (x_j - x_i), which is all that I get to see."""
    b = whole * 2.0**-FACTOR_BITS
    if node.parameters.mode == "encrypted":
        return node.turn(b), encrypted(node, s, x, whole.astype(np.int64).astype(object))
    asked = node.hear(-x)
    return node.turn(b), node.exchange(b * (node.spread(x) + node.turn(asked)))


def encrypted(node: Any, s: Any, x: Array, whole: Array) -> Array:
    """The same through Paillier."""
    p, d = node.parameters, x.shape[1]
    cipher, fixed = Paillier(int(p.key_bits)), Fixed(int(p.fraction_bits), p.largest)
    node.refuse(fixed.outside(x), fixed.refusal)
    own, size = fixed.integers(x), d * cipher.cipher_words
    asked = node.turn(node.hear(cipher.encrypted(s.mine, -own, node.draw("words", like=spots(size)))))
    added = whole * node.spread(own) + blur(node.draw("words", like=x, each="edge"))
    words, mine = node.draw("words", like=spots(size), each="edge"), node.spread(node.me)
    when = "set-up" if node.k < 0 else f"iteration {node.k + 1}"
    where = lambda owner: lambda row: f"{when}, node {int(owner[row, 0, 0])}"
    came = node.exchange(cipher.combined(s.theirs, asked, whole, added, words, where(mine)))
    opened = cipher.decrypted(node.turn(node.spread(s.secret)), came, widest(p), where(node.turn(mine)))
    return real(opened, fixed.bits + FACTOR_BITS)


def blur(words: np.ndarray) -> np.ndarray:
    """Integers from -2^16 to 2^16: as wide as the steps of the largest b, so that every b explains what is read as well."""
    return ((words >> np.uint64(63 - FACTOR_BITS)).astype(np.int64) - 2**FACTOR_BITS).astype(object)


def spots(count: int) -> np.ndarray:
    """The shape of so many numbers, for a draw."""
    return np.empty((1, count, 1))


def widest(p: Any) -> int:
    """The largest integer that an honest answer holds."""
    return 2 * int(p.largest * 2.0 ** int(p.fraction_bits) + 1) * 2**FACTOR_BITS + 2**FACTOR_BITS


def refuses(p: Any) -> str | None:
    """Weak keys, and ranges that do not fit them; in the clear nothing is encrypted."""
    if p.mode == "clear":
        return None
    libraries()
    return check_key(int(p.key_bits), p.weak_keys) or check_range(int(p.key_bits), widest(p))


def otherwise(p: Any) -> dict[str, Any]:
    """Encrypted, messages are bytes, nothing that JAX could compile, and what real nodes do."""
    return {"kinds": ("bytes", "bytes"), "players": ("eager", "peer"), "simulated": ""} if p.mode == "encrypted" else {}


CIPHER = {
    "mode": one_of(("clear", "encrypted"), "clear", "clear: the same numbers, not encrypted, for simulation; encrypted: Paillier"),
    "low": Parameter(0.5, "b_i->j is uniform in [low, 1]", lambda v: 0 < v < 1, "between 0 and 1"),
    "key_bits": at_least(256, STRONG, "length of the keys"),
    "weak_keys": Parameter(False, "allow keys below 2048 bits", lambda v: isinstance(v, bool), "true or false"),
    "fraction_bits": between(1, 52, 48, "bits after the point of what is encrypted"),
    "largest": positive(1e6, "how large an entry of x may be, encrypted"),
}

register(
    Algorithm(
        name="paillier",
        start=start,
        step=step,
        source="Zhang, Wang 2019 (TCNS)",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters={
            **CIPHER,
            "within": within(None),
            "decay": Parameter(0.75, "stepsize / (k + 1)^decay; 0 keeps it constant", lambda v: 0 <= v <= 1, "in [0, 1]"),
        },
        exchanges=2,
        own_steps="stepsize / (k + 1)^decay: exact for decay in (1/2, 1], biased in proportion to the step for 0",
        refuses=refuses,
        simulated=SIMULATED,
        otherwise=otherwise,
        leaks=LEAKS,
    )
)
