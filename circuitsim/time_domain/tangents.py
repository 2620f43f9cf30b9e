"""Derivatives of a circuit's solutions by its element values: its tangents, solved backwards.

Unknowns are all potentials and the currents of all elements but resistors and current sources; a smooth device is its
tangent. The transposed equations give the derivatives of one quantity by all values at once. Conducting diodes have a
resistance and blocking ones a conductance of no size: floating parts and loops of diodes keep one solution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import part_slopes, quotient
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.laws import Quantity
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.models.smooth import SmoothDevice

NOTHING = 1e-12
"""Resistance of conducting diodes and conductance of blocking ones, of the ratio of the largest voltage and current."""
TOUCH = 1e-9
"""Voltage or current of a diode, of the largest, below which it is in its state of before."""
ACCURATE = 1e-8
"""Largest relative residual of the transposed equations."""
DENSE = 200
"""Most unknowns of equations that are solved as a full matrix."""
KEPT = 8
"""Factors that are kept."""


class Sizes(NamedTuple):
    """Largest voltage and current, V, A."""

    volts: float
    amperes: float


class Backward(NamedTuple):
    """The transposed solution for one quantity.

    Attributes
    ----------
    by_value : (m,) float array
        Derivatives by the values of all elementary elements, Ω, V, A, gains.
    by_law : (m,) float array
        Of controlled voltage sources: derivatives by a constant voltage in series, V.
    """

    by_value: np.ndarray
    by_law: np.ndarray


class Tangents:
    """The tangents of a circuit with devices.

    Parameters
    ----------
    circuit : Circuit
    series : (k,) int array
        Resistors that may be tiny: their currents are unknowns.

    Attributes
    ----------
    by_value : (m,) float array
        Sum of the derivatives so far by all elementary elements' values.
    """

    def __init__(self, circuit: Circuit, series: np.ndarray) -> None:
        self.own, expansion = circuit, expanded(circuit)
        self.circuit, self.parts = expansion.circuit, expansion.parts
        self.kind, self.first, self.second, self.value, self.nodes = self.circuit.arrays()
        m = self.kind.size
        stiff = (self.kind == RESISTOR) & (self.value == 0.0)
        stiff[series] = True
        self.flowing = stiff | ((self.kind != RESISTOR) & (self.kind != CURRENT))
        self.place = np.full(m, -1)
        self.place[self.flowing] = self.nodes - 1 + np.arange(int(self.flowing.sum()))
        self.size = self.nodes - 1 + int(self.flowing.sum())
        self.ohmic = (self.kind == RESISTOR) & ~self.flowing
        self.stiff, self.diode = stiff, self.kind == DIODE
        self.smooth = {k: d for k, d in circuit.devices.items() if isinstance(d, SmoothDevice)}
        self.by_value = np.zeros(m)
        self._by_row = {k: np.zeros(len(d.row())) for k, d in self.smooth.items()}
        self._fixed = self._laws()
        self._kept: dict[bytes, _Factor] = {}

    # ------------------------------------------------------------------ equations
    def _laws(self) -> tuple[list[int], list[int], list[float]]:
        """Entries (row, column, value) of controlled sources that no state changes."""
        rows: list[int] = []
        columns: list[int] = []
        data: list[float] = []

        def put(row: int, column: int, number: float) -> None:
            if row >= 0 and column >= 0:
                rows.append(row)
                columns.append(column)
                data.append(number)

        for k, law in self.circuit.laws.items():
            row = int(self.place[k])
            if law.quantity is Quantity.VOLTAGE:
                put(row, int(self.first[k]) - 1, 1.0)
                put(row, int(self.second[k]) - 1, -1.0)
            elif law.quantity is Quantity.CURRENT:
                put(row, row, 1.0)
        return rows, columns, data

    def _controls(self, column: np.ndarray) -> tuple[list[int], list[int], list[float]]:
        """Entries of the controls, with gains and resistances of a column."""
        rows: list[int] = []
        columns: list[int] = []
        data: list[float] = []
        for k, law in self.circuit.laws.items():
            gain = 1.0 if np.isnan(column[k]) else float(column[k])
            terms: list[tuple[int, float]] = []
            for c, plus, minus in law.voltages:
                terms += [(plus - 1, c), (minus - 1, -c)]
            for c, e in law.currents:
                if self.place[e] >= 0:
                    terms.append((int(self.place[e]), c))
                elif self.kind[e] == RESISTOR:
                    share = c / float(column[e])
                    terms += [(int(self.first[e]) - 1, share), (int(self.second[e]) - 1, -share)]
            for at, c in terms:
                if at >= 0:
                    rows.append(int(self.place[k]))
                    columns.append(at)
                    data.append(-gain * c)
        return rows, columns, data

    def _factor(self, column: np.ndarray, conducting: np.ndarray, sizes: Sizes) -> _Factor:
        """The scaled equations' factor."""
        key = column[self.kind == RESISTOR].tobytes() + conducting.tobytes() + repr(sizes).encode()
        if key not in self._kept:
            if len(self._kept) == KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._factored(column, conducting, sizes)
        return self._kept[key]

    def _factored(self, column: np.ndarray, conducting: np.ndarray, sizes: Sizes) -> _Factor:
        ohms = sizes.volts / sizes.amperes
        kinds = (np.int64, np.int64, float)
        rows, columns, data = ([np.array(own, dtype=kind)] for own, kind in zip(self._fixed, kinds))

        def put(row: np.ndarray, at: np.ndarray, number: np.ndarray | float) -> None:
            rows.append(row)
            columns.append(at)
            data.append(np.broadcast_to(np.asarray(number, dtype=float), row.shape))

        for entries, into in zip(self._controls(column), (rows, columns, data)):
            into.append(np.array(entries, dtype=into[0].dtype))
        a, b, place = self.first - 1, self.second - 1, self.place
        r = np.flatnonzero(self.ohmic)
        share = 1.0 / column[r]
        for row, at, sign in ((a, a, 1.0), (a, b, -1.0), (b, b, 1.0), (b, a, -1.0)):
            put(row[r], at[r], sign * share)
        f = np.flatnonzero(self.flowing)
        put(a[f], place[f], 1.0)
        put(b[f], place[f], -1.0)
        # A voltage is stated: sources, coils at rest, conducting diodes, resistors in series.
        off = self.diode & ~conducting
        v = np.flatnonzero((self.kind == VOLTAGE) | (self.kind == INDUCTOR) | self.stiff | (self.diode & conducting))
        put(place[v], a[v], 1.0)
        put(place[v], b[v], -1.0)
        s = np.flatnonzero(self.stiff)
        put(place[s], place[s], -column[s])
        on = np.flatnonzero(self.diode & conducting)
        put(place[on], place[on], -NOTHING * ohms)
        # A current is stated: capacitors at rest, blocking diodes.
        i = np.flatnonzero((self.kind == CAPACITOR) | off)
        put(place[i], place[i], 1.0)
        blocked = np.flatnonzero(off)
        put(place[blocked], a[blocked], -NOTHING / ohms)
        put(place[blocked], b[blocked], NOTHING / ohms)
        row, at, number = (np.concatenate(own) for own in (rows, columns, data))
        inside = (row >= 0) & (at >= 0)
        return _Factor(self._scales(i, sizes), (row[inside], at[inside], number[inside]))

    def _scales(self, stated: np.ndarray, sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
        """Scales of rows and of unknowns; ``stated``: elements whose row states a current."""
        unknown = np.full(self.size, sizes.amperes)
        unknown[: self.nodes - 1] = sizes.volts
        row = np.full(self.size, 1.0 / sizes.volts)
        row[: self.nodes - 1] = 1.0 / sizes.amperes
        row[self.place[stated]] = 1.0 / sizes.amperes
        for k, law in self.circuit.laws.items():
            if law.quantity is Quantity.CURRENT:
                row[self.place[k]] = 1.0 / sizes.amperes
        return row, unknown

    # ------------------------------------------------------------------ at a point
    def column_at(self, point: OperatingPoint, column: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Values of the elementary elements (m,), from those of the circuit's own (n,): smooth devices are tangents."""
        found = self.value.copy()
        own = np.ones(column.size, dtype=bool)
        own[list(self.own.devices)] = False
        found[: column.size][own] = column[own]
        least = NOTHING * sizes.amperes / sizes.volts
        for k, device in self.smooth.items():
            row = device.row()
            slope = type(device).junction(row, point.junctions[k])[1]
            found[self.parts[k][0]] = row[0] + 1.0 / max(float(slope), least)
        return found

    def conducting(self, point: OperatingPoint, before: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Which elements (m,) are conducting diodes; ``before`` (m,) where a diode has neither voltage nor current."""
        inner = point.elementary or point
        forward = inner.drops / sizes.volts + inner.currents / sizes.amperes
        return np.asarray(self.diode & np.where(np.abs(forward) > TOUCH, forward > 0.0, before))

    def backward(
        self,
        point: OperatingPoint,
        column: np.ndarray,
        conducting: np.ndarray,
        weights: tuple[np.ndarray, np.ndarray],
        sizes: Sizes,
        count: bool = True,
    ) -> Backward:
        """Derivatives of a weighted sum of potentials (nodes,) and of currents of elementary elements (m,).

        Parameters
        ----------
        point : OperatingPoint
        column : (m,) float array
            As `column_at` gives it.
        conducting : (m,) bool array
        weights : tuple of (nodes,) and (m,) float arrays
        sizes : Sizes
        count : bool
            Whether the derivatives are added to the sums.

        Raises
        ------
        ConvergenceError
            The tangents have no unique solution.
        """
        potentials, currents = weights[0].copy(), weights[1]
        share = np.where(self.ohmic, currents / np.where(self.ohmic, column, 1.0), 0.0)
        np.add.at(potentials, self.first, share)
        np.add.at(potentials, self.second, -share)
        right = np.zeros(self.size)
        right[: self.nodes - 1] = potentials[1:]
        right[self.place[self.flowing]] = currents[self.flowing]
        dual = self._factor(column, conducting, sizes).transposed(right)
        inner = point.elementary or point
        current, level = inner.currents, np.concatenate([[0.0], dual[: self.nodes - 1]])
        drop = level[self.first] - level[self.second]
        own = np.where(self.flowing, dual[self.place], 0.0)
        ohms = np.where(self.ohmic, column, 1.0)
        by_value = np.where(self.ohmic, (drop - currents) * current / ohms, 0.0)
        by_value[self.stiff] = own[self.stiff] * current[self.stiff]
        by_value[self.kind == VOLTAGE] = own[self.kind == VOLTAGE]
        source = self.kind == CURRENT
        by_value[source] = currents[source] - drop[source]
        by_law = np.zeros(own.size)
        for k, law in self.circuit.laws.items():
            if law.quantity is Quantity.NEITHER:
                continue
            by_law[k], gain = own[k], 1.0 if np.isnan(column[k]) else float(column[k])
            control = sum(c * (inner.voltages[p] - inner.voltages[q]) for c, p, q in law.voltages)
            by_value[k] = own[k] * (control + sum(c * current[e] for c, e in law.currents))
            for c, e in law.currents:
                if source[e]:
                    by_value[e] += own[k] * gain * c
                elif self.ohmic[e]:
                    by_value[e] -= own[k] * gain * c * current[e] / column[e]
        if count:
            self.by_value += by_value
            self._count_devices(point, by_value)
        return Backward(by_value, by_law)

    def _count_devices(self, point: OperatingPoint, by_value: np.ndarray) -> None:
        """Count what the numbers of smooth devices contribute."""
        for k, device in self.smooth.items():
            row, u = device.row(), point.junctions[k]
            current, slope = type(device).junction(row, u)
            by_row = np.zeros(len(row))
            type(device).by_parameters(row, u, by_row)
            by_row[0] = -current * slope
            # The current beside the tangent is the last part.
            self._by_row[k] += by_value[self.parts[k][2]] / (1.0 + row[0] * slope) * by_row

    def of_device(self, k: int, parameter: str, name: str) -> float:
        """The derivative so far by a parameter of device ``k``.

        Raises
        ------
        UsageError
            It is not stated, or its change adds parts to the device.
        """
        device = self.own.devices[k]
        number = device.parameters().get(parameter)
        if number is not None and isinstance(device, SmoothDevice):
            slopes = quotient(device, parameter, number, _row_of, 1.0)
            if slopes is not None:
                changed = self._by_row[k] != 0.0
                return float(self._by_row[k][changed] @ np.array(slopes)[changed])
        elif number is not None:
            slopes = part_slopes(device, parameter, number, 1.0)
            if slopes is not None:
                return float(sum(slope * self.by_value[e] for slope, e in zip(slopes, self.parts[k]) if slope != 0.0))
        raise UsageError(f"{name} is not stated, or adds parts to its device: it has no gradient")


def _row_of(device: object) -> tuple[float, ...]:
    assert isinstance(device, SmoothDevice)
    return device.row()


class _Factor:
    """Factors of scaled equations; `transposed` solves them backwards."""

    def __init__(
        self, scales: tuple[np.ndarray, np.ndarray], entries: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        from scipy.linalg import lu_factor
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        self.rows, self.columns = scales
        row, column, number = entries
        scaled = number * self.rows[row] * self.columns[column]
        self.matrix = coo_array((scaled, (row, column)), shape=(self.rows.size,) * 2).tocsc()
        if self.rows.size <= DENSE:
            self.matrix = self.matrix.toarray()
            self.lu = lu_factor(self.matrix, check_finite=False)
            self.solve = self._dense
        else:
            try:
                self.lu = splu(self.matrix)
            except RuntimeError:
                raise ConvergenceError("the tangents at some time have no unique solution") from None
            self.solve = self._sparse

    def _dense(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg import lu_solve

        return np.asarray(lu_solve(self.lu, right, trans=1, check_finite=False))

    def _sparse(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.lu.solve(right, trans="T"))

    def transposed(self, right: np.ndarray) -> np.ndarray:
        """The solution of the transposed equations.

        Raises
        ------
        ConvergenceError
            It is not accurate.
        """
        scaled = right * self.columns
        found = self.solve(scaled)
        found = found + self.solve(scaled - self.matrix.T @ found)
        scale = float((np.abs(self.matrix).T @ np.abs(found) + np.abs(scaled)).max(initial=0.0))
        off = float(np.abs(scaled - self.matrix.T @ found).max(initial=0.0))
        if not off <= ACCURATE * scale:
            raise ConvergenceError("the tangents at some time have no unique solution")
        return np.asarray(found * self.rows)


__all__ = ["Backward", "Sizes", "Tangents"]
