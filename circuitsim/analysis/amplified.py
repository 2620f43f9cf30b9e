"""Circuits of elementary elements: those with bidirectional amplifiers are solved in scaled coordinates without them
and certified in volts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.convex import Prepared, prepared_convex
from circuitsim.analysis.operating_point import OperatingPoint, Values, changed_by
from circuitsim.certificate import Certificate, certify
from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.amplifiers import Image, without_amplifiers
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, VOLTAGE
from circuitsim.errors import ConvergenceError, NoSteadyStateError

if TYPE_CHECKING:
    from circuitsim.analysis.controlled import PreparedControlled


class PreparedAmplified(NamedTuple):
    """A circuit with amplifiers, ready for many solves; same interface as `Prepared`.

    Attributes
    ----------
    circuit : Circuit
    image : Image
        The circuit in coordinates in which amplifiers are wires.
    inner : Prepared
        The image's prepared circuit.
    """

    circuit: Circuit
    image: Image
    inner: Prepared

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other element values (Ω, V, A, gains); see `Prepared.solve`."""
        circuit, image = changed_by(self.circuit, values), self.image
        kind, _, _, value, _ = circuit.arrays()
        amplifier = kind == AMPLIFIER
        if (value != self.circuit.arrays().value)[amplifier].any():
            image = without_amplifiers(circuit)  # other gains change the scaling of every later source
        scaled = np.where((kind == VOLTAGE) | (kind == CURRENT), value / image.element, np.where(amplifier, 0.0, value))
        try:
            point = self.inner.solve(scaled, start)
        except NoSteadyStateError as error:
            if (image.node == 1.0).all():
                raise
            note = " (volts and amperes are divided by the gain of their section)"
            raise type(error)(f"{error}{note}", error.elements, error.nodes) from None
        return _physical(circuit, image, point, self.inner.tolerance)


def _physical(circuit: Circuit, image: Image, point: OperatingPoint, tolerance: float) -> OperatingPoint:
    """The operating point in volts and amperes, with a certificate of its own.

    Raises
    ------
    ConvergenceError
        The amplifiers' equations do not hold to the tolerance.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        voltages, currents = image.node * point.voltages, image.element * point.currents
        kind, first, second, _, _ = circuit.arrays()
        # An element lies within one section, whose gain scales its drop; amplifiers and capacitors may connect two.
        joins = (kind == AMPLIFIER) | (kind == CAPACITOR)
        drops = np.where(joins, voltages[first] - voltages[second], image.element * point.drops)
        certificate = certify_amplified(circuit.arrays(), voltages, currents, drops, tolerance)
    if not certificate.certified:
        raise ConvergenceError(
            f"the gains span more than double precision: relative residual {certificate.worst:.1e}; "
            "accept it with a larger --tolerance"
        )
    gain = {name: float(image.node[circuit.node_index(name)]) for name in point.intervals}

    def volts(name: str, end: float | None) -> float | None:
        return None if end is None else end * gain[name]

    intervals = {name: (volts(name, low), volts(name, high)) for name, (low, high) in point.intervals.items()}
    result = point.changed(
        circuit=circuit,
        voltages=voltages,
        currents=currents,
        intervals=intervals,
        certificate=certificate,
        warnings=(*circuit.notes, *point.warnings),
        drops=drops,
    )
    result.energy, result.transformed = point.energy, point
    return result


def certify_amplified(
    arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray, tolerance: float
) -> Certificate:
    """The certificate of a circuit with amplifiers, in volts and amperes.

    Each amplifier is replaced by sources of the values that its equations prescribe: a current source that draws i_L
    from its left terminal, and at its right terminal a voltage source of a v_L with a current source of a i_L. So
    "source" measures v_R = a v_L, "kcl" measures i_R = a i_L, independently of the coordinates of the solution.

    Parameters
    ----------
    arrays : CircuitArrays
        With amplifiers; no other zero ohms than the circuit's own.
    voltages : (n_nodes,) float array
        V.
    currents : (m,) float array
        A; an amplifier's is i_L, from its left terminal into it.
    drops : (m,) float array
        V; those of amplifiers are ignored.
    tolerance : float
    """
    kind, first, second, value, n_nodes = arrays
    amplifiers = np.flatnonzero(kind == AMPLIFIER)
    gain, left, right = value[amplifiers], first[amplifiers], second[amplifiers]
    drawn = currents[amplifiers]
    ground = np.full(amplifiers.size, GROUND)
    # For each amplifier a source that draws i_L; after all elements those that deliver a i_L at a v_L.
    kind, second, value = kind.copy(), second.copy(), value.copy()
    kind[amplifiers], second[amplifiers], value[amplifiers] = CURRENT, GROUND, drawn
    whole = CircuitArrays(
        np.append(kind, np.full(amplifiers.size, VOLTAGE, kind.dtype)),
        np.append(first, right),
        np.append(second, ground),
        np.append(value, gain * voltages[left]),
        n_nodes,
    )
    drops = np.append(drops, voltages[right])
    drops[amplifiers] = voltages[left]
    return certify(whole, whole.value, voltages, np.append(currents, -gain * drawn), drops, tolerance)


def prepared_elementary(
    circuit: Circuit, solver: str, tolerance: float
) -> Prepared | PreparedAmplified | PreparedControlled:
    """Analyse a circuit without devices."""
    if circuit.laws:
        from circuitsim.analysis.controlled import prepared_controlled

        return prepared_controlled(circuit, tolerance)
    if circuit.amplified:
        image = without_amplifiers(circuit)
        return PreparedAmplified(circuit, image, prepared_convex(image.circuit, solver, tolerance))
    return prepared_convex(circuit, solver, tolerance)
