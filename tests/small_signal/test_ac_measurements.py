"""``.meas ac`` against closed forms: a resonator, a low-pass, an integrator's margins."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

import circuitsim
from circuitsim import UsageError, loads
from circuitsim.small_signal import measure

R, L, C = 10.0, 1e-3, 1e-6
RESONATOR = f"""a series resonator
V1 in 0 AC 1
R1 in a {R}
L1 a b {L}
C1 b 0 {C}
.param half={{1/sqrt(2)}}
.ac dec 20 100 100k
.meas ac peak MAX i(R1)
.meas ac place MAX_AT i(R1)
.meas ac width TRIG im(R1) VAL={{half/{R}}} RISE=1 TARG im(R1) VAL={{half/{R}}} FALL=1
.meas ac away FIND vm(b) AT=1MEG
.meas ac low FIND mag(v(b)/v(in)) AT=100
.tran 1m 1m
.meas tran low MAX v(b)
"""


def test_a_resonance() -> None:
    with pytest.warns(circuitsim.DeckWarning, match="away"):
        found = circuitsim.run(loads(RESONATOR))["meas"]
    resonance = 1.0 / (2.0 * math.pi * math.sqrt(L * C))
    assert found["peak"] == pytest.approx(1.0 / R, rel=1e-9) and found["place"] == pytest.approx(resonance, rel=1e-6)
    assert found["width"] == pytest.approx(R / (2.0 * math.pi * L), rel=1e-8)  # bandwidth R/L
    omega = 200.0 * math.pi
    assert found["low"] == pytest.approx(abs(1.0 / (1.0 - omega**2 * L * C + 1j * omega * R * C)), rel=1e-12)
    assert found["away"] is None and found["tran low"] == 0.0  # the same name, of another analysis


def test_forms_on_a_low_pass() -> None:
    run = circuitsim.ac(loads("t\nV1 in 0 AC 2\nR1 in out 1k\nC1 out 0 1u\n.ac dec 7 1 10k\n"))
    corner = 500.0 / math.pi

    response = 2 / (1 + 10j / corner)
    f = np.concatenate(([10.0], run.frequencies[(run.frequencies > 10) & (run.frequencies < 1e3)], [1e3]))
    expected = {
        "WHEN db(v(out)/v(in))=-20": corner * math.sqrt(99.0),
        "WHEN vp(out)=-45": corner,
        "FIND vp(out) WHEN vm(out)=0.2 FALL=LAST": -math.degrees(math.atan(math.sqrt(99.0))),
        "FIND vdb(out) AT=1k": 20 * math.log10(2 / math.hypot(1, 1000 / corner)),
        "FIND vr(out) AT=10": response.real,
        "FIND vi(out) AT=10": response.imag,
        "MAX v(in)": 2.0,
        "PP vm(in)": 0.0,
        "MIN_AT vm(out)": 1e4,
        "DERIV vm(out) AT=100": -200 / corner**2 / (1 + (100 / corner) ** 2) ** 1.5,
        "INTEG vm(out) FROM=10 TO=1k": trapezoid(2 / np.hypot(1, f / corner), f),
        "WHEN vm(out)=5": None,
    }
    for text, wanted in expected.items():
        assert measure(run, f"x {text}").value == (wanted and pytest.approx(wanted, rel=1e-6)), text
    assert measure(run, "x DERIV vr(out) AT=1").value == pytest.approx(-4 / corner**2, rel=1e-4)
    for wrong in ("MAX p(R1)", "MAX v(nowhere)", "FIND vm(out) AT=100k", "WHEN vm(out)=", "MAX v(in)*2", "NOISE v(a)"):
        with pytest.raises(UsageError, match="measurement 'x "):
            measure(run, f"x {wrong}")


def test_phase_margin_of_a_loop() -> None:
    """1/(s(1 + s)), in units of 1e6/s: unity gain at ω² = (√5 − 1)/2, margin 180° − 90° − arctan ω."""
    deck = "loop\nV1 in 0 AC 1\nG1 0 a in 0 1\nC1 a 0 1u\nR9 a 0 1G\nE1 b 0 a 0 1\nR2 b out 1\nC2 out 0 1u\n"
    run = circuitsim.ac(loads(f"{deck}.ac dec 10 1k 10MEG\n"))
    omega = math.sqrt((math.sqrt(5.0) - 1.0) / 2.0)
    assert measure(run, "f WHEN vdb(out)=0").value == pytest.approx(omega * 1e6 / (2 * math.pi), rel=1e-7)
    margin = 180.0 + measure(run, "m FIND vp(out) WHEN vdb(out)=0").value
    assert margin == pytest.approx(90.0 - math.degrees(math.atan(omega)), abs=1e-6)
