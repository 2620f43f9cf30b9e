"""Resistive networks as Hopfield networks and back, held against certified operating points."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import circuitsim
from circuitsim import Circuit, solve
from circuitsim.errors import ConvergenceError, TopologyError
from circuitsim.hopfield.continuous import ContinuousHopfieldNetwork, from_circuit, to_circuit

NETLISTS = Path(__file__).parents[2] / "netlists"


def network(n, seed, strength=0.9, outputs=2):
    """Random nonnegative weights of a spectral radius below one; the last units are unbounded."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0, 1, (n, n)) * (rng.random((n, n)) < 0.6), 1)
    weights = weights + weights.T
    weights *= strength / max(np.abs(np.linalg.eigvalsh(weights)).max(), 1e-9)
    lower, upper = np.zeros(n), np.ones(n)
    lower[-outputs:], upper[-outputs:] = -np.inf, np.inf
    return ContinuousHopfieldNetwork(weights, rng.normal(0, 0.7, n), lower, upper, tuple(f"u{k}" for k in range(n)))


@given(st.integers(3, 9), st.integers(0, 2**32))
def test_a_network_and_its_circuit_have_equal_states(n, seed):
    made = network(n, seed)
    state = made.relax()
    circuit, root = made_circuit = to_circuit(made)
    point = solve(circuit)
    np.testing.assert_allclose(made_circuit.state(point.voltages), state, atol=1e-9)
    np.testing.assert_allclose(np.clip(made.weights @ state + made.bias, made.lower, made.upper), state, atol=1e-12)
    # The conductances at a node add up to root², and the energies are the same number.
    back = from_circuit(circuit)
    np.testing.assert_allclose(back.root, root, rtol=1e-12)
    for name in ("weights", "bias", "lower", "upper"):
        np.testing.assert_allclose(getattr(back.network, name), getattr(made, name), rtol=1e-9, atol=1e-12)
    assert made.energy(state) + back.constant == pytest.approx(point.energy, rel=1e-9, abs=1e-12)
    assert back.constant == 0.0


@pytest.mark.parametrize("clamped", [0, 4])
def test_a_clamped_unit_is_a_source_that_its_neighbours_feel(clamped):
    made = network(5, 1)
    made.lower[clamped] = made.upper[clamped] = 0.7
    state, translated = made.relax(), to_circuit(made)
    assert state[clamped] == 0.7
    np.testing.assert_allclose(translated.state(solve(translated.circuit).voltages), state, atol=1e-9)


def grounded(seed):
    """A random circuit whose diodes end at held potentials, with chains of sources and current sources in between."""
    rng = np.random.default_rng(seed)
    circuit = Circuit("random")
    n = int(rng.integers(2, 8))
    held = ["0", "plus", "minus"]
    circuit.voltage_source("Vp", "plus", "0", float(rng.uniform(0.5, 2)))
    circuit.voltage_source("Vm", "0", "minus", float(rng.uniform(0.5, 2)))
    circuit.resistor("Rpm", "plus", "minus", 3.0)
    for k in range(n):
        circuit.resistor(f"Rg{k}", f"n{k}", str(rng.choice(held)), float(rng.uniform(0.2, 3)))
        if rng.random() < 0.3:
            # A second node at a fixed distance: one unit.
            circuit.voltage_source(f"Vf{k}", f"m{k}", f"n{k}", float(rng.normal()))
            circuit.resistor(f"Rm{k}", f"m{k}", str(rng.choice([*held, f"n{int(rng.integers(n))}"])), 1.0)
        for j in range(k):
            if rng.random() < 0.5:
                circuit.resistor(f"R{j}_{k}", f"n{j}", f"n{k}", float(rng.uniform(0.2, 3)))
        if rng.random() < 0.5:
            circuit.current_source(f"I{k}", f"n{k}", str(rng.choice(held)), float(rng.normal()))
        if rng.random() < 0.6:
            ends = [f"n{k}", str(rng.choice(held))]
            rng.shuffle(ends)
            circuit.diode(f"D{k}", *ends)
    return circuit


@given(st.integers(0, 2**32))
def test_a_circuit_and_its_network_have_equal_states(seed):
    circuit = grounded(seed)
    point = solve(circuit)
    units = from_circuit(circuit)
    assert (units.network.weights == units.network.weights.T).all() and not np.diag(units.network.weights).any()
    state = units.network.relax()
    np.testing.assert_allclose(units.voltages(state), point.voltages, atol=1e-9)
    assert units.network.energy(state) + units.constant == pytest.approx(point.energy, rel=1e-9, abs=1e-12)
    # The energies differ by that constant everywhere, not only at the minimum.
    kind, first, second, value, _ = circuit.arrays()
    other = state + 0.1
    v = units.voltages(other)
    drop = v[first] - v[second]
    energy = np.where(kind == 0, 0.5 * drop**2 / value, np.where(kind == 3, value * drop, 0.0)).sum()
    assert units.network.energy(other) + units.constant == pytest.approx(energy, rel=1e-9)


@pytest.mark.parametrize("name", ["drn-xor", "drn-xor-amplified", "deep-resistive-network", "wheatstone-unbalanced"])
def test_bundled_decks(name):
    circuit = circuitsim.load(NETLISTS / f"{name}.cir")
    units = from_circuit(circuit)
    np.testing.assert_allclose(units.voltages(units.network.relax()), solve(circuit).voltages, atol=1e-9)


def test_what_has_no_counterpart_is_named():
    made = network(4, 0)
    with pytest.raises(TopologyError, match="between u0 and u1 is negative"):
        to_circuit(made._replace(weights=np.array([[0, -1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]) * 0.1))
    with pytest.raises(TopologyError, match=r"spectral radius 1\.2, not below 1"):
        to_circuit(network(4, 0, strength=1.2))
    with pytest.raises(ConvergenceError, match="no convergence"):
        network(4, 0, strength=1.2, outputs=4).relax(np.ones(4), sweeps=50)
    with pytest.raises(TopologyError, match="D1 joins two free nodes, a and b: it is not the bound of a unit"):
        from_circuit(circuitsim.loads("t\nR1 a 0 1\nR2 b 0 1\nD1 a b\n"))
    with pytest.raises(TopologyError, match="no resistor touches node b"):
        from_circuit(circuitsim.loads("t\nR1 a 0 1\nD1 b 0\n"))
