"""Arbitrary netlists as blocks of a chain: diodes between free nodes, voltage and current inputs."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.ffebm import Chain, Chaining, Linear, Readout
from circuitsim.learning.chaining import forward
from circuitsim.netlist import loads
from circuitsim.netlist.roles import read_roles

VOLTAGES = """voltage inputs, three diodes between free nodes, a current source that learns
*! input V1 V2
*! output v(a) v(b,m) v(c)
*! trainable R* min=100 max=100k
*! trainable I1 min=-1m max=1m
V1 x 0 0
V2 y 0 0
R1 x a 1k
R2 y b 2k
R3 a 0 3k
R4 b 0 1.5k
D1 a b
D2 b m
D3 c m
R5 m 0 1k
R6 x c 1.2k
I1 0 c 0.2m
"""
CURRENTS = """current inputs, a diode between free nodes
*! input I1 I2 I3
*! output v(p) v(q)
*! trainable R* min=0.01 max=100
I1 0 a 0
I2 0 p 0
I3 0 q 0
R1 a p 1
R2 p q 2
R3 q 0 0.7
R4 a 0 1.5
R5 p 0 3
D1 a q
"""


def circuit(text: str) -> CircuitBlock:
    deck = loads(text)
    return CircuitBlock(deck.circuit, read_roles(deck)[0])


def chain(**options: object) -> Chain:
    return Chain(
        [Linear(3, 2, spread=3.0), circuit(VOLTAGES), Linear(3, 3, spread=3.0), circuit(CURRENTS), Readout(2, 3)],
        dtype=np.float64,
        seed=10,
        **options,
    )  # type: ignore[arg-type]


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.normal(size=(7, 3)), rng.integers(3, size=7)


@pytest.mark.parametrize("method", ["ep", "implicit"])
@pytest.mark.parametrize("form", ["explicit", "implicit"])
def test_gradient_of_a_two_block_circuit_chain_is_the_finite_difference(method: str, form: str) -> None:
    made = chain(rule=Chaining(method, beta=1e-4, form=form))
    x, y = batch()
    gradients, metrics = made.gradient((x, y), np.random.default_rng(0))
    assert gradients is not None
    assert metrics["uncertified_fraction"] == 0
    _, steps = forward(made.elements, x, True)
    conducting = [step.memory.closed for step in steps if hasattr(step.memory, "closed")]
    assert all(0 < closed.mean() < 1 for closed in conducting)  # the diodes matter
    for name, array in made.parameters.items():
        for place in np.ndindex(array.shape):
            old, values = array[place], []
            step = 1e-6 * max(abs(old), 1e-3)
            for sign in (1, -1):
                array[place] = old + sign * step
                values.append(made.loss.value(forward(made.elements, x, True)[0], y).mean())
            array[place] = old
            expected = (values[0] - values[1]) / (2 * step)
            assert gradients[name][place] == pytest.approx(expected, rel=2e-5, abs=2e-5 * abs(gradients[name]).max())


def test_contrast_at_finite_strength_is_exact_while_the_diodes_hold() -> None:
    made = chain()
    exact, _ = chain(rule=Chaining("implicit")).gradient(batch(), np.random.default_rng(0))
    made.rule = Chaining("ep", beta=1e-2)
    found, _ = made.gradient(batch(), np.random.default_rng(0))
    assert exact is not None
    assert found is not None
    for name, array in exact.items():
        np.testing.assert_allclose(found[name], array, atol=1e-7 * np.abs(array).max(), rtol=0, err_msg=name)


def test_circuits_learn_in_a_chain() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = (np.abs(x[:, 0]) > 0.7).astype(int) + (x[:, 1] > 0)
    made = chain()
    made.fit(x, y, epochs=25, batch=20, rate=0.05)
    losses = made.history.column("loss")
    assert losses[-1] < 0.75 * losses[0]
    for element in made.elements:
        if isinstance(element, CircuitBlock):
            for name, (low, high) in element.bounds.items():
                assert ((low <= element.parameters[name]) & (element.parameters[name] <= high)).all()
