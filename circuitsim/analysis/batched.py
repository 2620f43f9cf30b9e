"""Choice of the batch solver for a circuit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.newton import smooth_devices
from circuitsim.analysis.sectioned_batch import sectioned_batch
from circuitsim.arguments import NAMES, PAIRS
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.source import analysis
from circuitsim.errors import TopologyError
from circuitsim.netlist.deck import warn_of_switches


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
    made = BatchSolver(whole, float(tolerance), *places_of(whole, inputs, outputs), whole.arrays().value.copy())
    made = sectioned_batch(made) if whole.laws else made
    if not circuit.devices:
        return made
    return made.with_devices(circuit, expansion, smooth_devices(circuit, expansion), False)


def places_of(
    circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Elements of the inputs (k,) and nodes of the outputs (q, 2).

    Raises
    ------
    TopologyError
        Unknown names; inputs that are not independent sources.
    """
    kind = circuit.arrays().kind
    chosen = np.array([circuit.element_index(name) for name in inputs], dtype=np.int64)
    for k in chosen.tolist():
        if kind[k] not in (VOLTAGE, CURRENT):
            raise TopologyError(f"{circuit.names[k]} is not a source: inputs are voltage or current sources")
    pairs = [[circuit.node_index(p), circuit.node_index(q)] for p, q in outputs]
    return chosen, np.array(pairs, dtype=np.int64).reshape(-1, 2)
