"""Random circuits of resistors, capacitors, inductors, ideal diodes, switches and sources in time."""

from __future__ import annotations

import random

from circuitsim import Circuit
from circuitsim.time_domain import PiecewiseLinear, Pulse, Sine, Switch, Waveform


def draw(seed: int) -> tuple[Circuit, dict[str, Waveform], dict[str, float]]:
    """A circuit of 3–7 nodes, its sources' waveforms, its initial states; time constants around 1 s."""
    r = random.Random(seed)
    n = r.randint(3, 7)
    circuit = Circuit(f"random {seed}")
    initial: dict[str, float] = {}
    for k in range(1, n):
        # Each node has a path of resistors to ground: no voltage is free.
        circuit.resistor(f"R{k}", f"n{k}", node(r.randrange(k)), size(r))
    for k in range(r.randint(2, 6)):
        a, b = two(r, n)
        circuit.diode(f"D{k}", a, b)
    for k in range(r.randint(1, 3)):
        a, b = two(r, n)
        circuit.add("C", f"C{k}", a, b, size(r))
        initial[f"C{k}"] = r.choice((0.0, round(r.uniform(-3.0, 3.0), 2)))
    for k in range(r.randint(0, 2)):
        a, b = two(r, n)
        circuit.add("L", f"L{k}", a, b, size(r))
        initial[f"L{k}"] = r.choice((0.0, round(r.uniform(-1.0, 1.0), 2)))
    waves: dict[str, Waveform] = {}
    for k in range(r.randint(1, 2)):
        name, inner = f"V{k}", f"s{k}"
        a, b = two(r, n)
        circuit.voltage_source(name, inner, a, 0.0)
        circuit.resistor(f"Rs{k}", inner, b, size(r))
        waves[name] = r.choice(
            (
                Sine(0.0, r.uniform(1.0, 10.0), r.uniform(0.1, 1.0), phase=r.choice((0.0, 90.0))),
                Pulse(-2.0, 5.0, 0.3, r.choice((0.0, 0.2)), r.choice((0.0, 0.2)), 0.5, 1.7),
                PiecewiseLinear([0.0, 1.0, 2.0, 3.0], [0.0, 4.0, -4.0, 1.0]),
            )
        )
    return circuit, waves, initial


def draw_cascade(seed: int) -> tuple[Circuit, dict[str, float]]:
    """A Cockcroft–Walton cascade of 2 to 10 stages and source ``V1``, its capacitors charged to whole volts."""
    r = random.Random(seed)
    stages, source = r.randint(2, 10), r.choice((1.0, 10.0, 100.0))
    load, farad = r.choice((1e3, 1e5)), r.choice((1e-6, 1e-5, 1e-4))
    circuit, initial, top, bottom = Circuit(f"cascade {seed}"), dict[str, float](), "t0", "0"
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "t0", source)
    for k in range(1, stages + 1):
        circuit.add("C", f"CT{k}", top, f"t{k}", farad)
        circuit.diode(f"DA{k}", bottom, f"t{k}")
        circuit.diode(f"DB{k}", f"t{k}", f"b{k}")
        circuit.add("C", f"CB{k}", bottom, f"b{k}", farad)
        top, bottom = f"t{k}", f"b{k}"
        initial |= {f"C{side}{k}": float(r.randint(-2, 2)) for side in "TB"}
    circuit.resistor("RL", bottom, "0", load)
    return circuit, initial


def size(r: random.Random) -> float:
    """A value between 0.1 and 10, often 1."""
    return r.choice((1.0, 1.0, round(10.0 ** r.uniform(-1.0, 1.0), 2)))


def two(r: random.Random, n: int) -> tuple[str, str]:
    """Two different nodes."""
    a, b = r.sample(range(n), 2)
    return node(a), node(b)


def node(k: int) -> str:
    """The name of a node; node 0 is ground."""
    return f"n{k}" if k else "0"


def draw_switched(seed: int) -> tuple[Circuit, dict[str, Waveform], dict[str, float], dict[str, Switch]]:
    """The circuit of `draw` with 1 or 2 switches more, each controlled by a source of time or by a capacitor."""
    circuit, waves, initial = draw(seed)
    r = random.Random(f"switches {seed}")
    n = 1 + sum(name.startswith("n") for name in circuit.node_names)
    switches: dict[str, Switch] = {}
    for k in range(r.randint(1, 2)):
        a, b = two(r, n)
        circuit.resistor(f"S{k}", a, b, 1.0)
        on, off = r.choice((0.01, 0.1, 1.0)), r.choice((100.0, 1e4, 1e6))
        if r.random() < 0.5:
            circuit.voltage_source(f"Vc{k}", f"c{k}", "0", 0.0)
            circuit.resistor(f"Rc{k}", f"c{k}", "0", 1.0)
            waves[f"Vc{k}"] = Sine(0.0, 1.0, r.uniform(0.5, 3.0), phase=r.uniform(0.0, 360.0))
            switches[f"S{k}"] = Switch((f"c{k}", "0"), r.uniform(-0.5, 0.5), r.choice((0.0, 0.1)), on, off)
            continue
        j = circuit.element_index("C0")
        arrays = circuit.arrays()
        ends = circuit.node_names[arrays.first[j]], circuit.node_names[arrays.second[j]]
        switches[f"S{k}"] = Switch(ends, r.uniform(-1.0, 1.0), r.uniform(0.1, 0.5), on, off)
    return circuit, waves, initial, switches


Couplings = dict[tuple[str, str], float]


def draw_coupled(
    seed: int,
) -> tuple[Circuit, dict[str, Waveform], dict[str, float], dict[str, Switch], Couplings]:
    """The circuit of `draw_switched` with one or two groups of 2 to 4 ideally coupled windings, of which some have
    terminals of their own with resistors, diodes and capacitors at them; two groups are coupled by less than 1."""
    circuit, waves, initial, switches = draw_switched(seed)
    r = random.Random(f"windings {seed}")
    n = 1 + sum(name.startswith("n") for name in circuit.node_names)
    groups, signs = list[list[str]](), dict[str, int]()
    for _ in range(r.choice((1, 1, 2))):
        coils = [f"W{len(signs) + k}" for k in range(r.randint(2, 4))]
        for coil in coils:
            signs[coil] = r.choice((1, -1))
            a, b = two(r, n)
            if r.random() < 0.5:
                a = f"{coil}a"
                circuit.resistor(f"R{coil}", a, node(r.randrange(n)), size(r))
            circuit.add("L", coil, a, b, r.choice((1.0, 1.0, 4.0, 0.25, round(10.0 ** r.uniform(-1.0, 1.0), 2))))
            initial[coil] = r.choice((0.0, round(r.uniform(-1.0, 1.0), 2)))
            if r.random() < 0.5:
                circuit.diode(f"D{coil}", *r.choice(((a, b), (b, a), (a, node(r.randrange(n))))))
            if r.random() < 0.2:
                circuit.add("C", f"C{coil}", a, b, size(r))
        groups.append(coils)
    between = r.choice((0.0, 0.5, 0.9))
    factors = {}
    names = list(signs)
    for k, first in enumerate(names):
        for second in names[k + 1 :]:
            same = any(first in group and second in group for group in groups)
            factor = signs[first] * signs[second] * (1.0 if same else between)
            if factor:
                factors[first, second] = factor
    return circuit, waves, initial, switches, factors
