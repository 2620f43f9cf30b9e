"""Circuits built in Python: what decks hold, against the deck that says the same."""

from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, TopologyError, UsageError, loads
from circuitsim.time_domain import Pulse, Sine


def same_point(built: Circuit, deck: str) -> None:
    """Both have the same voltages, node by node."""
    ours, theirs = circuitsim.solve(built), circuitsim.solve(loads(f"t\n{deck}"))
    for name in built.node_names:
        assert ours.voltage(name) == pytest.approx(theirs.voltage(name), rel=1e-9, abs=1e-12), name


def test_values_are_numbers_or_spice_text() -> None:
    c = Circuit()
    c.voltage_source("V1", "a", "0", "5")
    c.resistor("R1", "a", "b", "4.7k")
    c.capacitor("C1", "b", "0", "100n")
    c.inductor("L1", "b", "c", "10u")
    c.resistor("R2", "c", "0", "1MEG")
    assert [e.value for e in c] == [5.0, 4700.0, 1e-7, 1e-5, 1e6]
    for wrong in ("4k7x", "", "1 k"):
        with pytest.raises(TopologyError, match=r"R9: resistance must be a finite number such as 4700 or '4.7k', not"):
            c.resistor("R9", "a", "0", wrong)


def test_diodes() -> None:
    c = Circuit()
    c.current_source("I1", "0", "a", "1m")
    c.diode("D1", "a", "b", is_="10f", n=1.8)
    c.diode("D2", "b", "c", vfwd=0.7, ron="20m")
    c.diode("D3", "c", "d")
    c.zener("D4", "0", "d", "5.1")
    same_point(
        c,
        "I1 0 a 1m\nD1 a b x\nD2 b c y\nD3 c d\nD4 0 d z\n.model x D(is=10f n=1.8)\n.model y D(vfwd=.7 ron=20m)\n"
        ".model z D(vrev=5.1 ron=0)\n",
    )
    for wrong in ({"is_": -1.0}, {"knee": 2.0}):
        with pytest.raises(TopologyError, match="D9"):
            c.diode("D9", "a", "0", **wrong)


def test_controlled_sources_and_op_amps() -> None:
    c = Circuit()
    c.voltage_source("V1", "a", "0", 2.0)
    c.vcvs("E1", "b", "0", ("a", "0"), 3)
    c.resistor("R1", "b", "c", "1k")
    c.vccs("G1", "c", "0", ("a", "0"), "1m")
    c.resistor("R2", "c", "0", "2k")
    c.cccs("F1", "d", "0", "E1", 2)
    c.resistor("R3", "d", "0", 10)
    c.ccvs("H1", "e", "0", "E1", "50")
    c.resistor("R4", "e", "m", 1)
    c.resistor("R5", "m", "o", 2)
    c.opamp("U1", "o", "0", "m")
    c.transformer("T1", ("o", "0"), ("s", "0"), 2)
    c.resistor("R6", "s", "0", 8)
    same_point(
        c,
        "V1 a 0 2\nE1 b 0 a 0 3\nR1 b c 1k\nG1 c 0 a 0 1m\nR2 c 0 2k\nF1 d 0 E1 2\nR3 d 0 10\nH1 e 0 E1 50\n"
        "R4 e m 1\nR5 m o 2\nX1 0 m o ideal_opamp\nX2 o 0 s 0 ideal_transformer ratio=2\nR6 s 0 8\n",
    )


def test_sources_over_time_amplitudes_and_couplings() -> None:
    c = Circuit("transformer")
    c.voltage_source("V1", "a", "0", waveform=Sine(0.0, 1.0, 1e3), ac=1.0)
    c.resistor("R1", "a", "p", 10)
    c.inductor("L1", "p", "0", "10m")
    c.inductor("L2", "s", "0", "40m")
    c.coupled("L1", "L2", 0.99)
    c.resistor("R2", "s", "0", "1k")
    deck = loads(
        "t\nV1 a 0 SIN(0 1 1k) AC 1\nR1 a p 10\nL1 p 0 10m\nL2 s 0 40m\nK1 L1 L2 .99\nR2 s 0 1k\n.tran 10u 5m\n"
    )
    ours, theirs = (circuitsim.transient(x, 2e-3).voltage("s") for x in (c, deck))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_allclose(circuitsim.ac(c, [50.0])["s"], circuitsim.ac(deck, [50.0])["s"], rtol=1e-9)
    np.testing.assert_allclose(circuitsim.poles(c).values, circuitsim.poles(deck).values, rtol=1e-9)
    with pytest.raises(UsageError, match="V1: Sine of Python cannot be written as a card"):
        circuitsim.dumps(c)
    with pytest.raises(TopologyError, match="a coupling needs two inductors"):
        c.coupled("L1", "R1", 0.5)


