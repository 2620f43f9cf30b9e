"""Derivatives against difference quotients of certified solutions, known values, and both sides of kinks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, loads
from circuitsim.analysis.probes import Reader, parse_probes
from circuitsim.errors import UsageError
from circuitsim.models.junction_diode import BOLTZMANN, JunctionDiode
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.models.varistor import Varistor

STEP = 1e-5
CLEAR = 1e-3  # least margin of diodes in circuits for difference quotients


def drawn(seed: int) -> Circuit:
    """3 to 12 nodes with resistors to ground, two sources of each kind, diodes between free nodes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 13))
    c = Circuit(f"random {seed}")
    for k in range(1, n):
        c.resistor(f"R{k}", str(k), str(rng.integers(0, k)), 10.0 ** rng.uniform(1, 4))
    for k in range(2):
        c.voltage_source(f"V{k}", f"s{k}", "0", rng.uniform(-10.0, 10.0))
        c.resistor(f"RV{k}", f"s{k}", str(rng.integers(1, n)), 10.0 ** rng.uniform(1, 4))
        c.current_source(f"I{k}", "0", str(rng.integers(1, n)), rng.uniform(-0.01, 0.01))
    for k in range(int(rng.integers(1, n))):
        a, b = rng.choice(np.arange(1, n), 2, replace=False)
        c.diode(f"D{k}", str(a), str(b))
    return c


def with_devices(seed: int) -> Circuit:
    """As `drawn`, with piecewise-linear, junction and varistor devices between free nodes."""
    rng, c = np.random.default_rng(seed), drawn(seed)
    nodes = [name for name in c.node_names[1:] if not name.startswith("s")]
    devices = [
        PiecewiseLinearDiode(vfwd=0.6, ron=rng.uniform(1.0, 30.0), vrev=3.0, rrev=5.0, roff=1e6),
        JunctionDiode(**{"is": 1e-9, "n": 1.7, "rs": 2.0}),
        Varistor(),
    ]
    for k, device in enumerate(devices):
        a, b = rng.choice(len(nodes), 2, replace=False)
        c.device(f"DX{k}", nodes[a], nodes[b], device)
    return c


def controlled(seed: int) -> Circuit:
    """As `drawn` with weak controlled sources of all kinds and an amplifier with feedback, nearly always solvable."""
    rng, c = np.random.default_rng(seed), drawn(seed)
    c.resistor("RO1", "e", "1", 1e3)
    c.vcvs("E1", "e", "0", ("1", "2"), rng.uniform(-0.5, 0.5))
    c.vccs("G1", "2", "0", ("1", "0"), rng.uniform(-1e-5, 1e-5))
    c.cccs("F1", "2", "0", "RV0", rng.uniform(-0.2, 0.2))
    c.resistor("RO2", "h", "2", 1e3)
    c.ccvs("H1", "h", "0", "V1", rng.uniform(-5.0, 5.0))
    c.resistor("RA", "1", "m", 1e3)
    c.resistor("RB", "m", "o", 2e3)
    c.opamp("A1", "o", "0", "m")
    return c


def outputs_of(c: Circuit) -> list[str]:
    return [
        "v(1)",
        "v(2,1)",
        "i(R1)",
        "i(V0)",
        "p(R2)",
        *["i(D0)"] * ("D0" in c),
        *["i(DX0)", "i(DX1)", "p(DX2)"] * ("DX0" in c),
        *["v(o)", "i(E1)"] * ("E1" in c),
    ]


def quotients(ready, reader: Reader, name: str, value: float) -> np.ndarray:
    step = STEP * (abs(value) or 1e-3)
    low, high = (reader.read(ready.solve({name: value + sign * step})) for sign in (-1.0, 1.0))
    return (high - low) / (2.0 * step)


