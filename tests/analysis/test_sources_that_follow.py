"""Sources by formulas of voltages that other sources fix: analyses that change the others, by hand."""

from pathlib import Path

import pytest

import circuitsim
from circuitsim.circuit.waveforms import Sine
from circuitsim.errors import NetlistError, UsageError
from circuitsim.learning.function import circuit_block
from circuitsim.netlist import loads
from circuitsim.netlist.deck import Deck
from circuitsim.small_signal import ac_sweep
from circuitsim.time_domain import transient_sweep

TEXT = "t\nV1 in 0 2\nI1 0 q 1m\nE1 out 0 in 0 3\nB2 b 0 V=1+v(out)-1k*i(I1)\nR1 out m 1k\nR2 m b 1k\nRQ q 0 1\n"
"""v(m) is half of v(out) + v(b) = 6 v(in) + 1 − 1k I1."""


@pytest.fixture
def deck() -> Deck:
    return loads(TEXT)


def test_operating_points_and_prepared_values(deck: Deck) -> None:
    assert circuitsim.solve(deck)["m"] == pytest.approx(6.0)
    assert circuitsim.prepared(deck).solve({"V1": 3.0, "I1": 2e-3})["m"] == pytest.approx(0.5 * (18 + 1 - 2))
    circuit = circuitsim.loads(TEXT)
    assert circuitsim.prepared(circuit).solve({"V1": 3.0})["m"] == pytest.approx(9.0)
    assert circuitsim.solve(circuit.with_values({"V1": 1.0}))["m"] == pytest.approx(3.0)


def test_derivatives(deck: Deck) -> None:
    found = circuitsim.sensitivity(deck, "v(m)")
    assert found["v(m)", "V1"] == pytest.approx(3.0)
    assert found["v(m)", "I1"] == pytest.approx(-500.0)
    assert circuitsim.transfer_function(deck, "v(m)", "V1").gain.value == pytest.approx(3.0)


def test_tolerances_and_design(deck: Deck) -> None:
    found = circuitsim.worst_case(deck, ["V1=10%", "I1=20%"], "v(m)")["v(m)"]
    assert found.exact
    assert (found.least.value, found.most.value) == pytest.approx((6 - 0.6 - 0.1, 6 + 0.6 + 0.1))
    spread = circuitsim.montecarlo(deck, ["V1=10%"], "v(m)", 4000)["v(m)"]
    assert spread.deviation == pytest.approx(0.6 / 3**0.5, rel=0.05)
    assert circuitsim.optimise(deck, {"V1": (0.1, 10.0)}, ["v(m)=9"]).values["V1"] == pytest.approx(3.0)


def test_inputs_of_blocks(deck: Deck, tmp_path: Path) -> None:
    """∂v(m)/∂V1 of a block read from a deck and from a file."""
    (tmp_path / "deck.cir").write_text(TEXT)
    for source in (deck, tmp_path / "deck.cir"):
        block = circuit_block(source, "V1", "v(m)", ["R1"])
        found = [circuitsim.solve(block.circuit.with_values({"V1": v}))["m"] for v in (1.0, 2.0)]
        assert found == pytest.approx([3.0, 6.0])


def test_formulas_that_are_not_affine_are_refused_where_they_would_have_to_follow() -> None:
    deck = loads("t\nV1 in 0 2\nV2 c 0 1\nB1 out 0 V=v(in)*v(in)\nR1 out m 1k\nR2 m c 1k\n")
    assert circuitsim.solve(deck)["m"] == pytest.approx(2.5)
    assert circuitsim.worst_case(deck, ["R*=1%", "V2=1%"], "v(m)")["v(m)"].exact
    assert circuitsim.sensitivity(deck, "v(m)")["v(m)", "V1"] == pytest.approx(2.0)
    assert circuitsim.prepared(deck).solve({"V1": 3.0})["m"] == pytest.approx(5.0)
    spread = circuitsim.montecarlo(deck, ["V*=1%"], "v(m) v(in)", 100).quantities
    assert spread[0].deviation == pytest.approx(2.0 * spread[1].deviation, rel=0.1)
    for change in (
        lambda: circuitsim.worst_case(deck, ["V1=1%"], "v(m)"),
        lambda: circuitsim.optimise(deck, {"V1": (1.0, 2.0)}, ["v(m)=2"]),
    ):
        with pytest.raises(UsageError, match="B1 follows other voltages or currents by a non-affine formula"):
            change()
    with pytest.raises(UsageError, match="B1 is given by a formula of other elements"):
        circuitsim.sensitivity(circuitsim.solve(deck), "v(m)")


FACTOR = "t\n.param x=2\nV1 a 0 {x}\nI1 0 b 1\nR1 b 0 1\nR2 o 0 1\n"
"""v(b) is 1 V, and V1 fixes v(a)."""


