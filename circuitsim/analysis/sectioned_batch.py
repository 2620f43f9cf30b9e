"""Batches of circuits with an acyclic control graph: section by section, each a convex circuit.

In the forward pass, a section's sources are affine in the potentials of earlier ones. A nudge is propagated backwards:
the change of ∂E/∂u of a section's sources u, times the gains, is the nudge of the sections that control them. To first
order in the nudge this is the chain rule (Scellier & Mishra 2023 for buffers between passive networks; Nest & Ernoult
2024, Theorem 3.1, for chains of energy functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution, samples_of
from circuitsim.analysis.controlled import PreparedControlled, prepared_controlled
from circuitsim.analysis.controlled_batch import ControlledBatch
from circuitsim.analysis.sectioned import outside, section_circuit
from circuitsim.circuit import GROUND
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.controlled.sections import Hold, Section, Sections, sensors
from circuitsim.errors import UsageError


class Part(NamedTuple):
    """One section, as a circuit of independent sources.

    Attributes
    ----------
    nodes, elements : int arrays
        Of the whole circuit.
    inside : (nodes,) int array
        The nodes in the section's own circuit.
    solver : BatchSolver
        Its inputs: elements that vary by sample, then the held nodes around it; its outputs: all nodes relative to
        ground.
    changing : (k,) int array
        Elements of the whole circuit among its inputs.
    around : (h,) int array
        Held nodes of the whole circuit among its inputs.
    is_voltage : (k + h,) bool array
        Which inputs are voltages.
    sensed : (s,) int array
        Numbers of the sensors in the section.
    sensing : (s,) int array
        Their positions among the inputs.
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


