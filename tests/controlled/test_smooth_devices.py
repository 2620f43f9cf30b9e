"""Smooth devices beside controlled sources: textbook circuits, branches, random circuits against another search."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
from corpus import controlled, junction_model
from hard_circuits import hard_circuit
from ngspice_runs import CONTROL, OPTIONS, run
from scipy.optimize import brentq, root

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.controlled.verdict import Uniqueness
from circuitsim.errors import CircuitError, NoOperatingPointError
from circuitsim.models.junction_diode import BOLTZMANN, ZERO_CELSIUS, JunctionDiode
from circuitsim.models.smooth import SmoothDevice

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

BANDGAP = """bandgap
X1 a b out ideal_opamp
R1 out a 10k
R2 out b 10k
R3 b c 1k
D1 a 0 q1
D2 c 0 q1 area=8
.model q1 D(IS=1f)
"""

SCHMITT = """Schmitt trigger with a diode at its output
V1 in 0 0
X1 p in out limited_opamp low=-10 high=10
R1 out p 1k
R2 p 0 1k
R3 out q 1k
D1 q 0 d4148
"""


def load(cards: str) -> circuitsim.Circuit:
    return circuitsim.loads(f"a circuit\n{cards}{MODEL}")


def diode_voltage(amperes: float) -> float:
    """Of the 1N4148 in forward."""
    return 1.752 * VT * math.log1p(amperes / 2.52e-9) + 0.568 * amperes


def test_super_diode_follows_its_input() -> None:
    """The output misses the input by what the amplifier needs: gain (in − out) = out + v of the diode."""
    point = circuitsim.solve(load(DECKS["super-diode"]))
    out = brentq(lambda v: 1e5 * (2.0 - v) - v - diode_voltage(v / 1e3), 1.0, 2.0, xtol=1e-15)
    assert point["out"] == pytest.approx(out, rel=1e-12)
    assert point["o"] == pytest.approx(out + diode_voltage(out / 1e3), rel=1e-9)
    assert point.uniqueness is Uniqueness.UNIQUE and point.certificate.relative["devices"] < 1e-12


@pytest.mark.parametrize("volts", [1e-6, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("amplifier", ["E1 out 0 0 n 1e5", "X1 0 n out ideal_opamp"])
def test_logarithmic_amplifier(volts: float, amplifier: str) -> None:
    """Unique with an ideal op-amp, too, which forces the current: no P-matrix, but curves that rise strictly."""
    point = circuitsim.solve(load(f"V1 in 0 {volts}\nR1 in n 1k\n{amplifier}\nD1 n out d4148\n"))
    share = 1e-5 if amplifier.startswith("E") else 0.0  # v(n) = −out / gain
    i = brentq(lambda x: 1e3 * x - volts + share * diode_voltage(x) / (1.0 + share), 0.0, volts / 1e3, xtol=1e-25)
    assert point["out"] == pytest.approx(-diode_voltage(i) / (1.0 + share), rel=1e-9)
    assert point.uniqueness is Uniqueness.UNIQUE


def test_bandgap_has_a_dead_state_and_the_one_that_is_meant() -> None:
    point = circuitsim.solve(circuitsim.loads(BANDGAP))
    assert point.uniqueness is Uniqueness.SEVERAL and point.other is not None
    one, other = sorted((point, point.other), key=lambda p: p["out"])
    # Equal currents i: VT ln(i/IS + 1) = VT ln(i/8IS + 1) + R3 i.
    i = brentq(lambda x: VT * math.log((x + 1e-15) / (x + 8e-15) * 8.0) - 1e3 * x, 1e-6, 1e-3, xtol=1e-20)
    assert one["out"] == 0.0
    assert other["out"] == pytest.approx(1e4 * i + VT * math.log1p(i / 1e-15), rel=1e-12)
    assert [w.kind for w in point.warnings if w.kind != "diode-law"] == ["several"]


def test_a_start_stays_on_its_branch() -> None:
    ready = circuitsim.prepared(circuitsim.loads(BANDGAP))
    point = ready.solve()
    assert point.other is not None
    live = max((point, point.other), key=lambda p: p["out"])
    for ohms in (900.0, 500.0):
        i = brentq(lambda x, r=ohms: VT * math.log((x + 1e-15) / (x + 8e-15) * 8.0) - r * x, 1e-6, 1e-2, xtol=1e-20)
        moved = ready.solve({"R3": ohms}, start=live)
        assert moved.current("R3") == pytest.approx(i, rel=1e-11)
        assert "jump" not in [w.kind for w in moved.warnings]


def test_a_sweep_over_a_schmitt_trigger_jumps_where_the_branch_ends() -> None:
    swept = circuitsim.sweep(circuitsim.loads(SCHMITT + MODEL), {"V1": [-6, 0, 4.9, 5.1, 0, -4.9, -5.1]}, "v(out) v(q)")
    assert swept["v(out)"].tolist() == [10.0] * 3 + [-10.0] * 3 + [10.0]
    forward = brentq(lambda v: diode_voltage((10.0 - v) / 1e3) - v, 0.0, 2.0, xtol=1e-15)
    assert swept["v(q)"][0] == pytest.approx(forward, rel=1e-11)
    jumps = [warning.message for warning in swept.warnings if warning.kind == "jump"]
    assert len(jumps) == 2 and "V1 = 5.1:" in jumps[0] and "V1 = -5.1:" in jumps[1]


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("name", DECKS)
def test_node_voltages_agree_with_ngspice(name: str) -> None:
    circuit = load(DECKS[name])
    ours = circuitsim.solve(circuit)
    theirs = run(circuitsim.dumps(circuit).replace(".op\n.end\n", "") + OPTIONS + "\n" + CONTROL, {})[0]
    largest = max(abs(ours[node]) for node in circuit.node_names)
    for node in circuit.node_names[1:]:
        assert theirs[node.lower()] == pytest.approx(ours[node], abs=2e-6 * largest), node


def test_batches_and_their_derivatives() -> None:
    """The adjoint of a logarithmic amplifier against finite differences."""
    solver = circuitsim.batched(load(DECKS["logarithm"]), ["V1"], [("out", "0")])
    volts = np.array([[0.01], [1.0], [30.0]])
    found = solver.solve(volts)
    assert found.certified.all()
    single = [circuitsim.solve(load(DECKS["logarithm"]).with_values({"V1": v}))["out"] for v in volts[:, 0]]
    np.testing.assert_allclose(found.output[:, 0], single, rtol=1e-12)
    _, currents = solver.adjoint(found, np.ones((3, 1)))
    step = 1e-5 * volts
    slope = (solver.solve(volts + step).output - solver.solve(volts - step).output) / (2.0 * step)
    np.testing.assert_allclose(-currents[:, 0], slope[:, 0], rtol=1e-6)


def test_none_found_names_devices_and_sources() -> None:
    """A negative resistance that asks for more current than the diode's breakdown gives: no state fits."""
    with pytest.raises(NoOperatingPointError, match=r"no operating point was found .* D1, G1") as caught:
        circuitsim.solve(circuitsim.loads("t\nI1 0 a 1m\nG1 0 a a 0 1m\nD1 0 a d\n.model d D(IS=1p)\n"))
    assert not caught.value.proven


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
    point = circuitsim.solve(
        circuitsim.loads("""t
V1 0 n1 1
D2 n2 0 a area=8
D4 0 n2 b
E1 0 n2 n1 n2 -10
.model a D(IS=4.22379e-13 N=2.2553717733599026 BV=5.1 IBV=1m)
.model b PWL(-4.943 -.0813 -.977 .17895 3.271 .64057 3.659 .75559 5.594 .75559)
""")
    )
    volts = -10.0 / 11.0
    leakage = 8 * 4.22379e-13 * math.expm1(volts / (2.2553717733599026 * VT))
    assert point.uniqueness is Uniqueness.UNIQUE  # the table is level, but a function of the voltage that E1 holds
    assert point.other is None and point["n2"] == pytest.approx(volts, rel=1e-15)
    assert point.current("D2") == pytest.approx(leakage, rel=1e-4) and point.drops[1] == pytest.approx(volts)
    device = point.circuit.devices[1]
    assert isinstance(device, SmoothDevice)
    assert point.current("D2") == pytest.approx(device.law(float(point.drops[1]))[0], rel=1e-12)


