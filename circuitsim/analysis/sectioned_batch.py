"""Batches of circuits whose control graph has no loop: section by section, each a convex circuit of its own.

Forwards, a section's sources are affine in the potentials of those before it. A nudge goes backwards: the difference
that it makes to ∂E/∂u of a section's sources u, times the gains, is the nudge of the sections that control them. To
first order in the nudge that is the chain rule (Scellier & Mishra 2023 for buffers between passive networks; Nest &
Ernoult 2024, Theorem 3.1, for chains of energy functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution
from circuitsim.analysis.controlled import PreparedControlled, prepared_controlled
from circuitsim.analysis.controlled_batch import ControlledBatch
from circuitsim.analysis.sectioned import outside, section_circuit
from circuitsim.circuit import GROUND
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Quantity
from circuitsim.controlled.sections import Hold, Section, Sections, sensors
from circuitsim.errors import UsageError

Affine = dict[int, float]
"""Coefficients: −1 − k of input k, the node's number of a section's node, n_nodes + j of sensor j (the current of a
voltage source in a section); `CONSTANT` of one."""

CONSTANT = 1 << 62


class Part(NamedTuple):
    """One section, as a circuit of independent sources.

    Attributes
    ----------
    nodes, elements : int arrays
        Of the whole circuit.
    inside : (nodes,) int array
        The nodes in the section's own circuit.
    solver : BatchSolver
        Its inputs: elements that change from sample to sample, then the held nodes around it; its outputs: all nodes
        against ground.
    changing : (k,) int array
        Elements of the whole circuit among its inputs.
    around : (h,) int array
        Held nodes of the whole circuit among its inputs.
    is_voltage : (k + h,) bool array
        Which inputs are voltages.
    sensed : (s,) int array
        Which sensors, by their number in the circuit, are in the section.
    sensing : (s,) int array
        Their places among the inputs.
    """

    nodes: np.ndarray
    elements: np.ndarray
    inside: np.ndarray
    solver: Any
    changing: np.ndarray
    around: np.ndarray
    is_voltage: np.ndarray
    sensed: np.ndarray
    sensing: np.ndarray


class Map(NamedTuple):
    """Affine functions: constant + inputs · x + nodes · potentials at ``places``."""

    constant: np.ndarray
    of_input: np.ndarray
    places: np.ndarray
    of_node: np.ndarray

    def __call__(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(batch, rows) values for inputs (batch, k), potentials and currents of sensors (batch, n_nodes + sensors)."""
        return np.asarray(self.constant + x @ self.of_input.T + v[:, self.places] @ self.of_node.T)


class Maps(NamedTuple):
    """What follows from gains and source values: inputs of each part, held potentials, currents of sources between held
    nodes, outputs."""

    parts: tuple[Map, ...]
    held: Map
    between: Map
    outputs: Map