@dataclass(frozen=True, eq=False, repr=False)
class SectionedBatch(ControlledBatch):
    """A circuit with an acyclic control graph prepared for batches with nudges; same interface as `BatchSolver`.

    Attributes
    ----------
    parts : tuple of Part
        In topological order.
    sensors : (s,) int array
        Voltage sources with controlling currents.
    """

    parts: tuple[Part, ...] = ()
    sensors: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def _controls(self) -> Any:
        """Sparse matrix (m, n_nodes + sensors) from potentials and sensor currents to controlled source values."""
        from scipy.sparse import csr_array

        arrays, laws = self.circuit.arrays(), self.ready.laws
        gain = arrays.value[laws.element]
        gain = np.where(np.isnan(gain), 1.0, gain)
        by_voltage, by_current = np.repeat(np.arange(gain.size), np.diff(laws.voltage_ends)), laws.owners()
        share = gain[by_voltage] * laws.voltage_share
        entries = np.concatenate([share, -share, gain[by_current] * laws.current_share])
        rows = laws.element[np.concatenate([by_voltage, by_voltage, by_current])]
        sensing = arrays.n_nodes + np.searchsorted(self.sensors, laws.control)
        columns = np.concatenate([laws.plus, laws.minus, sensing])
        return csr_array((entries, (rows, columns)), (arrays.kind.size, arrays.n_nodes + self.sensors.size))

    def _given(self, x: np.ndarray) -> np.ndarray:
        """(batch, m) values of sources without the contributions of controls."""
        kind, _, _, value, _ = self.circuit.arrays()
        own = np.where((kind == VOLTAGE) | (kind == CURRENT), value, 0.0)
        own[self.ready.laws.element] = self.ready.laws.constant
        given = np.tile(own, (len(x), 1))
        given[:, self.inputs] = x
        return given

    def _values(self, given: np.ndarray, y: np.ndarray, elements: np.ndarray) -> np.ndarray:
        """(batch, k) values of sources, with the contributions of controls."""
        return np.asarray(given[:, elements] + (self._controls[elements] @ y.T).T)

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
        return replace(self, ready=prepared_controlled(changed, self.ready.tolerance), parts=tuple(parts))

    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch; see `BatchSolver.solve`. ``start`` has no effect.

        With a nudge each section is nudged at the source values of the free state.

        Raises
        ------
        UsageError
            A nudge by a conductance; sections are nudged by currents.
        """
        if stiffness:
            raise UsageError(
                "a circuit with buffers needs the constant nudge (--nudge constant), or implicit differentiation "
                "(--method implicit)"
            )
        rows, injected = samples_of(self.circuit.arrays().value[self.inputs], len(self.outputs), values, injected)
        v, found = self._forward(rows, threads)
        free = self._whole(rows, v, found)
        if not injected.any():
            return free
        nudged, found, at_input = self._backward(rows, v, found, -injected, threads)
        # Held nodes and the currents of their holders keep their values; the derivative by a voltage input is minus its
        # current.
        current = free.currents.copy()
        voltage = self.circuit.arrays().kind[self.inputs] == VOLTAGE
        current[:, self.inputs[voltage]] -= at_input[:, voltage]
        return self._whole(rows, nudged, found, replace(free, currents=current))

    def _forward(self, x: np.ndarray, threads: int | None) -> tuple[np.ndarray, list[BatchSolution]]:
        """Potentials of all nodes, then sensor currents; the sections' solutions."""
        given, found, parts = self._given(x), list[BatchSolution](), iter(self.parts)
        y = np.zeros((len(x), self.circuit.arrays().n_nodes + self.sensors.size))
        for step in _sections(self.ready).steps:
            if isinstance(step, Hold):
                volts = self._values(given, y, np.array([step.element]))[:, 0]
                y[:, step.node] = y[:, step.other] + step.sign * volts
                continue
            part = next(parts)
            one = part.solver.solve(self._rows(part, given, y), threads=threads)
            self._known(y, part, one)
            found.append(one)
        return y, found

    def _rows(self, part: Part, given: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(batch, inputs) of a section."""
        return np.concatenate([self._values(given, y, part.changing), y[:, part.around]], axis=1)

    def _known(self, v: np.ndarray, part: Part, one: BatchSolution) -> None:
        """Store the potentials and sensor currents of a section."""
        v[:, part.nodes] = one.voltages[:, part.inside]
        v[:, self.circuit.arrays().n_nodes + part.sensed] = one.currents[:, part.solver.inputs[part.sensing]]

    def _backward(
        self, x: np.ndarray, free: np.ndarray, solutions: list[BatchSolution], pull: np.ndarray, threads: int | None
    ) -> tuple[np.ndarray, list[BatchSolution], np.ndarray]:
        """Nudged potentials and solutions, and the derivative of the nudged energies by the inputs, minus the free one.

        ``pull`` is the derivative of the nudge by the outputs (batch, outputs). A sensor current is nudged by a voltage
        in series with it, since ∂E/∂u = −i.
        """
        n, given = self.circuit.arrays().n_nodes, self._given(x)
        y, found, at_node, at_source = free.copy(), list(solutions), np.zeros_like(free), np.zeros_like(given)
        for end, sign in zip(self.outputs.T, (1.0, -1.0)):
            np.add.at(at_node.T, end, sign * pull.T)

        def through(elements: np.ndarray, change: np.ndarray) -> None:
            """Propagate the derivative by the values of sources to their controls."""
            at_source[:, elements] += change
            at_node[:] += (self._controls[elements].T @ change.T).T

        k = len(self.parts)
        for step in reversed(_sections(self.ready).steps):
            if isinstance(step, Hold):
                at_node[:, step.other] += at_node[:, step.node]
                through(np.array([step.element]), step.sign * at_node[:, step.node, None])
                continue
            k -= 1
            part = self.parts[k]
            wanted, in_series = at_node[:, part.nodes], at_node[:, n + part.sensed]
            if not wanted.any() and not in_series.any():
                continue
            rows = self._rows(part, given, free)
            rows[:, part.sensing] -= in_series
            one = part.solver.solve(rows, injected=-wanted, start=solutions[k], threads=threads)
            self._known(y, part, one)
            found[k] = one
            change = self._input_change(part, one, solutions[k])
            at_node[:, part.around] += change[:, part.changing.size :]
            through(part.changing, change[:, : part.changing.size])
        return y, found, at_source[:, self.inputs]

    def _input_change(self, part: Part, one: BatchSolution, other: BatchSolution) -> np.ndarray:
        """(batch, inputs) ∂E/∂u at one state minus that at the other."""
        arrays, places = part.solver.circuit.arrays(), part.solver.inputs
        i = one.currents[:, places] - other.currents[:, places]
        v = one.voltages - other.voltages
        return np.where(part.is_voltage, -i, v[:, arrays.first[places]] - v[:, arrays.second[places]])

    def _whole(
        self, x: np.ndarray, v: np.ndarray, found: list[BatchSolution], free: BatchSolution | None = None
    ) -> BatchSolution:
        """The solution of the whole circuit; held potentials, and currents of their holders, from ``free`` if given."""
        circuit, count = self.circuit, len(x)
        kind, first, second, value, n = circuit.arrays()
        holds = [step for step in _sections(self.ready).steps if isinstance(step, Hold)]
        current, closed = np.zeros((count, kind.size)), np.zeros((count, kind.size), dtype=bool)
        ohmic = (kind == RESISTOR) & (value != 0.0)
        current[:, ohmic] = (v[:, first[ohmic]] - v[:, second[ohmic]]) / value[ohmic]
        source = kind == CURRENT
        source[self.ready.laws.element] = self.ready.laws.current
        between = np.flatnonzero(source)
        current[:, between] = self._values(self._given(x), v, between)
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
        """The smallest of the sections' limits, S: the scale of a small nudge."""
        return min(float(part.solver.stiffness_limit()) for part in self.parts)


def sectioned_batch(ready: ControlledBatch, batched: Callable[..., Any]) -> ControlledBatch:
    """The section-wise batch solver where applicable, otherwise ``ready`` itself.

    It requires controls by voltages, or by currents of voltage sources, without a loop, and no diode between held
    nodes; ``batched`` makes the batch solver of a section.
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
    return SectionedBatch(ready.ready, ready.inputs, ready.outputs, None, parts, sensing)


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


__all__ = ["SectionedBatch", "sectioned_batch"]
