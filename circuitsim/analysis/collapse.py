"""Circuits with devices: their operating points from those of their elementary elements, checked against the devices'
characteristics."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.newton import Found, Smooth
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.small_circuit import Deferred, DeferredPoint, Part
from circuitsim.analysis.solution_warnings import BY_KIND, implausible_currents
from circuitsim.certificate import Certificate
from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import Expansion
from circuitsim.engine.steady_state import SMALLEST
from circuitsim.errors import ConvergenceError, Problem
from circuitsim.models import Device, Region
from circuitsim.models.smooth import SmoothDevice
from circuitsim.newton.steps import NOTHING

ROUNDED = 1e-6
"""Minimum current of a device's parts as a scale, relative to the largest current of a circuit with controlled sources,
whose equations have the rounding of the whole circuit."""


def valued(circuit: Circuit, column: np.ndarray) -> Circuit:
    """The circuit at the values of its elementary elements."""
    own = circuit.arrays().value
    return circuit.with_column(np.where(own == own, column[: own.size], own))


def assembled(
    circuit: Circuit, expansion: Expansion, smooth: Smooth, found: Found, tolerance: float, certificate: Certificate
) -> OperatingPoint:
    """The operating point of a circuit with smooth devices, from the last step of Newton's method with its certificate.

    Raises
    ------
    ConvergenceError
        It fails its certificate.
    """
    if not certificate.certified:
        raise ConvergenceError(
            f"currents and voltages are certified with smooth devices as tangents, not with their own currents (worst "
            f"{certificate.worst:.1e}): the values span more than double precision holds"
        )
    result = _whole(circuit, expansion, found.point, tolerance, certificate, (smooth, found))
    result.junctions = dict(zip(smooth.elements.tolist(), found.near[0].tolist()))
    return result


def collapsed(circuit: Circuit, expansion: Expansion, point: OperatingPoint, tolerance: float) -> OperatingPoint:
    """The operating point of a circuit with devices, from that of its elementary elements.

    Raises
    ------
    ConvergenceError
        A device whose voltage and current are off its characteristic by more than the tolerance.
    """
    result = _whole(circuit, expansion, point, tolerance, point.certificate)
    result.uniqueness = point.uniqueness
    if point.other is not None:
        result.other = collapsed(circuit, expansion, point.other, tolerance)
    return result


class SmoothPoint(DeferredPoint):
    """An operating point of a circuit whose devices are all smooth."""

    more = ("regions", "junctions", "elementary", "_device_parts")
    unique, solver, warnings, drops, regions, junctions = Part(), Part(), Part(), Part(), Part(), Part()

    def __init__(self, circuit: Circuit, expansion: Expansion, smooth: Smooth, solved: Found) -> None:
        self._named, self.solved, self._smooth, self._expansion = circuit, solved, smooth, expansion
        self.elementary, self._device_parts, self.intervals = solved.point, expansion.parts, {}

    @Deferred
    def circuit(self) -> Circuit:
        return valued(self._named, self.solved.point._out)

    @Deferred
    def voltages(self) -> np.ndarray:
        return self.solved.point.voltages[: len(self._named.node_names)]

    @Deferred
    def currents(self) -> np.ndarray:
        own = self.solved.point.currents[: len(self._named)].copy()
        own[self._smooth.elements] = self.solved.current
        own.setflags(write=False)
        return own

    @Deferred
    def certificate(self) -> Certificate:
        """That of the elementary circuit, in which the devices are sources, with their distances from their curves."""
        made, found = self.solved.point.certificate, self.solved
        relative = {**made.relative, "devices": float(found.distance.max())}
        return made._replace(relative=relative, device_gap=found.gap)

    @property
    def whole(self) -> OperatingPoint:
        """With all attributes."""
        tolerance = self.certificate.tolerance
        return assembled(self.circuit, self._expansion, self._smooth, self.solved, tolerance, self.certificate)


def _whole(
    circuit: Circuit,
    expansion: Expansion,
    point: OperatingPoint,
    tolerance: float,
    certificate: Certificate,
    newton: tuple[Smooth, Found] | None = None,
) -> OperatingPoint:
    """See `collapsed`; smooth devices have the values of Newton's method."""
    m, n_nodes, devices = len(circuit), len(circuit.node_names), circuit.devices
    voltages, currents, unique = point.voltages[:n_nodes].copy(), point.currents[:m].copy(), point.unique[:m].copy()
    drops, regions, exact = point.drops[:m].copy(), dict[int, Region](), dict[int, Device]()
    for k, device in devices.items():
        unique[k] = point.unique[list(expansion.parts[k])].all()
        if not isinstance(device, SmoothDevice):
            exact[k] = device
    least = NOTHING if len(exact) < len(devices) else SMALLEST
    around = ROUNDED * float(np.abs(point.currents).max(initial=0.0)) if circuit.laws and exact else 0.0
    _, first, second, _, _ = circuit.arrays()
    for k, device in exact.items():
        a, b = float(voltages[first[k]]), float(voltages[second[k]])
        amperes = point.currents[list(expansion.parts[k])].tolist()
        currents[k], regions[k] = device.collapse(amperes)
        drops[k] = a - b
        largest = max(around, *map(abs, amperes))
        _hold(circuit.names[k], device, (a, b), (float(currents[k]), largest), tolerance, least)
    intervals = {name: ends for name, ends in point.intervals.items() if name not in expansion.hidden}
    warnings, solver = [*circuit.notes, *(_original(warning, expansion) for warning in point.warnings)], point.solver
    if newton is not None:
        smooth, found = newton
        currents[smooth.elements], drops[smooth.elements] = found.current, found.voltage
        warnings += implausible_currents(circuit, smooth.elements, currents, drops)
        for k, volts in zip(smooth.elements.tolist(), found.near[0].tolist()):
            device = devices[k]
            assert isinstance(device, SmoothDevice)
            regions[k] = device.region_at(volts)
        solver = {**solver, "newton_steps": found.steps}
    result = OperatingPoint(circuit, voltages, currents, intervals, unique, certificate, solver, tuple(warnings), drops)
    result.regions, result.elementary, result._device_parts = regions, point, expansion.parts
    return result


def _hold(
    name: str, device: Device, ends: tuple[float, float], amperes: tuple[float, float], tolerance: float, least: float
) -> None:
    """Check a device against its characteristic: a point of the curve lies within the tolerance of its voltage and
    current.

    ``ends`` are its terminals' potentials, V; ``amperes`` its current and the largest of its parts' currents; values
    below ``least``, V or A, count as zero.
    """
    voltage, (current, largest) = ends[0] - ends[1], amperes
    dv, di = tolerance * max(map(abs, ends)) + least, tolerance * largest + least
    low, high = device.law(voltage - dv)[0], device.law(voltage + dv)[1]
    if not low - di <= current <= high + di:
        raise ConvergenceError(
            f"{name} is off its I–V curve: {current:.9g} A at {voltage:.9g} V, where it has {low:.9g} to {high:.9g} A; "
            "accept it with a larger --tolerance"
        )


def _original(warning: Problem, expansion: Expansion) -> Problem:
    """A warning in terms of devices in place of their parts and inner nodes."""
    make = BY_KIND.get(warning.kind)
    names = expansion.original(warning.names)
    return warning if make is None or names == list(warning.names) else make(names)
