"""Gradients of waveforms and measurements, exact and implicit: against differences of measurements and closed forms.

A deck writes what may change as ``<name=value>``, and the scale of a waveform's numbers as ``<name:number>``.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from circuitsim import UsageError, loads, steady_state, transient, waveform_gradient
from circuitsim.time_domain import (
    EventTime,
    EventValue,
    Integral,
    Pulse,
    TransientResult,
    Value,
    measure,
    measure_gradient,
)

DECKS = {
    "clamp": """a sine through a diode with a drop into a filter, held by a Zener diode that breaks down
V1 a 0 sin(0 10 50)
Rs a s <Rs=3>
D1 s p d1
C1 p 0 <C1=50u>
R1 p o <R1=60>
D2 0 o d2
C2 o 0 <C2=10u>
R2 o 0 <R2=800>
.model d1 D(vfwd=<D1.vfwd=.7> ron=<D1.ron=.5> roff=<D1.roff=10k>)
.model d2 D(vfwd=<D2.vfwd=.6> ron=<D2.ron=1> vrev=<D2.vrev=4.7> rrev=<D2.rrev=8> roff=<D2.roff=20k>)
.tran 1m 0.53""",
    "oscillator": """a capacitor between two thresholds of a switch with hysteresis
V1 s 0 <V1=10>
R1 s c <R1=10k>
S1 c 0 c 0 sw
C1 c 0 <C1=100n> ic=<C1.ic=1>
.model sw SW(vt=<S1.vt=5> vh=<S1.vh=1> ron=<S1.ron=800> roff=<S1.roff=200k>)
.tran 1m 45m uic""",
    "flyback": """coupled windings, a switch in the first one, a diode with a drop behind the second
V1 in 0 <V1=12>
VG g 0 pulse(0 1 0 .1u .1u 4u 10u)
L1 in x <L1=20u> ic=<L1.ic=.5>
S1 x 0 g 0 sw
L2 0 y <L2=40u>
K1 L1 L2 <k(L1,L2)=.95>
D1 y o d1
C1 o 0 <C1=20u> ic=<C1.ic=20>
R1 o 0 <R1=300>
.model sw SW(vt=<S1.vt=.5> ron=<S1.ron=.05> roff=<S1.roff=20k>)
.model d1 D(vfwd=<D1.vfwd=.5> ron=<D1.ron=.05> roff=<D1.roff=100k>)
.tran 1u 520u uic""",
    "bridge": """a bridge rectifier with a choke, of whose diodes two change at once
V1 a b sin(0 <V1:10> 50)
Rs a s <Rs=.5>
Rg b 0 1meg
D0 s p ideal
D1 b p ideal
D2 m s ideal
D3 m b ideal
L1 p o <L1=10m>
C1 o m <C1=200u>
R1 o m <R1=100>
.model ideal D
.tran 1m .6""",
    "half-wave": """a half-wave rectifier, a filter and a counter-voltage
V1 a 0 sin(<V1:1> <V1:10> 50 0 0 30)
Rs a s <Rs=2>
D1 s p ideal
C1 p 0 <C1=200u>
L1 p o <L1=50m>
R1 o e <R1=50>
V2 e 0 <V2=1.5>
.model ideal D
.tran 1m 1.05""",
    "buck": """discontinuous conduction, three events a period
V2 in 0 <V2=12>
VG g 0 pulse(0 1 0 .1u .1u 4u 10u)
S1 in x g 0 sw
D1 0 x ideal
Rs x y <Rs=.1>
L1 y o <L1=10u>
C1 o 0 <C1=10u>
R1 o 0 <R1=20>
.model sw SW(vt=.5 ron=.01 roff=1meg)
.model ideal D
.tran 1u 405u uic""",
    "pump": """a doubler: charges meet in no time twice a period
V1 a 0 0
C1 a b <C1=1u> ic=<C1.ic=-1>
D1 0 b ideal
D2 b o ideal
C2 o 0 <C2=3u> ic=<C2.ic=2>
R2 o 0 <R2=1k>
R1 b 0 <R1=5k>
.model ideal D
.tran 1m 60.5m uic""",
    "interrupted": """steps of a current between two coils: fluxes jump, and a diode takes current over
