"""Tolerances and random functions in decks: nominal where a deck is solved, random variables in Monte Carlo."""

import numpy as np
import pytest

import circuitsim
from circuitsim.netlist import loads
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.functions import Distribution
from circuitsim.tolerance.spread import Spread, spread_of


def deck(*cards: str) -> Deck:
    return loads("\n".join(["tolerances", "V1 in 0 10", *cards, "Rload in 0 1k"]) + "\n")


def spread(*cards: str, own: tuple[str, ...] = ()) -> Spread:
    from circuitsim.tolerance import parse_tolerance

    read = deck(*cards)
    return spread_of(read.circuit, [parse_tolerance(text) for text in own], read.deviations)


FORMS = """
{mc(1k,0.05)} | 1000 0.05 1000 UNIFORM
{1k+flat(50)} | 1000 1 50 UNIFORM
{unif(1k,0.1)} | 1000 0.1 1000 UNIFORM
{aunif(1k,30)} | 1000 30 1 UNIFORM
{1k+gauss(20)} | 1000 3 20 NORMAL
{gauss(1k,0.1,2)} | 1000 0.15 1000 NORMAL
'agauss(1k,30,3)' | 1000 30 1 NORMAL
{-2*(5-mc(505,0.01))} | 1000 0.01 1010 UNIFORM
{limit(1k,30)} | 1000 30 1 ENDS
{limit(1k,2k,-30)+limit(0,5)} | 1000 5 1 ENDS
{1k*(0.5+rand())} | 1000 0.5 1000 UNIFORM
{1k*(0.5+random(3.5))} | 1000 0.5 1000 UNIFORM
{mc(1k,-0.05)/2} | 500 0.05 500 UNIFORM
{mc(1k,0.05)} m=4 | 250 0.05 250 UNIFORM
{mc(1k,0.05)} tc1=0.01 temp=37 | 1100 0.05 1100 UNIFORM
1k tol=5 | 1000 0.05 1000 UNIFORM
1k tol=5% | 1000 0.05 1000 UNIFORM
2k m=2 tol=1% | 1000 0.01 1000 UNIFORM
RM 1k / .model RM RES(R=1 DEV=5%) | 1000 0.05 1000 UNIFORM
RM 1k / .model RM R(R=1 DEV/GAUSS=2%) | 1000 0.06 1000 NORMAL
"""
"""Values of R1: their nominal value, amount, change by the amount of 1, and distribution."""


@pytest.mark.parametrize("row", FORMS.strip().split("\n"))
def test_forms(row: str) -> None:
    value, expected = row.split(" | ")
    nominal, amount, change, law = expected.split()
    found = spread(f"R1 in 0 {value}".replace(" / ", "\n"))
    assert found.names == found.variables == ("R1",)
    numbers = [*found.nominal, *found.amount, *abs(found.weights.toarray()).ravel()]
    assert numbers == pytest.approx([float(nominal), float(amount), float(change)], rel=1e-14)
    assert found.distribution == (Distribution[law],)


def test_a_parameter_is_drawn_once_and_a_function_on_a_card_for_each_element() -> None:
    found = spread(
        ".param r={mc(1k,0.1)}",
        "R1 in 0 {r}",
        "R2 in 0 {2*r+mc(3,0.5)}",
        "R3 in 0 {mc(7,0.2)}",
        "X1 in cell",
        "X2 in cell m=2",
        ".subckt cell p",
        "Rc p 0 {aunif(100,1)}",
        ".ends",
    )
    assert found.names == ("R1", "R2", "R3", "X1.Rc", "X2.Rc")
    shared = found.variables.index("mc() in line 3")
    assert found.weights.toarray()[shared].tolist() == [1000.0, 2000.0, 0.0, 0.0, 0.0]
    own = dict(zip(found.variables, found.weights.toarray().tolist()))
    assert own["R2"] == [0.0, 3.0, 0.0, 0.0, 0.0]
    assert own["R3"] == [0.0, 0.0, 7.0, 0.0, 0.0]
    assert own["X1.Rc"] == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert own["X2.Rc"] == [0.0, 0.0, 0.0, 0.0, 0.5]


def test_lots_and_own_tolerances_of_models_add_up() -> None:
    found = spread("R1 in 0 RM 1k", "R2 in 0 2k RM", ".model RM RES(R=1 DEV=2% LOT=5%)")
    assert dict(zip(found.variables, found.amount)) == pytest.approx({"R1": 0.02, "R2": 0.02, "RM (lot)": 0.05})
    assert found.weights.toarray()[found.variables.index("RM (lot)")].tolist() == [1000.0, 2000.0]


def test_the_command_line_has_precedence_over_the_deck() -> None:
    found = spread("R1 in 0 1k tol=5%", "R2 in 0 1k tol=5%", own=("R1=1%",))
    assert dict(zip(found.variables, found.amount)) == pytest.approx({"R1": 0.01, "R2": 0.05})


def test_a_functions_own_definition_has_precedence() -> None:
    read = deck(".func mc(x,y) {x+y}", "R1 in 0 {mc(10,5)}")
    assert read.circuit["R1"].value == 15.0
    assert not read.deviations.variables


def test_rand_of_one_whole_number_is_one_variable() -> None:
    cards = ("R1 in 0 {1k+rand(3)}", "R2 in 0 {1k+rand(3.7)}", "R3 in 0 {1k+rand(4)}", "R4 in 0 {1k+random(3.7)}")
    found = spread(*cards, "R5 in 0 {1k+rand()}", "R6 in 0 {1k+rand()}")
    assert len(found.variables) == 5
    elements = np.count_nonzero(found.weights.toarray(), axis=int(found.weights.shape[0] == 5))
    assert sorted(elements) == [1, 1, 1, 1, 2]


def test_limit_draws_its_two_ends() -> None:
    read = deck("R1 in a {limit(1k,100)}", "R2 a 0 1k", "R3 in b {1k+500*rand()}", "R4 b 0 1k")
    kept: list[np.ndarray] = []
    circuitsim.montecarlo(read, [], ["v(a)", "v(b)"], 2000, rows=lambda names, values: kept.append(values))
    ends, between = np.concatenate(kept)[:, -2:].T
    low, high = 10e3 / 2.1e3, 10e3 / 1.9e3
    assert np.allclose(np.where(ends < 5.0, low, high), ends, rtol=1e-12)
    assert abs(np.count_nonzero(ends < 5.0) - 1000) < 150
    assert 4.0 < between.min() < 4.01 and 4.99 < between.max() < 5.0
