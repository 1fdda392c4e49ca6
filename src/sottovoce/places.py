"""Where the nodes of a drawn graph go; the same graph always gives the same places."""

from __future__ import annotations

import numpy as np

from .graph import Graph

CIRCLE = 12  # nodes up to which a circle reads best


def places_of(graph: Graph) -> np.ndarray:
    """Where the nodes go, (n, 2): a circle for few; else as far apart as they are in hops, then loosened by springs."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(graph.n) / graph.n
    if graph.n <= CIRCLE:
        return np.column_stack((np.cos(angles), np.sin(angles)))
    joined = np.maximum(graph.adjacency(), graph.adjacency().T)
    places = _springs(joined, _scaled(_hops(joined)))
    return places / np.abs(places).max()


def _hops(joined: np.ndarray) -> np.ndarray:
    """Edges on the shortest way between two nodes, arrows ignored; n where there is none."""
    n = len(joined)
    hops, reach = np.where(np.eye(n) > 0, 0.0, float(n)), np.eye(n)
    for k in range(1, n):
        reach = np.minimum(reach + reach @ joined, 1)
        new = (reach > 0) & (hops == n)
        if not new.any():
            break
        hops[new] = k
    return hops


def _scaled(hops: np.ndarray) -> np.ndarray:
    """Classical scaling: points in the plane whose distances are closest to the hops."""
    squares = hops**2
    inner = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
    _, vectors = np.linalg.eigh(inner)
    places = vectors[:, [-1, -2]]
    return places / np.abs(places).max(0)


def _springs(joined: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Fruchterman and Reingold's forces, cooled from a slightly shaken start: the same graph, the same drawing."""
    n = len(joined)
    places = places + 0.02 * np.random.default_rng(0).standard_normal((n, 2))
    ideal = 1.5 / np.sqrt(n)
    for heat in np.linspace(0.05, 0.001, 100):
        apart = places[:, None] - places[None]
        distance = np.maximum(np.linalg.norm(apart, axis=-1), 1e-3)
        move = (apart * (ideal**2 / distance**2 - joined * distance / ideal)[..., None]).sum(1)
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        places = places + move / length * np.minimum(length, heat)
    return places - places.mean(0)
