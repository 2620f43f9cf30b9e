"""Modified nodal equations of small signals, (A₀ + s A₁) x = b: A₁ holds capacitances and inductances.

The unknowns are those of `circuitsim.controlled.equations`: node potentials, then currents of voltage sources,
inductors, controlled elements and small resistors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, CircuitArrays
from circuitsim.circuit.couplings import Windings, windings_of
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
        Incidence P of the elements that store energy: A₁ = P diag(storages) Pᵀ. Of coupled inductors with the
        inductances M = Uᵀ D U the columns are the rows of U, on the equations of their currents.
    storages : (k,) float array
        C of capacitors, −L of inductors, −D of coupled ones, F and H.
    elements : (k,) int array
        Their places.
    ideal : bool
        Whether some coupled inductors store no energy of their own.
    couplings : mapping of (str, str) to float
        Coupling factors of pairs of inductors.
    windings : Windings or None
        Where some couplings are ideal, or factors were asked for: A₁ is P diag(storages) Pᵀ to the last digit.
    """

    linear: Linearized
    unknowns: Equations
    constant: csc_matrix
    storage: csc_matrix
    memory: csc_matrix
    storages: np.ndarray
    elements: np.ndarray
    ideal: bool
    couplings: Mapping[tuple[str, str], float]
    windings: Windings | None

    def right_side(self, amplitudes: np.ndarray) -> np.ndarray:
        """b for complex amplitudes (m,) of the sources, V or A; zero for all other elements."""
        arrays, laws, eq = self.linear.arrays, law_arrays(self.linear.laws), self.unknowns
        own = _direct_current(arrays)
        sources = amplitudes != 0.0
        real, imaginary = (own.value.copy() for _ in range(2))
        real[sources], imaginary[sources] = amplitudes[sources].real, amplitudes[sources].imag
        parts = [right_side(own._replace(value=value), laws, eq) for value in (real, imaginary)]
        return np.asarray(parts[0] + 1j * parts[1])

    def admittances(self, s: complex) -> np.ndarray:
        """Of resistors and capacitors (m,), S; 0 of elements whose currents are unknowns, and of current sources."""
        kind, _, _, value, _ = self.linear.arrays
        found = np.where(kind == CAPACITOR, s * value, 0.0)
        ohmic = (kind == RESISTOR) & (self.unknowns.own < 0)
        found[ohmic] = 1.0 / value[ohmic]
        return found


def small_signal_equations(
    linear: Linearized, couplings: Mapping[tuple[str, str], float], factored: bool = False
) -> SmallSignalEquations:
    """The matrices of a linearized circuit with couplings of inductors, ``factored`` as `Windings` wherever there are.

    Raises
    ------
    UsageError
        Couplings of other elements, out of range, or that store negative energy.
    """
    from scipy.sparse import csc_matrix, diags

    arrays, windings = linear.arrays, windings_of(linear.expansion.circuit, couplings)
    tied = arrays.kind.copy()
    tied[tied == CAPACITOR] = RESISTOR  # a capacitor ties its nodes together at every frequency
    eq = equations(_direct_current(arrays), linear.laws, references(arrays._replace(kind=tied), linear.laws))
    elements = np.flatnonzero((arrays.kind == CAPACITOR) | (arrays.kind == INDUCTOR))
    coil = arrays.kind[elements] == INDUCTOR
    storages = np.where(coil, -arrays.value[elements], arrays.value[elements])
    plates, where, coils = elements[~coil], np.flatnonzero(~coil), np.flatnonzero(coil)
    rows = [arrays.first[plates] - 1, arrays.second[plates] - 1, eq.own[elements[coil]]]
    columns, entries = [where, where, coils], [np.ones(where.size), -np.ones(where.size), np.ones(coils.size)]
    if windings is not None:
        place = np.searchsorted(elements, windings.coils)
        storages[place] = -windings.inductance
        core, other = np.nonzero(np.triu(windings.turns, 1))
        rows.append(eq.own[windings.coils[other]])
        columns.append(place[core])
        entries.append(windings.turns[core, other])
    row, column, entry = (np.concatenate(parts) for parts in (rows, columns, entries))
    inside = (row > GROUND - 1) & ~np.isin(row, eq.pinned - 1)
    memory = csc_matrix((entry[inside], (row[inside], column[inside])), shape=(eq.size, elements.size))
    constant = csc_matrix((eq.value, (eq.row, eq.column)), shape=(eq.size, eq.size))
    storage = (memory @ diags(storages) @ memory.T).tocsc()
    ideal = windings is not None and windings.independent < windings.coils.size
    return SmallSignalEquations(
        linear,
        eq,
        constant,
        storage,
        memory,
        storages,
        elements,
        ideal,
        couplings,
        windings if ideal or factored else None,
    )


def _direct_current(arrays: CircuitArrays) -> CircuitArrays:
    """The elements with capacitors as current sources of 0 A."""
    kind, value = arrays.kind.copy(), arrays.value.copy()
    place = kind == CAPACITOR
    kind[place], value[place] = CURRENT, 0.0
    return arrays._replace(kind=kind, value=value)
