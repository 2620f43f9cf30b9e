"""Devices in batches and in learning: single solutions, differences, the energy."""

import numpy as np
import pytest
from helpers import loaded, slope, slopes

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.learning import EquilibriumPropagation, GradientProblem, ImplicitDifferentiation, SquaredError
from circuitsim.netlist.roles import make_roles

DECKS = {
    "junctions and a Zener": "V1 in 0 1\nR1 in a 100\nR2 a b 220\nR3 b 0 1k\nD1 a 0 d\nD2 b a d\nD3 0 b z\nD4 b c e\n"
    "R4 c 0 50\n.model d D(IS=1e-12 N=1.3 RS=0.5)\n.model z D(BV=3.3 IBV=1m)\n.model e D(Vfwd=0.4 Ron=10)\n",
    "straight lines": "V1 in 0 9\nR1 in b 10\nD1 b 0 z m=2\nR2 b 0 300\n.model z D(Vfwd=0.7 Ron=2 Vrev=3 Roff=1k)\n",
    "currents by formulas": "V1 in 0 2\nR1 in a 100\nB1 a b I={1m*sinh(v(a,b)/0.3)}\nR2 b 0 50\n"
    "G1 b 0 VALUE={1m*v(b)*abs(v(b))}\n",
    "voltages by formulas": "V1 in 0 2\nR1 in a 100\nB1 a b V={0.3*asinh(i(B1)/1m)+10*i(B1)}\nR2 b 0 200\nD1 b 0 d\n"
    "B2 b 0 V={exp(i(B2))-1+900*i(B2)}\n.model d D(IS=1e-9)\n",
}
VOLTS = np.array([[5.0], [2.0], [0.31], [-0.5], [-6.0]])


@pytest.mark.parametrize("name", DECKS)
def test_batches_are_the_single_solutions(name: str) -> None:
    """Cold and warm, nudged, with other values and parameters; the adjoint against central differences."""
    c = loaded(DECKS[name])
    solver = circuitsim.batched(c, ["V1"], [("b", "0")])

    def single(volts: float, more: str = "", **values: float) -> float:
        return circuitsim.solve(loaded(DECKS[name] + more).with_values({"V1": volts} | values))["b"]

    found = solver.solve(VOLTS)
    again = solver.solve(VOLTS, start=found)
    assert found.certified.all() and again.certified.all() and (again.iterations <= found.iterations).all()
    _, currents = solver.adjoint(found, np.ones((5, 1)))
    for s, (volts,) in enumerate(VOLTS.tolist()):
        point = circuitsim.solve(c.with_values({"V1": volts}))
        assert found.voltages[s] == pytest.approx(point.voltages, rel=1e-9, abs=1e-15)
        assert found.currents[s] == pytest.approx(point.currents, rel=1e-9, abs=1e-15)
        assert -currents[s, c.element_index("V1")] == pytest.approx(slope(single, volts, 1e-5), rel=1e-5)
    nudged = solver.solve(VOLTS, injected=np.full((5, 1), 1e-3), stiffness=1e-3)
    assert nudged["b"][0] == pytest.approx(single(5.0, "R9 b 0 1k\nI9 0 b 1m"), rel=1e-11)
    values = {"R1": 50.0} | ({"D1.is": 1e-9, "D4.vfwd": 0.3} if "D4" in c else {})
    assert solver.with_values(values).solve(VOLTS)["b"][1] == pytest.approx(single(2.0, **values), rel=1e-11)


@pytest.mark.parametrize("name", DECKS)
def test_gradients_of_conductances(name: str) -> None:
    """Implicit differentiation and equilibrium propagation against central differences of single solutions."""
    c = loaded(DECKS[name])
    block = CircuitBlock(c, make_roles(c, "V1", "v(b)", ["R1", "R2"]))
    x, y, share = np.array([[1.0], [3.0]]), np.array([[0.2], [0.3]]), np.full(2, 0.5)
    problem = GradientProblem(block, x, y, SquaredError(), block.relax(x), share)
    exact = ImplicitDifferentiation().estimate(problem).parameters["conductance"]
    nudged = EquilibriumPropagation(1e-5).estimate(problem).parameters["conductance"]
    np.testing.assert_allclose(nudged, exact, rtol=1e-5)
    siemens = 1.0 / np.array([c["R1"].value, c["R2"].value])

    def loss() -> float:
        changes = {"R1": 1.0 / siemens[0], "R2": 1.0 / siemens[1]}
        out = [circuitsim.solve(c.with_values({**changes, "V1": volts}))["b"] for volts in (1.0, 3.0)]
        return float(0.5 * share @ (np.array(out) - y[:, 0]) ** 2)

    assert exact == pytest.approx(slopes(loss, siemens, 1e-4), rel=1e-5)
    block.parameters["conductance"][:] = 0.05
    assert block.trained()["R1"].value == pytest.approx(20.0) and block.trained().devices == c.devices


def test_the_energy_is_least_at_the_state() -> None:
    c = loaded(DECKS["junctions and a Zener"])
    block = CircuitBlock(c, make_roles(c, inputs=["V1"], outputs=["b"], trainable=["R1", "R2", "R3"]))
    state = block.relax(VOLTS)
    least = block.energy(state, VOLTS)
    for node in (2, 3):
        for change in (0.01, -0.01):
            moved = state.voltages.copy()
            moved[:, node] += change
            assert (block.energy(state._replace(voltages=moved), VOLTS) >= least - 1e-15).all()
