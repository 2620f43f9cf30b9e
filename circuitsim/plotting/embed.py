"""Initial positions: distances in the plane approximate the number of elements between nodes.

Deterministic: no random start. Pivot MDS (Brandes & Pich 2007), then stress majorisation where that is affordable.
"""

from __future__ import annotations

import numpy as np

PIVOTS = 60
DENSE = 300
"""Up to this many vertices stress is minimised over all pairs."""


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
    distance = _distances(n, edges, min(n, PIVOTS if n > DENSE else n))
    positions = _pivot_mds(distance)
    if n <= DENSE:
        positions = _majorise(positions, distance)
    return _turned(positions, edges)


def _distances(n: int, edges: np.ndarray, pivots: int) -> np.ndarray:
    """Hops from ``pivots`` far-apart vertices to all, (pivots, n)."""
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    rows = np.zeros((pivots, n))
    nearest = np.full(n, np.inf)
    start = 0
    for k in range(pivots):
        if pivots == n:
            start = k
        seen = {start: 0}
        frontier = [start]
        while frontier:
            following = []
            for u in frontier:
                for v in neighbours[u]:
                    if v not in seen:
                        seen[v] = seen[u] + 1
                        following.append(v)
            frontier = following
        rows[k, list(seen)] = list(seen.values())
        nearest = np.minimum(nearest, rows[k])
        start = int(np.argmax(nearest))
    return rows


def _pivot_mds(distance: np.ndarray) -> np.ndarray:
    square = distance**2
    centred = -0.5 * (square - square.mean(0) - square.mean(1)[:, None] + square.mean())
    vectors = np.linalg.svd(centred @ centred.T)[0][:, :2]
    positions = np.zeros((distance.shape[1], 2))
    positions[:, : vectors.shape[1]] = centred.T @ vectors
    # The sign of a singular vector is the library's choice; the first vertex decides it.
    sign = np.where(positions[0] < 0, 1.0, -1.0)
    spread = np.abs(positions).max(initial=1e-12)
    # Vertices of equal distances to all pivots must differ in position: a spiral separates them.
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
