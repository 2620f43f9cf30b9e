"""Circuits with devices: their operating points from those of their elementary elements, checked against the devices'
characteristics; the certificate of smooth ones, and the error where Newton's method does not converge.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import least_at_nodes
from circuitsim.analysis.controlled import NEGLIGIBLE
from circuitsim.analysis.convex import certify_amplified
from circuitsim.analysis.newton import Found, Smooth, project, smooth_devices
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solution_warnings import BY_KIND, IMPLAUSIBLE, implausible_currents
from circuitsim.certificate import RESOLUTION, Certificate, certify, largest_at_nodes
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import AMPLIFIER, RESISTOR
from circuitsim.circuit.elements import VOLTAGE as SOURCE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.controlled.certificate import LawArrays, certify_controlled
from circuitsim.engine.steady_state import SMALLEST
from circuitsim.errors import ConvergenceError, Problem, UsageError
from circuitsim.kernels import kernel
from circuitsim.models import Device
from circuitsim.newton.steps import NOTHING, ROUNDING

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
    if not point.unique.all():
        for k in devices:
            unique[k] = point.unique[list(expansion.parts[k])].all()
    exact = sorted(devices.keys() - (() if newton is None else newton[0].elements.tolist()))
    least = NOTHING if len(exact) < len(devices) else SMALLEST
    around = (ROUNDED if circuit.laws else RESOLUTION) * float(np.abs(point.currents).max(initial=0.0))
    _, first, second, _, _ = circuit.arrays()
    every = point.currents.tolist()
    for k in exact:
        amperes = sum(sign * every[part] for part, sign in expansion.carriers[k])
        largest = max(around, *(abs(every[part]) for part in expansion.parts[k]))
        ends, currents[k] = (float(voltages[first[k]]), float(voltages[second[k]])), amperes
        _hold(circuit.names[k], devices[k], ends, (amperes, largest), tolerance, least)
    intervals = {name: ends for name, ends in point.intervals.items() if name not in expansion.hidden}
    warnings, solver = [*circuit.notes, *(_original(warning, expansion) for warning in point.warnings)], point.solver
    across = dict[int, float]()
    if newton is not None:
        smooth, found = newton
        across = dict(zip(smooth.elements.tolist(), found.voltage.tolist()))
        currents[smooth.elements] = found.current
        warnings += implausible_currents(circuit, smooth.elements, found.current, found.voltage)
        solver = {**solver, "newton_steps": found.steps}
    result = OperatingPoint(circuit, voltages, currents, intervals, unique, certificate, solver, tuple(warnings))
    result.elementary, result._device_parts, result._smooth_drops = point, expansion.parts, across
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


def proof(
    found: Found, arrays: CircuitArrays, smooth: Smooth, tolerance: float, laws: LawArrays | None = None
) -> Certificate:
    """The certificate of the last step, in which each smooth device is a source of its own current at its own voltage,
    and nothing of its companion model is left; with the devices' distances from their curves.

    Parameters
    ----------
    found : Found
    arrays : CircuitArrays
        Of the elementary elements, with the values of the last step.
    tolerance : float
    laws : LawArrays, optional
        Of the controlled elements.
    """
    point, column, touch = found.point, arrays.value.copy(), smooth.touch
    voltages, currents, drops = point.voltages.copy(), point.currents.copy(), point.drops.copy()
    low = np.zeros(voltages.size) if point.low is None else point.low.copy()
    smooth.hold(arrays, (voltages, low), drops, currents, found)
    if laws is None:  # the noise of controlled sources is larger
        nothing = np.abs(currents) < NOTHING
        currents[nothing], drops[nothing & (arrays.kind == RESISTOR)] = 0.0, 0.0
        for array in (voltages, drops):
            array[np.abs(array) < NEGLIGIBLE] = 0.0
    column[touch], column[smooth.rest] = drops[touch], currents[smooth.rest]
    # The voltages of devices are resolved to the same fraction as the largest drop of resistors and sources.
    most = np.abs(currents).max(initial=0.0)
    own = (arrays.kind == RESISTOR) | (arrays.kind == SOURCE)
    own[smooth.slope] = own[touch] = False
    column[smooth.slope] = np.abs(drops[own]).max(initial=0.0) / most if most > 0.0 else 0.0
    held = arrays._replace(value=column)
    if laws is not None:
        made = certify_controlled(held, laws, voltages, currents, drops, tolerance, low)
    elif (arrays.kind == AMPLIFIER).any():
        made = certify_amplified(held, voltages, currents, drops, tolerance)
    else:
        made = certify(held, column, voltages, currents, drops, tolerance, low)
    return with_devices(made, found, _distances(found, arrays, smooth, drops, currents))


def with_devices(certificate: Certificate, found: Found, off: np.ndarray) -> Certificate:
    """The certificate of the elementary circuit, in which the devices are sources, with their distances from their
    curves (s,)."""
    relative = {**certificate.relative, "devices": float(off.max(initial=0.0))}
    return certificate._replace(relative=relative, device_gap=found.gap)


def _distances(
    found: Found, arrays: CircuitArrays, smooth: Smooth, drops: np.ndarray, currents: np.ndarray
) -> np.ndarray:
    """The devices' distances from their curves (s,), relative to their voltages and currents, with shares of the drops
    (m,), V, in loops through them and of the currents (m,), A, at both ends.

    Potentials far from ground are no scale of them.
    """
    first, second, rest = arrays.first, arrays.second, smooth.rest
    around, (least, holder) = drops.copy(), (np.empty((2, arrays.n_nodes)), np.empty(arrays.n_nodes, np.int64))
    around[smooth.slope] = around[smooth.touch] = np.inf
    kernel(least_at_nodes, drops.size)(first, second, around, least, holder)
    others = np.array([least[(holder[ends[rest]] == rest).astype(int), ends[rest]] for ends in (first, second)])
    loop = np.where(others < np.inf, others, 0.0).max(axis=0, initial=0.0)
    largest = largest_at_nodes(arrays, np.abs(currents))
    volts, amperes, local = found.voltage, found.current, np.minimum(largest[first[rest]], largest[second[rest]])
    reach = np.abs(volts) + ROUNDING * np.maximum(loop, smooth.rows[:, 0] * np.abs(amperes)) + NOTHING
    size = np.abs(amperes) + ROUNDING * local + RESOLUTION * np.abs(currents).max() + NOTHING
    near = project(smooth, volts, amperes, reach / size, found.near[0])
    return np.maximum(np.abs(near[1] - volts) / reach, np.abs(near[2] - amperes) / size)


def unsolved(circuit: Circuit, smooth: Smooth, found: Found, tolerance: float) -> ConvergenceError:
    """The error of Newton's method that ended off the curves; it names the device farthest from its curve."""
    worst = int(np.argmax(found.distance))
    farthest = circuit.names[int(smooth.elements[worst])]
    off = (
        f"Newton's method stopped after {found.steps} steps: {farthest} is off its curve "
        f"by {found.distance[worst]:.1e} of its voltage and current (tolerance {tolerance:.0e})"
    )
    zero = np.zeros(smooth.elements.size)
    across = project(smooth, found.voltage, found.current, zero, zero)[2]
    across = np.nan_to_num(across, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    most = int(np.argmax(np.abs(across)))
    if abs(across[most]) > IMPLAUSIBLE:
        name, volts = circuit.names[int(smooth.elements[most])], float(found.voltage[most])
        amperes = f"{across[most]:.2g} A" if np.isfinite(across[most]) else "more current than a double can hold"
        return ConvergenceError(
            f"{name} would carry {amperes} at {volts:.6g} V: give its model a series resistance; {off}"
        )
    return ConvergenceError(off)


def elementary_point(point: OperatingPoint) -> OperatingPoint:
    """The operating point of the elementary elements, with smooth devices linearised at this point.

    Raises
    ------
    UsageError
        The circuit has amplifiers.
    """
    if point.circuit.amplified:
        raise UsageError(
            "sensitivities of circuits with bidirectional amplifiers are not supported; "
            "circuitsim train circuit --compare has the derivatives of a loss"
        )
    inner = point.elementary
    if inner is None or not point.junctions:
        return point if inner is None else inner
    return _touching(point, inner)


def _touching(point: OperatingPoint, inner: OperatingPoint) -> OperatingPoint:
    """The elementary point with tangents at the devices' own voltages and currents, instead of those of Newton's last
    step, which touch at the step before."""
    smooth = smooth_devices(point.circuit, expanded(point.circuit))
    assert smooth is not None
    found, column = smooth.start(point, inner), inner.circuit.arrays().value.copy()
    voltages, currents, drops = inner.voltages.copy(), inner.currents.copy(), inner.drops.copy()
    smooth.linearise(found, column)
    smooth.hold(inner.circuit.arrays(), [voltages], drops, currents, found)
    made = inner.changed(circuit=inner.circuit.with_column(column), voltages=voltages, currents=currents, drops=drops)
    made.low = inner.low
    return made
