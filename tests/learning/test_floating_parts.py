"""Parts that only blocking diodes connect: batches of any size, default strengths of nudges, gradients."""

from itertools import pairwise

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, batched


def drawn(seed: int) -> Circuit:
    """A grounded ladder whose outputs carry chains of diodes to further resistors; the nodes between may float."""
    rng = np.random.default_rng(seed)
    circuit = Circuit(f"seed {seed}")
    circuit.voltage_source("V1", "n0", "0", 1.0)
    nodes = [f"n{k}" for k in range(int(rng.integers(3, 7)))]
    for k, node in enumerate(nodes[1:]):
        circuit.resistor(f"R{k}", nodes[k], node, float(10.0 ** rng.uniform(-1, 1)))
        circuit.resistor(f"G{k}", node, "0", float(10.0 ** rng.uniform(-1, 1)))
    for k in range(int(rng.integers(1, 4))):
        ends = [str(rng.choice(nodes[1:])), f"m{k}a", f"m{k}b", "0"]
        for j, (first, second) in enumerate(pairwise(ends)):
            first, second = (first, second) if rng.random() < 0.5 else (second, first)
            circuit.diode(f"D{k}{j}", first, second)
        if rng.random() < 0.5:
            circuit.resistor(f"B{k}", f"m{k}a", f"m{k}b", 1.0)
    return circuit


@pytest.mark.parametrize("count", [1, 2, 40])
def test_a_batch_of_any_size_solves_what_single_solves_do(count: int) -> None:
    for seed in range(25):
        circuit = drawn(seed)
        x = np.linspace(-2.0, 2.0, count)[:, None] if count > 1 else np.array([[-1.0]])
        found = batched(circuit, ["V1"], [("n1", "0")]).solve(x)
        assert found.certified.all()
        for s in (0, count - 1):
            alone = circuitsim.solve(circuit.with_values({"V1": float(x[s, 0])}))
            assert found.output[s, 0] == pytest.approx(alone["n1"], abs=1e-12)


def test_the_limit_of_a_negative_nudge_counts_what_is_connected_to_the_outputs() -> None:
    """Against the conductance of the ladder alone: what only blocking diodes connect adds none."""
    for seed in range(25):
        circuit = drawn(seed)
        arrays = circuit.arrays()
        outputs = [circuit.node_index("n1"), circuit.node_index("n2")]
        matrix = np.zeros((arrays.n_nodes, arrays.n_nodes))
        for k, element in enumerate(circuit):
            if element.kind == "resistor":
                ends = arrays.first[k], arrays.second[k]
                matrix[np.ix_(ends, ends)] += np.array([[1.0, -1.0], [-1.0, 1.0]]) / element.value
        keep = [circuit.node_index(f"n{k}") for k in range(1, 10) if f"n{k}" in circuit.node_names]  # n0: V1 holds it
        compliance = np.linalg.inv(matrix[np.ix_(keep, keep)])
        place = [keep.index(k) for k in outputs]
        expected = 1.0 / np.linalg.eigvalsh(compliance[np.ix_(place, place)]).max()
        limit = batched(circuit, ["V1"], [("n1", "0"), ("n2", "0")]).stiffness_limit()
        assert limit == pytest.approx(expected, rel=1e-9)


def test_an_output_behind_diodes_alone_has_the_limit_zero() -> None:
    circuit = circuitsim.loads("x\nV1 a 0 1\nD1 a b\nD2 b 0\nR1 b c 1\n")
    assert batched(circuit, ["V1"], [("b", "0")]).stiffness_limit() == 0.0
    assert batched(circuit, ["V1"], [("b", "c")]).stiffness_limit() == pytest.approx(1.0)


def test_large_circuits_have_a_limit_too() -> None:
    """A chain of 5,000 nodes, at whose end 1 Ohm lies across an output: the rest has a closed form."""
    circuit = Circuit("chain")
    circuit.voltage_source("V1", "n0", "0", 1.0)
    for k in range(5000):
        circuit.resistor(f"R{k}", f"n{k}", f"n{k + 1}", 1e-3)
    circuit.resistor("Rend", "n5000", "0", 1.0)
    circuit.diode("D1", "n5000", "m")
    circuit.diode("D2", "m", "0")
    made = batched(circuit, ["V1"], [("n5000", "0")])
    assert made.stiffness_limit() == pytest.approx(1.0 + 1.0 / 5.0, rel=1e-9)
    nudged = made.solve(np.array([[-1.0]]), stiffness=-0.1)
    assert nudged.certified.all() and nudged.output[0, 0] == pytest.approx(-1.0 / (1.0 + 5.0 * 0.9), rel=1e-9)
