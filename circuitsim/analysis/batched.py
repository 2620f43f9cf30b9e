"""Batches of circuits with an acyclic control graph: level by level, each a convex circuit.

In the forward pass, a section's sources are affine in voltages and currents of earlier ones. A nudge is propagated
backwards: the change of ∂E/∂u of a section's sources u, times the gains, is the nudge of the sections that control
them. To first order in the nudge this is the chain rule (Scellier & Mishra 2023 for buffers between passive networks;
Nest & Ernoult 2024, Theorem 3.1, for chains of energy functions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.batch import BatchSolution, BatchSolver
from circuitsim.analysis.newton import Smooth, smooth_devices
from circuitsim.arguments import NAMES, PAIRS
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.source import analysis
from circuitsim.controlled.sections import stages
from circuitsim.errors import TopologyError, UsageError
from circuitsim.netlist.deck import warn_of_switches


class Stage(NamedTuple):
    """The elements (k,) up to a level, and the batch solver of their circuit of independent sources. Its inputs are the
    inputs, the controlled elements and the elements whose currents control; the outputs of the last one, which is
    whole, are all nodes relative to ground."""

    elements: np.ndarray
    solver: BatchSolver


@dataclass(frozen=True, eq=False, repr=False)
class SectionedBatch(BatchSolver):
    """A circuit with an acyclic control graph prepared for batches with nudges; same interface as `BatchSolver`.

    Attributes
    ----------
    stages : tuple of Stage
        In ascending order.
    """

    stages: tuple[Stage, ...] = ()

    def _valued(self, values: np.ndarray | Mapping[str, float]) -> SectionedBatch:
        made = super()._valued(values)
        value = made.value.copy()
        value[self.stages[-1].solver.inputs] = 0.0
        stages = (stage._replace(solver=stage.solver.with_values(value[stage.elements])) for stage in self.stages)
        return replace(self, value=made.value, stages=tuple(stages))

    def with_devices(
        self, circuit: Circuit, expansion: Expansion, smooth: Smooth | None, inside: bool = True
    ) -> BatchSolver:
        """See `BatchSolver.with_devices`; sections have no smooth devices."""
        if smooth is None:
            return super().with_devices(circuit, expansion, smooth, inside)
        own = self.circuit, self.tolerance, self.inputs, self.outputs, self.value
        return BatchSolver(*own).with_devices(circuit, expansion, smooth, inside)

    def _solved(
        self,
        rows: np.ndarray,
        injected: np.ndarray,
        stiffness: float,
        start: BatchSolution | None,
        threads: int | None,
    ) -> BatchSolution:
        """With a nudge each section is nudged at the source values of the free state."""
        if stiffness:
            raise UsageError(
                "a circuit with buffers needs the constant nudge (--nudge constant), or implicit differentiation "
                "(--method implicit)"
            )
        (_, first, second, _, n), value = self.circuit.arrays(), self.value
        laws, given, state = self.controlled.laws, np.tile(value, (len(rows), 1)), np.zeros((len(rows), n + value.size))
        controls, whole, relative = laws.controls(value, n), self.stages[-1].solver, np.zeros(len(rows))
        given[:, laws.element] = laws.constant
        given[:, self.inputs] = rows
        for own, solver in self.stages:
            source = given + (controls @ state.T).T
            found = free = solver.solve(source[:, own[solver.inputs]], threads=threads)
            state[:, :n], state[:, n + own] = free.voltages, free.currents
            relative = np.maximum(relative, free.relative)
        pull = np.zeros_like(state)
        for end, sign in zip(self.outputs.T, (-1.0, 1.0)):
            np.add.at(pull.T, end, sign * injected.T)
        # A voltage in series with a controlling current nudges it, since ∂E/∂u = −i.
        nudge, voltage = pull, whole.circuit.arrays().kind == VOLTAGE
        for _ in self.stages if injected.any() else ():
            nudged = (source - nudge[:, n:])[:, whole.inputs]
            found = whole.solve(nudged, injected=-nudge[:, 1:n], start=free, threads=threads)
            relative = np.maximum(relative, found.relative)
            v, i = found.voltages - free.voltages, found.currents - free.currents
            nudge = pull + (controls.T @ np.where(voltage, -i, v[:, first] - v[:, second]).T).T
        output = found.voltages[:, self.outputs[:, 0]] - found.voltages[:, self.outputs[:, 1]]
        certified = relative <= self.tolerance
        return replace(found, circuit=self.circuit, output=output, relative=relative, certified=certified)

    def stiffness_limit(self) -> float:
        """The smallest of the sections' limits, S: the scale of a small nudge."""
        return self.stages[-1].solver.stiffness_limit()


