"""The options of the command line, with the names and defaults of the functions; what is said of each fits one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

Words = Annotated[tuple[str, ...], Parameter(show_default=False)]
Flag = Annotated[bool, Parameter(show_default=False)]
Json = Annotated[bool, Parameter(help="Print one JSON object and nothing else.", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class Setting:
    """Who does what: the problem, the graph, and what the algorithm is given."""

    problem: str = "estimation"
    """The costs, NAME:KEY=VALUE,..."""
    graph: str = "paper-b"
    """Links: NAME:KEY=VALUE,... or a file."""
    mechanism: Words = ()
    """Around it, random-start:K=3,law=cauchy; repeatable."""
    set: Words = ()
    """Its parameter or weights, K=3 or R=paper; repeatable."""
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True)
class Playing(Setting):
    """How long, how often, and what is kept."""

    stepsize: str = "auto"
    """auto (advised), a number, or one a node."""
    iterations: int | None = None
    """1000 (fewer if the method ends), converged or not."""
    runs: int = 1
    """Repetitions with other random numbers."""
    seed: int = 0
    """The same seed gives the same numbers."""
    backend: Annotated[Literal["auto", "eager", "compiled"], Parameter(show_choices=False)] = "auto"
    """eager (NumPy), compiled (JAX), or auto."""
    every: int = 1
    """Record the error each so-many iterations."""
    tolerance: float | None = None
    """Stop when no number moves by more."""
    record: Flag = False
    """Keep all messages, for --save."""
    plot: str | None = None
    """Draw the error in this file (.png, .pdf, .svg)."""
    save: str | None = None
    """Write the result into this folder."""


@Parameter(name="*")
@dataclass(frozen=True)
class Auditing(Setting):
    """Who looks, at whom, and what is written."""

    curious: Words = ()
    """Who look together, 1,2; repeatable. Else each alone."""
    at_most: int | None = None
    """Everybody in groups of up to so many."""
    wiretap: Flag = False
    """Also whoever listens on all links."""
    victims: str | None = None
    """Whose secrets, 0,3; everybody's if left out."""
    stepsize: str = "auto"
    """auto (advised), a number, or one a node."""
    iterations: int | None = None
    """Of the rehearsal; 300, or what it takes."""
    runs: int = 1
    """Repetitions with other random numbers."""
    seed: int = 0
    """The same seed gives the same report."""
    side_information: str | None = None
    """Known of all values: low=0,high=1,integer=true."""
    advise: Annotated[bool, Parameter(negative="--no-advise")] = True
    """Try what would help, and audit it again."""
    witness: str | None = None
    """Write the two worlds of each witness into here."""
    html: str | None = None
    """Write the report as a page into this file."""


@Parameter(name="*")
@dataclass(frozen=True)
class Solving:
    """What is solved, how it is protected, and who looks."""

    problem: str = "estimation"
    """The costs, NAME:KEY=VALUE,..."""
    graph: str = "paper-b"
    """Links: NAME:KEY=VALUE,... or a file."""
    private: Annotated[Literal["strong", "paper", "none"], Parameter(show_choices=False)] = "strong"
    """strong, paper or none."""
    barrier: Annotated[bool, Parameter(negative="--no-barrier")] = True
    """Nodes can wait for all others in every round."""
    curious: Words = ()
    """Who look together, 1,2; repeatable. Else each alone."""
    at_most: int | None = None
    """Everybody in groups of up to so many."""
    audit: Annotated[bool, Parameter(negative="--no-audit")] = True
    """Say who would learn what."""
    seed: int = 0
    """The same seed gives the same numbers."""
    html: str | None = None
    """Write the audit as a page into this file."""
    save: str | None = None
    """Write the result into this folder."""
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True)
class Comparing:
    """What is protected, of whom, and how large a record is."""

    problem: str = "estimation"
    """The costs, NAME:KEY=VALUE,..."""
    graph: str = "paper-b"
    """Links: NAME:KEY=VALUE,... or a file."""
    bound: str | None = None
    """Largest record, NORM or NORM,TARGET: masks for mu = 1."""
    victim: str = "0"
    """Whose secrets are looked at."""
    iterations: int | None = None
    """At most so many; 5000 unless given."""
    encrypted: Flag = False
    """Also Paillier, really encrypted for a while."""
    seed: int = 0
    """The same seed gives the same numbers."""
    html: str | None = None
    """Write the comparison as a page into this file."""
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True)
class Founding:
    """What the nodes agree on, and where they are."""

    graph: Annotated[tuple[str, ...], Parameter(show_default=False)] = ("paper-b",)
    """Links, or several: a public schedule."""
    algorithm: str = "private-gradient-tracking"
    """Its name, with parameters if you like."""
    set: Words = ()
    """Its parameter or weights, K=3; repeatable."""
    mechanism: Words = ()
    """Around it, NAME:KEY=VALUE,...; repeatable."""
    problem: str = "estimation"
    """A ready one, or own:d=3: each fills in its cost."""
    stepsize: str = "auto"
    """auto (ready problems), a number, or one a node."""
    iterations: int | None = None
    """So many; 1000, or what it takes."""
    tolerance: float | None = None
    """Stop when nobody moves by more; that leaks."""
    host: Words = ()
    """NAME=HOST:PORT, or NAME=hidden; repeatable."""
    port: int = 7440
    """The first on this machine; 0: free ones."""
    days: int = 365
    """How long certificates are valid."""
    transcript: Flag = False
    """Each node keeps what it sees, for an audit: secrets."""
    json: Json = False


PLAYING, SETTING, AUDITING, SOLVING, COMPARING, FOUNDING = Playing(), Setting(), Auditing(), Solving(), Comparing(), Founding()
