"""Circuits with devices: expanded into elementary elements, solved, collapsed, checked against the devices' I–V curves.

On a flat segment of its curve a device has the same current at any voltage, so it fixes no node voltage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.analysis.collapse import assembled, collapsed, proof, unsolved, valued, with_devices
from circuitsim.analysis.controlled import PreparedControlled, prepared_controlled
from circuitsim.analysis.convex import Prepared, PreparedAmplified, SmallCircuitSolver, prepared_convex
from circuitsim.analysis.newton import Found, SmallNewton, Smooth, attempts, smooth_devices
from circuitsim.analysis.operating_point import OperatingPoint, Values, check_start, open_ended
from circuitsim.analysis.solution_warnings import Level, nonunique_potential, released_potentials
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, device_code
from circuitsim.circuit.expansion import Expansion, expanded, same_shape
from circuitsim.errors import ConvergenceError, NoSteadyStateError
from circuitsim.models.limiter import Limiter
from circuitsim.models.smooth import Limits, SmoothDevice
from circuitsim.models.table import Table
from circuitsim.newton.steps import JUNCTIONS, NOTHING, VOLTAGE
from circuitsim.program import Structure

if TYPE_CHECKING:
    from circuitsim.analysis.smooth_controlled import SmoothControlled


def level_devices(circuit: Circuit, smooth: Smooth, junctions: np.ndarray) -> dict[int, tuple[float, float]]:
    """The smooth devices on flat segments at the junction voltages (s,), V, by number, and the ends of these segments,
    V."""
    found = {}
    for d in np.flatnonzero(smooth.rows[:, -1] == JUNCTIONS.index(Table.junction)).tolist():
        device = circuit.devices[int(smooth.elements[d])]
        assert isinstance(device, Table)
        ends = device.level(float(junctions[d]))
        if ends is not None:
            found[d] = ends
    return found


def released(structure: Structure, smooth: Smooth, found: Found, level: dict[int, tuple[float, float]]) -> Found:
    """The result of Newton's method, with the ranges of potentials that flat segments leave indeterminate.

    The tangent of a flat segment is 1e100 Ω, so its drop is rounding: such devices take the difference of node
    voltages, and voltages that only they fix may be any that all of them and all blocking diodes permit.

    Parameters
    ----------
    structure : Structure
        Of the elementary elements.
    level : dict
        See `level_devices`.

    Raises
    ------
    ConvergenceError
        Some device is not on its flat segment, or no potentials are feasible.
    """
    point, chosen = found.point, np.array([*level])
    low, high = np.array([*level.values()]).T
    kind, first, second, _, _ = structure.arrays
    slope, touch, rest = (places[chosen] for places in (smooth.slope, smooth.touch, smooth.rest))
    carries = (kind == DIODE) & (point.currents > NOTHING)
    pieces = Level(slope, first[rest], second[rest], low, high)
    voltages, free = released_potentials(structure, point.voltages, carries, pieces)
    across, drops = voltages[first[rest]] - voltages[second[rest]], point.drops.copy()
    rounding = point.certificate.tolerance * np.maximum(np.abs(voltages[first[rest]]), np.abs(voltages[second[rest]]))
    own = found.voltage[chosen]
    across = np.where(np.abs(own - across) <= rounding, own, across)  # ``own`` has more digits
    off = np.maximum(low - across, across - high) > rounding
    if off.any():
        raise ConvergenceError(f"Newton's method ended outside a constant-current segment ({across[off][0]:.6g} V)")
    if free:
        moved, blocks = voltages - point.voltages, (kind == DIODE) & ~carries
        drops += np.where(blocks, moved[first] - moved[second], 0.0)
    drops[rest], drops[slope] = across, across - drops[touch]
    named = {point.circuit.node_names[k]: open_ended(ends) for k, ends in free.items()}
    warnings = [warning for warning in point.warnings if warning.kind != "nonunique-potential"]
    warnings += [nonunique_potential([*named])] if named else []
    made = point.changed(voltages=voltages, intervals=named, warnings=tuple(warnings), drops=drops)
    found = found._replace(point=made, own=found.own.copy())
    found.own[VOLTAGE, chosen] = found.near[0, chosen] = found.near[1, chosen] = across
    return found


@dataclass(frozen=True, eq=False, repr=False)
class PreparedExpanded:
    """A prepared circuit with devices; same interface as `Prepared`.

    Attributes
    ----------
    circuit : Circuit
    expansion : Expansion
        The circuit of elementary elements.
    inner : Prepared or PreparedAmplified
        That circuit, prepared.
    solver : str
        The requested method.
    tolerance : float
        Tolerance of certificate and I–V curves, relative to local scales.
    smooth : Smooth or None
        The devices linearised by Newton's method.
    controlled : SmoothControlled or None
        The solver for such devices with controlled sources.
    """

    circuit: Circuit
    expansion: Expansion
    inner: Prepared | PreparedAmplified | PreparedControlled
    solver: str
    tolerance: float
    smooth: Smooth | None
    controlled: SmoothControlled | None = None

    @cached_property
    def _small(self) -> SmallNewton | None:
        """Newton's method in one kernel, for sufficiently small circuits."""
        small = getattr(self.inner, "small", None)
        return SmallNewton(small, self.smooth) if self.smooth and isinstance(small, SmallCircuitSolver) else None

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other element values (Ω, V, A) or device parameters (``D1.vfwd``); see
        `Prepared.solve`.
        """
        check_start(start)
        circuit, smooth, parts = self.circuit, self.smooth, dict[str, float]()
        if isinstance(values, Mapping):
            circuit = circuit.with_values(values)
            places = [circuit.device_parameter(name) for name in values]
            for k in {place[0] for place in places if place is not None}:
                if not same_shape(self.circuit.devices[k], circuit.devices[k]):
                    return prepared_expanded(circuit, self.solver, self.tolerance).solve(start=start)
                parts |= self.expansion.values(k, circuit.devices[k])
            if smooth is not None and parts:
                smooth = smooth_devices(circuit, self.expansion)
        own = circuit.arrays().value if values is None or isinstance(values, Mapping) else circuit.column(values)
        column = self._elementary(own)
        for name, number in parts.items():
            column[self.expansion.circuit.element_index(name)] = number
        return self._solved(circuit, smooth, column, start)

    def solve_next(self, value: np.ndarray, start: OperatingPoint | None) -> OperatingPoint:
        """`solve` for the values of all elements (m,), from a nearby operating point of this circuit in a sequence,
        each within the tolerance. The result's circuit keeps its previous values; with controlled sources there is no
        verdict.
        """
        return self._solved(self.circuit, self.smooth, self._elementary(value), start, True)

    def _solved(
        self,
        circuit: Circuit,
        smooth: Smooth | None,
        column: np.ndarray,
        start: OperatingPoint | None,
        following: bool = False,
    ) -> OperatingPoint:
        """The operating point for the values of all elementary elements; ``following``: see `solve_next`."""
        inner = None if start is None else start.elementary
        if inner is not None and len(inner.circuit) != len(self.expansion.circuit):
            inner = None  # with other parameters its devices have other parts
        try:
            if smooth is not None and self.controlled is None:
                near = None if start is None or inner is None else smooth.start(start, inner)
                return self._smooth_point(circuit, smooth, column, near, following)
            if self.controlled is not None and following:
                return self.controlled.first(column, start)
            circuit = circuit if following else valued(circuit, column)
            if smooth is None or self.controlled is None:
                return collapsed(circuit, self.expansion, self.inner.solve(column, inner), self.tolerance)
            return replace(self.controlled, circuit=circuit, smooth=smooth).solve(column, start)
        except NoSteadyStateError as error:
            raise self.expansion.restated(error) from None

    def _smooth_point(
        self, circuit: Circuit, smooth: Smooth, column: np.ndarray, near: Found | None, few: bool = False
    ) -> OperatingPoint:
        """The operating point with smooth devices, for the values of all elementary elements."""
        circuit = circuit if few else valued(circuit, column)
        arguments = self.inner.solve, self.expansion.circuit, smooth, self._small, column, near, self.tolerance, few
        for found in attempts(*arguments):
            try:
                return self._assembled(circuit, smooth, found)
            except ConvergenceError as error:
                wrong = error
        raise wrong

    def _assembled(self, circuit: Circuit, smooth: Smooth, found: Found) -> OperatingPoint:
        """The operating point from the result of Newton's method; see `assembled`.

        Raises
        ------
        ConvergenceError
            A device whose voltage and current are off its curve by more than the tolerance.
        UnboundedError
            Devices cannot carry a current that has no other path.
        """
        if not found.distance.max() <= self.tolerance:
            _check_limits(circuit, smooth)
            raise unsolved(circuit, smooth, found, self.tolerance)
        level = level_devices(circuit, smooth, found.near[0])
        if level and isinstance(self.inner, Prepared):
            found = released(self.inner.structure, smooth, found, level)
        if found.certified and not level:
            certificate = with_devices(found.point.certificate, found, found.distance)
        else:
            certificate = proof(found, found.point.circuit.arrays(), smooth, self.tolerance)
        return assembled(circuit, self.expansion, smooth, found, self.tolerance, certificate)

    def _elementary(self, value: np.ndarray) -> np.ndarray:
        """Values of the elementary elements for those of all elements (m,)."""
        own, column = self.circuit.arrays().value, self.expansion.circuit.arrays().value.copy()
        np.copyto(column[: own.size], value, where=own == own)
        return column


def prepared_expanded(circuit: Circuit, solver: str, tolerance: float) -> PreparedExpanded:
    """Analyse a circuit with devices."""
    expansion = expanded(circuit)
    smooth, elementary, beside = smooth_devices(circuit, expansion), expansion.circuit, None
    if not circuit.laws:
        inner = prepared_convex(elementary, solver, tolerance)
        return PreparedExpanded(circuit, expansion, inner, solver, tolerance, smooth)
    controlled = prepared_controlled(elementary, tolerance)
    if smooth is not None:
        from circuitsim.analysis.smooth_controlled import SmoothControlled

        beside = SmoothControlled(circuit, smooth, expansion, controlled, tolerance)
    return PreparedExpanded(circuit, expansion, controlled, solver, tolerance, smooth, beside)


PARALLEL = ":parallel"
"""End of the name of a current source in parallel with a current limiter."""


def _check_limits(circuit: Circuit, smooth: Smooth) -> None:
    """Refuse a current that has no other path than devices that cannot carry it.

    A current limiter of 1 Ω takes the place of each smooth device, in parallel with a current source where its limits
    exclude 0 A. This circuit has a steady state iff that one has one, limits approached asymptotically being counted
    as reached.

    Raises
    ------
    UnboundedError
        Its message states the smallest and largest currents of the devices.
    """
    if circuit.laws:
        return  # the limits of devices alone do not decide
    kind, first, second, value = circuit.columns()
    kind, first, second, value = kind[:], first[:], second[:], value[:]
    names, devices, limits, parallel = [*circuit.names], {**circuit.devices}, dict[str, Limits](), dict[int, float]()
    for k in smooth.elements.tolist():
        device = devices.pop(k)
        assert isinstance(device, SmoothDevice)
        least, most = limits[names[k]] = device.limits()
        parallel[k] = min(max(least, 0.0), most)
        back, forth = parallel[k] - least, most - parallel[k]
        if forth == math.inf:
            first[k], second[k], back, forth = second[k], first[k], forth, back
        if forth == math.inf:
            kind[k], value[k] = RESISTOR, 1.0
        else:
            devices[k] = Limiter(imax=forth, irev=None if back == math.inf else back, ron=1.0)
            kind[k] = device_code(devices[k])
    columns = kind, first, second, value
    limited = Circuit.from_columns(circuit.title, columns, [*names], [*circuit.node_names], devices=devices)
    for k, current in parallel.items():
        if current:
            limited.current_source(f"{names[k]}{PARALLEL}", circuit[k].first, circuit[k].second, current)
    try:
        prepared_expanded(limited, "auto", TOLERANCE).solve()
    except NoSteadyStateError as error:
        elements, passed = [*dict.fromkeys(name.removesuffix(PARALLEL) for name in error.elements)], list[str]()
        for name in elements:
            ends = zip(("least", "most"), limits.get(name, ()))
            listed = [f"at {of} {end:.6g} A" for of, end in ends if math.isfinite(end)]
            passed += [f"{name} passes {' and '.join(listed)}"] if listed else []
        stated = f" ({'; '.join(passed)})" if passed else ""
        raise type(error)(f"{error}{stated}", elements, error.nodes) from None