I1 0 a <I1:1>
L1 a b <L1=1m> ic=<L1.ic=.3>
R1 b 0 <R1=20>
C1 b 0 <C1=10u>
L2 a c <L2=2m>
R2 c 0 <R2=5>
D1 0 c ideal
D2 0 a ideal
.model ideal D
.tran 1m 52m uic""",
    "filtered": """a junction diode behind a sine with an offset, a filter with a choke
V1 in 0 sin(<V1:1> <V1:10> 50)
Rs in s <Rs=5>
D1 s out dj
C1 out 0 <C1=10u>
L1 out o <L1=10m>
R1 o 0 <R1=1k>
.model dj D(is=<D1.is=2.52n> n=<D1.n=1.752> rs=<D1.rs=.568>)
.tran 1m .02""",
    "amplified": """a controlled source behind a frequency-modulated one, a coil, a held node
V1 a 0 sffm(<V1:.5> <V1:1> 4k 2 1k)
R1 a b <R1=1k>
C1 b 0 <C1=20n>
E1 c 0 b 0 <E1=3>
L1 c d <L1=10m>
R2 d 0 <R2=50>
R4 d f <R4=40>
C2 f 0 <C2=100n>
R3 f 0 <R3=2k>
.ic v(b)=<v(b)=.3>
.tran 1u 200u""",
    "ideal windings": """a flyback converter whose windings share all flux, one of them loaded
V1 in 0 <V1=24>
Vg g 0 pulse(0 5 0 10n 10n 4u 10u)
L1 in d 100u ic=0
L2 0 s 25u ic=<L2.ic=.5>
L3 t 0 400u ic=0
K1 L1 L2 1
K2 L1 L3 1
K3 L2 L3 1
S1 d 0 g 0 sw
D1 s out ideal
C1 out 0 <C1=10u>
R1 out 0 <R1=10>
R3 t 0 <R3=300>
.model sw SW(vt=2.5 vh=.5 ron=.01 roff=1meg)
.model ideal D
.tran 1u 200u uic""",
    "centre tap": """begins at an operating point with currents in two of three ideal windings
V1 in 0 sin(2 5 1k)
R1 in a <R1=10>
L1 a 0 10m
L2 b s 40m
R2 b 0 <R2=100>
R4 s in 50
L3 t 0 10m
D1 t u ideal
C1 u 0 <C1=1u>
R3 u 0 500
K1 L1 L2 1
K2 L1 L3 -1
K3 L2 L3 -1
.ic i(L2)=<L2.ic=.02>
.model ideal D
.tran 1u 5m""",
    "choke": """a transformer into a choke: both currents meet at diodes with 1 and 2 MOhm beside them
V1 a 0 sin(0 10 50)
Rs a p 1
L1 p 0 .1
L2 s 0 <L2=.05>
K1 L1 L2 .98
D1 s x ideal
Rp s x <Rp=1meg>
D2 0 x ideal
Rf x 0 2meg
Lo x o <Lo=20m>
C1 o 0 1m
R1 o 0 10
.model ideal D
.tran 1m .6""",
    "held": """a node at 2 V and a coil at 10 mA are let go at time 0
