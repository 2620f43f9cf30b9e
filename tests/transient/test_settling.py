"""Settling time and energy: closed forms, an integrator of order 5, what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest

from circuitsim import Circuit, loads
from circuitsim.cli import main
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist import load
from circuitsim.time_domain import StepCircuit, Switch, settling_energy
from circuitsim.units import format_quantity

NETLISTS = Path(__file__).resolve().parents[2] / "netlists"


def low_pass(capacitance: float | None = 1e-6) -> Circuit:
    circuit = loads("low-pass\nV1 in 0 0\nR1 in out 1000\n").circuit
    if capacitance is not None:
        circuit.add("C", "C1", "out", "0", capacitance)
    return circuit


@pytest.mark.parametrize("volts", [5.0, -3.0, 1e-3])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_low_pass_in_closed_form(volts: float, share: float) -> None:
    """RC ln(1/share); the source delivers C V² (1 − share), half of C V² (1 − share²) of it is dissipated."""
    step = StepCircuit(low_pass(), ["V1"], ["v(out)"], share=share)
    row = settling_energy(step, np.array([[volts]])).rows[0]
    whole = 1e-6 * volts**2
    assert row.time == pytest.approx(1e-3 * math.log(1.0 / share), rel=1e-9)
    assert row.delivered == pytest.approx(whole * (1.0 - share), rel=1e-9)
    assert row.dissipated == pytest.approx(0.5 * whole * (1.0 - share**2), rel=1e-9)
    assert row.stored == pytest.approx(0.5 * whole * (1.0 - share) ** 2, rel=1e-9)
    assert row.lost == 0.0 and row.final == pytest.approx((volts,), rel=1e-9)


def test_capacitances_at_nodes_and_steps_from_the_sample_before() -> None:
    """A capacitance at the source charges at once: C V² more, half of it lost."""
    step = StepCircuit(low_pass(None), ["V1"], ["v(out)"], {"in": 2e-6, "out": 1e-6})
    first = settling_energy(step, np.array([[4.0]])).rows[0]
    assert first.time == pytest.approx(1e-3 * math.log(100.0), rel=1e-9)
    assert first.delivered == pytest.approx(16e-6 * 0.99 + 32e-6, rel=1e-9)
    assert first.lost == pytest.approx(16e-6, rel=1e-9)
    found = settling_energy(step, np.array([[4.0], [3.0], [3.0]]), previous=True)
    # From 3 V to 4 V, from 4 V to 3 V, and no step at all.
    assert found.column("time")[:2] == pytest.approx([1e-3 * math.log(100.0)] * 2, rel=1e-9)
    assert found.rows[0].delivered == pytest.approx(4.0 * (0.99e-6 + 2e-6), rel=1e-9)
    assert found.rows[1].delivered == pytest.approx(-3.0 * (0.99e-6 + 2e-6), rel=1e-9)
    assert found.rows[2].time == 0.0 and abs(found.rows[2].delivered) < 1e-15
    assert (found.slowest, found.hungriest) == (int(found.column("time").argmax()), 0)


def test_decks_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deck, data = str(NETLISTS / "learn-divider.cir"), str(NETLISTS / "learn-divider.csv")
    run, page = str(tmp_path / "run"), tmp_path / "run.html"
    assert main(["train", "circuit", deck, "--data", data, "--epochs", "2", "--out", run, "--no-pictures"]) == 0
    trained = load(f"{run}/trained.cir")
    step = StepCircuit.of_deck(trained, 1e-12)
    x = np.loadtxt(data, delimiter=",", skiprows=1)[:, :1]
    found = settling_energy(step, x)
    assert found.to_dict()["worst"]["time"]["value"] == found.column("time").max()
    assert 1e-9 < found.column("time").max() < 1e-7 and found.outputs == ("v(out)",)
    # The energy of a sample that is k times as large is k² times as large.
    assert found.rows[0].delivered == pytest.approx(4.0 * found.rows[1].delivered, rel=1e-9)
    assert settling_energy(step, x, previous=True).rows[1].delivered != found.rows[1].delivered
    assert main(["report", run, "--capacitance", "1p", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Settling time and energy" in text
    assert format_quantity(float(found.column("time").max()), "s", 4) in text
    for capacitances, said in (({"0": 1e-12}, "ground"), (-1e-12, "positive"), (0.0, "nothing stores energy")):
        with pytest.raises(UsageError, match=said):
            StepCircuit.of_deck(trained, capacitances)
    switch = "s\n*! input V1\n*! output v(b)\nV1 a 0 1\nS1 a b a 0 m\nC1 b 0 1\n.model m SW vh=-1\n"
    assert StepCircuit.of_deck(loads(switch)).options["switches"]["S1"].hysteresis == 0.0
    with pytest.raises(UsageError, match="no input"):
        StepCircuit.of_deck(load(NETLISTS / "divider.cir"), 1e-12)
    assert main(["report", str(NETLISTS / "divider.cir"), "--capacitance", "1p", "--output", str(page)]) == 2


def test_what_never_settles() -> None:
    circuit = low_pass()
    circuit.resistor("S1", "out", "0", 1.0)
    step = StepCircuit(circuit, ["V1"], ["v(out)"], switches={"S1": Switch(("out", "0"), 2.0, 1.0, 10.0, 1e9)})
    with pytest.raises(ConvergenceError, match="still moves"):
        settling_energy(step, np.array([[5.0]]))
    with pytest.raises(UsageError, match="samples are"):
        settling_energy(StepCircuit(low_pass(), ["V1"], ["v(out)"]), np.zeros((2, 3)))


CLIPPED = """two inputs, two nodes with diodes to ground, an output
V1 a 0 0
V2 b 0 0
R1 a h 1k
R2 b h 2k
R3 a g 3k
R4 b g 1k
R5 h o 2k
R6 g o 1k
R7 o 0 10k
D1 h 0
D2 g 0
"""
CAPACITANCES = {"h": 1e-12, "g": 2e-12, "o": 1e-12}


def test_the_implicit_method_as_the_exact_one() -> None:
    samples = [[1.0, -2.0], [-1.0, 0.4]]
    rows = [
        settling_energy(
            StepCircuit(loads(CLIPPED).circuit, ["V1", "V2"], ["v(o)"], CAPACITANCES, method=method), samples
        ).rows
        for method in ("implicit", "exact")
    ]
    for ours, exact in zip(*rows):
        assert ours.time == pytest.approx(exact.time, rel=1e-3)
        assert ours.delivered == pytest.approx(exact.delivered, rel=1e-4)
        assert ours.final == pytest.approx(exact.final, abs=1e-6)
