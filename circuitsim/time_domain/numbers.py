"""Numbers by which waveforms have gradients: the derivatives of a circuit's data by each of them.

Exact runs take them as imaginary steps of their data (complex-step derivative), implicit ones as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from circuitsim.analysis.parameters import quotient
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import Windings, windings_of
from circuitsim.circuit.elements import CAPACITOR, CURRENT, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.parameters import SWITCH, Parameter, Sort, parameter
from circuitsim.circuit.waveforms import Constant, Waveform
from circuitsim.errors import UsageError
from circuitsim.time_domain.beginning import Start, charged_junctions
from circuitsim.time_domain.formula_sources import check_gradient
from circuitsim.time_domain.mode_rows import Supply
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.tangents import Changes, change_at_rest

STEP = 1e-30
"""Imaginary step; its square is below rounding of any value of a circuit."""
NAMES = (
    "waveforms have gradients by R, C, L (not zero) and sources, by D1.vfwd and the like, by vt, vh, ron and roff of "
    "switches (S1.vt), couplings k(L1,L2) and initial values (C1.ic)"
)


class Directions:
    """The circuit's data, differentiated by p numbers.

    Parameters
    ----------
    circuit : Circuit
    start : Start
        Initial conditions.
    switched : (s,) int array
        Switches.
    waves : mapping of int to Waveform
        Of sources.
    windings : Windings
        Its n coupled inductors.
    names : sequence of str
        Of the first numbers: an element; a source: the factor on its waveform (without one: its value); ``D1.vfwd``,
        ``S1.vt``, ``k(L1,L2)``, ``C1.ic``, ``v(out)`` of a held node. Nothing depends on the others.
    p : int

    Attributes
    ----------
    value : (m, p) float array
        Of elements that are neither devices nor coupled inductors, Ω, F, H, V, A, gains; of sources with a waveform the
        factor on it.
    devices : list
        See `Changes`.
    mutual : (p, n, n) float array
        Of the inductances `Windings.mutual`.
    ohms, thresholds : (2, s, p) float arrays
        Resistances of closed and open switches; their thresholds and hystereses.
    level : (m, p) float array
        Stated initial values.
    held : dict of str to (p,) float array
        Values held by ``.ic``, by name in lower case.

    Raises
    ------
    UsageError
        An unknown name, or a parameter without a gradient.
    """

    def __init__(
        self,
        circuit: Circuit,
        start: Start,
        switched: np.ndarray,
        waves: Mapping[int, Waveform],
        windings: Windings,
        names: Sequence[str],
        p: int,
    ) -> None:
        self.circuit, self.start, self.switched, self.waves = circuit, start, switched.tolist(), waves
        self.windings, self.inductors = windings, windings.inductors.tolist()
        self.value, self.level = np.zeros((2, len(circuit), p))
        self.devices = list[tuple[int, int, np.ndarray]]()
        self.mutual = np.zeros((p, len(self.inductors), len(self.inductors)))
        self.ohms, self.thresholds = np.zeros((2, 2, switched.size, p))
        self.held = {name.lower(): np.zeros(p) for name in start.held}
        for j, name in enumerate(names):
            self._add(j, name)

    def _add(self, j: int, name: str) -> None:
        """Make the number with a name the j-th."""
        number = parameter(self.circuit, name)
        if number is None:
            raise refused(name, "is not a number of the circuit")
        sort, k, key = number.sort, (*number.elements, -1)[0], number.key.lower()
        kind, _, _, given, _ = self.circuit.arrays()
        source = sort is Sort.ELEMENT and (k in self.circuit.laws or kind[k] in (VOLTAGE, CURRENT))
        check_gradient(self.waves.values(), name, source)
        stated, junctions = self.start.point is None, charged_junctions(self.circuit)
        if sort is Sort.ELEMENT:
            self._of_element(j, k, name)
        elif sort is Sort.COUPLING:
            self.mutual[j] = self._of_coupling(number)
        elif sort is Sort.DEVICE:
            self.devices.append((j, k, self._slopes(k, number)))
        elif sort is Sort.SWITCH and k in self.switched:
            which = SWITCH.index(key)
            (self.thresholds if which < 2 else self.ohms)[which % 2, self.switched.index(k), j] = 1.0
        elif sort is Sort.HELD and key in self.held:
            if stated:
                raise refused(name, "is not held in a run with uic, which begins at initial values (C1.ic)")
            self.held[key][j] = 1.0
        elif sort is Sort.INITIAL and ((kind[k] in (CAPACITOR, INDUCTOR) and given[k] > 0.0) or k in junctions):
            element = self.circuit.names[k].lower()
            if stated:
                self.level[k, j] = 1.0
            elif kind[k] == INDUCTOR and element in self.held:
                self.held[element][j] = 1.0
            else:
                raise refused(name, "has no effect (the run begins at the operating point)")
        else:
            raise refused(name, "is not a number of the circuit")

    def _of_element(self, j: int, k: int, name: str) -> None:
        kind, given = self.circuit.arrays().kind[k], self.circuit.arrays().value[k]
        source = kind in (VOLTAGE, CURRENT) or k in self.circuit.laws
        varies = bool(ELEMENTS[kind].parameter) and k not in self.switched and not np.isnan(given)
        if not varies or (given == 0.0 and not source):
            raise refused(name, "has no such value")
        if k not in self.inductors:
            self.value[k, j] = 1.0
            return
        own, mutual = self.inductors.index(k), self.windings.mutual  # M = k √(L₁ L₂) at fixed k
        self.mutual[j, own] = 0.5 * mutual[own] / mutual[own, own]
        self.mutual[j] += self.mutual[j].T

    def _of_coupling(self, number: Parameter) -> np.ndarray:
        """The derivative of the inductances (n, n) by a coupling factor."""
        windings, known = self.windings, self.inductors
        a, b = (known.index(k) if k in known else -1 for k in number.elements)
        if min(a, b) < 0 or a == b or windings.mutual[a, b] == 0.0:
            raise refused(number.name, "couples nothing")
        found = np.zeros(windings.mutual.shape)
        found[a, b] = found[b, a] = np.sqrt(windings.mutual[a, a] * windings.mutual[b, b])
        if not windings.keeps_rank(found):
            raise refused(number.name, "is an ideal coupling: what a smaller one stores has no gradient")
        return found

    def _slopes(self, k: int, number: Parameter) -> np.ndarray:
        """Derivatives of the values of a device's parts; of a smooth device's row."""
        device = self.circuit.devices[k]
        own = device.parameters().get(number.key)
        slopes = None if own is None else quotient(device, number.key, own, 1.0)
        if slopes is None:
            raise refused(number.name, "is not stated, or adds parts to its device")
        return np.array(slopes)

    def initial(self, changes: Changes, before: np.ndarray | None = None) -> np.ndarray:
        """Derivatives of the initial values (m, p): as stated, or at the operating point.

        Parameters
        ----------
        changes : Changes
            Of the circuit whose operating point it is, with the factors on its sources.
        before : (elements,) bool array, optional
            See `change_at_rest`.
        """
        if self.start.point is None:
            return self.level
        value = changes.value.copy()
        for k, wave in self.waves.items():
            value[k] *= wave.value(0.0)
        value[self.switched] = np.where(self.start.closed[:, None], *self.ohms)
        return change_at_rest(self.start, changes._replace(value=value), self.held, before)


def refused(name: str, why: str) -> UsageError:
    """The error of a number without a gradient."""
    return UsageError(f"{name} {why}: {NAMES}")


class ExactDirections(Directions):
    """The data of an exact run, differentiated; see `Directions`.

    Attributes
    ----------
    elementary : (m, p) float array
        Of the elementary elements' values; of sources with a waveform the factor on it.
    steps : list of Supply
        With an imaginary step of one number each: imaginary part / `STEP` is the derivative; without names one without.
    moves : (p,) bool array
        Whether it has one: initial values have none.
    """

    def __init__(self, problem: Problem, start: Start, names: Sequence[str]) -> None:
        self.problem, circuit = problem, problem.terminals.circuit
        waves = {k: w for k, w in zip(problem.sources.tolist(), problem.waveforms) if not isinstance(w, Constant)}
        windings, p = windings_of(problem.circuit, problem.couplings), max(len(names), 1)
        for name in names:
            number = parameter(circuit, name)
            if number is not None and number.key == "" and problem.ideally_coupled[list(number.elements)].any():
                raise refused(name, "is of ideally coupled inductors, by which only implicit runs have gradients")
        super().__init__(circuit, start, problem.switched, waves, windings, names, p)
        self.elementary = np.zeros((problem.parts.value.size, p))
        self.elementary[: len(circuit)] = self.value
        for j, k, slopes in self.devices:
            self.elementary[list(problem.device_parts[k]), j] = slopes
        added = (problem.circuit.arrays().kind == RESISTOR) & (problem.own.value == 0.0)
        for j in np.flatnonzero(self.elementary[: added.size][added].any(axis=0)).tolist():
            raise refused(names[j], "is zero, and its change adds a resistance")
        self.elementary[self.inductors] = np.diagonal(self.mutual, 0, 1, 2).T
        self.steps = [self._step(j) for j in range(p)]
        changes = self.elementary, self.mutual.T, self.ohms, self.thresholds
        self.moves = np.asarray(np.vstack([own.reshape(-1, p) for own in changes]).any(axis=0))

    def _step(self, j: int) -> Supply:
        of, (vt, vh), coupling = (
            self.problem.supply,
            self.thresholds[:, :, j],
            self.problem.parts.coupling.astype(complex),
        )
        change, rows = 1j * STEP * self.elementary[:, j], of.rows.astype(complex)
        for row, k in zip(rows, of.sources.tolist()):
            row += change[k] * (row if k in self.waves else np.eye(row.size)[-1])
        places = np.ix_(self.inductors, self.inductors)
        coupling[places] += np.where(coupling[places] != 0.0, 1j * STEP * self.mutual[j], 0.0)
        parts = of.parts._replace(value=of.parts.value + change, coupling=coupling)
        thresholds = of.thresholds + 1j * STEP * np.array([vt + vh, vt - vh])
        return of._replace(parts=parts, rows=rows, ohms=of.ohms + 1j * STEP * self.ohms[:, :, j], thresholds=thresholds)

    def states(self, before: np.ndarray) -> np.ndarray:
        """Derivatives of the initial states (p, q); ``before`` (elements,): conducting diodes there."""
        level = np.zeros(self.elementary.shape)
        found = self.initial(Changes(self.elementary[: before.size]), before)
        level[: len(found)] = found
        return np.asarray(self.problem.states_of(level)[self.problem.storing].T)


__all__ = ["STEP", "Directions", "ExactDirections"]
