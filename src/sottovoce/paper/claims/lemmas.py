"""The lemmas behind Theorem 1: contraction of weight products, the inequality of Lemma 2, and the matrix M(lambda).

Lemmas 4 and 5 (of the appendix) say how fast products of late weights contract, Lemmas 1 to 3 bound three norms by each other,
and M(lambda) joins the bounds. On a run the weights are there, so phi and v (the absolute probability sequences) and the norms are.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np

from ...layout import layout
from ...stepsize import stepsize
from .. import setting
from ..item import UNCHECKED, Claim, Finding, judged, register

METHOD, ETA, AHEAD, SHOWN = "private-gradient-tracking", 0.1, 150, 250
Array = np.ndarray


class Constants(NamedTuple):
    """What the lemmas name, for n = 5 and eta = 0.1; decimals, as some are beyond 10^25."""

    QR: Decimal
    NR: int
    QP: Decimal
    NP: int
    base_R: Decimal  # 1 - eta^(n-1)
    base_P: Decimal  # 1 - (eta^n / n)^(n-1)


def constants(n: int = setting.N, eta: float = ETA) -> Constants:
    """Q_R, Q_P and the least N_R, N_P for which r_R, r_P are below one."""
    e = Decimal(str(eta))
    small, tiny = e ** (n - 1), (e**n / n) ** (n - 1)
    QR, QP = 2 * n * (1 + 1 / small) / (1 - small), 2 * n * (1 + 1 / tiny) / (1 - tiny)
    least = lambda Q, base: int((n - 1) * Q.ln() / -base.ln()) + 2
    return Constants(QR, least(QR, 1 - small), QP, least(QP, 1 - tiny), 1 - small, 1 - tiny)


class Late(NamedTuple):
    """The late weights of a run as matrices, phi^k and v^k, and its states."""

    R: Array  # (k, n, n), k counted from K
    C: Array
    phi: Array  # (k, n)
    v: Array
    x: Array  # (k, n, d)
    y: Array


def late(step: float) -> Late:
    """From a recorded run; phi is carried back from far ahead, where it is anything that sums to one."""
    K, n = setting.K, setting.N
    options: dict[str, Any] = {"K": K, "eta": ETA, "stepsize": step, "iterations": K + SHOWN + AHEAD}
    kept = setting.recorded(METHOD, setting.problem(), setting.graph(), **options)
    entries, count = layout(setting.graph()), SHOWN + AHEAD
    R, C = np.zeros((2, count, n, n))
    for k in range(count):
        for name, W in (("R", R), ("C", C)):
            W[k, entries.target, entries.source] = kept.draws[name, K + k].value[:, 0, 0]
    phi, v = np.full((count + 1, n), 1 / n), np.full((count + 1, n), 1 / n)
    for k in reversed(range(count)):
        phi[k] = phi[k + 1] @ R[k]
    for k in range(count):
        v[k + 1] = C[k] @ v[k]
    states = [kept.states[K - 1 + k] for k in range(count)]
    x, y = (np.array([s[name][..., 0] for s in states]) for name in "xy")
    return Late(R, C, phi, v, x, y)


def contraction(quick: bool) -> Finding:
    """The norm of a product of N weights off consensus, the largest over the run, against Q (1 - ...)^((N-1)/(n-1))."""
    with localcontext(prec=60):
        known, run_ = constants(), late(setting.STEPSIZE)
        P = run_.C * run_.v[:-1, None, :] / run_.v[1:, :, None]
        rows = {"R": (run_.R, run_.phi, known.QR, known.base_R), "P": (P, run_.v, known.QP, known.base_P)}
        found = {name: _measured(W, pi, Q, base) for name, (W, pi, Q, base) in rows.items()}
        smallest = float(run_.v[: SHOWN + 1].min())
    bound = ETA ** (setting.N - 1) / setting.N
    numbers = {**found, "N_R": known.NR, "N_P": f"{known.NP:.1e}", "v_least": smallest, "v_bound": bound}
    fine = all(row["within"] for row in found.values()) and smallest >= bound
    return judged(
        fine,
        f"on a run with eta = {ETA:g}, every product of 1 to 60 late weights stays within the bounds, by far: products of R "
        f"contract to 1/2 within {found['R']['half']} factors and those of P within {found['P']['half']}, where the lemmas "
        f"promise less than 1 from {known.NR:,} and {known.NP:.1e} factors on. All v_i are at least {smallest:.2g} (promised: "
        f"{bound:.0e}).", numbers,
    )  # fmt: skip


def _measured(W: Array, pi: Array, Q: Decimal, base: Decimal) -> dict[str, Any]:
    """For each N the largest norm of W_k ... W_{k-N+1} - 1 pi^T; whether it is within the bound; from which N on it is <= 1/2."""
    n, product = W.shape[1], W[: SHOWN - 60].copy()
    norms = []
    for N in range(1, 61):
        if N > 1:
            product = W[N - 1 : SHOWN - 60 + N - 1] @ product
        norms.append(float(np.linalg.norm(product - pi[: SHOWN - 60, None, :], 2, axis=(1, 2)).max()))
    bounds = [float(Q * base ** (Decimal(N - 1) / (n - 1))) for N in range(1, 61)]
    within = all(a <= b for a, b in zip(norms, bounds, strict=True)) and norms[-1] < 1e-3
    return {"norms": norms, "within": within, "half": 1 + next(N for N in range(60) if max(norms[N:]) <= 0.5)}


def lemma_2(quick: bool) -> Finding:
    """Both sides of its inequality in every iteration of a run with lambda = 1/beta_F."""
    problem, n = setting.problem(), setting.N
    beta, beta_F = float(problem.smoothness.max()), float(problem.smoothness.sum())
    curvature = problem.hessian(problem.optimum).sum(0)
    alpha_F, step = float(np.linalg.eigvalsh(curvature)[0]), 1 / beta_F
    run_ = late(step)
    mean = (run_.phi[: SHOWN + 1, :, None] * run_.x[: SHOWN + 1]).sum(1)
    apart = np.linalg.norm(run_.x[: SHOWN + 1] - mean[:, None], axis=(1, 2))
    r = np.sqrt(n) * np.linalg.norm(mean - problem.optimum, axis=1)
    s = run_.y[: SHOWN + 1] / run_.v[: SHOWN + 1, :, None]
    off = np.linalg.norm(s - run_.y[: SHOWN + 1].sum(1)[:, None], axis=(1, 2))
    right = step * n * beta * apart[:-1] + (1 - step * ETA ** (n - 1) * alpha_F / n) * r[:-1] + step * n * off[:-1]
    ratio = float((r[1:] / right).max())
    numbers = {"largest_ratio": ratio, "stepsize": step, "alpha_F": alpha_F, "beta_F": beta_F}
    return judged(
        ratio <= 1 + 1e-9,
        f"with lambda = 1/beta_F = {step:.3g}, the distance is at most {ratio:.4f} times what the lemma allows, in {SHOWN} "
        "iterations from K on.", numbers,
    )  # fmt: skip


def lemmas_1_and_3(quick: bool) -> Finding:
    with localcontext(prec=60):
        known = constants()
    why = (
        f"They speak of k >= K + N - 1 with N = max(N_R, N_P), which is {known.NP:.1e} for five nodes and eta = {ETA:g}: no run "
        "gets that far."
    )
    return Finding(
        UNCHECKED,
        "their constants alone, and the contraction that they rest on (lemmas-4-and-5).",
        why,
        {"N_P": f"{known.NP:.1e}", "Q_P": f"{known.QP:.1e}"},
    )


def matrix(quick: bool) -> Finding:
    """The largest lambda with rho(M(lambda)) < 1, beside the one that works.

    M(lambda) has 3 N rows, N = 10^25. It is nonnegative and in block companion form, so rho(M) < 1 exactly when rho of the sum of
    its blocks is: a 3 x 3 matrix. Held against the eigenvalues of the whole matrix where N is small.
    """
    problem = setting.problem()
    beta, alpha_F = float(problem.smoothness.max()), float(np.linalg.eigvalsh(problem.hessian(problem.optimum).sum(0))[0])
    with localcontext(prec=400):  # the step is far below 1e-90, and stands beside ones
        allowed = max((_largest(N, beta, alpha_F) for N in _lengths()), key=lambda found: found[0])
        theory, N = allowed
        slow = Decimal(ETA) ** (setting.N - 1) * Decimal(alpha_F) / setting.N * theory
        digit = Decimal(10).ln() / slow  # the simple eigenvalue moves by no more than its derivative says
    agreed, slope = _small_case(beta, alpha_F)
    works = stepsize(METHOD, problem, setting.graph(), K=setting.K, eta=ETA)
    assert works.largest is not None
    numbers = {
        "theory": f"{theory:.2e}", "N": f"{N:.2e}", "iterations_a_digit": f"{digit:.1e}", "works": works.largest,
        "good": works.good, "small_case": agreed, "slope": slope,
    }  # fmt: skip
    return judged(
        0 < theory < Decimal(works.largest) and agreed and abs(slope - 1) < 0.01,
        f"rho(M(lambda)) < 1 for lambda up to {theory:.1e} (with the best N, {N:.1e}): the bound then needs at least {digit:.0e} "
        f"iterations a digit. What works: lambda up to {works.largest:.2g}. Where N is small enough to write M down, its "
        f"eigenvalues and the 3 x 3 matrix agree, and the derivative of the simple eigenvalue is {slope:.4f} of the printed one.",
        numbers,
    )  # fmt: skip


def _lengths() -> list[int]:
    """From the least N for which r_R and r_P are below one, upwards."""
    least = constants().NP
    return [least * (100 + 5 * i) // 100 for i in range(1, 40)]


def _blocks(lam: Any, q: Any, t: Any, rR: Any, rP: Any, beta: Any, alpha_F: Any, count: Any, eta: Any) -> list[list[Any]]:
    """The sum of the blocks of M(lambda), `count` of them: the first, count - 2 in the middle, the last."""
    n = setting.N
    return [
        [rR + count * lam * n * beta * q, count * lam * n * beta * q, count * lam * q],
        [lam * n * beta, 1 - lam * eta ** (n - 1) * alpha_F / n, lam * n],
        [count * (2 * t + lam * n * beta * t), count * lam * n * beta * t, rP + count * lam * t],
    ]


def _below_one(S: list[list[Any]]) -> bool:
    """rho(S) < 1 for a nonnegative S: every leading minor of I - S is positive."""
    a, b, c = ([(1 if i == j else 0) - S[i][j] for j in range(3)] for i in range(3))
    two = a[0] * b[1] - a[1] * b[0]
    three = c[0] * (a[1] * b[2] - a[2] * b[1]) - c[1] * (a[0] * b[2] - a[2] * b[0]) + c[2] * two
    return a[0] > 0 and two > 0 and three > 0


def _largest(N: int, beta: float, alpha_F: float) -> tuple[Decimal, int]:
    """The largest lambda for one N, to four figures."""
    known, n = constants(), setting.N
    q, t = known.QR * Decimal(n).sqrt(), n**2 * Decimal(beta) * known.QP / Decimal(str(ETA)) ** (n - 1)
    r = [Q * base ** (Decimal(N - 1) / (n - 1)) for Q, base in ((known.QR, known.base_R), (known.QP, known.base_P))]
    rest = (Decimal(beta), Decimal(alpha_F), Decimal(N), Decimal(str(ETA)))
    fits = lambda lam: _below_one(_blocks(lam, q, t, r[0], r[1], *rest))
    low, high = Decimal("1e-300"), Decimal(1)
    while high / low > Decimal("1.0001"):
        middle = (low * high).sqrt()
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, N


def _small_case(beta: float, alpha_F: float) -> tuple[bool, float]:
    """N = 6, mild constants: whether M and the sum agree on both sides of the edge, and dp/dlambda over the printed one."""
    mild = {"q": 1.5, "t": 2.0, "rR": 0.3, "rP": 0.4, "beta": beta, "alpha_F": alpha_F, "count": 6, "eta": 0.9}
    whole = lambda lam: float(np.abs(np.linalg.eigvals(_whole(lam, **mild))).max())
    agreed = all(_below_one(_blocks(lam, **mild)) == (whole(lam) < 1) for lam in np.geomspace(1e-9, 1, 41))
    tiny = 1e-8
    return agreed, (whole(tiny) - 1) / tiny / -(mild["eta"] ** (setting.N - 1) * alpha_F / setting.N)


def _whole(
    lam: float, q: float, t: float, rR: float, rP: float, beta: float, alpha_F: float, count: int, eta: float
) -> Array:  # fmt: skip
    """M(lambda) itself."""
    n = setting.N
    every = lam * np.array([[n * beta * q, n * beta * q, q], [0, 0, 0], [n * beta * t, n * beta * t, t]])
    every[2, 0] += 2 * t
    first, last = every.copy(), every.copy()
    first[1] = lam * n * beta, 1 - lam * eta ** (n - 1) * alpha_F / n, lam * n
    last[0, 0] += rR
    last[2, 2] += rP
    M = np.zeros((3 * count, 3 * count))
    M[:3] = np.hstack([first, *[every] * (count - 2), last])
    M[3:, :-3] = np.eye(3 * (count - 1))
    return M


for number, name, text, where, check in (
    (19, "lemmas-4-and-5", "Products of late weights contract: by r_R < 1 after N_R factors R, by r_P < 1 after N_P factors P; "
                           "and v_i "
     "is at least eta^(n-1)/n.", "Lemmas 4 and 5, appendix A", contraction),
    (20, "lemma-2", "From K on, the distance of the weighted mean from the optimum shrinks by 1 - lambda eta^(n-1) alpha_F/n "
                    "an iteration, "
     "but for what is off consensus in x and in s, if lambda is at most 1/beta_F.", "Lemma 2", lemma_2),
    (21, "lemmas-1-and-3", "The norms of what is off consensus in x and in s are bounded by those of N iterations before.",
     "Lemmas 1 and 3", lemmas_1_and_3),
    (22, "matrix", "The spectral radius of M(lambda) is below one when lambda is sufficiently small.", "Proof of Theorem "
                                                                                                       "1", matrix),
):  # fmt: skip
    register(Claim(name, number, text, where, check))
