"""Batches and learning through smooth devices: single solutions, finite differences, the energy."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim import netlist
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.netlist.roles import make_roles

DECK = """two junctions and a Zener
V1 in 0 1
R1 in a 100
R2 a b 220
R3 b 0 1k
D1 a 0 d
D2 b a d
D3 0 b z
D4 b c e
R4 c 0 50
.model d D(IS=1e-12 N=1.3 RS=0.5)
.model z D(BV=3.3 IBV=1m)
.model e D(Vfwd=0.4 Ron=10)
"""
VOLTS = np.array([[5.0], [2.0], [0.3], [-0.5], [-6.0]])


def test_batches_are_the_single_solutions() -> None:
    c = netlist.loads(DECK)
    solver = circuitsim.batched(c, ["V1"], [("b", "0")])
    found = solver.solve(VOLTS)
    again = solver.solve(VOLTS, start=found)
    assert found.certified.all() and again.certified.all() and (again.iterations <= found.iterations).all()
    for s, (volts,) in enumerate(VOLTS.tolist()):
        point = circuitsim.solve(c.with_values({"V1": volts}))
        assert found["b"][s] == pytest.approx(point["b"], rel=1e-11)
        assert found.current("D1")[s] == pytest.approx(point.current("D1"), rel=1e-10)
    nudged = solver.solve(VOLTS, injected=np.full((5, 1), 1e-3), stiffness=1e-3)
    other = DECK + "R9 b 0 1k\nI9 0 b 1m\n"
    point = circuitsim.solve(netlist.loads(other).with_values({"V1": 5.0}))
    assert nudged["b"][0] == pytest.approx(point["b"], rel=1e-11)
    changed = solver.with_values({"D1.is": 1e-9, "R1": 50.0}).solve(VOLTS)
    point = circuitsim.solve(c.with_values({"D1.is": 1e-9, "R1": 50.0, "V1": 2.0}))
    assert changed["b"][1] == pytest.approx(point["b"], rel=1e-11)


def test_derivatives_by_sources() -> None:
    """The adjoint against central differences of single solutions."""
    c = netlist.loads(DECK)
    solver = circuitsim.batched(c, ["V1"], [("b", "0")])
    _, currents = solver.adjoint(solver.solve(VOLTS), np.ones((5, 1)))
    step = 1e-5
    for s, (volts,) in enumerate(VOLTS.tolist()):
        ends = [circuitsim.solve(c.with_values({"V1": volts + d}))["b"] for d in (step, -step)]
        assert -currents[s, c.element_index("V1")] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def block_of() -> CircuitBlock:
    c = netlist.loads(DECK)
    return CircuitBlock(c, make_roles(c, inputs=["V1"], outputs=["b"], trainable=["R1", "R2", "R3"]))


def test_gradients_of_conductances() -> None:
    """Implicit differentiation and equilibrium propagation against central differences."""
    block = block_of()
    state = block.relax(VOLTS)
    weight = np.ones(5)
    exact, _ = block.implicit(state, VOLTS, np.ones((5, 1)), weight)
    g, found = block.parameters["conductance"].copy(), []
    for k in range(3):
        outputs = []
        for sign in (1.0, -1.0):
            block.parameters["conductance"][:] = g
            block.parameters["conductance"][k] *= 1.0 + sign * 1e-6
            outputs.append(block.relax(VOLTS).output.sum())
        found.append((outputs[0] - outputs[1]) / (2e-6 * g[k]))
    assert exact["conductance"] == pytest.approx(found, rel=1e-5)
    block.parameters["conductance"][:] = g
    solver, beta = block._current(), 1e-7
    ends = [block._state(solver.solve(VOLTS, injected=np.full((5, 1), sign * beta))) for sign in (-1.0, 1.0)]
    contrast = block.parameter_difference(*ends, VOLTS, weight)["conductance"] / (2.0 * beta)
    assert contrast == pytest.approx(found, rel=1e-5)


def test_the_energy_is_least_at_the_state() -> None:
    block = block_of()
    state = block.relax(VOLTS)
    least = block.energy(state, VOLTS)
    for node in (2, 3):
        for change in (0.01, -0.01):
            moved = state.voltages.copy()
            moved[:, node] += change
            assert (block.energy(state._replace(voltages=moved), VOLTS) >= least - 1e-15).all()
