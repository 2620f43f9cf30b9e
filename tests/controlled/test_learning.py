"""Derivatives of circuits with controlled sources: against finite differences, and a chain of passive sections."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.blocks import Nudge
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import UsageError
from circuitsim.ffebm import Chain, Chaining, Stage
from circuitsim.learning.agnostic import AgnosticPropagation
from circuitsim.learning.equilibrium import EquilibriumPropagation
from circuitsim.learning.estimate import GradientProblem
from circuitsim.learning.frequency import FrequencyPropagation
from circuitsim.learning.losses import SquaredError
from circuitsim.learning.nudges import CONSTANT
from circuitsim.netlist import loads
from circuitsim.netlist.roles import read_roles

AMPLIFIER = """an amplifier with diodes in its feedback
*! input V1 I1
*! output v(out) v(b,n)
*! trainable R* min=1 max=1e6
*! trainable I2 min=-1m max=1m
V1 in 0 0
I1 0 n 0
R1 in n 1k
R2 n h 2k
R3 h out 3k
D1 h out
E1 out 0 0 n 1e4
R4 out b 1k
R5 b 0 2k
G1 b 0 n out 0.2m
I2 0 b 0.1m
F1 0 b V1 0.5
"""


def block(text: str) -> CircuitBlock:
    deck = loads(text)
    return CircuitBlock(deck.circuit, read_roles(deck)[0])


def test_implicit_derivatives_are_finite_differences() -> None:
    made, rng = block(AMPLIFIER), np.random.default_rng(0)
    x = np.stack([rng.normal(size=5), 1e-3 * rng.normal(size=5)], axis=1)
    pull, weight = rng.normal(size=(5, 2)), np.full(5, 0.2)
    free = made.relax(x)
    assert free.certified.all() and 0 < free.closed.sum() < free.closed.size

    def loss(at: np.ndarray) -> np.ndarray:
        return (made.relax(at).output * pull).sum(axis=1)

    parameters, inputs = made.implicit(free, x, pull, weight)
    for name, array in made.parameters.items():
        for k in range(array.size):
            old, step, found = array[k], 1e-6 * abs(array[k]), []
            for sign in (1.0, -1.0):
                array[k] = old + sign * step
                found.append(weight @ loss(x))
            array[k] = old
            assert parameters[name][k] == pytest.approx((found[0] - found[1]) / (2.0 * step), rel=2e-5, abs=1e-9)
    for k, step in enumerate((1e-6, 1e-9)):
        shift = np.eye(2)[k] * step
        np.testing.assert_allclose(inputs[:, k], (loss(x + shift) - loss(x - shift)) / (2.0 * step), rtol=2e-5)


def test_methods_that_need_an_energy_refuse_by_name() -> None:
    made = block(AMPLIFIER)
    x = np.zeros((2, 2))
    for attempt in (
        lambda: made.relax(x, Nudge(np.ones((2, 2)))),
        lambda: made.clamp(x, x),
        lambda: made.energy(made.relax(x), x),
    ):
        with pytest.raises(UsageError, match=r"E1, G1, F1: controlled sources have no energy function"):
            attempt()
    ready = circuitsim.batched(made.circuit, ["V1"], [("out", "0")])
    with pytest.raises(UsageError, match="Use implicit differentiation"):
        ready.solve(np.zeros((1, 1)), injected=np.ones((1, 1)))


def test_a_trained_resistor_must_not_be_sensed() -> None:
    with pytest.raises(UsageError, match="R4 is to be trained, and its current controls a source"):
        block(AMPLIFIER.replace("F1 0 b V1", "F1 0 b R4"))


def test_batches_agree_with_single_solves() -> None:
    circuit = loads(AMPLIFIER).circuit
    volts = np.linspace(-2.0, 2.0, 7)
    found = circuitsim.batched(circuit, ["V1"], [("out", "0")]).solve(volts[:, None])
    assert found.certified.all()
    single = [circuitsim.solve(circuit.with_values({"V1": v}))["out"] for v in volts]
    np.testing.assert_allclose(found["out"], single, rtol=1e-14)


FIRST = """R1 x a 1k
R2 y b 2k
R3 a b 3k
R4 a 0 4k
R5 b 0 5k
D1 0 a
D2 b 0
"""

SECOND = """R6 p c 1k
R7 q c 2k
R8 c 0 3k
D3 c 0
"""

ROLES = """{title}
*! input {inputs}
*! output {outputs}
*! trainable R* min=10 max=1e6
"""

SECTIONS = (
    ROLES.format(title="first passive section", inputs="V1 V2", outputs="v(a) v(b)") + "V1 x 0 0\nV2 y 0 0\n" + FIRST,
    ROLES.format(title="second passive section", inputs="VA VB", outputs="v(c)") + "VA p 0 0\nVB q 0 0\n" + SECOND,
)

WHOLE = (
    ROLES.format(title="both, joined by buffers", inputs="V1 V2", outputs="v(c)")
    + "V1 x 0 0\nV2 y 0 0\n"
    + FIRST
    + "EA p 0 a 0 -3\nEB q 0 b 0 2\n"
    + SECOND
)


class Buffers(Stage):
    """Fixed gains between two sections."""

    gains = np.array([-3.0, 2.0])

    def forward(self, x: np.ndarray, training: bool = False) -> tuple[np.ndarray, None]:
        return x * self.gains, None

    def vjp(self, memory: None, cotangent: np.ndarray, wants_input: bool = True) -> tuple[dict, np.ndarray]:
        return {}, cotangent * self.gains


def test_equilibrium_propagation_goes_through_buffers_section_by_section() -> None:
    """The control graph has no loop: nudged phases of passive sections give the gradient of the whole circuit."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    parts = [block(SECTIONS[0]), Buffers(), block(SECTIONS[1])]
    chain = Chain(parts, loss="mse", rule=Chaining("ep", beta=1e-5), dtype=np.float64, seed=None)
    by_phases, _ = chain.gradient((x, y), rng)
    whole = block(WHOLE)
    free = whole.relax(x)
    np.testing.assert_allclose(free.output, chain.output(x), rtol=1e-12)
    assert by_phases is not None
    cotangent = SquaredError().gradient(free.output, y)
    exact, _ = whole.implicit(free, x, cotangent, np.full(6, 1.0 / 6.0))
    found = np.concatenate([by_phases["0.conductance"], by_phases["2.conductance"]])
    share = found[0] / exact["conductance"][0]  # the two losses differ by a constant factor
    np.testing.assert_allclose(found, share * exact["conductance"], rtol=1e-5, atol=1e-6 * np.abs(found).max())
    assert share in (pytest.approx(1.0, rel=1e-4), pytest.approx(2.0, rel=1e-4), pytest.approx(0.5, rel=1e-4))


