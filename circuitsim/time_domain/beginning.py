"""Initial conditions: the operating point at time 0, with nodes and inductors held by ``.ic``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.analysis.switching import Switching, fixed_controls, operated
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, INDUCTOR, VOLTAGE
from circuitsim.circuit.waveforms import Waveform
from circuitsim.errors import UsageError
from circuitsim.models.smooth import SmoothDevice


class Start(NamedTuple):
    """Initial conditions of a run.

    Attributes
    ----------
    point : OperatingPoint or None
        At time 0; None where values are stated.
    closed : (s,) bool array
        Switches.
    held : dict of str to float
        Values of ``.ic`` at which the operating point was held.
    level : (m,) float array
        Voltages of capacitors and junctions, V, and currents of all other elements, A.
    """

    point: OperatingPoint | None
    closed: np.ndarray
    held: dict[str, float]
    level: np.ndarray


def check_amplifiers(circuit: Circuit) -> None:
    """Refuse amplifiers.

    Raises
    ------
    UsageError
    """
    for k in np.flatnonzero(circuit.arrays().kind == AMPLIFIER).tolist():
        raise UsageError(f"{circuit.names[k]}: amplifiers have no transient analysis")


def charged_junctions(circuit: Circuit) -> dict[int, SmoothDevice]:
    """Smooth devices with a charge, by position."""
    return {k: own for k, own in circuit.devices.items() if isinstance(own, SmoothDevice) and own.stores()}


def waves_of(circuit: Circuit, waveforms: Mapping[str, Waveform]) -> dict[int, Waveform]:
    """Waveforms by the positions of their sources.

    Raises
    ------
    UsageError
        One is of no source.
    """
    kind, found = circuit.arrays().kind, {circuit.element_index(name): wave for name, wave in waveforms.items()}
    for k in found:
        if kind[k] not in (VOLTAGE, CURRENT):
            raise UsageError(f"{circuit.names[k]} is not a source; only sources have waveforms")
    return found


def start(
    circuit: Circuit,
    waves: Mapping[int, Waveform],
    switching: Switching,
    stores: np.ndarray,
    initial: Mapping[str, float] | None,
    held: Mapping[str, float],
) -> Start:
    """The initial conditions of a run.

    Parameters
    ----------
    circuit : Circuit
    waves : mapping of int to Waveform
        Of sources, by position; all others keep their values.
    switching : Switching
    stores : (m,) bool array
        Elements that have initial values.
    initial, held
        See `circuitsim.time_domain.transient`.

    Raises
    ------
    UsageError
        Unknown elements with initial values.
    """
    kind = circuit.arrays().kind
    closed = np.array([switch.closed for switch in switching.switches], dtype=bool)
    if initial is None:
        values = {circuit.names[k]: wave.value(0.0) for k, wave in waves.items() if kind[k] in (VOLTAGE, CURRENT)}
        point, closed = operating_point_of(holding(circuit, held), values, switching, closed)
        level = np.where(kind == CAPACITOR, point.drops[: kind.size], point.currents[: kind.size])
        for k, volts in point.junctions.items():
            level[k] = volts
        return Start(point, closed, dict(held), level)
    level = np.zeros(kind.size)
    for name, stated in (from_held(circuit, held) | dict(initial)).items():
        k = circuit.element_index(name)
        if not stores[k]:
            raise UsageError(
                f"{circuit.names[k]} is no capacitor, inductor or junction with a charge: it has no initial value"
            )
        level[k] = stated
    return Start(None, closed, dict(held), level)


def operating_point_of(
    circuit: Circuit, values: Mapping[str, float], switching: Switching, closed: np.ndarray
) -> tuple[OperatingPoint, np.ndarray]:
    """An operating point at which all switches agree with their controls, and their states (s,).

    Parameters
    ----------
    circuit : Circuit
    values : mapping of str to float
        Of sources, V, A.
    switching : Switching
    closed : (s,) bool array
        Initial guess of the states.

    Raises
    ------
    ConvergenceError
        No states of the switches agree with their controls.
    """
    if not switching.names:
        return solve(circuit.with_values(values)), closed
    fixed = fixed_controls(circuit, switching)
    found = operated(lambda ohms: solve(circuit.with_values({**values, **ohms})), switching, closed, fixed, False)
    return found.point, found.closed


def holding(circuit: Circuit, held: Mapping[str, float]) -> Circuit:
    """The circuit with a voltage source at each held node, and a current source for each held inductor."""
    if not held:
        return circuit
    columns: tuple[Any, ...] = tuple(column[:] for column in circuit.columns())
    names, nodes = [*circuit.names], [*circuit.node_names]
    for name, level in held.items():
        if name not in circuit:
            node = circuit.node_index(name)
            names.append(f".ic v({nodes[node]})")
            for column, entry in zip(columns, (VOLTAGE, node, GROUND, level)):
                column.append(entry)
            continue
        k = circuit.element_index(name)
        if columns[0][k] != INDUCTOR:
            raise UsageError(f"{name} is not an inductor: its current cannot be held")
        columns[0][k], columns[3][k] = CURRENT, level
    return Circuit.from_columns(circuit.title, columns, names, nodes, None, circuit.devices, circuit.laws)


def from_held(circuit: Circuit, held: Mapping[str, float]) -> dict[str, float]:
    """Initial values of held inductors, and of capacitors at held nodes; other nodes are at 0 V."""
    volts = {circuit.node_index(name): level for name, level in held.items() if name not in circuit}
    found = {name: level for name, level in held.items() if name in circuit}
    kind, first, second, capacitance, _ = circuit.arrays()
    for k in np.flatnonzero((kind == CAPACITOR) & (capacitance > 0.0)).tolist():
        ends = int(first[k]), int(second[k])
        if any(end in volts for end in ends):
            found[circuit.names[k]] = volts.get(ends[0], 0.0) - volts.get(ends[1], 0.0)
    return found
