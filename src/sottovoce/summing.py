"""Open the sum over all nodes of a vector, and nothing else, to everybody: a room that any step may use.

    opened = summing.opened(node, values)        # (node, m, run) -> the sums, the same bits at every node

Each node writes its numbers as words (fixed_point.py). The two ends of every edge know words r that nobody else knows; the sender
adds them, the receiver takes them away:

    masked_i = share_i + sum over my out-edges of r - sum over my in-edges of r        mod 2^64 (or 2^128)

Over all nodes the r cancel, so sum masked = sum share, to the bit. The masked words then travel in the clear: each node passes on
what it has heard, and after as many hops as the graph is wide everybody has all of them. Given the sum over a group of
honest nodes that hang together, their masked words are uniform: a coalition learns that sum, and nothing more.
(Bonawitz et al., "Practical secure aggregation", CCS 2017, without its server; pairwise masks are Chaum's, J. Cryptology 1988.)

With carry="tree" they are added up on the way to node 0, and the total comes back: twice as many exchanges, of fewer words.

Over one edge, one sum takes m words + 1 in the first exchange and n m words in each later one, m being the numbers times the words
of each; on a tree, m words in each. A node that is missing is waited for: without it the masks do not cancel, and nobody is
unmasked to go on.
"""

from __future__ import annotations

from typing import Any

from .fixed_point import FixedPoint, cut, packed, settled, unpacked
from .registry import Parameter, one_of, one_of_numbers

Array = Any
WIDEST = 1e30  # what a range may be at most, and one over what it must be at least
PARAMETERS = {
    "range": Parameter(2.0**40, "no number of one node is larger; one that is is refused",
                       lambda v: 1 / WIDEST <= v <= WIDEST, "a number from 1e-30 to 1e30"),
    "words": one_of_numbers((1, 2), 2, "words of 64 bits for each number"),
    "carry": one_of(("flood", "tree"), "flood", "how masked words travel: flood, or tree (twice the exchanges, fewer bytes)"),
}  # fmt: skip


def hops(diameter: int) -> int:
    """The exchanges of one sum by flooding; a tree takes twice as many."""
    return diameter


def grid(node: Any) -> FixedPoint:
    """The fixed point that all nodes agreed on."""
    return FixedPoint(node.public.n, node.parameters.range, node.parameters.words)


def opened(node: Any, values: Array) -> Array:
    """The sum over all nodes, at every node; refused where a number is out of range."""
    xp, fixed = node.xp, grid(node)
    values = node.contribute(values, fixed)
    node.refuse(fixed.outside(xp, values), fixed.refusal)
    words = hidden(node, packed(xp, settled(xp, fixed.digits(xp, values))), fixed.words)
    return fixed.values(xp, added(node, words, fixed.words))


def hidden(node: Any, words: Array, count: int) -> Array:
    """My words with those of my edges on them: plus my out-edges', minus my in-edges'."""
    xp = node.xp
    out, inbox = (xp.concatenate(unpacked(xp, r, count), axis=-2) for r in node.shared("words", like=words))
    net = node.collect(out) - node.gather(inbox)
    masks = cut(net, 2 * count)
    return packed(xp, settled(xp, [share + mask for share, mask in zip(unpacked(xp, words, count), masks, strict=True)]))


def added(node: Any, words: Array, count: int) -> list[Array]:
    """The sum of everybody's words, as settled digits."""
    if node.parameters.carry == "tree":
        return over_tree(node, words, count)
    table = everybody(node, words)
    return settled(node.xp, [digit.sum(1) for digit in unpacked(node.xp, table, count)])


def everybody(node: Any, words: Array) -> Array:
    """Everybody's words at every node, (node, n, m, run), by flooding. A place not yet heard of holds zero, and two neighbours
    who know a place know the same, so the largest is it."""
    xp, n = node.xp, node.public.n
    names = xp.arange(n, dtype=xp.uint64)[None, :, None, None]
    placed = lambda who, said: xp.where(who[:, :, None] == names, said[:, None], xp.zeros((), xp.uint64))
    flat = lambda table: table.reshape(len(table), -1, table.shape[-1])
    me = xp.broadcast_to(node.me.astype(xp.uint64), words[:, :1].shape)
    table = placed(me, words)
    for hop in range(hops(node.public.diameter)):
        heard = flat(placed(*node.hear((me, words)))) if hop == 0 else node.hear(flat(table))
        table = xp.maximum(table, node.largest(heard).reshape(table.shape))
    return table


def over_tree(node: Any, words: Array, count: int) -> list[Array]:
    """The same on the way to node 0 and back. Each adds what its children said last to its own words: after as many exchanges as
    the graph is wide all children have spoken for all of theirs. Then each repeats what its parent said last."""
    xp, tree, own = node.xp, node.public.tree, unpacked(node.xp, words, count)
    said = words
    for _ in range(node.public.diameter):
        said = packed(xp, settled(xp, [mine + more for mine, more in zip(own, chosen(node, said, tree.up, count), strict=True)]))
    total, root = said, node.me == 0
    for _ in range(node.public.diameter):
        total = xp.where(root, said, packed(xp, settled(xp, chosen(node, total, tree.down, count))))
    return unpacked(xp, total, count)


def chosen(node: Any, words: Array, edges: Array, count: int) -> list[Array]:
    """Everybody says its words; the digits of those that came over the chosen edges, added up."""
    heard = node.xp.concatenate(unpacked(node.xp, node.hear(words), count), axis=-2)
    return cut(node.gather(edges * heard), 2 * count)
