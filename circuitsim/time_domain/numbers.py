"""Differentiable parameters of waveforms, each as an imaginary step of the problem's data (complex-step derivative)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.parameters import part_slopes
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.parameters import SWITCH, Parameter, Sort, parameter
from circuitsim.circuit.waveforms import Constant
from circuitsim.errors import UsageError
from circuitsim.time_domain.beginning import Beginning
from circuitsim.time_domain.formula_sources import check_by_source
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import Origin

STEP = 1e-30
"""Imaginary step; its square is below rounding of any value of a circuit."""
NAMES = (
    "waveforms have gradients by R, C, L (not zero) and sources, by D1.vfwd and the like, by vt, vh, ron and roff of "
    "switches (S1.vt), couplings k(L1,L2) and initial values (C1.ic)"
)
IDEAL = " is of ideally coupled inductors, by which runs of the method implicit alone have gradients"


class Stepped(NamedTuple):
    """The data of a problem with an imaginary step of one parameter: imaginary part / `STEP` is the derivative.

    Attributes
    ----------
    value : (m,) complex array
        As `Parts.value`.
    coupling : (m, m) complex array or None
        As `Parts.coupling`.
    rows : (sources, s) complex array
        As `Problem.rows`.
    ohms, thresholds : (2, switches) complex arrays
        Closed and open, Ω; on and off, V or A.
    initial : (q,) complex array
        Initial capacitor voltages and inductor currents, if stated, V and A.
    held : dict of str to complex
        Values held by ``.ic``.
    """

    value: np.ndarray
    coupling: np.ndarray | None
    rows: np.ndarray
    ohms: np.ndarray
    thresholds: np.ndarray
    initial: np.ndarray
    held: dict[str, complex]


def stepped(origin: Origin, name: str) -> Stepped:
    """The data with a step of one parameter.

    Parameters
    ----------
    origin : Origin
    name : str
        An element; a source: the factor on its waveform (a DC source: its value); ``D1.vfwd``, ``S1.vt``,
        ``k(L1,L2)``, ``C1.ic``, ``v(out)`` of a held node.

    Raises
    ------
    UsageError
        An unknown name, or a parameter whose change would add or remove a part of the circuit.
    """
    problem = origin.problem
    found, own = unstepped(origin), parameter(problem.terminals.circuit, name)
    own = own or parameter(problem.circuit, name)  # a part of a device
    if own is None or (own.sort is Sort.HELD and own.key not in origin.start.held):
        raise _refuse(name, " is not a number of the circuit")
    if own.sort is Sort.HELD and origin.start.begins is Beginning.STATED:
        raise _refuse(name, " is not held in a run with uic, which begins at initial values (C1.ic)")
    if own.sort is Sort.HELD:
        found.held[own.key] += 1j * STEP
    elif own.sort is Sort.ELEMENT:
        _of_element(problem, found, own.elements[0], name)
    elif own.sort is Sort.DEVICE:
        _of_device(problem, found, own)
    elif own.sort is Sort.COUPLING:
        _of_coupling(problem, found, own)
    else:
        _of_part(origin, found, own)
    return found


def unstepped(origin: Origin) -> Stepped:
    """All data, without a step."""
    problem = origin.problem
    rows, switches = problem.supply(), problem.switches
    coupling = problem.parts.coupling
    return Stepped(
        problem.parts.value.astype(complex),
        None if coupling is None else coupling.astype(complex),
        problem.rows.astype(complex),
        np.array([[s.on for s in switches], [s.off for s in switches]], dtype=complex).reshape(2, -1),
        np.array([rows.on, rows.off], dtype=complex),
        np.zeros(problem.storing.size, dtype=complex),
        {key: complex(level) for key, level in origin.start.held.items()},
    )


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
    found.value[k] += 1j * STEP
    if found.coupling is not None:
        # M = k √(L₁ L₂) at fixed k.
        share = 0.5j * STEP / problem.own.value[k]
        found.coupling[k] *= 1.0 + share
        found.coupling[:, k] *= 1.0 + share


def _of_source(problem: Problem, found: Stepped, row: int, slope: float, factor: bool) -> None:
    """A step of a constant source's value, or of the factor on a waveform."""
    if isinstance(problem.waveforms[row], Constant):
        found.rows[row, -1] += 1j * slope * STEP
    elif factor:
        found.rows[row] *= 1.0 + 1j * STEP


def _of_coupling(problem: Problem, found: Stepped, own: Parameter) -> None:
    (a, b), name = own.elements, own.name
    if problem.ideally_coupled[[a, b]].any():
        raise _refuse(name, IDEAL)
    if found.coupling is None or problem.parts.coupling is None or problem.parts.coupling[a, b] == 0.0:
        raise _refuse(name, " couples nothing")
    step = 1j * STEP * np.sqrt(problem.own.value[a] * problem.own.value[b])
    found.coupling[a, b] += step
    found.coupling[b, a] += step


def _of_device(problem: Problem, found: Stepped, own: Parameter) -> None:
    """A step of a device's parameter, as steps of its parts' values."""
    (place,), name = own.elements, own.name
    device = problem.terminals.circuit.devices[place]
    slopes = None if own.value != own.value else part_slopes(device, own.key, own.value, 1.0)
    if slopes is None:
        raise _refuse(name, " is not stated, or adds parts to its device")
    sources, resistors = problem.sources.tolist(), problem.resistors.tolist()
    for k, slope in zip(problem.device_parts[place], slopes):
        if slope == 0.0:
            continue
        if k in resistors:
            found.value[k] += 1j * slope * STEP
        elif k in sources and problem.circuit.columns()[0][k] in (VOLTAGE, CURRENT):
            _of_source(problem, found, sources.index(k), slope, factor=False)
        else:
            raise _refuse(name, " is zero, and its change adds a resistance")


def _of_part(origin: Origin, found: Stepped, own: Parameter) -> None:
    """A number of a switch, or an initial voltage or current."""
    problem, (k,) = origin.problem, own.elements
    switched = problem.switched.tolist()
    if own.sort is Sort.SWITCH and k in switched:
        place, which = switched.index(k), SWITCH.index(own.key)
        if which >= 2:
            found.ohms[which - 2, place] += 1j * STEP
        else:
            found.thresholds[:, place] += 1j * STEP * np.array([1.0, (1.0, -1.0)[which]])
    elif own.sort is Sort.INITIAL and (k in problem.storing or problem.parts.role[k] == Role.WINDING):
        element = problem.circuit.names[k].lower()
        named = next((key for key in origin.start.held if key.lower() == element), None)
        if origin.start.begins is Beginning.STATED:
            levels = np.zeros(problem.parts.role.size)
            levels[k] = STEP
            found.initial.imag += problem.states_of(levels)[problem.storing]
        elif named is not None and problem.own.role[k] in (Role.INDUCTOR, Role.WINDING):
            found.held[named] += 1j * STEP
        else:
            raise _refuse(own.name, " has no effect (the run begins at the operating point)")
    else:
        raise _refuse(own.name, " is not a number of the circuit")


__all__ = ["NAMES", "STEP", "Stepped", "stepped", "unstepped"]
