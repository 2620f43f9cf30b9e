"""Solvers against the counterexamples they exist for, against their twins, and against each other."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.convex import CORRECTIONS, Prepared
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.program import QuadraticProgram, analyse, feasible_program, quadratic_program
from circuitsim.solvers import coordinate_descent, dense, laplacian
from circuitsim.solvers.coordinate_descent import descend
from circuitsim.solvers.reference import Reference


def frozen() -> Circuit:
    """a pulled to +1 V, b to −1 V by equal resistors, diode a→b."""
    circuit = Circuit("frozen descent")
    circuit.voltage_source("V1", "p", "0", 1.0)
    circuit.voltage_source("V2", "m", "0", -1.0)
    circuit.resistor("R1", "p", "a", 1.0)
    circuit.resistor("R2", "b", "m", 1.0)
    circuit.diode("D1", "a", "b")
    return circuit


def program_of(circuit: Circuit) -> QuadraticProgram:
    structure = analyse(circuit)
    return feasible_program(structure, quadratic_program(structure))[0]


def mesh(side: int, seed: int, diodes: float = 0.5) -> Circuit:
    """A grid of random resistors, a share of the edges with a diode; a source on the left, loads on the right."""
    rng = np.random.default_rng(seed)
    circuit = Circuit(f"mesh {side}")
    circuit.voltage_source("V1", "in", "0", 1.0)
    k = 0
    for i in range(side):
        circuit.resistor(f"Rin{i}", "in", f"n{i}_0", 1.0)
        circuit.resistor(f"Rout{i}", f"n{i}_{side - 1}", "0", 1.0)
        for j in range(side):
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < side and b < side:
                    k += 1
                    ends = [f"n{i}_{j}", f"n{a}_{b}"]
                    circuit.resistor(f"R{k}", *ends, float(np.exp(0.5 * rng.normal())))
                    if rng.random() < diodes:
                        circuit.diode(f"D{k}", *(ends if rng.random() < 0.5 else ends[::-1]))
            if rng.random() < 0.1:
                circuit.current_source(f"I{i}_{j}", "0", f"n{i}_{j}", float(rng.uniform(-0.1, 0.1)))
    return circuit


def test_number_one_the_frozen_point_is_not_an_answer() -> None:
    """From (3, 3) node-wise descent freezes at (1, 1) with twice the least energy; the optimum is (0, 0)."""
    program = program_of(frozen())
    start = np.array([3.0, 3.0, 0.0])
    assert coordinate_descent.CoordinateDescent().solve(program, start).x.tolist() == [1.0, 1.0, 0.0]
    assert circuitsim.solve(frozen())["a"] == 0.0


def test_frozen_descent_is_a_start_that_the_engine_makes_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    rectifier = circuitsim.loads("half wave\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n")
    point = circuitsim.solve(rectifier, solver="coordinate-descent")
    assert point["3"] == 0.5 and int(str(point.solver["iterations"])) <= CORRECTIONS
    # Where the engine's few linear circuits are not enough, the message tells how the descent ended.
    monkeypatch.setattr(sys.modules["circuitsim.analysis.convex"], "CORRECTIONS", 0)
    said = "coordinate-descent did not reach a steady state: it is frozen: no single node moves any more"
    with pytest.raises(ConvergenceError, match=said) as caught:
        circuitsim.solve(rectifier, solver="coordinate-descent")
    assert caught.value.exit_code == 3 and str(caught.value).endswith("use --solver auto")


def test_descent_is_exact_where_diodes_end_at_fixed_potentials() -> None:
    circuit = Circuit("layer")
    circuit.voltage_source("V1", "x", "0", 1.0)
    for k in range(6):
        circuit.resistor(f"R{k}", "x" if k == 0 else f"h{k - 1}", f"h{k}", 1.0 + k)
        circuit.resistor(f"S{k}", f"h{k}", "0" if k % 2 else "x", 2.0)
        circuit.current_source(f"I{k}", "0", f"h{k}", (-1.0) ** k)
        circuit.diode(f"D{k}", *(("0", f"h{k}") if k % 2 else (f"h{k}", "0")))
    exact, descent = circuitsim.solve(circuit), circuitsim.solve(circuit, solver="coordinate-descent")
    np.testing.assert_allclose(descent.voltages, exact.voltages, rtol=0, atol=1e-12)


def test_descent_kernel_equals_its_numpy_twin() -> None:
    program = program_of(mesh(5, 1))
    table = coordinate_descent.incidence(program)
    twin, compiled = (np.random.default_rng(0).normal(size=program.n + 1) for _ in range(2))
    twin[-1] = compiled[-1] = 0.0
    for _ in range(3):
        coordinate_descent.sweep(table, twin)
    descend(*table, compiled, 0.0, 3)
    np.testing.assert_allclose(compiled, twin, rtol=1e-13, atol=1e-13)


def test_dense_numpy_factor_equals_the_compiled_one() -> None:
    rng = np.random.default_rng(2)
    n, m = 30, 120
    a, b = rng.integers(0, n + 1, (2, m))
    keep = a != b
    a, b, w = a[keep], b[keep], 10.0 ** rng.uniform(-9, 0, int(keep.sum()))
    w[::7] = dense.SHORT
    current = rng.normal(size=n)
    compiled = laplacian.solve(laplacian.factor(laplacian.analyse(n, a, b), w), current)
    numpy_twin = dense.solve(dense.factor(n, a, b, w), current)[:n]
    scale = dense.solve(dense.factor(n, a, b, w), np.abs(current))[:n]
    assert (np.abs(compiled - numpy_twin) <= 1e-13 * scale).all()


def test_compiled_and_interpreted_sizes_agree_with_a_reference_solver() -> None:
    """A mesh beyond every 'small' threshold: sparse factor, compiled kernels, thousands of diodes."""
    circuit = mesh(45, 3, diodes=0.9)
    op = circuitsim.solve(circuit)
    assert op.certificate.worst < 1e-12
    share = np.mean([op.state(name) == "conducting" for name in circuit.names if name.startswith("D")])
    assert 0.1 < share < 0.9
    structure = analyse(circuit)
    program, feasible = feasible_program(structure, quadratic_program(structure))
    x = Reference("CLARABEL").solve(program, feasible).x
    np.testing.assert_allclose(op.voltages, x[structure.coordinate] + program.offset, atol=1e-4)


@pytest.mark.parametrize("seed", [4, 8])
def test_meshes_nearly_full_of_diodes_need_few_linear_circuits(seed: int) -> None:
    """Changes of all violated diodes do not converge from none conducting: groups of hundreds join and part."""
    ready = prepared(mesh(45, seed, diodes=0.9))
    assert isinstance(ready, Prepared)
    op = dataclasses.replace(ready, small="the large driver").solve()
    assert op.certificate.certified
    assert int(str(op.solver["iterations"])) <= 100  # 126 and 129 before parts changed early


def test_same_circuit_same_bits() -> None:
    first, second = (circuitsim.solve(mesh(30, 5)) for _ in range(2))
    assert first.voltages.tobytes() == second.voltages.tobytes()
    assert first.currents.tobytes() == second.currents.tobytes()


def test_unknown_solvers_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no solver is called 'newton'; choose among auto, active-set"):
        circuitsim.solve(frozen(), solver="newton")
    with pytest.raises(UsageError, match="cvxpy has no solver NOSUCH here; installed: "):
        circuitsim.solve(frozen(), solver="cvxpy:nosuch")


def test_long_ladder_attenuates_far_below_rounding() -> None:
    """Every stage divides by about ten: after 100 stages the voltage is 1e-100 V and still certified."""
    circuit = Circuit("ladder")
    circuit.voltage_source("V1", "n0", "0", 1.0)
    for k in range(100):
        circuit.resistor(f"R{k}", f"n{k}", f"n{k + 1}", 9.0)
        circuit.resistor(f"S{k}", f"n{k + 1}", "0", 1.0)
        circuit.diode(f"D{k}", "0", f"n{k + 1}")
    op = circuitsim.solve(circuit)
    ratio = op["n60"] / op["n59"]
    assert op.certificate.worst < 1e-12
    assert 0.0 < op["n100"] < 1e-90
    # An infinite ladder of series 9 Ω and shunt 1 Ω: 1/ratio is the larger root of 9 (1 + 1/9·…): t² − 11 t + 1 = 0.
    assert 1 / ratio == pytest.approx((11 + np.sqrt(117)) / 2, rel=1e-12)