V1 a 0 5
R1 a out <R1=1k>
C1 out 0 1u
R2 out b <R2=500>
C2 b 0 1u
L1 b 0 10m
.ic v(out)=<v(out)=2> i(L1)=<L1.ic=.01>
.tran 1u 1m""",
}
UNITS = {"u": 1e-6, "n": 1e-9, "m": 1e-3, "k": 1e3, "meg": 1e6, "": 1.0}
Loss = Callable[[TransientResult], float]


def scales(name: str) -> dict[str, float]:
    """The numbers of a deck that may change; 1 for the scale of a waveform."""
    found = {}
    for key, mark, number, unit in re.findall(r"<([^=:>]+)([=:])([-\d.]+)(\w*)>", DECKS[name]):
        found[key] = float(number) * UNITS[unit] if mark == "=" else 1.0
    return found


def written(name: str, factors: dict[str, float]) -> str:
    """The deck with its numbers times factors."""

    def number(match: re.Match[str]) -> str:
        return repr(float(match[2]) * UNITS[match[3]] * factors.get(match[1], 1.0))

    return re.sub(r"<([^=:>]+)[=:]([-\d.]+)(\w*)>", number, DECKS[name])


def steps(name: str, factors: dict[str, float]) -> dict[str, Pulse]:
    """Steps in no time, which no deck can write."""
    scale = factors.get("I1", 1.0)
    pulses = {"pump": Pulse(-5.0, 5.0, 0.0, 0.0, 0.0, 5e-4, 1e-3)}
    pulses["interrupted"] = Pulse(-scale, 2.0 * scale, 0.0, 0.0, 0.0, 4e-4, 1e-3)
    return {"I1" if name == "interrupted" else "V1": pulses[name]} if name in pulses else {}


def run(name: str, factors: dict[str, float] | None = None, **settings: Any) -> TransientResult:
    factors = factors or {}
    return transient(loads(written(name, factors)), waveforms=steps(name, factors), points=2, **settings)


def by_measurement(result: TransientResult, own: Value | Integral) -> float:
    """The functional by `measure`, which computes no gradients."""
    if isinstance(own, Value):
        found = measure(result, f"x FIND {own.quantity} AT={own.time!r}").value
    else:
        form = "INTEG" if own.power == 1 else "RMS"
        found = measure(result, f"x {form} {own.quantity} FROM={own.begin!r} TO={own.end!r}").value
        if found is not None and own.power == 2:
            found = found**2 * (own.end - own.begin)
    assert found is not None
    return found


def along(loss: Callable[[dict[str, float]], float], direction: dict[str, float], step: float) -> float:
    """Derivative along a relative direction, by differences of fourth order."""
    at = [loss({name: 1.0 + k * step * x for name, x in direction.items()}) for k in (-2, -1, 1, 2)]
    return (8.0 * (at[2] - at[1]) - (at[3] - at[0])) / (12.0 * step)


def signs(names: Any) -> dict[str, float]:
    return {name: 1.0 - 2.0 * (k % 3 == 1) for k, name in enumerate(names)}


OBSERVED = {
    "clamp": ("v(o)", "i(D1)"),
    "oscillator": ("v(c)", "i(S1)"),
    "flyback": ("v(o)", "i(L1)"),
    "bridge": ("v(o,m)", "i(L1)"),
    "half-wave": ("v(p)", "i(L1)"),
    "buck": ("v(o)", "i(L1)"),
    "pump": ("v(o)", "i(R1)"),
    "interrupted": ("v(b)", "i(L2)"),
    "choke": ("v(o)", "i(Lo)"),
    "ideal windings": ("v(out)", "i(L2)"),
    "centre tap": ("v(u)", "i(L1)"),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_against_differences(name: str) -> None:
    """Through many events: a value, an integral and the integral of a square, by all numbers at once."""
    rng = np.random.default_rng(len(name))
    first, second = OBSERVED[name]
    values = scales(name)
    direction = {key: float(rng.uniform(-1.0, 1.0)) for key in values}
    found = run(name)
    assert len(found.events) >= (10 if name == "centre tap" else 40 if name == "ideal windings" else 100)
    begin, end = np.sort(rng.uniform(0.1, 1.0, 2) * found.stop).tolist()
    late = float(rng.uniform(0.5, 1.0)) * found.stop
    functionals = [Value(first, late), Integral(second, begin, found.stop), Integral(first, 0.0, end, 2)]
    sizes = [by_measurement(found, own) for own in functionals]
    weights = (rng.uniform(0.5, 1.0, 3) / np.abs(sizes)).tolist()
    result = waveform_gradient(found, functionals, list(values), weights)
    assert result.values == pytest.approx(sizes, rel=1e-9)

    def loss(factors: dict[str, float]) -> float:
        again = run(name, factors)
        return sum(w * by_measurement(again, own) for w, own in zip(weights, functionals))

    exact = sum(result.gradient[key] * direction[key] * values[key] for key in values)
    size = sum(abs(result.gradient[key] * values[key]) for key in values)
    assert exact == pytest.approx(along(loss, direction, 1e-5 if name == "oscillator" else 1e-4), abs=1e-7 * size)
    assert size > 1e-3


MEASURED = {
    "clamp": """PP v(o) FROM=0.1; MAX i(D1) FROM=0.11 TO=0.13; MIN v(p) FROM=0.2; AVG i(Rs); RMS v(o) TO=0.3
        WHEN v(p)=6 RISE=7; TRIG v(p) VAL=6 RISE=3 TARG v(o) VAL=4.4 FALL=LAST; FIND v(o) WHEN v(p)=6 FALL=5
        FIND v(p) AT=0.2; INTEG v(p) FROM=0.01""",
    "oscillator": "MIN v(c) FROM=1m; PP i(S1) FROM=20m; TRIG v(c) VAL=5 RISE=3 TARG v(c) VAL=5 RISE=9",
    "flyback": "MAX v(o) FROM=400u; PP i(L1) FROM=500u; WHEN i(D1)=0.1 RISE=20",
    "pump": "MIN v(o) FROM=10m; MAX v(o) FROM=10.2m TO=11.2m; WHEN v(b)=1 CROSS=31; PP i(R1) FROM=30m",
    "held": "FIND v(out) AT=0.3m",
}


@pytest.mark.parametrize("name", MEASURED)
def test_measurements_against_differences(name: str) -> None:
    values, found = scales(name), run(name)
    direction = signs(values)
    texts = [f"x{k} {text.strip()}" for k, text in enumerate(re.split(r"[;\n]", MEASURED[name]))]
    runs: dict[str, TransientResult] = {}

    def at(factors: dict[str, float], text: str) -> float:
        other = runs.setdefault(str(factors), run(name, factors) if str(factors) not in runs else found)
        value = measure(other, text).value
        assert value is not None
        return value

    for text in texts:
        measured, gradient = measure_gradient(found, [text], list(values))
        assert measured[text.split()[0]] == pytest.approx(at({}, text), rel=1e-12)
        exact = sum(gradient[key] * direction[key] * values[key] for key in values)
        size = sum(abs(gradient[key] * values[key]) for key in values)
        step = 1e-5 if name in ("oscillator", "flyback") else 1e-4
        differences = along(lambda own, text=text: at(own, text), direction, step)
        assert exact == pytest.approx(differences, abs=3e-7 * size), text
        # Crossings at a step of a source do not move.
        assert size > 1e-9 or (name == "pump" and "WHEN" in text)


@pytest.mark.parametrize(
    ("name", "stop", "functionals", "events"),
    [
        ("clamp", 0.03, [Value("v(o)", 0.023), Integral("v(p)", 0.0131, 0.03), Integral("i(Rs)", 0.0, 0.03, 2)], 3),
        ("bridge", 0.025, [Value("v(o,m)", 0.021), Integral("i(L1)", 0.01, 0.025, 2)], 4),
        ("oscillator", 4.5e-3, [Value("v(c)", 4.41e-3), Integral("v(c)", 1e-3, 4.3e-3)], 8),
        ("flyback", 1.6e-5, [Value("v(o)", 1.55e-5), Integral("i(L1)", 0.0, 1.5e-5)], 4),
        ("amplified", 2e-4, [Value("v(f)", 2e-4), Integral("v(d)", 3e-5, 1.8e-4, 2), Integral("i(E1)", 6e-5, 2e-4)], 0),
        ("held", 1e-3, [Value("v(out)", 3e-4)], 0),
        ("ideal windings", 2.5e-5, [Value("v(out)", 2.1e-5), Integral("i(L2)", 0.0, 2.4e-5)], 4),
        ("pump", 2.3e-3, [Value("v(o)", 1.2e-3), Integral("v(o)", 1e-4, 2.3e-3, 2)], 4),
    ],
)
def test_the_implicit_method_as_the_exact_one(
    name: str, stop: float, functionals: list[Value | Integral], events: int
) -> None:
    """Through diodes, switches, jumps of charge and held nodes: to the accuracy of the run."""
    values = scales(name)
    exact = waveform_gradient(run(name, stop=stop), functionals, list(values))
    most = max(abs(exact.gradient[key] * value) for key, value in values.items())
    ours = run(name, stop=stop, method="implicit", accuracy=1e-5)
    found = waveform_gradient(ours, functionals, list(values))
    assert len(ours.events) >= events
    off = max(abs(found.gradient[key] - exact.gradient[key]) * abs(x) for key, x in values.items()) / most
    assert off <= 5e-4
    assert found.values == pytest.approx(exact.values, rel=5e-4)


def test_the_implicit_method_against_differences() -> None:
    """A junction diode, by all numbers: differences of runs of their own, ten times as accurate."""
    functionals = [Value("v(out)", 0.0053), Integral("i(L1)", 0.0031, 0.0057), Integral("v(o)", 0.0, 0.006, 2)]
    weights, values = [1.0, 100.0, 1.0], scales("filtered")
    found = waveform_gradient(
        run("filtered", stop=0.006, method="implicit", accuracy=1e-6), functionals, list(values), weights
    )
    direction = signs(values)
    ours = [found.gradient[key] * values[key] * direction[key] for key in values]

    def loss(factors: dict[str, float]) -> float:
        other = run("filtered", factors, stop=0.006, method="implicit", accuracy=1e-7)
        return float(np.dot(weights, [by_measurement(other, own) for own in functionals]))

    assert sum(ours) == pytest.approx(along(loss, direction, 5e-3), rel=1e-4)
    theirs = (loss({"D1.is": 1.005}) - loss({"D1.is": 0.995})) / 0.01
    assert found.gradient["D1.is"] * values["D1.is"] == pytest.approx(theirs, 1e-3, 1e-5 * max(map(abs, ours)))


def test_measurements_and_times_of_events_of_the_implicit_method() -> None:
    exact, ours = run("oscillator", stop=4.5e-3), run("oscillator", stop=4.5e-3, method="implicit", accuracy=1e-7)
    names, values = ["C1", "S1.vh", "R1"], scales("oscillator")
    for text in ("a TRIG v(c) VAL=5 RISE=1 TARG v(c) VAL=5 RISE=2", "b MAX v(c)", "c AVG v(c) FROM=1m TO=4m"):
        found, theirs = (measure_gradient(one, [text], names) for one in (ours, exact))
        assert list(found[0].values()) == pytest.approx(list(theirs[0].values()), rel=1e-5)
        for name in names:
            assert values[name] * found[1][name] == pytest.approx(values[name] * theirs[1][name], 1e-4, 1e-5)
    times = [waveform_gradient(one, [EventTime(one.events[4].time)], names) for one in (ours, exact)]
    assert times[0].gradient == pytest.approx(times[1].gradient, rel=1e-5)


PERIODIC = {
    "bridge": ([Integral("v(o,m)", 0.0, 0.02), Integral("v(o,m)", 0.0, 0.02, 2), Value("i(L1)", 0.003)], 1e-4),
    "pump": ([Integral("v(o)", 0.0, 1e-3), Integral("v(b)", 2e-4, 1e-3, 2)], 1e-3),
}


@pytest.mark.parametrize("name", PERIODIC)
def test_a_periodic_state_moves_with_the_values(name: str) -> None:
    functionals, step = PERIODIC[name]
    values = {key: value for key, value in scales(name).items() if not key.endswith(".ic")}
    weights = [50.0, 5.0, 1.0] if name == "bridge" else [1e3, 1e3]

    def periodic(factors: dict[str, float]) -> TransientResult:
        return steady_state(loads(written(name, factors)), steps(name, factors))

    def loss(factors: dict[str, float]) -> float:
        again = periodic(factors)
        return sum(w * by_measurement(again, own) for w, own in zip(weights, functionals))

    result = waveform_gradient(periodic({}), functionals, list(values), weights)
    for key, value in values.items():
        assert result.gradient[key] * value == pytest.approx(along(loss, {key: 1.0}, step), rel=1e-7)


BY_HAND = [
    (
        "a discharge",
        "C1 a 0 1u ic=5\nR1 a 0 1k\n.tran 1m 2m uic",
        Value("v(a)", 1.5e-3),
        5.0 * math.exp(-1.5),
        {"R1": 7.5e-3 * math.exp(-1.5), "C1": 7.5e6 * math.exp(-1.5)},
    ),
    (
        "charge sharing: 5 V on 1 µF and 1 V on 3 µF meet through a diode at 2 V",
        "C1 a 0 1u ic=5\nD1 a b d\nC2 b 0 3u ic=1\nR1 b 0 1k\n.model d D\n.tran 1m 1m uic",
        Value("v(b)", 0.0),
        2.0,
        {"C1.ic": 0.25, "C2.ic": 0.75, "C1": 3.0 / 4e-6, "C2": -1.0 / 4e-6},
    ),
    (
        "a step of 1 V divides among two capacitors",
        "V1 a 0 0\nC1 a b 1u\nC2 b 0 3u\nR1 b 0 1k\n.tran 1m 1m",
        Value("v(b)", 1e-3),
        0.25 * math.exp(-0.125),
        {key: x * math.exp(-0.125) for key, x in {"V1": 0.25, "C1": 195312.5, "C2": -54687.5, "R1": 3.125e-5}.items()},
    ),
    (
        "a divider, without states",
        "V0 a 0 2\nR1 a b 1k\nR2 b 0 1k\n.tran 1m 1m",
        Value("v(b)", 1e-3),
        1.0,
        {"R1": -5e-4, "R2": 5e-4},
    ),
    (
        "a charge through more resistors than one pass takes",
        "\n".join(f"R{k} a{k} a{k + 1} 25" for k in range(40)) + "\nV0 a0 0 1\nC1 a40 0 1u ic=0\n.tran 1m 1m uic",
        Value("v(a40)", 1e-3),
        1.0 - math.exp(-1.0),
        {f"R{k}": -1e-3 * math.exp(-1.0) for k in range(40)},
    ),
]
RAMP = (
    "V1 s 0 10\nR1 s c 10k\nC1 c 0 .1u\nS1 c 0 c 0 sw\nR2 s d 20k\nC2 d 0 .1u\n.model sw SW(vt=5 vh=1 ron=1 roff=1e15)"
)


@pytest.mark.parametrize(("title", "cards", "functional", "value", "gradient"), BY_HAND)
def test_closed_forms(title: str, cards: str, functional: Value, value: float, gradient: dict[str, float]) -> None:
    waves = {"V1": Pulse(0.0, 1.0, 5e-4)} if "V1" in gradient else {}
    result = transient(loads(f"{title}\n{cards}"), waveforms=waves, points=2)
    found = waveform_gradient(result, [functional], list(gradient))
    assert found.values == pytest.approx([value], rel=1e-12)
    assert found.gradient == pytest.approx(gradient, rel=1e-12)


def test_more_numbers_than_one_pass_of_the_implicit_method_takes() -> None:
    title, cards, functional, value, gradient = BY_HAND[-1]
    result = transient(loads(f"{title}\n{cards}"), points=2, method="implicit", accuracy=1e-7)
    found = waveform_gradient(result, [functional], list(gradient))
    assert found.values == pytest.approx([value], rel=1e-6)
    assert found.gradient == pytest.approx(gradient, rel=1e-6)


def test_time_of_an_event_and_value_before_it() -> None:
    """A capacitor reaches VT + VH after R C ln(V / (V − VT − VH)); there a second capacitor has its own closed form."""
    result = transient(loads(f"ramp\n{RAMP}\n.tran 1m 2m uic"), points=2)
    when = result.events[0].time
    assert when == pytest.approx(1e-3 * math.log(2.5), rel=1e-9)
    late = waveform_gradient(result, [EventTime(when)], ["R1", "C1", "S1.vt", "S1.vh", "R2"])
    expected = {"R1": when / 1e4, "C1": when / 1e-7, "S1.vt": 2.5e-4, "S1.vh": 2.5e-4, "R2": 0.0}
    assert late.gradient == pytest.approx(expected, rel=1e-9)
    value = waveform_gradient(result, [EventValue("v(d)", when)], ["S1.vt", "R2"])
    left = 10.0 * math.exp(-when / 2e-3)
    assert value.values == pytest.approx([10.0 - left], rel=1e-9)
    assert value.gradient == pytest.approx({"S1.vt": left / 2e-3 * 2.5e-4, "R2": -left * when / 40.0}, rel=1e-9)


def test_a_diode_without_a_current_opens_when_the_source_changes_its_sign() -> None:
    """D0 conducts alone, without a current, from the opening of D3 to the zero of the source."""
    result = run("bridge", stop=0.012, method="implicit", accuracy=1e-6)
    when = next(event.time for event in result.events if event.changed == ("-D0",))
    assert when == pytest.approx(0.01, rel=1e-8)
    assert waveform_gradient(result, [EventTime(when)], ["L1", "R1"]).gradient == pytest.approx(
        {"L1": 0.0, "R1": 0.0}, abs=1e-9
    )


PARTS = """parts of every kind
V1 a 0 5
D1 a b d1
D2 b c d2
S1 c 0 c 0 sw
C1 c 0 1u
L1 c d 1m
L2 d 0 1m
R1 d 0 10
.model d1 D(vfwd=.7 ron=.1)
.model d2 D(vfwd=.7 ron=0)
.model sw SW(vt=9 ron=1 roff=1k)
.tran 1m 1m"""


NOT_A_NUMBER = {
    "D1.vrev": "not stated",
    "D1": "not a number of",
    "D1.m": "not a number of",
    "k(L1,L2)": "couples nothing",
    "S1.what": "not a number",
    "C1.ic": "operating point",
    "R9": "not a number",
    "D2.ron": "adds a resistance",
}


def test_what_has_no_gradient() -> None:
    parts, pump = transient(loads(PARTS), points=2), run("pump", stop=0.01)
    value = Value("v(c)", 5e-4)
    for name, said in NOT_A_NUMBER.items():
        with pytest.raises(UsageError, match=said):
            waveform_gradient(parts, [value], [name])
    stated = transient(loads("t\nR1 a 0 1k\nC1 a 0 1u\n.ic v(a)=1\n.tran 1u 1m uic"))
    with pytest.raises(UsageError, match="not held in a run with uic"):  # a gradient of 0 before
        waveform_gradient(stated, [Value("v(a)", 1e-3)], ["v(a)"])
    for functional, said in (
        (Value("v(c)", 2.0), "in order"),
        (Integral("v(c)", 5e-4, 0.0), "in order"),
        (Integral("v(c)", 0.0, 5e-4, 3), "power"),
        (Value("p(R1)", 0.0), "neither"),
    ):
        with pytest.raises(UsageError, match=said):
            waveform_gradient(parts, [functional], ["R1"])
    with pytest.raises(UsageError, match="by itself"):
        waveform_gradient(pump, [EventTime(1e-3)], ["R1"])
    for text, said in (
        ("x DERIV v(o) AT=1m", "no gradient"),
        ("x PARAM='1'", "no gradient"),
        ("x MAX_AT v(o)", "no gradient"),
        ("x MAX {2*v(o)}", "neither"),
    ):
        with pytest.raises(UsageError, match=said):
            measure_gradient(pump, [text], ["R1"])
    for weights in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(UsageError, match=f"{len(weights)} weights for 2 values"):
            measure_gradient(pump, ["x MAX v(o)", "y AVG v(o)"], ["R1"], weights)
    assert measure_gradient(pump, ["x WHEN v(o)=1000"], ["R1"]) == ({"x": None}, {"R1": 0.0})
    implicit = run("filtered", method="implicit", accuracy=1e-4)
    for name, said in (
        ("D1.bv", "not stated"),
        ("C1.ic", "no effect"),
        ("R9", "not a number"),
        ("k(L1,R1)", "couples"),
    ):
        with pytest.raises(UsageError, match=said):
            waveform_gradient(implicit, [Value("v(out)", 0.01)], [name])
    windings = run("ideal windings", stop=1e-5, method="implicit")
    with pytest.raises(UsageError, match="ideal coupling"):
        waveform_gradient(windings, [Value("v(s)", 5e-6)], ["k(L1,L2)"])
