"""Derivatives of a mode's matrices by the values of elements: complex steps through the mode's own equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.transient.library import Modes, ordered, ordered_square
from circuitsim.transient.modes import Role, mode_of
from circuitsim.transient.problem import Problem
from circuitsim.transient.waveforms import Constant

STEP = 1e-30
"""Imaginary step against the value; its square is nothing beside the value."""


class ModeDerivative(NamedTuple):
    """Derivatives of one mode by one value; see `circuitsim.transient.library.Modes` for the arrays."""

    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    slack: np.ndarray
    storing: np.ndarray


class Parameter(NamedTuple):
    """A value to differentiate by: an element, its step, and its row among the sources (−1: R, C or L)."""

    element: int
    step: float
    source: int


def parameter(problem: Problem, name: str) -> Parameter:
    """The value of an element, or of a source the factor on its waveform (a DC source: its value).

    Raises
    ------
    UsageError
        A diode, a switch, a coupled inductor, a device, a value of zero.
    """
    k = problem.circuit.element_index(name)
    if k in problem.sources.tolist() and k < len(problem.terminals.circuit):
        return Parameter(k, STEP, problem.sources.tolist().index(k))
    coupled = problem.parts.coupling is not None and problem.parts.coupling[k].any()
    usable = k in (*problem.resistors.tolist(), *problem.storing.tolist())
    if not usable or coupled or k in problem.switched or k in problem.inner or problem.own.value[k] == 0.0:
        raise UsageError(f"{name}: waveforms have gradients by values of R, C, L (not coupled, not zero) and sources")
    return Parameter(k, STEP * float(problem.own.value[k]), -1)


def changed(problem: Problem, of: Parameter) -> tuple[np.ndarray, np.ndarray]:
    """Values of the elements and rows of the sources with an imaginary step."""
    value, rows = problem.parts.value.astype(complex), problem.rows.astype(complex)
    if of.source < 0:
        value[of.element] += 1j * of.step
    elif isinstance(problem.waveforms[of.source], Constant):
        rows[of.source, -1] += 1j * of.step
    else:
        rows[of.source] *= 1.0 + 1j * of.step
    return value, rows


def mode_derivative(problem: Problem, modes: Modes, m: int, of: Parameter) -> ModeDerivative:
    """The derivative of mode ``m``."""
    value, rows = changed(problem, of)
    d, s, q = problem.diodes.size, problem.system.shape[0], problem.storing.size
    conducting = modes.conducting[m]
    if problem.switched.size:
        value[problem.switched] = problem.ohms(conducting[d:])
    parts = problem.parts._replace(value=value)
    mode = mode_of(parts, problem.diodes, conducting[:d], problem.sources, problem.system, rows)

    def part(matrix: np.ndarray) -> np.ndarray:
        return ordered(matrix.imag / of.step, mode.states.size, s, q)

    voltage, current = part(mode.voltage), part(mode.current)
    diodes = np.where(conducting[:d, None], current[problem.diodes], -voltage[problem.diodes])
    controls = [
        (current if by_current else voltage)[element] * (1.0 if closed else -1.0)
        for (by_current, element), closed in zip(problem.control.tolist(), conducting[d:].tolist())
    ]
    system = ordered_square(mode._replace(system=mode.system.imag / of.step), s, q)
    slack = np.concatenate([diodes, np.array(controls).reshape(len(controls), s + q)])
    return ModeDerivative(system, voltage, current, slack, part(mode.dependent[problem.storing]))


def operating_point_derivative(problem: Problem, conducting: np.ndarray, of: Parameter) -> np.ndarray:
    """Derivative of the states at time 0 (q,) that are an operating point: inductors are shorts, capacitors open."""
    value, rows = changed(problem, of)
    role, d = problem.parts.role.copy(), problem.diodes.size
    role[problem.parts.role == Role.CAPACITOR], role[problem.parts.role == Role.INDUCTOR] = Role.CURRENT, Role.VOLTAGE
    if problem.switched.size:
        value[problem.switched] = problem.ohms(conducting[d:])
    parts = problem.parts._replace(role=role, value=value)
    mode = mode_of(parts, problem.diodes, conducting[:d], problem.sources, problem.system, rows)
    w = problem.states(0.0)[0]
    capacitors = problem.parts.role[problem.storing] == Role.CAPACITOR
    rows_of = np.where(capacitors[:, None], mode.voltage[problem.storing], mode.current[problem.storing])
    return np.asarray(rows_of.imag @ w / of.step)
