"""Batches of linear circuits above the limit of the small driver, against scipy's factors of the nodal matrix."""

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit.elements import RESISTOR, VOLTAGE

SIDE = 46


def crossbar(side: int, seed: int) -> Circuit:
    """side × side cells of 10 kΩ to 1 MΩ between wires of 1 Ω a cell, rows driven, columns grounded."""
    rng, lines = np.random.default_rng(seed), ["crossbar"]
    cell = 10.0 ** rng.uniform(4.0, 6.0, (side, side))
    for i in range(side):
        lines += [f"V{i} s{i} 0 1", f"RS{i} s{i} r{i}_0 1", f"RG{i} c{side - 1}_{i} 0 1"]
        for j in range(side):
            lines.append(f"RX{i}_{j} r{i}_{j} c{i}_{j} {cell[i, j]:.17g}")
            if j:
                lines += [f"RR{i}_{j} r{i}_{j - 1} r{i}_{j} 1", f"RC{j}_{i} c{j - 1}_{i} c{j}_{i} 1"]
    return circuitsim.loads("\n".join(lines))


def nodal(circuit: Circuit, volts: np.ndarray) -> np.ndarray:
    """Node potentials, V (n_nodes, samples), for grounded sources of ``volts`` (samples, sources)."""
    kind, first, second, value, n = circuit.arrays()
    r, sources = np.flatnonzero(kind == RESISTOR), np.flatnonzero(kind == VOLTAGE)
    assert r.size + sources.size == kind.size and (second[sources] == 0).all()
    g, a, b = 1.0 / value[r], first[r], second[r]
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    matrix = csc_array((np.concatenate([g, g, -g, -g]), (rows, columns)), shape=(n, n))
    fixed = np.concatenate([[0], first[sources]])
    free = np.setdiff1d(np.arange(n), fixed)
    v = np.zeros((n, len(volts)))
    v[first[sources]] = volts.T
    v[free] = splu(matrix[free][:, free].tocsc()).solve(-(matrix[free][:, fixed] @ v[fixed]))
    return v


def test_samples_of_a_large_crossbar() -> None:
    circuit = crossbar(SIDE, 0)
    names = [f"V{i}" for i in range(SIDE)]
    volts = np.random.default_rng(1).uniform(0.0, 0.5, (19, SIDE))
    solver = circuitsim.batched(circuit, names, [("c0_0", "0")])
    one = solver.solve(volts, threads=1)
    assert one.certified.all() and one.relative.max() < 1e-11
    expected = nodal(circuit, volts)
    assert np.abs(one.voltages.T - expected).max() <= 1e-13
    kind, first, second, value, n = circuit.arrays()
    r = np.flatnonzero(kind == RESISTOR)
    cells = r[value[r] > 1.0]
    ohmic = (expected[first[cells]] - expected[second[cells]]).T / value[cells]
    assert one.currents[:, cells] == pytest.approx(ohmic, abs=1e-16)
    net = np.zeros((n, 19))
    np.add.at(net, first, one.currents.T)
    np.add.at(net, second, -one.currents.T)
    largest = np.zeros((n, 19))
    np.maximum.at(largest, first, np.abs(one.currents.T))
    np.maximum.at(largest, second, np.abs(one.currents.T))
    assert (np.abs(net) <= 1e-14 * largest).all()
    assert one.output[:, 0] == pytest.approx(expected[circuit.node_index("c0_0")], abs=1e-13)
    other = solver.with_values({"RX0_0": 1e3}).solve(volts[:2])
    assert np.abs(other.voltages.T - nodal(circuit.with_values({"RX0_0": 1e3}), volts[:2])).max() <= 1e-13
    two = solver.solve(volts, threads=2)
    assert np.array_equal(one.voltages, two.voltages) and np.array_equal(one.currents, two.currents)
