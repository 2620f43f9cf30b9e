"""Linear responses of circuits too large for the small driver: one factor for each set of conducting diodes."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.linear_batch import linear_batch
from circuitsim.analysis.solve import solve
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE


def responses(
    columns: tuple[np.ndarray, np.ndarray, np.ndarray], value: np.ndarray, n_nodes: int, closed: np.ndarray,
    injected: np.ndarray, threads: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Responses to injected currents, all sources at zero.

    Parameters
    ----------
    columns : tuple of (m,) arrays
        kind, first, second; the last q elements are the current sources that inject.
    value : (m,) float array
        Ω for resistors, infinite for those that are absent.
    closed : (samples, d) bool array
        Conducting diodes, a set without loops: sources of 0 V; the others are absent.
    injected : (samples, q) float array
        Currents of the last q elements, A.
    threads : int
        Most threads.

    Returns
    -------
    v : (samples, n_nodes) float array
        Node potentials, V.
    current : (samples, m) float array
        Branch currents, A.

    Raises
    ------
    UnboundedError
        A net current into a part without a path to ground.
    """
    kind, first, second = columns
    v, current = np.zeros((len(closed), n_nodes)), np.zeros((len(closed), kind.size))
    sources = np.arange(kind.size - injected.shape[1], kind.size)
    diode = np.flatnonzero(kind == DIODE)
    sets, which = np.unique(closed, axis=0, return_inverse=True)
    for k, on in enumerate(sets):
        rows = np.flatnonzero(which.ravel() == k)
        kinds, values = kind.copy(), value.copy()
        kinds[diode] = VOLTAGE
        values[(kinds == VOLTAGE) | (kinds == CURRENT)] = 0.0
        there = np.isfinite(values)
        there[diode] = on
        arrays = kinds[there], first[there], second[there], values[there]
        found = _together(arrays, n_nodes, injected[rows], threads)
        if found is None:
            found = _apart(arrays, n_nodes, injected[rows])
        v[rows], current[np.ix_(rows, there)] = found
        assert there[sources].all()
    return v, current


Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _together(
    arrays: Arrays, n_nodes: int, injected: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """All right-hand sides of one circuit; None where it does not suit, or one of them is not certified."""
    made = linear_batch(*arrays, n_nodes)
    if made is None:
        return None
    count, m = len(injected), arrays[0].size
    v, current = np.zeros((count, n_nodes)), np.zeros((count, m))
    worst, relative = np.empty((count, 7)), np.full((count, 8), np.inf)
    place = np.arange(m - injected.shape[1], m)
    made.solve(arrays[3], place, injected, v, current, worst, relative, threads)
    return (v, current) if (relative[:, :7] <= TOLERANCE).all() else None


def _apart(arrays: Arrays, n_nodes: int, injected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One operating point a sample."""
    rows = []
    for amperes in injected:
        value = arrays[3].copy()
        value[value.size - amperes.size :] = amperes
        point = solve(Circuit.from_arrays(*arrays[:3], value, n_nodes))
        rows.append((point.voltages, point.currents))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


__all__ = ["responses"]
