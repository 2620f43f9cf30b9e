"""A circuit as the matrices of a quadratic program, written the way a user of a QP solver would write it.

Nothing of circuitsim's own program is used: no super-nodes, no reductions. Unknown are the potentials of all nodes but
ground; every voltage source is an equality, every diode an inequality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix


class Matrices(NamedTuple):
    """min ½ xᵀP x + qᵀx subject to E x = b (voltage sources) and D x ≤ 0 (diodes)."""

    P: csc_matrix
    q: np.ndarray
    E: csc_matrix
    b: np.ndarray
    D: csc_matrix


def incidence(arrays: CircuitArrays, kind: int) -> csc_matrix:
    """One row an element of a kind: +1 at its first node, −1 at its second; columns are the nodes but ground."""
    from scipy.sparse import coo_matrix

    chosen = arrays.kind == kind
    first, second = arrays.first[chosen], arrays.second[chosen]
    rows = np.arange(first.size)
    entries = np.repeat([1.0, -1.0], first.size)
    where = (np.concatenate([rows, rows]), np.concatenate([first, second]))
    return coo_matrix((entries, where), shape=(first.size, arrays.n_nodes)).tocsc()[:, 1:]


def nodal_matrix(arrays: CircuitArrays) -> csc_matrix:
    """The conductance matrix of all nodes but ground, S."""
    from scipy.sparse import diags

    drops = incidence(arrays, RESISTOR)
    conductance = 1.0 / arrays.value[arrays.kind == RESISTOR]
    return (drops.T @ diags(conductance) @ drops).tocsc()


def matrices(arrays: CircuitArrays) -> Matrices:
    """The quadratic program of a circuit."""
    q, b = vectors(arrays, arrays.value)
    return Matrices(nodal_matrix(arrays), q, incidence(arrays, VOLTAGE), b, incidence(arrays, DIODE))


def vectors(arrays: CircuitArrays, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What changes with the source values: q (A) and b (V)."""
    sources = arrays.kind == CURRENT
    current = value[sources]
    n = arrays.n_nodes
    q = np.bincount(arrays.first[sources], current, n) - np.bincount(arrays.second[sources], current, n)
    return q[1:], value[arrays.kind == VOLTAGE]
