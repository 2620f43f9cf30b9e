"""Values for targets against closed forms; preferred values against brute force and the standard."""

import itertools
import math

import numpy as np
import pytest

import circuitsim
from circuitsim.errors import UsageError
from circuitsim.tolerance.design import mantissas, preferred

PAD = "pad\nV1 s 0 2\nRS s in 50\nR1 in 0 100\nR2 in out 100\nR3 out 0 100\nRL out 0 50\n"
LADDER = "ladder\nV1 top 0 10\nR1 top a 1k\nR2 a b 1k\nR3 b 0 1k\n"


def test_series_are_those_of_the_standard() -> None:
    assert mantissas("E12").tolist() == [1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2]
    assert mantissas("E48")[:4].tolist() == [1.0, 1.05, 1.1, 1.15] and mantissas("E192").size == 192
    assert 9.2 in mantissas("E192") and 9.76 in mantissas("E96")
    assert preferred("E12", 1000.0, 1000.0).tolist() == [1000.0]
    assert preferred("E12", 8.2e5, 1e6).tolist() == [8.2e5, 1e6] and preferred("E24", 0.09, 0.1).tolist() == [
        0.091,
        0.1,
    ]
    with pytest.raises(UsageError, match="there is no series"):
        mantissas("E13")


def test_a_matched_attenuator_has_its_closed_form() -> None:
    # Matched on both sides the π pad is symmetric: R = Z (k + 1)/(k − 1), Z (k² − 1)/(2 k), k = 10.
    deck = circuitsim.loads(PAD)
    targets = ["v(in)=1", "v(out)=0.1", "i(R3)=1.6363636363636363m"]
    found = circuitsim.optimise(deck, ["R1", "R2", "R3"], targets)
    assert found.error < 1e-9
    shunt = 50.0 * 11.0 / 9.0
    assert found.values == pytest.approx({"R1": shunt, "R2": 50.0 * 99.0 / 20.0, "R3": shunt}, rel=1e-6)


def test_preferred_values_of_a_ladder_are_the_best_or_near() -> None:
    deck = circuitsim.loads(LADDER)
    targets = ["v(a)=7", "v(b)=2", "i(V1)=-1m"]
    found = circuitsim.optimise(deck, dict.fromkeys(("R1", "R2", "R3"), (1000.0, 9900.0)), targets, "E12")
    exact = circuitsim.optimise(deck, ["R*"], targets)
    assert exact.values == pytest.approx({"R1": 3e3, "R2": 5e3, "R3": 2e3}, rel=1e-6)
    best = math.inf
    for r1, r2, r3 in itertools.product(1e3 * mantissas("E12"), repeat=3):
        i = 10.0 / (r1 + r2 + r3)
        errors = np.array([(10.0 - i * r1) / 7.0, i * r3 / 2.0, i / 1e-3]) - 1.0
        best = min(best, float(np.sqrt(np.mean(errors**2))))
    assert best <= found.error * (1.0 + 1e-9) and found.error <= best * (1.0 + 1e-9)
    assert all(value in 1e3 * mantissas("E12") for value in found.values.values())


def test_through_a_diode() -> None:
    deck = circuitsim.loads("d\nV1 in 0 5\nR1 in out 1k\nD1 out x\nV2 x 0 2\nR2 out 0 1k")
    found = circuitsim.optimise(deck, ["R1"], ["i(D1)=3m"])
    assert found.error < 1e-9 and found.values["R1"] == pytest.approx(3.0 / 5e-3, rel=1e-6)


def test_sources_and_bounds() -> None:
    deck = circuitsim.loads(LADDER)
    found = circuitsim.optimise(deck, {"V1": (0.0, 20.0)}, ["v(b)=5"])
    assert found.values["V1"] == pytest.approx(15.0)
    bounded = circuitsim.optimise(deck, {"V1": (0.0, 12.0)}, ["v(b)=5"])
    assert bounded.values["V1"] == pytest.approx(12.0, rel=1e-6) and bounded.error > 0.1


def test_targets_that_the_values_of_the_deck_do_not_move() -> None:
    """At the deck's values a diode holds the output at 3 V."""
    deck = circuitsim.loads("clamp\nV1 a 0 10\nR1 a out 1k\nR2 out 0 1k\nD1 out c ideal\nV2 c 0 3\n.model ideal D\n")
    found = circuitsim.optimise(deck, ["R*"], ["v(out)=2"])
    assert found.error < 1e-9 and found.values["R1"] == pytest.approx(4.0 * found.values["R2"])
    assert "targets not met, error 0.85" in circuitsim.optimise(deck, ["R*"], ["v(out)=20"]).text()


def test_names_come_in_lists_and_bounds_are_reported_as_they_are() -> None:
    deck = circuitsim.loads("divider\nV1 in 0 10\nR1 in out 1k\nR2 out 0 1k\n")
    found = circuitsim.optimise(deck, {"R1 R2": None}, ["v(out)=2.5"])
    assert found.bounds == {"R1": (1.0, 1e6), "R2": (1.0, 1e6)}
    with pytest.raises(UsageError, match=r"nothing is called 'D1\.n': resistors, sources and parameters of devices"):
        circuitsim.optimise(deck, ["D1.n"], ["v(out)=2.5"])


def test_where_only_a_ratio_counts_the_best_one_is_found() -> None:
    deck = circuitsim.loads("divider\nV1 in 0 10\nR1 in out 1k\nR2 out 0 1k\n")
    assert circuitsim.optimise(deck, ["R*"], ["v(out)=2.5"], "E24").error < 1e-9  # 3.3 k and 1.1 k
    ratios = np.divide.outer(mantissas("E24"), mantissas("E24"))
    for wanted in (1.7, 3.3, 7.1):
        found = circuitsim.optimise(deck, ["R*"], [f"v(out)={wanted}"], "E24")
        least = min(np.abs(10.0 / (1.0 + scale * ratios) - wanted).min() for scale in (0.1, 1.0, 10.0)) / wanted
        assert found.error == pytest.approx(least)


def test_parameters_of_devices_are_adjusted() -> None:
    deck = circuitsim.loads("d\nV1 in 0 5\nR1 in a 1k\nD1 a 0 dm\n.model dm D(is=1n n=1.5)\n")
    found = circuitsim.optimise(deck, ["D1.is"], ["v(a)=0.6"])
    law = 4.4e-3 / math.expm1(0.6 / (1.5 * 1.380649e-23 * 300.15 / 1.602176634e-19))
    assert found.error < 1e-9 and found.values["D1.is"] == pytest.approx(law, rel=1e-6)
    assert set(circuitsim.optimise(deck, ["D1.n", "R*"], ["v(a)=0.6"]).values) == {"D1.n", "R1"}
