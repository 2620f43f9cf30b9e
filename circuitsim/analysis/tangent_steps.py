"""Steps of Newton's method for stages that follow each other, beside controlled sources: small dense systems.

Steps differ in the tangents of the smooth devices alone: in one entry of the matrix for each, and in sources. So the
currents of the tangents and of what is beside them are unknowns of their own, and the other entries are made once for
each set of other values. Only the end of the steps is held against the laws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled_point import branches, point_of
from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.newton import Smooth, Solved
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.tangent_newton import FIXED
from circuitsim.certificate import Certificate
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.controlled.blocks import port_values
from circuitsim.controlled.law_arrays import LawArrays
from circuitsim.controlled.linear import DENSE, Factor, Scaled, Terms
from circuitsim.errors import ConvergenceError

CHANGES = 8
"""Most changes of the diodes' states in a step."""

COLUMNS = 256
"""Right-hand sides that are solved at a time."""


class Stepped(NamedTuple):
    """What a step has found.

    Attributes
    ----------
    voltages, low : (n_nodes,) float arrays
        V.
    currents, drops : (m,) float arrays
        A, V.
    """

    voltages: np.ndarray
    low: np.ndarray
    currents: np.ndarray
    drops: np.ndarray


class _Matrix(NamedTuple):
    """The matrix for tangents of 1 Ω: its terms, where these resistances are among them, and their sums, scaled."""

    terms: Terms
    place: np.ndarray
    scaled: Scaled


class TangentSteps:
    """Steps for the circuit of elementary elements.

    Parameters
    ----------
    circuit : Circuit
    laws : LawArrays
        Of its controlled elements.
    smooth : Smooth
        The places of the tangents.
    """

    def __init__(self, circuit: Circuit, laws: LawArrays, smooth: Smooth) -> None:
        self.circuit, self.laws, self.smooth = circuit, laws, smooth
        arrays = circuit.arrays()
        self._source = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
        self._ends = arrays.first[smooth.rest] - 1, arrays.second[smooth.rest] - 1  # unknowns; −1 is ground
        self._key = b""
        self._system: ControlledSystem | None = None
        self._matrices: dict[bytes, _Matrix] = {}
        self._right = np.zeros(0)
        self._factor: Factor | None = None

    def begin(self, column: np.ndarray) -> bool:
        """Take the values (m,) of a stage; whether its equations are few enough."""
        arrays, smooth = self.circuit.arrays(), self.smooth
        value = column.copy()
        value[smooth.touch], value[smooth.rest], value[smooth.slope] = 0.0, 0.0, 1.0
        arrays = arrays._replace(value=value)
        key = np.where(self._source, 0.0, value).tobytes()
        if key != self._key or self._system is None:
            self._key, self._matrices = key, {}
            self._system = ControlledSystem(self.circuit, arrays, self.laws, self._system, smooth.slope)
        self._right = np.append(self._system.sources.of(value), 0.0)  # the last entry is ground's
        return self._system.eq.size <= DENSE

    def solve(self, column: np.ndarray, before: Solved | None, noise: float = 0.0) -> Stepped:
        """The circuit of tangents with the values (m,), beside a solution; below the share ``noise`` of the largest,
        voltages and currents are zero.

        Raises
        ------
        ConvergenceError
            The states of its diodes were not found, or the matrix is singular.
        """
        system, smooth = self._system, self.smooth
        assert system is not None
        eq, right = system.eq, self._right.copy()
        right[eq.own[smooth.touch]] = column[smooth.touch]
        for end, sign in zip(self._ends, (-1.0, 1.0)):
            np.add.at(right, end, sign * column[smooth.rest])
        right = right[:-1]
        right[eq.pinned - 1] = 0.0
        diode = eq.diode
        conducting = np.zeros(diode.size, dtype=bool) if before is None else before.currents[diode] > 0.0
        for _ in range(CHANGES):
            try:
                self._factor = self._factored(conducting, column[smooth.slope])
                x = self._factor.solve(right)
            except ArithmeticError:
                break
            if diode.size:
                v, i = port_values(eq, np.arange(diode.size), x.high)
                wrong = np.where(conducting, i < 0.0, v > 0.0)
                if wrong.any():
                    conducting = conducting ^ wrong
                    continue
            return Stepped(*branches(system, column, x, conducting, noise))
        raise ConvergenceError("no operating point was found beside the start")

    def _matrix(self, conducting: np.ndarray) -> _Matrix:
        """The matrix for conducting diodes (d,) and tangents of 1 Ω."""
        assert self._system is not None
        key = conducting.tobytes()
        made = self._matrices.get(key)
        if made is None:
            terms, own = self._system.tied_terms(conducting), self._system.eq.own[self.smooth.slope]
            place = np.array([np.flatnonzero((terms.row == k) & (terms.column == k))[0] for k in own.tolist()])
            made = self._matrices[key] = _Matrix(terms, place, Scaled.of(terms.dense()))
        return made

    def _factored(self, conducting: np.ndarray, ohms: np.ndarray) -> Factor:
        """Factors of the matrix for conducting diodes (d,) and resistances of the tangents (s,), Ω."""
        assert self._system is not None
        made, own = self._matrix(conducting), self._system.eq.own[self.smooth.slope]
        value, (matrix, left, right) = made.terms.value.copy(), made.scaled
        value[made.place] = -ohms
        # A larger resistance makes its current smaller.
        less = np.exp2(-np.round(np.log2(np.maximum(ohms, 1.0))))
        matrix, right = matrix.copy(), right.copy()
        matrix[:, own] *= less
        right[own] *= less
        matrix[own, own] = -ohms * left[own] * right[own]
        return Factor(made.terms._replace(value=value), True, Scaled(matrix, left, right))

    def resistances(self, column: np.ndarray, point: Solved, conductance: np.ndarray) -> np.ndarray:
        """Of the rest of the circuit as each device sees it, Ω (s,); see `circuitsim.analysis.newton.Seen`."""
        assert self._system is not None and self._factor is not None
        return seen_resistances(self._factor, self._ends, self._system.eq.pinned, conductance)

    def point(self, found: Stepped, column: np.ndarray, certificate: Certificate) -> OperatingPoint:
        """The operating point of the elementary elements with values (m,), from the last step."""
        assert self._system is not None
        return point_of(self._system, self.circuit.with_column(column), found, certificate)


def seen_resistances(
    factor: Factor, ends: tuple[np.ndarray, np.ndarray], pinned: np.ndarray, conductance: np.ndarray
) -> np.ndarray:
    """What the rest of a circuit has between the ``ends`` (s,) of tangents of these conductances, S; Ω (s,)."""
    (first, second), size = ends, factor.terms.ends.size - 1
    total = np.empty(first.size)
    for begin in range(0, first.size, COLUMNS):
        part = np.arange(begin, min(begin + COLUMNS, first.size))
        a, b, at = first[part], second[part], np.arange(part.size)
        injected = np.zeros((size + 1, part.size))  # the last row is ground's
        injected[a, at] += 1.0
        injected[b, at] -= 1.0
        injected[pinned - 1] = 0.0
        answer = np.vstack([factor.rough(injected[:-1]), np.zeros((1, part.size))])
        total[part] = answer[a, at] - answer[b, at]
    rest = 1.0 / total - conductance
    seen = 1.0 / np.maximum(rest, FIXED * conductance)
    return np.where((rest > -FIXED * conductance) & np.isfinite(seen), seen, 1.0 / conductance)


__all__ = ["TangentSteps", "seen_resistances"]