def test_polynomials_of_fixed_and_of_own_voltages() -> None:
    deck = loads(FACTOR + "E1 p 0 POLY(2) a 0 q 0 1 0 0 0 0 0 2 3\nVq q 0 5\nRp p 0 1\nG1 0 o POLY(1) o 0 1 0 0 -1\n")
    point = circuitsim.solve(deck)
    assert point["p"] == pytest.approx(1 + 2 * 8 + 3 * 4 * 5)
    assert point["o"] + point["o"] ** 3 == pytest.approx(1.0)
    with pytest.raises(NetlistError, match="product"):
        loads(FACTOR + "E1 o 0 POLY(1) b 0 0 0 1\nR3 o b 1\n")


def test_what_fixes_a_factor_does_not_vary() -> None:
    deck = loads(FACTOR + "B1 o 0 V=v(b)*v(a)\n.tran 1u 1m\n")
    sine = Sine(1.0, 1.0, 1e3)
    for change in (
        lambda: deck.with_values({"V1": 3.0}),
        lambda: deck.circuit.with_values({"V1": 3.0}),
        lambda: circuitsim.sweep(deck.circuit, {"V1": [1.0, 2.0]}, "v(o)"),
        lambda: circuitsim.worst_case(deck, ["V1=1%"], "v(o)"),
        lambda: circuitsim.optimise(deck, {"V1": (0.1, 10.0)}, ["v(o)=5"]),
        lambda: circuitsim.sensitivity(circuitsim.solve(deck), "v(o)"),
        lambda: circuitsim.prepared(deck.circuit).solve({"V1": 3.0}),
        lambda: circuitsim.batched(deck, ["V1"]),
        lambda: circuitsim.curve(deck, ("o", "0"), [0.0, 1.0], without=["B1", "V1"]),
        lambda: circuitsim.transient(deck, waveforms={"V1": sine}),
        lambda: circuitsim.transient(deck.circuit, 1e-3, waveforms={"V1": sine}),
        lambda: circuit_block(deck, "V1", "v(o)", ["R1"]),
    ):
        with pytest.raises(UsageError, match=r"B1 has a factor or condition fixed by (V1|Ba|another)"):
            change()
    assert circuitsim.sweep(deck, {"param:x": [1.0, 3.0]}, "v(o)")["v(o)"].tolist() == pytest.approx([1.0, 3.0])
    assert circuitsim.sweep(deck, {"R1": [1.0, 3.0]}, "v(o)")["v(o)"].tolist() == pytest.approx([2.0, 6.0])
    both = loads(FACTOR + "B1 o 0 V=v(b)*v(a)\nB2 q 0 V=v(a)**2\nR3 q 0 1\n.tran 1u 1m\n")
    for found in (circuitsim.sweep(both, {"V1": [1.0, 3.0]}), transient_sweep(both, {"V1": [1.0, 3.0]}).waves):
        assert found["v(o)"][[0, -1]].tolist() == pytest.approx([1.0, 3.0])
        assert found["v(q)"][[0, -1]].tolist() == pytest.approx([1.0, 9.0])
    response = ac_sweep(both, {"V1": [1.0, 3.0]}, "v(q)", frequencies=[1.0], sources={"V1": 1.0})
    assert response.tables()["responses"].columns[3] == pytest.approx([2.0, 6.0])
    assert circuitsim.transfer_function(deck, "v(o)", "I1").gain.value == pytest.approx(2.0)
    assert circuitsim.transfer_function(deck, "v(o)", "V1").gain.value == pytest.approx(1.0)
    assert circuitsim.sensitivity(deck, "v(o)")["v(o)", "V1"] == pytest.approx(1.0)
    assert circuitsim.ac(deck, [1.0], {"I1": 1.0})["o"] == pytest.approx([2.0])
    rising = loads("t\nBa a 0 V=time\nI1 0 b 1\nR1 b 0 1\nB1 o 0 V=v(b)*v(a)\nR2 o 0 1\n.tran 1u 1m\n")
    assert circuitsim.transient(rising).voltage("o")[-1] == pytest.approx(1e-3)
    startup = circuitsim.transient(loads(FACTOR + "B1 o 0 V=v(b)*v(a)\n.tran 1u 40u startup\n"))
    assert startup.voltage("o", times=[10e-6, 40e-6]) == pytest.approx([0.5, 2.0])
    moving = loads(FACTOR.replace("b 1\n", "b SIN(1 1 1k)\n") + "B1 o 0 V=v(b)*v(a)\n.tran 1u 1m\n")
    assert circuitsim.transient(moving).voltage("o").max() == pytest.approx(4.0, rel=1e-4)  # the accuracy of the run
    assert "B1 o 0 V=v(b)*v(a)" in circuitsim.dumps(deck)
    added = loads(FACTOR + "V2 c 0 1\nB1 o 0 V=v(b)*v(a)+v(c)\n")
    assert circuitsim.sweep(added, {"V2": [1.0, 3.0]}, "v(o)")["v(o)"].tolist() == pytest.approx([3.0, 5.0])
