"""Where a run begins: the operating point at time 0, with nodes and inductors that are held (``.ic``)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.analysis.switching import Switching, fixed_controls, operated
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.problem import Problem


def operating_point(problem: Problem, closed: np.ndarray, held: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Capacitor voltages and inductor currents (m,) at time 0, and the conducting set (d,).

    Parameters
    ----------
    problem : Problem
    closed : (switches,) bool array
        States of the switches to try first.
    held : mapping of str to float
        Potentials of nodes, V, and currents of inductors, A.
    """
    circuit = holding(problem.circuit, held)
    kind, names = problem.circuit.arrays().kind, circuit.names
    values = {
        names[k]: waveform.value(0.0)
        for k, waveform in zip(problem.sources.tolist(), problem.waveforms)
        if kind[k] in (VOLTAGE, CURRENT)
    }
    switching = Switching(problem.switched, problem.switches, tuple(names[k] for k in problem.switched))
    point, closed = operating_point_of(circuit, values, switching, closed)
    x = np.zeros(problem.parts.role.size)
    role = problem.own.role
    coils = np.flatnonzero((role == Role.INDUCTOR) | (role == Role.WINDING))
    capacitors = np.flatnonzero(role == Role.CAPACITOR)
    x[coils], x[capacitors] = point.currents[coils], point.drops[capacitors]
    return x, np.concatenate([point.currents[problem.diodes] > 0.0, closed])


def operating_point_of(
    circuit: Circuit, values: Mapping[str, float], switching: Switching, closed: np.ndarray
) -> tuple[OperatingPoint, np.ndarray]:
    """An operating point at which all switches are as their controls ask for, and their states (s,).

    Parameters
    ----------
    circuit : Circuit
    values : mapping of str to float
        Of sources, V, A.
    switching : Switching
    closed : (s,) bool array
        States before.

    Raises
    ------
    ConvergenceError
        No states agree with their controls.
    """
    if not switching.names:
        return solve(circuit.with_values(values)), closed
    fixed = fixed_controls(circuit, switching)
    found = operated(lambda ohms: solve(circuit.with_values({**values, **ohms})), switching, closed, fixed, False)
    return found.point, found.closed


def holding(circuit: Circuit, held: Mapping[str, float]) -> Circuit:
    """The circuit with a voltage source at each node, and a current source for each inductor, that is held."""
    if not held:
        return circuit
    kind, first, second, value, _ = circuit.arrays()
    kind, value = kind.copy(), value.copy()
    nodes, levels = [], []
    for name, level in held.items():
        if name not in circuit:
            nodes.append(circuit.node_index(name))
            levels.append(level)
            continue
        k = circuit.element_index(name)
        if kind[k] != INDUCTOR:
            raise UsageError(f"{name} is no inductor: its current cannot be held")
        kind[k], value[k] = CURRENT, level
    columns = (
        array("b", np.append(kind, np.full(len(nodes), VOLTAGE)).tolist()),
        array("q", [*first.tolist(), *nodes]),
        array("q", [*second.tolist(), *[0] * len(nodes)]),
        array("d", [*value.tolist(), *levels]),
    )
    names = [*circuit.names, *(f".ic v({circuit.node_names[node]})" for node in nodes)]
    return Circuit.from_columns(
        circuit.title, columns, names, [*circuit.node_names], devices=circuit.devices, laws=circuit.laws
    )


def from_held(circuit: Circuit, held: Mapping[str, float]) -> dict[str, float]:
    """Initial values of inductors that are held, and of capacitors at nodes that are; other nodes are at 0 V."""
    volts = {circuit.node_index(name): level for name, level in held.items() if name not in circuit}
    found = {name: level for name, level in held.items() if name in circuit}
    kind, first, second, capacitance, _ = circuit.arrays()
    for k in np.flatnonzero((kind == CAPACITOR) & (capacitance > 0.0)).tolist():
        ends = int(first[k]), int(second[k])
        if any(end in volts for end in ends):
            found[circuit.names[k]] = volts.get(ends[0], 0.0) - volts.get(ends[1], 0.0)
    return found
