"""The numbers that waveforms can be differentiated by, each as an imaginary step of the problem's own numbers."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.parameters import part_slopes
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.waveforms import Constant
from circuitsim.errors import UsageError
from circuitsim.time_domain.formula_sources import check_by_source
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import Beginning, Origin

STEP = 1e-30
"""Imaginary step against the number; its square is nothing beside the number."""
SWITCH = ("vt", "vh", "ron", "roff")
"""Numbers of a switch: threshold and hysteresis, V or A, resistances of the closed and of the open switch, Ω."""
COUPLING = re.compile(r"k\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)", re.IGNORECASE)
HELD = re.compile(r"v\(\s*([^\s,()]+)\s*\)", re.IGNORECASE)
NAMES = (
    "waveforms have gradients by R, C, L (not zero) and sources, by D1.vfwd and the like, by vt, vh, ron and roff of "
    "switches (S1.vt), couplings k(L1,L2) and initial values (C1.ic)"
)
IDEAL = " is of ideally coupled inductors, by which runs of the method implicit alone have gradients"


class Stepped(NamedTuple):
    """The numbers of a problem with an imaginary step of one of them: imaginary part / ``step`` is the derivative.

    Attributes
    ----------
    step : float
    value : (m,) complex array
        As `Parts.value`.
    coupling : (m, m) complex array or None
        As `Parts.coupling`.
    rows : (sources, s) complex array
        As `Problem.rows`.
    ohms, thresholds : (2, switches) complex arrays
        Closed and open, Ω; on and off, V or A.
    initial : (q,) complex array
        Capacitor voltages and inductor currents that the beginning states, V and A.
    held : dict of str to complex
        What ``.ic`` holds.
    """

    step: float
    value: np.ndarray
    coupling: np.ndarray | None
    rows: np.ndarray
    ohms: np.ndarray
    thresholds: np.ndarray
    initial: np.ndarray
    held: dict[str, complex]


def stepped(origin: Origin, name: str) -> Stepped:
    """The numbers with a step of one.

    Parameters
    ----------
    origin : Origin
    name : str
        An element; a source: the factor on its waveform (a DC source: its value); ``D1.vfwd``, ``S1.vt``,
        ``k(L1,L2)``, ``C1.ic``, ``v(out)`` of a held node.

    Raises
    ------
    UsageError
        Another name, or a number whose change would add or remove a part of the circuit.
    """
    problem = origin.problem
    size = _size(origin, name)
    found = _numbers(origin, STEP * size)
    outer, inner = problem.terminals.circuit, problem.circuit
    couple = COUPLING.fullmatch(name.strip())
    holds = HELD.fullmatch(name.strip())
    if name in outer and outer.element_index(name) not in outer.devices:
        _of_element(problem, found, outer.element_index(name), name)
    elif couple is not None:
        _of_coupling(problem, found, inner.element_index(couple[1]), inner.element_index(couple[2]), name)
    elif holds is not None and holds[1] in origin.held:
        found.held[holds[1]] += 1j * found.step
    elif outer.device_parameter(name) is not None:
        _of_device(problem, found, name)
    else:
        _of_part(origin, found, name)
    return found


def _numbers(origin: Origin, step: float) -> Stepped:
    """All numbers, without a step."""
    problem = origin.problem
    rows, switches = problem.supply(), problem.switches
    coupling = problem.parts.coupling
    return Stepped(
        step,
        problem.parts.value.astype(complex),
        None if coupling is None else coupling.astype(complex),
        problem.rows.astype(complex),
        np.array([[s.on for s in switches], [s.off for s in switches]], dtype=complex).reshape(2, -1),
        np.array([rows.on, rows.off], dtype=complex),
        np.zeros(problem.storing.size, dtype=complex),
        {key: complex(level) for key, level in origin.held.items()},
    )


def _size(origin: Origin, name: str) -> float:
    """What a step is relative to: the number's own size; 1 where it is zero."""
    circuit = origin.problem.terminals.circuit
    if name in circuit:
        value = float(origin.problem.parts.value[circuit.element_index(name)])
        return abs(value) or 1.0
    found = circuit.device_parameter(name)
    if found is not None:
        return abs(circuit.devices[found[0]].parameters().get(found[1], 0.0)) or 1.0
    return 1.0


