"""PDMM with a perturbed subspace: Li, Heusdens, Christensen, "Convex optimisation-based privacy-preserving distributed average
consensus in wireless sensor networks" (ICASSP 2020) and "Privacy-preserving distributed optimization via subspace
perturbation: a general framework" (IEEE TSP 2020).

    x_i = argmin f_i(x) + sum_j z_i|j . x + c d_i |x|^2 / 2
    z_j|i+ = (1 - relaxation) z_j|i - relaxation (z_i|j + 2 c x_i)        c = 1 / stepsize, d_i neighbours j

on a two-way graph; in the paper's symbols z_i|j is B_ij z_i|j. relaxation = 1 is PDMM, for strongly convex smooth costs;
relaxation = 1/2 is ADMM, for convex ones. z_i|j^0 is a draw of a large scale, less c x_j^0; the draw and x^0 are sent once, to the
other end of the edge, and from then on x alone, for each end works out both duals of an edge. What of z^0 lies in the subspace
that the graph never moves stays in the duals, the rest decays, and the limit of x is exact. That subspace has
2 (links - nodes) + 1 dimensions for each coordinate, one more on a bipartite graph, none on a tree.

Worth: with z_i|j - shift and z_j|i + shift, costs f_i + shift.x and f_j - shift.x give the same x for ever, on trees too. So
whoever has not the draws of that link is not told the constant of my gradient, as far as the scale goes. Its increments everybody
has who hears x of me and of all my neighbours.
"""

import math
from typing import Any, NamedTuple

from ..laws import LAWS, law
from ..registry import Algorithm, Parameter, positive, register


class State(NamedTuple):
    x: Any
    mine: Any  # (edge, d, run): z_i|j, for each of my edges to a j
    theirs: Any  # z_j|i, at the same place


def start(node: Any, x: Any) -> State:
    p, c, own = node.parameters, 1 / node.weights.stepsize, node.spread(x)
    drawn = node.draw(law(p.law, p.scale), like=x, known="edge")
    their_draw, their_x = node.turn(node.exchange((drawn, own)))
    return State(x, drawn - c * their_x, their_draw - c * own)


def step(node: Any, s: State) -> State:
    c, part = 1 / node.weights.stepsize, node.parameters.relaxation
    x = node.prox(node.collect(s.mine), c * node.degree)
    moved = lambda old, other, said: (1 - part) * old - part * (other + 2 * c * said)
    heard = node.turn(node.hear(x))
    return State(x, moved(s.mine, s.theirs, heard), moved(s.theirs, s.mine, node.spread(x)))


register(
    Algorithm(
        name="pdmm",
        start=start,
        step=step,
        source="Li, Heusdens, Christensen 2020",
        certainty="B",
        graphs="two-way",
        parameters={
            "scale": positive(1e3, "the scale of the first duals; the larger, the more they cover, and the more digits they cost"),
            "law": Parameter("normal", f"their law: {', '.join(LAWS)}"),
            "relaxation": Parameter(1.0, "1 is PDMM, 1/2 is ADMM", lambda v: 0 < v <= 1, "above 0 and at most 1"),
        },
        exchanges=1,
        own_steps="1 / stepsize is the penalty, and every one converges",
        good_step=lambda largest, least, degree: degree / math.sqrt(largest * least),
        leaks="To who hears me and all my neighbours my gradient's increments, hence my curvature; with their draws all of it.",
    )
)
