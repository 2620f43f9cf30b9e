"""Switches and coupled inductors against closed forms."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oscillators import relaxation_oscillator

from circuitsim import Circuit, solve
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist import load, loads
from circuitsim.time_domain import Sine, Switch, transient

NETLISTS = Path(__file__).parents[2] / "netlists"


def test_a_switch_that_a_sine_controls() -> None:
    """A divider of 1 kΩ and the switch: on from asin(0.6) to π − asin(0.4) of each period."""
    circuit = loads("t\nV1 s 0 1\nR1 s a 1000\n").circuit
    circuit.resistor("S1", "a", "0", 1e6)
    circuit.add("C", "C1", "s", "0", 1e-6)
    circuit.voltage_source("Vc", "c", "0", 0.0)
    circuit.resistor("Rc", "c", "0", 1.0)
    switch = Switch(("c", "0"), threshold=0.5, hysteresis=0.1, on=1.0, off=1e6)
    found = transient(circuit, 0.1, {"Vc": Sine(0.0, 1.0, 50.0)}, switches={"S1": switch})
    turn = 2.0 * math.pi * 50.0
    exact = sorted(
        [math.asin(0.6) / turn + 0.02 * k for k in range(5)]
        + [(math.pi - math.asin(0.4)) / turn + 0.02 * k for k in range(5)]
    )
    assert [event.time for event in found.events] == pytest.approx(exact, abs=1e-16, rel=1e-14)
    assert [event.changed for event in found.events[:2]] == [("+S1",), ("-S1",)]
    closed = [any(a <= t < b for a, b in zip(exact[::2], exact[1::2])) for t in found.times]
    assert np.abs(found.voltage("a") - np.where(closed, 1.0 / 1001.0, 1e6 / 1001e3)).max() < 1e-15
    name, spans = found.conduction()[0]
    assert name == "S1" and np.ravel(spans) == pytest.approx(exact)


def test_relaxation_oscillator() -> None:
    """Charging to 6 V and discharging to 4 V take τ ln of ratios of distances from the two steady states."""
    r, on, off, c = 1e4, 100.0, 1e9, 1e-7
    switch = Switch(("c", "0"), threshold=5.0, hysteresis=1.0, on=on, off=off)
    found = transient(relaxation_oscillator(), 0.02, initial={}, switches={"S1": switch})

    def steady(s: float) -> tuple[float, float]:
        return 10.0 * s / (r + s), c * r * s / (r + s)

    (high, slow), (low, fast) = steady(off), steady(on)
    first = slow * math.log(high / (high - 6.0))
    up, down = slow * math.log((high - 4.0) / (high - 6.0)), fast * math.log((6.0 - low) / (4.0 - low))
    exact = [first]
    while exact[-1] < 0.02:
        exact.append(exact[-1] + (down if len(exact) % 2 else up))
    assert len(found.events) == len(exact) - 1 > 30
    assert [event.time for event in found.events] == pytest.approx(exact[:-1], rel=1e-13)


def test_a_switch_without_hysteresis_that_opens_itself() -> None:
    """The capacitor would stay at the threshold: neither state of the switch holds."""
    with pytest.raises(ConvergenceError, match="S1 would open and close without end"):
        transient(relaxation_oscillator(), 0.02, initial={}, switches={"S1": Switch(("c", "0"), 5.0, on=100.0)})


def test_a_switch_that_a_current_controls_and_a_diode() -> None:
    """A coil charged through a switch that opens at 1 A and frees its current into a diode."""
    circuit = Circuit()
    circuit.voltage_source("V1", "s", "0", 5.0)
    circuit.resistor("W1", "s", "a", 1.0)
    circuit.add("L", "L1", "a", "b", 1e-3)
    circuit.voltage_source("Vm", "c", "b", 0.0)
    circuit.resistor("R1", "c", "0", 1.0)
    circuit.diode("D1", "0", "a")
    switch = Switch("Vm", threshold=-0.75, hysteresis=0.25, on=1.0, off=1e9, closed=True)
    found = transient(circuit, 1.5e-3, initial={}, switches={"W1": switch})
    # 2.5 A (1 − e^{−2t/ms}) to 1 A, then e^{−t/ms} to 0.5 A.
    first = -0.5e-3 * math.log(1.0 - 1.0 / 2.5)
    second = first + 1e-3 * math.log(2.0)
    assert [event.time for event in found.events[:2]] == pytest.approx([first, second], rel=1e-7)
    assert [set(event.changed) for event in found.events[:2]] == [{"-W1", "+D1"}, {"+W1", "-D1"}]


def test_what_is_refused() -> None:
    circuit = relaxation_oscillator()
    with pytest.raises(UsageError, match="no resistor"):
        transient(circuit, 1.0, switches={"C1": Switch(("c", "0"))})
    with pytest.raises(UsageError, match="positive resistances"):
        transient(circuit, 1.0, switches={"S1": Switch(("c", "0"), on=0.0)})
    with pytest.raises(UsageError, match="two inductors"):
        transient(circuit, 1.0, couplings={("C1", "R1"): 0.5})


WIRED = """coil with a switch
V1 s 0 5
X1 s b cell t=-0.75
Vm 0 m 0
R1 b m 1
.subckt cell s b params: t=0
W1 s a Vs sm ON
L1 a c 1m ic=0
Vs b c 0
D1 0 a ideal
.model sm CSW(IT={t} IH=0.25 RON=1 ROFF=1e9)
.ends
.model ideal D
.tran 10u 1.5m uic
"""


def test_a_deck_with_a_switch_in_a_sub_circuit() -> None:
    """The same as `test_a_switch_that_a_current_controls_and_a_diode`; nodes inside a call are its own."""
    found = transient(loads(WIRED))
    first = -0.5e-3 * math.log(1.0 - 1.0 / 2.5)
    second = first + 1e-3 * math.log(2.0)
    assert [event.time for event in found.events[:2]] == pytest.approx([first, second], rel=1e-7)
    assert [set(event.changed) for event in found.events[:2]] == [{"-X1.W1", "+X1.D1"}, {"+X1.W1", "-X1.D1"}]


def test_switches_of_a_circuit_operate_as_those_of_its_deck() -> None:
    deck = loads("state\nV1 s 0 3\nR1 s a 1k\nS1 a 0 0 s m ON\n.model m SW(VT=1 RON=500 ROFF=2k)\n")
    for source in (deck, deck.circuit):
        point = solve(source)
        assert point.voltage("a") == pytest.approx(2.0) and not point.warnings


def test_the_bundled_boost_converter() -> None:
    """In the steady state the coil's mean voltage is zero: (1 − d) v = 5 V − d R i, and (1 − d) i = v / 20 Ω."""
    found = transient(load(NETLISTS / "boost-converter.cir"))
    closed = next(b - a for name, spans in found.conduction() if name == "S1" for a, b in spans[-3:-2])
    duty = closed / 1e-5
    assert duty == pytest.approx(0.6, abs=1e-3)
    times = np.linspace(found.stop - 1e-5, found.stop, 20001)
    mean = float(np.trapezoid(found.voltage("out", times=times), times)) / 1e-5
    exact = 5.0 / ((1.0 - duty) + duty * 0.01 / (20.0 * (1.0 - duty)))
    assert mean == pytest.approx(exact, rel=2e-3)


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_transformer_and_switch_against_ngspice(tmp_path: Path) -> None:
    """A coupled coil that a switch disconnects; ngspice resolves the switch's times to its step of 0.1 µs."""
    cards = """V1 s 0 SIN(0 10 1k)
R1 s a 2
L1 a 0 1m ic=0
L2 b 0 4m ic=0
K1 L1 L2 0.8
S1 b c s 0 sm
R2 c 0 3
R3 b 0 50
.model sm SW(VT=1 VH=0.5 RON=0.1 ROFF=100k)
"""
    path = tmp_path / "deck.cir"
    path.write_text(
        f"transformer\n{cards}.options reltol=1e-6\n.tran 1u 2m 0 0.1u uic\n.control\nrun\nlinearize v(b)\n"
        "print v(b)[400] v(b)[1100] v(b)[1900]\n.endc\n.end\n"
    )
    done = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False, timeout=60)
    theirs = [float(line.split("=")[1]) for line in done.stdout.splitlines() if line.startswith("v(b)[")]
    ours = transient(loads(f"transformer\n{cards}.tran 1u 2m uic\n"))
    assert ours.voltage("b", times=[400e-6, 1100e-6, 1900e-6]) == pytest.approx(theirs, abs=2e-3)


