"""Adjoint of operating points: derivatives of linearised circuits by element values.

The equations are those of `circuitsim.controlled.equations`, with smooth devices linearised. The transposed equations
give the derivatives of one quantity by all values at once. Conducting diodes have a negligible resistance and blocking
ones a negligible conductance, which makes floating parts and loops of diodes nonsingular.
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
from circuitsim.controlled.equations import OPEN, equations, references, term_values
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.time_domain.beginning import Start

NOTHING = 1e-12
"""Resistance of conducting diodes relative to the smallest one and to the ratio of the largest voltage and current; the
conductance of blocking ones likewise."""
TOUCH = 1e-9
"""Relative voltage and current of a diode below which it keeps its previous state."""
ACCURATE = 1e-8
"""Largest relative residual of the transposed equations."""
KEPT = 8
"""Maximum number of factors kept."""


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
    """The linearised circuit.

    Parameters
    ----------
    circuit : Circuit
    series : int array
        Resistors that may be tiny: their currents are unknowns.

    Attributes
    ----------
    by_value : (m,) float array
        Accumulated derivatives by all elementary elements' values.
    """

    def __init__(self, circuit: Circuit, series: np.ndarray) -> None:
        self.own, expansion = circuit, expanded(circuit)
        self.circuit, self.parts = expansion.circuit, expansion.parts
        arrays = self.circuit.arrays()
        self.kind, self.first, self.second, self.value, self.nodes = arrays
        self.smooth = {k: d for k, d in circuit.devices.items() if isinstance(d, SmoothDevice)}
        value = self.value.copy()
        value[[self.parts[k][0] for k in self.smooth]] = 1.0  # conductances of companion models
        laws = self.circuit.laws
        self.equations = equations(arrays._replace(value=value), laws, references(arrays, laws), series)
        self.place = self.equations.own
        self.flowing = self.place >= 0
        resistor = self.kind == RESISTOR
        self.ohmic, self.stiff = resistor & ~self.flowing, resistor & self.flowing
        self.diode = self.kind == DIODE
        by_current = [k for k, law in laws.items() if law.quantity is Quantity.CURRENT]
        self._amperes = np.append(np.arange(self.nodes - 1), self.place[by_current])
        self.by_value = np.zeros(self.kind.size)
        self._by_row = {k: np.zeros(len(d.row())) for k, d in self.smooth.items()}
        self._kept: dict[bytes, _Factor] = {}

    # ------------------------------------------------------------------ equations
    def _factor(self, column: np.ndarray, conducting: np.ndarray, sizes: Sizes) -> _Factor:
        """The factor of the scaled equations."""
        key = column[self.kind == RESISTOR].tobytes() + conducting.tobytes() + repr(sizes).encode()
        if key not in self._kept:
            if len(self._kept) == KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._factored(column, conducting, sizes)
        return self._kept[key]

    def _factored(self, column: np.ndarray, conducting: np.ndarray, sizes: Sizes) -> _Factor:
        eq, on = self.equations, conducting[self.equations.diode]
        ohms, own, known = sizes.volts / sizes.amperes, eq.own[eq.diode], column[self.kind == RESISTOR]
        least, most = known[known > 0.0].min(initial=ohms), known[known < OPEN].max(initial=ohms)
        drop, flow = np.where(on, 1.0, -NOTHING / most), np.where(on, -NOTHING * least, 1.0)
        row, at = np.concatenate([eq.row, own, own, own]), np.concatenate([eq.column, eq.plus, eq.minus, own])
        entry = np.concatenate([term_values(column, eq.share, eq.gain, eq.under), drop, -drop, flow])
        # Rows are sums of currents; those of branches are voltages, or currents where these are prescribed.
        rows, unknowns = np.full(eq.size, 1.0 / sizes.volts), np.full(eq.size, sizes.amperes)
        unknowns[: self.nodes - 1] = sizes.volts
        rows[self._amperes] = rows[own[~on]] = 1.0 / sizes.amperes
        inside = at >= 0
        return _Factor((rows, unknowns), (row[inside], at[inside], entry[inside]))

    # ------------------------------------------------------------------ at a point
    def column_at(self, point: OperatingPoint, column: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Values of the elementary elements (m,), from those of the circuit's own (n,), with linearised smooth
        devices."""
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
        """Which elements (m,) are conducting diodes; ``before`` (m,) decides where a diode has zero voltage and
        current."""
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
            Whether to add the derivatives to the sums.

        Raises
        ------
        ConvergenceError
            The linearised circuit has no unique solution.
        """
        potentials, currents = weights[0].copy(), weights[1]
        share = np.where(self.ohmic, currents / np.where(self.ohmic, column, 1.0), 0.0)
        np.add.at(potentials, self.first, share)
        np.add.at(potentials, self.second, -share)
        right = np.zeros(self.equations.size)
        right[: self.nodes - 1] = potentials[1:]
        right[self.place[self.flowing]] = currents[self.flowing]
        dual = self._factor(column, conducting, sizes).transposed(right)
        inner = point.elementary or point
        current, level = inner.currents, np.append(0.0, dual[: self.nodes - 1])
        level[self.equations.pinned] = 0.0
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
        """Accumulate the derivatives by the parameters of smooth devices."""
        for k, device in self.smooth.items():
            row, u = device.row(), point.junctions[k]
            current, slope = type(device).junction(row, u)
            by_row = np.zeros(len(row))
            type(device).by_parameters(row, u, by_row)
            by_row[0] = -current * slope
            # The current source of the companion model is the last part.
            self._by_row[k] += by_value[self.parts[k][2]] / (1.0 + row[0] * slope) * by_row

    def of_device(self, k: int, parameter: str, name: str) -> float:
        """The accumulated derivative by a parameter of device ``k``.

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


