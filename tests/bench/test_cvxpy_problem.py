"""The forms of a circuit's program that cvxpy gets agree with potentials worked out by hand, and with each other."""

from importlib.util import find_spec

import numpy as np
import pytest

import circuitsim
from circuitsim.bench.runner import CVXPY_BACKENDS, CVXPY_KINDS, create

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
INSTALLED = [name for name, backend in CVXPY_BACKENDS.items() if find_spec(backend.package)]


@pytest.mark.parametrize("backend", INSTALLED)
@pytest.mark.parametrize("kind", CVXPY_KINDS)
def test_every_form_and_backend_finds_the_potentials_worked_out_by_hand(kind: str, backend: str) -> None:
    circuit = circuitsim.loads(DECK)
    solver = create(f"{kind}:{backend}")(circuit, 1e-9)
    expected = np.array([BY_HAND[name] for name in circuit.node_names])
    assert solver() == pytest.approx(expected, abs=1e-5)
    # With 3 V and −0.4 A: (3 − v) − 0.4 = v.
    value = circuit.arrays().value.copy()
    value[circuit.element_index("V1")], value[circuit.element_index("I1")] = 3.0, -0.4
    expected = np.array([{"0": 0.0, "a": 3.0}.get(name, 1.3) for name in circuit.node_names])
    assert solver(value) == pytest.approx(expected, abs=1e-5)
