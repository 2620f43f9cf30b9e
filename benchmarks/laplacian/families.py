"""Graphs the factorisation is measured on: (name, n, a, b, weights), node n is ground. Deterministic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

Graph = tuple[int, np.ndarray, np.ndarray, np.ndarray]


def _lognormal(m: int, seed: int) -> np.ndarray:
    return np.exp(0.5 * np.random.default_rng(seed).normal(size=m))


def grid(side: int, seed: int = 0) -> Graph:
    """side × side mesh; left and right sides tied to ground."""
    i = np.arange(side * side).reshape(side, side)
    n = side * side
    a = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel(), i[:, 0], i[:, -1]])
    b = np.concatenate([i[:, 1:].ravel(), i[1:].ravel(), np.full(2 * side, n)])
    return n, a, b, _lognormal(a.size, seed)


def bad_grid(side: int, seed: int = 0) -> Graph:
    """The mesh with weights 10^U(−9, 3)."""
    n, a, b, _ = grid(side)
    return n, a, b, 10.0 ** np.random.default_rng(seed).uniform(-9, 3, a.size)


def random_graph(n: int, seed: int = 0) -> Graph:
    """Erdős–Rényi, mean degree 4; a twentieth of the nodes, and one of each component, tied to ground."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n)
    _, part = connected_components(sp.coo_matrix((np.ones(2 * n), (a, b)), shape=(n, n)), directed=False)
    tied = np.append(rng.choice(n, n // 20, replace=False), np.unique(part, return_index=True)[1])
    a, b = np.append(a, tied), np.append(b, np.full(tied.size, n))
    return n, a, b, _lognormal(a.size, seed)


def scale_free(n: int, seed: int = 0, m: int = 2) -> Graph:
    """Barabási–Albert with m links a new node; a twentieth of the nodes tied to ground."""
    rng = np.random.default_rng(seed)
    ends = list(range(m))
    a, b = [], []
    for k in range(m, n):
        for target in {ends[int(rng.integers(len(ends)))] for _ in range(m)}:
            a.append(k)
            b.append(target)
            ends += [k, target]
    tied = rng.choice(n, n // 20, replace=False)
    first, second = np.append(a, tied), np.append(b, np.full(tied.size, n))
    return n, first, second, _lognormal(first.size, seed)


def crossbar(side: int, seed: int = 0, middle: bool = True) -> Graph:
    """Crossbar with wire resistance; ``middle`` adds the node between each cell's resistor and diode."""
    rng = np.random.default_rng(seed)
    cells = side * side
    row = np.arange(cells).reshape(side, side)
    column = row + cells
    n = (3 if middle else 2) * cells
    wires_a = [row[:, :-1].ravel(), column[:-1].ravel(), row[:, 0], column[-1]]
    wires_b = [row[:, 1:].ravel(), column[1:].ravel(), np.full(side, n), np.full(side, n)]
    cell = 10.0 ** rng.uniform(-6, -4, cells)
    if middle:
        node = row.ravel() + 2 * cells
        a = np.concatenate([*wires_a, row.ravel(), node])
        b = np.concatenate([*wires_b, node, column.ravel()])
        cell = np.append(cell, np.full(cells, 1.0))
    else:
        a, b = np.concatenate([*wires_a, row.ravel()]), np.concatenate([*wires_b, column.ravel()])
    return n, a, b, np.append(np.ones(a.size - cell.size), cell)


def ladder(n: int, seed: int = 0) -> Graph:
    """Rail of n nodes, each with a rung to ground."""
    a = np.concatenate([np.arange(n), np.arange(n - 1)])
    b = np.concatenate([np.full(n, n), np.arange(1, n)])
    return n, a, b, _lognormal(a.size, seed)


FAMILIES: dict[str, Callable[[], Graph]] = {
    "grid 100x100": lambda: grid(100),
    "grid 316x316": lambda: grid(316),
    "grid 1000x1000": lambda: grid(1000),
    "badly scaled grid 100x100": lambda: bad_grid(100),
    "badly scaled grid 316x316": lambda: bad_grid(316),
    "Erdos-Renyi 5000": lambda: random_graph(5000),
    "scale-free 10000": lambda: scale_free(10000),
    "crossbar 128x128 (1D1R)": lambda: crossbar(128),
    "crossbar 1024x1024 (1R)": lambda: crossbar(1024, middle=False),
    "crossbar 1024x1024 (1D1R)": lambda: crossbar(1024),
    "ladder 1e5": lambda: ladder(100_000),
}