@dataclass(frozen=True, eq=False, repr=False)
class SectionedBatch(ControlledBatch):
    """A circuit whose control graph has no loop, ready for batches with nudges; stands in for `BatchSolver`.

    Attributes
    ----------
    parts : tuple of Part
        Each behind those that control it.
    between : (c,) int array
        Sources of current between held nodes.
    sensors : (s,) int array
        Voltage sources whose currents are controls.
    maps : Maps
    """

    parts: tuple[Part, ...]
    between: np.ndarray
    sensors: np.ndarray
    maps: Maps

    def with_values(self, values: np.ndarray | Mapping[str, float]) -> SectionedBatch:
        """The same structure with other element values: all in an array (Ω, V, A, gains), or some by name."""
        circuit = self.circuit
        changed = circuit.with_values(values) if isinstance(values, Mapping) else circuit.with_column(values)
        value = changed.arrays().value
        parts = []
        for part in self.parts:
            own = part.solver.circuit.arrays().value.copy()
            own[: part.elements.size] = np.where(np.isin(part.elements, part.changing), 0.0, value[part.elements])
            parts.append(part._replace(solver=part.solver.with_values(own)))
        ready = prepared_controlled(changed, self.ready.tolerance)
        made = replace(self, ready=ready, parts=tuple(parts))
        inside = np.concatenate([p.elements[~np.isin(p.elements, p.changing)] for p in self.parts])
        differs = ~((value == circuit.arrays().value) | np.isnan(value))
        differs[inside] = False
        return replace(made, maps=_maps(made, _sections(ready))) if differs.any() else made

    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch; see `BatchSolver.solve`. ``start`` changes nothing.

        With a nudge each section is nudged while its sources keep the values that they have without.

        Raises
        ------
        UsageError
            A nudge by a conductance: sections are nudged by currents.
        """
        if stiffness:
            raise UsageError(
                "a circuit with buffers is nudged by constant currents: choose that nudge (--nudge constant), or "
                "implicit differentiation (--method implicit)"
            )
        rows = self.rows(values, injected)
        v, found = self._forward(rows, threads)
        free = self._whole(rows, v, found)
        if injected is None or not np.any(injected):
            return free
        nudged, found, at_input = self._backward(rows, v, found, -np.asarray(injected), threads)
        # Held nodes stay where they are, what holds them carries what it did; the derivative by a voltage input is
        # minus its current.
        current = free.currents.copy()
        voltage = self.circuit.arrays().kind[self.inputs] == VOLTAGE
        current[:, self.inputs[voltage]] -= at_input[:, voltage]
        return self._whole(rows, nudged, found, replace(free, currents=current))

    def _forward(self, x: np.ndarray, threads: int | None) -> tuple[np.ndarray, list[BatchSolution]]:
        """Potentials of the sections' nodes, then currents of sensors; the sections' solutions."""
        v, found = np.zeros((len(x), self.circuit.arrays().n_nodes + self.sensors.size)), []
        for part, given in zip(self.parts, self.maps.parts):
            one = part.solver.solve(given(x, v), threads=threads)
            self._known(v, part, one)
            found.append(one)
        return v, found

    def _known(self, v: np.ndarray, part: Part, one: BatchSolution) -> None:
        """Note the potentials and the sensors' currents of a section."""
        v[:, part.nodes] = one.voltages[:, part.inside]
        v[:, self.circuit.arrays().n_nodes + part.sensed] = one.currents[:, part.solver.inputs[part.sensing]]

    def _backward(
        self, x: np.ndarray, free: np.ndarray, solutions: list[BatchSolution], pull: np.ndarray, threads: int | None
    ) -> tuple[np.ndarray, list[BatchSolution], np.ndarray]:
        """Nudged potentials and solutions, and the derivative of the nudged energies by the inputs, less the free one.

        ``pull`` is the derivative of the tilt by the outputs (batch, outputs). A current of a sensor is tilted by a
        voltage in series with it, since ∂E/∂u = −i.
        """
        n = self.circuit.arrays().n_nodes
        v, found = free.copy(), list(solutions)
        at_node = np.zeros_like(free)
        outputs = self.maps.outputs
        at_node[:, outputs.places] += pull @ outputs.of_node
        at_input = pull @ outputs.of_input
        for k in reversed(range(len(self.parts))):
            part, given = self.parts[k], self.maps.parts[k]
            wanted, in_series = at_node[:, part.nodes], at_node[:, n + part.sensed]
            if not wanted.any() and not in_series.any():
                continue
            rows = given(x, free)
            rows[:, part.sensing] -= in_series
            one = part.solver.solve(rows, injected=-wanted, start=solutions[k], threads=threads)
            self._known(v, part, one)
            found[k] = one
            change = self._input_change(part, one, solutions[k])
            at_node[:, given.places] += change @ given.of_node
            at_input += change @ given.of_input
        return v, found, at_input

    def _input_change(self, part: Part, one: BatchSolution, other: BatchSolution) -> np.ndarray:
        """(batch, inputs) ∂E/∂u at one state less that at the other."""
        arrays, places = part.solver.circuit.arrays(), part.solver.inputs
        i = one.currents[:, places] - other.currents[:, places]
        v = one.voltages - other.voltages
        return np.where(part.is_voltage, -i, v[:, arrays.first[places]] - v[:, arrays.second[places]])

    def _whole(
        self, x: np.ndarray, v: np.ndarray, found: list[BatchSolution], free: BatchSolution | None = None
    ) -> BatchSolution:
        """The solution of the whole circuit; held potentials, and currents of what holds them, from ``free`` if it is
        given."""
        circuit, count, v = self.circuit, len(x), v.copy()
        kind, first, second, value, n = circuit.arrays()
        holds = [step for step in _sections(self.ready).steps if isinstance(step, Hold)]
        at = [hold.node for hold in holds]
        v[:, at] = self.maps.held(x, v) if free is None else free.voltages[:, at]
        current, closed = np.zeros((count, kind.size)), np.zeros((count, kind.size), dtype=bool)
        ohmic = (kind == RESISTOR) & (value != 0.0)
        current[:, ohmic] = (v[:, first[ohmic]] - v[:, second[ohmic]]) / value[ohmic]
        current[:, self.between] = self.maps.between(x, v)
        relative, iterations = np.zeros(count), np.zeros(count, dtype=np.int64)
        for part, one in zip(self.parts, found):
            current[:, part.elements] = one.currents[:, : part.elements.size]
            closed[:, part.elements[kind[part.elements] == DIODE]] = one.closed
            relative, iterations = np.maximum(relative, one.relative), np.maximum(iterations, one.iterations)
        net = np.zeros((n, count))
        np.add.at(net, first, current.T)
        np.subtract.at(net, second, current.T)
        for hold in reversed(holds):
            current[:, hold.element] = -hold.sign * net[hold.node]
            net[hold.other] += net[hold.node]
        if free is not None:
            at = [hold.element for hold in holds]
            current[:, at] = free.currents[:, at]
        v = v[:, :n]
        output = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        certified = np.logical_and.reduce([one.certified for one in found])
        return BatchSolution(
            circuit, v, current, closed[:, kind == DIODE], relative, certified, output, iterations, 0.0
        )

    def stiffness_limit(self) -> float:
        """The least of the sections' limits, S: what a nudge is small against."""
        return min(float(part.solver.stiffness_limit()) for part in self.parts)


