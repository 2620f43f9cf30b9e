"""Gradients of waveforms by devices, switches, couplings and initial values, through jumps: against differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from differences import Values, along, by_measurement
from test_waveform_gradients import BRIDGE, BUCK, HALF_WAVE, bridge, buck, half_wave

from circuitsim import Circuit
from circuitsim.errors import UsageError
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.time_domain import Pulse, Sine, Switch, TransientResult, steady_state, transient
from circuitsim.time_domain.functionals import EventTime, EventValue, Integral, Value
from circuitsim.time_domain.gradients import waveform_gradient


def diode(values: Values, name: str) -> PiecewiseLinearDiode:
    """A diode with the numbers ``name.…`` of some values."""
    numbers = {key: values.get(f"{name}.{key}") for key in ("vrev", "rrev", "roff")}
    return PiecewiseLinearDiode(vfwd=values[f"{name}.vfwd"], ron=values[f"{name}.ron"], m=1.0, n=1.0, **numbers)


def clamp(values: Values) -> TransientResult:
    """A sine through a diode with a drop into a filter, held by a Zener diode that breaks down."""
    circuit = Circuit("clamp")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", values["Rs"])
    circuit.device("D1", "s", "p", diode(values, "D1"))
    circuit.add("C", "C1", "p", "0", values["C1"])
    circuit.resistor("R1", "p", "o", values["R1"])
    circuit.device("D2", "0", "o", diode(values, "D2"))
    circuit.add("C", "C2", "o", "0", values["C2"])
    circuit.resistor("R2", "o", "0", values["R2"])
    return transient(circuit, 0.62, {"V1": Sine(0.0, 10.0, 50.0)}, points=2)


def oscillator(values: Values) -> TransientResult:
    """A capacitor between two thresholds of a switch with hysteresis."""
    circuit = Circuit("oscillator")
    circuit.voltage_source("V1", "s", "0", values["V1"])
    circuit.resistor("R1", "s", "c", values["R1"])
    circuit.resistor("S1", "c", "0", 1.0)
    circuit.add("C", "C1", "c", "0", values["C1"])
    switch = Switch(("c", "0"), values["S1.vt"], values["S1.vh"], values["S1.ron"], values["S1.roff"])
    return transient(circuit, 0.045, initial={"C1": values["C1.ic"]}, points=2, switches={"S1": switch})


def flyback(values: Values) -> TransientResult:
    """Two coupled coils, a switch in the first winding, a diode with a drop behind the second."""
    circuit = Circuit("flyback")
    circuit.voltage_source("V1", "in", "0", values["V1"])
    circuit.voltage_source("VG", "g", "0", 0.0)
    circuit.add("L", "L1", "in", "x", values["L1"])
    circuit.resistor("S1", "x", "0", 1.0)
    circuit.add("L", "L2", "0", "y", values["L2"])
    circuit.device("D1", "y", "o", diode(values, "D1"))
    circuit.add("C", "C1", "o", "0", values["C1"])
    circuit.resistor("R1", "o", "0", values["R1"])
    return transient(
        circuit,
        5.2e-4,
        {"VG": Pulse(0.0, 1.0, 0.0, 1e-7, 1e-7, 4e-6, 1e-5)},
        {"C1": values["C1.ic"], "L1": values["L1.ic"]},
        2,
        switches={"S1": Switch(("g", "0"), values["S1.vt"], 0.0, values["S1.ron"], values["S1.roff"])},
        couplings={("L1", "L2"): values["k(L1,L2)"]},
    )


def pump(values: Values) -> TransientResult:
    """Steps through capacitors and ideal diodes: charges meet in no time twice a period (a doubler)."""
    circuit = Circuit("pump")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.add("C", "C1", "a", "b", values["C1"])
    circuit.diode("D1", "0", "b")
    circuit.diode("D2", "b", "o")
    circuit.add("C", "C2", "o", "0", values["C2"])
    circuit.resistor("R2", "o", "0", values["R2"])
    circuit.resistor("R1", "b", "0", values["R1"])
    wave = {"V1": Pulse(-5.0, 5.0, 0.0, 0.0, 0.0, 5e-4, 1e-3)}
    return transient(circuit, 0.0605, wave, {"C1": values["C1.ic"], "C2": values["C2.ic"]}, 2)


def interrupted(values: Values) -> TransientResult:
    """Steps of a current between two coils, a diode beside them: fluxes jump, and the diode takes current over."""
    circuit = Circuit("interrupted")
    circuit.current_source("I1", "0", "a", 0.0)
    circuit.add("L", "L1", "a", "b", values["L1"])
    circuit.resistor("R1", "b", "0", values["R1"])
    circuit.add("C", "C1", "b", "0", values["C1"])
    circuit.add("L", "L2", "a", "c", values["L2"])
    circuit.resistor("R2", "c", "0", values["R2"])
    circuit.diode("D1", "0", "c")
    circuit.diode("D2", "0", "a")
    wave = {"I1": Pulse(-1.0 * values["I1"], 2.0 * values["I1"], 0.0, 0.0, 0.0, 4e-4, 1e-3)}
    return transient(circuit, 0.052, wave, {"L1": values["L1.ic"]}, 2)


FAMILIES: list[tuple[Callable[[Values], TransientResult], Values, tuple[str, str]]] = [
    (
        clamp,
        {
            "Rs": 3.0,
            "R1": 60.0,
            "R2": 800.0,
            "C1": 5e-5,
            "C2": 1e-5,
            "D1.vfwd": 0.7,
            "D1.ron": 0.5,
            "D1.roff": 1e4,
            "D2.vfwd": 0.6,
            "D2.ron": 1.0,
            "D2.vrev": 4.7,
            "D2.rrev": 8.0,
            "D2.roff": 2e4,
        },
        ("v(o)", "i(D1)"),
    ),
    (
        oscillator,
        {"V1": 10.0, "R1": 1e4, "C1": 1e-7, "S1.vt": 5.0, "S1.vh": 1.0, "S1.ron": 800.0, "S1.roff": 2e5, "C1.ic": 1.0},
        ("v(c)", "i(S1)"),
    ),
    (
        flyback,
        {
            "V1": 12.0,
            "L1": 2e-5,
            "L2": 4e-5,
            "C1": 2e-5,
            "R1": 300.0,
            "D1.vfwd": 0.5,
            "D1.ron": 0.05,
            "D1.roff": 1e5,
            "S1.vt": 0.5,
            "S1.ron": 0.05,
            "S1.roff": 2e4,
            "k(L1,L2)": 0.95,
            "C1.ic": 20.0,
            "L1.ic": 0.5,
        },
        ("v(o)", "i(L1)"),
    ),
    (bridge, BRIDGE, ("v(o,m)", "i(L1)")),
    (half_wave, HALF_WAVE, ("v(p)", "i(L1)")),
    (buck, BUCK, ("v(o)", "i(L1)")),
    (pump, {"C1": 1e-6, "C2": 3e-6, "R1": 5e3, "R2": 1e3, "C1.ic": -1.0, "C2.ic": 2.0}, ("v(o)", "i(R1)")),
    (
        interrupted,
        {"L1": 1e-3, "L2": 2e-3, "R1": 20.0, "R2": 5.0, "C1": 1e-5, "I1": 1.0, "L1.ic": 0.3},
        ("v(b)", "i(L2)"),
    ),
]


@pytest.mark.parametrize("seed", range(32))
def test_against_differences(seed: int) -> None:
    """More than 100 events each: a value, an integral and the integral of a square, by all numbers at once."""
    rng = np.random.default_rng(seed)
    run, usual, (first, second) = FAMILIES[seed % 8]
    values = {name: value * float(rng.uniform(0.95, 1.05)) for name, value in usual.items()}
    direction = {name: float(rng.uniform(-1.0, 1.0)) for name in values}
    found = run(values)
    assert len(found.events) >= 100
    assert bool(found.origin.turns) == (run in (pump, interrupted))
    begin, end = np.sort(rng.uniform(0.1, 1.0, 2) * found.stop).tolist()
    functionals = [
        Value(first, float(rng.uniform(0.5, 1.0)) * found.stop),
        Integral(second, begin, found.stop),
        Integral(first, 0.0, end, 2),
    ]
    sizes = [by_measurement(found, own) for own in functionals]
    weights = (rng.uniform(0.5, 1.0, 3) / np.abs(sizes)).tolist()
    result = waveform_gradient(found, functionals, list(values), weights)
    assert result.values == pytest.approx(sizes, rel=1e-9)
    # The factor on a waveform is relative to the run's own one.
    scales = values | ({"I1": 1.0} if run is interrupted else {"V1": 1.0} if run in (bridge, half_wave) else {})
    exact = sum(result.gradient[name] * direction[name] * scales[name] for name in values)

    def loss(other: Values) -> float:
        again = run(other)
        return sum(w * by_measurement(again, own) for w, own in zip(weights, functionals))

    differences = along(loss, values, direction, 1e-5 if run is oscillator else 1e-4)
    size = sum(abs(result.gradient[name] * scales[name]) for name in values)
    assert exact == pytest.approx(differences, abs=1e-7 * size)
    assert size > 1e-3


def test_time_of_an_event_and_value_before_it() -> None:
    """A capacitor reaches VT + VH after R C ln(V / (V − VT − VH)); there a second capacitor has its own closed form."""
    circuit = Circuit()
    circuit.voltage_source("V1", "s", "0", 10.0)
    circuit.resistor("R1", "s", "c", 1e4)
    circuit.add("C", "C1", "c", "0", 1e-7)
    circuit.resistor("S1", "c", "0", 1.0)
    circuit.resistor("R2", "s", "d", 2e4)
    circuit.add("C", "C2", "d", "0", 1e-7)
    run = transient(circuit, 2e-3, initial={}, points=2, switches={"S1": Switch(("c", "0"), 5.0, 1.0, 1.0, 1e15)})
    when = run.events[0].time
    late = waveform_gradient(run, [EventTime(when)], ["R1", "C1", "S1.vt", "S1.vh", "C1.ic", "R2"])
    assert late.values == pytest.approx([1e-3 * math.log(2.5)], rel=1e-9)
    by_level = 1e-3 / 4.0
    assert late.gradient["R1"] == pytest.approx(when / 1e4, rel=1e-9)
    assert late.gradient["C1"] == pytest.approx(when / 1e-7, rel=1e-9)
    assert [late.gradient["S1.vt"], late.gradient["S1.vh"]] == pytest.approx([by_level] * 2, rel=1e-9)
    assert late.gradient["C1.ic"] == pytest.approx(-1e-4, rel=1e-9)
    assert late.gradient["R2"] == 0.0
    value = waveform_gradient(run, [EventValue("v(d)", when)], ["S1.vt", "R2"])
    left = 10.0 * math.exp(-when / 2e-3)
    assert value.values == pytest.approx([10.0 - left], rel=1e-9)
    assert value.gradient["S1.vt"] == pytest.approx(left / 2e-3 * by_level, rel=1e-9)
    assert value.gradient["R2"] == pytest.approx(-left * when / 2e-3 / 2e4, rel=1e-9)


def test_charge_sharing_in_closed_form() -> None:
    """5 V on 1 µF and 1 V on 3 µF meet through a diode at 2 V: by the initial values and by both capacitances."""
    circuit = Circuit()
    circuit.add("C", "C1", "a", "0", 1e-6)
    circuit.diode("D1", "a", "b")
    circuit.add("C", "C2", "b", "0", 3e-6)
    circuit.resistor("R1", "b", "0", 1e3)
    run = transient(circuit, 1e-3, initial={"C1": 5.0, "C2": 1.0}, points=2)
    values = [Value("v(b)", 0.0), Value("v(a)", 1e-3)]
    found = waveform_gradient(run, values, ["C1.ic", "C2.ic", "C1", "C2"], [1.0, 0.0])
    assert found.values == pytest.approx([2.0, 2.0 * math.exp(-0.25)], rel=1e-12)
    assert [found.gradient["C1.ic"], found.gradient["C2.ic"]] == pytest.approx([0.25, 0.75], rel=1e-12)
    assert found.gradient["C1"] == pytest.approx((5.0 - 2.0) / 4e-6, rel=1e-12)
    assert found.gradient["C2"] == pytest.approx((1.0 - 2.0) / 4e-6, rel=1e-12)


def test_a_step_of_a_source_across_capacitors_in_closed_form() -> None:
    """A step of 1 V divides among C₁ and C₂ (a jump at a corner); the factor on the source scales it."""
    circuit = Circuit()
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.add("C", "C1", "a", "b", 1e-6)
    circuit.add("C", "C2", "b", "0", 3e-6)
    circuit.resistor("R1", "b", "0", 1e3)
    run = transient(circuit, 1e-3, {"V1": Pulse(0.0, 1.0, 5e-4)}, points=2)
    found = waveform_gradient(run, [Value("v(b)", 1e-3)], ["V1", "C1", "C2", "R1"])
    left = math.exp(-5e-4 / 4e-3)
    assert found.values == pytest.approx([0.25 * left], rel=1e-12)
    assert found.gradient["V1"] == pytest.approx(0.25 * left, rel=1e-12)
    more = 0.25 * left * 5e-4 / 4e-3
    assert found.gradient["C1"] == pytest.approx(3e-6 / (4e-6) ** 2 * left + more / 4e-6, rel=1e-12)
    assert found.gradient["C2"] == pytest.approx(-1e-6 / (4e-6) ** 2 * left + more / 4e-6, rel=1e-12)
    assert found.gradient["R1"] == pytest.approx(more / 1e3, rel=1e-12)


def test_a_held_beginning() -> None:
    """A node at 2 V and a coil at 10 mA are let go at time 0; by what holds them, and by a resistor at rest."""
    values = {"out": 2.0, "L1": 0.01, "R1": 1e3, "R2": 500.0}

    def run(own: Values) -> TransientResult:
        circuit = Circuit()
        circuit.voltage_source("V1", "a", "0", 5.0)
        circuit.resistor("R1", "a", "out", own["R1"])
        circuit.add("C", "C1", "out", "0", 1e-6)
        circuit.resistor("R2", "out", "b", own["R2"])
        circuit.add("C", "C2", "b", "0", 1e-6)
        circuit.add("L", "L1", "b", "0", 1e-2)
        return transient(circuit, 1e-3, held={"out": own["out"], "L1": own["L1"]}, points=2)

    functional = Value("v(out)", 3e-4)
    found = waveform_gradient(run(values), [functional], ["v(out)", "L1.ic", "R1", "R2"])
    for name, key in (("v(out)", "out"), ("L1.ic", "L1"), ("R1", "R1"), ("R2", "R2")):
        single = {other: float(other == key) for other in values}
        differences = along(lambda own: by_measurement(run(own), functional), values, single, 1e-3)
        assert found.gradient[name] * values[key] == pytest.approx(differences, rel=1e-8)


def test_a_periodic_state_with_jumps() -> None:
    """The doubler's periodic state: mean and mean square by all values, against differences of steady states."""
    values = {"C1": 1e-6, "C2": 3e-6, "R1": 5e3, "R2": 1e3}

    def run(own: Values) -> TransientResult:
        circuit = pump(own | {"C1.ic": 0.0, "C2.ic": 0.0}).circuit
        return steady_state(circuit, {"V1": Pulse(-5.0, 5.0, 0.0, 0.0, 0.0, 5e-4, 1e-3)})

    functionals = [Integral("v(o)", 0.0, 1e-3), Integral("v(b)", 2e-4, 1e-3, 2)]
    found = waveform_gradient(run(values), functionals, list(values), [1e3, 1e3])

    def loss(own: Values) -> float:
        other = run(own)
        return 1e3 * sum(by_measurement(other, functional) for functional in functionals)

    for name, value in values.items():
        single = {other: float(other == name) for other in values}
        assert found.gradient[name] * value == pytest.approx(along(loss, values, single, 1e-3), rel=1e-7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("D1.vrev", "not stated"),
        ("D1", "no number of"),
        ("D1.m", "no number of"),
        ("k(L1,L2)", "couples nothing"),
        ("S1.what", "no number"),
        ("C1.ic", "operating point"),
        ("R9", "no number"),
        ("D2.ron", "adds a resistance"),
    ],
)
def test_refused_numbers(name: str, said: str) -> None:
    circuit = Circuit()
    circuit.voltage_source("V1", "a", "0", 5.0)
    circuit.device("D1", "a", "b", diode({"D1.vfwd": 0.7, "D1.ron": 0.1}, "D1"))
    circuit.device("D2", "b", "c", diode({"D2.vfwd": 0.7, "D2.ron": 0.0}, "D2"))
    circuit.resistor("S1", "c", "0", 1.0)
    circuit.add("C", "C1", "c", "0", 1e-6)
    circuit.add("L", "L1", "c", "d", 1e-3)
    circuit.add("L", "L2", "d", "0", 1e-3)
    circuit.resistor("R1", "d", "0", 10.0)
    run = transient(circuit, 1e-3, points=2, switches={"S1": Switch(("c", "0"), 9.0, 0.0, 1.0, 1e3)})
    with pytest.raises(UsageError, match=said):
        waveform_gradient(run, [Value("v(c)", 5e-4)], [name])


def test_events_that_there_are_not() -> None:
    run = pump(FAMILIES[6][1])
    with pytest.raises(UsageError, match="by itself"):
        waveform_gradient(run, [EventTime(1e-3)], ["R1"])
