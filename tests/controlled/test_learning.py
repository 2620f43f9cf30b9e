"""Derivatives of circuits with controlled sources: differences, a chain of passive sections, batches, refusals."""

import numpy as np
import pytest
from helpers import slopes

import circuitsim
from circuitsim.blocks import Nudge
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import UsageError
from circuitsim.ffebm import Chain, Chaining, Stage
from circuitsim.learning.estimate import CONSTANT, GradientProblem, SquaredError
from circuitsim.learning.rules import AgnosticPropagation, EquilibriumPropagation, FrequencyPropagation
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
FIRST = "R1 x a 1k\nR2 y b 2k\nR3 a b 3k\nR4 a 0 4k\nR5 b 0 5k\nD1 0 a\nD2 b 0\n"
SECOND = "R6 p c 1k\nR7 q c 2k\nR8 c 0 3k\nD3 c 0\n"
INPUTS = "V1 x 0 0\nV2 y 0 0\n"
ROLES = "t\n*! input {}\n*! output {}\n*! trainable R* min=10 max=1e6\n"
WHOLE = f"{ROLES.format('V1 V2', 'v(c)')}{INPUTS}{FIRST}EA p 0 a 0 -3\nEB q 0 b 0 2\n{SECOND}"
DRIVEN = "*! trainable IB min=-1m max=1m\nV1 x 0 0\nR1 x a 1k\nI1 0 a 0\nR2 a 0 2k\n"
SEVERAL = (
    ROLES.format("V1 I1", "v(c) v(d,a) v(x)")
    + DRIVEN
    + "D1 0 a\nE1 p x a 0 -3\nR3 p b 1k\nR4 b 0 3k\nD2 b m\nR5 m 0 1k\n"
    "IB 0 b 0.2m\nG1 0 c b a 1m\nR6 c 0 2k\nR7 c p 5k\nE2 q 0 b 0 2\nR8 q d 1k\nR9 d 0 1k\nD3 d c\nR10 p q 1k\n"
)
CURRENTS = (
    ROLES.format("V1 I1", "v(c) v(d,e)") + DRIVEN + "D1 a s\nVS s 0 0\nR3 a t 3k\nVT t u 0.1\nR4 u 0 1k\nF1 0 b VS 2\n"
    "R5 b 0 2k\nD2 b m\nR6 m 0 1k\nH1 p 0 VT 2k\nR7 p b 1k\nVU m2 0 0\nR8 b m2 5k\nF2 c 0 VU -3\nG1 0 c a b 0.3m\n"
    "R9 c 0 1k\nIB 0 c 0.1m\nR10 c d 1k\nD3 d 0\nE1 e 0 b 0 2\nR11 d 0 3k\n"
)
"""F and H of voltage sources: to ground, in series within a section, and behind a controlled section."""
RAMPS = (
    ROLES.format("V1 I1", "v(c)")
    + "V1 x 0 0\nR1 x a 1k\nI1 0 a 0\nR2 a 0 2k\nB1 p 0 V=abs(v(a))*3-limit(v(a),-0.3,0.5)\n"
    "R3 p c 1k\nG1 0 c TABLE {v(a)} = (-1,-1m) (0,0) (1,3m)\nR4 c 0 1k\nD1 c m\nR5 m 0 1k\n"
)
"""Piecewise-linear functions between sections."""


def block(text: str) -> CircuitBlock:
    deck = loads(text)
    return CircuitBlock(deck.circuit, read_roles(deck)[0])


@pytest.mark.parametrize(
    ("text", "scale", "nudges"),
    [
        (AMPLIFIER, (1.0, 1e-3), False),
        (WHOLE, (1.0, 1.0), True),
        (SEVERAL, (1.0, 1e-3), True),
        (CURRENTS, (2.0, 1e-3), True),
        (RAMPS, (2.0, 1e-4), True),
    ],
    ids=["feedback", "buffers", "diamond", "currents", "ramps"],
)
def test_derivatives(text: str, scale: tuple[float, float], nudges: bool) -> None:
    """Implicit differentiation against differences; without loops of controls nudged phases of the whole deck too."""
    made, rng = block(text), np.random.default_rng(1)
    x = rng.normal(size=(24, 2)) * np.array(scale)
    x = x[made.kinks(made.relax(x))[0] == 0]
    free = made.relax(x)
    y, weight = free.output + rng.normal(size=free.output.shape), np.full(len(x), 1.0 / len(x))
    assert free.certified.all() and len(x) >= 8 and 0 < free.active.sum() < free.active.size
    exact, by_input = made.implicit(free, x, SquaredError().gradient(free.output, y), weight)
    problem = GradientProblem(made, x, y, SquaredError(), free, weight)
    for estimator in (EquilibriumPropagation(beta=1e-8), FrequencyPropagation(gamma=1e-8)) if nudges else ():
        found = estimator.estimate(problem)
        assert found.certified.all() and found.inputs is not None
        for name, array in exact.items():
            np.testing.assert_allclose(found.parameters[name], array, rtol=1e-6, atol=1e-7 * np.abs(array).max())
        np.testing.assert_allclose(found.inputs, by_input, rtol=1e-6, atol=1e-7 * np.abs(by_input).max())

    def loss() -> float:
        return float(weight @ SquaredError().value(made.relax(x).output, y))

    for name, array in made.parameters.items():
        size = np.abs(exact[name]).max()
        np.testing.assert_allclose(slopes(loss, array), exact[name], rtol=1e-4, atol=1e-6 * size)
    for k, size in enumerate(scale):
        move = np.eye(2)[k] * 1e-6 * size
        high, low = (SquaredError().value(made.relax(x + sign * move).output, y) for sign in (1.0, -1.0))
        np.testing.assert_allclose(by_input[:, k], (high - low) / (2e-6 * size), rtol=1e-4, atol=1e-6 / size)


