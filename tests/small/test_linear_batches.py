"""Batches of linear circuits above the limit of the small driver, against scipy's factors of the nodal matrix."""

from __future__ import annotations

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


def test_injected_currents_and_stiffness() -> None:
    circuit = crossbar(SIDE, 3)
    solver = circuitsim.batched(circuit, ["V0"], [("c3_4", "r7_8")])
    batch = solver.solve(np.array([[0.2], [0.4]]), injected=np.array([[1e-3], [0.0]]), stiffness=1e-4)
    assert batch.certified.all()
    text = circuitsim.dumps(circuit).replace(".end", "RN c3_4 r7_8 10k\nIN r7_8 c3_4 1m\n.end")
    nudged = circuitsim.solve(circuitsim.loads(text).with_values({"V0": 0.2}))
    expected = [nudged[name] for name in circuit.node_names]
    assert batch.voltages[0] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("decades", [1.0, 20.0])
def test_samples_and_responses_of_many_decades(decades: float) -> None:
    """Samples are those of single solves, be they proven by the factor that they share or by themselves."""
    mesh = crossbar(SIDE, 4)
    kind, _, _, value, _ = mesh.arrays()
    spread = 10.0 ** np.random.default_rng(6).uniform(0.0, decades, value.size)
    circuit = mesh.with_values(dict(zip(mesh.names, np.where(kind == RESISTOR, value * spread, value).tolist())))
    solver = circuitsim.batched(circuit, ["V0", "V1"], [("c3_4", "r7_8")])
    volts = np.array([[0.2, 0.0], [0.1, -0.3], [0.0, 0.0]])
    found = solver.solve(volts)
    assert found.certified.all()
    for s, row in enumerate(volts):
        point = circuitsim.solve(circuit.with_values(dict(zip(["V0", "V1"], row.tolist()))))
        assert found.voltages[s] == pytest.approx(point.voltages, rel=1e-9, abs=0.0)
        assert found.currents[s] == pytest.approx(point.currents, rel=1e-9, abs=0.0)
    _, currents = solver.adjoint(found, np.ones((3, 1)))
    for name in ("V0", "V1"):
        assert -currents[:, circuit.element_index(name)] == pytest.approx(
            np.full(3, circuitsim.solve(unit(circuit, name)).voltages @ across(circuit, "c3_4", "r7_8")), rel=1e-9
        )


def unit(circuit: Circuit, name: str) -> Circuit:
    """The circuit with one source at 1 V, all others at 0 V."""
    sources = [other for other in circuit.names if other[0] == "V"]
    return circuit.with_values({other: float(other == name) for other in sources})


def across(circuit: Circuit, a: str, b: str) -> np.ndarray:
    """What takes the voltage between two nodes from potentials (n_nodes,)."""
    found = np.zeros(circuit.arrays().n_nodes)
    found[circuit.node_index(a)], found[circuit.node_index(b)] = 1.0, -1.0
    return found
