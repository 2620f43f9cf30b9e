"""Linearised circuits: changes of operating points with the values of their elements.

The equations are those of `circuitsim.controlled.equations`, with smooth devices linearised; all columns of changes are
solved with the same factors. What the diodes leave indeterminate is resolved as in operating points
(`circuitsim.controlled.equations.Ties`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled import ControlledSystem
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import of_parts
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, DIODE
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.laws import Quantity
from circuitsim.controlled.certificate import law_arrays
from circuitsim.controlled.equations import term_values
from circuitsim.controlled.linear import Factor
from circuitsim.errors import ConvergenceError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.time_domain.beginning import Start

Rows = Mapping[int, Sequence[float]]
"""Rows of smooth devices, by element."""
FLAT = 1e-12
"""Smallest conductance of a linearised device, relative to the ratio of the largest current and voltage."""
TOUCH = 1e-9
"""Relative voltage and current of a diode below which it keeps its previous state."""
ACCURATE = 1e-8
"""Largest relative residual of the equations."""
KEPT = 8
"""Maximum number of factors kept."""


class Sizes(NamedTuple):
    """Largest voltage and current, V, A."""

    volts: float
    amperes: float


class Changes(NamedTuple):
    """Changes of a circuit in p directions.

    Attributes
    ----------
    value : (n, p) float array
        Of its own elements' values, Ω, V, A, gains.
    devices : sequence of (int, int, (parts or parameters,) float array)
        Direction, device, and the change of the values of its parts; of a smooth device of its row of parameters.
    """

    value: np.ndarray
    devices: Sequence[tuple[int, int, np.ndarray]] = ()

    def of_row(self, k: int, row: Sequence[float]) -> np.ndarray:
        """Changes of the row of a smooth device (entries, p)."""
        found = np.zeros((len(row), self.value.shape[1]))
        for j, own, slopes in self.devices:
            if own == k:
                found[:, j] = slopes
        return found


class Change(NamedTuple):
    """Change of an operating point in p directions: of potentials (nodes, p), and of voltages and currents (m, p) of
    the elementary elements."""

    potentials: np.ndarray
    drops: np.ndarray
    currents: np.ndarray


class Tangents:
    """The linearised circuit.

    Parameters
    ----------
    circuit : Circuit
    series : int array
        Resistors that may be tiny: their currents are unknowns.
    """

    def __init__(self, circuit: Circuit, series: np.ndarray) -> None:
        from scipy.sparse import csr_array

        self.own, self.expansion = circuit, expanded(circuit)
        self.circuit, self.parts = self.expansion[:2]
        arrays = self.circuit.arrays()
        self.kind, first, second, self.value, self.nodes = arrays
        m = self.kind.size
        self.smooth = {k: d for k, d in circuit.devices.items() if isinstance(d, SmoothDevice)}
        self.rows = {k: device.row() for k, device in self.smooth.items()}
        value = self.value.copy()
        value[[self.parts[k][0] for k in self.smooth]] = 1.0  # conductances of companion models
        laws = law_arrays(self.circuit.laws)
        self._system = ControlledSystem(self.circuit, arrays._replace(value=value), laws, series)
        self.equations, self.roles = self._system.eq, self._system.roles
        signs, ends = np.repeat([1.0, -1.0], m), np.concatenate([first, second])
        self._incidence = csr_array((signs, (ends, np.tile(np.arange(m), 2))), shape=(self.nodes, m))
        self._kept: dict[bytes, Factor] = {}

    # ------------------------------------------------------------------ equations
    def _factor(self, column: np.ndarray, conducting: np.ndarray) -> Factor:
        """The factors of the equations."""
        eq, on = self.equations, conducting[self.equations.diode]
        value = term_values(column, eq.share, eq.gain, eq.under)
        key = value.tobytes() + on.tobytes()
        if key not in self._kept:
            if len(self._kept) == KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = Factor(self._system.tied_terms(on, value), quick=True)
        return self._kept[key]

    def _solved(self, factor: Factor, right: np.ndarray) -> np.ndarray:
        """The solutions for right-hand sides (n, p).

        Raises
        ------
        ArithmeticError
            One is not accurate.
        """
        found = factor.rough(right)
        found = found + factor.rough(right - factor.matrix @ found)
        scale = factor.left[:, None] * (abs(factor.matrix) @ np.abs(found) + np.abs(right))
        off = factor.left[:, None] * np.abs(right - factor.matrix @ found)
        if not (off.max(axis=0, initial=0.0) <= ACCURATE * scale.max(axis=0, initial=0.0)).all():
            raise ArithmeticError("inaccurate")
        return np.asarray(found)

    # ------------------------------------------------------------------ at a point
    def column_at(self, point: OperatingPoint, column: np.ndarray, sizes: Sizes, rows: Rows) -> np.ndarray:
        """Values of the elementary elements (m,), from those of the circuit's own (n,), with linearised smooth
        devices."""
        found = self.value.copy()
        own = np.ones(column.size, dtype=bool)
        own[list(self.own.devices)] = False
        found[: column.size][own] = column[own]
        least = FLAT * sizes.amperes / sizes.volts
        for k, device in self.smooth.items():
            row = rows[k]
            slope = type(device).junction(row, point.junctions[k])[1]
            found[self.parts[k][0]] = row[0] + 1.0 / max(float(slope), least)
        return found

    def changes_at(self, point: OperatingPoint, changes: Changes, rows: Rows) -> np.ndarray:
        """Changes of the elementary elements' values (m, p)."""
        found = np.zeros((self.kind.size, changes.value.shape[1]))
        found[: len(changes.value)] = changes.value
        for j, k, slopes in changes.devices:
            junction = point.junctions.get(k, 0.0)
            found[list(self.parts[k]), j] = of_parts(self.own.devices[k], slopes, junction, rows.get(k))
        return found

    def conducting(self, point: OperatingPoint, before: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Which elements (m,) are conducting diodes; ``before`` (m,) decides where a diode has zero voltage and
        current."""
        inner = point.elementary or point
        forward = inner.drops / sizes.volts + inner.currents / sizes.amperes
        return np.asarray((self.kind == DIODE) & np.where(np.abs(forward) > TOUCH, forward > 0.0, before))

    def change(
        self,
        point: OperatingPoint,
        column: np.ndarray,
        before: np.ndarray,
        value: np.ndarray,
        sizes: Sizes,
        laws: Mapping[int, np.ndarray],
        rows: Rows,
    ) -> Change:
        """The change of an operating point.

        Parameters
        ----------
        point : OperatingPoint
        column : (n,) float array
            Values of the circuit's own elements.
        before : (m,) bool array
            See `conducting`.
        value : (m, p) float array
            Changes of the elementary elements' values.
        sizes : Sizes
        laws : mapping of int to (p,) float array
            Changes of the constants of controlled sources, V, A.
        rows : mapping of int to sequence of float
            Of smooth devices.

        Raises
        ------
        ConvergenceError
            The linearised circuit has no unique solution.
        """
        inner, column = point.elementary or point, self.column_at(point, column, sizes, rows)
        place, (inside, nodal, ohmic, held, given, _) = self.equations.own, self.roles
        across, ohms = value * inner.currents[:, None], column[nodal, None]
        # Changes of current sources, and of the Norton equivalents of resistors.
        source = np.zeros(value.shape)
        source[nodal], source[given] = -across[nodal] / ohms, value[given]
        right = np.zeros((self.equations.size, value.shape[1]))
        right[: self.nodes - 1] = -(self._incidence @ source)[1:]
        right[place[ohmic]], right[place[held]] = across[ohmic], value[held]
        for k, law in self.circuit.laws.items():
            if law.quantity is Quantity.NEITHER:
                continue
            gain = 1.0 if np.isnan(column[k]) else column[k]
            control = sum(c * (inner.voltages[p] - inner.voltages[q]) for c, p, q in law.voltages)
            control += sum(c * inner.currents[e] for c, e in law.currents)
            right[place[k]] = value[k] * control + laws.get(k, 0.0)
            right[place[k]] += gain * sum(c * source[e] for c, e in law.currents)
        right[self.equations.pinned - 1] = 0.0
        try:
            found = self._solved(self._factor(column, self.conducting(point, before, sizes)), right)
        except ArithmeticError:
            raise ConvergenceError("the tangents at some time have no unique solution") from None
        potentials = np.vstack([np.zeros((1, value.shape[1])), found[: self.nodes - 1]])
        drops = self._incidence.T @ potentials
        source[nodal] += drops[nodal] / ohms
        source[inside] = found[place[inside]]
        return Change(potentials, drops, source)

    def junction_change(self, k: int, found: Change, current: float, changes: Changes) -> np.ndarray:
        """The change (p,) of the voltage of a smooth device's junction, V, where the device carries this current, A."""
        resistor, _, source = self.parts[k]
        through = found.currents[resistor] + found.currents[source]
        return np.asarray(found.drops[k] - self.rows[k][0] * through - current * changes.of_row(k, self.rows[k])[0])


def change_at_rest(
    start: Start, changes: Changes, held: Mapping[str, np.ndarray], before: np.ndarray | None = None
) -> np.ndarray:
    """The change (m, p) of capacitor and junction voltages and of inductor currents at the operating point at the start
    of a run.

    Parameters
    ----------
    start : Start
        With an operating point.
    changes : Changes
    held : mapping of str to (p,) float array
        Changes of the values held by ``.ic``, by name in lower case.
    before : (elements,) bool array, optional
        Which elements are conducting diodes, for diodes of zero voltage and current.
    """
    point, (m, p) = start.point, changes.value.shape
    assert point is not None
    tangents = Tangents(point.circuit, np.zeros(0, dtype=np.int64))
    kind, column = point.circuit.arrays().kind, point.circuit.arrays().value
    value, node = np.zeros((kind.size, p)), m
    value[:m] = changes.value
    for name in start.held:
        k = point.circuit.element_index(name) if name in point.circuit else node
        node += k == node
        value[k] = held.get(name.lower(), 0.0)
    conducting = np.zeros(tangents.kind.size, dtype=bool)
    if before is not None:
        conducting[: before.size] = before
    sizes = Sizes(*(float(np.abs(own).max(initial=0.0)) or 1.0 for own in (point.drops, point.currents)))
    value = tangents.changes_at(point, changes._replace(value=value), tangents.rows)
    found = tangents.change(point, column, conducting, value, sizes, {}, tangents.rows)
    level = np.where((kind[:m] == CAPACITOR)[:, None], found.drops[:m], found.currents[:m])
    for k in tangents.smooth:
        level[k] = tangents.junction_change(k, found, float(point.currents[k]), changes)
    return level


__all__ = ["Change", "Changes", "Sizes", "Tangents", "change_at_rest"]
