"""Runs that no memory would hold are refused before they begin."""

from __future__ import annotations

import random
import time

import pytest

from circuitsim import transient
from circuitsim.errors import CircuitError, UsageError
from circuitsim.netlist import loads

DECK = "a filter\n{}\nR1 a b 1k\nC1 b 0 1u\n{}\n.tran {!r} {!r}\n"
DIODE = "D1 b 0 dj\n.model dj D(IS=1n)"


def source(kind: str, cycle: float) -> str:
    """A source that repeats in ``cycle`` s."""
    f = 1.0 / cycle
    return {
        "sin": f"V1 a 0 SIN(0 1 {f!r})",
        "pulse": f"V1 a 0 PULSE(0 1 0 {cycle / 9!r} {cycle / 9!r} {cycle / 3!r} {cycle!r})",
        "pwl": f"V1 a 0 PWL(0 0 {cycle / 2!r} 1 {cycle!r} 0) r=0",
        "sffm": f"V1 a 0 SFFM(0 1 {f / 1e3!r} 1k {f!r})",
        "am": f"V1 a 0 AM(1 1 1k {f!r})",
        "formula": f"V1 x 0 PULSE(0 1 0 {cycle / 9!r} {cycle / 9!r} {cycle / 3!r} {cycle!r})\nB1 a 0 V=2*v(x)+1",
    }[kind]


@pytest.mark.parametrize("kind", ["sin", "pulse", "pwl", "sffm", "am", "formula"])
def test_sources_far_faster_than_the_run(kind: str) -> None:
    r = random.Random(kind)
    for method in ("exact", "implicit"):
        stop = 10.0 ** r.uniform(-6.0, 4.0)
        deck = loads(
            DECK.format(source(kind, stop * 10.0 ** r.uniform(-15.0, -8.0)), r.choice(("", DIODE)), stop / 100.0, stop)
        )
        begun = time.process_time()
        with pytest.raises(UsageError, match=r"V1 has .* periods or corners in the .* of the run.* end the run at"):
            transient(deck, method=method)
        assert time.process_time() - begun < 0.5


def test_a_formula_far_faster_than_the_run() -> None:
    deck = loads(DECK.format("B1 a 0 V=sin(1e13*time)", "", 1e-3, 1.0))
    with pytest.raises(CircuitError, match=r"took 10,000 steps.*end it earlier"):
        transient(deck)


def test_output_times() -> None:
    with pytest.raises(UsageError, match=r"more than 1,000,000 points; take a larger step"):
        transient(loads(DECK.format("V1 a 0 SIN(0 1 1k)", "", 1e-9, 1e6)))


def test_a_pulse_that_rounding_hides() -> None:
    """At half a millisecond times are whole 1e-19 s: a step is a step there, a pulse no pulse."""
    pulse = "V1 a 0 PULSE(0 1 .5m 1e-19 1e-19 {!r} 1)"
    with pytest.raises(UsageError, match=r"V1 has a pulse of .* at 0.0005 s"):
        transient(loads(DECK.format(pulse.format(1e-18), "", 1e-5, 1e-3)), method="implicit")
    found = transient(loads(DECK.format(pulse.format(1.0), "", 1e-5, 1e-3)), method="implicit")
    assert found.voltage("b")[-1] == pytest.approx(0.39346934, rel=1e-5)
