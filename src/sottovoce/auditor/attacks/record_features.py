"""A4, the features of a record: the curvature of a cost on one record is their outer product.

With more records, but fewer than coordinates, curvature still has their span, and lies in it as they do but for a rotation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from . import tail_secants

NOTHING = 1e-6  # an eigenvalue that counts as zero, of the largest


def run(view: View, victim: int) -> list[Estimate]:
    return [record for e in tail_secants.run(view, victim) if e.asset == "curvature" for record in features(view, e)]


def features(view: View, curvature: Estimate) -> list[Estimate]:
    """The features, up to sign, where the curvature has rank one; of a low rank, up to a turn. A full rank, as one dimension always
    has, says nothing of single records."""
    values, vectors = np.linalg.eigh(curvature.value)
    top, d = values[-1], len(values)
    rank = int(np.sum(np.abs(values) > NOTHING * abs(top)))
    if top <= 0 or view.header.get("costs") != "quadratic" or rank == d or values[-rank] < 0:
        return []
    if rank == 1 and len(curvature.nodes) == 1:
        return [Estimate(curvature.nodes, "record", np.sqrt(top) * vectors[:, -1], up_to="sign")]
    return [Estimate(curvature.nodes, "record", (np.sqrt(values[-rank:]) * vectors[:, -rank:]).T, up_to="turn")]


def control() -> tuple[Any, int, Any]:
    from ...controls import one_record

    view, truth = one_record(K=1)
    return view, 0, truth


register(
    Attack(
        name="record-features",
        id="A4",
        assets=("record",),
        uses="what A3 uses; a victim that holds fewer records of a linear model than there are coordinates",
        idea="The curvature is q q' for features q. Where A3 finds a matrix of rank one, its eigenvector is q up to sign;\n"
        "of a rank below the number of coordinates, it has the space in which all records lie.",
        metric="relative error of the features, up to sign",
        run=run,
        control=control,
    )
)
