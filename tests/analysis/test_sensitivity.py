"""Derivatives against difference quotients of certified solutions, known values, and both sides of kinks."""

import math
from functools import partial

import numpy as np
import pytest
from helpers import loaded, slope

import circuitsim
from circuitsim.analysis.probes import Reader, parse_probes
from circuitsim.models.junction_diode import BOLTZMANN

STEP = 1e-5
CLEAR = 1e-3  # least margin of diodes in circuits for difference quotients
PLAIN = ["v(1)", "v(2,1)", "i(R1)", "i(V0)", "p(R2)", "i(D0)"]
DEVICES = (
    "DX0 {} P\n.model P D(vfwd=0.6 ron=9 vrev=3 rrev=5 roff=1MEG)\nDX1 {} J\n.model J D(is=1n n=1.7 rs=2)\nDX2 {} V\n"
    ".model V VARISTOR(VNOM=18 INOM=1m ALPHA=25)\n"
)
SOURCES = (
    "RO1 e 1 1k\nE1 e 0 1 2 {:.3f}\nG1 2 0 1 0 {:.3f}e-5\nF1 2 0 RV0 {:.3f}\nRO2 h 2 1k\nH1 h 0 V1 {:.3f}\n"
    "RA 1 m 1k\nRB m o 2k\nX1 0 m o ideal_opamp\n"
)


