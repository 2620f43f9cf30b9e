"""Operating points of many samples, one row each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.circuit import Circuit


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
