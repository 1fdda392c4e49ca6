"""AB on time-varying digraphs: Saadatniaki, Xin, Khan, "Decentralized optimization over time-varying directed graphs with
row and column-stochastic matrices" (IEEE TAC 2020).

    x+ = A_k x - lambda y        A_k row-stochastic on the graph of iteration k
    y+ = B_k y + grad f(x+) - grad f(x)        B_k column-stochastic

Graphs whose union over a bounded time is strongly connected; one graph will do. The weights are uniform on each graph, or by
any rule (R="paper:eta=0.1" draws them afresh in every iteration).
"""

from ..registry import Algorithm, columns, register, rows
from .gradient_tracking import start, step

register(
    Algorithm(
        name="ab-tv",
        start=start,
        step=step,
        source="Saadatniaki, Xin, Khan 2020",
        certainty="B",
        graphs="sequence",
        weights={"R": rows("uniform"), "A": rows("identity"), "C": columns("uniform"), "B": columns("identity")},
        exchanges=2,
        leaks="An out-neighbour computes my gradient at the start: it is pushed first, with a weight that is known.",
    )
)
