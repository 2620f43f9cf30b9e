"""Circuit → batch solver, by what the circuit consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.analysis.batch import LARGEST, BatchSolver
from circuitsim.analysis.engine_batch import EngineBatch
from circuitsim.analysis.expanded import ExpandedBatch
from circuitsim.analysis.newton import smooth_devices
from circuitsim.analysis.tangent_batch import TangentBatch
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.single import unpack
from circuitsim.errors import TopologyError
from circuitsim.netlist.deck import warn_of_switches

if TYPE_CHECKING:
    from circuitsim.analysis.controlled_batch import ControlledBatch

UPDATES = 200_000_000
"""Most updates of an elimination for each sample (a tenth of a second): beyond, the engine takes less."""


def batched(
    circuit: Circuit,
    inputs: Sequence[str] = (),
    outputs: Sequence[tuple[str, str]] = (),
    tolerance: float = TOLERANCE,
) -> BatchSolver | ControlledBatch | ExpandedBatch:
    """Analyse a circuit once for batches of samples.

    Parameters
    ----------
    circuit : Circuit
    inputs : sequence of str
        Voltage and current sources whose values each sample brings.
    outputs : sequence of (str, str)
        Node pairs that may be nudged and read.
    tolerance : float
        What every certificate is held to, relative to local scales.

    Raises
    ------
    TopologyError
        Unknown names; inputs that are not sources; a circuit with amplifiers.
    UsageError
        A source by a formula would not follow the inputs.
    """
    warn_of_switches(circuit)
    if circuit.dynamics is not None:
        circuit.dynamics.check_changes(inputs)
    if circuit.devices:
        expansion = expanded(circuit)
        return ExpandedBatch(circuit, expansion, with_tangents(circuit, expansion, inputs, outputs, tolerance))
    return _elementary(circuit, inputs, outputs, tolerance)


def with_tangents(
    circuit: Circuit, expansion: Expansion, inputs: Sequence[str], outputs: Sequence[tuple[str, str]], tolerance: float
) -> BatchSolver | ControlledBatch | TangentBatch:
    """The batch solver of the elementary elements of a circuit with devices; see `batched`."""
    inner, smooth = _elementary(expansion.circuit, inputs, outputs, tolerance), smooth_devices(circuit, expansion)
    if smooth is None:
        return inner
    if isinstance(inner, BatchSolver):
        return TangentBatch(inner, smooth)
    from circuitsim.analysis.smooth_controlled_batch import SmoothControlledBatch

    return SmoothControlledBatch(inner.ready, inner.inputs, inner.outputs, circuit, expansion, smooth)


def _elementary(
    circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]], tolerance: float
) -> BatchSolver | ControlledBatch:
    """`batched` for a circuit of elementary elements."""
    if circuit.laws:
        from circuitsim.analysis.controlled_batch import controlled_batch
        from circuitsim.analysis.sectioned_batch import sectioned_batch

        return sectioned_batch(controlled_batch(circuit, inputs, outputs, tolerance))
    if circuit.amplified:
        raise TopologyError("batches need a circuit without amplifiers: see circuit.amplifiers.without_amplifiers")
    kind, first, second, value, n_nodes = circuit.arrays()
    chosen = np.array([circuit.element_index(name) for name in inputs], dtype=np.int64)
    for k in chosen.tolist():
        if kind[k] not in (VOLTAGE, CURRENT):
            raise TopologyError(f"{circuit.names[k]} is no source: inputs are voltage or current sources")
    pairs = np.array([[circuit.node_index(p), circuit.node_index(q)] for p, q in outputs], dtype=np.int64).reshape(
        -1, 2
    )
    q = len(pairs)
    columns = (
        np.concatenate([kind, np.full(q, RESISTOR), np.full(q, CURRENT)]).astype(np.int8),
        np.concatenate([first, pairs[:, 0], pairs[:, 1]]),
        np.concatenate([second, pairs[:, 1], pairs[:, 0]]),
    )
    plan = None
    if n_nodes <= LARGEST:
        late = np.zeros(n_nodes, dtype=bool)
        late[pairs] = True
        everything = np.concatenate([value, np.full(q, np.inf), np.zeros(q)])
        packed = small_kernel("prepare", n_nodes)(*columns, everything, n_nodes, late, UPDATES)
        plan = unpack(packed) if packed.size else None  # too many updates: the engine solves the samples
    engine = EngineBatch(*columns, n_nodes, float(tolerance))
    return BatchSolver(circuit, float(tolerance), chosen, pairs, plan, columns, value.copy(), engine)
