"""A27, the posterior through masks: Bayes with the masks integrated out, for curvatures that are normal about a common mean.

Given the sum over a component of h honest nodes, the deviations D from an equal share have the prior variance tau^2 (1 - 1/h) and
are seen through masks of covariance scale^2 L / runs, L the Laplacian of the honest edges, entry by entry. Hence

    E[D | seen] = tau^2 (tau^2 + scale^2 L / runs)^-1 D_seen,

which shrinks to the equal share where masks are large and to A26 where they are small. tau is what the coalition finds among its
own costs; one member alone takes the size of its own. A naive attacker may be worse than a guess; this one is not, on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...view import View
from ..attack import Attack, Estimate, register
from ..masked import Masked, masked

Array = np.ndarray


def spread(view: View) -> float | None:
    """How far the entries of a curvature lie from their common mean, judged by the coalition's own; None where it has none."""
    own = [costs["H"] for costs in view.costs.values() if "H" in costs]
    if not own:
        return None
    middle = np.mean(own, 0) if len(own) > 1 else np.zeros_like(own[0])
    return float(np.sqrt(np.sum((np.array(own) - middle) ** 2) / (max(len(own) - 1, 1) * own[0].size)))


def posterior(seen: Masked, tau: float) -> Array:
    """(group, d, d): the expected curvatures."""
    mean, h = seen.H.mean(0), len(seen.group)
    share = mean.mean(0)
    noise = seen.scale**2 * seen.laplacian / len(seen.H)
    weight = tau**2 * np.linalg.inv(tau**2 * np.eye(h) + noise)
    return share + np.tensordot(weight, mean - share, 1)


def run(view: View, victim: int) -> list[Estimate]:
    seen, tau = masked(view, victim), spread(view)
    if seen is None or tau is None or len(seen.group) == 1:
        return []
    share = seen.H.mean((0, 1))
    return [Estimate((victim,), "curvature", posterior(seen, tau)[seen.group.index(victim)], guess=share)]


def control() -> tuple[Any, int, Any]:
    """Masks so small that they hide nothing."""
    from ... import controls

    view, truth = controls.five((1, 3, 4), "gradient-tracking", A="uniform", mechanisms="function-masks:scale=1e-8")
    return view, 0, truth


register(
    Attack(
        name="masked-posterior",
        id="A27",
        assets=("curvature",),
        uses="what A26 uses, the declared law of the masks, and its own costs as a prior for those of others",
        idea="The expected curvature given the masked one, the honest sum and the prior: shrunk towards an equal share of the\n"
        "sum, the more so the larger the masks.",
        metric="relative error of H, and what it gains over an equal share of the sum",
        run=run,
        control=control,
    )
)
