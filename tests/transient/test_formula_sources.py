"""Sources given by formulas of the time, against the same sources as time functions and against closed forms."""

import math

import numpy as np
import pytest

from circuitsim import steady_state, transient
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import ImplicitResult, Integral, waveform_gradient

FILTER = "t\n{source}\nR1 in out 1k\nC1 out 0 100n\n.tran 10u 4m\n.end\n"


@pytest.mark.parametrize(
    ("formula", "straight"),
    [
        ("2*v(r)-3*time*1k+1", True),
        ("abs(v(r)-0.5)", True),
        ("min(v(r),0.3)+max(v(r),v(c)/2)", True),
        ("-v(r)/4", True),
        ("limit(2*v(r),0.2,0.9)", True),
        ("uramp(v(r)-0.25)*4", True),
        ("(v(r)>0.4 ? v(r) : 1-v(r))", True),
        ("floor(4*v(r))", True),
        ("v(r)*v(r)", False),
        ("v(r)*time", False),
        ("1/(1+v(r))", False),
        ("v(x)+v(r)", False),
        ("sqrt(v(r)+1)", False),
        ("(v(x)>0 ? 1 : v(r))", True),
        ("(v(r)>0.5)*(v(r)-0.5)", True),
    ],
)
def test_formulas_of_straight_lines_are_exact(formula: str, straight: bool) -> None:
    """Of a ramp, a constant, a sine and the time: those of the voltages alone are controlled sources."""
    deck = loads(
        "t\nVr r 0 PULSE(0 1 0 1m 1m 0.2m 3m)\nVc c 0 1\nVx x 0 SIN(0 1 1k 0 0 30)\n"
        f"B1 in 0 V={{{formula}+100*time}}\nR1 in out 1k\nC1 out 0 100n\n.tran 20u 2.4m\n.end\n"
    )
    run, sampled = transient(deck), transient(deck, method="implicit", accuracy=1e-6)
    assert isinstance(run, ImplicitResult) is not straight
    beside = run.times[1:] - 7e-6  # at steps a value is that after them
    close = 1e-11 if straight else 1e-5  # between steps to the accuracy
    assert run.voltage("in", times=beside) == pytest.approx(sampled.voltage("in", times=beside), abs=close)
    assert run.voltage("out") == pytest.approx(sampled.voltage("out"), abs=3e-5 if straight else 1e-4)
    if straight:
        gradient = waveform_gradient(run, [Integral("v(out)", 0.0, 2e-3)], ["R1"]).gradient["R1"]
        assert np.isfinite(gradient)
        with pytest.raises(UsageError, match="may be read by the formula"):
            waveform_gradient(run, [Integral("v(out)", 0.0, 2e-3)], ["Vc"])


def test_what_is_refused() -> None:
    behind_a_coil = "t\nV1 a 0 1\nL1 a b 1m\nR1 b c 1k\nB1 c 0 V=v(b)*v(b)\nR2 c 0 1k\n.tran 10u 1m\n.end\n"
    with pytest.raises(UsageError, match="depend on it over time"):
        transient(loads(behind_a_coil))
    deck = loads(FILTER.format(source="B1 in 0 V={sin(1k*time)}"))
    with pytest.raises(UsageError, match="not periodic"):
        steady_state(loads(FILTER.format(source="B1 in 0 V={abs(time-1m)}")))
    with pytest.raises(UsageError, match="B1 is a formula of the time"):
        transient(deck, method="exact")


def test_a_gradient_behind_a_formula() -> None:
    """With R C = τ and ω the integral of sin ωt through the filter is a closed form; its derivative by R of it."""

    def integral(ohms: float) -> float:
        tau, omega, t = 1e-7 * ohms, 1e3, 1e-3
        decay = omega * tau * tau * (1.0 - math.exp(-t / tau))
        return ((1.0 - math.cos(omega * t)) / omega - tau * math.sin(omega * t) + decay) / (1.0 + (omega * tau) ** 2)

    run = transient(loads(FILTER.format(source="B1 in 0 V={sin(1k*time)}")), 1e-3, step=1e-5, accuracy=1e-7)
    found = waveform_gradient(run, [Integral("v(out)", 0.0, 1e-3)], ["R1"])
    assert found.values[0] == pytest.approx(integral(1e3), rel=1e-6)
    assert found.gradient["R1"] == pytest.approx((integral(1001.0) - integral(999.0)) / 2.0, rel=1e-5)


def test_output_times_change_no_step() -> None:
    """An oscillation of 100 kHz, with output times that meet its zeros, and others."""
    card = "t\nB1 q 0 V=max(sin(2*pi*100k*time),0.5)\nR3 q s 1k\nC3 s 0 20n\n.tran {} 150u\n.end\n"
    one, other = (transient(loads(card.format(step))) for step in ("10u", ".1u"))
    assert isinstance(one, ImplicitResult) and isinstance(other, ImplicitResult)
    assert [step.time for step in one.run.step_starts] == [step.time for step in other.run.step_starts]
    np.testing.assert_allclose(one.voltage("s"), other.voltage("s")[::100], rtol=1e-12)
    mean = math.sqrt(3.0) / 2.0 / math.pi + 0.5 * (1.0 - 1.0 / 3.0)
    assert one.voltage("s")[-1] == pytest.approx(mean, abs=2e-2)
