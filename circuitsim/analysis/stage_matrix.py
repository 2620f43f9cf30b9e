"""Linearised circuits as arguments of a kernel: indices, and matrices rebuilt for each step length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.newton import Smooth
from circuitsim.analysis.smooth_small import tangent_places
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.controlled.certificate import LawArrays
from circuitsim.controlled.equations import term_values
from circuitsim.controlled.linear import Terms, scaled
from circuitsim.engine.small.pointers import Pinned

KEPT = 64
"""Maximum number of matrices kept, one for each set of conducting diodes and of fixed values."""


class StageMatrix(NamedTuple):
    """The circuit of a stage for `circuitsim.analysis.tangent_newton`: positions of elements and unknowns (−1:
    ground's, or none), the right-hand side (`circuitsim.controlled.equations.RightSide`), the terms of the matrix
    (`circuitsim.controlled.linear.Terms`) and, filled in for the values of a stage (`Made.fill`), their values, the
    scaled matrix for tangents of 1 Ω and its scales."""

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
    constant: np.ndarray
    fed: np.ndarray
    source: np.ndarray
    fed_share: np.ndarray
    fed_gain: np.ndarray
    first: np.ndarray
    second: np.ndarray
    unknown: np.ndarray
    nodal: np.ndarray
    given: np.ndarray
    held: np.ndarray
    ohmic: np.ndarray
    transfer: np.ndarray
    diode: np.ndarray
    conducting: np.ndarray
    place: np.ndarray
    column: np.ndarray
    ends: np.ndarray
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

    def __init__(self, system: ControlledSystem, terms: Terms, matrix: StageMatrix) -> None:
        self.system, self.pinned, self.length, self._terms, self._matrix = system, Pinned(matrix), 0.0, terms, matrix
        self.conducting = matrix.conducting

    def fill(self, column: np.ndarray, length: float) -> None:
        """Fill in the matrix for the values (m,) of a stage, in a step of another length."""
        if length == self.length:
            return
        made, value, (_, _, _, _, *structure), self.length = self._matrix, column.copy(), self._terms, length
        value[made.slope] = 1.0
        made.value[:] = term_values(value, *structure)
        made.matrix[:], made.left[:], made.right[:] = scaled(self._terms._replace(value=made.value).dense())


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
        sources = system.sources
        own_sources = ~np.isin(sources.source, [*smooth.touch, *smooth.rest])
        places, role = tangent_places(smooth, value.size)
        return Made(
            system,
            terms,
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
                        sources.constant,
                        *(part[own_sources] for part in sources[1:]),
                        arrays.first,
                        arrays.second,
                        eq.own,
                        roles.nodal,
                        roles.given,
                        roles.held,
                        roles.ohmic,
                        roles.transfer,
                        eq.diode,
                        conducting,
                        np.array(place, dtype=np.int64),
                        terms.column,
                        terms.ends,
                        terms.value,
                        np.zeros((size, size)),
                        np.ones(size),
                        np.ones(size),
                    ),
                )
            ),
        )


__all__ = ["Made", "StageMatrices", "StageMatrix"]
