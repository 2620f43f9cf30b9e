"""Dense circuits in layers: crossbars and layered networks, where a grid would be a thicket.

Nodes are in columns, elements between neighbouring columns. Every element's symbol is at the share 1/(k + 1) of its
length, k the number of nodes on the right: there all wires are equally spaced, so that no symbols overlap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DENSE = 2.0
"""Elements a node (ground symbols apart) from which layers are tried."""

SMALLEST = 6


class PlacedLayers(NamedTuple):
    """Positions of the vertices (n, 2), in cells, and where on each edge its symbol sits, as a share from its start."""

    positions: np.ndarray
    share: np.ndarray


def layered(edges: np.ndarray, parent: np.ndarray, sources: np.ndarray, symbols: bool = True) -> PlacedLayers | None:
    """The circuit in layers, or None where it is not dense or has elements inside a layer.

    Parameters
    ----------
    edges : (m, 2) int array
    parent : (n,) int array
        The vertex a ground symbol hangs on, −1 elsewhere.
    sources : int array
        Vertices for the first layer; all nodes at an even distance from the first vertex if that does not work.
    symbols : bool
        Whether there is to be room for a symbol on every element.
    """
    core = np.flatnonzero(parent < 0)
    inner = edges[parent[edges[:, 1]] < 0]
    if core.size < SMALLEST or len(inner) < DENSE * core.size:
        return None
    layer = _distance(parent.size, inner, sources)
    if not _fits(layer, core, inner):
        layer = _distance(parent.size, inner, core[:1]) % 2
        if not _fits(layer, core, inner):
            return None
    columns = _ordered([core[layer[core] == k].tolist() for k in range(int(layer[core].max()) + 1)], inner)
    return _placed(columns, edges, parent, layer, symbols)


def _distance(n: int, edges: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Hops from the vertices ``start``; −1 where none leads."""
    distance = np.full(n, -1, dtype=np.int64)
    distance[start] = 0
    for hops in range(n):
        near = distance[edges] == hops
        reached = edges[:, ::-1][near]
        reached = reached[distance[reached] < 0]
        if not reached.size:
            break
        distance[reached] = hops + 1
    return distance


def _fits(layer: np.ndarray, core: np.ndarray, inner: np.ndarray) -> bool:
    """Every vertex has a layer, and every element joins neighbouring ones."""
    return bool((layer[core] >= 0).all() and (np.abs(np.diff(layer[inner], axis=1)) == 1).all())


def _ordered(columns: list[list[int]], inner: np.ndarray, sweeps: int = 6) -> list[list[int]]:
    """Vertices of each column by the mean height of their neighbours, to and fro."""
    height = {v: k / len(column) for column in columns for k, v in enumerate(column)}
    neighbours: dict[int, list[int]] = {v: [] for v in height}
    for u, v in inner.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    for sweep in range(sweeps):
        for column in columns[1:] if sweep % 2 == 0 else columns[-2::-1]:
            column.sort(key=lambda v: round(sum(height[u] for u in neighbours[v]) / max(1, len(neighbours[v])), 9))
            height.update((v, k / len(column)) for k, v in enumerate(column))
    return columns


def _placed(
    columns: list[list[int]], edges: np.ndarray, parent: np.ndarray, layer: np.ndarray, symbols: bool
) -> PlacedLayers:
    widest = max(map(len, columns))
    positions = np.zeros((parent.size, 2))
    x = 0.0
    for k, column in enumerate(columns):
        spacing = max(1.5, 0.4 * widest) if symbols else max(1.0, min(4.0, 0.8 * widest / len(column)))
        for row, v in enumerate(column):
            positions[v] = x, ((len(column) - 1) / 2 - row) * spacing
        room = 1.05 * (len(columns[min(k + 1, len(columns) - 1)]) + 1) if symbols else 0.35 * widest
        x += max(4.0, room)
    last = len(columns) - 1
    for v in np.flatnonzero(parent >= 0).tolist():
        own = int(layer[parent[v]])
        aside = {0: (-1.0, 0.0), last: (1.0, 0.0)}.get(own, (0.0, -0.8))
        positions[v] = positions[parent[v]] + aside
    share = np.full(len(edges), 0.5)
    for e, (u, v) in enumerate(edges.tolist()):
        if parent[v] < 0:
            left, right = (u, v) if layer[u] < layer[v] else (v, u)
            near = 1.0 / (len(columns[int(layer[right])]) + 1)
            share[e] = near if left == u else 1.0 - near
    return PlacedLayers(positions, share)
