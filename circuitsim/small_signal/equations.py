"""Modified nodal equations of small signals, (A₀ + s A₁) x = b: A₁ holds capacitances and inductances.

The unknowns are those of `circuitsim.controlled.equations`: node potentials, then currents of voltage sources,
inductors, controlled elements and small resistors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR
from circuitsim.controlled.equations import Equations, equations, references, right_side
from circuitsim.controlled.law_arrays import law_arrays
from circuitsim.small_signal.linearized import Linearized

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix


class SmallSignalEquations(NamedTuple):
    """The equations of a linearized circuit.

    Attributes
    ----------
    linear : Linearized
    unknowns : Equations
    constant, storage : csc_matrix (size, size)
        A₀ and A₁.
    memory : (size, k) csc_matrix
        Incidence P of the elements that store energy: A₁ = P diag(storages) Pᵀ.
    storages : (k,) float array
        C of capacitors, −L of inductors, F and H.
    elements : (k,) int array
        Their places.
    """

    linear: Linearized
    unknowns: Equations
    constant: csc_matrix
    storage: csc_matrix
    memory: csc_matrix
    storages: np.ndarray
    elements: np.ndarray

    def right_side(self, amplitudes: np.ndarray) -> np.ndarray:
        """b for complex amplitudes (m,) of the sources, V or A; zero for all other elements."""
        arrays, laws, eq = self.linear.arrays, law_arrays(self.linear.laws), self.unknowns
        own = _direct_current(arrays)
        sources = amplitudes != 0.0
        real, imaginary = (own.value.copy() for _ in range(2))
        real[sources], imaginary[sources] = amplitudes[sources].real, amplitudes[sources].imag
        parts = [right_side(own._replace(value=value), laws, eq) for value in (real, imaginary)]
        return np.asarray(parts[0] + 1j * parts[1])

    def currents(self, x: np.ndarray, s: complex, amplitudes: np.ndarray) -> np.ndarray:
        """Branch currents (m,) of the elementary elements, A."""
        kind, first, second, value, n = self.linear.arrays
        v = np.concatenate([[0.0], x[: n - 1]])
        drop = v[first] - v[second]
        found = np.where(kind == CURRENT, amplitudes, 0.0).astype(complex)
        ohmic = (kind == RESISTOR) & (self.unknowns.own < 0)
        found[ohmic] = drop[ohmic] / value[ohmic]
        place = kind == CAPACITOR
        found[place] = s * value[place] * drop[place]
        held = self.unknowns.own >= 0
        found[held] = x[self.unknowns.own[held]]
        return found


def small_signal_equations(linear: Linearized) -> SmallSignalEquations:
    """The matrices of a linearized circuit."""
    from scipy.sparse import csc_matrix, diags

    arrays = linear.arrays
    tied = arrays.kind.copy()
    tied[tied == CAPACITOR] = RESISTOR  # a capacitor ties its nodes together at every frequency
    eq = equations(_direct_current(arrays), linear.laws, references(arrays._replace(kind=tied), linear.laws))
    size = eq.size
    elements = np.flatnonzero((arrays.kind == CAPACITOR) | (arrays.kind == INDUCTOR))
    coil = arrays.kind[elements] == INDUCTOR
    storages = np.where(coil, -arrays.value[elements], arrays.value[elements])
    plates = elements[~coil]
    rows = np.concatenate([arrays.first[plates] - 1, arrays.second[plates] - 1, eq.own[elements[coil]]])
    where = np.flatnonzero(~coil)
    columns = np.concatenate([where, where, np.flatnonzero(coil)])
    signs = np.repeat([1.0, -1.0, 1.0], [where.size, where.size, int(coil.sum())])
    inside = (rows > GROUND - 1) & ~np.isin(rows, eq.pinned - 1)
    memory = csc_matrix((signs[inside], (rows[inside], columns[inside])), shape=(size, elements.size))
    constant = csc_matrix((eq.value, (eq.row, eq.column)), shape=(size, size))
    storage = (memory @ diags(storages) @ memory.T).tocsc()
    return SmallSignalEquations(linear, eq, constant, storage, memory, storages, elements)


def _direct_current(arrays: CircuitArrays) -> CircuitArrays:
    """The elements with capacitors as current sources of 0 A."""
    kind, value = arrays.kind.copy(), arrays.value.copy()
    place = kind == CAPACITOR
    kind[place], value[place] = CURRENT, 0.0
    return arrays._replace(kind=kind, value=value)
