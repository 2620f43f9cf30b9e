"""Samples of a large linear circuit: one factor for all right-hand sides (`circuitsim.solvers.laplacian`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.compact.kernels import compact
from circuitsim.compact.workspace import Walk
from circuitsim.engine.network import network
from circuitsim.program.structure import Structure, analyse_arrays
from circuitsim.solvers.linear import Factored


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

    def potentials(self, value: np.ndarray) -> np.ndarray:
        """Node potentials, V (samples, n_nodes), for element values (samples, m), Ω, V, A."""
        from circuitsim.solvers import laplacian

        structure, coordinate = self.structure, self.structure.coordinate
        kind, first, second = structure.arrays.kind, structure.arrays.first, structure.arrays.second
        fixed, samples = structure.voltage_edges, len(value)
        offset, rhs = np.zeros((samples, structure.arrays.n_nodes)), np.zeros((samples, structure.n + 1))
        # What sources and offsets drive, into the ends of few elements.
        driven = np.concatenate([self.apart, structure.currents])
        ends = np.concatenate([coordinate[first[driven]], coordinate[second[driven]]])
        for s in range(samples):
            offset[s] = structure.forest.offsets(np.where(kind[fixed] == VOLTAGE, value[s, fixed], 0.0))[0]
            drop = offset[s, first[self.apart]] - offset[s, second[self.apart]]
            flow = np.concatenate([drop / value[s, self.apart], value[s, structure.currents]])
            rhs[s] = np.bincount(ends, np.concatenate([-flow, flow]), structure.n + 1)
        x = np.zeros((structure.n + 1, samples))
        x[:-1] = laplacian.solve(self.factored.raw, rhs[:, :-1].T / self.factored.laplacian.unit)[0]
        return np.take(np.ascontiguousarray(x.T), coordinate, axis=1) + offset

    def solve(
        self, value: np.ndarray, inputs: np.ndarray, x: np.ndarray, v: np.ndarray, current: np.ndarray,
        worst: np.ndarray, relative: np.ndarray, threads: int,
    ) -> None:  # fmt: skip
        """Fill in samples; arguments as of `circuitsim.compact.samples.solve_samples`."""
        arrays, count = self.structure.arrays, len(x)
        columns = arrays.kind, arrays.first, arrays.second, value, inputs, x
        kernel = compact("linear_samples", arrays.n_nodes * count)

        def part(begin: int, end: int) -> None:
            own = np.repeat(value[None], end - begin, axis=0)
            own[:, inputs] = x[begin:end]
            v[begin:end] = self.potentials(own)
            kernel(self.walk, *columns, begin, end, v, current, worst, relative)

        parts = max(1, min(threads, count // 8))
        ends = [count * k // parts for k in range(parts + 1)]
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
    if not net.grounded or net.laplacian.symbolic is None:
        return None
    made: Any = compact("spanning_tree", n_nodes)(kind, first, second, value, structure.voltage_edges, n_nodes)
    if not made[1]:
        return None
    root, r = structure.forest.root, structure.resistors
    grouped = np.bincount(root, minlength=n_nodes)[root] > 1
    apart = r[grouped[first[r]] | grouped[second[r]]]
    return LinearBatch(structure, net.laplacian.factor(np.zeros(0, dtype=np.int64)), Walk(*made[0]), apart)
