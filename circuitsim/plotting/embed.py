"""Initial positions: distances in the plane approximate the number of elements between nodes.

Deterministic, without a random start: classical scaling, then stress majorisation.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path


def embed(n: int, edges: np.ndarray) -> np.ndarray:
    """Positions of a connected graph, mean edge length 1, most edges along the axes.

    Parameters
    ----------
    n : int
        Number of vertices.
    edges : (m, 2) int array

    Returns
    -------
    (n, 2) float array
    """
    if n == 1:
        return np.zeros((1, 2))
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    distance = shortest_path(graph, directed=False, unweighted=True)
    return _turned(_majorise(_scaled(distance), distance), edges)


def _scaled(distance: np.ndarray) -> np.ndarray:
    """Classical scaling (Torgerson 1952) of distances (n, n)."""
    square = distance**2
    centred = -0.5 * (square - square.mean(0) - square.mean(1)[:, None] + square.mean())
    vectors = np.linalg.svd(centred @ centred.T)[0][:, :2]
    positions = centred.T @ vectors
    # The sign of a singular vector is the library's choice; the first vertex decides it.
    sign = np.where(positions[0] < 0, 1.0, -1.0)
    spread = np.abs(positions).max(initial=1e-12)
    # Vertices of equal distances to all others must differ in position: a spiral separates them.
    turn = np.arange(len(positions)) * 2.399963
    return positions * sign / spread * distance.max() / 2 + 0.01 * np.column_stack([np.cos(turn), np.sin(turn)])


def _majorise(x: np.ndarray, distance: np.ndarray, iterations: int = 150) -> np.ndarray:
    """Minimise Σ (|x_u − x_v| − d)² / d² (Gansner, Koren & North 2004)."""
    off = distance > 0
    weight = np.zeros_like(distance)
    weight[off] = distance[off] ** -2.0
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(iterations):
        apart = x[:, None] - x[None]
        length = np.sqrt((apart**2).sum(2))
        ratio = np.where(length > 1e-9, weight * distance / np.where(length > 1e-9, length, 1.0), 0.0)
        x = inverse @ ((np.diag(ratio.sum(1)) - ratio) @ x)
    return x


def _turned(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Turn so that edges run along the axes, wider than high; scale to a mean edge length of 1."""
    x = x - x.mean(0)
    along = x[edges[:, 1]] - x[edges[:, 0]]
    length = np.hypot(*along.T)
    angle = np.arctan2(along[:, 1], along[:, 0])
    turns = np.radians(np.arange(0.0, 90.0, 2.0))
    crooked = [(length * np.abs(np.sin(2.0 * (angle - turn)))).sum() for turn in turns]
    turn = float(turns[int(np.argmin(np.round(crooked, 9)))])
    cos, sin = np.cos(turn), np.sin(turn)
    x = x @ np.array([[cos, -sin], [sin, cos]])
    if np.ptp(x[:, 1]) > 1.001 * np.ptp(x[:, 0]):
        x = x[:, ::-1]
    return x / max(float(length.mean()), 1e-12)
