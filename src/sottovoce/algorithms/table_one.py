"""Table I of Gao, Wang, Nedic (2023): nine methods are nine choices of weights for one step, each a row here.

W is doubly stochastic (Metropolis on two-way graphs, Sinkhorn on digraphs), R row-stochastic, C column-stochastic, I the
identity. The step is that of gradient_tracking.py; where A = R, x - Lambda y is sent as one vector.
"""

from ..registry import Algorithm, Parameter, columns, doubly, register, rows
from .gradient_tracking import start, step

W, R, C, I = doubly("doubly"), rows("uniform"), columns("uniform"), rows("identity")
METROPOLIS, LINKS = doubly("metropolis"), doubly("links")

TABLE = (
    # name              R           A    C    B    graphs      own steps  source                                        certainty
    ("aug-dgm",         W,         "R", "R", "R", "directed", True,  "Xu, Zhu, Soh, Xie 2015 (augmented DGM)",           "B"),
    ("diging",          W,          I,  "R",  I,  "directed", False, "Qu, Li 2017; Nedic, Olshevsky, Shi 2017",          "A"),
    ("diging-tv",       METROPOLIS, I,  "R",  I,  "sequence", False, "Nedic, Olshevsky, Shi 2017, time-varying graphs",  "A"),
    ("atc-diging",      W,         "R", "R", "R", "directed", True,  "Nedic, Olshevsky, Shi, Uribe 2017",                "B"),
    ("asyn-dgm",        LINKS,     "R", "R",  I,  "two-way",  True,  "Xu, Zhu, Soh, Xie 2017 (stochastic networks)",     "B"),
    ("ab",              R,          I,   C,  "C", "directed", False, "Xin, Khan 2018",                                   "B"),
    ("push-pull",       R,         "R",  C,  "C", "directed", False, "Pu, Shi, Xu, Nedic 2018",                          "B"),
    ("push-pull-du",    R,          I,   C,   I,  "directed", False, "Du, Yao, Li, et al. 2018, as Table I has it",      "C"),
    ("push-pull-zhang", R,         "R",  C,   I,  "directed", False, "Zhang, Yi, Han et al. 2019, as Table I has it",    "C"),
)  # fmt: skip

AWAKE = {"awake": Parameter(0.5, "chance that a link is up in an iteration", lambda v: 0 < v <= 1, "a chance in (0, 1]")}
LEAKS = {
    True: "An out-neighbour computes my gradient at the start: it is pushed first, with a weight that is known.",
    False: "An out-neighbour computes my gradient at x^1 from the first pushed message, whose weight is known (section 4.3).",
}

for name, r, a, c, b, graphs, own_steps, source, certainty in TABLE:
    register(
        Algorithm(
            name=name,
            start=start,
            step=step,
            source=f"{source}; Table I",
            certainty=certainty,
            graphs=graphs,
            weights={"R": r, "A": a, "C": c, "B": b},
            parameters=AWAKE if r is LINKS else {},
            exchanges=2,
            per_node_steps=own_steps,
            leaks=LEAKS[b is I],
        )
    )