SEVERAL = (
    ROLES.format(title="sections in a diamond", inputs="V1 I1", outputs="v(c) v(d,a) v(x)")
    + """*! trainable IB min=-1m max=1m
V1 x 0 0
R1 x a 1k
I1 0 a 0
D1 0 a
R2 a 0 2k
E1 p x a 0 -3
R3 p b 1k
R4 b 0 3k
D2 b m
R5 m 0 1k
IB 0 b 0.2m
G1 0 c b a 1m
R6 c 0 2k
R7 c p 5k
E2 q 0 b 0 2
R8 q d 1k
R9 d 0 1k
D3 d c
R10 p q 1k
"""
)


CURRENTS = (
    ROLES.format(title="a mirror, sensors in sections", inputs="V1 I1", outputs="v(c) v(d,e)")
    + """*! trainable IB min=-1m max=1m
V1 x 0 0
R1 x a 1k
I1 0 a 0
D1 a s
VS s 0 0
R2 a 0 2k
R3 a t 3k
VT t u 0.1
R4 u 0 1k
F1 0 b VS 2
R5 b 0 2k
D2 b m
R6 m 0 1k
H1 p 0 VT 2k
R7 p b 1k
VU m2 0 0
R8 b m2 5k
F2 c 0 VU -3
G1 0 c a b 0.3m
R9 c 0 1k
IB 0 c 0.1m
R10 c d 1k
D3 d 0
E1 e 0 b 0 2
R11 d 0 3k
"""
)
"""F and H of voltage sources: to ground, in series within a section, and behind a controlled section."""

RAMPS = (
    ROLES.format(title="piecewise-linear functions between sections", inputs="V1 I1", outputs="v(c)")
    + """V1 x 0 0
R1 x a 1k
I1 0 a 0
R2 a 0 2k
B1 p 0 V=abs(v(a))*3-limit(v(a),-0.3,0.5)
R3 p c 1k
G1 0 c TABLE {v(a)} = (-1,-1m) (0,0) (1,3m)
R4 c 0 1k
D1 c m
R5 m 0 1k
"""
)


