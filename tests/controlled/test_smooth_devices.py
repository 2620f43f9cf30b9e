"""Smooth devices beside controlled sources: textbook circuits, branches, random circuits against another search."""

import math
from collections import Counter

import numpy as np
import pytest
from corpus import controlled, junction_model
from hard_circuits import hard_circuit
from helpers import loaded, slope, solved
from ngspice_runs import CONTROL, OPTIONS, run
from scipy.optimize import brentq, root
from spice import needed

import circuitsim
from circuitsim import Circuit, loads
from circuitsim.analysis.operating_point import Uniqueness
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.errors import CircuitError, NoOperatingPointError
from circuitsim.models.junction_diode import BOLTZMANN, ZERO_CELSIUS, JunctionDiode

VT = BOLTZMANN * (27.0 + ZERO_CELSIUS)
MODEL = ".model d4148 D(IS=2.52n N=1.752 RS=0.568 BV=100 IBV=100u)\n"

DECKS = {
    "super-diode": "V1 in 0 2\nE1 o 0 in out 100k\nD1 o out d4148\nR1 out 0 1k\n",
    "super-diode, blocking": "V1 in 0 -2m\nE1 o 0 in out 1k\nD1 o out d4148\nR1 out 0 1k\n",
    "logarithm": "V1 in 0 2\nR1 in n 1k\nE1 out 0 0 n 100k\nD1 n out d4148\n",
    "exponential": "V1 in 0 0.5\nR1 n out 1k\nE1 out 0 0 n 100k\nD1 in n d4148\n",
    "rectifier": "V1 in 0 -1.5\nE1 o 0 0 n 10k\nR1 in n 10k\nD1 o n d4148\nD2 x o d4148\nR2 n x 10k\n"
    "E2 out 0 0 m 10k\nR3 x m 10k\nR4 in m 20k\nR5 m out 20k\n",
    "mirror": "V1 p 0 5\nR1 p a 1k\nVs a b 0\nD1 b 0 d4148\nF1 0 o Vs 2\nR2 o 0 100\n",
    "bias": "V1 p 0 5\nRb p b 430k\nVs b e 0\nD1 e 0 d4148\nF1 c 0 Vs 100\nRc p c 1k\n",
}

BANDGAP = """X1 a b out ideal_opamp
R1 out a 10k
R2 out b 10k
R3 b c 1k
D1 a 0 q1
D2 c 0 q1 area=8
.model q1 D(IS=1f)
"""
SCHMITT = """V1 in 0 0
X1 p in out limited_opamp low=-10 high=10
R1 out p 1k
R2 p 0 1k
R3 out q 1k
D1 q 0 d4148
"""


def forward(amperes: float) -> float:
    """Voltage of the 1N4148."""
    return 1.752 * VT * math.log1p(amperes / 2.52e-9) + 0.568 * amperes


def live(ohms: float) -> float:
    """Equal currents of both diodes of the bandgap: VT ln(i/IS + 1) = VT ln(i/8IS + 1) + R3 i."""
    return brentq(lambda i: VT * math.log((i + 1e-15) / (i + 8e-15) * 8.0) - ohms * i, 1e-6, 1e-2, xtol=1e-20)


def test_super_diode_follows_its_input() -> None:
    """The output misses the input by what the amplifier needs: gain (in − out) = out + v of the diode."""
    point = solved(DECKS["super-diode"] + MODEL)
    out = brentq(lambda v: 1e5 * (2.0 - v) - v - forward(v / 1e3), 1.0, 2.0, xtol=1e-15)
    assert point["out"] == pytest.approx(out, rel=1e-12)
    assert point["o"] == pytest.approx(out + forward(out / 1e3), rel=1e-9)
    assert point.uniqueness is Uniqueness.UNIQUE and point.certificate.relative["devices"] < 1e-12


