"""The circuit linearised at its operating point; ideal diodes keep their states."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.elementary import elementary_point
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.laws import Law
from circuitsim.errors import UsageError
from circuitsim.models.junction_diode import charge, junction
from circuitsim.models.smooth import SmoothDevice


class Linearized(NamedTuple):
    """Elements of the small-signal circuit.

    Attributes
    ----------
    circuit : Circuit
        The original; its nodes and elements come first.
    expansion : Expansion
        Its devices as elementary elements.
    arrays : CircuitArrays
        Of the elementary elements: conducting diodes become voltage sources, blocking ones current sources; all sources
        are zero. Capacitors are kept.
    laws : dict of int to Law
        Of controlled sources, without their constants.
    kinks : tuple of str
        Diodes with zero current and voltage, whose state is ambiguous.
    """

    circuit: Circuit
    expansion: Expansion
    arrays: CircuitArrays
    laws: dict[int, Law]
    kinks: tuple[str, ...]


def linearized(circuit: Circuit) -> Linearized:
    """The small-signal circuit at the operating point; without diodes and devices none is computed.

    Raises
    ------
    UsageError
        A circuit with bidirectional amplifiers.
    InfeasibleError, UnboundedError, ConvergenceError
        No certified operating point.
    """
    if circuit.amplified:
        raise UsageError("a circuit with bidirectional amplifiers has no small-signal analysis")
    expansion = expanded(circuit)
    inner, conducting = expansion.circuit, np.zeros(len(expansion.circuit), dtype=bool)
    kinks: tuple[str, ...] = ()
    if (inner.arrays().kind == DIODE).any() or circuit.devices:
        solved = solve(circuit)
        point = elementary_point(solved)
        inner, conducting = point.circuit, point.currents > 0.0
        at_kink = np.flatnonzero((inner.arrays().kind == DIODE) & point.kink).tolist()
        kinks = tuple(expansion.original(inner.names[k] for k in at_kink))
        expansion = _with_charges(expansion, inner, circuit, solved)
        inner = expansion.circuit
        conducting = np.append(conducting, np.zeros(len(inner) - conducting.size, dtype=bool))
    kind = inner.arrays().kind
    for k, law in inner.laws.items():
        if any(kind[control.element] == CAPACITOR for control in law.currents):
            name = inner.names[k]
            raise UsageError(f"{name} follows the current of a capacitor: sense it with a source of 0 V in series")
    return of_elements(circuit, inner, conducting)._replace(expansion=expansion, kinks=kinks)


def _with_charges(expansion: Expansion, inner: Circuit, circuit: Circuit, point: OperatingPoint) -> Expansion:
    """The expansion with junction capacitances at an operating point, inside the series resistance."""
    kind, first, second, value = (own.tolist() for own in inner.arrays()[:4])
    names, nodes = [str(name) for name in inner.names], [str(name) for name in inner.node_names]
    owner, hidden = dict(expansion.owner), set(expansion.hidden)
    for k, device in circuit.devices.items():
        if not (isinstance(device, SmoothDevice) and device.stores()):
            continue
        row, slope = device.row(), expansion.parts[k][0]
        current, conductance = junction(row, point.junctions[k])
        farads = charge(row, point.junctions[k], current, conductance)[1]
        middle, end = len(nodes), second[slope]
        nodes.append(f"{names[slope]}:junction")
        hidden.add(nodes[-1])
        value[slope], second[slope] = row[0], middle
        for code, amount, word in ((RESISTOR, 1.0 / max(conductance, 1e-100), "law"), (CAPACITOR, farads, "charge")):
            names.append(f"{names[slope]}:{word}")
            owner[names[-1]] = str(circuit.names[k])
            for column, entry in zip((kind, first, second, value), (code, middle, end, amount)):
                column.append(entry)
    if len(names) == len(inner):
        return expansion._replace(circuit=inner)
    columns = array("b", kind), array("q", first), array("q", second), array("d", value)
    made = Circuit.from_columns(inner.title, columns, names, nodes, laws=inner.laws)
    return expansion._replace(circuit=made, owner=owner, hidden=hidden)


def of_elements(circuit: Circuit, inner: Circuit, conducting: np.ndarray, capacitors: int = CAPACITOR) -> Linearized:
    """The small-signal circuit of elementary elements, with capacitors as elements of the given kind."""
    kind, first, second, value, n_nodes = inner.arrays()
    diode, value = kind == DIODE, value.copy()
    kind = np.where(kind == CAPACITOR, capacitors, np.where(diode, np.where(conducting, VOLTAGE, CURRENT), kind))
    value[(kind == VOLTAGE) | (kind == CURRENT)] = 0.0
    laws = {k: law._replace(constant=0.0) for k, law in inner.laws.items()}
    arrays = CircuitArrays(kind, first, second, value, n_nodes)
    return Linearized(circuit, expanded(circuit), arrays, laws, ())


__all__ = ["Linearized", "linearized", "of_elements"]
