"""Batches against single solves, nudged circuits drawn out in full, dense linear algebra and finite differences."""

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, TopologyError, UnboundedError, batched
from circuitsim.bench.families import make


def sources_of(circuit: Circuit) -> tuple[list[str], np.ndarray]:
    names = [name for name in circuit.names if name[0] in "VI"]
    return names, np.array([circuit[name].value for name in names])


def pairs_of(circuit: Circuit) -> list[tuple[str, str]]:
    nodes = list(circuit.node_names)
    return [(nodes[5], "0"), (nodes[9], nodes[12])]


@pytest.fixture(scope="module", params=["grid", "erdos-renyi", "crossbar-1d1r"])
def case(request: pytest.FixtureRequest):
    """A circuit, its solver, its inputs and a batch of their values."""
    circuit = make(request.param, 60, 1)
    names, base = sources_of(circuit)
    x = base * np.random.default_rng(0).uniform(0.3, 1.7, (30, len(names)))
    return circuit, batched(circuit, names, pairs_of(circuit)), names, x


def test_every_sample_is_the_operating_point_of_its_sources(case) -> None:
    circuit, solver, names, x = case
    batch = solver.solve(x)
    assert batch.certified.all() and batch.relative.max() < 1e-12 and len(batch) == 30
    for s in (0, 11, 29):
        point = circuitsim.solve(circuit.with_values(dict(zip(names, x[s]))))
        assert batch.voltages[s] == pytest.approx(point.voltages, abs=1e-12)
        assert batch.currents[s][point.unique] == pytest.approx(point.currents[point.unique], abs=1e-12)
        p, q = pairs_of(circuit)[1]
        assert batch.output[s, 1] == pytest.approx(point.voltage(p, q), abs=1e-12)
        assert batch[p][s] == batch.voltages[s, circuit.node_index(p)]


def test_a_nudge_is_a_resistor_and_a_source_across_the_output(case) -> None:
    circuit, solver, names, x = case
    injected = np.random.default_rng(1).normal(size=(30, 2)) * 0.05
    nudged = solver.solve(x, injected=injected, stiffness=0.25, start=solver.solve(x))
    assert nudged.certified.all()
    for s in (3, 17):
        drawn = circuit.with_values(dict(zip(names, x[s])))
        for k, (p, q) in enumerate(pairs_of(circuit)):
            drawn.resistor(f"Rnudge{k}", p, q, 4.0)
            drawn.current_source(f"Inudge{k}", q, p, float(injected[s, k]))
        assert nudged.voltages[s] == pytest.approx(circuitsim.solve(drawn).voltages, abs=1e-12)


def test_negative_stiffness_solves_its_own_equations_up_to_the_limit(case) -> None:
    circuit, solver, _, x = case
    limit = solver.stiffness_limit()
    assert 0.0 < limit < np.inf
    nudged = solver.solve(x, stiffness=-0.5 * limit)
    assert nudged.certified.all()
    # Kirchhoff's law at the outputs, the negative conductance included, from elements alone.
    arrays = circuit.arrays()
    out = np.zeros((30, arrays.n_nodes))
    for e in range(arrays.kind.size):
        out[:, arrays.first[e]] += nudged.currents[:, e]
        out[:, arrays.second[e]] -= nudged.currents[:, e]
    for k, (p, q) in enumerate(pairs_of(circuit)):
        out[:, circuit.node_index(p)] += -0.5 * limit * nudged.output[:, k]
        out[:, circuit.node_index(q)] -= -0.5 * limit * nudged.output[:, k]
    assert np.abs(out).max() < 1e-12
    with pytest.raises(UnboundedError, match="smaller beta"):
        solver.solve(x, stiffness=-1.01 * limit)


