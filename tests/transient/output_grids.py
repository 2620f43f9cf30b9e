"""Random circuits over time and random output times: what the implicit method shows may not depend on these.

``python tests/transient/output_grids.py FIRST LAST`` checks the pairs with these seeds.
"""

from __future__ import annotations

import math
import random
import sys

import numpy as np
from random_waveforms import draw
from scipy.integrate import solve_ivp

from circuitsim import Circuit
from circuitsim.errors import CircuitError
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.time_domain import Pulse, Sine, TransientResult, Waveform, transient

ACCURACY = 1e-5
OFF = 10.0
"""Largest distance from the exact method, of the accuracy: errors of steps add up."""
THERMAL = 1.38064852e-23 * 300.15 / 1.6021766208e-19
"""Of junctions at 27 °C, V."""
POINTS = (2, 3, 5, 21, 101, 1001)
SAID = 3.0
"""Largest distance, of the difference that the result states where it warns: that is measured at its output times."""
Drawn = tuple[Circuit, dict[str, Waveform], dict[str, float], float]


def rectifier(seed: int) -> Drawn:
    """A mains rectifier of one or two diodes; its smoothing and its series resistance over four decades."""
    r = random.Random(f"rectifier {seed}")
    circuit, frequency = Circuit(f"rectifier {seed}"), 10.0 ** r.uniform(1.0, 5.0)
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("R1", "a", "b", 10.0 ** r.uniform(-1.0, 2.0))
    circuit.diode("D1", "b", "c")
    load, smooth = 10.0 ** r.uniform(1.0, 4.0), 10.0 ** r.uniform(-2.0, 2.0)
    circuit.add("C", "C1", "c", "0", smooth / (load * frequency))
    circuit.resistor("RL", "c", "0", load)
    if r.random() < 0.3:
        circuit.diode("D2", "0", "b")
    if r.random() < 0.3:
        circuit.add("L", "L1", "b", "0", load / frequency)
    wave = Sine(r.choice((0.0, 2.0)), r.uniform(1.0, 20.0), frequency, r.choice((0.0, 0.4 / frequency)))
    return circuit, {"V1": wave}, {}, r.uniform(0.4, 3.0) / frequency


def pulse(seed: int) -> Drawn:
    """A pulse of 1e-11 to 1e-2 of the run through a diode onto a capacitor that it charges within a tenth to ten of its
    widths."""
    r = random.Random(f"pulse {seed}")
    stop = 10.0 ** r.uniform(-6.0, 2.0)
    width, edge = stop * 10.0 ** r.uniform(-11.0, -2.0), r.choice((0.0, 0.2, 1.0))
    ohms, circuit = 10.0 ** r.uniform(0.0, 3.0), Circuit(f"pulse {seed}")
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("R1", "a", "b", ohms)
    if r.random() < 0.7:
        circuit.diode("D1", "b", "c")
    else:
        circuit.resistor("D1", "b", "c", ohms)
    circuit.add("C", "C1", "c", "0", width * 10.0 ** r.uniform(-1.0, 1.0) / ohms)
    if r.random() < 0.5:
        circuit.resistor("RL", "c", "0", stop / width * ohms * 10.0 ** r.uniform(-2.0, 1.0))
    period = r.choice((np.inf, 0.3 * stop))
    wave = Pulse(0.0, r.uniform(1.0, 10.0), r.uniform(0.01, 0.9) * stop, edge * width, edge * width, width, period)
    return circuit, {"V1": wave}, {}, stop


def mixed(seed: int) -> Drawn:
    """See `draw`."""
    return *draw(seed), 2.0


def grid(seed: int, stop: float) -> tuple[float, int]:
    """The first output time and their number; half of them do not begin at 0."""
    r = random.Random(f"grid {seed}")
    return r.choice((0.0, r.uniform(0.05, 0.95) * stop)), r.choice(POINTS)


def off(ours: TransientResult, exact: TransientResult) -> float:
    """Largest distance of a capacitor's voltage or an inductor's current, of the largest of its kind in the run."""
    found, circuit, wide = 0.0, exact.circuit, np.linspace(0.0, exact.stop, 201)
    starts = exact.segment_starts()
    for kind, pick in (("C", 0), ("L", 1)):
        own = [circuit.element_index(name) for name in circuit.names if name[0] == kind]
        if own:
            size = max(np.abs(exact.at(times)[pick][:, own]).max() for times in (exact.times, wide, starts))
            away = np.abs(ours.at(ours.times)[pick][:, own] - exact.at(ours.times)[pick][:, own]).max()
            found = max(found, float(away / size) if size > 1e-12 else 0.0)
    return found


