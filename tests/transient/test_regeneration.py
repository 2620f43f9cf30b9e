"""Circuits whose operating point ends at some time: comparators with positive feedback switch there."""

import math

import numpy as np
import pytest

import circuitsim

ASTABLE = """astable multivibrator of an op-amp with limits
X1 p n o limited_opamp gain=1e5 low=-10 high=10
R1 o p 10k
R2 p 0 10k
R3 o n 10k
C1 n 0 10n IC=-4.9
.tran 1u 0.57m UIC
"""
SCHMITT = """a table with positive feedback, driven by a pulse
V1 s 0 PULSE(0 5 10u 1u 1u 150u 1)
E1 x 0 TABLE {v(p)} = (1.999,0) (2.001,5)
Ro x o 10
Co o 0 100p
R3 s p 10k
R2 p o 30k
.tran 1u 300u
"""


def test_an_astable_multivibrator_has_the_period_of_its_thresholds() -> None:
    """Thresholds of half the output, so a half period takes R C ln 3."""
    result = circuitsim.transient(circuitsim.loads(ASTABLE))
    falls = [event.time for event in result.events if "+X1.Eout.Dlow" in event.changed]
    assert len(falls) == 3
    period = 2.0 * 10e3 * 10e-9 * math.log(3.0)
    assert np.diff(falls).tolist() == pytest.approx([period] * 2, rel=1e-4)
    assert "1e-15 F at p, n" in result.reason and [*result.circuit.names] == [*circuitsim.loads(ASTABLE).names]
    assert result.certificate.certified and not result.warnings


def test_a_schmitt_trigger_switches_at_its_thresholds() -> None:
    result = circuitsim.transient(circuitsim.loads(SCHMITT))
    assert result.at([9e-6, 100e-6, 250e-6])[0][:, result.circuit.element_index("Co")] == pytest.approx(
        [0.0, 5.0, 0.0], abs=1e-6
    )


def test_a_schmitt_trigger_without_capacitors() -> None:
    """It follows its operating point, one of several at time 0, and has no state with an error to state."""
    deck = "t\nV1 in 0 SIN(0 5 1k)\nX1 p in out limited_opamp gain=1e5 low=-12 high=12\nR1 out p 10k\nR2 p 0 2k\n"
    result = circuitsim.transient(circuitsim.loads(deck + ".tran 10u 2m\n"))
    assert result.difference is None and "1e-15 F" in result.reason
    (warning,) = result.warnings
    assert warning.kind == "several" and warning.names == ("out",)
    at = 1e-3 + 1e-3 * math.asin(0.4) / (2.0 * math.pi) + np.array([-1e-6, 1e-6])
    assert result.voltage("out", times=at) == pytest.approx([12.0, -12.0])


def test_a_branch_that_ends_while_an_event_is_located() -> None:
    deck = "t\nV1 in 0 PULSE(0 8 1m 1u 1u 2m 6m)\nE1 out 0 VALUE={limit(1e5*(v(p)-v(in)),-10,10)}\n"
    result = circuitsim.transient(circuitsim.loads(deck + "R1 out p 10k\nR2 p 0 10k\n.tran 10u 4m\n"))
    assert result.voltage("out", times=[0.9e-3, 1.1e-3, 3.9e-3]) == pytest.approx([0.0, -10.0, -10.0])
