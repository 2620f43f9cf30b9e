"""Smooth devices: their part of the certificate, and the error if Newton's method does not converge."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from circuitsim.analysis.elementary import prepared_elementary
from circuitsim.analysis.newton import NOTHING, Found, Smooth, project
from circuitsim.analysis.solution_warnings import IMPLAUSIBLE
from circuitsim.certificate import RESOLUTION, TOLERANCE, Certificate, certify
from circuitsim.certificate_loops import largest_in_block
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import AMPLIFIER, ELEMENTS, RESISTOR
from circuitsim.circuit.expansion import Expansion
from circuitsim.errors import ConvergenceError, NoSteadyStateError
from circuitsim.models.smooth import Limits, SmoothDevice

UNHEARD = 1e-75
"""Voltages below it, V, count as zero: `NOTHING` times 1e15 Ω."""


def proof(found: Found, arrays: CircuitArrays, smooth: Smooth) -> Certificate:
    """The certificate of the last step, with each smooth device's current as an independent quantity, and its distance
    from its curve.

    Kirchhoff's laws are checked with voltages and currents of devices, not of their tangents, which may touch far away;
    all other elements' equations are as in the last step.
    """
    made = found.point.certificate
    currents = device_currents(found, smooth)
    kcl, share = worst_sum(arrays.first, arrays.second, currents, np.zeros(currents.size), arrays.n_nodes)
    if share > made.tolerance:
        least = RESOLUTION * largest_in_block(arrays, currents)
        kcl, share = worst_sum(arrays.first, arrays.second, currents, least, arrays.n_nodes)
    if not (arrays.kind == AMPLIFIER).any():  # otherwise potentials are in scaled coordinates
        held = _as_sources(found, arrays, smooth, currents)
        relative = made.relative | {"kvl": max(made.relative["kvl"], held.relative["kvl"])}
        made = made._replace(kvl=held.kvl, relative=relative)
    gap = np.abs((found.voltage - found.state.points[0]) * (found.current - found.state.points[1]))
    relative = {**made.relative, "devices": float(found.distance.max())}
    relative["kcl"] = max(share, relative["kcl"])
    certificate: Certificate = made._replace(kcl=max(kcl, made.kcl), relative=relative, device_gap=float(gap.sum()))
    return certificate


def _as_sources(found: Found, arrays: CircuitArrays, smooth: Smooth, currents: np.ndarray) -> Certificate:
    """The certificate with a zero-current voltage source and a parallel current source in place of each companion
    model."""
    point, column = found.point, found.point.circuit.arrays().value.copy()
    voltages, drops = point.voltages.copy(), point.drops.copy()
    voltages[np.abs(voltages) < UNHEARD] = 0.0
    drops[(np.abs(drops) < UNHEARD) | ((arrays.kind == RESISTOR) & (currents == 0.0))] = 0.0
    voltages[arrays.second[smooth.slope]] = voltages[arrays.first[smooth.slope]]
    drops[smooth.slope], column[smooth.slope] = 0.0, 0.0
    volts = np.where(np.abs(found.voltage) < UNHEARD, 0.0, found.voltage)
    drops[smooth.touch] = column[smooth.touch] = drops[smooth.rest] = volts
    column[smooth.rest] = currents[smooth.rest]
    return certify(arrays._replace(value=column), column, voltages, currents, drops, point.certificate.tolerance)


def device_currents(found: Found, smooth: Smooth) -> np.ndarray:
    """Currents (m,), A, with those of smooth devices in place of their companion models'."""
    currents = found.point.currents.copy()
    currents[smooth.slope] = currents[smooth.touch] = 0.0
    currents[smooth.rest] = found.current
    currents[np.abs(currents) < NOTHING] = 0.0
    return currents


def worst_sum(
    first: np.ndarray, second: np.ndarray, currents: np.ndarray, least: np.ndarray, n_nodes: int
) -> tuple[float, float]:
    """The largest net current at a node, A, and the largest relative to the largest current there, at least
    ``least``."""
    net = np.abs(np.bincount(first, currents, n_nodes) - np.bincount(second, currents, n_nodes))
    size, largest = np.maximum(np.abs(currents), least), np.zeros(n_nodes)
    np.maximum.at(largest, first, size)
    np.maximum.at(largest, second, size)
    wrong = net > 0.0
    return float(net.max(initial=0.0)), float((net[wrong] / largest[wrong]).max(initial=0.0))


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
    across = np.nan_to_num(
        project(smooth, found.voltage, found.current, zero, zero).points[1], nan=np.inf, posinf=np.inf, neginf=-np.inf
    )
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
