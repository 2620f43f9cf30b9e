"""Solvers against the counterexamples they exist for, against their twins, and against each other."""

import numpy as np
import pytest

import circuitsim
from circuitsim import loads
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError


def frozen() -> Circuit:
    """a pulled to +1 V, b to −1 V by equal resistors, diode a→b."""
    circuit = loads("frozen descent\nV1 p 0 1\nV2 m 0 -1\nR1 p a 1\nR2 b m 1\nD1 a b\n").circuit
    return circuit


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
