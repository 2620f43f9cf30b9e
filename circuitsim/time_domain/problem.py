"""The data of a transient analysis: elements by role, the sources' linear systems, switches and couplings.

Piecewise-linear devices consist of elementary elements; their voltages, currents and characteristics are those of their
parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.switching import Switch, Switching, switching_of
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import ideal_windings, mutual_inductances
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.waveforms import Constant, Waveform
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.time_domain.beginning import check_amplifiers, waves_of
from circuitsim.time_domain.mode_kernels import Parts
from circuitsim.time_domain.mode_rows import Supply
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.windows import Fixed

HELD = 1000
"""Maximum number of output times, evenly chosen, at which devices are checked; their parts are checked at all times."""


class Terminals(NamedTuple):
    """How voltages and currents of a circuit follow from those of its elementary elements.

    Attributes
    ----------
    circuit : Circuit
        With devices.
    devices : tuple of int
    drops, flows : tuple of (int array, float array)
        For each device the elementary elements, with signs, whose voltages and currents add up to its own.
    """

    circuit: Circuit
    devices: tuple[int, ...]
    drops: tuple[tuple[np.ndarray, np.ndarray], ...]
    flows: tuple[tuple[np.ndarray, np.ndarray], ...]

    def of_parts(self, voltage: np.ndarray, current: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Branch voltages and currents (n, m) from those of the elementary elements."""
        m = len(self.circuit)
        found = voltage[:, :m], current[:, :m]
        for waves, of, own in ((voltage, self.drops, found[0]), (current, self.flows, found[1])):
            # The first part has the device's position: compute the sums before storing them.
            sums = [waves[:, places] @ signs for places, signs in of]
            for k, column in zip(self.devices, sums):
                own[:, k] = column
        return found

    def hold(self, voltage: np.ndarray, current: np.ndarray, tolerance: float) -> None:
        """Check the devices against their characteristics, independently of their parts.

        Raises
        ------
        ConvergenceError
            A device off its characteristic by more than the tolerance times the largest voltage and current of the run.
        """
        if not self.devices:
            return
        rows = np.unique(np.linspace(0, len(voltage) - 1, HELD).astype(np.int64))
        dv, di = (tolerance * max(waves.max(), -waves.min()) for waves in (voltage, current))
        for k in self.devices:
            device = self.circuit.device_of(self.circuit.names[k])
            for v, i in zip(voltage[rows, k].tolist(), current[rows, k].tolist()):
                if not device.law(v - dv)[0] - di <= i <= device.law(v + dv)[1] + di:
                    raise ConvergenceError(
                        f"{self.circuit.names[k]} is off its I–V curve: {i:.9g} A at {v:.9g} V; use a larger tolerance"
                    )


def terminals_of(circuit: Circuit, expansion: Expansion) -> Terminals:
    """The terminals of a circuit's piecewise-linear devices."""
    first, second = (column.tolist() for column in expansion.circuit.arrays()[1:3])
    start, end = (column.tolist() for column in circuit.arrays()[1:3])
    drops, flows = list[Any](), list[Any]()
    for k, parts in expansion.parts.items():
        path = along(paths_to(end[k], ((p, first[p], second[p]) for p in parts)), start[k])
        for terms, found in ((path, drops), (expansion.carriers[k], flows)):
            found.append((np.array([part for part, _ in terms]), np.array([sign for _, sign in terms])))
    return Terminals(circuit, tuple(circuit.devices), tuple(drops), tuple(flows))


Paths = dict[int, tuple[int, int, float]]
"""For each node joined to an end: the next node on a shortest path, the element, and +1 if it points along it."""


def paths_to(end: int, elements: Iterable[tuple[int, int, int]]) -> Paths:
    """Shortest paths to a node over elements, each with its terminals."""
    around = dict[int, list[tuple[int, int, float]]]()
    for k, a, b in elements:
        around.setdefault(a, []).append((b, k, -1.0))
        around.setdefault(b, []).append((a, k, 1.0))
    found, queue = {end: (end, -1, 0.0)}, [end]
    for here in queue:
        for there, k, sign in around.get(here, ()):
            if there not in found:
                found[there] = (here, k, sign)
                queue.append(there)
    return found


