"""Loops of ideal diodes in implicit runs: currents of least norm at all times, none backwards."""

import numpy as np
import pytest

import circuitsim
from circuitsim.engine.loops import WireLoops

DECK = """three diodes between two nodes, charged through resistors
R1 n1 0 1
R3 n3 n1 1
D0 n1 n3
D1 n3 n1
D2 n3 n1
D3 n1 0
C0 n2 n3 0.16 ic=1.56
C1 n1 0 1 ic=0
C2 n3 n2 1 ic=-1.18
R2 n2 n1 6.92
L0 n3 n1 1 ic=0.55
V0 s0 n3 PULSE(-2 5 0.3 0.2 0.2 0.5 1.7)
Rs0 s0 n1 1
.tran 0.05 2 uic
"""


def test_no_diode_of_a_loop_carries_backwards_between_stages() -> None:
    deck = circuitsim.loads(DECK)
    times = np.linspace(0.0, 2.0, 2001)
    implicit, exact = (circuitsim.transient(deck, method=method).at(times)[1] for method in ("implicit", "exact"))
    diodes = [deck.element_index(name) for name in ("D0", "D1", "D2")]
    assert implicit[:, diodes].min() >= 0.0 and implicit[:, diodes].max() > 1.0
    entering = implicit[:, diodes] @ [1.0, -1.0, -1.0]
    assert entering == pytest.approx(exact[:, diodes] @ [1.0, -1.0, -1.0], abs=1e-4)
    carried = np.maximum(entering, 0.0), 0.5 * np.maximum(-entering, 0.0), 0.5 * np.maximum(-entering, 0.0)
    assert implicit[:, diodes] == pytest.approx(np.array(carried).T, abs=1e-9)


def test_needs_that_are_equal_but_for_rounding() -> None:
    """Two nodes of a triangle of diodes take 2 A each from the third; the diode between them carries nothing."""
    ends, one_way = np.array([[1, 0, 1, 2, 1, 0], [2, 2, 0, 0, 0, 1]]), np.ones(6, dtype=bool)
    loops = WireLoops(np.arange(6), np.arange(3), ends, one_way)
    found = loops.least_norm(np.array([0.25, 1.75, 0.0, 0.0, 0.0, np.nextafter(2.25, 0.0)]))
    np.testing.assert_allclose(found, [0.0, 2.0, 0.0, 0.0, 0.0, 2.0], atol=1e-12)
