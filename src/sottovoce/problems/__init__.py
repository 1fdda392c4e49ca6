"""Ready problems: constructors that return a Problem."""

from sottovoce.problems.logit import logistic
from sottovoce.problems.meeting import average, rendezvous, total
from sottovoce.problems.quadratics import estimation, least_squares, quadratic
from sottovoce.problems.robust import huber

__all__ = ["average", "estimation", "huber", "least_squares", "logistic", "quadratic", "rendezvous", "total"]