def sectioned_batch(ready: BatchSolver) -> BatchSolver:
    """The batch solver by sections where applicable, otherwise ``ready`` itself.

    It requires controls by voltages, or by currents of voltage sources, without a loop, and no diode between held
    nodes.
    """
    (kind, _, _, _, n), laws, level = ready.circuit.arrays(), ready.controlled.laws, ready.controlled.levels
    if level is None or level.min() < 0 or (kind[laws.control] != VOLTAGE).any():
        return ready
    varies, found = np.zeros(kind.size, dtype=bool), list[Stage]()
    varies[laws.element] = varies[laws.control] = varies[ready.inputs] = True
    nodes = np.stack([np.arange(1, n), np.zeros(n - 1, dtype=np.int64)], axis=1)
    for own, circuit in stages(ready.circuit, level):
        inputs, outputs = np.flatnonzero(varies[own]), nodes if own.size == kind.size else nodes[:0]
        value = circuit.arrays().value.copy()
        value[inputs] = 0.0
        found.append(Stage(own, BatchSolver(circuit, ready.tolerance, inputs, outputs, value)))
    return SectionedBatch(ready.circuit, ready.tolerance, ready.inputs, ready.outputs, ready.value, stages=tuple(found))


@analysis(inputs=NAMES, outputs=PAIRS)
def batched(
    circuit: Circuit,
    inputs: Sequence[str] = (),
    outputs: Sequence[tuple[str, str]] = (),
    tolerance: float = TOLERANCE,
) -> BatchSolver:
    """Analyse a circuit once for batches of samples.

    Parameters
    ----------
    circuit : Circuit
    inputs : sequence of str
        Voltage and current sources whose values vary by sample.
    outputs : sequence of (str, str)
        Node pairs whose voltages are outputs and may be nudged.
    tolerance : float
        Tolerance of every certificate, relative to local scales.

    Raises
    ------
    TopologyError
        Unknown names; inputs that are not sources; a circuit with amplifiers.
    UsageError
        A source defined by a formula would not follow the inputs.
    """
    warn_of_switches(circuit)
    if circuit.dynamics is not None:
        circuit.dynamics.check_changes(inputs)
    expansion = expanded(circuit)
    whole = expansion.circuit
    if whole.amplified and not whole.laws:
        raise TopologyError("batches need a circuit without amplifiers: see circuit.amplifiers.without_amplifiers")
    kind, _, _, value, _ = whole.arrays()
    chosen = np.array([whole.element_index(name) for name in inputs], dtype=np.int64)
    for k in chosen.tolist():
        if kind[k] not in (VOLTAGE, CURRENT):
            raise TopologyError(f"{whole.names[k]} is not a source: inputs are voltage or current sources")
    pairs = [[whole.node_index(p), whole.node_index(q)] for p, q in outputs]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    made = BatchSolver(whole, float(tolerance), chosen, ends, value.copy())
    made = sectioned_batch(made) if whole.laws else made
    if not circuit.devices:
        return made
    return made.with_devices(circuit, expansion, smooth_devices(circuit, expansion), False)
