"""Decks with bidirectional amplifiers that learn: every gradient against finite differences of certified solves."""

import json

import numpy as np
import pytest

import circuitsim
from circuitsim.blocks import EnergyBlock
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.learning import EquilibriumPropagation, SquaredError
from circuitsim.learning.estimate import GradientProblem
from circuitsim.learning.nudges import NUDGES
from circuitsim.netlist import loads
from circuitsim.netlist.roles import read_roles

DECK = """two layers, gains 3 and 2
*! input V1 V2 I1
*! output v(out) v(low)
*! trainable R* min=10 max=100k
*! trainable Ib min=-1 max=1
V1 a 0 1
V2 b 0 -1
Ra1 a l1 1k
Rb1 b l1 3k
Ra2 a l2 2k
Rb2 b l2 1.5k
X1 l1 h1 bidiramp gain=3
X2 l2 h2 bidiramp gain=3
D1 0 h1
D2 h2 0
Ib 0 h1 0.2m
I1 0 h2 0.1m
R1 h1 low 1k
R2 h2 low 2k
R3 h1 0 4k
Xo low out bidiramp gain=2
Ro out 0 5k
"""

X = np.array([[1.0, -0.5, 1e-4], [0.6, 0.8, -2e-4], [-0.9, 0.3, 0.0]])
Y = np.array([[1.0, 0.1], [0.5, -0.2], [0.0, 0.3]])


def block() -> CircuitBlock:
    deck = loads(DECK)
    return CircuitBlock(deck.circuit, read_roles(deck)[0], 1e-11)


def outputs(circuit, x):
    """The certified operating points, one by one, amplifiers and all."""
    points = [circuitsim.solve(circuit.with_values(dict(zip(("V1", "V2", "I1"), row)))) for row in x.tolist()]
    return np.array([[point["out"], point["low"]] for point in points])


def test_states_are_those_of_the_certified_circuit():
    made = block()
    assert isinstance(made, EnergyBlock)
    state = made.relax(X)
    assert state.certified.all()
    np.testing.assert_allclose(state.output, outputs(made.trained(), X), rtol=1e-9)
    assert len({tuple(row) for row in state.closed.tolist()}) > 1
    assert made.trained()["Ib"].value == 0.2e-3 and made.trained()["X1"].value == 3.0
    held = made.clamp(X, 1.01 * state.output)
    np.testing.assert_allclose(held.output, 1.01 * state.output, rtol=1e-9)
    # A copy with parameters of its own keeps its amplifiers.
    other = made.at({name: 1.5 * theta for name, theta in made.parameters.items()})
    np.testing.assert_allclose(other.relax(X).output, outputs(other.trained(), X), rtol=1e-9)


def loss(circuit, x):
    return 0.5 * ((outputs(circuit, x) - Y) ** 2).sum() / len(x)


def differences(made):
    """∂loss/∂θ of the circuit itself, by central differences of its element values, in the block's parameters."""
    circuit, found = made.trained(), {}
    for name, scale in (("conductance", 1.0), ("current", 3.0)):
        kind = {"conductance": "resistor", "current": "current source"}[name]
        items = [a.name for a in made.roles.trainable if circuit[a.name].kind == kind]
        slopes = []
        for item in items:
            value = circuit[item].value
            theta = 1.0 / value if name == "conductance" else value / scale
            step = 1e-5 * abs(theta)
            ends = []
            for moved in (theta + step, theta - step):
                again = 1.0 / moved if name == "conductance" else moved * scale
                ends.append(loss(circuit.with_values({item: again}), X))
            slopes.append((ends[0] - ends[1]) / (2 * step))
        found[name] = np.array(slopes)
    return found


