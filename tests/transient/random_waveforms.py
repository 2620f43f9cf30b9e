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


def draw_open(
    seed: int, currents: bool = False
) -> tuple[Circuit, dict[str, Waveform], dict[str, float], dict[str, Switch], float]:
    """Inductors and capacitors of many decades behind 1 to 3 switches of 1 kΩ to 1 TΩ when open, which sources open
    and close; the end of the run, s. Sources are lines between corners; ``currents`` lets them be current sources. No
    capacitors in loops with sources, no inductors in cuts."""
    r = random.Random(f"open {seed}")
    n = r.randint(3, 6)
    circuit = Circuit(f"open {seed}")
    stop = 10.0 ** r.randint(-4, -1)
    waves: dict[str, Waveform] = {}
    initial: dict[str, float] = {}
    switches: dict[str, Switch] = {}
    part = list(range(n))

    def joins(a: int, b: int) -> bool:
        """Whether a capacitor or source leaves no loop; it is counted then."""
        if part[a] == part[b]:
            return False
        part[:] = [part[a] if p == part[b] else p for p in part]
        return True

    def control() -> PiecewiseLinear:
        times, values, level, at = [], [], r.choice((0.0, 1.0)), 0.0
        for _ in range(r.choice((1, 1, 2))):
            at += round(r.uniform(0.02, 0.45), 4) * stop
            times += [at, at + r.choice((1e-3, 1e-6)) * stop]
            values += [level, 1.0 - level]
            at, level = times[-1], 1.0 - level
        return PiecewiseLinear(times, values)

    def ohm() -> float:
        return float(f"{10.0 ** r.uniform(0.0, 4.0):.2g}")

    many = r.randint(1, 3)
    # Each node has a path of resistors and switches to ground.
    for k in range(1, n):
        a, b = k, r.randrange(k)
        if len(switches) < many and r.random() < 0.5:
            switches[f"S{len(switches)}"] = Switch(("0", "0"))
            circuit.resistor(f"S{len(switches) - 1}", node(a), node(b), 1.0)
        else:
            circuit.resistor(f"R{k}", node(a), node(b), ohm())
    while len(switches) < many:
        circuit.resistor(f"S{len(switches)}", *two(r, n), 1.0)
        switches[f"S{len(switches)}"] = Switch(("0", "0"))
    for k in range(many):
        circuit.voltage_source(f"Vc{k}", f"c{k}", "0", 0.0)
        waves[f"Vc{k}"] = control()
        off = 10.0 ** r.randint(3, 12)
        switches[f"S{k}"] = Switch((f"c{k}", "0"), 0.5, 0.0, r.choice((0.1, 1.0, 10.0)), off)
    kinds = r.choice(("L", "LC", "LC", "C"))
    for k in range(r.randint(1, 2) if "L" in kinds else 0):
        circuit.add("L", f"L{k}", *two(r, n), float(f"{stop * 10.0 ** r.uniform(-3.0, 3.0):.2g}"))
        initial[f"L{k}"] = r.choice((0.0, 0.0, round(r.uniform(-2.0, 2.0), 2)))
    for k in range(r.randint(1, 2) if "C" in kinds else 0):
        a, b = r.sample(range(n), 2)
        if joins(a, b):
            circuit.add("C", f"C{k}", node(a), node(b), float(f"{stop * 10.0 ** r.uniform(-6.0, 0.0):.2g}"))
            initial[f"C{k}"] = r.choice((0.0, 0.0, round(r.uniform(-20.0, 20.0), 1)))
    for k in range(r.randint(1, 2)):
        a, b = r.sample(range(n), 2)
        if r.random() < 0.3 and currents:
            circuit.current_source(f"I{k}", node(a), node(b), round(r.uniform(-0.1, 0.1), 3))
        elif joins(a, b):
            circuit.voltage_source(f"V{k}", node(a), node(b), round(r.uniform(-20.0, 20.0), 1))
        else:
            inner = f"s{k}"
            circuit.voltage_source(f"V{k}", inner, node(a), round(r.uniform(-20.0, 20.0), 1))
            circuit.resistor(f"Rs{k}", inner, node(b), ohm())
        name = circuit.names[-1] if circuit.names[-1][0] in "VI" else circuit.names[-2]
        if r.random() < 0.5:
            level = 0.1 if name[0] == "I" else 20.0
            waves[name] = PiecewiseLinear(
                [0.0, 0.3 * stop, 0.31 * stop, 0.8 * stop], [level * round(r.uniform(-1.0, 1.0), 2) for _ in range(4)]
            )
    return circuit, waves, initial, switches, stop