def test_the_adjoint_is_the_derivative(case) -> None:
    circuit, solver, names, x = case
    arrays = circuit.arrays()
    cotangent = np.random.default_rng(2).normal(size=(30, 2))
    free = solver.solve(x)
    response, currents = solver.adjoint(free, cotangent)

    def cost(at, solver=solver):
        found = solver.solve(at, start=free)
        return (found.output * cotangent).sum(axis=1), (found.closed == free.closed).all(axis=1)

    def centred(minus, plus, step):
        (low, same), (high, too) = minus, plus
        assert (same & too).sum() > 20
        return (high - low) / (2 * step), same & too

    step = 1e-6
    for k in np.flatnonzero(arrays.kind == 0)[5:50:15].tolist():
        shifted = []
        for sign in (-1, 1):
            value = arrays.value.copy()
            value[k] = 1.0 / (1.0 / value[k] + sign * step * (1.0 / value[k]))
            shifted.append(cost(x, solver.with_values(value)))
        slope, fine = centred(*shifted, step / arrays.value[k])
        drop, drive = (w[:, arrays.first[k]] - w[:, arrays.second[k]] for w in (free.voltages, response))
        assert slope[fine] == pytest.approx((drop * drive)[fine], rel=1e-5, abs=1e-8 + 1e-14 * arrays.value[k] / step)
    for j, name in enumerate(names):
        k = circuit.element_index(name)
        move = np.zeros(len(names))
        move[j] = step
        slope, fine = centred(cost(x - move), cost(x + move), step)
        drive = response[:, arrays.first[k]] - response[:, arrays.second[k]]
        expected = -currents[:, k] if name[0] == "V" else drive
        assert slope[fine] == pytest.approx(expected[fine], rel=1e-5, abs=1e-8)


def test_what_the_kernel_cannot_prove_the_general_solver_does() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nV2 1 0 1\nR1 1 2 1\nD1 2 3\nD2 2 3\nR2 3 0 1\nI1 0 4 0\nD3 0 4\n")
    batch = batched(circuit, ["V1", "V2", "I1"], [("3", "0")]).solve(
        np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1e-3]])
    )
    assert batch.certified.tolist() == [True, True, False, False]  # sources that contradict; current with nowhere to go
    assert batch.output[:2, 0].tolist() == [0.5, 1.0]


def test_other_values_on_the_same_structure() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nR2 2 0 1\n")
    solver = batched(circuit, ["V1"], [("2", "0")])
    assert solver.with_values({"R2": 3.0}).solve(np.array([[4.0]])).output.tolist() == [[3.0]]
    assert solver.with_values(np.array([1.0, 1.0, 3.0])).solve(np.array([[4.0]])).output.tolist() == [[3.0]]
    assert solver.solve(np.array([[4.0]])).output.tolist() == [[2.0]]
    with pytest.raises(TopologyError, match="stay positive"):
        solver.with_values({"R2": 0.0})
    with pytest.raises(TopologyError, match="3 element values"):
        solver.with_values(np.ones(2))


def test_errors_say_what_is_wrong() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nR2 2 0 1\n")
    with pytest.raises(TopologyError, match="R1 is not a source"):
        batched(circuit, ["R1"])
    with pytest.raises(TopologyError):
        batched(circuit, ["V9"])
    with pytest.raises(TopologyError):
        batched(circuit, ["V1"], [("nine", "0")])
    solver = batched(circuit, ["V1"], [("2", "0")])
    with pytest.raises(TopologyError, match=r"\(samples, 1\)"):
        solver.solve(np.ones((3, 2)))
    with pytest.raises(TopologyError, match="finite"):
        solver.solve(np.array([[np.nan]]))
    with pytest.raises(TopologyError, match="2 samples"):
        solver.solve(np.ones((3, 1)), start=solver.solve(np.ones((2, 1))))


def test_currents_of_samples_beside_a_nanoohm() -> None:
    """1 nΩ between kiloohms: Ohm's law by hand is the reference."""
    circuit = circuitsim.loads("t\nV1 a 0 5\nR1 a b 1n\nR2 b c 1k\nD1 c d\nR3 d 0 1k\nD2 0 c\n")
    solver = circuitsim.batched(circuit, ["V1"])
    x = np.array([[5.0], [7.0], [-2.0], [0.5], [0.0]])
    found = solver.solve(x)
    assert found.certified.all()
    expected = np.where(x[:, 0] > 0.0, x[:, 0] / 2e3, x[:, 0] / 1e3)
    assert found.current("R1") == pytest.approx(expected, rel=1e-9)
    assert found.current("R3") == pytest.approx(np.maximum(expected, 0.0), rel=1e-9, abs=0.0)
