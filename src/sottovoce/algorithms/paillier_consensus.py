"""The mean over Paillier: Ruan, Gao, Wang, "Secure and privacy-preserving consensus" (IEEE TAC 2019).

    x_i+ = x_i + sum_j b_ij (x_j - x_i),    b_ij = w_ij b_i->j b_j->i,    x_i^0 = my value

It is `paillier` without costs: nobody needs to be trusted, each has a pair of keys, and i gets to see b_j->i (x_j - x_i), no x_j.
Links go both ways; b_ij = b_ji keeps the sum, so the limit is the mean of the values (encrypted: up to the encoding, about 2^-48 an
exchange).

Hadjicostis, Dominguez-Garcia (IEEE TAC 2020) do it on digraphs, with a node that all trust and whose key encrypts everything. That
is not in here: a ciphertext grows by the bits of the weights in every iteration, so a key of 2048 bits lasts for some hundred, and
whoever holds the key can read every value from the first message.
"""

from typing import Any

from ..registry import Algorithm, doubly, register
from .paillier import CIPHER, LEAKS, SIMULATED, Keyed, State, differences, factors, keys, otherwise, refuses


def start(node: Any, x: Any) -> Any:
    """From the node's value; what x was does not matter."""
    x = node.value + 0 * x
    return Keyed(x, *keys(node)) if node.parameters.mode == "encrypted" else State(x)


def step(node: Any, s: Any) -> Any:
    mine, pulled = differences(node, s, s.x, factors(node, s.x))
    return s._replace(x=s.x + node.gather(node.weights.W.edge * mine * pulled))


register(
    Algorithm(
        name="paillier-consensus",
        start=start,
        step=step,
        source="Ruan, Gao, Wang 2019",
        certainty="B",
        graphs="two-way",
        weights={"W": doubly("metropolis")},
        parameters=CIPHER,
        exchanges=2,
        minimises=False,
        averages=True,
        refuses=refuses,
        simulated=SIMULATED,
        otherwise=otherwise,
        leaks=LEAKS,
    )
)
