"""Charges of junctions over time and on small signals: closed forms, and ngspice 39 at tight tolerances."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from spice import needed

import circuitsim
from circuitsim.errors import UsageError
from circuitsim.small_signal import ac
from circuitsim.time_domain import Integral, TransientResult, Value, transient, waveform_gradient

MODEL = ".model D1N D(IS=2.52n N=1.752 RS=0.568 CJO=4p VJ=0.7 M=0.4 FC=0.5 TT=20n)\n"
MULTIPLIER = (
    "Vin a 0 SIN(0 50 100k)\nRs a p 0.01\nCa p q 100n\nDa 0 p DM\nCb 0 m 100n\nDb p m DM\nCc p q 100n\nDc m q DM\n"
    "Cd m out 100n\nDd q out DM\n.model DM D(IS=76.9p RS=42m N=1.45 BV=1k IBV=5u CJO=26.5p M=.333)\n.tran 0.1u 50u\n"
)
DECKS = {
    "reverse recovery": (
        "V1 in 0 PULSE(5 -5 100n 5n 5n 1u 4u)\nR1 in out 50\nD1 out 0 D1N\n.tran 0.5n 200n\n",
        "0.02n",
    ),
    "rectifier at 1 MHz": (
        "V1 in 0 SIN(0 10 1meg)\nR1 in a 10\nD1 a out D1N\nC1 out 0 10n\nR2 out 0 1k\n.tran 10n 4u\n",
        "0.5n",
    ),
    "multiplier": (MULTIPLIER, "5n"),
}


def test_what_flows_in_is_stored() -> None:
    """A reverse step through 1 MΩ: the charge that has flowed is that of the capacitance between both voltages."""
    deck = "t\nV1 in 0 PULSE(0 5 1u 1n 1n 1 2)\nR1 in a 1meg\nD1 0 a DC\n.model DC D(IS=1e-18 CJO=10p VJ=0.8 M=0.5)\n"
    run = transient(circuitsim.loads(deck + ".tran 0.05u 200u\n"), accuracy=1e-7)
    flowed = np.trapezoid(run.current("R1"), run.times)
    assert run.voltage("a")[-1] == pytest.approx(5.0, abs=1e-5)
    assert flowed == pytest.approx(2.0 * 10e-12 * 0.8 * (math.sqrt(1.0 + 5.0 / 0.8) - 1.0), rel=2e-3)
    assert run.difference is not None and run.difference <= 1e-7


def test_storage_time() -> None:
    """A junction with a transit time alone stays forward for TT ln(1 + I_F / I_R)."""
    deck = "t\nI1 0 a PULSE(10m -5m 1u 0 0 1 2)\nR1 a 0 1meg\nD1 a 0 DT\n.model DT D(IS=1e-12 TT=1u)\n.tran 1n 3u\n"
    run = transient(circuitsim.loads(deck), accuracy=1e-5)
    falls = run.times[np.flatnonzero((run.times > 1e-6) & (run.voltage("a") < 0.3))[0]] - 1e-6
    assert falls == pytest.approx(1e-6 * math.log(3.0), rel=5e-3)


def test_small_signals_see_the_capacitance() -> None:
    deck = "t\nV1 in 0 DC -3 AC 1\nR1 in a 10k\nD1 a 0 DV\n.model DV D(IS=1e-20 CJO=30p VJ=0.75 M=0.45)\n"
    circuit = circuitsim.loads(deck)
    farads = 30e-12 * (1.0 + 3.0 / 0.75) ** -0.45
    hertz = np.array([1e4, 1e6, 1e8])
    found = ac(circuit, hertz, {"V1": 1.0}).voltage("a")
    np.testing.assert_allclose(found, 1.0 / (1.0 + 2j * np.pi * hertz * 1e4 * farads), rtol=1e-6)


CAPACITOR = ".model DC D(IS=1e-20 CJO=1n M=0)\n"
"""A junction that is a capacitor of 1 nF in reverse."""


def test_the_voltage_of_a_junction_is_stated() -> None:
    """``ic=`` of a run with ``uic``, kept by `circuitsim.dumps`; a diode without a charge has no such state."""
    deck = circuitsim.loads(f"t\nR1 a 0 1k\nD1 a 0 DC IC=-3\n{CAPACITOR}.tran 1u 3u uic\n")
    for own in (deck, circuitsim.loads(circuitsim.dumps(deck))):
        run = transient(own, accuracy=1e-6)
        np.testing.assert_allclose(run.voltage("a"), -3.0 * np.exp(-run.times / 1e-6), rtol=1e-5)
    ideal = circuitsim.loads("t\nV1 a 0 1\nR1 a b 1k\nD1 b 0 IC=1\nC1 b 0 1n\n.tran 1n 10n uic\n")
    assert "D1" in next(note.message for note in ideal.notes if "without a charge" in note.message)
    with pytest.raises(UsageError, match="D1 is no capacitor, inductor or junction with a charge"):
        transient(ideal, initial={"D1": 1.0})


def test_steady_state() -> None:
    """Of a junction that is a capacitor, in closed form; of a rectifier whose junction stores charge over several
    periods, as a run of 100 periods ends."""
    deck = f"t\nV1 in 0 SIN(-5 2 159154.943091895)\nR1 in a 1k\nD1 a 0 DC\n{CAPACITOR}.tran 0.1u 10u\n"
    steady = circuitsim.steady_state(circuitsim.loads(deck), accuracy=1e-6)
    angle = 1e6 * steady.times
    np.testing.assert_allclose(steady.voltage("a"), -5.0 + np.sin(angle) - np.cos(angle), atol=5e-6)
    deck = "t\nV1 in 0 SIN(0 10 1meg)\nR1 in a 50\nD1 a out DS\nC1 out 0 2n\nR2 out 0 1k\n"
    deck += ".model DS D(IS=1n RS=0.5 CJO=100p TT=2u)\n.tran 10n 100u 99u\n"
    late = transient(circuitsim.loads(deck), accuracy=1e-6)
    steady = circuitsim.steady_state(circuitsim.loads(deck), accuracy=1e-6)
    assert steady.shooting.multipliers.size == 2
    np.testing.assert_allclose(
        steady.voltage("out", times=np.clip(late.times - 99e-6, 0.0, 1e-6)), late.voltage("out"), atol=1e-4
    )


def test_gradients() -> None:
    """Of a voltage, a current and an integral, by parameters of the junction too, beside differences."""
    deck = "t\nV1 in 0 SIN(0 5 50k)\nR1 in a {R1}\nL1 a b 1m\nD1 b out DS\nC1 out 0 {C1}\nR2 out 0 1k\n"
    deck += ".model DS D(IS={is} RS={rs} CJO={cjo} VJ={vj} M=0.4 TT={tt})\n.tran 1u 30u\n"
    values = {"R1": 100.0, "C1": 1e-7, "D1.is": 1e-12, "D1.rs": 2.0, "D1.cjo": 1e-9, "D1.vj": 0.8, "D1.tt": 5e-7}
    functionals = [Value("v(out)", 2.7e-5), Value("i(L1)", 2.1e-5), Integral("v(b)", 5e-6, 2.5e-5)]

    def run(scale: float) -> TransientResult:
        numbers = {name.removeprefix("D1."): value * scale for name, value in values.items()}
        return transient(circuitsim.loads(deck.format(**numbers)), accuracy=1e-7)

    middle = run(1.0)
    low, high = (waveform_gradient(run(1.0 + own), functionals, []).values for own in (-1e-3, 1e-3))
    for own, below, above in zip(functionals, low, high):
        gradient = waveform_gradient(middle, [own], list(values)).gradient
        along = sum(gradient[name] * value for name, value in values.items())
        assert along == pytest.approx((above - below) / 2e-3, rel=1e-3)


@needed
@pytest.mark.parametrize("name", DECKS)
def test_beside_ngspice(name: str, tmp_path: Path) -> None:
    text, step = DECKS[name]
    text = f"t\n{text}{MODEL}"
    run = transient(circuitsim.loads(text), accuracy=1e-5)
    tran = next(line for line in text.splitlines() if line.startswith(".tran"))
    options = ".options reltol=1e-6 abstol=1e-15 vntol=1e-9\n"
    control = f".control\nrun\nwrdata {tmp_path}/out.dat v(out)\nquit 0\n.endc\n.end\n"
    (tmp_path / "deck.cir").write_text(text.replace(tran, f"{tran} 0 {step}") + options + control)
    subprocess.run(["ngspice", "-b", str(tmp_path / "deck.cir")], check=True, capture_output=True, timeout=120)
    time, volts = np.loadtxt(tmp_path / "out.dat").T
    off = np.abs(run.voltage("out") - np.interp(run.times, time, volts))
    # ngspice itself is off by some 1e-5 where the current of a recovering junction ends.
    assert np.quantile(off, 0.98) <= 3e-5 * np.abs(volts).max()