class Rest:
    """The adjoint of the operating point at the start of a run.

    Parameters
    ----------
    start : Start
        With an operating point.
    by_level : (m,) float array
        Derivatives by capacitor voltages and inductor currents.
    before : (elements,) bool array, optional
        Which elements are conducting diodes, for diodes of zero voltage and current.

    Attributes
    ----------
    tangents : Tangents
    by_value : (elements,) float array
    by_held : dict of str to float
        Derivatives by values held by ``.ic``, by name in lower case.
    """

    def __init__(self, start: Start, by_level: np.ndarray, before: np.ndarray | None = None) -> None:
        point, m = start.point, by_level.size
        assert point is not None
        self.tangents = Tangents(point.circuit, np.zeros(0, dtype=np.int64))
        kind, first, second, column, _ = point.circuit.arrays()
        potentials, currents = np.zeros(self.tangents.nodes), np.zeros(self.tangents.kind.size)
        c, coils = (np.flatnonzero(kind[:m] == own) for own in (CAPACITOR, INDUCTOR))
        np.add.at(potentials, first[c], by_level[c])
        np.add.at(potentials, second[c], -by_level[c])
        currents[coils] = by_level[coils]
        sizes = Sizes(*(float(np.abs(own).max(initial=0.0)) or 1.0 for own in (point.drops, point.currents)))
        inner = self.tangents.column_at(point, column, sizes)
        conducting = np.zeros(inner.size, dtype=bool)
        if before is not None:
            conducting[: before.size] = before
        conducting = self.tangents.conducting(point, conducting, sizes)
        self.tangents.backward(point, inner, conducting, (potentials, currents), sizes)
        self.by_value, self.by_held, node = self.tangents.by_value, dict[str, float](), m
        for name in start.held:
            if name in point.circuit:
                k = point.circuit.element_index(name)
                self.by_held[name.lower()] = float(self.by_value[k] + by_level[k])
            else:
                self.by_held[name.lower()], node = float(self.by_value[node]), node + 1


def _row_of(device: object) -> tuple[float, ...]:
    assert isinstance(device, SmoothDevice)
    return device.row()


class _Factor:
    """Factors of scaled equations; `transposed` solves the transposed equations."""

    def __init__(
        self, scales: tuple[np.ndarray, np.ndarray], entries: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        self.rows, self.columns = scales
        row, column, number = entries
        scaled = number * self.rows[row] * self.columns[column]
        self.matrix = coo_array((scaled, (row, column)), shape=(self.rows.size,) * 2).tocsc()
        try:
            self.lu = splu(self.matrix)
        except RuntimeError:
            raise ConvergenceError("the tangents at some time have no unique solution") from None

    def transposed(self, right: np.ndarray) -> np.ndarray:
        """The solution of the transposed equations.

        Raises
        ------
        ConvergenceError
            It is not accurate.
        """
        scaled = right * self.columns
        found = self.lu.solve(scaled, trans="T")
        found = found + self.lu.solve(scaled - self.matrix.T @ found, trans="T")
        scale = float((np.abs(self.matrix).T @ np.abs(found) + np.abs(scaled)).max(initial=0.0))
        off = float(np.abs(scaled - self.matrix.T @ found).max(initial=0.0))
        if not off <= ACCURATE * scale:
            raise ConvergenceError("the tangents at some time have no unique solution")
        return np.asarray(found * self.rows)


__all__ = ["Backward", "Rest", "Sizes", "Tangents"]