def along(paths: Paths, node: int) -> list[tuple[int, float]]:
    """The elements on the path from a node, with their signs."""
    found = []
    while paths[node][1] >= 0:
        node, k, sign = paths[node]
        found.append((k, sign))
    return found


STATES = 60
"""Maximum number of capacitors and inductors: the cost of matrix exponentials is cubic in it."""
ROLES = {
    RESISTOR: Role.RESISTOR,
    DIODE: Role.BLOCKING,
    VOLTAGE: Role.VOLTAGE,
    CURRENT: Role.CURRENT,
    INDUCTOR: Role.INDUCTOR,
    CAPACITOR: Role.CAPACITOR,
}


class Problem:
    """A circuit with its waveforms, in the form needed by a run.

    Attributes
    ----------
    circuit : Circuit
        Of elementary elements.
    terminals : Terminals
        Of the circuit with devices.
    inner : int array
        Elements that are parts of devices.
    device_parts : dict of int to tuple of int
        Parts of each device.
    own, parts : Parts
        The circuit's elements; `parts` also has a current source of 0 A between the control nodes of each switch.
    diodes, sources, storing, resistors, switched : int arrays
        Elements.
    switching : Switching
    waveforms : list of Waveform
        Of `sources`, then the constant 1 for thresholds.
    system : (s, s) float array
        Generator of all sources' states.
    rows : (sources, s) float array
        Source values over these states.
    """

    def __init__(
        self,
        circuit: Circuit,
        waveforms: Mapping[str, Waveform],
        switches: Mapping[str, Switch],
        couplings: Mapping[tuple[str, str], float],
    ) -> None:
        check_amplifiers(circuit)
        expansion = _expansion(circuit)
        self.terminals = terminals_of(circuit, expansion)
        self.device_parts = expansion.parts
        self.inner = np.array([k for own in expansion.parts.values() for k in own], dtype=np.int64)
        self.circuit = circuit = expansion.circuit
        self.couplings = couplings
        self.own = _parts(circuit, couplings)
        self.switching = switching_of(circuit, switches)
        self.switched = self.switching.places
        self.own.role[self.switched] = Role.RESISTOR
        self.parts, self.control = _with_controls(circuit, self.own, self.switching)
        role = self.own.role
        self.diodes = np.flatnonzero(role == Role.BLOCKING)
        self.sources = np.flatnonzero((role == Role.VOLTAGE) | (role == Role.CURRENT))
        self.storing = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
        self.resistors = np.flatnonzero(role == Role.RESISTOR)
        if self.storing.size > STATES:
            raise UsageError(f"the circuit has {self.storing.size} capacitors and inductors, more than {STATES}")
        self.waveforms: list[Waveform] = [*_of_sources(circuit, self.sources, waveforms), Constant(1.0)]
        ends = np.cumsum([0, *(wave.row.size for wave in self.waveforms)])
        self.system, self.rows = np.zeros((ends[-1], ends[-1])), np.zeros((self.sources.size, ends[-1]))
        for k, wave in enumerate(self.waveforms):
            own = slice(ends[k], ends[k + 1])
            self.system[own, own] = wave.system
            self.rows[k : k + 1, own] = wave.row  # the constant, which is last, has none

    @cached_property
    def decays(self) -> bool:
        """Whether there are no inductors; see `circuitsim.time_domain.decays`."""
        return bool((self.parts.role[self.storing] == Role.CAPACITOR).all())

    @cached_property
    def radius(self) -> float:
        """Largest absolute eigenvalue of the sources' generator, 1/s."""
        return float(np.abs(np.linalg.eigvals(self.system)).max(initial=0.0))

    @property
    def _inner(self) -> np.ndarray:
        """Which elements (m,) are parts of devices."""
        found = np.zeros(self.parts.role.size, dtype=bool)
        found[self.inner] = True
        return found

    @property
    def whole(self) -> np.ndarray:
        """The voltages and currents (2, m) given entirely by decaying parts; see `Decays.whole`."""
        found = np.zeros((2, self.parts.role.size), dtype=bool)
        if self.decays:
            found[0, self.resistors], found[1] = True, True
        return found

    def states(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """States of all sources at a time, and their sizes: (s,) each."""
        found = [wave.states(np.array([time])) for wave in self.waveforms]
        return np.concatenate([state[0] for state, _ in found]), np.concatenate([size[0] for _, size in found])

    def largest(self, sizes: np.ndarray) -> tuple[float, float]:
        """Largest voltage and current of the sources, from their states' sizes (s,); a sine includes its cosine."""
        turns = (self.system != 0.0) & (self.system == -self.system.T)
        values = np.abs(self.rows) @ np.maximum(sizes, np.where(turns, sizes, 0.0).max(axis=1, initial=0.0))
        voltage = self.parts.role[self.sources] == Role.VOLTAGE
        return float(values[voltage].max(initial=0.0)), float(values[~voltage].max(initial=0.0))

    @property
    def inductors(self) -> np.ndarray:
        """Inductors, ideally coupled ones included."""
        return np.flatnonzero((self.own.role == Role.INDUCTOR) | (self.own.role == Role.WINDING))

    def inductance(self) -> np.ndarray:
        """Of `inductors`, with mutual ones (l, l), H."""
        own, chosen = np.zeros(self.own.value.size), self.inductors
        own[chosen] = self.own.value[chosen]
        mutual = mutual_inductances(self.circuit, own, self.couplings)
        whole = np.diag(own) if mutual is None else np.diag(own) + mutual
        return whole[np.ix_(chosen, chosen)]

    def beyond(self, closed: np.ndarray, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
        """How far the controls of switches, closed or not (…, switches), are beyond their thresholds, relative to the
        larger of threshold and control; branch voltages and currents (…, m) include those of the controls."""
        by_current, place = self.control.T
        control = np.where(by_current, current[..., place], voltage[..., place])
        at = self.switching.thresholds(closed)
        wrong = np.maximum(np.where(closed, at - control, control - at), 0.0)
        both = self.switching.thresholds(np.array([[True], [False]]))
        size = np.maximum(np.abs(both).max(axis=0), np.abs(control).max(axis=0, initial=0.0))
        return np.asarray(wrong / np.where(size > 0.0, size, 1.0))

    @cached_property
    def supply(self) -> Supply:
        """The data that modes are computed from."""
        states = np.array([[True], [False]])
        return Supply(
            self.parts,
            self.diodes,
            self.storing,
            self.sources,
            self.resistors,
            self.switched,
            self.system,
            self.rows,
            self.control,
            self.switching.ohms(states),
            self.switching.thresholds(~states),
            not self.decays,
        )

    def fixed(self) -> Fixed:
        """The constant data of the compiled loop."""
        role, inside = self.parts.role, self._inner[self.sources]
        # Voltages blocked or dropped by devices dissipate.
        lossy = np.concatenate([self.resistors, self.sources[inside]])
        return Fixed(
            self.diodes,
            role[self.storing] == Role.CAPACITOR,
            self.storing,
            self.sources,
            self.rows,
            np.abs(self.rows),
            role[self.sources] == Role.VOLTAGE,
            lossy,
            self.sources[~inside],
            self.system,
            self.radius,
            np.abs(self.kept).sum(axis=1),
        )

    def resistances(self) -> tuple[float, float]:
        """Smallest and largest resistance, Ω, except switches and devices; inf and 0 without any."""
        other = self._inner
        other[self.switched] = True
        ohms = self.parts.value[self.resistors[~other[self.resistors]]]
        return float(ohms.min(initial=np.inf)), float(ohms.max(initial=0.0))

    def states_of(self, level: np.ndarray) -> np.ndarray:
        """Capacitor voltages and inductor currents, including windings', from those of all elements: (m,) or (m, s)."""
        found: np.ndarray = level + self.parts.turns.T @ level[self.parts.role == Role.WINDING]
        return found

    @cached_property
    def ideally_coupled(self) -> np.ndarray:
        """Which elements (m,) are ideally coupled inductors."""
        found: np.ndarray = (self.parts.role == Role.WINDING) | (self.parts.turns != 0.0).any(axis=0)
        return found

    def storage(self, value: np.ndarray, coupling: np.ndarray) -> np.ndarray:
        """Capacitances and inductances K (q, q), of elements of these values (m,) and mutual inductances (m, m)."""
        return np.asarray(np.diag(value[self.storing]) + coupling[np.ix_(self.storing, self.storing)])

    @cached_property
    def kept(self) -> np.ndarray:
        """`storage` of the elements."""
        return self.storage(self.parts.value, self.parts.coupling)

    def stored(self, x: np.ndarray) -> float:
        """Energy of capacitor voltages and inductor currents (q,), J."""
        return float(0.5 * x @ self.kept @ x)


def _expansion(circuit: Circuit) -> Expansion:
    """Piecewise-linear devices as ideal diodes, resistors and sources.

    Raises
    ------
    UsageError
        Smooth devices, controlled sources.
    """
    smooth = [k for k, device in circuit.devices.items() if isinstance(device, SmoothDevice)]
    other = [*smooth, *circuit.laws]
    if other:
        raise UsageError(
            f"{circuit.names[min(other)]} has no exact waveforms: only R, C, L, V, I, switches, ideal and "
            "piecewise-linear diodes have (circuitsim tran --method implicit takes other devices, not periodic steady "
            "states; .options diodes=ideal makes junction diodes ideal)"
        )
    return expanded(circuit)


def _parts(circuit: Circuit, couplings: Mapping[tuple[str, str], float]) -> Parts:
    """The elements by role: zero resistances and inductances are sources of 0 V, zero capacitances sources of 0 A."""
    kind, first, second, value, n_nodes = circuit.arrays()
    role = np.array([int(ROLES[k]) for k in kind.tolist()], dtype=np.int64)
    size = np.where(np.isin(kind, (RESISTOR, INDUCTOR, CAPACITOR)), value, 0.0)
    if (size < 0.0).any():
        raise UsageError(f"{circuit.names[int(np.argmin(size))]} is negative: its energy is not bounded below")
    role[(size == 0.0) & ((kind == RESISTOR) | (kind == INDUCTOR))] = Role.VOLTAGE
    role[(size == 0.0) & (kind == CAPACITOR)] = Role.CURRENT
    windings, turns = ideal_windings(circuit, couplings)
    role[windings] = Role.WINDING
    coupling = mutual_inductances(circuit, size, couplings)
    coupling = np.zeros((role.size, role.size)) if coupling is None else coupling
    coupling[windings], coupling[:, windings] = 0.0, 0.0
    # Writable copies, so that the kernels are compiled for one array type only.
    return Parts(n_nodes, first.copy(), second.copy(), role, size, coupling, turns)


def _with_controls(circuit: Circuit, parts: Parts, switching: Switching) -> tuple[Parts, np.ndarray]:
    """The elements with a source of 0 A between the control nodes of each voltage-controlled switch, and the
    controls."""
    control: list[tuple[int, int]] = []
    ends: list[list[int]] = []
    for k, switch in zip(switching.places.tolist(), switching.switches):
        name = circuit.names[k]
        if circuit.arrays().kind[k] != RESISTOR:
            raise UsageError(f"{name} is not a resistor: a switch is a resistor of two values")
        if not (0.0 < switch.on < np.inf and 0.0 < switch.off < np.inf and switch.hysteresis >= 0.0):
            raise UsageError(f"{name}: a switch needs positive resistances and a non-negative hysteresis")
        if isinstance(switch.control, str):
            control.append((1, circuit.element_index(switch.control)))
        else:
            control.append((0, parts.role.size + len(ends)))
            ends.append([circuit.node_index(node) for node in switch.control])
    first, second = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    more = len(ends)
    added = first, second, np.full(more, int(Role.CURRENT)), np.zeros(more)
    first, second, role, value = (np.concatenate(both) for both in zip(parts[1:5], added))
    coupling, turns = np.pad(parts.coupling, (0, more)), np.pad(parts.turns, ((0, 0), (0, more)))
    made = Parts(parts.n_nodes, first, second, role, value, coupling, turns)
    return made, np.array(control, dtype=np.int64).reshape(-1, 2)


def _of_sources(circuit: Circuit, sources: np.ndarray, waveforms: Mapping[str, Waveform]) -> list[Waveform]:
    """The waveforms of all sources; by default their constant values."""
    kind, value = circuit.arrays().kind, circuit.arrays().value
    given = waves_of(circuit, waveforms)
    for k, wave in given.items():
        if wave.what:
            raise UsageError(f"{circuit.names[k]} is {wave.what}: that needs the implicit method")
    own = {k: float(value[k]) if kind[k] in (VOLTAGE, CURRENT) else 0.0 for k in sources.tolist()}
    return [given.get(k, Constant(level)) for k, level in own.items()]
