"""Source waveforms as linear systems against the formulas of ngspice's manual, at random times."""

import numpy as np
import pytest

from circuitsim import steady_state, transient
from circuitsim.netlist import loads
from circuitsim.time_domain import PiecewiseLinear, measure


def test_relative_times_of_ltspice() -> None:
    """Counted from the preceding time where they would not grow otherwise, which a warning says."""
    text = "t\nV1 a 0 PWL(0 0 +1m 1 +1m 0 5m 0 +1m 2)\nR1 a 0 1\n.tran 1m 8m\n"
    deck = loads(text)
    assert deck.following.waves[0].numbers == (0.0, 0.0, 1e-3, 1.0, 2e-3, 0.0, 5e-3, 0.0, 6e-3, 2.0)
    assert any("from the preceding time" in problem.message for problem in deck.problems)
    grows = loads(text.replace("+1m 0 5m 0 +1m 2", "+3m 0"))
    assert grows.following.waves[0].numbers == (0.0, 0.0, 1e-3, 1.0, 3e-3, 0.0)
    assert any("as in ngspice" in problem.message for problem in grows.problems)


def test_a_sawtooth_of_ltspice() -> None:
    """A mean over many repetitions, by both methods, and of the periodic steady state."""
    card = "V1 a 0 PWL REPEAT FOREVER (0 0 10m 325 20m 0) ENDREPEAT"
    deck = loads(f"t\n{card}\nR1 a b 1k\nC1 b 0 1u\n.tran 1m 1\n.end\n")
    for method in ("exact", "implicit"):
        assert measure(transient(deck, method=method), "m AVG v(a)").value == pytest.approx(162.5, rel=1e-9)
    assert measure(steady_state(deck), "m AVG v(b)").value == pytest.approx(162.5, rel=1e-9)
    short = loads("t\nV1 a 0 PWL(0 0 0.2m 5 0.7m 0) r=0\nR1 a b 1k\nC1 b 0 1u\n.tran 10u 20m\n.end\n")
    assert measure(steady_state(short), "m AVG v(b)").value == pytest.approx(2.5, rel=1e-9)


def test_corners_between_successive_times() -> None:
    """In any order of calls, before the first and after the last corner too."""
    corners, levels = [0.0, 1.0, 1.0, 2.0], [0.5, 3.0, 1.0, 1.5]
    wave = PiecewiseLinear(corners, levels)
    for times in np.random.default_rng(0).uniform(-0.5, 2.5, (100, 2)):
        np.testing.assert_allclose(wave.at(times), np.interp(times, corners, levels), rtol=1e-12)
