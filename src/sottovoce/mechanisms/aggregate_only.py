"""Messages of which only the sum over each receiver's in-edges can be read: pairwise masks mod 2^64, after Bonawitz, Ivanov,
Kreuter et al., "Practical secure aggregation" (CCS 2017), here among those who send to the same receiver, with no server.

    message = round(2^48 value) + words,    words uniform, summing to zero mod 2^64 over the in-edges of each receiver

A receiver adds up its in-edges and has the sum, to the last bit what it would have without masks; each message alone is uniform.
The words come from streams that every two in-neighbours of a receiver share; they need not be neighbours of each other. What a
node keeps for itself is what is missing in whole numbers: a promised sum is  y = round(total) + received - sent,  so that over all
nodes nothing is ever lost, however long the run.

What is pushed is weighed by its sender. What is pulled is weighed by the receiver, so the senders must know its weights: those
that follow from the public graph. pulls="open" leaves pulled messages as they are, for methods whose receivers draw weights.

Worth: a receiver learns a sum over its honest in-neighbours instead of each; of a lone one, everything, and colluding
in-neighbours subtract their parts. With weights that are known the sums are still a known linear system: two curious nodes of five
fit everybody's curvature from their own states (the auditor's A9). Masks on costs go with it. A node that stops is waited for.
"""

from typing import Any, NamedTuple

from ..errors import ParameterError
from ..node import Array, Layer, Values, Weight, each, grouped
from ..registry import Mechanism, one_of, register

UNIT = 2.0**48  # fixed point: so many to one
LARGEST = 2.0**15  # what a sum must stay below


class Account(NamedTuple):
    """Received less sent since the start, of every promised sum, in words; one below the other."""

    net: Array  # (n, coordinates, run), uint64


