"""The meshes of README's table, and how times are written."""

from __future__ import annotations

import numpy as np

import circuitsim
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE


def mesh(m: int, seed: int = 0) -> circuitsim.Circuit:
    """The mesh of side m of README's table: m² nodes, see `readme_table.py`."""
    rng = np.random.default_rng(seed)
    node = np.arange(m * m).reshape(m, m) + 2
    edges = np.concatenate(
        [np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], 1), np.stack([node[:-1].ravel(), node[1:].ravel()], 1)]
    )
    diodes = edges[rng.random(len(edges)) < 0.3]
    turned = rng.random(len(diodes)) < 0.5
    diodes[turned] = diodes[turned][:, ::-1]
    fed = rng.integers(2, m * m + 2, m * m // 20)
    rows = [
        (RESISTOR, edges[:, 0], edges[:, 1], np.exp(-0.5 * rng.normal(size=len(edges)))),
        (DIODE, diodes[:, 0], diodes[:, 1], np.full(len(diodes), np.nan)),
        (VOLTAGE, np.array([1]), np.array([0]), np.array([1.0])),
        (RESISTOR, np.full(m, 1), node[:, 0], np.ones(m)),
        (RESISTOR, node[:, -1], np.zeros(m, dtype=int), np.ones(m)),
        (CURRENT, np.zeros(fed.size, dtype=int), fed, rng.uniform(-0.1, 0.1, fed.size)),
    ]
    kind = np.concatenate([np.full(len(first), code) for code, first, _, _ in rows])
    columns = [np.concatenate([row[k] for row in rows]) for k in (1, 2, 3)]
    return circuitsim.Circuit.from_arrays(kind, columns[0], columns[1], columns[2], m * m + 2, f"mesh {m} x {m}")


def seconds(value: float) -> str:
    """A time in ms or s with three digits."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
