"""Currents in loops of ideal diodes and other elements without resistance, at times between stages.

Such currents are not unique; an operating point has those of least norm, which equal, vanishing wire resistances would
give. They have a breakpoint where a diode of a loop stops carrying, which the dense output of a step cannot represent.
So they are computed from the currents that enter the loops, which it can.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE

CONDUCTS = 1e-9
"""Voltage of a diode, relative to the largest, up to which it may conduct: below the accuracy of any run."""
WEIGHT = 1e5
"""Weight of Kirchhoff's current law in the search for the diodes that carry; afterwards it holds to rounding."""


def least_norm(circuit: Circuit, voltage: np.ndarray, current: np.ndarray) -> None:
    """Replace currents in loops without a resistance by those of least norm in which no diode carries backwards.

    Parameters
    ----------
    circuit : Circuit
    voltage, current : (n, m) float arrays
        Branch voltages, V, and currents, A, at n times; currents are replaced.
    """
    kind, first, second, value, _ = circuit.arrays()
    wires = np.flatnonzero((kind == DIODE) | (kind == VOLTAGE) | ((kind == RESISTOR) & (value == 0.0)))
    wires = wires[_in_loops(first[wires], second[wires])]
    diode = kind[wires] == DIODE
    if not diode.any():
        return
    conducts = ~diode | (np.abs(voltage[:, wires]) <= CONDUCTS * np.abs(voltage).max(initial=0.0))
    patterns, which = np.unique(conducts, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        own = np.flatnonzero(pattern)
        own = own[_in_loops(first[wires[own]], second[wires[own]])]
        if diode[own].any():
            places = wires[own]
            _, ends = np.unique([first[places], second[places]], return_inverse=True)
            start, end = ends.reshape(2, own.size)
            incidence = np.zeros((int(ends.max()) + 1, own.size))
            np.add.at(incidence, (start, np.arange(own.size)), 1.0)
            np.add.at(incidence, (end, np.arange(own.size)), -1.0)
            for t in np.flatnonzero(which.ravel() == k).tolist():
                current[t, places] = _carried(incidence, diode[own], current[t, places])


def _in_loops(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The edges that remain after repeated removal of edges with a leaf."""
    left = first != second
    while left.any():
        degree = np.bincount(np.concatenate([first[left], second[left]]))
        pendant = left.copy()
        pendant[left] = np.minimum(degree[first[left]], degree[second[left]]) < 2
        if not pendant.any():
            break
        left &= ~pendant
    return np.asarray(left)


def _carried(incidence: np.ndarray, diode: np.ndarray, current: np.ndarray) -> np.ndarray:
    """The currents (w,) of least norm with the same sums at the nodes."""
    from scipy.optimize import nnls

    size = np.abs(current).max(initial=0.0)
    if not size > 0.0:
        return current
    entering, backwards = incidence @ current, -incidence[:, ~diode]
    signed = np.hstack([incidence, backwards])
    right = np.append(WEIGHT * entering / size, np.zeros(signed.shape[1]))
    found = nnls(np.vstack([WEIGHT * signed, np.eye(signed.shape[1])]), right)[0]
    carries = ~diode | (found[: diode.size] > CONDUCTS)
    exact = np.zeros(current.size)
    exact[carries] = np.linalg.lstsq(incidence[:, carries], entering, rcond=None)[0]
    return exact