def agrees(c: Circuit) -> bool:
    """Compare all derivatives with difference quotients; False where a diode is near its kink."""
    point = circuitsim.solve(c)
    if np.nanmin(point.margin, initial=1.0) < CLEAR:
        return False
    outputs = [name for name in outputs_of(c) if name[0] == "v" or point.unique[c.element_index(name[2:-1])]]
    found = circuitsim.sensitivity(point, outputs)
    ready, reader = circuitsim.prepared(c), Reader(parse_probes(" ".join(outputs), c), c)
    for name, value in zip(found.names, found.numbers.tolist()):
        if "." in name and value == 0.0:
            continue  # the least that the parameter may be: there is no central quotient
        expected = quotients(ready, reader, name, value)
        ours = np.array([found[output, name] for output in outputs])
        # What rounding of the two solutions, and the third derivative, leave open.
        scale = np.maximum(np.abs(found.values), 1e-6) / max(abs(value), 1e-3)
        rounding = 1e-15 * np.abs(found.values).max() / (STEP * (abs(value) or 1e-3))
        assert ours == pytest.approx(expected, rel=2e-5, abs=1e-5 * scale.max() + rounding), (c.title, name)
        if c.devices:
            continue  # Newton's method ends within the tolerance of the certificate
        floor = 1e-7 * np.abs(expected) + 2e-10 * scale
        assert (np.abs(ours - expected) <= 3e-5 * np.abs(expected) + floor).all(), (c.title, name, ours, expected)
    return True


def test_100_random_circuits_with_conducting_free_diodes() -> None:
    conducting = compared = 0
    for seed in range(400):
        c = drawn(seed)
        point = circuitsim.solve(c)
        carries = any(point.current(e.name) > 0.0 for e in c if e.kind == "ideal diode")
        if carries and agrees(c):
            conducting += 1
        compared += 1
        if conducting == 100:
            break
    assert conducting == 100, (conducting, compared)


def test_random_circuits_with_devices() -> None:
    assert sum(agrees(with_devices(seed)) for seed in range(8)) >= 3


def test_random_circuits_with_controlled_sources() -> None:
    assert sum(agrees(controlled(seed)) for seed in range(16)) >= 5


def test_at_a_kink_both_sides() -> None:
    # The diode has 0 V and 0 A: V1 above 1 V conducts.
    c = loads("t\nV1 in 0 1\nR1 in out 1000\nR2 out 0 1000\nD1 out x\nV2 x 0 0.5\n").circuit
    found = circuitsim.sensitivity(c, "v(out) i(D1)")
    by = {row.name: row for row in found.rows("v(out)")}
    assert by["V1"].kink and (by["V1"].below, by["V1"].above) == pytest.approx((0.5, 0.0))
    assert by["V2"].kink and (by["V2"].below, by["V2"].above) == pytest.approx((1.0, 0.0))
    assert by["R1"].kink and (by["R1"].below, by["R1"].above) == pytest.approx((0.0, -0.25e-3))
    current = {row.name: row for row in found.rows("i(D1)")}
    assert (current["V1"].below, current["V1"].above) == pytest.approx((0.0, 1e-3))
    assert math.isnan(found["v(out)", "V1"])


def test_kinks_of_controlled_gains() -> None:
    c = Circuit()
    c.voltage_source("V1", "in", "0", 1.0)
    c.vcvs("E1", "e", "0", ("in", "0"), 2.0)
    c.resistor("R1", "e", "out", 1e3)
    c.diode("D1", "out", "x")
    c.voltage_source("V2", "x", "0", 2.0)
    (row,) = [row for row in circuitsim.sensitivity(c, "i(D1)").rows() if row.name == "E1"]
    assert (row.below, row.above) == pytest.approx((0.0, 1e-3))


def test_sensitivity_to_a_resistance_of_zero() -> None:
    c = loads("t\nV1 in 0 1\nR1 in out 0\nR2 out 0 1000\n").circuit
    assert circuitsim.sensitivity(c, "v(out)")["v(out)", "R1"] == pytest.approx(-1e-3)
    assert circuitsim.sensitivity(c, "i(R1)")["i(R1)", "R1"] == pytest.approx(-1e-6)


def test_refusals() -> None:
    c = loads("t\nI1 0 a 0.001\nR1 a 0 1000\nD1 b a\nD2 c b\n").circuit
    with pytest.raises(UsageError, match=r"v\(b\) has no derivatives: its value is not unique"):
        circuitsim.sensitivity(c, "v(b)")
    with pytest.raises(UsageError, match="sensitivities are those of v"):
        circuitsim.sensitivity(c, "{v(a)+1}")
    c = Circuit()
    c.voltage_source("V1", "a", "0", 1.0)
    c.amplifier("X1", "a", "b", 2.0)
    c.resistor("R1", "b", "0", 1.0)
    with pytest.raises(UsageError, match="bidirectional amplifiers"):
        circuitsim.sensitivity(c, "v(b)")