def junction(seed: int) -> tuple[Circuit, Sine, float, float]:
    """A rectifier with a junction diode: the circuit, its source, the diode's saturation current, A, and the end, s."""
    r = random.Random(f"junction {seed}")
    circuit, frequency, load = Circuit(f"junction {seed}"), 10.0 ** r.uniform(1.0, 4.0), 10.0 ** r.uniform(2.0, 4.0)
    saturation = 10.0 ** r.uniform(-14.0, -9.0)
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.device("D1", "in", "out", JunctionDiode(**{"is": saturation, "n": 1.5}))
    circuit.add("C", "C1", "out", "0", 10.0 ** r.uniform(-1.0, 2.0) / (load * frequency))
    circuit.resistor("R1", "out", "0", load)
    return circuit, Sine(0.0, r.uniform(1.0, 20.0), frequency), saturation, r.uniform(0.4, 3.0) / frequency


def check_junction(seed: int) -> tuple[str, float, TransientResult]:
    """See `check`; against scipy's Radau method."""
    circuit, wave, saturation, stop = junction(seed)
    begin, points = grid(seed, stop)
    ours = transient(circuit, stop, {"V1": wave}, points=points, begin=begin, accuracy=ACCURACY)
    farad, ohms = (float(circuit.arrays().value[circuit.element_index(name)]) for name in ("C1", "R1"))

    def rate(t: float, v: np.ndarray) -> list[float]:
        source = wave.amplitude * math.sin(2.0 * math.pi * wave.frequency * t)
        return [(saturation * math.expm1(min((source - v[0]) / (1.5 * THERMAL), 300.0)) - v[0] / ohms) / farad]

    close = {"rtol": 1e-10, "atol": 1e-12 * wave.amplitude, "max_step": 0.01 / wave.frequency}  # else it misses peaks
    theirs = solve_ivp(rate, (0.0, stop), [0.0], "Radau", dense_output=True, **close)
    away = np.abs(ours.voltage("out") - theirs.sol(ours.times)[0]).max() / np.abs(theirs.y[0]).max()
    return f"{circuit.title}, {points} times from {begin:.3g} to {stop:.3g} s", float(away) / ACCURACY, ours


def check(seed: int) -> tuple[str, float, TransientResult]:
    """What one pair shows: the circuit, and how far it is from the exact method over the accuracy."""
    if seed % 8 == 3:
        return check_junction(seed)
    make = (rectifier, pulse, mixed, pulse)[seed % 4]
    circuit, waves, initial, stop = make(seed)
    begin, points = grid(seed, stop)
    exact = transient(circuit, stop, waves, initial, points=points, begin=begin, method="exact", tolerance=10.0)
    ours = transient(circuit, stop, waves, initial, points=points, begin=begin, method="implicit", accuracy=ACCURACY)
    return f"{circuit.title}, {points} times from {begin:.3g} to {stop:.3g} s", off(ours, exact) / ACCURACY, ours


def main(first: int, last: int) -> None:
    """Check the pairs of some seeds."""
    wrong, failed, warned, found = 0, 0, 0, []
    for seed in range(first, last):
        try:
            title, share, ours = check(seed)
        except CircuitError as error:
            failed += 1
            print(seed, type(error).__name__, error, flush=True)
            continue
        found.append(share)
        if share > OFF:
            said = (ours.difference or 0.0) / ACCURACY if ours.warnings else 0.0
            warned, wrong = warned + (share <= SAID * said), wrong + (share > SAID * said)
            print(seed, title, f"{share:.3g}, said {said:.3g}", flush=True)
    quarters = np.percentile(found, [50.0, 90.0, 99.0, 100.0]).round(3).tolist()
    said = f"{wrong} wrong, {warned} off with a warning that says by how much, {failed} refused"
    print(f"{last - first} pairs: {said}; off by {quarters} of the accuracy (50, 90, 99, 100 %)")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
