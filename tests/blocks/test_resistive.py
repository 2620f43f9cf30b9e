"""Deep resistive blocks against certified operating points, and their gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.blocks import EnergyBlock, Nudge
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError, UsageError

EXACT = Sweeps(2000, 2000, 1e-14)
CASES = [
    ({"inputs": 3}, [4, 2]),
    ({"inputs": 2, "gain": 4.0, "leak": 0.1}, [6, 4, 3]),
    ({}, [6, 4, 2]),
    ({"inputs": 3}, [2]),
]


def block(options: dict[str, object], layers: list[int]) -> ResistiveBlock:
    made = ResistiveBlock(layers, **{"rng": 1, "sweeps": EXACT, **options})  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    for array in made.parameters.values():
        array += rng.uniform(0.05, 0.3, array.shape) if array.ndim == 2 else rng.uniform(-0.3, 0.3, array.shape)
    return made


def as_circuit(made: ResistiveBlock, x: np.ndarray) -> Circuit:
    """The same network as elements; node l.k is unit k of layer l."""
    circuit = Circuit()
    parameters, layers = made.parameters, made.options["layers"]
    if made.options["inputs"] is None:
        for k, current in enumerate(x):
            circuit.current_source(f"Ix{k}", "0", f"n1_{k}", current)
    else:
        for j, volts in enumerate(np.concatenate([x, -x]) * made.options["gain"]):
            circuit.voltage_source(f"V{j}", f"n0_{j}", "0", volts)
    for name, g in parameters.items():
        if name.startswith("conductances"):
            level = int(name[12:])
            for j, k in zip(*np.nonzero(g), strict=True):
                circuit.resistor(f"R{level}_{j}_{k}", f"n{level}_{j}", f"n{level + 1}_{k}", 1 / g[j, k])
    for level, units in enumerate(layers, start=1):
        for k in range(units):
            node = f"n{level}_{k}"
            circuit.current_source(f"Ib{level}_{k}", "0", node, parameters[f"bias{level}"][k])
            if made.options["leak"]:
                circuit.resistor(f"Rl{level}_{k}", node, "0", 1 / made.options["leak"])
            if level < len(layers):
                ends = ("0", node) if k < units // 2 else (node, "0")
                circuit.diode(f"D{level}_{k}", *ends)
    return circuit


@pytest.mark.parametrize(("options", "layers"), CASES)
def test_relaxed_state_is_the_operating_point_of_the_circuit(options: dict[str, object], layers: list[int]) -> None:
    made = block(options, layers)
    assert isinstance(made, EnergyBlock)
    x = np.random.default_rng(3).normal(size=(4, made.n_inputs))
    state = made.relax(x)
    assert state.residual.max() < 1e-12
    for row in range(len(x)):
        point = circuitsim.solve(as_circuit(made, x[row]))
        for level, layer in enumerate(state.layers, start=1):
            expected = [point.voltage(f"n{level}_{k}") for k in range(layer.shape[1])]
            np.testing.assert_allclose(layer[row], expected, atol=1e-9)


@pytest.mark.parametrize(("options", "layers"), CASES)
def test_gradients(options: dict[str, object], layers: list[int]) -> None:
    """Implicit = finite differences; nudged contrast = implicit; every nudged sweep = a step of backpropagation."""
    made = block(options, layers)
    rng = np.random.default_rng(4)
    x, cotangent = rng.normal(size=(5, made.n_inputs)), rng.normal(size=(5, made.n_outputs))
    weight = rng.uniform(0.2, 1.0, 5)
    free = made.relax(x)
    exact, inputs = made.implicit(free, x, cotangent, weight)
    for name, array in [*made.parameters.items(), ("x", x)]:
        expected = np.empty_like(array)
        for place in np.ndindex(array.shape):
            old, values = array[place], []
            for step in (1e-6, -1e-6):
                array[place] = old + step
                values.append(float((weight * (made.relax(x).output * cotangent).sum(axis=1)).sum()))
            array[place] = old
            expected[place] = (values[0] - values[1]) / 2e-6
        found = inputs * weight[:, None] if name == "x" else exact[name]
        np.testing.assert_allclose(found, expected, atol=3e-8, rtol=1e-6, err_msg=name)
    beta = 1e-4
    plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
    for name, value in made.parameter_difference(plus, minus, x, weight).items():
        np.testing.assert_allclose(value / (2 * beta), exact[name], atol=1e-9, err_msg=name)
    np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), inputs, atol=1e-9)
    for sweeps in range(1, 9):
        made.sweeps = Sweeps(1, sweeps)
        plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
        truncated, back = made.truncated(free, x, cotangent, weight, sweeps)
        for name, value in made.parameter_difference(plus, minus, x, weight).items():
            np.testing.assert_allclose(value / (2 * beta), truncated[name], atol=1e-9, rtol=0, err_msg=name)
        np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), back, atol=1e-9, rtol=0)


def test_contrast_is_the_difference_of_the_energies_derivatives() -> None:
    """parameter_difference and input_difference against finite differences of the energy itself, at far states."""
    made = block({"inputs": 3, "leak": 0.2}, [4, 3])
    rng = np.random.default_rng(5)
    x, weight = rng.normal(size=(2, 3)), np.array([0.4, 1.3])
    plus = made.relax(x, Nudge(rng.normal(size=(2, 3))))
    minus = made.relax(x, Nudge(rng.normal(size=(2, 3))))
    found = {**made.parameter_difference(plus, minus, x, weight), "x": made.input_difference(plus, minus, x)}
    for name, array in [*made.parameters.items(), ("x", x)]:
        for place in np.ndindex(array.shape):
            old, values = array[place], []
            for step in (1e-5, -1e-5):
                array[place] = old + step
                values.append(made.energy(plus, x) - made.energy(minus, x))
            array[place] = old
            slope = (values[0] - values[1]) / 2e-5
            expected = slope[place[0]] if name == "x" else weight @ slope
            assert found[name][place] == pytest.approx(expected, abs=1e-8), name


def test_elastic_nudge_adds_its_conductance() -> None:
    made = block({"inputs": 3}, [4, 2])
    x, y = np.random.default_rng(6).normal(size=(2, 3)), np.ones((2, 2))
    state = made.relax(x, Nudge(-0.5 * y, 0.5))
    circuit = as_circuit(made, x[0])
    for k in range(2):
        circuit.voltage_source(f"Vy{k}", f"y{k}", "0", 1.0)
        circuit.resistor(f"Ry{k}", f"y{k}", f"n2_{k}", 2.0)
    point = circuitsim.solve(circuit)
    np.testing.assert_allclose(state.output[0], [point.voltage(f"n2_{k}") for k in range(2)], atol=1e-9)


def test_projection_and_refusals() -> None:
    made = block({"inputs": 3}, [4, 2])
    made.parameters["conductances1"] -= 1.0
    made.project()
    assert (made.parameters["conductances1"] >= 0).all()
    made.parameters["conductances1"][...] = 0.0
    with pytest.raises(TopologyError, match="node 0 of layer 2"):
        made.relax(np.zeros((1, 3)))
    with pytest.raises(UsageError, match="leak"):
        ResistiveBlock([3, 2], leak=0.0)
    with pytest.raises(UsageError, match="rows of 3 inputs"):
        block({"inputs": 3}, [4, 2]).relax(np.zeros((1, 2)))
