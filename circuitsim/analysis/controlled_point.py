"""Operating points of circuits with controlled sources, from the unknowns of their equations."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solution_warnings import floating
from circuitsim.certificate import Certificate
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.controlled.certificate import certify_controlled
from circuitsim.controlled.equations import OPEN, least_conductance
from circuitsim.controlled.law_arrays import demanded_of_currents
from circuitsim.controlled.linear import Pair

NOISE = 2.0**-80
"""Fraction of the largest current or voltage below which others are zero where noise would be their scale."""

Branches = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Potentials, their low-order parts (n_nodes,), V, currents, A, and drops, V (m,)."""


def branches(
    system: ControlledSystem, value: np.ndarray, x: Pair, conducting: np.ndarray, noise: float = 0.0
) -> Branches:
    """Branch quantities from the unknowns, for the values (m,) of all elements; zero below the fraction ``noise``."""
    roles, arrays, eq = system.roles, system.arrays, system.eq
    first, second, n = arrays.first, arrays.second, arrays.n_nodes
    voltages, low = np.zeros(n), np.zeros(n)
    voltages[1:], low[1:] = x.high[: n - 1], x.low[: n - 1]
    if noise:
        reach = largest_voltage(arrays, value, voltages)
        grid = noise * np.exp2(np.ceil(np.log2(max(reach, 1e-200))))
        low = np.round(low / grid) * grid
        voltages[np.abs(voltages) < grid] = 0.0
    on = eq.diode[conducting]
    same = system.one_potential.lowest(value, on)
    voltages, low = voltages[same], low[same]
    drops = (voltages[first] - voltages[second]) + (low[first] - low[second])
    currents = np.zeros(value.size)
    currents[roles.inside] = x.high[eq.own[roles.inside]]
    currents[roles.nodal] = drops[roles.nodal] / value[roles.nodal]
    currents[roles.given] = value[roles.given]
    drops[roles.held] = value[roles.held]
    drops[on] = 0.0
    currents[eq.diode[~conducting]] = 0.0
    if noise:
        least = noise * max(np.abs(currents).max(), reach * least_conductance(value[arrays.kind == RESISTOR]))
        currents[np.abs(currents) < least] = 0.0
    drops[roles.ohmic] = value[roles.ohmic] * currents[roles.ohmic]
    if roles.transfer.size:
        demanded = demanded_of_currents(system.laws, roles.owners, value, currents)
        drops[system.laws.element[roles.transfer]] = demanded[roles.transfer]
    return voltages, low, currents, drops


def largest_voltage(arrays: CircuitArrays, value: np.ndarray, voltages: np.ndarray) -> float:
    """The largest node voltage, V, except at nodes inside a companion model, between an `OPEN` resistance and a voltage
    source; with values (m,) and voltages (n_nodes,)."""
    kind, first, second, _, n = arrays
    nothing, source = (kind == RESISTOR) & (value >= OPEN), kind == VOLTAGE
    parts, of_tangent = (
        np.bincount(first[own], minlength=n) + np.bincount(second[own], minlength=n)
        for own in (np.ones(kind.size, dtype=bool), nothing | source)
    )
    ends = np.zeros(n, dtype=bool)
    ends[second[nothing]] = ends[first[nothing]] = True
    return float(np.abs(voltages[~(ends & (parts == 2) & (of_tangent == 2))]).max())


def measured(
    system: ControlledSystem, circuit: Circuit, x: Pair, conducting: np.ndarray, limits: tuple[float, float]
) -> OperatingPoint:
    """The operating point with its certificate; ``limits`` are its tolerance and the fraction of noise."""
    tolerance, noise = limits
    voltages, low, currents, drops = branches(system, circuit.arrays().value, x, conducting, noise)
    certificate = certify_controlled(circuit.arrays(), system.laws, voltages, currents, drops, tolerance, low)
    return point_of(system, circuit, (voltages, low, currents, drops), certificate)


def point_of(system: ControlledSystem, circuit: Circuit, found: Branches, certificate: Certificate) -> OperatingPoint:
    """The operating point from the result of `branches`."""
    voltages, low, currents, drops = found
    info: dict[str, object] = {
        "name": "complementary-pivoting",
        "why": "controlled sources have no energy function",
        "iterations": 1,
        "linear": "LU",
    }
    pinned = [floating([circuit.node_names[k]]) for k in system.eq.pinned.tolist()]
    warnings = (*circuit.notes, *pinned)
    point = OperatingPoint(
        circuit, voltages, currents, {}, np.ones(currents.size, dtype=bool), certificate, info, warnings, drops
    )
    point.low = low
    return point


__all__ = ["NOISE", "Branches", "branches", "measured", "point_of"]
