"""Circuits that join devices with controlled sources, amplifiers and switches learn: against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import NoEnergyError, UsageError
from circuitsim.learning import EquilibriumPropagation, ImplicitDifferentiation, Learner, SquaredError
from circuitsim.netlist import loads
from circuitsim.netlist.roles import read_roles
from circuitsim.training import Adam, Trainer, TrainingPlan

BUFFERED = """an op-amp buffer, a Shockley diode, an ideal diode and a switch
*! input V1
*! output v(out)
*! trainable R* min=10 max=1e6
*! trainable D1.is min=1e-12 max=1e-6
V1 in 0 0
R1 in a 1k
D1 a 0 shockley
R2 a 0 5k
E1 b 0 OPAMP a b
R3 b c 2k
S1 c out on 0 closed ON
VON on 0 1
R4 out 0 3k
D2 out k
R5 k 0 1k
.model shockley D(IS=1n N=1.5)
.model closed SW(RON=10 ROFF=1G VT=0.5)
"""

AMPLIFIED = """piecewise-linear diodes before and behind a bidirectional amplifier
*! input V1
*! output v(out)
*! trainable R* min=10 max=1e6
*! trainable D*.vfwd min=0.1 max=2
*! trainable D*.ron min=1 max=1k
*! trainable I1 min=-10m max=10m
V1 in 0 0
R1 in a 1k
D1 a 0 low
X1 a b bidiramp gain=3
R2 b out 2k
R3 out 0 3k
I1 0 out 0.1m
D2 out k high
R4 k 0 1k
.model low D(Ron=10 Roff=1meg Vfwd=0.4)
.model high D(Ron=20 Roff=1meg Vfwd=0.7)
"""

X = np.array([[0.3], [0.8], [2.5], [-1.0]])


def block(text: str) -> CircuitBlock:
    deck = loads(text)
    return CircuitBlock(deck.where_change(None)[0], read_roles(deck)[0], 1e-11)


@pytest.mark.parametrize("text", [BUFFERED, AMPLIFIED])
@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
def test_gradients_are_finite_differences_of_certified_solves(text: str) -> None:
    made = block(text)
    free = made.relax(X)
    assert free.certified.all() and len({tuple(row) for row in free.closed.tolist()}) > 1
    point = circuitsim.solve(made.trained().with_values({"V1": 2.5}))
    assert free.output[2, 0] == pytest.approx(point["out"], rel=1e-9)
    target, weight = free.output + np.array([[0.1], [-0.1], [0.2], [0.1]]), np.full(4, 0.25)
    found, inputs = made.implicit(free, X, free.output - target, weight)

    def losses(x: np.ndarray) -> np.ndarray:
        return 0.5 * ((made.relax(x).output - target) ** 2).sum(axis=1)

    for name, array in made.parameters.items():
        for k, old in enumerate(array.tolist()):
            step, ends = 1e-5 * abs(old), []
            for sign in (1.0, -1.0):
                array[k] = old + sign * step
                ends.append(weight @ losses(X))
            array[k] = old
            slope = (ends[0] - ends[1]) / (2.0 * step)
            assert abs(found[name][k] - slope) <= 1e-6 * np.abs(found[name]).max(), (name, k)
    slopes = (losses(X + 1e-6) - losses(X - 1e-6)) / 2e-6
    np.testing.assert_allclose(inputs[:, 0], slopes, atol=1e-6 * np.abs(slopes).max())


@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
def test_a_deck_with_buffer_diodes_and_switch_trains() -> None:
    made = block(BUFFERED)
    x = np.linspace(-1.0, 2.0, 12)[:, None]
    wanted = block(BUFFERED)
    wanted.parameters["conductance"] *= [1.5, 0.7, 1.2, 0.8, 1.3]
    wanted.parameters["law"] += 2.0
    model = Learner(made, ImplicitDifferentiation(), SquaredError())
    plan = TrainingPlan(60, 12, optimizer=Adam({"conductance": 2e-5, "law": 0.1}))
    outcome = Trainer(model, (x, wanted.relax(x).output), plan).train()
    rows = outcome.history.rows
    assert rows[-1]["loss"] < 0.05 * rows[0]["loss"] and not any(row["uncertified_fraction"] for row in rows)
    trained = made.trained()
    assert trained.devices[trained.element_index("D1")].row() != block(BUFFERED).whole.devices[2].row()


@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
def test_what_they_cannot_do_is_refused_by_type() -> None:
    model = Learner(block(BUFFERED), EquilibriumPropagation(), SquaredError())
    with pytest.raises(NoEnergyError, match="E1: controlled sources have no energy function"):
        model.gradient((X, X), np.random.default_rng(0))
    smooth = AMPLIFIED.replace("D*.vfwd min=0.1 max=2", "D1.vfwd min=0.1 max=2").replace("D*.ron", "D1.ron")
    with pytest.raises(UsageError, match="D2: a smooth device behind an amplifier can be solved, not trained"):
        block(smooth.replace("Ron=20 Roff=1meg Vfwd=0.7", "IS=1n"))


def test_equilibrium_propagation_through_amplifiers_and_devices() -> None:
    """A nudge by constant currents is exact at a finite strength while the same diodes conduct."""
    made = block(AMPLIFIED)
    free = made.relax(X)
    target = free.output + 0.1
    rules = {"ep": EquilibriumPropagation(1e-6), "implicit": ImplicitDifferentiation()}
    found = {
        name: Learner(made, rule, SquaredError()).gradient((X, target), np.random.default_rng(0))[0]
        for name, rule in rules.items()
    }
    for name, array in found["implicit"].items():
        np.testing.assert_allclose(found["ep"][name], array, rtol=1e-5, atol=1e-7 * np.abs(array).max())
