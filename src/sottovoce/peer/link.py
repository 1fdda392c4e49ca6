"""What carries messages between nodes, as the loop sees it: questions one way, answers the other, and nothing else.

    receiver                                          sender
    link.ask(sender, question)          ---------->   handler.asked(receiver, question)
    handler.came(sender, frame)         <----------   link.answer(receiver, frame, last=False)
    handler.came(sender, frame)         <----------   link.answer(receiver, frame, last=True)
    handler.ended(sender, question)     <----------   (the question is over)

Along an edge only the receiver begins. It names the first frame that it lacks and how far it wants to be told
(`frame.Question`); the sender answers with one frame after the other, those that are not there yet as soon as they are on its
disk: until then the question stays open, parked in the link. So a question serves many frames (iterations and phases), and the
work of asking is spread over them. All bookkeeping (what is missing, what may be forgotten, what a question means) is in
`protocol`; a link looks into neither questions nor frames.

What a link promises, and what not:

* Anything may be lost, doubled, late or out of order: a question, an answer, the end of a question. Nothing is ever altered or
  handed over as coming from another node: `sender` and `receiver` are proven by the link (its certificates), not read
  from the bytes.
* `ended(sender, question)` is called when nothing more will come to `question`: the sender closed it with `last=True`, it timed
  out, the connection is gone, or the answer was empty. An empty answer means "ask again", never "done". The loop asks again,
  and paces itself: a link does not. Every question that was not replaced ends sooner or later (a time limit is the link's).
* One question of a receiver stands at a time: `ask` replaces the one before, whose remaining answers may be thrown away, and
  whose end need not be told. At the sender a new question of the same receiver replaces the parked one as well.
* `answer` goes to the question that stands; with none standing it does nothing (the receiver will ask).
  It must not block for long: where a wire is full, drop the answer or let a thread of your own wait. A receiver that is away must
  not keep this node from its other edges.
* A handler is called from any thread, also from several at once, also from inside `ask` and `answer`; so a link
  calls it without holding a lock of its own, and the loop calls a link without holding one of its.
* Before it copies anything, a link compares lengths: a frame has at most `limit` bytes, a question exactly
  `frame.QUESTION_BYTES`. What is too long is not read but reported by `refused`.
"""

from __future__ import annotations

from typing import Protocol

from .frame import Place


class Handler(Protocol):
    """What a link calls: the loop. Each call returns soon."""

    def asked(self, receiver: int, question: bytes) -> None:
        """An out-neighbour asks; the loop answers now, or later."""
        ...

    def came(self, sender: int, frame: bytes) -> None:
        """An in-neighbour's answer."""
        ...

    def told(self, other: int) -> tuple[bytes, Place]:
        """What a neighbour hears when it is greeted: the nonce of my start, and behind which place I have nothing of it."""
        ...

    def met(self, other: int, nonce: bytes, has: Place) -> str | None:
        """The same of a neighbour, proven to be its own; why it is refused, if it is. Nothing else of it comes before this."""
        ...

    def ended(self, sender: int, question: bytes) -> None:
        """Nothing more will come to this question."""
        ...

    def refused(self, other: int, reason: str) -> None:
        """The link threw away what this neighbour sent; the reason holds no payload."""
        ...


class Link(Protocol):
    """One node's end of all its edges."""

    def open(self, handler: Handler) -> None:
        """Begin: from now on the handler is called. Waits for nobody."""
        ...

    def ask(self, sender: int, question: bytes) -> None:
        """Put a question to an in-neighbour, in the place of the one before."""
        ...

    def answer(self, receiver: int, frame: bytes, last: bool) -> None:
        """One more answer to the question of this out-neighbour; `last` closes it."""
        ...

    def close(self) -> None:
        """End; the handler is not called after this returns."""
        ...
