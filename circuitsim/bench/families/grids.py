"""Square meshes."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.bench.families.sheet import Sheet, driven, edges_with_diodes, random_currents, usual_conductances
from circuitsim.circuit import Circuit


def grid(unknowns: int, seed: int) -> Circuit:
    """1 V through 1 S on the left side, 1 S to ground on the right, one random current source to 20 nodes."""
    return _mesh("grid", unknowns, seed, wide=False)


def scaled_grid(unknowns: int, seed: int) -> Circuit:
    """The grid with conductances over twelve decades."""
    return _mesh("grid-scaled", unknowns, seed, wide=True)


def _mesh(family: str, unknowns: int, seed: int, wide: bool) -> Circuit:
    m = max(2, round(math.sqrt(unknowns)))
    rng = np.random.default_rng([seed, m, wide])
    sheet = Sheet()
    node = sheet.nodes(m * m).reshape(m, m)
    first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    second = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    g = 10.0 ** rng.uniform(-9.0, 3.0, first.size) if wide else usual_conductances(rng, first.size)
    edges_with_diodes(sheet, rng, first, second, g)
    random_currents(sheet, rng, node.ravel(), m * m // 20)
    driven(sheet, node[:, 0], node[:, -1])
    return sheet.circuit(family, seed)
