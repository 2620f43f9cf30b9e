"""The equations of all controlled elements as arrays, for kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from circuitsim.circuit.laws import Law, Quantity


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


def demanded_of_currents(laws: LawArrays, owners: np.ndarray, value: np.ndarray, currents: np.ndarray) -> np.ndarray:
    """The voltage, V, or current, A, (l,) that each equation prescribes for the currents (m,), constant included;
    ``value`` (m,) holds the gains, ``owners`` are those of the equations."""
    of, gain = owners, value[laws.element]
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


__all__ = ["LawArrays", "demanded_of_currents", "law_arrays"]
