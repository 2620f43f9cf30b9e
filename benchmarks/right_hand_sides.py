"""Many samples on large circuits: crossbars with 32 inputs, a mesh with 3,000 diodes forward and backward.

    OPENBLAS_NUM_THREADS=1 python benchmarks/right_hand_sides.py [--out benchmarks/results/right_hand_sides.md]

Milliseconds of processor time, one thread, the median of the repetitions after one that loads kernels. *Analysis
and factor* is the first solve less a later one. Errors are against scipy's sparse factors, as shares of the largest
potential; conducting diodes join their nodes. The crossbars have cells of 10 kΩ to 1 MΩ, wires of 1 Ω a cell. The
mesh's samples are independent normal values of four sources, or 1 % apart (*near*); the derivatives are those of eight
outputs by all parameters.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

import circuitsim
from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.tree_proof import tree_kernel
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.kernels import load

REPETITIONS = 5


def crossbar(side: int) -> Circuit:
    """side × side cells between wires; rows driven by sources with 1 Ω, columns grounded by 1 Ω."""
    rng, cells = np.random.default_rng(0), side * side
    row = 1 + np.arange(cells).reshape(side, side)
    column, source = row + cells, 1 + 2 * cells + np.arange(side)
    ends = [
        (row[:, :-1], row[:, 1:]),
        (column[:-1], column[1:]),
        (row, column),
        (source, row[:, 0]),
        (column[-1], 0 * source),
        (source, 0 * source),
    ]
    first, second = (np.concatenate([pair[k].ravel() for pair in ends]) for k in (0, 1))
    kind = np.full(first.size, RESISTOR)
    kind[-side:] = VOLTAGE
    value = np.ones(first.size)
    at = 2 * side * (side - 1)
    value[at : at + cells] = 1.0 / rng.uniform(1e-6, 1e-4, cells)
    return Circuit.from_arrays(kind, first, second, value, 2 * cells + side + 1)


def mesh(side: int, diodes: int) -> tuple[Circuit, np.ndarray]:
    """A square mesh with diodes across cells, four sources; the nodes that are read."""
    rng = np.random.default_rng(0)
    node = 1 + np.arange(side * side).reshape(side, side)
    across = [(node[:-1], node[1:]), (node[:, :-1], node[:, 1:])]
    ends = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in across] + [[[node[-1, -1], 0]]])
    cells = np.stack([node[:-1, :-1].ravel(), node[1:, 1:].ravel()], axis=1)
    chosen = cells[rng.permutation(len(cells))[:diodes]]
    chosen = np.where(rng.random((len(chosen), 1)) < 0.5, chosen, chosen[:, ::-1])
    places = 1 + rng.permutation(side * side - 1)[:12]
    every = np.concatenate([ends, chosen, np.stack([places[:4], 0 * places[:4]], axis=1)])
    kind = np.repeat([RESISTOR, DIODE, VOLTAGE], [len(ends), len(chosen), 4])
    value = np.concatenate([np.exp(rng.uniform(-1.0, 1.0, len(ends))), np.zeros(len(chosen)), np.ones(4)])
    return Circuit.from_arrays(kind, every[:, 0], every[:, 1], value, side * side + 1), places[4:]


def batch_of(circuit: Circuit, read: np.ndarray) -> BatchSolver:
    """The batch solver: all voltage sources are inputs."""
    arrays = circuit.arrays()
    names = [circuit.names[k] for k in np.flatnonzero(arrays.kind == VOLTAGE)]
    made = circuitsim.batched(circuit, names, [(circuit.node_names[k], "0") for k in read])
    assert isinstance(made, BatchSolver)
    return made


def milliseconds(action: Callable[[], object]) -> tuple[float, float]:
    """Processor time of the first call and the median of later ones, after one that is not counted."""
    found = []
    for _ in range(REPETITIONS + 1):
        began = time.process_time()
        action()
        found.append(1e3 * (time.process_time() - began))
    return found[0], statistics.median(found[1:])


def errors(circuit: Circuit, v: np.ndarray, conducting: np.ndarray, volts: np.ndarray) -> float:
    """Largest error of potentials (samples, n_nodes), V, where the conducting diodes of each sample join their nodes to
    one: a share of the largest potential."""
    kind, first, second, value, n = circuit.arrays()
    resistor, worst = kind == RESISTOR, 0.0
    for sample, on, given in zip(v, conducting, volts, strict=True):
        closed = np.concatenate([np.flatnonzero(kind == DIODE)[on], np.flatnonzero(resistor & (value == 0.0))])
        joined = csr_array((np.ones(closed.size), (first[closed], second[closed])), shape=(n, n))
        size, node = connected_components(joined, directed=False)
        ohmic = resistor & (value != 0.0)
        a, b, g = node[first[ohmic]], node[second[ohmic]], 1.0 / value[ohmic]
        matrix = csc_array((np.concatenate([g, g, -g, -g]), (np.r_[a, b, a, b], np.r_[a, b, b, a])), shape=(size, size))
        held = node[first[kind == VOLTAGE]]
        free = np.setdiff1d(np.arange(size), [*held, node[0]])
        expected = np.zeros(size)
        expected[held] = given
        expected[free] = splu(matrix[free][:, free].tocsc()).solve(-(matrix[free][:, held] @ given))
        worst = max(worst, float(np.abs(expected[node] - sample).max() / np.abs(expected).max()))
    return worst


def linear_rows() -> list[str]:
    """The crossbars."""
    rows = []
    for side in (128, 256):
        circuit = crossbar(side)
        x = np.random.default_rng(1).uniform(0.0, 0.2, (32, side))
        solver = batch_of(circuit, np.array([1]))
        found = solver.solve(x, threads=1)  # kernels
        fresh = batch_of(circuit, np.array([1]))
        first, again = milliseconds(lambda fresh=fresh, x=x: fresh.solve(x, threads=1))
        off = errors(circuit, found.voltages[:2], found.closed[:2], x[:2])
        assert found.certified.all()
        rows.append(f"| crossbar {side}², 32 inputs | {first - again:.0f} | {again:.0f} | {off:.0e} |")
    return rows


def mesh_rows() -> list[str]:
    """The mesh: samples that differ, samples that are near each other."""
    rows, rng = [], np.random.default_rng(1)
    circuit, read = mesh(71, 3000)
    solver = batch_of(circuit, read)
    base = rng.normal(size=(1, 4))
    near = base * (1.0 + 0.01 * rng.normal(size=(64, 4)))
    for name, x in (("independent", rng.normal(size=(64, 4))), ("near", near)):
        found = solver.solve(x, threads=1)
        cotangent = rng.normal(size=(64, read.size))
        forward = milliseconds(lambda x=x: solver.solve(x, threads=1))[1] / 64
        again = milliseconds(lambda x=x, found=found: solver.solve(x, start=found, threads=1))[1] / 64
        back = milliseconds(lambda found=found, c=cotangent: solver.adjoint(found, c, threads=1))[1] / 64
        off = errors(circuit, found.voltages[:2], found.closed[:2], x[:2])
        assert found.certified.all()
        sets = len(np.unique(np.packbits(found.closed, axis=1), axis=0))
        rows.append(f"| {name}, {sets} | {forward:.1f} | {again:.1f} | {back:.1f} | {off:.0e} |")
    return rows


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="write the page to a file too")
    chosen = parser.parse_args()
    load()
    tree_kernel.load()
    before = os.getloadavg()[0]
    page = ["# Many samples on large circuits", ""]
    page += ["| linear circuit | analysis and factor, ms | all samples, ms | error |"]
    page += ["|---|---:|---:|---:|", *linear_rows(), ""]
    page += ["Mesh of 5,041 nodes and 3,000 diodes, batch of 64, milliseconds a sample.", ""]
    page += ["| samples, sets of conducting diodes | forward | with `start=` | backward | error |"]
    page += ["|---|---:|---:|---:|---:|", *mesh_rows(), ""]
    page += [f"Processor time of one thread, one run; load {before:.1f} before, {os.getloadavg()[0]:.1f} after.", ""]
    print("\n".join(page))
    if chosen.out:
        chosen.out.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
