"""Circuits with real diodes: meshes, and rows of limiters."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.bench.families.sheet import DIODE_SHARE
from circuitsim.circuit import Circuit
from circuitsim.models import MODELS

OHMS = 1e3
"""Typical resistance, Ω."""
SATURATION = 1e-14
"""Saturation current of the diodes, A."""


def shockley_grid(unknowns: int, seed: int) -> Circuit:
    """A mesh of m×m nodes, 1 kΩ e^{0.5 N(0, 1)} an edge, a junction diode of random direction beside 30 % of them; m V
    through 1 kΩ on the left side, 1 kΩ to ground on the right."""
    return mesh(max(2, round(math.sqrt(unknowns))), DIODE_SHARE, seed)


def mesh(m: int, share: float, seed: int) -> Circuit:
    """The mesh of m×m nodes with so large a share of edges that carry a diode."""
    rng = np.random.default_rng([seed, m, 9])
    circuit = Circuit(f"shockley-grid, {m * m + 1} unknowns, seed {seed}")
    node = np.array([[f"n{i}_{j}" for j in range(m)] for i in range(m)])
    ends = (
        np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()]),
        np.concatenate([node[:, 1:].ravel(), node[1:].ravel()]),
    )
    ohms = OHMS * np.exp(0.5 * rng.standard_normal(ends[0].size))
    circuit.voltage_source("V0", "rail", "0", float(m))
    for i in range(m):
        circuit.resistor(f"RI{i}", "rail", str(node[i, 0]), OHMS)
        circuit.resistor(f"RO{i}", str(node[i, -1]), "0", OHMS)
    for k, (a, b, r) in enumerate(zip(*ends, ohms.tolist())):
        circuit.resistor(f"R{k}", str(a), str(b), r)
    (diode,) = (row.device for row in MODELS if row.name == "junction diode")
    assert diode is not None
    law = diode().with_value("is", SATURATION)
    for k, edge in enumerate(rng.permutation(ohms.size)[: round(share * ohms.size)].tolist()):
        a, b = (str(column[edge]) for column in ends)
        circuit.device(f"D{k}", *((a, b) if rng.random() < 0.5 else (b, a)), law)
    return circuit


__all__ = ["mesh", "shockley_grid"]
