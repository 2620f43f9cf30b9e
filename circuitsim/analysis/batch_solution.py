"""Samples: their source values, and their operating points, one row each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError


def samples_of(
    own: np.ndarray, outputs: int, values: np.ndarray | None, injected: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values of the inputs (samples, k), by default their ``own``, and currents into the outputs (samples, q), A, by
    default none.

    Raises
    ------
    TopologyError
        Arrays of wrong shapes, or numbers that are not finite.
    """
    k = own.size
    count = len(values) if values is not None else 1 if injected is None else len(injected)
    values = np.asarray(np.broadcast_to(own, (count, k)) if values is None else values, dtype=float)
    injected = np.zeros((count, outputs)) if injected is None else np.asarray(injected, dtype=float)
    if values.shape != (count, k) or injected.shape != (count, outputs):
        raise TopologyError(
            f"a batch needs values of shape (samples, {k}) and injected currents of shape (samples, {outputs}), not "
            f"{values.shape} and {injected.shape}"
        )
    if not (np.isfinite(values).all() and np.isfinite(injected).all()):
        raise TopologyError("the values of a batch must be finite")
    return values, injected


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolution:
    """Operating points of many samples, one row each.

    Attributes
    ----------
    voltages : (samples, n_nodes) float array
        Node voltages, V.
    currents : (samples, m) float array
        Branch currents in SPICE signs, A.
    closed : (samples, d) bool array
        Diodes (in the order of the circuit) that conduct: a set without loops.
    relative : (samples,) float array
        Largest relative residual of the circuit's equations on local scales (`circuitsim.certificate`), nudges
        included.
    certified : (samples,) bool array
        Whether that is within the tolerance.
    output : (samples, outputs) float array
        Voltage between the two nodes of each output pair, V.
    iterations : (samples,) int array
        Linear circuits solved; 0 where the engine was needed.
    stiffness : float
        Conductance across the outputs while these were solved, S.
    """

    circuit: Circuit
    voltages: np.ndarray
    currents: np.ndarray
    closed: np.ndarray
    relative: np.ndarray
    certified: np.ndarray
    output: np.ndarray
    iterations: np.ndarray
    stiffness: float

    def __getitem__(self, node: str) -> np.ndarray:
        """Voltages of a node, V (samples,)."""
        return self.voltages[:, self.circuit.node_index(node)]

    def current(self, name: str) -> np.ndarray:
        """Currents of an element, A (samples,)."""
        return self.currents[:, self.circuit.element_index(name)]

    def __len__(self) -> int:
        return len(self.voltages)

    def __repr__(self) -> str:
        return (
            f"BatchSolution of {self.circuit.title!r}: {len(self)} samples, {int(self.certified.sum())} certified, "
            f"worst relative violation {self.relative.max(initial=0.0):.1e}"
        )
