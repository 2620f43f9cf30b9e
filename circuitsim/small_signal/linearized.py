"""The linear circuit of small signals: tangents at the operating point, diodes as they conduct there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.elementary import elementary_point
from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.laws import Law
from circuitsim.errors import UsageError


class Linearized(NamedTuple):
    """Elements of small signals.

    Attributes
    ----------
    circuit : Circuit
        The original; its nodes and elements come first.
    expansion : Expansion
        Its devices as elementary elements.
    arrays : CircuitArrays
        Of the elementary elements: conducting diodes are voltage sources, blocking ones current sources, all sources
        are zero. Capacitors stay what they are.
    laws : dict of int to Law
        Of controlled sources, without their constants.
    kinks : tuple of str
        Diodes without current and voltage: their state is one of two.
    """

    circuit: Circuit
    expansion: Expansion
    arrays: CircuitArrays
    laws: dict[int, Law]
    kinks: tuple[str, ...]


def linearized(circuit: Circuit) -> Linearized:
    """The small-signal circuit at the operating point, which a circuit without diodes and devices does not need.

    Raises
    ------
    UsageError
        A circuit with bidirectional amplifiers.
    InfeasibleError, UnboundedError, ConvergenceError
        No certified operating point.
    """
    if circuit.amplified:
        raise UsageError("a circuit with bidirectional amplifiers has no small-signal analysis yet")
    expansion = expanded(circuit)
    inner, conducting = expansion.circuit, np.zeros(len(expansion.circuit), dtype=bool)
    kinks: tuple[str, ...] = ()
    if (inner.arrays().kind == DIODE).any() or circuit.devices:
        point = elementary_point(solve(circuit))
        inner, conducting = point.circuit, point.currents > 0.0
        at_kink = np.flatnonzero((inner.arrays().kind == DIODE) & point.kink).tolist()
        kinks = tuple(expansion.original(inner.names[k] for k in at_kink))
    kind = inner.arrays().kind
    for k, law in inner.laws.items():
        if any(kind[control.element] == CAPACITOR for control in law.currents):
            name = inner.names[k]
            raise UsageError(f"{name} follows the current of a capacitor: sense it with a source of 0 V in series")
    return of_elements(circuit, inner, conducting)._replace(expansion=expansion, kinks=kinks)


def of_elements(circuit: Circuit, inner: Circuit, conducting: np.ndarray, capacitors: int = CAPACITOR) -> Linearized:
    """The small-signal circuit of elementary elements, whose capacitors become elements of a kind."""
    kind, first, second, value, n_nodes = inner.arrays()
    diode, value = kind == DIODE, value.copy()
    kind = np.where(kind == CAPACITOR, capacitors, np.where(diode, np.where(conducting, VOLTAGE, CURRENT), kind))
    value[(kind == VOLTAGE) | (kind == CURRENT)] = 0.0
    laws = {k: law._replace(constant=0.0) for k, law in inner.laws.items()}
    arrays = CircuitArrays(kind, first, second, value, n_nodes)
    return Linearized(circuit, expanded(circuit), arrays, laws, ())


__all__ = ["Linearized", "linearized", "of_elements"]
