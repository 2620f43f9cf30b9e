"""Samples of a large linear circuit: one factor for all right-hand sides (`circuitsim.solvers.linear`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.engine.network import network
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.workspace import Walk
from circuitsim.program.structure import Structure, analyse_arrays
from circuitsim.solvers.linear import Factored, Supernodal

GROUP = 8
"""Samples that a thread takes at least; right-hand sides are solved so many at once."""


class LinearBatch(NamedTuple):
    """A circuit of resistors and sources, factored.

    Attributes
    ----------
    structure : Structure
        Of the circuit's columns.
    factored : Factored
        Its nodal matrix.
    walk : Walk
        Its spanning tree.
    apart : int array
        Resistors whose ends differ in their offsets to their super-nodes.
    """

    structure: Structure
    factored: Factored
    walk: Walk
    apart: np.ndarray

    def potentials(self, value: np.ndarray, inputs: np.ndarray, x: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Potentials of the super-nodes (n + 1, samples), V; fills in the ``offset`` of each node to its super-node
        (samples, n_nodes), V."""
        structure, coordinate, own = self.structure, self.structure.coordinate, value.copy()
        kind, first, second = structure.arrays.kind, structure.arrays.first, structure.arrays.second
        fixed, apart, currents = structure.voltage_edges, self.apart, structure.currents
        volts = kind[fixed] == VOLTAGE
        # What sources and offsets drive, into the ends of few elements.
        driven = np.concatenate([apart, currents])
        ends, place = np.unique(
            np.concatenate([coordinate[first[driven]], coordinate[second[driven]]]), return_inverse=True
        )
        rhs = np.zeros((structure.n + 1, len(x)))
        for s in range(len(x)):
            own[inputs] = x[s]
            offset[s] = structure.forest.offsets(np.where(volts, own[fixed], 0.0))[0]
            drop = offset[s, first[apart]] - offset[s, second[apart]]
            flow = np.concatenate([drop / own[apart], own[currents]])
            rhs[ends, s] = np.bincount(place, np.concatenate([-flow, flow]), ends.size)
        return self.factored.solve(rhs[:-1])

    def solve(
        self, value: np.ndarray, inputs: np.ndarray, x: np.ndarray, v: np.ndarray, current: np.ndarray,
        worst: np.ndarray, relative: np.ndarray, threads: int,
    ) -> None:  # fmt: skip
        """Fill in samples; arguments as of `circuitsim.engine.small.samples.solve_samples`."""
        arrays, count = self.structure.arrays, len(x)
        columns = arrays.kind, arrays.first, arrays.second, value, inputs, x, self.structure.coordinate
        kernel = small_kernel("linear_samples", arrays.n_nodes * count)

        def part(begin: int, end: int) -> None:
            potential = self.potentials(value, inputs, x[begin:end], v[begin:end])
            kernel(self.walk, *columns, potential, begin, end, v, current, worst, relative)

        parts = max(1, min(threads, count // GROUP))
        ends = [-(-count // GROUP) * k // parts * GROUP for k in range(parts)] + [count]
        if parts == 1:
            part(0, count)
            return
        with ThreadPoolExecutor(parts) as pool:
            list(pool.map(part, ends[:-1], ends[1:]))


def linear_batch(
    kind: np.ndarray, first: np.ndarray, second: np.ndarray, value: np.ndarray, n_nodes: int
) -> LinearBatch | None:
    """A linear circuit, given as columns of finite values, factored; None where it has diodes, loops of voltage
    sources, or parts that no path leads to ground from."""
    if (kind == DIODE).any() or not ((kind != CURRENT) | (first != second)).all():
        return None
    structure = analyse_arrays(CircuitArrays(kind, first, second, value, n_nodes))
    if structure.forest.closing.size or structure.references.size or not structure.resistors.size:
        return None
    net = network(structure, direct=True)
    if not net.grounded or not isinstance(net.laplacian, Supernodal):
        return None
    made: Any = small_kernel("spanning_tree", n_nodes)(kind, first, second, value, structure.voltage_edges, n_nodes)
    if not made[1]:
        return None
    root, r = structure.forest.root, structure.resistors
    grouped = np.bincount(root, minlength=n_nodes)[root] > 1
    apart = r[grouped[first[r]] | grouped[second[r]]]
    return LinearBatch(structure, net.laplacian.factor(np.zeros(0, dtype=np.int64)), Walk(*made[0]), apart)
