"""The forms of a circuit's program that cvxpy gets agree with potentials worked out by hand, and with each other."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import circuitsim
from circuitsim.bench.competitors import CVXPY_BACKENDS, CVXPY_KINDS, create, energy_matrix, expand
from circuitsim.bench.families import make
from circuitsim.bench.runner import verified_error

# 1 V through 1 Ω to b; a conducting diode from b to c, 1 Ω from c to ground; a blocking one from ground to b; 0.2 A
# into c. b and c are one node: (1 − v) + 0.2 = v.
DECK = """two diodes
V1 a 0 1
R1 a b 1
D1 b c
R2 c 0 1
D2 0 b
I1 0 c 0.2
"""
BY_HAND = {"0": 0.0, "a": 1.0, "b": 0.6, "c": 0.6}
INSTALLED = [name for name, package in CVXPY_BACKENDS.items() if find_spec(package)]


@pytest.mark.parametrize("backend", INSTALLED)
@pytest.mark.parametrize("kind", CVXPY_KINDS)
def test_every_form_and_backend_finds_the_potentials_worked_out_by_hand(kind: str, backend: str) -> None:
    circuit = circuitsim.loads(DECK)
    adapter = create(f"{kind}:{backend}")
    adapter.build(circuit, 1e-9)
    expected = np.array([BY_HAND[name] for name in circuit.node_names])
    assert adapter.solve() == pytest.approx(expected, abs=1e-5)
    # With 3 V and −0.4 A: (3 − v) − 0.4 = v.
    value = circuit.arrays().value.copy()
    value[circuit.element_index("V1")], value[circuit.element_index("I1")] = 3.0, -0.4
    adapter.update(value)
    expected = np.array([{"0": 0.0, "a": 3.0}.get(name, 1.3) for name in circuit.node_names])
    assert adapter.solve() == pytest.approx(expected, abs=1e-5)


def test_the_nodal_matrix_is_that_of_the_textbook() -> None:
    circuit = circuitsim.loads("a delta\nR1 a b 0.5\nR2 b 0 0.25\nR3 a 0 1\nV1 a 0 1\n")
    assert list(circuit.node_names[1:]) == ["a", "b"]
    assert energy_matrix(circuit.arrays(), nodal=True).toarray().tolist() == [[3.0, -2.0], [-2.0, 6.0]]


def test_both_forms_have_the_same_energy() -> None:
    arrays = make("grid", 40, 0).arrays()
    v = np.random.default_rng(0).normal(size=arrays.n_nodes - 1)
    nodal, squares = (energy_matrix(arrays, form) for form in (True, False))
    assert v @ (nodal @ v) == pytest.approx(np.sum((squares @ v) ** 2), rel=1e-12)


@pytest.mark.skipif("PIQP" not in INSTALLED, reason="piqp is not installed")
def test_the_verified_error_of_the_nodal_form_is_small_and_that_of_a_moved_answer_is_not() -> None:
    circuit = make("grid", 40, 0)
    adapter = create("cvxpy-nodal:PIQP")
    adapter.build(circuit, 1e-11)
    voltages = adapter.solve()
    assert verified_error(circuit, voltages).error < 1e-8
    voltages[5] += 1e-2
    assert verified_error(circuit, voltages).error > 1e-4


def test_names_stand_for_forms() -> None:
    assert set(expand("cvxpy")) >= {f"{kind}:{backend}" for kind in CVXPY_KINDS for backend in CVXPY_BACKENDS}
    assert "cvxpy-nodal:PIQP" in expand("cvxpy-nodal") and "cvxpy:PIQP" not in expand("cvxpy-nodal")
    assert "cvxpy-nodal-dpp:XPRESS" in expand("cvxpy-nodal-dpp:xpress")
