"""The certificate of an operating point with controlled elements, from currents, drops and node voltages.

A controlled element is replaced by the source that its equation prescribes, and Kirchhoff's laws are checked as usual.
Its equation is checked relative to the largest of its terms: it is exact for gains that differ by the tolerance.

Kernels take the equations of all controlled elements as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from circuitsim.certificate import Certificate, certify
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.circuit.table import read_only
from circuitsim.kernels import kernel


class LawArrays(NamedTuple):
    """Equations of controlled elements, in the order of a mapping.

    Attributes
    ----------
    element : (l,) int array
        Positions in the circuit.
    current, nullor : (l,) bool arrays
        Equations of currents; equations of nullors. The others determine a voltage.
    constant : (l,) float array
        V or A.
    voltage_ends, current_ends : (l + 1,) int arrays
        Start of each equation's controls, and end of the last ones.
    voltage_share, current_share : float arrays
        Coefficients of the controls.
    plus, minus : int arrays
        Nodes of controlling voltages.
    control : int array
        Positions of the controlling elements.
    """

    element: np.ndarray
    current: np.ndarray
    nullor: np.ndarray
    constant: np.ndarray
    voltage_ends: np.ndarray
    voltage_share: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    current_ends: np.ndarray
    current_share: np.ndarray
    control: np.ndarray

    def owners(self) -> np.ndarray:
        """The equation of each controlling current."""
        return np.repeat(np.arange(self.element.size), np.diff(self.current_ends))

    def controls(self, value: np.ndarray, n_nodes: int) -> Any:
        """Sparse matrix (m, n_nodes + m) from node voltages and currents to the values of controlled elements, less
        constants, for the gains among the values (m,) of all elements."""
        from scipy.sparse import csr_array

        gain, by_current = value[self.element], self.owners()
        gain, by_voltage = (
            np.where(np.isnan(gain), 1.0, gain),
            np.repeat(np.arange(gain.size), np.diff(self.voltage_ends)),
        )
        share = gain[by_voltage] * self.voltage_share
        entries = np.concatenate([share, -share, gain[by_current] * self.current_share])
        rows = self.element[np.concatenate([by_voltage, by_voltage, by_current])]
        columns = np.concatenate([self.plus, self.minus, n_nodes + self.control])
        return csr_array((entries, (rows, columns)), (value.size, n_nodes + value.size))

    def of_currents(self) -> np.ndarray:
        """Which equations (l,) give voltages controlled by currents alone."""
        return ~self.current & ~self.nullor & (np.diff(self.voltage_ends) == 0)


def demanded_of_currents(laws: LawArrays, value: np.ndarray, currents: np.ndarray) -> np.ndarray:
    """The voltage, V, or current, A, (l,) that each equation prescribes for the currents (m,), constant included;
    ``value`` (m,) holds the gains."""
    of, gain = laws.owners(), value[laws.element]
    terms = np.where(np.isnan(gain), 1.0, gain)[of] * laws.current_share * currents[laws.control]
    return np.asarray(laws.constant + np.bincount(of, terms, laws.element.size))


def law_arrays(laws: Mapping[int, Law]) -> LawArrays:
    """The arrays of equations by position."""
    found = list(laws.values())
    by_voltage = [control for law in found for control in law.voltages]
    by_current = [control for law in found for control in law.currents]

    def whole(numbers: list[int]) -> np.ndarray:
        return np.array(numbers, dtype=np.int64)

    def ends(counts: list[int]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    return LawArrays(
        whole(list(laws)),
        np.array([law.quantity is Quantity.CURRENT for law in found], dtype=bool),
        np.array([law.quantity is Quantity.NEITHER for law in found], dtype=bool),
        np.array([law.constant for law in found], dtype=float),
        ends([len(law.voltages) for law in found]),
        np.array([c.coefficient for c in by_voltage], dtype=float),
        whole([c.plus for c in by_voltage]),
        whole([c.minus for c in by_voltage]),
        ends([len(law.currents) for law in found]),
        np.array([c.coefficient for c in by_current], dtype=float),
        whole([c.element for c in by_current]),
    )


def laws_held(laws, value, voltages, low, currents, drops, worst):
    """Fill in the largest residuals of the equations, and the largest relative to the largest of their terms.

    Parameters
    ----------
    laws : LawArrays
    value : (m,) float array
        Gains, among the values of all elements; nan: 1.
    voltages, low : (n_nodes,) float arrays
        Potentials, and their low-order parts, V.
    currents, drops : (m,) float arrays
        A, V.
    worst : (2, 2) float array
        Absolute (V, A) and relative residuals of voltage laws and nullors, and of current laws; zeros on entry.
    """
    for k in range(laws.element.size):
        at = laws.element[k]
        gain = value[at] if value[at] == value[at] else 1.0
        demanded = laws.constant[k]
        largest, reach = abs(demanded), 0.0
        for c in range(laws.voltage_ends[k], laws.voltage_ends[k + 1]):
            plus, minus = laws.plus[c], laws.minus[c]
            term = gain * laws.voltage_share[c] * ((voltages[plus] - voltages[minus]) + (low[plus] - low[minus]))
            demanded += term
            largest = max(largest, abs(term))
            reach = max(reach, abs(voltages[plus]), abs(voltages[minus]))
        for c in range(laws.current_ends[k], laws.current_ends[k + 1]):
            term = gain * laws.current_share[c] * currents[laws.control[c]]
            demanded += term
            largest = max(largest, abs(term))
        which = 1 if laws.current[k] else 0
        amount, scale = abs(demanded), reach
        if not laws.nullor[k]:
            own = currents[at] if laws.current[k] else drops[at]
            amount, scale = abs(own - demanded), max(abs(own), largest)
        if not amount < np.inf:
            amount = np.inf
        share = 0.0
        if amount > 0.0:
            share = amount / scale if scale > 0.0 and amount < np.inf else np.inf
        worst[which, 0] = max(worst[which, 0], amount)
        worst[which, 1] = max(worst[which, 1], share)


def certify_controlled(
    arrays: CircuitArrays,
    laws: LawArrays,
    voltages: np.ndarray,
    currents: np.ndarray,
    drops: np.ndarray,
    tolerance: float,
    low: np.ndarray,
) -> Certificate:
    """The certificate of one operating point; "source" includes controlled voltages, "kcl" controlled currents.

    Parameters
    ----------
    arrays : CircuitArrays
    laws : LawArrays
        Of the controlled elements.
    voltages, low : (n_nodes,) float arrays
        Potentials, and their low-order parts, V.
    currents, drops : (m,) float arrays
        A, V.
    tolerance : float
    """
    kind, value = arrays.kind.copy(), arrays.value.copy()
    worst = np.zeros((2, 2))
    kernel(laws_held, kind.size)(laws, read_only(arrays.value), voltages, low, currents, drops, worst)
    at = laws.element
    kind[at] = np.where(laws.current, CURRENT, VOLTAGE)
    # A nullor has any voltage; its equation is that its control vanishes.
    value[at] = np.where(laws.current, currents[at], drops[at])
    whole = CircuitArrays(kind, arrays.first, arrays.second, value, arrays.n_nodes)
    found = certify(whole, value, voltages, currents, drops, tolerance, low, lambda: (at[laws.owners()], laws.control))
    relative = dict(found.relative)
    relative["source"] = max(relative["source"], float(worst[0, 1]))
    relative["kcl"] = max(relative["kcl"], float(worst[1, 1]))
    return found._replace(
        relative=relative, source=max(found.source, float(worst[0, 0])), kcl=max(found.kcl, float(worst[1, 0]))
    )
