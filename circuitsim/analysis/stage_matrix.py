"""Linearised circuits as arguments of a kernel: indices, and matrices rebuilt for each step length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled_system import ControlledSystem, Roles
from circuitsim.analysis.newton import Smooth
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.controlled.certificate import LawArrays
from circuitsim.controlled.equations import Equations, RightSide, term_values
from circuitsim.controlled.linear import Terms, scaled
from circuitsim.engine.small.pointers import Pinned

KEPT = 64
"""Maximum number of matrices kept, one for each set of conducting diodes and of fixed values."""


class StageMatrix(NamedTuple):
    """The circuit of a stage for `circuitsim.analysis.tangent_newton`.

    Attributes
    ----------
    arrays : CircuitArrays
    places, role, rows
        Of the smooth devices: see `circuitsim.newton.steps`.
    eq : Equations
    roles : Roles
    sources : RightSide
        Without the companion models.
    conducting : (d,) bool array
        Ideal diodes.
    place : (s,) int array
        The term of each tangent's resistance.
    terms : Terms
        Their values are filled in for those of a stage (`Made.fill`), as are the following.
    matrix : (size, size) float array
        Scaled, for tangents of 1 Ω.
    left, right : (size,) float arrays
        The scales.
    """

    arrays: CircuitArrays
    places: np.ndarray
    role: np.ndarray
    rows: np.ndarray
    eq: Equations
    roles: Roles
    sources: RightSide
    conducting: np.ndarray
    place: np.ndarray
    terms: Terms
    matrix: np.ndarray
    left: np.ndarray
    right: np.ndarray


class Made:
    """A matrix with the data it was made for.

    Attributes
    ----------
    system : ControlledSystem
    pinned : Pinned
        `StageMatrix`.
    conducting : (d,) bool array
        Ideal diodes.
    length : float
        Length of its step, s.
    """

    def __init__(self, system: ControlledSystem, matrix: StageMatrix) -> None:
        self.system, self.pinned, self.length, self._matrix = system, Pinned(matrix), 0.0, matrix
        self.conducting = matrix.conducting

    def fill(self, column: np.ndarray, length: float) -> None:
        """Fill in the matrix for the values (m,) of a stage, in a step of another length."""
        if length == self.length:
            return
        made, value, self.length = self._matrix, column.copy(), length
        value[made.places[0]] = 1.0
        made.terms.value[:] = term_values(value, *made.terms[4:])
        made.matrix[:], made.left[:], made.right[:] = scaled(made.terms.dense())


class StageMatrices:
    """The matrices of a circuit of elementary elements.

    Parameters
    ----------
    circuit : Circuit
    laws : LawArrays
        Of its controlled elements.
    smooth : Smooth
        The positions of the companion models.
    varying : (k,) int array
        Resistors, except those of tangents, whose values vary from step to step.
    gains : (l,) int array
        Controlled elements that do.
    """

    def __init__(
        self, circuit: Circuit, laws: LawArrays, smooth: Smooth, varying: np.ndarray, gains: np.ndarray
    ) -> None:
        self.circuit, self.laws, self.smooth = circuit, laws, smooth
        kind = circuit.arrays().kind
        self.diode = np.flatnonzero(kind == DIODE)
        self._varying = np.concatenate([smooth.slope, varying])
        self._free = (kind == VOLTAGE) | (kind == CURRENT)
        self._free[self._varying] = self._free[gains] = True
        self._known: dict[tuple[bytes, bytes], Made] = {}

    def size(self, column: np.ndarray, conducting: np.ndarray) -> int:
        """The number of unknowns of this matrix."""
        return self.of(column, conducting).system.eq.size

    def of(self, column: np.ndarray, conducting: np.ndarray) -> Made:
        """The matrix for the values (m,) of a stage and conducting diodes (d,)."""
        key = np.where(self._free, 0.0, column).tobytes(), conducting.tobytes()
        if key not in self._known:
            if len(self._known) >= KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._made(column, conducting)
        return self._known[key]

    def _made(self, column: np.ndarray, conducting: np.ndarray) -> Made:
        smooth, value = self.smooth, column.copy()
        value[smooth.touch], value[smooth.rest], value[smooth.slope] = 0.0, 0.0, 1.0
        arrays = self.circuit.arrays()._replace(value=value)
        system = ControlledSystem(self.circuit, arrays, self.laws, self._varying)
        terms, own, sources = system.tied_terms(conducting), system.eq.own[smooth.slope], system.sources
        place = [np.flatnonzero((terms.row == k) & (terms.column == k))[0] for k in own.tolist()]
        others = ~np.isin(sources.source, [*smooth.touch, *smooth.rest])
        size = system.eq.size
        matrix = StageMatrix(
            arrays,
            *smooth.places(value.size),
            smooth.rows.copy(),
            system.eq,
            system.roles,
            RightSide(sources.constant, *(part[others] for part in sources[1:])),
            conducting,
            np.array(place, dtype=np.int64),
            terms,
            np.zeros((size, size)),
            *np.ones((2, size)),
        )
        return Made(system, matrix)
