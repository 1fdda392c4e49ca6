"""A4, the features of a record: the curvature of a cost on one record is their outer product."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from . import tail_secants

RANK_ONE = 1e-6  # the second eigenvalue, of the first


def run(view: View, victim: int) -> list[Estimate]:
    return [record for e in tail_secants.run(view, victim) if e.asset == "curvature" for record in features(e)]


def features(curvature: Estimate) -> list[Estimate]:
    """The features, up to sign, where the curvature has rank one (in one dimension it always has)."""
    values, vectors = np.linalg.eigh(curvature.value)
    top = values[-1]
    if top <= 0 or np.abs(values[:-1]).max(initial=0.0) > RANK_ONE * top:
        return []
    return [Estimate(curvature.nodes, "record", np.sqrt(top) * vectors[:, -1], up_to="sign")]


def control() -> tuple[Any, int, Any]:
    from ...controls import one_record

    view, truth = one_record(K=1)
    return view, 0, truth


register(
    Attack(
        name="record-features",
        id="A4",
        assets=("record",),
        uses="what A3 uses; a victim that holds one record of a linear model",
        idea="The curvature is q q' for features q. Where A3 finds a matrix of rank one, its eigenvector is q up to sign.",
        metric="relative error of the features, up to sign",
        run=run,
        control=control,
    )
)
