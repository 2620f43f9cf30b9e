"""Circuits of textbook parts, in rows: ladders, rectifier bridges, selectors of the largest and smallest voltage."""

from __future__ import annotations

import numpy as np

from circuitsim.bench.families.sheet import Sheet, driven, edges_with_diodes, random_currents, usual_conductances
from circuitsim.circuit import Circuit

SHUNT = 0.05
"""Size of the conductances from a ladder's nodes to ground, S."""


def ladder(unknowns: int, seed: int) -> Circuit:
    """A chain of resistors with a shunt at every node; a source to ten nodes keeps potentials from dying out."""
    n = max(3, unknowns - 1)
    rng = np.random.default_rng([seed, n, 4])
    sheet = Sheet()
    node = sheet.nodes(n)
    edges_with_diodes(sheet, rng, node[:-1], node[1:], usual_conductances(rng, n - 1))
    sheet.resistors(node, 0, SHUNT * usual_conductances(rng, n))
    random_currents(sheet, rng, node, n // 10)
    driven(sheet, node[:1], node[-1:])
    return sheet.circuit("ladder", seed)


def bridges(unknowns: int, seed: int) -> Circuit:
    """Full-wave bridges: floating sources of random sign behind 1 Ω, loads, and a resistor from each to the next."""
    k = max(1, round(unknowns / 5))
    rng = np.random.default_rng([seed, k, 5])
    sheet = Sheet()
    a, b, source, plus, minus = sheet.nodes(5 * k).reshape(5, k)
    sheet.voltages(source, b, rng.uniform(0.2, 1.0, k) * rng.choice([-1.0, 1.0], k))
    sheet.resistors(source, a, usual_conductances(rng, k))
    for anode, cathode in ((a, plus), (b, plus), (minus, a), (minus, b)):
        sheet.diodes(anode, cathode)
    sheet.resistors(plus, minus, usual_conductances(rng, k))
    sheet.resistors(minus, 0, SHUNT * usual_conductances(rng, k))
    sheet.resistors(plus[:-1], minus[1:], SHUNT * usual_conductances(rng, k - 1))
    return sheet.circuit("bridges", seed)


def selectors(unknowns: int, seed: int) -> Circuit:
    """Groups of four random voltages behind 1 Ω; diodes pass on the largest or the smallest of each group."""
    inputs = 4
    k = max(1, round(unknowns / (2 * inputs + 1)))
    rng = np.random.default_rng([seed, k, 6])
    sheet = Sheet()
    source, tap = sheet.nodes(2 * inputs * k).reshape(2, k, inputs)
    out = sheet.nodes(k)
    sheet.voltages(source.ravel(), 0, rng.uniform(-1.0, 1.0, inputs * k))
    sheet.resistors(source.ravel(), tap.ravel(), usual_conductances(rng, inputs * k))
    # In turn groups of the largest, whose output is pulled down, and of the smallest, pulled up.
    largest = np.arange(k) % 2 == 0
    to, group = np.repeat(out, inputs), np.repeat(largest, inputs)
    sheet.diodes(np.where(group, tap.ravel(), to), np.where(group, to, tap.ravel()))
    sheet.resistors(out, 0, 0.1 * usual_conductances(rng, k))
    sheet.currents_into(out, np.where(largest, -0.3, 0.3))
    sheet.resistors(out[:-1], out[1:], 0.01 * usual_conductances(rng, k - 1))
    return sheet.circuit("selectors", seed)
