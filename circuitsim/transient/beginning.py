"""Where a run begins: the operating point at time 0, with nodes and inductors that are held (``.ic``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, INDUCTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.transient.modes import Role
from circuitsim.transient.problem import Problem
from circuitsim.transient.waveforms import value

TRIES = 50
"""Most states of the switches to try at the operating point."""


def operating_point(
    problem: Problem, closed: np.ndarray, held: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Capacitor voltages and inductor currents (m,) at time 0, and the conducting set (d,).

    Parameters
    ----------
    problem : Problem
    closed : (switches,) bool array
        States of the switches to try first.
    held : mapping of str to float
        Potentials of nodes, V, and currents of inductors, A.
    """
    circuit, rows = _holding(problem.circuit, held), problem.library_rows()
    kind, names = problem.circuit.arrays().kind, circuit.names
    values = {
        names[k]: value(waveform, 0.0)
        for k, waveform in zip(problem.sources.tolist(), problem.waveforms)
        if kind[k] in (VOLTAGE, CURRENT)
    }
    for _ in range(TRIES):
        ohms = problem.ohms(closed).tolist()
        point = solve(circuit.with_values(values | dict(zip((names[k] for k in problem.switched), ohms))))
        control = np.array([
            point.currents[circuit.element_index(switch.control)] if isinstance(switch.control, str)
            else point.voltage(*switch.control)
            for switch in problem.switches
        ])  # fmt: skip
        now = np.where(closed, control >= rows.off, control > rows.on)
        if (now == closed).all():
            break
        closed = now
    else:
        wrong = problem.named_switches(now != closed)
        raise ConvergenceError(f"{wrong}: no state holds at the operating point; begin with initial values (UIC)")
    x = np.zeros(problem.parts.role.size)
    for role, of in ((Role.INDUCTOR, point.currents), (Role.CAPACITOR, point.drops)):
        own = np.flatnonzero(problem.own.role == role)
        x[own] = of[own]
    return x, np.concatenate([point.currents[problem.diodes] > 0.0, closed])


def _holding(circuit: Circuit, held: Mapping[str, float]) -> Circuit:
    """The circuit with a voltage source at each node, and a current source for each inductor, that is held."""
    if not held:
        return circuit
    kind, first, second, value, n_nodes = circuit.arrays()
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
    return Circuit.from_arrays(
        np.append(kind, np.full(len(nodes), VOLTAGE)), np.append(first, nodes).astype(np.int64),
        np.append(second, np.zeros(len(nodes), np.int64)), np.append(value, levels), n_nodes, circuit.title,
        [*circuit.names, *(f".ic v({circuit.node_names[node]})" for node in nodes)], circuit.node_names,
    )  # fmt: skip


def from_held(problem: Problem, held: Mapping[str, float]) -> dict[str, float]:
    """Initial values of inductors that are held, and of capacitors at nodes that are; other nodes are at 0 V."""
    circuit = problem.circuit
    volts = {circuit.node_index(name): level for name, level in held.items() if name not in circuit}
    found = {name: level for name, level in held.items() if name in circuit}
    for k in problem.storing.tolist():
        ends = int(problem.own.first[k]), int(problem.own.second[k])
        if problem.own.role[k] == Role.CAPACITOR and any(end in volts for end in ends):
            found[circuit.names[k]] = volts.get(ends[0], 0.0) - volts.get(ends[1], 0.0)
    return found
