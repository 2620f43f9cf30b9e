"""Small-signal responses: closed forms, tangents of devices, states of diodes, couplings, several values, cards."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers import loaded
from spice import needed

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.small_signal import ac, ac_sweep, poles

BUTTERWORTH = "netlists/lowpass-butterworth.cir"
VOLT = 1.38064852e-23 / 1.6021766208e-19 * 300.15
F = np.array([1.0, 1e3, 1e5, 1e7])
S = 2j * np.pi * F


def test_butterworth() -> None:
    f = np.logspace(2, 6, 41)
    found = ac(circuitsim.load(BUTTERWORTH), f, {"V1": 1.0})
    s = 1j * f / 1e4
    expected = 0.5 / ((s + 1) * (s * s + s + 1))
    np.testing.assert_allclose(found["out"], expected, rtol=1e-12)
    np.testing.assert_allclose(found.current("Rload"), expected / 600, rtol=1e-12)
    np.testing.assert_allclose(found.current("C2"), 2j * np.pi * f * expected / (2 * np.pi * 1e4 * 600), rtol=1e-12)
    assert found.residuals.max() < 1e-14 and found.kinks == ()


SWITCHED = "V1 in 0 {} AC 1\nR1 in a 1k\nD1 a b\nR2 b 0 1k\nC1 b 0 1u"
ZENER = "V1 in 0 10 AC 1\nR1 in a 1k\nD1 0 a z\nC1 a 0 1u\n.model z D(Vrev=5 Rrev=10 Ron=0.1 Roff=1G)"


@pytest.mark.parametrize(
    ("cards", "of", "expected"),
    [
        (SWITCHED.format(2), "v(b)", 1 / (2 + S * 1e-3)),
        (SWITCHED.format(-2), "v(b)", 0 * S),
        (SWITCHED.format(-2), "v(a)", 1 + 0 * S),
        # A junction that carries 1 mA: a resistance of n V_T / I.
        (
            "I1 0 a 1m AC 1\nD1 a 0 dm\nC1 a 0 1n\n.model dm D(is=1e-14 n=1.5)",
            "v(a)",
            1 / ((1e-3 + 1e-14) / (1.5 * VOLT) + S * 1e-9),
        ),
        (ZENER, "v(a)", 1e-3 / (1e-3 + 0.1 + S * 1e-6)),
        (ZENER, "i(D1)", -1e-4 / (1e-3 + 0.1 + S * 1e-6)),
        ("V1 in 0 1 AC 1\nC1 in a 1n\nC2 a 0 3n", "v(a)", 0.25 + 0 * S),
        # Sources of known voltage at the operating point follow their controls here.
        ("V1 in 0 DC 1 AC 1\nE1 out 0 in 0 5\nR1 out 0 1", "v(out)", 5 + 0 * S),
        ("V1 in 0 DC 1 AC 1\nB1 b 0 V={2*v(in)+1}\nR2 b 0 1", "v(b)", 2 + 0 * S),
        # Amplitudes in sub-circuits and of sources in parallel.
        (
            "X1 a b stage gain=3\n.subckt stage p q gain=1\nV1 p 0 DC 1 AC {gain} {30*gain}\nR1 p q 1\nR2 q 0 1\n"
            "I1 0 q AC 2 m=4\n.ends\nV2 c 0 AC\nR3 c 0 1",
            "v(b)",
            1.5j + 4 + 0 * S,
        ),
        # An open secondary without a path to ground: its voltage is that of the turns.
        ("V1 a 0 1 AC 1\nL1 a 0 1m\nL2 b c 4m\nK1 L1 L2 .5", "v(b,c)", 1 + 0 * S),
    ],
)
def test_closed_forms(cards: str, of: str, expected: np.ndarray) -> None:
    run = ac(circuitsim.loads(f"t\n{cards}\n"), F)
    found = run.current("D1") if of[0] == "i" else run.voltage(*of[2:-1].split(","))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("factor", [0.0, 0.5, -0.9, 1.0 - 1e-9, 1.0, -1.0])
def test_a_loaded_transformer(factor: float) -> None:
    """The primary shows s L1 + w^2 M^2 / (R2 + s L2)."""
    s, mutual = np.append(0.0, S[:3]), factor * 2e-3
    circuit = loaded("V1 in 0 1\nR1 in a 1\nL1 a 0 1m\nL2 b 0 4m\nR2 b 0 10")
    found = ac(circuit, np.append(0.0, F[:3]), {"V1": 1.0}, couplings={("L1", "L2"): factor})
    primary = 1.0 / (1.0 + s * 1e-3 - s * s * mutual * mutual / (10.0 + s * 4e-3))
    secondary = -s * mutual * primary / (10.0 + s * 4e-3)
    np.testing.assert_allclose(found.current("L1"), primary, rtol=1e-12)
    np.testing.assert_allclose(found.current("L2"), secondary, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found["b"], -10.0 * secondary, rtol=1e-12, atol=1e-300)


def test_resonators_are_an_even_and_an_odd_one() -> None:
    """Half the difference of the impedances with L (1 + k) and L (1 - k)."""
    found = ac(circuitsim.load("netlists/coupled-resonators.cir"))
    w, c, q = 2 * np.pi * 455e3, 180e-12, 50
    coil, s = 1 / (w * w * c), 2j * np.pi * found.frequencies
    even, odd = (1 / (s * c + 1 / (q * w * coil) + 1 / (s * coil * (1 + k))) for k in (1 / q, -1 / q))
    np.testing.assert_allclose(found["out"], 0.5e-3 * (even - odd), rtol=1e-11)
    squares = np.sort([1 / (coil * c * (1 + sign / q)) for sign in (1.0, 1.0, -1.0, -1.0)])
    values = poles(found.circuit, {("L1", "L2"): 1 / q}).values
    np.testing.assert_allclose(np.abs(values) ** 2, squares, rtol=1e-11)
    np.testing.assert_allclose(values.real, -w / (2 * q), rtol=1e-11)


def test_a_diode_without_current_and_voltage_is_named() -> None:
    assert ac(circuitsim.loads(f"t\n{SWITCHED.format(0)}\n"), F).kinks == ("D1",)


def test_what_has_no_response_and_what_a_resonance_leaves_of_it() -> None:
    with pytest.raises(ConvergenceError, match="at 0 Hz the small-signal equations have no unique solution"):
        ac(circuitsim.loads("t\nV1 in 0 1 AC 1\nC1 in a 1n\nC2 a 0 3n\n"), [0.0])
    tank = loaded("I1 0 a 0\nL1 a 0 1\nC1 a 0 1\nR1 b 0 1\nV1 b 0 0")
    assert np.isfinite(ac(tank, [0.1], {"I1": 1.0})["a"]).all()
    # Amplified 8e15 times: terms that cancel in the equations leave their rounding in the result.
    near = ac(tank, [0.5 / np.pi], {"I1": 1.0})
    assert abs(near["a"][0]) == pytest.approx(8.08768525e15, rel=1e-8) and 1e-16 < near.errors[0] < 1e-13
    for tolerance in (1e-16, 1e-30):
        with pytest.raises(ConvergenceError, match="nearly singular"):
            ac(tank, [0.5 / np.pi], {"I1": 1.0}, tolerance=tolerance)


@pytest.mark.parametrize(
    ("frequencies", "sources", "error", "message"),
    [
        ([-1.0], {"V1": 1.0}, UsageError, r"frequencies\[0\] must be a finite number of at least 0, not -1.0"),
        ([], {"V1": 1.0}, UsageError, "frequencies must be a list of numbers, at least 1"),
        ([1.0], {}, UsageError, "no source has an amplitude"),
        ([1.0], {"Rload": 1.0}, UsageError, "Rload is not an independent source"),
        ([1.0], {"V1": complex("nan")}, UsageError, r"sources\['V1'\] must be a finite number"),
        ([1.0], {"V9": 1.0}, TopologyError, "V9"),
    ],
)
def test_wrong_arguments(frequencies: list, sources: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ac(circuitsim.load(BUTTERWORTH), frequencies, sources)


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("dec 2 1 100", [1, 10**0.5, 10, 10**1.5, 100]),
        ("oct 1 100 800", [100, 200, 400, 800]),
        ("lin 3 50 60", [50, 55, 60]),
        ("lin 1 50 50", [50]),
        ("list 1 50 1k", [1, 50, 1000]),
        ("dec {n} 1 {10*n}", [1, 10**0.5, 10]),
    ],
)
def test_frequencies_of_cards(card: str, expected: list[float]) -> None:
    found = ac(circuitsim.loads(f"t\n.param n=2\nR1 a 0 1\nV1 a 0 AC\n.ac {card}\n"))
    assert found.frequencies.tolist() == pytest.approx(expected)


STEPPED = """low-pass with a diode
V1 in 0 DC 1 AC 1
R1 in out {r}
C1 out 0 1u
D1 0 d ideal
R2 d out 1k
.model ideal D
.param r=1k
.ac dec 5 10 10k
.step param r list 500 1k
.step C1 list 1u 2u
.meas ac f3 WHEN vdb(out)=-3.0102999566 FALL=1
"""


def test_each_run_is_the_response_of_its_values() -> None:
    found = ac_sweep(circuitsim.loads(STEPPED), columns="v(out)")
    hertz, grid = found.responses.axes["frequency"][:16], found.responses.grid("v(out)")
    for i, r in enumerate((500.0, 1e3)):
        for j, c in enumerate((1e-6, 2e-6)):
            assert grid[:, i, j] == pytest.approx(1.0 / np.sqrt(1.0 + (2.0 * np.pi * hertz * r * c) ** 2), rel=1e-12)
            assert found.measured.grid("f3")[i, j] == pytest.approx(1.0 / (2.0 * np.pi * r * c), rel=1e-9)
    assert "4 responses over r, C1" in repr(found)
    assert circuitsim.run(circuitsim.loads(STEPPED))["ac"].measured["f3"].size == 4
    axes = ac_sweep(circuitsim.loads(STEPPED), {"r": [500.0, 1e3, 2e3]}, "v(out) v(d)").plot().axes[0]
    colours = [line.get_color() for line in axes.lines]  # those of a family follow the run
    assert len(set(colours)) == 3 and colours[::2] == colours[1::2]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"] * 3


def test_states_of_diodes_are_those_of_each_run() -> None:
    deck = circuitsim.loads("clamp\nV1 in 0 0 AC 1\nR1 in out 1k\nD1 out 0 ideal\n.model ideal D\n.ac lin 1 1 1\n")
    assert ac_sweep(deck, {"V1": [-1.0, 1.0]}, "v(out)").responses["v(out)"].tolist() == [1.0, 0.0]
    with pytest.raises(UsageError, match="AC analysis does not depend on the time"):
        ac_sweep(deck, {"time": [0.0, 1.0]})


@needed
def test_ngspice_reads_the_rawfile_of_phasors(tmp_path: Path) -> None:
    deck, target, script = (tmp_path / name for name in ("rc.cir", "out.raw", "load.cir"))
    deck.write_text("t\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.ac dec 1 1 100\n")
    assert main(["ac", str(deck), "--columns", "v(b)", "--output", str(target)]) == 0
    script.write_text(f"* t\n.control\nset numdgt=14\nload {target}\nprint real(v(b)) imag(v(b))\nquit\n.endc\n.end\n")
    shown = subprocess.run(["ngspice", "-b", str(script)], capture_output=True, text=True, timeout=60).stdout
    rows = [line.split() for line in shown.splitlines() if line[:1].isdigit()]
    found = [complex(float(row[-2]), float(row[-1])) for row in rows]
    assert found == pytest.approx([1 / (1 + 2j * np.pi * f * 1e-3) for f in (1.0, 10.0, 100.0)], rel=1e-9)
