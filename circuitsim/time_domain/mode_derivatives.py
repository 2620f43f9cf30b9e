"""Derivatives of a mode's matrices by the numbers of a circuit: complex steps through the mode's own equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.library import Modes, ordered, ordered_square
from circuitsim.time_domain.modes import Mode, Role, mode_of
from circuitsim.time_domain.numbers import Stepped
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import Origin


class ModeDerivative(NamedTuple):
    """Derivatives of one mode by one number; see `circuitsim.time_domain.library.Modes` for the arrays."""

    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    slack: np.ndarray
    storing: np.ndarray


def _mode(problem: Problem, conducting: np.ndarray, of: Stepped) -> Mode:
    """A mode with complex values."""
    value, d = of.value.copy(), problem.diodes.size
    value[problem.switched] = np.where(conducting[d:], of.ohms[0], of.ohms[1])
    parts = problem.parts._replace(value=value, coupling=of.coupling)
    return mode_of(parts, problem.diodes, conducting[:d], problem.sources, problem.system, of.rows)


def mode_derivative(problem: Problem, modes: Modes, m: int, of: Stepped) -> ModeDerivative:
    """The derivative of mode ``m``."""
    d, s, q = problem.diodes.size, problem.system.shape[0], problem.storing.size
    conducting = modes.conducting[m]
    mode = _mode(problem, conducting, of)

    def part(matrix: np.ndarray) -> np.ndarray:
        return ordered(matrix.imag / of.step, mode.states.size, s, q)

    voltage, current = part(mode.voltage), part(mode.current)
    diodes = np.where(conducting[:d, None], current[problem.diodes], -voltage[problem.diodes])
    controls, levels = np.zeros((len(problem.control), s + q)), of.thresholds.imag / of.step
    for k, ((by_current, element), closed) in enumerate(zip(problem.control.tolist(), conducting[d:].tolist())):
        control = (current if by_current else voltage)[element]
        controls[k] = control if closed else -control
        controls[k, s - 1] += -levels[1, k] if closed else levels[0, k]
    system = ordered_square(mode._replace(system=mode.system.imag / of.step), s, q)
    slack = np.concatenate([diodes, controls])
    return ModeDerivative(system, voltage, current, slack, part(mode.dependent[problem.storing]))


def operating_point_derivative(origin: Origin, conducting: np.ndarray, of: Stepped) -> np.ndarray:
    """Derivative of the states at time 0 (q,) that are an operating point: inductors are shorts, capacitors open.

    Parameters
    ----------
    origin : Origin
    conducting : (d,) bool array
        Diodes and switches.
    of : Stepped
    """
    problem, circuit = origin.problem, origin.problem.circuit
    parts, d = problem.parts, problem.diodes.size
    role, value = parts.role.copy(), of.value.copy()
    role[parts.role == Role.CAPACITOR] = Role.CURRENT
    role[(parts.role == Role.INDUCTOR) | (parts.role == Role.WINDING)] = Role.VOLTAGE
    value[problem.switched] = np.where(conducting[d:], of.ohms[0], of.ohms[1])
    # What .ic holds: a source from a node to ground, or in place of an inductor.
    coils = [(circuit.element_index(name), level) for name, level in of.held.items() if name in circuit]
    nodes = [(circuit.node_index(name), level) for name, level in of.held.items() if name not in circuit]
    role[[k for k, _ in coils]] = Role.CURRENT
    sources = np.array([*problem.sources, *(k for k, _ in coils), *range(role.size, role.size + len(nodes))], np.int64)
    held = np.zeros((len(coils) + len(nodes), of.rows.shape[1]), dtype=complex)
    held[:, -1] = [level for _, level in coils + nodes]
    none = np.zeros(len(nodes))
    parts = parts._replace(
        first=np.append(parts.first, [node for node, _ in nodes]).astype(np.int64),
        second=np.append(parts.second, none).astype(np.int64),
        role=np.append(role, np.full(len(nodes), int(Role.VOLTAGE))),
        value=np.append(value, none),
        coupling=None,
        turns=parts.turns[:0],
    )
    mode = mode_of(parts, problem.diodes, conducting[:d], sources, problem.system, np.concatenate([of.rows, held]))
    capacitors = problem.parts.role[problem.storing] == Role.CAPACITOR
    current = problem.states_of(mode.current[: problem.parts.role.size])
    rows_of = np.where(capacitors[:, None], mode.voltage[problem.storing], current[problem.storing])
    return np.asarray(rows_of.imag @ problem.states(0.0)[0] / of.step)
