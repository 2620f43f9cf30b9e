"""Circuits that compute: crossbars with wire resistance, layered networks."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.bench.families.sheet import Sheet
from circuitsim.circuit import Circuit

WIRE = 1.0
"""Conductance of a wire between two cells, S."""
RAIL = 0.5
"""Rows are driven with ± so many volts."""


def crossbar(unknowns: int, seed: int) -> Circuit:
    """m×m cells of 10^U(−6, −4) S between row and column wires; rows driven at the left, columns grounded below."""
    return _crossbar("crossbar", max(2, round(math.sqrt(unknowns / 2))), seed, rectifying=False)


def rectifying_crossbar(unknowns: int, seed: int) -> Circuit:
    """The crossbar with a diode in series with every cell, its middle node included: 3 m² nodes."""
    return _crossbar("crossbar-1d1r", max(2, round(math.sqrt(unknowns / 3))), seed, rectifying=True)


def _crossbar(family: str, m: int, seed: int, rectifying: bool) -> Circuit:
    rng = np.random.default_rng([seed, m, 7])
    sheet = Sheet()
    row, column = sheet.nodes(2 * m * m).reshape(2, m, m)
    rail = sheet.nodes(2)
    sheet.voltages(rail, 0, [RAIL, -RAIL])
    # As many rows at + as at −, so that no seed leaves all diodes of a small crossbar off.
    sheet.resistors(rng.permutation(rail[np.arange(m) % 2]), row[:, 0], np.full(m, WIRE))
    sheet.resistors(row[:, :-1].ravel(), row[:, 1:].ravel(), np.full(m * (m - 1), WIRE))
    sheet.resistors(column[:-1].ravel(), column[1:].ravel(), np.full(m * (m - 1), WIRE))
    sheet.resistors(column[-1], 0, np.full(m, WIRE))
    cell = 10.0 ** rng.uniform(-6.0, -4.0, m * m)
    if rectifying:
        middle = sheet.nodes(m * m)
        sheet.resistors(row.ravel(), middle, cell)
        sheet.diodes(middle, column.ravel())
    else:
        sheet.resistors(row.ravel(), column.ravel(), cell)
    return sheet.circuit(family, seed)


def layered(unknowns: int, seed: int) -> Circuit:
    """Deep resistive network after Scellier (2024, §3): half of each hidden layer held ≥ 0 V, half ≤ 0 V by diodes.

    Inputs come doubled, as sources +x and −x; weights are max(0, U(−c, c)) with c = 1/√(size of the layer before).
    Layers have the proportions 4 : 3 : 3 : 2; the number of elements grows with the square of the unknowns.
    """
    sizes = [max(1, round(unknowns * share / 12)) for share in (2, 3, 3, 2)]
    sizes[0] *= 2
    rng = np.random.default_rng([seed, *sizes, 8])
    sheet = Sheet()
    half = rng.uniform(0.0, 1.0, sizes[0] // 2)
    before = sheet.nodes(sizes[0])
    sheet.voltages(before, 0, 4.0 * np.concatenate([half, -half]))
    for depth, size in enumerate(sizes[1:], start=1):
        layer = sheet.nodes(size)
        c = 1.0 / math.sqrt(before.size)
        g = np.maximum(0.0, rng.uniform(-c, c, (before.size, size)))
        g[0] = np.maximum(g[0], 0.01 * c)  # nobody is left without a conductance
        a, b = np.nonzero(g)
        sheet.resistors(before[a], layer[b], g[a, b])
        if depth < 3:
            upper = size // 2
            sheet.diodes(np.zeros(upper, dtype=int), layer[:upper])
            sheet.diodes(layer[upper:], np.zeros(size - upper, dtype=int))
            sheet.currents_into(layer, rng.uniform(-0.1, 0.1, size))
        else:
            sheet.resistors(layer, 0, np.full(size, c))
        before = layer
    return sheet.circuit("drn", seed)
