"""Linearised circuits as arguments of a kernel: indices, and matrices rebuilt for each step length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.newton import Smooth
from circuitsim.analysis.smooth_small import tangent_places
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.controlled.law_arrays import LawArrays
from circuitsim.engine.small.pointers import Pinned

KEPT = 64
"""Maximum number of matrices kept, one for each set of conducting diodes and of fixed values."""


class StageMatrix(NamedTuple):
    """The circuit of a stage for `circuitsim.analysis.tangent_newton`: positions of elements and unknowns (−1:
    ground's, or none), the terms of the matrix (`circuitsim.controlled.equations.Equations`) and, filled in by
    `circuitsim.analysis.stage_equations.put_matrix`, their values, the scaled matrix for tangents of 1 Ω and its
    scales."""

    kind: np.ndarray
    places: np.ndarray
    slope: np.ndarray
    touch: np.ndarray
    rest: np.ndarray
    rows: np.ndarray
    own: np.ndarray
    own_touch: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    role: np.ndarray
    pinned: np.ndarray
    first: np.ndarray
    second: np.ndarray
    unknown: np.ndarray
    nodal: np.ndarray
    given: np.ndarray
    held: np.ndarray
    ohmic: np.ndarray
    transfer: np.ndarray
    diode: np.ndarray
    diode_plus: np.ndarray
    diode_minus: np.ndarray
    own_diode: np.ndarray
    conducting: np.ndarray
    place: np.ndarray
    row: np.ndarray
    column: np.ndarray
    ends: np.ndarray
    share: np.ndarray
    gain: np.ndarray
    under: np.ndarray
    value: np.ndarray
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
        self.system, self.pinned, self.length = system, Pinned(matrix), 0.0
        self.conducting = matrix.conducting


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
        system = ControlledSystem(self.circuit, arrays, self.laws, None, self._varying)
        eq, roles, size = system.eq, system.roles, system.eq.size
        terms, own = system.tied_terms(conducting), eq.own[smooth.slope]
        place = [np.flatnonzero((terms.row == k) & (terms.column == k))[0] for k in own.tolist()]
        gain = np.where((terms.gain >= 0) & np.isnan(value[terms.gain]), -1, terms.gain)
        places, role = tangent_places(smooth, value.size)
        return Made(
            system,
            StageMatrix(
                *map(
                    np.array,
                    (
                        arrays.kind,
                        places,
                        smooth.slope,
                        smooth.touch,
                        smooth.rest,
                        smooth.rows,
                        own,
                        eq.own[smooth.touch],
                        arrays.first[smooth.rest] - 1,
                        arrays.second[smooth.rest] - 1,
                        role,
                        eq.pinned - 1,
                        arrays.first,
                        arrays.second,
                        eq.own,
                        roles.nodal,
                        roles.given,
                        roles.held,
                        roles.ohmic,
                        roles.transfer,
                        eq.diode,
                        eq.plus,
                        eq.minus,
                        eq.own[eq.diode],
                        conducting,
                        np.array(place, dtype=np.int64),
                        terms.row,
                        terms.column,
                        terms.ends,
                        terms.share,
                        gain,
                        terms.under,
                        terms.value,
                        np.zeros((size, size)),
                        np.ones(size),
                        np.ones(size),
                    ),
                )
            ),
        )


__all__ = ["Made", "StageMatrices", "StageMatrix"]