@pytest.mark.parametrize(("source", "unique"), [("V1 a 0 6", True), ("V1 b 0 0\nG1 0 a b 0 1\nI1 0 a .75559", False)])
def test_a_table_with_level_pieces_is_unique_where_its_voltage_is_held(source: str, unique: bool) -> None:
    """A current at which it is level leaves its voltage open."""
    table = ".model b PWL(-4.943 -.0813 0 0 3.659 .75559 5.594 .75559)\n"
    point = circuitsim.solve(circuitsim.loads(f"t\n{source}\nE1 c 0 a 0 2\nD1 c d b\nE2 d 0 c d 1\nD2 a 0 b\n{table}"))
    assert (point.uniqueness is Uniqueness.UNIQUE) is unique


def test_devices_lie_on_their_curves_in_scales_of_their_own() -> None:
    """Circuits that nothing makes well posed; points that are listed as several differ in a device or a voltage."""
    found = 0
    for seed in range(80):
        circuit = hard_circuit(seed, 6, 3, junction)
        try:
            point = circuitsim.solve(circuit)
        except CircuitError:
            continue
        shown = [point] if point.other is None else [point, point.other]
        for one in shown:
            least = 1e-12 * np.abs(one.voltages).max()
            for k, device in circuit.devices.items():
                volts, amperes = float(one.drops[k]), float(one.currents[k])
                assert isinstance(device, SmoothDevice)
                low, high = (device.law(volts + sign * (1e-9 * abs(volts) + least))[0] for sign in (-1.0, 1.0))
                assert low - 1e-9 * abs(amperes) <= amperes <= high + 1e-9 * abs(amperes), (seed, k)
                found += 1
        if point.other is not None:
            pairs = (point.voltages, point.other.voltages), (point.currents, point.other.currents)
            assert max(float((np.abs(a - b) - 1e-6 * np.abs(a)).max()) for a, b in pairs) > 0.0, seed
    assert found >= 20


