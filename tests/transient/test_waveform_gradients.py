"""Gradients of waveforms through events against differences of measurements, and a rectifier fitted with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from differences import Values, along, by_measurement
from scipy.optimize import minimize

from circuitsim import Circuit
from circuitsim.errors import UsageError
from circuitsim.time_domain import (
    Integral,
    Pulse,
    Sine,
    Switch,
    TransientResult,
    Value,
    measure,
    steady_state,
    transient,
    waveform_gradient,
)


def bridge(values: Values, steady: bool = False, stop: float = 0.6) -> TransientResult:
    """A bridge rectifier behind 0.1 … 1 Ω with a choke and a capacitor."""
    circuit = Circuit("bridge")
    circuit.voltage_source("V1", "a", "b", 0.0)
    circuit.resistor("Rs", "a", "s", values["Rs"])
    circuit.resistor("Rg", "b", "0", 1e6)
    for k, (first, second) in enumerate([("s", "p"), ("b", "p"), ("m", "s"), ("m", "b")]):
        circuit.diode(f"D{k}", first, second)
    circuit.add("L", "L1", "p", "o", values["L1"])
    circuit.add("C", "C1", "o", "m", values["C1"])
    circuit.resistor("R1", "o", "m", values["R1"])
    wave = {"V1": Sine(0.0, 10.0 * values["V1"], 50.0)}
    return steady_state(circuit, wave) if steady else transient(circuit, stop, wave, points=2)


def half_wave(values: Values) -> TransientResult:
    """A half-wave rectifier with a piecewise-linear diode's parts, a filter and a counter-voltage."""
    circuit = Circuit("half-wave")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", values["Rs"])
    circuit.diode("D1", "s", "p")
    circuit.add("C", "C1", "p", "0", values["C1"])
    circuit.add("L", "L1", "p", "o", values["L1"])
    circuit.resistor("R1", "o", "e", values["R1"])
    circuit.voltage_source("V2", "e", "0", values["V2"])
    return transient(circuit, 1.05, {"V1": Sine(values["V1"], 10.0 * values["V1"], 50.0, 0.0, 0.0, 30.0)}, points=2)


def buck(values: Values) -> TransientResult:
    """A buck converter at light load: discontinuous conduction, three events a period."""
    circuit = Circuit("buck")
    circuit.voltage_source("V2", "in", "0", values["V2"])
    circuit.voltage_source("VG", "g", "0", 0.0)
    circuit.resistor("S1", "in", "x", 1e-2)
    circuit.diode("D1", "0", "x")
    circuit.resistor("Rs", "x", "y", values["Rs"])
    circuit.add("L", "L1", "y", "o", values["L1"])
    circuit.add("C", "C1", "o", "0", values["C1"])
    circuit.resistor("R1", "o", "0", values["R1"])
    gate = {"VG": Pulse(0.0, 1.0, 0.0, 1e-7, 1e-7, 4e-6, 1e-5)}
    switch = {"S1": Switch(("g", "0"), 0.5, 0.0, 1e-2, 1e6)}
    return transient(circuit, 4.05e-4, gate, {}, 2, switches=switch)


BRIDGE = {"Rs": 0.5, "L1": 1e-2, "C1": 2e-4, "R1": 100.0, "V1": 1.0}
HALF_WAVE = {"Rs": 2.0, "L1": 5e-2, "C1": 2e-4, "R1": 50.0, "V1": 1.0, "V2": 1.5}
BUCK = {"Rs": 0.1, "L1": 1e-5, "C1": 1e-5, "R1": 20.0, "V2": 12.0}


def test_a_periodic_state_moves_with_the_values() -> None:
    values = BRIDGE
    functionals = [Integral("v(o,m)", 0.0, 0.02), Integral("v(o,m)", 0.0, 0.02, 2), Value("i(L1)", 0.003)]
    result = waveform_gradient(bridge(values, True), functionals, list(values), [50.0, 5.0, 1.0])

    def loss(other: TransientResult) -> float:
        return sum(w * by_measurement(other, own) for w, own in zip([50.0, 5.0, 1.0], functionals))

    for name, value in values.items():
        single = {other: float(other == name) for other in values}
        differences = along(lambda own: loss(bridge(own, True)), values, single, 1e-4)
        assert result.gradient[name] * value == pytest.approx(differences, rel=1e-7)


def test_closed_form_of_a_discharge() -> None:
    circuit = Circuit()
    circuit.add("C", "C1", "a", "0", 1e-6)
    circuit.resistor("R1", "a", "0", 1e3)
    run = transient(circuit, 2e-3, {}, {"C1": 5.0}, 2)
    result = waveform_gradient(run, [Value("v(a)", 1.5e-3), Integral("i(R1)", 0.0, 1e-3, 2)], ["R1", "C1"], [1.0, 0.0])
    level = 5.0 * math.exp(-1.5)
    assert result.values == pytest.approx([level, 25e-6 * 0.5e-3 * (1.0 - math.exp(-2.0))], rel=1e-12)
    assert result.gradient["R1"] == pytest.approx(level * 1.5 / 1e3, rel=1e-12)
    assert result.gradient["C1"] == pytest.approx(level * 1.5 / 1e-6, rel=1e-12)


def test_a_rectifier_learns_its_mean_and_its_ripple() -> None:
    """Load and capacitor for 9.5 V with 100 mV of ripple (rms), from 100 Ω and 200 µF, in the periodic steady state."""
    start = BRIDGE | {"L1": 1e-3}
    functionals = [Integral("v(o,m)", 0.0, 0.02), Integral("v(o,m)", 0.0, 0.02, 2)]

    def loss(logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        values = start | dict(zip(("R1", "C1"), np.exp(logarithms).tolist()))
        run = bridge(values, True)
        first, second = (50.0 * waveform_gradient(run, functionals, []).values).tolist()
        ripple = second - first**2
        misses = 10.0 * (first - 9.5), math.log(ripple / 0.1**2)
        by_first = 20.0 * misses[0] - 4.0 * misses[1] * first / ripple
        found = waveform_gradient(run, functionals, ["R1", "C1"], [50.0 * by_first, 50.0 * 2.0 * misses[1] / ripple])
        return sum(x * x for x in misses), np.array([found.gradient[k] * values[k] for k in ("R1", "C1")])

    fitted = minimize(loss, np.log([start["R1"], start["C1"]]), jac=True, method="BFGS")
    run = bridge(start | dict(zip(("R1", "C1"), np.exp(fitted.x).tolist())), True)
    mean = measure(run, "x AVG v(o,m)").value
    assert mean == pytest.approx(9.5, abs=1e-4)
    assert measure(run, f"x RMS {{v(o,m)-{mean!r}}}").value == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize(
    ("functional", "name", "said"),
    [
        (Value("v(o,m)", 2.0), "R1", "in order"),
        (Integral("v(o,m)", 0.01, 0.0), "R1", "in order"),
        (Integral("v(o,m)", 0.0, 0.01, 3), "R1", "power"),
        (Value("p(R1)", 0.0), "R1", "neither"),
        (Value("v(o)", 0.0), "D1", "have gradients by"),
    ],
)
def test_refused(functional: Value | Integral, name: str, said: str) -> None:
    run = bridge(BRIDGE, stop=0.02)
    with pytest.raises(UsageError, match=said):
        waveform_gradient(run, [functional], [name])