def drawn(seed: int, kind: str = "") -> circuitsim.Circuit:
    """3 to 12 nodes with resistors to ground, two sources of each kind, diodes between free nodes; with devices, or
    with weak controlled sources of all kinds and an amplifier with feedback, nearly always solvable."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 13))

    def ends() -> str:
        return " ".join(map(str, rng.choice(np.arange(1, n), 2, replace=False)))

    cards = [f"R{k} {k} {rng.integers(0, k)} {10.0 ** rng.uniform(1, 4)}" for k in range(1, n)]
    for k in range(2):
        cards.append(f"V{k} s{k} 0 {rng.uniform(-10.0, 10.0)}")
        cards.append(f"RV{k} s{k} {rng.integers(1, n)} {10.0 ** rng.uniform(1, 4)}")
        cards.append(f"I{k} 0 {rng.integers(1, n)} {rng.uniform(-0.01, 0.01)}")
    cards += [f"D{k} {ends()}" for k in range(int(rng.integers(1, n)))]
    more = {
        "": "",
        "devices": DEVICES.format(ends(), ends(), ends()),
        "sources": SOURCES.format(*rng.normal(size=4) / 5),
    }
    return loaded("\n".join([*cards, more[kind]]))


def agrees(c: circuitsim.Circuit, kind: str) -> bool:
    """Compare all derivatives with difference quotients; False where a diode is near its kink."""
    try:
        point = circuitsim.solve(c)
    except circuitsim.CircuitError:
        return False
    if np.nanmin(point.margin, initial=1.0) < CLEAR:
        return False
    outputs = [*PLAIN, *{"devices": ["i(DX0)", "i(DX1)", "p(DX2)"], "sources": ["v(o)", "i(E1)"]}.get(kind, [])]
    outputs = [name for name in outputs if name[0] == "v" or point.unique[c.element_index(name[2:-1])]]
    found = circuitsim.sensitivity(point, outputs)
    ready, reader = circuitsim.prepared(c), Reader(parse_probes(" ".join(outputs), c), c)

    def read(name: str, value: float) -> np.ndarray:
        return reader.read(ready.solve({name: value}))

    for name, value in zip(found.names, found.numbers.tolist()):
        if "." in name and value == 0.0:
            continue  # the least that the parameter may be: there is no central quotient
        step = STEP * (abs(value) or 1e-3)
        expected = slope(partial(read, name), value, step)
        ours = np.array([found[output, name] for output in outputs])
        # What rounding of the two solutions, and the third derivative, leave open.
        scale = np.maximum(np.abs(found.values), 1e-6) / max(abs(value), 1e-3)
        rounding = 1e-15 * np.abs(found.values).max() / step
        assert ours == pytest.approx(expected, rel=2e-5, abs=1e-5 * scale.max() + rounding), (c.title, name)
        if kind != "devices":  # where Newton's method ends within the tolerance of the certificate
            floor = 1e-7 * np.abs(expected) + 2e-10 * scale + 0.1 * rounding
            assert (np.abs(ours - expected) <= 3e-5 * np.abs(expected) + floor).all(), (c.title, name)
    return True


@pytest.mark.parametrize(
    ("kind", "seeds", "least"), [("", range(40), 20), ("devices", range(8), 3), ("sources", range(3, 15), 5)]
)
def test_random_circuits(kind: str, seeds: range, least: int) -> None:
    assert sum(agrees(drawn(seed, kind), kind) for seed in seeds) >= least


@pytest.mark.parametrize(
    ("cards", "output", "name", "below", "above"),
    [
        # The diode has 0 V and 0 A: V1 above 1 V conducts.
        *(
            ("V1 in 0 1\nR1 in out 1k\nR2 out 0 1k\nD1 out x\nV2 x 0 0.5", output, name, below, above)
            for output, name, below, above in (
                ("v(out)", "V1", 0.5, 0.0),
                ("v(out)", "V2", 1.0, 0.0),
                ("v(out)", "R1", 0.0, -0.25e-3),
                ("i(D1)", "V1", 0.0, 1e-3),
            )
        ),
        ("V1 in 0 1\nR0 in f 0\nE1 e 0 f 0 2\nR1 e out 1k\nD1 out x\nV2 x 0 2", "i(D1)", "E1", 0.0, 1e-3),
        ("V1 in 0 1\nR1 in out 0\nR2 out 0 1k", "v(out)", "R1", -1e-3, -1e-3),
        ("V1 in 0 1\nR1 in out 0\nR2 out 0 1k", "i(R1)", "R1", -1e-6, -1e-6),
    ],
)
def test_both_sides(cards: str, output: str, name: str, below: float, above: float) -> None:
    """Of kinks, and of a resistance of zero."""
    found = circuitsim.sensitivity(loaded(cards), output)
    (row,) = (row for row in found.rows(output) if row.name == name)
    assert (row.below, row.above) == pytest.approx((below, above), rel=1e-6, abs=1e-12)
    assert row.kink == (below != above) == math.isnan(found[output, name])


def test_transfer_functions() -> None:
    # Inverting, gain −10; 1 kΩ in, no resistance out.
    inverting = loaded("V1 in 0 0.1\nR1 in m 1k\nR2 m out 10k\nRL out 0 1k\nX1 0 m out ideal_opamp")
    tf = circuitsim.transfer_function(inverting, "v(out)", "V1")
    assert (tf.gain.value, tf.input_resistance.value) == pytest.approx((-10.0, 1e3))
    assert abs(tf.output_resistance.value) < 1e-9
    kink = loaded("I1 0 a 1m\nR1 a b 1k\nV2 b 0 0\nR2 a 0 1k\nD1 a x\nV3 x 0 0.5")
    tf = circuitsim.transfer_function(kink, "i(V2)", "I1")
    for found, below, above in (
        (tf.gain, 0.5, 0.0),
        (tf.input_resistance, 500.0, 0.0),
        (tf.output_resistance, 2e3, 1e3),
    ):
        assert (found.below, found.above) == pytest.approx((below, above), rel=1e-9, abs=1e-9)


def test_tables() -> None:
    found = circuitsim.sensitivity(circuitsim.loads("t\nV1 in 0 10\nR1 in out 1k\nR2 out 0 3k"), "v(out) i(V1)")
    frame = found.to_dataframe()
    assert list(frame.columns[:4]) == ["output", "name", "value", "unit"] and len(frame) == 6
    assert [row.name for row in found.rows("v(out)")] == ["V1", "R1", "R2"]
    assert found.to_dict()["outputs"]["v(out)"]["by"]["R1"]["per_percent"] == pytest.approx(-0.01875)
    assert repr(found) == "Sensitivity('t': v(out), i(V1) by 3 numbers)"


def test_a_source_reads_the_current_of_a_diode() -> None:
    cards = "V1 a b 5\nR1 b 0 1k\nD1 a 0 d\nB1 0 o I={2*i(D1)}\nR2 o 0 1k\n.model d D(is=1f)"
    found = circuitsim.sensitivity(loaded(cards), "v(o) i(D1)")
    assert found["v(o)", "D1.is"] == pytest.approx(2e3 * found["i(D1)", "D1.is"])


@pytest.mark.parametrize("volts", [0.3, 1.0, 5.0, 40.0])
def test_tangents_touch_at_the_operating_point(volts: float) -> None:
    """Against the nodal equations' own derivative: the last step of Newton's method has tangents 1e-7 away."""
    point = circuitsim.solve(
        loaded(
            f"V1 in 0 {volts}\nR1 in a 1k\nD1 a b d\nR2 b 0 2k\nD2 a 0 d\nE1 e 0 b 0 2\nR3 e a 5k\n.model d D(n=1.2)"
        )
    )
    a, b = point["a"], point["b"]
    thermal = 1.2 * BOLTZMANN * 300.15
    g1, g2 = (1e-14 / thermal * np.exp(u / thermal) for u in (a - b, a))
    nodal = np.array([[1e-3 + g1 + g2 + 2e-4, -g1 - 4e-4], [-g1, g1 + 5e-4]])
    by_source, by_load = np.linalg.solve(nodal, np.array([[1e-3, 0.0], [0.0, b / 4e6]]).T).T
    found = circuitsim.sensitivity(point, "v(a) v(b)")
    for k, output in enumerate(("v(a)", "v(b)")):
        assert found[output, "V1"] == pytest.approx(by_source[k], rel=1e-10)
        assert found[output, "R2"] == pytest.approx(by_load[k], rel=1e-10)
