"""Initial positions: distances in the plane approximate the number of elements between nodes (Kamada & Kawai 1989)."""

from __future__ import annotations

import numpy as np


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
    import networkx

    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(n))
    found = networkx.kamada_kawai_layout(graph)
    x = np.array([found[vertex] for vertex in range(n)])
    return x if n == 1 else _turned(x, edges)


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