def _refuse(name: str, why: str = "") -> UsageError:
    return UsageError(f"{name}{why}: {NAMES}")


def _of_element(problem: Problem, found: Stepped, k: int, name: str) -> None:
    sources = problem.sources.tolist()
    if k in sources and problem.circuit.columns()[0][k] in (VOLTAGE, CURRENT):
        check_by_source(problem.waveforms, name)
        _of_source(problem, found, sources.index(k), 1.0, factor=True)
        return
    if problem.ideally_coupled[k]:
        raise _refuse(name, IDEAL)
    usable = k in problem.resistors.tolist() or k in problem.storing.tolist()
    if not usable or k in problem.switched or problem.own.value[k] == 0.0:
        raise _refuse(name, " has no such value")
    found.value[k] += 1j * found.step
    if found.coupling is not None:
        # M = k √(L₁ L₂) with k as it is.
        share = 0.5j * found.step / problem.own.value[k]
        found.coupling[k] *= 1.0 + share
        found.coupling[:, k] *= 1.0 + share


def _of_source(problem: Problem, found: Stepped, row: int, slope: float, factor: bool) -> None:
    """A step of a constant source's value, or of the factor on a waveform."""
    if isinstance(problem.waveforms[row], Constant):
        found.rows[row, -1] += 1j * slope * found.step
    elif factor:
        found.rows[row] *= 1.0 + 1j * found.step


def _of_coupling(problem: Problem, found: Stepped, a: int, b: int, name: str) -> None:
    if problem.ideally_coupled[[a, b]].any():
        raise _refuse(name, IDEAL)
    if found.coupling is None or problem.parts.coupling is None or problem.parts.coupling[a, b] == 0.0:
        raise _refuse(name, " couples nothing")
    step = 1j * found.step * np.sqrt(problem.own.value[a] * problem.own.value[b])
    found.coupling[a, b] += step
    found.coupling[b, a] += step


def _of_device(problem: Problem, found: Stepped, name: str) -> None:
    """A step of a device's parameter: of the values of its parts."""
    circuit = problem.terminals.circuit
    place = circuit.device_parameter(name)
    assert place is not None
    device = circuit.devices[place[0]]
    number = device.parameters().get(place[1])
    slopes = None if number is None else part_slopes(device, place[1], number, 1.0)
    if slopes is None:
        raise _refuse(name, " is not stated, or adds parts to its device")
    sources, resistors = problem.sources.tolist(), problem.resistors.tolist()
    for k, slope in zip(problem.device_parts[place[0]], slopes):
        if slope == 0.0:
            continue
        if k in resistors:
            found.value[k] += 1j * slope * found.step
        elif k in sources and problem.circuit.columns()[0][k] in (VOLTAGE, CURRENT):
            _of_source(problem, found, sources.index(k), slope, factor=False)
        else:
            raise _refuse(name, " is zero, and its change adds a resistance")


def _of_part(origin: Origin, found: Stepped, name: str) -> None:
    """A number of a switch, or an initial value."""
    problem = origin.problem
    element, _, which = name.rpartition(".")
    which = which.lower()
    if element not in problem.circuit:
        raise _refuse(name, " is no number of the circuit")
    k = problem.circuit.element_index(element)
    switched = problem.switched.tolist()
    if k in switched and which in SWITCH:
        place, step = switched.index(k), 1j * found.step
        if which in ("ron", "roff"):
            found.ohms[SWITCH.index(which) - 2, place] += step
        else:
            found.thresholds[:, place] += step * np.array([1.0, 1.0 if which == "vt" else -1.0])
        return
    if which == "ic" and (k in problem.storing or problem.parts.role[k] == Role.WINDING):
        if origin.begins is Beginning.STATED:
            own = np.zeros(problem.parts.role.size)
            own[k] = found.step
            found.initial.imag += problem.states_of(own)[problem.storing]
            return
        named = next((key for key in origin.held if key.lower() == element.lower()), None)
        if named is not None and problem.own.role[k] in (Role.INDUCTOR, Role.WINDING):
            found.held[named] += 1j * found.step
            return
        raise _refuse(name, " has no effect (the run begins at the operating point)")
    raise _refuse(name, " is no number of the circuit")