def sectioned_batch(ready: ControlledBatch, batched: Callable[..., Any]) -> ControlledBatch:
    """The batch solver section by section where that is possible, else ``ready`` itself.

    It needs controls by voltages, or by currents of voltage sources, without a loop, and no diode between held nodes;
    ``batched`` makes the batch solver of a section.
    """
    found, circuit = ready.ready.sections, ready.circuit
    sensing = np.array(sensors(circuit.laws), dtype=np.int64)
    if found is None or any(k in circuit.laws or circuit.arrays().kind[k] != VOLTAGE for k in sensing.tolist()):
        return ready
    held = {GROUND, *(step.node for step in found.steps if isinstance(step, Hold))}
    kind, first, second, _, _ = circuit.arrays()
    diodes = np.flatnonzero(kind == DIODE).tolist()
    if any(int(first[k]) in held and int(second[k]) in held for k in diodes):
        return ready
    parts = tuple(_part(ready, step, sensing.tolist(), batched) for step in found.steps if isinstance(step, Section))
    if not parts:
        return ready
    current = kind == CURRENT
    for k, law in circuit.laws.items():
        current[k] = law.quantity is Quantity.CURRENT
    current[np.concatenate([part.elements for part in parts])] = False
    empty = Map(np.zeros(0), np.zeros((0, 0)), np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
    made = SectionedBatch(
        ready.ready,
        ready.inputs,
        ready.outputs,
        parts,
        np.flatnonzero(current),
        sensing,
        Maps((), empty, empty, empty),
    )
    return replace(made, maps=_maps(made, found))


def _sections(ready: PreparedControlled) -> Sections:
    found = ready.sections
    assert found is not None
    return found


def _part(ready: ControlledBatch, step: Section, sensing: list[int], batched: Callable[..., Any]) -> Part:
    """The circuit of a section with its batch solver."""
    circuit, names, value = ready.circuit, ready.circuit.node_names, ready.circuit.arrays().value
    given = {*circuit.laws, *ready.inputs.tolist(), *sensing}
    changing = [k for k in step.elements.tolist() if k in given]
    made, around = section_circuit(circuit, step, lambda k: 0.0 if k in given else float(value[k]), lambda node: 0.0)
    inputs = [circuit.names[k] for k in changing] + [outside(names[node]) for node in around]
    outputs = [(names[node], "0") for node in step.nodes.tolist()]
    solver = batched(made, inputs, outputs, tolerance=ready.ready.tolerance)
    is_voltage = made.arrays().kind[[made.element_index(name) for name in inputs]] == VOLTAGE
    places = np.array([made.node_index(names[node]) for node in step.nodes.tolist()], dtype=np.int64)
    return Part(
        step.nodes,
        step.elements,
        places,
        solver,
        np.array(changing, dtype=np.int64),
        np.array(around, dtype=np.int64),
        is_voltage,
        np.array([j for j, k in enumerate(sensing) if k in changing], dtype=np.int64),
        np.array([changing.index(k) for k in sensing if k in changing], dtype=np.int64),
    )


def _maps(batch: SectionedBatch, found: Sections) -> Maps:
    """The affine functions at the circuit's values."""
    circuit, count = batch.circuit, batch.inputs.size
    kind, _, _, value, _ = circuit.arrays()
    fed = {int(k): place for place, k in enumerate(batch.inputs.tolist())}
    held: dict[int, Affine] = {GROUND: {}}
    sensor = {k: circuit.arrays().n_nodes + j for j, k in enumerate(batch.sensors.tolist())}

    def at(node: int) -> Affine:
        return held.get(node, {node: 1.0})

    def source(k: int) -> Affine:
        law = circuit.laws.get(k)
        if law is None:
            own = {-1 - fed[k]: 1.0} if k in fed else {CONSTANT: float(value[k])}
            return own if kind[k] in (VOLTAGE, CURRENT) else {}
        gain, total = 1.0 if np.isnan(value[k]) else float(value[k]), {CONSTANT: law.constant}
        for share, plus, minus in law.voltages:
            _add(total, at(plus), gain * share)
            _add(total, at(minus), -gain * share)
        for share, element in law.currents:
            _add(total, {sensor[element]: 1.0}, gain * share)
        return total

    inputs = []
    order = iter(batch.parts)
    for step in found.steps:
        if isinstance(step, Hold):
            own = dict(at(step.other))
            _add(own, source(step.element), step.sign)
            held[step.node] = own
        else:
            part = next(order)
            rows = [source(k) for k in part.changing.tolist()] + [at(node) for node in part.around.tolist()]
            inputs.append(_map(rows, count))
    outputs = []
    for plus, minus in batch.outputs.tolist():
        own = dict(at(plus))
        _add(own, at(minus), -1.0)
        outputs.append(own)
    nodes = [step.node for step in found.steps if isinstance(step, Hold)]
    between = _map([source(k) for k in batch.between.tolist()], count)
    return Maps(tuple(inputs), _map([held[node] for node in nodes], count), between, _map(outputs, count))


def _add(total: Affine, other: Affine, share: float) -> None:
    """Add a share of another function."""
    for key, number in other.items():
        total[key] = total.get(key, 0.0) + share * number


def _map(rows: Sequence[Affine], count: int) -> Map:
    """Rows as arrays."""
    nodes = sorted({key for row in rows for key in row if 0 <= key < CONSTANT})
    place = {node: k for k, node in enumerate(nodes)}
    constant, of_input, of_node = (np.zeros(len(rows)), np.zeros((len(rows), count)), np.zeros((len(rows), len(nodes))))
    for r, row in enumerate(rows):
        for key, number in row.items():
            if key == CONSTANT:
                constant[r] = number
            elif key < 0:
                of_input[r, -1 - key] = number
            else:
                of_node[r, place[key]] = number
    return Map(constant, of_input, np.array(nodes, dtype=np.int64), of_node)


__all__ = ["SectionedBatch", "sectioned_batch"]
