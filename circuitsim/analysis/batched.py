"""Choice of the batch solver for a circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from circuitsim.analysis.batch import BatchSolution, BatchSolver
from circuitsim.analysis.controlled_batch import ControlledBatch, places_of
from circuitsim.analysis.newton import Smooth, smooth_devices
from circuitsim.analysis.sectioned_batch import sectioned_batch
from circuitsim.analysis.smooth_controlled import SmoothControlled
from circuitsim.arguments import NAMES, PAIRS
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import Expansion, expanded, same_shape
from circuitsim.circuit.source import analysis
from circuitsim.errors import TopologyError
from circuitsim.netlist.deck import warn_of_switches


@analysis(inputs=NAMES, outputs=PAIRS)
def batched(
    circuit: Circuit,
    inputs: Sequence[str] = (),
    outputs: Sequence[tuple[str, str]] = (),
    tolerance: float = TOLERANCE,
) -> BatchSolver | ExpandedBatch:
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
    if circuit.devices:
        expansion = expanded(circuit)
        inner = _elementary(expansion.circuit, inputs, outputs, tolerance)
        smooth = smooth_devices(circuit, expansion)
        return ExpandedBatch(circuit, expansion, with_devices(inner, circuit, expansion, smooth))
    return _elementary(circuit, inputs, outputs, tolerance)


def with_devices(made: BatchSolver, circuit: Circuit, expansion: Expansion, smooth: Smooth | None) -> BatchSolver:
    """The batch solver ``made`` for the elementary elements of a circuit, with smooth devices in place of companion
    models."""
    if smooth is None:
        return made
    if not isinstance(made, ControlledBatch):
        return replace(made, smooth=smooth)
    devices = SmoothControlled(circuit, smooth, expansion, made.ready, made.tolerance)
    own = made.circuit, made.tolerance, made.inputs, made.outputs, made.value, smooth
    return ControlledBatch(*own, devices=devices)


def _elementary(
    circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]], tolerance: float
) -> BatchSolver:
    """`batched` for a circuit of elementary elements."""
    if circuit.amplified and not circuit.laws:
        raise TopologyError("batches need a circuit without amplifiers: see circuit.amplifiers.without_amplifiers")
    own = circuit, float(tolerance), *places_of(circuit, inputs, outputs), circuit.arrays().value.copy()
    return sectioned_batch(ControlledBatch(*own)) if circuit.laws else BatchSolver(*own)


@dataclass(frozen=True, eq=False, repr=False)
class ExpandedBatch:
    """A circuit with devices ready for batches; same interface as `BatchSolver`.

    Currents of devices are those of their parts at the first terminal; ``closed`` of its solutions refers to the ideal
    diodes of the elementary circuit.

    Attributes
    ----------
    circuit : Circuit
    expansion : Expansion
    inner : BatchSolver
        Of the circuit of elementary elements.
    """

    circuit: Circuit
    expansion: Expansion
    inner: BatchSolver

    def with_values(self, values: np.ndarray | Mapping[str, float]) -> ExpandedBatch:
        """The same structure with other element values or device parameters (``D1.vfwd``); see `BatchSolver`."""
        changed = self.circuit.changes(values)
        circuit = self.circuit.with_values(changed)
        for name in [*changed]:
            found = circuit.device_parameter(name)
            if found is not None:
                old, new = (c.devices[found[0]] for c in (self.circuit, circuit))
                if not same_shape(old, new):
                    raise TopologyError(f"{name} changes what the device consists of: make a new batch")
                del changed[name]
                changed |= self.expansion.values(found[0], new)
        smooth = smooth_devices(circuit, self.expansion)
        inner = with_devices(self.inner.with_values(changed), circuit, self.expansion, smooth)
        return ExpandedBatch(circuit, self.expansion, inner)

    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch; see `BatchSolver.solve`."""
        before = None if start is None else self._wide(start)
        found = self.inner.solve(values, injected, stiffness, before, threads)
        voltages, currents = self._own(found.voltages, found.currents)
        return replace(found, circuit=self.circuit, voltages=voltages, currents=currents)

    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Linear response at a solution; see `BatchSolver.adjoint`."""
        return self._own(*self.inner.adjoint(self._wide(solution), cotangent, threads))

    def _wide(self, solution: BatchSolution) -> BatchSolution:
        """A solution in terms of the elementary elements; entries without a counterpart are zero."""
        voltages = np.zeros((len(solution), self.inner.circuit.arrays().n_nodes))
        currents = np.zeros((len(solution), len(self.inner.circuit)))
        voltages[:, : solution.voltages.shape[1]] = solution.voltages
        currents[:, : solution.currents.shape[1]] = solution.currents
        return replace(solution, voltages=voltages, currents=currents)

    def stiffness_limit(self) -> float:
        """See `BatchSolver.stiffness_limit`."""
        return self.inner.stiffness_limit()

    def _own(self, voltages: np.ndarray, currents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of the circuit's own nodes and elements."""
        own = currents[:, : len(self.circuit)].copy()
        for k, device in self.circuit.devices.items():
            places = self.expansion.parts[k]
            own[:, k] = sum(sign * currents[:, places[p]] for p, sign in device.entering(device.expand()))
        return voltages[:, : len(self.circuit.node_names)], own