def test_transfer_function_of_an_amplifier() -> None:
    # Inverting, gain −10; 1 kΩ in, no resistance out.
    c = loads("t\nV1 in 0 0.1\nR1 in m 1000\nR2 m out 10000\nRL out 0 1000\n").circuit
    c.opamp("A1", "out", "0", "m")
    tf = circuitsim.transfer_function(c, "v(out)", "V1")
    assert tf.gain.value == pytest.approx(-10.0)
    assert tf.input_resistance.value == pytest.approx(1e3)
    assert abs(tf.output_resistance.value) < 1e-9


def test_transfer_function_at_a_kink_and_of_currents() -> None:
    deck = circuitsim.loads("t\nI1 0 a 1m\nR1 a b 1k\nV2 b 0 0\nR2 a 0 1k\nD1 a x\nV3 x 0 0.5")
    tf = circuitsim.transfer_function(deck, "i(V2)", "I1")
    assert (tf.gain.below, tf.gain.above) == pytest.approx((0.5, 0.0), abs=1e-12)
    assert (tf.input_resistance.below, tf.input_resistance.above) == pytest.approx((500.0, 0.0), abs=1e-9)
    assert (tf.output_resistance.below, tf.output_resistance.above) == pytest.approx((2e3, 1e3), rel=1e-9)
    with pytest.raises(UsageError, match="the input is an independent source"):
        circuitsim.transfer_function(deck, "v(a)", "R1")
    with pytest.raises(UsageError, match="the output is"):
        circuitsim.transfer_function(deck, "i(R1)", "I1")


def test_tables() -> None:
    deck = circuitsim.loads("t\nV1 in 0 10\nR1 in out 1k\nR2 out 0 3k")
    found = circuitsim.sensitivity(deck, "v(out) i(V1)")
    frame = found.to_dataframe()
    assert list(frame.columns[:4]) == ["output", "name", "value", "unit"] and len(frame) == 6
    assert [row.name for row in found.rows("v(out)")] == ["V1", "R1", "R2"]
    assert found.to_dict()["outputs"]["v(out)"]["by"]["R1"]["per_percent"] == pytest.approx(-0.01875)
    assert repr(found) == "Sensitivity('t': v(out), i(V1) by 3 numbers)"


def test_parameters_of_a_steep_law() -> None:
    """A breakdown voltage beside a thermal voltage, against central differences of operating points."""
    circuit = circuitsim.loads("t\nV1 in 0 80\nR1 in a 1k\nD1 0 a d\n.model d D(IS=1n BV=30 IBV=1m N=1.2 RS=2 NBV=1)\n")
    rows = {row.name: row.derivative for row in circuitsim.sensitivity(circuit, ["v(a)"]).rows()}
    for name, step in (("bv", 1e-4), ("ibv", 1e-7), ("nbv", 1e-4), ("rs", 1e-3)):
        value = circuit.device_of("D1").values()[name]
        ends = [circuitsim.solve(circuit.with_values({f"D1.{name}": value + sign * step}))["a"] for sign in (1, -1)]
        assert rows[f"D1.{name}"] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)


@pytest.mark.parametrize("volts", [0.3, 1.0, 5.0, 40.0])
def test_tangents_touch_at_the_operating_point(volts: float) -> None:
    """Against the nodal equations' own derivative: the last step of Newton's method has tangents 1e-7 away."""
    deck = (
        f"t\nV1 in 0 {volts}\nR1 in a 1k\nD1 a b d\nR2 b 0 2k\nD2 a 0 d\nE1 e 0 b 0 2\nR3 e a 5k\n"
        ".model d D(is=1e-14 n=1.2)\n"
    )
    point = circuitsim.solve(circuitsim.loads(deck))
    a, b = point["a"], point["b"]
    thermal = 1.2 * BOLTZMANN * 300.15
    g1, g2 = (1e-14 / thermal * np.exp(u / thermal) for u in (a - b, a))
    nodal = np.array([[1e-3 + g1 + g2 + 2e-4, -g1 - 4e-4], [-g1, g1 + 5e-4]])
    by_source, by_load = np.linalg.solve(nodal, np.array([[1e-3, 0.0], [0.0, b / 4e6]]).T).T
    found = circuitsim.sensitivity(point, "v(a) v(b)")
    for k, output in enumerate(("v(a)", "v(b)")):
        assert found[output, "V1"] == pytest.approx(by_source[k], rel=1e-10)
        assert found[output, "R2"] == pytest.approx(by_load[k], rel=1e-10)