def test_implicit_gradients_are_finite_differences_of_certified_solves():
    made = block()
    exact = differences(made)
    state = made.relax(X)
    found, by_input = made.implicit(state, X, state.output - Y, np.full(3, 1 / 3))
    for name, slopes in exact.items():
        np.testing.assert_allclose(found[name], slopes, rtol=1e-4, atol=1e-7 * np.abs(slopes).max())
    circuit, step = made.trained(), 1e-7
    for row in range(3):
        for column in range(3):
            up, down = X[row : row + 1].copy(), X[row : row + 1].copy()
            up[0, column] += step
            down[0, column] -= step
            slope = ((outputs(circuit, up) - outputs(circuit, down)) / (2 * step)) @ (state.output[row] - Y[row])
            assert by_input[row, column] == pytest.approx(slope[0], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("nudge", ["constant", "current"])
def test_equilibrium_propagation_needs_no_factor(nudge):
    """The nudge acts on volts at the output: the gradient comes out without Eq. 51's missing c²."""
    made = block()
    exact = differences(made)
    rule = EquilibriumPropagation(1e-6, "centred", NUDGES[nudge])
    free = made.relax(X)
    problem = GradientProblem(made, X, Y, SquaredError(), free, np.full(3, 1 / 3))
    if nudge == "current":
        with pytest.raises(UsageError, match="outputs of different gain cannot share one nudging conductance"):
            rule.estimate(problem)
        return
    found = rule.estimate(problem)
    for name, slopes in exact.items():
        np.testing.assert_allclose(found.parameters[name], slopes, rtol=1e-4, atol=1e-7 * np.abs(slopes).max())


def test_a_resistor_nudges_volts_too():
    deck = loads(DECK.replace("v(out) v(low)", "v(out)"))
    made = CircuitBlock(deck.circuit, read_roles(deck)[0], 1e-11)
    state = made.relax(X)
    exact, _ = made.implicit(state, X, state.output - Y[:, :1], np.full(3, 1 / 3))
    limit = made.stiffness_limit()
    for beta, off in ((1e-3 * limit, 1e-5), (1e-2 * limit, 1e-3)):
        rule = EquilibriumPropagation(beta, "centred", NUDGES["resistor"])
        found = rule.estimate(GradientProblem(made, X, Y[:, :1], SquaredError(), state, np.full(3, 1 / 3)))
        for name, slopes in exact.items():
            np.testing.assert_allclose(found.parameters[name], slopes, atol=off * np.abs(slopes).max())


def test_an_output_between_sections_is_refused():
    deck = loads(DECK.replace("v(out) v(low)", "v(out,low)"))
    with pytest.raises(UsageError, match=r"the output v\(out,low\) lies between sections of different gain"):
        CircuitBlock(deck.circuit, read_roles(deck)[0])


def test_an_amplified_deck_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.cir").write_text(DECK)
    rows = ["V1,V2,I1,v(out),v(low)", *(",".join(map(repr, [*x, *y])) for x, y in zip(X.tolist(), Y.tolist()))]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    words = ["train", "circuit", "net.cir", "--data", "data.csv", "--batch", "3", "--epochs", "60", "--out", "run"]
    assert main(words) == 0, capsys.readouterr().err
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert history[-1]["loss"] < 0.3 * history[0]["loss"]
    trained = circuitsim.load(next((tmp_path / "run").glob("*.cir")))
    assert trained.count()["X"] == 3
    assert loss(trained, X) < 0.4 * history[0]["loss"]


def test_states_are_in_volts_and_amperes():
    """Node voltages and currents of a state are those of the circuit with its amplifiers, behind each gain."""
    made = block()
    circuit, found = made.trained(), made.relax(X)
    for row, v, current in zip(X.tolist(), found.voltages, found.current):
        point = circuitsim.solve(circuit.with_values(dict(zip(("V1", "V2", "I1"), row))))
        np.testing.assert_allclose(v, point.voltages, rtol=1e-9, atol=1e-12)
        ordinary = [k for k, element in enumerate(circuit) if element.kind != "amplifier"]
        np.testing.assert_allclose(current[ordinary], point.currents[ordinary], rtol=1e-8, atol=1e-15)
