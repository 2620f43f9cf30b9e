"""What a set of conducting diodes leaves open, beside circuits with small conductances and resistances in its place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from circuitsim import solve
from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.controlled.equations import right_side
from circuitsim.controlled.law_arrays import law_arrays
from circuitsim.netlist import loads

SMALL = 1e-8
"""Ω in place of conducting diodes, S in place of blocking ones."""
BRIDGE = """a winding behind four diodes
V1 in 0 {volts}
Rp in a 5
E1 x t a 0 0.5
F1 a 0 E1 -0.5
Rs x b 0.1
D1 b o
D2 t o
D3 0 b
D4 0 t
V2 p 0 {load}
R2 o p 1
.end
"""
LOOPS = """diodes beside each other and beside sources
V1 in 0 {volts}
R1 in a 2
E1 e 0 in 0 2
R2 e a 3
D1 a b
D2 a b
D3 b c
V2 d c 0
D4 a d
I1 f 0 {load}
D5 f c
D6 f b
R3 c 0 1
.end
"""


def made(text: str) -> ControlledSystem:
    circuit = loads(text).circuit
    return ControlledSystem(circuit, circuit.arrays(), law_arrays(circuit.laws))


def nearly(text: str, conducting: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Potentials of named nodes and currents of diodes where small resistances and conductances stand for these."""
    own = dict(zip([line.split()[0] for line in text.splitlines() if line.startswith("D")], conducting))
    lines = [
        f"R{line} {SMALL if own[line.split()[0]] else 1.0 / SMALL}" if line.split()[0] in own else line
        for line in text.splitlines()
    ]
    point = solve(loads("\n".join(lines) + "\n"))
    return point.voltages, np.array([point.current(f"R{name}") for name in own])


@pytest.mark.parametrize(
    ("text", "volts", "load"),
    [(BRIDGE, 3.0, 5.0), (BRIDGE, 0.0, 0.0), (BRIDGE, -2.0, 0.0), (LOOPS, 3.0, 0.0), (LOOPS, -1.0, 2.0)],
)
def test_every_set_as_with_small_resistances(text: str, volts: float, load: float) -> None:
    deck = text.format(volts=volts, load=load)
    system, left_open, checked = made(deck), 0, 0
    right = right_side(system.arrays, system.laws, system.eq)
    for states in itertools.product((False, True), repeat=system.eq.diode.size):
        conducting = np.array(states)
        left_open += system.ties.terms(conducting) is not None
        x = system.tied(conducting).solve(right).high
        voltages, currents = nearly(deck, states)
        if max(np.abs(voltages).max(), np.abs(currents).max()) > 1e3:
            continue  # sources contradict each other in a loop or a cut: the certificate refuses that set
        checked += 1
        n = system.arrays.n_nodes
        assert x[: n - 1] == pytest.approx(voltages[1:], abs=1e-6)
        own = x[system.eq.own[system.eq.diode]]
        assert own == pytest.approx(np.where(conducting, currents, 0.0), abs=1e-6)
    assert left_open >= 2 and checked >= 6


def test_what_a_control_tells_is_not_chosen() -> None:
    """The potential of a part that blocking diodes alone join to ground, where a source measures it."""
    measured = BRIDGE.format(volts=3.0, load=5.0).replace("R2 o p 1", "R2 o p 1\nE2 q 0 b 0 2\nV3 q 0 4")
    system, none = made(measured), np.zeros(4, dtype=bool)
    assert system.ties.terms(none) is None
    assert made(BRIDGE.format(volts=3.0, load=5.0)).ties.terms(none) is not None
    # As is the current around a loop, where a source measures one of its diodes.
    counted = LOOPS.format(volts=3.0, load=0.0).replace("D4 a d", "D4 a g\nV4 g d 0\nF2 0 h V4 1\nR4 h 0 1")
    both = np.array([True, False, True, True, True, False])
    assert made(counted).ties.terms(both) is None
    assert made(LOOPS.format(volts=3.0, load=0.0)).ties.terms(both) is not None


def test_the_rest_of_a_transformer_takes_no_power_from_its_diodes() -> None:
    assert made(BRIDGE.format(volts=3.0, load=5.0)).monotone
    assert not made(BRIDGE.format(volts=3.0, load=5.0).replace("E1 -0.5", "E1 5")).monotone
