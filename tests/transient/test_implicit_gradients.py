"""Gradients of the implicit method: against differences of the same steps, the exact method, and finer steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from circuitsim import Circuit
from circuitsim.circuit.elements import BY_VOLTAGE_E
from circuitsim.circuit.laws import Law, Quantity, VoltageControl
from circuitsim.errors import UsageError
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.time_domain import (
    EventTime,
    FrequencyModulation,
    ImplicitResult,
    Integral,
    Pulse,
    Sine,
    Switch,
    TransientResult,
    Value,
    measure_gradient,
    transient,
    waveform_gradient,
)
from circuitsim.time_domain.functionals import Functional
from circuitsim.time_domain.implicit import Implicit, Stretch
from circuitsim.time_domain.implicit_result import beginning
from circuitsim.time_domain.implicit_step import euler_step, runge_kutta_step

Values = dict[str, float]
Run = Callable[[Values, str, float], TransientResult]


def junction(values: Values, name: str) -> JunctionDiode:
    return JunctionDiode(**{key: values[f"{name}.{key}"] for key in ("is", "n", "rs")})


def filtered(values: Values, method: str, accuracy: float) -> TransientResult:
    """A rectifier with a junction diode behind a sine with an offset, a filter with a choke."""
    circuit = Circuit("filtered")
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.resistor("Rs", "in", "s", values["Rs"])
    circuit.device("D1", "s", "out", junction(values, "D1"))
    circuit.add("C", "C1", "out", "0", values["C1"])
    circuit.add("L", "L1", "out", "o", values["L1"])
    circuit.resistor("R1", "o", "0", values["R1"])
    wave = {"V1": Sine(values["V1"], 10.0 * values["V1"], 50.0)}
    return transient(circuit, 0.02, wave, points=11, method=method, accuracy=accuracy)


def amplified(values: Values, method: str, accuracy: float) -> TransientResult:
    """A controlled source behind a frequency-modulated one, a coil, a held node."""
    circuit = Circuit("amplified")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("R1", "a", "b", values["R1"])
    circuit.add("C", "C1", "b", "0", values["C1"])
    control = VoltageControl(1.0, circuit.node_index("b"), 0)
    circuit.controlled(BY_VOLTAGE_E, "E1", "c", "0", Law(Quantity.VOLTAGE, 0.0, (control,)), values["E1"])
    circuit.add("L", "L1", "c", "d", values["L1"])
    circuit.resistor("R2", "d", "0", values["R2"])
    circuit.resistor("R4", "d", "f", values["R4"])
    circuit.add("C", "C2", "f", "0", values["C2"])
    circuit.resistor("R3", "f", "0", values["R3"])
    return transient(
        circuit,
        2e-4,
        {"V1": FrequencyModulation(0.5 * values["V1"], values["V1"], 4e3, 2.0, 1e3)},
        points=5,
        held={"b": values["v(b)"]},
        method=method,
        accuracy=accuracy,
    )


def clamp(values: Values, method: str, accuracy: float) -> TransientResult:
    """A sine through a piecewise-linear diode into two capacitors."""
    circuit = Circuit("clamp")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", values["Rs"])
    circuit.device("D1", "s", "p", PiecewiseLinearDiode(vfwd=values["D1.vfwd"], ron=values["D1.ron"], m=1.0, n=1.0))
    circuit.add("C", "C1", "p", "0", values["C1"])
    circuit.resistor("R1", "p", "o", values["R1"])
    circuit.add("C", "C2", "o", "0", values["C2"])
    circuit.resistor("R2", "o", "0", values["R2"])
    wave = {"V1": Sine(0.0, 10.0 * values["V1"], 50.0)}
    return transient(circuit, 0.05, wave, points=2, method=method, accuracy=accuracy)


def bridge(values: Values, method: str, accuracy: float) -> TransientResult:
    """Four ideal diodes, of which two change at once, behind a source without ground."""
    circuit = Circuit("bridge")
    circuit.voltage_source("V1", "a", "b", 0.0)
    circuit.resistor("Rs", "a", "s", values["Rs"])
    for k, (first, second) in enumerate([("s", "p"), ("b", "p"), ("0", "s"), ("0", "b")]):
        circuit.diode(f"D{k}", first, second)
    circuit.add("L", "L1", "p", "o", values["L1"])
    circuit.add("C", "C1", "o", "0", values["C1"])
    circuit.resistor("R1", "o", "0", values["R1"])
    wave = {"V1": Sine(0.0, 10.0 * values["V1"], 50.0)}
    return transient(circuit, 0.035, wave, points=2, method=method, accuracy=accuracy)


def oscillator(values: Values, method: str, accuracy: float) -> TransientResult:
    """A capacitor between two thresholds of a switch: the times of all events move."""
    circuit = Circuit("oscillator")
    circuit.voltage_source("V1", "s", "0", values["V1"])
    circuit.resistor("R1", "s", "c", values["R1"])
    circuit.resistor("S1", "c", "0", 1.0)
    circuit.add("C", "C1", "c", "0", values["C1"])
    switch = Switch(("c", "0"), values["S1.vt"], values["S1.vh"], values["S1.ron"], values["S1.roff"])
    return transient(
        circuit, 4.5e-3, {}, {"C1": values["C1.ic"]}, 2, switches={"S1": switch}, method=method, accuracy=accuracy
    )


def flyback(values: Values, method: str, accuracy: float) -> TransientResult:
    """Coupled coils, a switch, a diode with a drop: currents jump between the windings."""
    circuit = Circuit("flyback")
    circuit.voltage_source("V1", "in", "0", values["V1"])
    circuit.voltage_source("VG", "g", "0", 0.0)
    circuit.add("L", "L1", "in", "x", values["L1"])
    circuit.resistor("S1", "x", "0", 1.0)
    circuit.resistor("R2", "x", "0", 1e3)
    circuit.add("L", "L2", "0", "y", values["L2"])
    circuit.device("D1", "y", "o", PiecewiseLinearDiode(vfwd=values["D1.vfwd"], ron=values["D1.ron"], m=1.0, n=1.0))
    circuit.add("C", "C1", "o", "0", values["C1"])
    circuit.resistor("R1", "o", "0", values["R1"])
    switch = Switch(("g", "0"), values["S1.vt"], 0.0, values["S1.ron"], values["S1.roff"])
    return transient(
        circuit,
        1.6e-5,
        {"VG": Pulse(0.0, 1.0, 0.0, 1e-7, 1e-7, 4e-6, 1e-5)},
        {"C1": values["C1.ic"], "L1": values["L1.ic"]},
        2,
        switches={"S1": switch},
        couplings={("L1", "L2"): values["k(L1,L2)"]},
        method=method,
        accuracy=accuracy,
    )


DIODE = {"D1.is": 2.52e-9, "D1.n": 1.752, "D1.rs": 0.568}
FILTERED = {**DIODE, "Rs": 5.0, "C1": 1e-5, "L1": 1e-2, "R1": 1e3, "V1": 1.0}
AMPLIFIED = {
    "R4": 40.0,
    "V1": 1.0,
    "R1": 1e3,
    "C1": 2e-8,
    "E1": 3.0,
    "L1": 1e-2,
    "R2": 50.0,
    "C2": 1e-7,
    "R3": 2e3,
    "v(b)": 0.3,
}


def again(base: ImplicitResult, other: ImplicitResult) -> ImplicitResult:
    """``other`` with the steps of ``base``."""
    run: Implicit = other.run
    begun = other.begun
    x, _, _ = beginning(run, None if begun.point is not None else {}, begun.held)
    run.stretches, stretches = [], base.run.stretches
    slope, near = np.zeros(x.size), None
    for k, own in enumerate(stretches):
        moving, jumps = run.moving(own.conduction.switches), ()
        if own.fresh:
            assert len(own.jumps) == 1
            jumps = ((x, own.jumps[0][1]),)
            x = euler_step(run.companion, moving, own.time, x, own.instant, near).end.x
            end = euler_step(run.companion, moving, own.time + own.instant, x, own.instant, near).end
            x, slope = end.x, end.slope
        run.stretches.append(Stretch(own.time, x, slope, own.conduction, own.fresh, own.aim, 0.0, jumps, own.instant))
        if k + 1 < len(stretches):
            begin, after = own.time + own.instant, stretches[k + 1].time
            end = runge_kutta_step(
                run.companion, moving, (begin, x, slope, near), after - begin, np.nextafter(after, 0.0)
            ).end
            x, slope, near = end.x, end.slope, end.solved
    return ImplicitResult(run, base.times, base.certificate, begun)


@pytest.mark.parametrize(
    ("circuit", "values", "functionals"),
    [
        (
            filtered,
            FILTERED,
            [
                Value("v(out)", 0.0123),
                Integral("i(L1)", 0.0031, 0.0177),
                Value("i(D1)", 0.0042),
                Integral("v(o)", 0.0, 0.02, 2),
                Value("i(Rs)", 0.02),
            ],
        ),
        (
            amplified,
            AMPLIFIED,
            [
                Value("v(f)", 2e-4),
                Integral("v(d)", 3.1e-5, 1.8e-4, 2),
                Integral("i(L1)", 0.0, 2e-4),
                Value("v(c,d)", 1.3e-4),
                Integral("i(E1)", 6e-5, 1.9e-4, 2),
            ],
        ),
    ],
)
def test_against_differences_of_the_same_steps(circuit: Run, values: Values, functionals: list[Functional]) -> None:
    base = circuit(values, "implicit", 1e-4)
    assert isinstance(base, ImplicitResult) and not base.events
    sizes = waveform_gradient(base, functionals, []).values
    weights = (np.array([0.9, 0.4, -0.6, 0.5, 0.7]) / np.abs(sizes)).tolist()
    found = waveform_gradient(base, functionals, list(values), weights).gradient
    rng = np.random.default_rng(0)
    for _ in range(2):
        direction = {name: float(rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 1.0)) for name in values}

        def loss(share: float, direction: Values = direction) -> float:
            moved = {name: value * (1.0 + share * direction[name]) for name, value in values.items()}
            other = circuit(moved, "implicit", 1e-4)
            assert isinstance(other, ImplicitResult)
            return float(np.dot(weights, waveform_gradient(again(base, other), functionals, []).values))

        ours = [found[name] * value * direction[name] for name, value in values.items()]
        h = 1e-3
        theirs = 8.0 * (loss(h) - loss(-h)) - (loss(2.0 * h) - loss(-2.0 * h))
        assert sum(ours) == pytest.approx(theirs / (12.0 * h), rel=1e-7, abs=1e-7 * max(map(abs, ours)))


CLAMP = {"Rs": 3.0, "D1.vfwd": 0.7, "D1.ron": 0.1, "C1": 1e-4, "R1": 10.0, "C2": 1e-4, "R2": 100.0, "V1": 1.0}
BRIDGE = {"Rs": 0.5, "L1": 1e-2, "C1": 2e-4, "R1": 100.0, "V1": 1.0}
OSCILLATOR = {
    "V1": 10.0,
    "R1": 1e4,
    "C1": 1e-7,
    "S1.vt": 5.0,
    "S1.vh": 1.0,
    "S1.ron": 100.0,
    "S1.roff": 1e6,
    "C1.ic": 1.0,
}
FLYBACK = {
    "V1": 12.0,
    "L1": 1e-5,
    "L2": 4e-5,
    "D1.vfwd": 0.5,
    "D1.ron": 0.05,
    "C1": 1e-6,
    "R1": 50.0,
    "C1.ic": 5.0,
    "L1.ic": 0.3,
    "S1.vt": 0.5,
    "S1.ron": 0.02,
    "S1.roff": 1e5,
    "k(L1,L2)": 0.95,
}


@pytest.mark.parametrize(
    ("circuit", "values", "functionals", "events"),
    [
        (clamp, CLAMP, [Value("v(o)", 0.043), Integral("v(p)", 0.0131, 0.05), Integral("i(Rs)", 0.0, 0.05, 2)], 4),
        (bridge, BRIDGE, [Value("v(o)", 0.031), Integral("i(L1)", 0.01, 0.035, 2)], 6),
        (oscillator, OSCILLATOR, [Value("v(c)", 4.41e-3), Integral("v(c)", 1e-3, 4.3e-3)], 18),
        (flyback, FLYBACK, [Value("v(o)", 1.55e-5), Integral("i(L1)", 0.0, 1.5e-5)], 5),
    ],
)
def test_as_the_exact_method(circuit: Run, values: Values, functionals: list[Functional], events: int) -> None:
    """Through diodes, switches and jumps: to the accuracy of the run."""
    exact = waveform_gradient(circuit(values, "exact", 1e-5), functionals, list(values))
    most = max(abs(exact.gradient[name] * value) for name, value in values.items())
    off = []
    for accuracy in (1e-5, 1e-6):
        run = circuit(values, "implicit", accuracy)
        found = waveform_gradient(run, functionals, list(values))
        assert len(run.events) >= events
        off.append(max(abs(found.gradient[n] - exact.gradient[n]) * abs(v) for n, v in values.items()) / most)
        assert off[-1] <= 50.0 * accuracy
        assert found.values == pytest.approx(exact.values, rel=50.0 * accuracy)


def test_measurements_and_times_of_events() -> None:
    exact = oscillator(OSCILLATOR, "exact", 1e-5)
    ours = oscillator(OSCILLATOR, "implicit", 1e-7)
    names = ["C1", "S1.vh", "R1"]
    texts = ["period TRIG v(c) VAL=5 RISE=1 TARG v(c) VAL=5 RISE=2", "top MAX v(c)", "mean AVG v(c) FROM=1m TO=4m"]
    for text in texts:
        found, theirs = (measure_gradient(run, [text], names) for run in (ours, exact))
        assert list(found[0].values()) == pytest.approx(list(theirs[0].values()), rel=1e-5)
        for name in names:
            assert OSCILLATOR[name] * found[1][name] == pytest.approx(OSCILLATOR[name] * theirs[1][name], 1e-4, 1e-5)
    times = [waveform_gradient(run, [EventTime(run.events[4].time)], names) for run in (ours, exact)]
    assert times[0].gradient == pytest.approx(times[1].gradient, rel=1e-5)


def test_finer_steps() -> None:
    """Differences of runs of their own, a hundred times as accurate."""
    functionals = [Value("v(out)", 0.0123), Integral("i(L1)", 0.0031, 0.0177)]
    found = waveform_gradient(filtered(FILTERED, "implicit", 1e-6), functionals, ["D1.is"], [1.0, 100.0])
    for name in ("D1.is",):
        ends = []
        for share in (-1e-3, 1e-3):
            run = filtered({**FILTERED, name: FILTERED[name] * (1.0 + share)}, "implicit", 1e-8)
            ends.append(float(waveform_gradient(run, functionals, []).values @ np.array([1.0, 100.0])))
        theirs = (ends[1] - ends[0]) / (2e-3 * FILTERED[name])
        assert found.gradient[name] == pytest.approx(theirs, rel=1e-4)


def test_what_has_no_gradient() -> None:
    run = filtered(FILTERED, "implicit", 1e-4)
    wrong = (("D1.bv", "not stated"), ("C1.ic", "no effect"), ("R9", "no number"), ("k(L1,R1)", "couples"))
    for name, message in wrong:
        with pytest.raises(UsageError, match=message):
            waveform_gradient(run, [Value("v(out)", 0.01)], [name])