def test_switches() -> None:
    c = Circuit("chopper")
    c.voltage_source("V1", "a", "0", 10)
    c.voltage_source("Vc", "c", "0", waveform=Pulse(0.0, 1.0, 1e-4, 1e-6, 1e-6, 2e-4, 1.0))
    c.switch("S1", "a", "b", ("c", "0"), threshold=0.5, on=1.0, off="1G")
    c.resistor("R1", "b", "0", 9)
    assert circuitsim.solve(c)["b"] == pytest.approx(9e-8, rel=1e-6)
    run = circuitsim.transient(c, 4e-4)
    assert run.voltage("b", times=[2e-4, 3.9e-4]).tolist() == pytest.approx([9.0, 9e-8])
    high = c.with_values({"Vc": 1.0})
    assert circuitsim.solve(high)["b"] == 9.0 and circuitsim.solve(c.with_values({"S1": 1.0}))["b"] == 9.0


def test_subcircuits() -> None:
    cell = Circuit("cell")
    cell.resistor("R1", "in", "x", "1k")
    cell.diode("D1", "x", "out", vfwd=0.5, ron=0.0)
    cell.cccs("F1", "out", "0", "R1", 0.5)
    cell.resistor("R2", "out", "0", "1k")
    c = Circuit("two cells")
    c.voltage_source("V1", "a", "0", 5)
    c.subcircuit("X1", cell, {"in": "a", "out": "b"})
    c.subcircuit("X2", cell, {"in": "b", "out": "c"})
    assert "X2.R1" in c and "X1.x" in c.node_names
    body = "R1 in x 1k\nD1 x out m\nF1 out 0 R1 .5\nR2 out 0 1k\n"
    same_point(c, f"V1 a 0 5\nX1 a b cell\nX2 b c cell\n.subckt cell in out\n{body}.ends\n.model m D(vfwd=.5 ron=0)\n")
    with pytest.raises(TopologyError, match="nowhere"):
        c.subcircuit("X3", cell, {"nowhere": "a"})
    doubled = Circuit()
    doubled.voltage_source("V1", "a", "0", 1)
    doubled.resistor("R1", "a", "b", 1)
    doubled.subcircuit("X1", doubled, {"b": "b"})  # itself, as it was
    assert list(doubled.names) == ["V1", "R1", "X1.V1", "X1.R1"] and circuitsim.solve(doubled)["b"] == 1.0
    chopper = Circuit()
    chopper.switch("S1", "a", "b", ("c", "0"), threshold=0.5)
    whole = Circuit()
    whole.voltage_source("V1", "p", "0", 1)
    whole.subcircuit("X1", chopper, {"a": "p", "b": "q", "c": "p"})
    whole.resistor("R1", "q", "0", 1)
    assert circuitsim.solve(whole)["q"] == pytest.approx(0.5)


def test_a_copy_grows_alone() -> None:
    c = Circuit()
    c.voltage_source("V1", "a", "0", 1)
    c.switch("S1", "a", "b", ("a", "0"), threshold=0.5)
    c.resistor("R1", "b", "0", 1)
    copy = c.with_values({"V1": 2.0})
    copy.switch("S2", "b", "d", ("a", "0"), threshold=0.5)
    copy.resistor("R2", "d", "0", 1)
    assert set(c.dynamics.switches) == {1} and set(copy.dynamics.switches) == {1, 3}
    assert circuitsim.solve(c)["b"] == pytest.approx(0.5)


def test_circuits_decks_and_points_are_drawn(tmp_path: Path) -> None:
    deck = loads("t\nV1 a 0 1\nR1 a b 1\nR2 b 0 1\n")
    for k, source in enumerate((deck, deck.circuit, circuitsim.solve(deck))):
        circuitsim.draw(source).save(tmp_path / f"{k}.svg")
        assert "<svg" in (tmp_path / f"{k}.svg").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="a circuit or a deck is needed"):
        circuitsim.draw("my.cir")
