"""Equation (4) of the paper, dense and slow, written from the paper alone; in float64, or with a hundred digits.

    x^{k+1} = R^k x^k - A^k Lambda^k y^k,    y^{k+1} = C^k y^k + B^k (grad f^{k+1} - grad f^k),    y^0 = grad f^0

A weight is an array (d or 1, n, n), a matrix for each coordinate; x, y and the stepsizes are (n, d).
"""

import mpmath
import numpy as np


def times(W, v):
    return (W * v.T[:, None, :]).sum(-1).T


def eq4(rounds, gradient, x):
    """x^0, x^1, ...; a round is (R, A, C, B, Lambda)."""
    y = g = gradient(x)
    xs = [x]
    for R, A, C, B, step in rounds:
        x = times(R, x) - times(A, step * y)
        y, g = times(C, y) + times(B, gradient(x) - g), gradient(x)
        xs.append(x)
    return np.array(xs)


def quadratic(H, b):
    return lambda x: (H * x[:, None, :]).sum(-1) - b


def dense(edges, n, values):
    """Entries (every edge and every loop, by receiver, then sender) as matrices W[i, j], the weight of what j sends to i."""
    W = np.zeros((values.shape[1], n, n))
    for (s, r), w in zip(sorted([*edges, *((i, i) for i in range(n))], key=lambda e: e[::-1]), values, strict=True):
        W[:, r, s] = w
    return W


def recorded(transcript, aliases, stepsize, n, run=0):
    """The rounds that a transcript tells of; `aliases` says which weight is another ("A": "R"); undrawn is the identity."""

    def weight(name, k):
        while (name, k) not in transcript.draws and isinstance(aliases[name], str):
            name = aliases[name]
        found = transcript.draws.get((name, k))
        if found is None or found.value is None:
            return np.eye(n)[None]
        return dense(transcript.edges, n, found.value[..., min(run, found.value.shape[-1] - 1)])

    def step(k):
        found = transcript.draws.get(("stepsize", k))
        return np.broadcast_to(stepsize, n)[:, None] if found is None else found.value[..., run]

    return [(*(weight(name, k) for name in "RACB"), step(k)) for k in range(transcript.iterations)]


def hundred_digits(rounds, H, b, x):
    """The same in rational weights and 100 digits; the columns of C and B are completed to one without rounding."""
    exact = np.vectorize(mpmath.mpf, otypes=[object])

    def completed(W):
        W, own = exact(W), range(W.shape[-1])
        W[:, own, own] = 0
        W[:, own, own] = 1 - W.sum(1)
        return W

    with mpmath.workdps(100):
        kept = [(exact(R), exact(A), completed(C), completed(B), exact(step)) for R, A, C, B, step in rounds]
        return eq4(kept, quadratic(exact(H), exact(b)), exact(x))