@pytest.mark.parametrize("first", [0, 40, 80])
def test_random_circuits(first: int) -> None:
    """Certified by formulas of the test's own; where the verdict is unique, another search finds nothing else."""
    verdicts: dict[object, int] = {}
    rng = np.random.default_rng(first)
    for seed in range(first, first + 40):
        circuit = circuitsim.loads(controlled(seed, junction_model)).circuit
        if not circuit.devices:
            continue
        try:
            point = circuitsim.solve(circuit)
        except NoOperatingPointError:
            verdicts[None] = verdicts.get(None, 0) + 1
            continue
        verdicts[point.uniqueness] = verdicts.get(point.uniqueness, 0) + 1
        drops = point.drops[list(circuit.devices)]
        for one in (point, point.other or point):
            for k, device in circuit.devices.items():
                assert isinstance(device, SmoothDevice)
                volts, amperes = float(one.drops[k]), float(one.currents[k])
                low, high = (device.law(volts + sign * 1e-9 * (abs(volts) + 1e-6))[0] for sign in (-1.0, 1.0))
                slack = 1e-9 * abs(amperes) + 1e-12 * np.abs(one.currents).max()
                assert low - slack <= amperes <= high + slack, (seed, k)
        if point.uniqueness is Uniqueness.UNIQUE and all(e.kind != "ideal diode" for e in circuit):
            assert others(circuit, drops, rng) == 0, seed
        if point.other is not None:
            assert np.abs(point.other.drops - point.drops).max() > 1e-6 * np.abs(point.drops).max()
    assert verdicts[Uniqueness.UNIQUE] >= 10


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