class Buffers(Stage):
    """Fixed gains between two sections."""

    gains = np.array([-3.0, 2.0])

    def forward(self, x: np.ndarray, training: bool = False) -> tuple:
        return x * self.gains, lambda cotangent: ({}, cotangent * self.gains)


def test_equilibrium_propagation_goes_through_buffers_section_by_section() -> None:
    """The control graph has no loop: nudged phases of passive sections give the gradient of the whole circuit."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    second = f"{ROLES.format('VA VB', 'v(c)')}VA p 0 0\nVB q 0 0\n{SECOND}"
    parts = [block(f"{ROLES.format('V1 V2', 'v(a) v(b)')}{INPUTS}{FIRST}"), Buffers(), block(second)]
    chain = Chain(parts, loss="mse", rule=Chaining("ep", beta=1e-5), dtype=np.float64, seed=None)
    by_phases, _ = chain.gradient((x, y), rng)
    whole = block(WHOLE)
    free = whole.relax(x)
    np.testing.assert_allclose(free.output, chain.output(x), rtol=1e-12)
    assert by_phases is not None
    exact, _ = whole.implicit(free, x, SquaredError().gradient(free.output, y), np.full(6, 1.0 / 6.0))
    found = np.concatenate([by_phases["0.conductance"], by_phases["2.conductance"]])
    share = found[0] / exact["conductance"][0]  # the two losses differ by a constant factor
    np.testing.assert_allclose(found, share * exact["conductance"], rtol=1e-5, atol=1e-6 * np.abs(found).max())
    assert share in (pytest.approx(1.0, rel=1e-4), pytest.approx(2.0, rel=1e-4), pytest.approx(0.5, rel=1e-4))


@pytest.mark.parametrize("text", [AMPLIFIER, SEVERAL, CURRENTS])
def test_batches_are_the_operating_points_of_the_circuit(text: str) -> None:
    """Also with other values of controlled sources, resistors and sources."""
    circuit = loads(text).circuit
    x = np.random.default_rng(3).normal(size=(6, 2)) * np.array([1.0, 1e-3])
    ready = circuitsim.batched(circuit, ["V1", "I1"], [("b", "0")])
    values = {"R1": 700.0, "E1": -1.5 if "E1 p" in text else 2e4}
    for solver, drawn in ((ready, circuit), (ready.with_values(values), circuit.with_values(values))):
        found = solver.solve(x)
        assert found.certified.all()
        for s, (v, i) in enumerate(x):
            point = circuitsim.solve(drawn.with_values({"V1": v, "I1": i}))
            np.testing.assert_allclose(found.voltages[s], point.voltages, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(found.currents[s], point.currents, rtol=1e-11, atol=1e-17)


X, ONES = np.array([[1.0, -0.5]]), np.ones((1, 1))
BUFFER = WHOLE.replace("trainable R*", "trainable R1").replace("EB q 0 b 0 2", "{}")


@pytest.mark.parametrize(
    ("text", "attempt", "message"),
    [
        (
            AMPLIFIER,
            lambda made: made.relax(X, Nudge(np.ones((1, 2)))),
            "E1, G1, F1: controlled sources have no energy",
        ),
        (AMPLIFIER, lambda made: made.clamp(X, X), "E1, G1, F1: controlled sources have no energy"),
        (AMPLIFIER, lambda made: made.energy(made.relax(X), X), "E1, G1, F1: controlled sources have no energy"),
        (
            AMPLIFIER,
            lambda made: circuitsim.batched(made.circuit, ["V1"], [("out", "0")]).solve(ONES, injected=ONES),
            "use implicit differentiation",
        ),
        (AMPLIFIER.replace("F1 0 b V1", "F1 0 b R4"), None, "R4 is trainable and its current controls a source"),
        (WHOLE, lambda made: made.relax(X, Nudge(ONES, 1e-3), made.relax(X)), "needs the constant nudge"),
        (WHOLE, lambda made: made.clamp(X, ONES), "EA, EB: controlled sources have no energy"),
        (
            WHOLE,
            lambda made: AgnosticPropagation(nudging=CONSTANT).estimate(
                GradientProblem(made, X, ONES, SquaredError(), made.relax(X), np.ones(1))
            ),
            "needs one energy",
        ),
        # Into the section of its own sensor; the current of a resistor.
        (
            BUFFER.format("VS q s 0\nRS b s 9k\nFB 0 b VS 0.1"),
            lambda made: made.relax(X, Nudge(ONES)),
            "EA, FB: .* energy",
        ),
        (
            BUFFER.format("FB 0 q RS 2\nRQ q 0 1k\nRS b 0 9k"),
            lambda made: made.relax(X, Nudge(ONES)),
            "EA, FB: .* energy",
        ),
    ],
)
def test_what_needs_an_energy_refuses_by_name(text: str, attempt: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made = block(text)
        assert callable(attempt)
        attempt(made)
