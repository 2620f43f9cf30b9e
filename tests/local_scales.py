"""Two operating points of one circuit compared by the local scales of the certificate."""

import numpy as np

import circuitsim


def distance(one: circuitsim.OperatingPoint, other: circuitsim.OperatingPoint) -> float:
    """Largest difference of a unique current against the largest current at its ends, and of a potential against the
    largest one of the circuit."""
    arrays = one.circuit.arrays()
    size = np.maximum(np.abs(one.currents), np.abs(other.currents))
    at_node = np.zeros(arrays.n_nodes)
    np.maximum.at(at_node, arrays.first, size)
    np.maximum.at(at_node, arrays.second, size)
    local = np.maximum(at_node[arrays.first], at_node[arrays.second])
    unique = one.unique & other.unique & (local > 0.0)
    currents = np.abs(one.currents - other.currents)[unique] / local[unique]
    largest = max(np.abs(one.voltages).max(), np.abs(other.voltages).max(), 1e-300)
    return float(max(currents.max(initial=0.0), np.abs(one.voltages - other.voltages).max() / largest))
