"""A deck is a circuit that also knows what its file asks for: analyses take their defaults from its cards."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, Deck, DeckWarning, TopologyError, UsageError, loads

DECK = """a filter with a diode
.param r=1k
V1 in 0 2 AC 1 SIN(2 1 1k)
R1 in out {r} tol=1%
C1 out 0 100n
D1 out b
R2 b 0 1k
.op
.dc V1 0 2 1
.tran 10u 2m
.meas tran high MAX v(out)
.meas tran late FIND v(out) AT=1
.ac dec 1 10 1k
.tf v(out) V1
.sens v(out)
.print dc v(out)
"""


@pytest.fixture
def deck() -> Deck:
    return loads(DECK)


def test_a_deck_is_a_circuit(deck: Deck) -> None:
    assert isinstance(deck, Circuit) and len(deck) == 5 and deck["R1"].value == 1e3
    assert repr(deck).endswith("2 R, 1 D, 1 V, 1 C; .op, .dc, .tran, .meas, .ac, .tf, .sens, .print)")
    assert deck.with_values({"R1": 2e3})["R1"].value == 2e3
    with pytest.raises(TopologyError, match="a deck does not change"):
        deck.resistor("R3", "b", "0", 1.0)
    own = deck.circuit
    own.resistor("R3", "b", "0", 1e3)
    assert len(own) == 6 and len(deck) == 5 and type(own) is Circuit


def test_each_analysis_takes_the_cards_of_a_deck(deck: Deck) -> None:
    found = circuitsim.sweep(deck)
    assert list(found.columns) == ["v(out)"] and found["v(out)"].tolist() == pytest.approx([0.0, 0.5, 1.0])
    run = circuitsim.transient(deck)
    assert run.times.size == 201 and run.times[-1] == 2e-3
    assert circuitsim.transient(deck, 1e-3).times[-1] == 1e-3
    assert circuitsim.ac(deck).frequencies.tolist() == [10.0, 100.0, 1000.0]
    assert circuitsim.poles(deck).stable
    assert circuitsim.transfer_function(deck).gain.value == pytest.approx(0.5)
    assert circuitsim.sensitivity(deck).outputs == ("v(out)",)
    spread = circuitsim.worst_case(deck, observe="v(out)")["v(out)"]
    assert spread.least.value < 1.0 < spread.most.value  # by tol= of R1
    assert circuitsim.steady_state(deck).shooting.period == pytest.approx(1e-3)


def test_arguments_come_before_cards(deck: Deck) -> None:
    other = circuitsim.time_domain.Sine(0.0, 3.0, 2e3)
    run = circuitsim.transient(deck, 1e-3, {"v1": other}, points=5)
    assert run.times.size == 5 and run.voltage("in").tolist() == pytest.approx([0.0] * 5, abs=1e-9)
    assert circuitsim.sweep(deck, columns="v(b)", V1=[2.0, 4.0])["v(b)"].tolist() == pytest.approx([1.0, 2.0])
    assert circuitsim.sweep(deck, {"r": [0.0]}, "v(b)")["v(b)"].tolist() == [2.0]
    assert circuitsim.ac(deck, [50.0], {"V1": 2.0})["in"].tolist() == [2.0]
    with pytest.raises(UsageError, match=r"R1=-10%: the tolerance must be positive"):
        circuitsim.montecarlo(deck, {"R1": -0.1}, "v(b)")
    assert str(circuitsim.worst_case(loads("t\nI1 0 a 1\nR1 a 0 2\n"), {"I1": 1}, "v(a)")["v(a)"].most.value) == "4.0"
    found = circuitsim.worst_case(deck, {"R1": 0.5, "R2": "10%"}, "v(b)")["v(b)"]
    assert found.least.value == pytest.approx(2 * 0.9 / 2.4) and found.most.value == pytest.approx(2 * 1.1 / 1.6)


def test_what_a_call_does_not_use_is_a_warning_once_a_deck(deck: Deck) -> None:
    with pytest.warns(DeckWarning, match="takes the DC values of V1, which vary over time") as caught:
        circuitsim.solve(deck)
    assert caught[0].filename == __file__ and deck.notes[-1].kind == "time"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        circuitsim.solve(deck)
        circuitsim.transient(deck)
    latch = loads("t\nV1 a 0 1\nS1 a b a 0 m\nR1 b 0 1\n.model m sw(vt=.5)\n")
    assert circuitsim.solve(latch).voltage("b") == pytest.approx(0.5)
    with pytest.warns(DeckWarning, match="S1: switches keep the states of their cards"):
        circuitsim.batched(latch, ["V1"], [("b", "0")])
    with pytest.warns(DeckWarning, match="S1: switches keep the states of their cards"):
        circuitsim.batched(latch.circuit, ["V1"], [("b", "0")])


def test_all_analyses_in_one_call(deck: Deck) -> None:
    with pytest.warns(DeckWarning, match="late"):
        found = circuitsim.run(deck)
    assert list(found) == ["op", "dc", "tran", "meas", "ac", "tf", "sens"]
    assert found["meas"]["late"] is None and found["meas"]["high"] == pytest.approx(
        found["tran"].voltage("out").max(), rel=1e-3
    )
    assert len(repr(found).splitlines()) >= len(found) and "<" in found._repr_html_()
    assert list(circuitsim.run(loads("t\nV1 a 0 1\nR1 a 0 1\n"))) == ["op"]
    stepped = loads("t\n.param r=1k\nV1 a 0 1\nR1 a b {r}\nC1 b 0 1u ic=0\n.tran 1m 5m uic\n.step param r 1k 2k 1k\n")
    runs = circuitsim.run(stepped)["tran"].waves
    assert runs.shape == (6, 2)
    with pytest.raises(UsageError, match="runs over time"):
        circuitsim.sweep(stepped)


def test_an_analysis_that_fails_leaves_the_others() -> None:
    deck = loads("t\nV1 a 0 1\nR1 a b 1\nC1 b 0 1\n.ac lin 1 1 1\n.op\n")  # no amplitude
    with pytest.raises(UsageError, match="no source has an amplitude") as caught:
        circuitsim.run(deck)
    assert caught.value.partial_result["op"]["b"] == 1.0


def test_decks_travel(deck: Deck) -> None:
    again = pickle.loads(pickle.dumps(deck))
    assert repr(again) == repr(deck) and list(again) == list(deck)
    assert [note.kind for note in again.notes] == [note.kind for note in deck.notes]
    np.testing.assert_array_equal(circuitsim.transient(again).voltage("out"), circuitsim.transient(deck).voltage("out"))