def samples(count: int, seed: int, scale: tuple[float, ...]) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, len(scale))) * np.array(scale), rng


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        (WHOLE, (1.0, 1.0)),
        (SEVERAL, (1.0, 1e-3)),
        (CURRENTS, (2.0, 1e-3)),
        (RAMPS, (2.0, 1e-4)),
    ],
)
def test_nudges_go_through_buffers_of_one_deck(text: str, scale: tuple[float, ...]) -> None:
    """Equilibrium and frequency propagation on the whole deck: implicit differentiation and finite differences."""
    made = block(text)
    x, rng = samples(24, 1, scale)
    x = x[made.kinks(made.relax(x))[0] == 0]
    free = made.relax(x)
    y, weight = free.output + rng.normal(size=free.output.shape), np.full(len(x), 1.0 / len(x))
    assert free.certified.all() and len(x) >= 8 and 0 < free.closed.sum() < free.closed.size
    problem = GradientProblem(made, x, y, SquaredError(), free, weight)
    exact, by_input = made.implicit(free, x, SquaredError().gradient(free.output, y), weight)
    for estimator in (EquilibriumPropagation(beta=1e-8), FrequencyPropagation(gamma=1e-8)):
        found = estimator.estimate(problem)
        assert found.certified.all() and found.inputs is not None
        for name, array in exact.items():
            np.testing.assert_allclose(found.parameters[name], array, rtol=1e-6, atol=1e-7 * np.abs(array).max())
        np.testing.assert_allclose(found.inputs, by_input, rtol=1e-6, atol=1e-7 * np.abs(by_input).max())

    def loss() -> float:
        return float(weight @ SquaredError().value(made.relax(x).output, y))

    for name, array in made.parameters.items():
        for k in range(array.size):
            old, values = array[k], []
            for sign in (1.0, -1.0):
                array[k] = old * (1.0 + 1e-6 * sign)
                values.append(loss())
            array[k] = old
            slope = (values[0] - values[1]) / (2e-6 * old)
            assert exact[name][k] == pytest.approx(slope, rel=1e-4, abs=1e-6 * np.abs(exact[name]).max())


@pytest.mark.parametrize("text", [SEVERAL, CURRENTS])
def test_sections_in_batches_are_the_operating_points_of_the_circuit(text: str) -> None:
    made = block(text)
    x, _ = samples(6, 3, (1.0, 1e-3))
    found = circuitsim.batched(made.circuit, ["V1", "I1"], [("c", "0")]).solve(x)
    assert found.certified.all()
    for s, (v, i) in enumerate(x):
        point = circuitsim.solve(made.circuit.with_values({"V1": v, "I1": i}))
        np.testing.assert_allclose(found.voltages[s], point.voltages, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.currents[s], point.currents, rtol=1e-11, atol=1e-17)


def test_other_gains_of_buffers_are_followed() -> None:
    made = block(SEVERAL)
    x, _ = samples(4, 4, (1.0, 1e-3))
    ready = circuitsim.batched(made.circuit, ["V1", "I1"], [("c", "0")])
    changed = ready.with_values({"E2": -1.5, "R1": 700.0, "IB": 1e-4})
    fresh = circuitsim.batched(changed.circuit, ["V1", "I1"], [("c", "0")])
    np.testing.assert_array_equal(changed.solve(x).voltages, fresh.solve(x).voltages)


def test_what_buffers_do_not_allow_is_refused_by_name() -> None:
    made, x = block(WHOLE), np.array([[1.0, -0.5]])
    free = made.relax(x)
    with pytest.raises(UsageError, match="nudged by constant currents"):
        made.relax(x, Nudge(np.ones((1, 1)), 1e-3), free)
    with pytest.raises(UsageError, match="EA, EB: controlled sources have no energy"):
        made.clamp(x, np.ones((1, 1)))
    problem = GradientProblem(made, x, np.ones((1, 1)), SquaredError(), free, np.ones(1))
    with pytest.raises(UsageError, match="needs one energy"):
        AgnosticPropagation(nudging=CONSTANT).estimate(problem)
    for cards in (
        "VS q s 0\nRS b s 9k\nFB 0 b VS 0.1",  # into the section of its own sensor
        "FB 0 q RS 2\nRQ q 0 1k\nRS b 0 9k",  # the current of a resistor
    ):
        sensed = block(WHOLE.replace("trainable R*", "trainable R1").replace("EB q 0 b 0 2", cards))
        with pytest.raises(UsageError, match="EA, FB: controlled sources have no energy"):
            sensed.relax(x, Nudge(np.ones((1, 1))))