@pytest.mark.parametrize("volts", [1e-6, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("amplifier", ["E1 out 0 0 n 1e5", "X1 0 n out ideal_opamp"])
def test_logarithmic_amplifier(volts: float, amplifier: str) -> None:
    """Unique with an ideal op-amp, too, which forces the current: no P-matrix, but curves that rise strictly."""
    point = solved(f"V1 in 0 {volts}\nR1 in n 1k\n{amplifier}\nD1 n out d4148\n{MODEL}")
    share = 1e-5 if amplifier.startswith("E") else 0.0  # v(n) = −out / gain
    i = brentq(lambda x: 1e3 * x - volts + share * forward(x) / (1.0 + share), 0.0, volts / 1e3, xtol=1e-25)
    assert point["out"] == pytest.approx(-forward(i) / (1.0 + share), rel=1e-9)
    assert point.uniqueness is Uniqueness.UNIQUE


def test_bandgap_has_a_dead_state_and_the_one_that_is_meant() -> None:
    """A start stays on its branch."""
    ready = circuitsim.prepared(loaded(BANDGAP))
    point = ready.solve()
    assert point.uniqueness is Uniqueness.SEVERAL and point.other is not None
    dead, meant = sorted((point, point.other), key=lambda one: one["out"])
    assert dead["out"] == 0.0
    assert meant["out"] == pytest.approx(1e4 * live(1e3) + VT * math.log1p(live(1e3) / 1e-15), rel=1e-12)
    assert [w.kind for w in point.warnings if w.kind != "diode-law"] == ["several"]
    for ohms in (900.0, 500.0):
        moved = ready.solve({"R3": ohms}, start=meant)
        assert moved.current("R3") == pytest.approx(live(ohms), rel=1e-11)
        assert "jump" not in [w.kind for w in moved.warnings]


def test_a_sweep_over_a_schmitt_trigger_jumps_where_the_branch_ends() -> None:
    swept = circuitsim.sweep(loaded(SCHMITT + MODEL), {"V1": [-6, 0, 4.9, 5.1, 0, -4.9, -5.1]}, "v(out) v(q)")
    assert swept["v(out)"].tolist() == [10.0] * 3 + [-10.0] * 3 + [10.0]
    q = brentq(lambda v: forward((10.0 - v) / 1e3) - v, 0.0, 2.0, xtol=1e-15)
    assert swept["v(q)"][0] == pytest.approx(q, rel=1e-11)
    jumps = [warning.message for warning in swept.warnings if warning.kind == "jump"]
    assert len(jumps) == 2 and "V1 = 5.1:" in jumps[0] and "V1 = -5.1:" in jumps[1]


@needed
@pytest.mark.parametrize("name", DECKS)
def test_node_voltages_agree_with_ngspice(name: str) -> None:
    ours = solved(DECKS[name] + MODEL)
    theirs = run(circuitsim.dumps(ours.circuit).replace(".op\n.end\n", "") + OPTIONS + "\n" + CONTROL, {})[0]
    for node in ours.circuit.node_names[1:]:
        assert theirs[node.lower()] == pytest.approx(ours[node], abs=2e-6 * np.abs(ours.voltages).max()), node


def test_batches_and_their_derivatives() -> None:
    """The adjoint of a logarithmic amplifier against finite differences."""
    circuit = loaded(DECKS["logarithm"] + MODEL)
    solver, volts = circuitsim.batched(circuit, ["V1"], [("out", "0")]), np.array([0.01, 1.0, 30.0])
    found = solver.solve(volts[:, None])
    assert found.certified.all()
    _, currents = solver.adjoint(found, np.ones((3, 1)))

    def out(v: float) -> float:
        return circuitsim.solve(circuit.with_values({"V1": v}))["out"]

    assert found.output[:, 0] == pytest.approx([out(v) for v in volts], rel=1e-12)
    assert -currents[:, 0] == pytest.approx([slope(out, v, 1e-5 * v) for v in volts], rel=1e-6)


def test_none_found_names_devices_and_sources() -> None:
    """A negative resistance that asks for more current than the diode's breakdown gives: no state fits."""
    with pytest.raises(NoOperatingPointError, match=r"no operating point was found .* D1, G1") as caught:
        solved("I1 0 a 1m\nG1 0 a a 0 1m\nD1 0 a d\n.model d D(IS=1p)")
    assert not caught.value.proven


def on_curves(point: circuitsim.OperatingPoint) -> int:
    """How many devices there are; each lies on its curve to 1e-9 of its own voltage or current."""
    least = 1e-12 * np.abs(point.voltages).max()
    for k, device in point.circuit.devices.items():
        volts, amperes = float(point.drops[k]), float(point.currents[k])
        low, high = (device.law(volts + sign * (1e-9 * abs(volts) + least))[0] for sign in (-1.0, 1.0))
        slack = 1e-9 * abs(amperes) + 1e-15 * np.abs(point.currents).max()
        assert low - slack <= amperes <= high + slack, (point.circuit.title, k)
    return len(point.circuit.devices)


def junction(rng: np.random.Generator) -> JunctionDiode:
    """A diode with or without breakdown and resistance."""
    values = {"is": 10.0 ** rng.uniform(-15, -8), "n": rng.uniform(1.0, 2.0), "rs": float(rng.choice([0.0, 1.0]))}
    return JunctionDiode(**values, **({"bv": rng.uniform(3.0, 80.0)} if rng.random() < 0.4 else {}))


def linear_part(circuit: circuitsim.Circuit) -> tuple[np.ndarray, np.ndarray] | None:
    """Voltages of the devices without their currents, V, and per ampere through each, Ω: current sources in their place
    and the solver of linear circuits; None where that has no solution."""
    places = list(circuit.devices)
    kind, first, second, value = (column[:] for column in circuit.columns())
    for k in places:
        kind[k], value[k] = CURRENT, 0.0
    columns = kind, first, second, value
    bare = Circuit.from_columns("", columns, list(circuit.names), list(circuit.node_names), laws=dict(circuit.laws))
    try:
        ready = circuitsim.prepared(bare)
        at = [ready.solve().drops[places]]
        at += [ready.solve({circuit.names[k]: 1e-3}).drops[places] for k in places]
    except CircuitError:
        return None
    return at[0], (np.array(at[1:]).T - at[0][:, None]) * 1e3


def others(circuit: circuitsim.Circuit, drops: np.ndarray, rng: np.random.Generator) -> int:
    """How often scipy's solver ends at other voltages of the devices than ``drops``, from 30 random ones."""
    found = linear_part(circuit)
    if found is None:
        return 0
    v0, z = found
    devices, size = list(circuit.devices.values()), 1.0 + np.abs(z).max(axis=1)

    def off(v: np.ndarray) -> np.ndarray:
        return (v - v0 - z @ np.array([d.law(float(np.clip(u, -30.0, 15.0)))[0] for d, u in zip(devices, v)])) / size

    count = 0
    for _ in range(30):
        with np.errstate(all="ignore"):
            answer = root(off, rng.uniform(-2.0, 1.0, v0.size) * 10.0 ** rng.uniform(-1, 1))
        inside = answer.success and np.abs(answer.x).max() < 14.0 and np.abs(off(answer.x)).max() < 1e-13
        count += bool(inside and np.abs(answer.x - drops).max() > 1e-2)
    return count


def test_each_point_is_polished_before_points_are_compared() -> None:
    """A leakage current beside amperes has its own digits: without them, one point was listed twice."""
    point = solved(
        "V1 0 n1 1\nD2 n2 0 a area=8\nD4 0 n2 b\nE1 0 n2 n1 n2 -10\n.model a D(IS=4.22379e-13 N=2.2553717733599026 "
        "BV=5.1 IBV=1m)\n.model b PWL(-4.943 -.0813 -.977 .17895 3.271 .64057 3.659 .75559 5.594 .75559)"
    )
    leakage = 8 * 4.22379e-13 * math.expm1(-10.0 / 11.0 / (2.2553717733599026 * VT))
    assert point.uniqueness is Uniqueness.UNIQUE  # the table is level, but a function of the voltage that E1 holds
    assert point.other is None and point["n2"] == pytest.approx(-10.0 / 11.0, rel=1e-15)
    assert point.current("D2") == pytest.approx(leakage, rel=1e-4)
    law = point.circuit.devices[1].law(float(point.drops[1]))
    assert point.current("D2") == pytest.approx(law[0], rel=1e-12)


@pytest.mark.parametrize(("source", "unique"), [("V1 a 0 6", True), ("V1 b 0 0\nG1 0 a b 0 1\nI1 0 a .75559", False)])
def test_a_table_with_level_pieces_is_unique_where_its_voltage_is_held(source: str, unique: bool) -> None:
    """A current at which it is level leaves its voltage open."""
    table = ".model b PWL(-4.943 -.0813 0 0 3.659 .75559 5.594 .75559)\n"
    point = solved(f"{source}\nE1 c 0 a 0 2\nD1 c d b\nE2 d 0 c d 1\nD2 a 0 b\n{table}")
    assert (point.uniqueness is Uniqueness.UNIQUE) is unique


@pytest.mark.parametrize("kind", ["amplifiers", "nothing makes them well posed"])
def test_random_circuits(kind: str) -> None:
    """Points that are listed as several differ; where the verdict is unique, another search finds nothing else."""
    verdicts, devices, rng = Counter[object](), 0, np.random.default_rng(0)
    for seed in range(50):
        amplifiers = kind == "amplifiers"
        circuit = loads(controlled(seed, junction_model)).circuit if amplifiers else hard_circuit(seed, 6, 3, junction)
        if not circuit.devices:
            continue
        try:
            point = circuitsim.solve(circuit)
        except CircuitError:
            continue
        verdicts[point.uniqueness] += 1
        devices += sum(on_curves(one) for one in (point, point.other) if one is not None)
        if point.uniqueness is Uniqueness.UNIQUE and amplifiers and all(e.kind != "ideal diode" for e in circuit):
            assert others(circuit, point.drops[list(circuit.devices)], rng) == 0, seed
        if point.other is not None:
            both = (point.voltages, point.other.voltages), (point.currents, point.other.currents)
            assert max(float((np.abs(a - b) - 1e-6 * np.abs(a)).max()) for a, b in both) > 0.0, seed
    assert verdicts[Uniqueness.UNIQUE] >= (10 if kind == "amplifiers" else 3) and devices >= 10


def test_a_start_nearby_leads_to_the_same_point() -> None:
    """Sources a hundredth larger, junctions beside ideal diodes and controlled sources."""
    compared = 0
    for seed in range(30):
        circuit = circuitsim.loads(controlled(seed, lambda _: "D(is=1e-12 rs=0.1)")).circuit
        try:
            ready = circuitsim.prepared(circuit)
            near = ready.solve()
            kind, _, _, value, _ = circuit.arrays()
            moved = np.where((kind == VOLTAGE) | (kind == CURRENT), 1.01 * value, value)
            cold, warm = ready.solve(moved), ready.solve(moved, start=near)
        except CircuitError:
            continue
        assert cold.certificate.certified and warm.certificate.certified
        if cold.uniqueness is Uniqueness.UNIQUE:
            compared += 1
            assert np.abs(warm.voltages - cold.voltages).max() <= 1e-9 * np.abs(cold.voltages).max()
    assert compared >= 10


def test_currents_that_are_all_rounding() -> None:
    """Op-amps hold all nodes at 1 V; rounding drives currents of 1e-31 A through 100 Ω beside open tables."""
    point = circuitsim.solve(
        circuitsim.loads(
            "t\nV1 n1 0 1\nR2 n2 n1 10k\nR3 n3 n2 100\nR4 n4 n1 100k\nR5 n5 n1 100k\nR6 n6 m 10k\nR7 n2 n5 1k\n"
            "R8 n5 n1 100k\nR9 n6 n2 100\nR10 n3 n6 100\nR11 n3 n6 1k\nD0 n3 n2 m0\nD1 n2 n6 m1\nD2 n6 n1\n"
            "D3 n6 n1 m2\nD4 n4 n6 m3\nD5 0 n4\nV6 m n1 0\nF0 0 n6 V6 .5\nE1 n4 0 OPAMP n3 n4\nE2 n2 0 OPAMP n4 n5\n"
            ".model m0 D(vfwd=1.60814 ron=.00151881)\n.model m1 PWL(-7.17956 0 -6.69089 0)\n"
            ".model m2 D(vfwd=.928155 ron=1.76415 roff=1.16482e8)\n.model m3 PWL(-1.58199 0 5.83809 0 6.68438 "
            "1.0867932289208713e-08 6.78736 7.4057185596095488e-07)\n"
        )
    )
    assert point.certificate.certified and (point.currents == 0.0).all() and (point.voltages[1:] == 1.0).all()
