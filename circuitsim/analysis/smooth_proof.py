"""Smooth devices: their part of the certificate, and the error if Newton's method does not converge."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from circuitsim.analysis.amplified import certify_amplified, prepared_elementary
from circuitsim.analysis.controlled_system import NOISE
from circuitsim.analysis.newton import Found, Smooth, project
from circuitsim.analysis.solution_warnings import IMPLAUSIBLE
from circuitsim.certificate import TOLERANCE, Certificate, certify
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import AMPLIFIER, ELEMENTS, RESISTOR
from circuitsim.circuit.expansion import Expansion
from circuitsim.controlled.certificate import LawArrays, certify_controlled
from circuitsim.errors import ConvergenceError, NoSteadyStateError
from circuitsim.models.smooth import Limits, SmoothDevice
from circuitsim.newton.steps import CURRENT, NOTHING, VOLTAGE

VALUES = [VOLTAGE, CURRENT]
"""Rows of the devices' voltages and currents."""

NEGLIGIBLE = 1e-75
"""Voltages below it, V, count as zero: `NOTHING` times 1e15 Ω."""


def proof(
    found: Found, arrays: CircuitArrays, smooth: Smooth, tolerance: float, laws: LawArrays | None = None
) -> Certificate:
    """The certificate of the last step, in which each smooth device is a source of its own current at its own voltage,
    and nothing of its companion model is left; with the devices' distances from their curves.

    If it fails, devices' voltages and currents that are noise count as zero where that is on their curves.

    Parameters
    ----------
    found : Found
        Its devices' voltages and currents are overwritten where these are noise.
    arrays : CircuitArrays
        Of the elementary elements, with the values of the last step.
    tolerance : float
    laws : LawArrays, optional
        Of the controlled elements.
    """
    made = _held(found, arrays, smooth, tolerance, laws)
    if made.certified:
        return made
    kept = found.own.copy()
    plain = np.where(np.abs(kept[VALUES]) <= NOISE * _largest(found, smooth), 0.0, kept[VALUES])
    near = project(smooth, plain[0], plain[1], np.ones(plain[0].size), plain[0])
    exact = (plain != kept[VALUES]).any(axis=0) & (near[1:3] == plain).all(axis=0)
    cleared = found._replace(own=np.where(exact, 0.0, kept))
    cleared.own[VALUES], cleared.near[:] = np.where(exact, plain, kept[VALUES]), np.where(exact, near, found.near)
    made = _held(cleared, arrays, smooth, tolerance, laws)
    if made.certified:
        found.own[:] = cleared.own
    return made


def _largest(found: Found, smooth: Smooth) -> np.ndarray:
    """The largest drop, V, and current, A, of the last step (2, 1), except inside companion models."""
    drops, currents = found.point.drops.copy(), found.point.currents.copy()
    for inside in (smooth.slope, smooth.touch):
        drops[inside] = currents[inside] = 0.0
    currents[smooth.rest] = found.current
    return np.abs([drops, currents]).max(axis=1, keepdims=True)


def _held(found: Found, arrays: CircuitArrays, smooth: Smooth, tolerance: float, laws: LawArrays | None) -> Certificate:
    """Check all elements' equations and Kirchhoff's laws with the devices as sources, and their distances from their
    curves."""
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
    held = arrays._replace(value=column)
    if laws is not None:
        made = certify_controlled(held, laws, voltages, currents, drops, tolerance, low)
    elif (arrays.kind == AMPLIFIER).any():
        made = certify_amplified(held, voltages, currents, drops, tolerance)
    else:
        made = certify(held, column, voltages, currents, drops, tolerance, low)
    relative = {**made.relative, "devices": float(found.distance.max(initial=0.0))}
    return made._replace(relative=relative, device_gap=found.gap)


def unsolved(
    circuit: Circuit, expansion: Expansion, smooth: Smooth, found: Found, column: np.ndarray, tolerance: float
) -> NoReturn:
    """Raise the error that explains why Newton's method ended off the curves.

    Raises
    ------
    UnboundedError
        Devices cannot carry a current that has no other path.
    ConvergenceError
        Otherwise; it names the device farthest from its curve.
    """
    if not circuit.laws:  # otherwise the limits of devices alone do not decide
        try:
            prepared_elementary(recession(circuit, expansion, smooth, column), "auto", TOLERANCE).solve()
        except NoSteadyStateError as error:
            raise _restated(error, circuit, expansion) from None
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
        raise ConvergenceError(
            f"{name} would carry {amperes} at {volts:.6g} V: give its model a series resistance; {off}"
        )
    raise ConvergenceError(off)


def recession(circuit: Circuit, expansion: Expansion, smooth: Smooth, column: np.ndarray) -> Circuit:
    """The circuit in which each smooth device carries any current within its limits, at a voltage of 1 Ω times that.

    It has a steady state iff the circuit has one, limits approached asymptotically being counted as reached.
    """
    elementary = expansion.circuit
    tangents = {int(k) for k in (*smooth.slope, *smooth.touch, *smooth.rest)}
    out = Circuit(circuit.title)
    for k, element in enumerate(elementary):
        if k not in tangents:
            value = None if element.value is None else float(column[k])
            out.add(ELEMENTS[elementary.columns()[0][k]].letter, element.name, element.first, element.second, value)
    for k in smooth.elements.tolist():
        device = circuit.devices[k]
        assert isinstance(device, SmoothDevice)
        element = circuit[k]
        _limited(out, expansion.circuit.names[expansion.parts[k][0]], element.first, element.second, device.limits())
    return out


def _limited(out: Circuit, name: str, first: str, second: str, limits: Limits) -> None:
    """Branches in series: one with a minimum current, one with a maximum current."""
    finite = [k for k in range(2) if math.isfinite(limits[k])]
    middle = f"{name}:between" if len(finite) == 2 else second
    out.resistor(name, first, f"{name}:in", 1.0)
    nodes = [f"{name}:in", middle, second] if len(finite) == 2 else [f"{name}:in", second]
    if not finite:
        out.voltage_source(f"{name}:through", f"{name}:in", second, 0.0)
    for number, k in enumerate(finite):
        a, b = nodes[number], nodes[number + 1]
        limit = f"{name}:{'least' if k == 0 else 'most'}"
        out.current_source(f"{limit}:current", a, b, limits[k])
        out.diode(f"{limit}:diode", *((a, b) if k == 0 else (b, a)))


def _restated(error: NoSteadyStateError, circuit: Circuit, expansion: Expansion) -> NoSteadyStateError:
    """The error in terms of devices, with the smallest and the largest currents of those in it."""
    owners = [*expansion.owner.items()]
    names = [next((own for part, own in owners if element.startswith(part)), element) for element in error.elements]
    names = list(dict.fromkeys(names))
    passed = []
    for name in names:
        device = circuit.devices.get(circuit.element_index(name)) if name in circuit else None
        if isinstance(device, SmoothDevice):
            least, most = device.limits()
            listed = [f"at least {least:.6g} A"] if math.isfinite(least) else []
            listed += [f"at most {most:.6g} A"] if math.isfinite(most) else []
            passed += [f"{name} passes {' and '.join(listed)}"] if listed else []
    nodes = [node for node in error.nodes if ":" not in node]
    return type(error)(f"{error}" + (f" ({'; '.join(passed)})" if passed else ""), names, nodes)