class AggregateOnly(Layer):
    def __init__(self, inner: Any, m: Account, options: Any):
        super().__init__(inner, m, options)
        self.promised: list[tuple[Any, int]] = []  # totals of this iteration, and where their accounts begin
        self.used = 0

    # what is pushed ----------------------------------------------------------------------------------------------

    def push(self, *terms: tuple[Weight, Values], total: Any = None) -> Values:
        home, sent = grouped(terms)
        if not sent:
            return self.inner.push(*terms, total=total)
        whole = home
        for _, v in sent:  # columns sum to one: what I keep is all that I have, less what I send
            whole = v if whole is None else each(lambda a, b: a + b, whole, v)
        out, came = self._crossed(self._weighed(sent, "column"))
        totals = total if isinstance(total, tuple) else (total,) * len(parts(whole))
        found = [self._kept(*part) for part in zip(parts(whole), totals, out, came, strict=True)]
        return tuple(found) if isinstance(whole, tuple) else found[0]

    def _kept(self, whole: Array, total: Any, out: Array, came: Array) -> Array:
        """What I have after a push."""
        flow = came - self.inner.collect(out)
        if total is None:
            return self._read(self._word(whole) + flow)
        at = self._account(total, whole.shape[-2])
        net = self.m.net[:, at : at + whole.shape[-2]] + flow
        rest = self.m.net[:, :at], self.m.net[:, at + whole.shape[-2] :]
        self.m = Account(self.inner.xp.concatenate([rest[0], net, rest[1]], axis=1))
        return self._read(self._word(total + 0 * whole) + net)

    def _account(self, total: Any, size: int) -> int:
        """Where the account of this sum begins; pushes of one iteration with the very same total speak of the same sum."""
        for before, at in self.promised:
            if getattr(total, "ndim", 0) and before is total:
                return at
        at, self.used = self.used, self.used + size
        if self.used > room(self.inner):
            raise ParameterError(
                f"aggregate-only keeps accounts of {room(self.inner)} numbers a node, and this method promises sums of more"
            )
        self.promised.append((total, at))
        return at

    # what is pulled ----------------------------------------------------------------------------------------------

    def pull(self, *terms: tuple[Weight, Values]) -> Values:
        home, sent = grouped(terms)
        if not sent or self.options.pulls == "open":
            return self.inner.pull(*terms)
        own = home
        for weight, v in ((Weight(entries, None), v) for entries, v in sent):
            mine = self.inner.shares(weight, "row")[0]
            kept = each(lambda part, mine=mine: mine * part, v)
            own = kept if own is None else each(lambda a, b: a + b, own, kept)
        _, came = self._crossed(self._weighed(sent, "column"))
        found = [self._read(self._word(part) + words) for part, words in zip(parts(own), came, strict=True)]
        return tuple(found) if isinstance(own, tuple) else found[0]

    def exchange(self, out: Values) -> Values:
        raise ParameterError("aggregate-only serves methods that push and pull, and this one sends messages that are no sums")

    hear = exchange

    # messages ----------------------------------------------------------------------------------------------------

    def _weighed(self, sent: list[tuple[Any, Values]], side: str) -> tuple[Array, ...]:
        """My values weighed for each of my out-edges, the terms added up."""
        found: list[Array] = []
        for entries, v in sent:
            edge = self.inner.shares(Weight(entries, None), side)[1]
            weighed = [edge * part for part in parts(self.inner.spread(v))]
            found = [a + b for a, b in zip(found, weighed, strict=True)] if found else weighed
        return tuple(found)

    def _crossed(self, values: tuple[Array, ...]) -> tuple[list[Array], list[Array]]:
        """What I sent in words, before they were masked, and the sum of what came; the parts of a message side by side."""
        xp, sizes = self.inner.xp, [v.shape[-2] for v in values]
        plain = self._word(xp.concatenate(values, axis=-2), on_edges=True)
        masks = self.inner.cancelling(like=plain) if self.options.masks == "pairwise" else 0 * plain
        came = self.inner.gather(self.inner.exchange(plain + masks))
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        cut = lambda words: [words[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]
        return cut(plain), cut(came)

    def _word(self, value: Array, on_edges: bool = False) -> Array:
        """Fixed point, refused where a sum of n such numbers could leave it."""
        xp, n = self.inner.xp, self.inner.public.n
        outside = ~(abs(value) < LARGEST / n)  # NaN included
        self.inner.refuse(
            self.inner.collect(1.0 * outside) > 0 if on_edges else outside,
            f"a number is too large for fixed point: sums over {n} nodes stay below 2^15 only if each is below {LARGEST / n:.3g}; "
            "scale the costs down, take a smaller stepsize, K = 0 or a smaller scale of the random start",
        )
        return xp.rint(xp.where(outside, 0.0, value) * UNIT).astype(xp.int64).astype(xp.uint64)

    def _read(self, words: Array) -> Array:
        return words.astype(self.inner.xp.int64).astype(self.inner.xp.float64) / UNIT


def parts(v: Values) -> tuple[Array, ...]:
    """A value, or a tuple's."""
    return v if isinstance(v, tuple) else (v,)


def room(node: Any) -> int:
    """How many numbers of promised sums a node has accounts for: a gradient, and a mass or two."""
    return node.coordinates + 2


def start(node: Any, options: Any) -> Account:
    """Accounts of nothing yet."""
    words = node.cancelling(like=node.xp.zeros((1, room(node), 1)))
    return Account(0 * node.collect(words))


def fits(options: Any, task: Any) -> str | None:
    if task.sequence is not None:
        return "the words of a receiver's in-neighbours cancel only if all of them send; a graph an iteration leaves some out"
    if task.settled > 1:
        return f"numbers grow with every iteration of a random start, and fixed point has no room for K={task.settled}; take K <= 1"
    if options.pulls == "open":
        return None
    drawn = [name for name, rule in task.rules.items() if getattr(rule, "side", "") != "column" and getattr(rule, "law", None)]
    if drawn or any("weights" in a.mechanism.overrides for a in task.mechanisms):
        return (
            "to pull sums the senders must know the receiver's weights, and here receivers draw them; take weights that follow "
            "from the graph (R='uniform'), or pulls='open', which leaves pulled messages as they are"
        )
    return None


register(
    Mechanism(
        name="aggregate-only",
        source="Bonawitz, Ivanov, Kreuter et al. 2017, among the senders of each receiver",
        wrap=AggregateOnly,
        start=start,
        parameters={
            "pulls": one_of(("sums", "open"), "sums", "pulled messages: only their sum can be read, or left as they are"),
            "masks": one_of(("pairwise", "absent"), "pairwise", "absent: fixed point alone, to see that masks change no bit"),
        },
        fits=fits,
        needs_text="K <= 1; one graph; row weights that follow from it, or pulls=open",
        leaks="The sum over a receiver's honest in-neighbours, of a lone one everything; curvature can be fitted from the sums.",
        overrides=("pull", "push", "exchange", "hear"),
        cancels=True,
    )
)