@pytest.mark.parametrize("method", ["exact", "implicit"])
def test_a_switch_keeps_its_state_through_a_jump_of_its_control(method: str) -> None:
    """5 V on 1 F meet 3 F: 1.25 V lie between both thresholds, so the switch stays open as stated."""
    circuit = loads("initial values that a loop contradicts\nC1 a 0 1\nC2 a 0 3\nR1 a 0 1000\n").circuit
    circuit.resistor("S1", "a", "0", 1e6)
    switches = {"S1": Switch(("a", "0"), 1.5, 1.0, on=1.0, off=1e6)}
    run = transient(circuit, 0.1, {}, {"C1": 5.0}, 11, switches=switches, method=method)
    assert not run.events or run.events[-1].changed == ()
    assert run.voltage("a")[-1] == pytest.approx(1.25 * math.exp(-0.1 * (1e-3 + 1e-6) / 4.0), rel=1e-6)


def test_a_negative_hysteresis_is_none_over_time() -> None:
    """LTspice changes the resistance of such a switch gradually: a warning says that here it changes at once."""
    text = (
        "*\nV1 a 0 1\nVc c 0 SIN(0 1 50)\nR1 a b 1k\nS1 b 0 c 0 m\n.model m SW(vt=0.5 vh={h} ron=1 roff=1e6)\n"
        ".tran 1m 40m\n"
    )
    without, negative = (loads(text.replace("{h}", h)) for h in ("0", "-0.3"))
    assert not without.problems
    (warning,) = negative.problems
    assert warning.kind == "hysteresis" and "S1" in warning.message
    runs = [transient(deck) for deck in (without, negative)]
    assert [event.time for event in runs[1].events] == [event.time for event in runs[0].events]
    assert len(runs[1].events) == 4
    assert math.isclose(runs[1].events[0].time, 0.02 / 12.0, rel_tol=1e-12)
