"""Currents of least norm in loops of sources, shorts and conducting diodes.

They are the currents for equal, vanishing wire resistances: the operating point of a circuit in which each element of
the loops is 1 Ω, each diode 1 Ω in series with an ideal diode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.active_set import solve_active_set
from circuitsim.engine.network import network
from circuitsim.engine.tree import RESOLUTION, node_maxima
from circuitsim.kernels import MANY, kernel
from circuitsim.program.components import component_labels, on_cycles
from circuitsim.program.structure import analyse_arrays

LEAK = 1e30
"""Resistance to the reference of each node on loops, relative to an edge's: rounding of the net currents, 1e-33 of the
largest, drops no more there than this current in an edge, and other currents change by 1e-30 of it."""


class WireLoops(NamedTuple):
    """The loops of elements without resistance.

    Attributes
    ----------
    elements : (k,) int array
        Those on loops.
    nodes : (n,) int array
        Their nodes.
    ends : (2, k) int array
        Where they begin and end, as positions in ``nodes``.
    one_way : (k,) bool array
        Which are diodes.
    """

    elements: np.ndarray
    nodes: np.ndarray
    ends: np.ndarray
    one_way: np.ndarray

    @classmethod
    def of(cls, arrays: CircuitArrays, wires: np.ndarray) -> WireLoops:
        """Of the elements ``wires`` (w,)."""
        kind, first, second, _, n = arrays
        own = np.sort(wires[on_cycles(n, first[wires], second[wires])])
        ends, there = np.array((first[own], second[own])), np.zeros(n, dtype=bool)
        there[ends] = True
        return cls(own, np.flatnonzero(there), (np.cumsum(there) - 1)[ends], kind[own] == DIODE)

    def numbered(self, off: np.ndarray) -> np.ndarray:
        """Numbers of the nodes (n,) from 1; 0 for the node with the largest rounding ``off`` in each connected part,
        which takes the residual of the others."""
        number, largest = np.ones(self.nodes.size, dtype=np.int64), np.zeros(self.nodes.size, dtype=np.int64)
        order = np.argsort(-off, kind="stable")[::-1]
        part = component_labels(self.nodes.size, *self.ends)[order]
        largest[part] = order  # the last of each part is assigned
        number[largest[part]] = 0
        return number * np.cumsum(number)

    def need(self, current: np.ndarray) -> np.ndarray:
        """The net current that leaves each of their nodes (n,) with the currents (k,), A."""
        (first, second), n = self.ends, self.nodes.size
        return np.asarray(np.bincount(first, current, n) - np.bincount(second, current, n))

    def least_norm(self, current: np.ndarray) -> np.ndarray:
        """Their currents (k,), A, of least norm with the same sums at the nodes."""
        need = self.need(current)
        both = np.array((need, np.zeros(need.size)))
        return least_norm(self, self.numbered(np.abs(need)), both, current.size > MANY)


def unit_circuit(
    ends: np.ndarray, one_way: np.ndarray, fed: np.ndarray, need: np.ndarray, nodes: int
) -> tuple[np.ndarray, ...]:
    """Kinds, ends and values of the elements with 1 Ω in each edge: resistors, diodes from inner nodes (numbered after
    the ``nodes``), and the currents ``need``, A, out of the nodes ``fed``.

    Edges join the nodes ``ends`` (2, k); those that are ``one_way`` (k,) are diodes.
    """
    d = np.flatnonzero(one_way)
    kind = np.repeat(np.array([RESISTOR, DIODE, CURRENT], np.int8), (one_way.size, d.size, fed.size))
    inner = nodes + np.arange(d.size)
    first = np.concatenate([ends[0], inner, np.zeros_like(fed)])
    second = np.concatenate([ends[1], ends[1, d], fed])
    second[d] = inner
    return kind, first, second, np.concatenate([np.ones(one_way.size), np.full(d.size, np.nan), need])


def least_norm(loops: WireLoops, number: np.ndarray, need: np.ndarray, compiled: bool) -> np.ndarray:
    """Currents of least norm in the loops.

    Where diodes only lead out of a part, a sum rounded to below zero would be infeasible; so the sums are pairs of
    doubles, and `LEAK` takes their rounding.

    Parameters
    ----------
    loops : WireLoops
    number : (n,) int array
        From `WireLoops.numbered`.
    need : (2, n) float array
        Current that leaves each node through the loops, A, as a sum of two doubles.
    compiled : bool
        As in `circuitsim.solvers.linear.NodalPattern`.

    Returns
    -------
    (k,) float array
        A; those of diodes are ≥ 0 up to rounding.
    """
    (first, second), k, n, leaks = loops.ends, loops.elements.size, number.size, np.flatnonzero(number)
    row, fed = np.nonzero((need != 0.0) & (number > 0))
    circuit = unit_circuit(number[loops.ends], loops.one_way, number[fed], need[row, fed], n + 1)
    kind, a, b, value = (
        np.append(column, np.full(leaks.size, more, column.dtype))
        for column, more in zip(circuit, (RESISTOR, 0, number[leaks], LEAK))
    )
    # Nodes merged into ground leave their numbers unused.
    used, ends = np.unique(np.concatenate([[0], a, b]), return_inverse=True)
    arrays = CircuitArrays(kind, ends[1 : a.size + 1], ends[a.size + 1 :], value, used.size)
    net, limit = network(analyse_arrays(arrays, compiled)), 40 + 4 * int(loops.one_way.sum())
    point, _ = solve_active_set(net, np.zeros(0, dtype=np.int64), np.zeros(kind.size), np.zeros(net.n_nodes), limit)
    found, part = point.current[:k].copy(), component_labels(n, first, second)
    largest, at_node = np.zeros((2, n))
    np.maximum.at(largest, part[first], np.abs(found))
    kernel(node_maxima, k)(first, second, found, at_node)
    # Rounding and leaks: against a diode, or all of the currents at a node.
    noise = RESOLUTION * largest[part]
    still = at_node <= noise
    found[still[first] | still[second] | (loops.one_way & (found <= noise[first]))] = 0.0
    return found
