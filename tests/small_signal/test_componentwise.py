"""Voltages and currents are right to their own scale, however small beside others: 120 digits are the oracle."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circuitsim import CircuitError, ac, loads, poles

EXACT: dict[str, list[dict[str, Any]]] = json.loads(
    gzip.decompress((Path(__file__).parent / "exact.json.gz").read_bytes())
)
"""Random circuits as decks: loops of inductors, cut-sets of capacitors, couplings, controlled sources, values over 12
decades. ``ac``: quantities by decimals of 120 digits (real, imaginary, and 1e-9 of the largest one at its nodes), None
where the equations are singular; ``poles``: their number and the stability, by rational characteristic polynomials and
Routh's scheme."""


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_random_circuits_over_many_decades(first: int) -> None:
    for case in EXACT["ac"][first : first + 20]:
        if case["exact"] is None:
            with pytest.raises(CircuitError):
                ac(loads(case["deck"]))
            continue
        found = ac(loads(case["deck"]))
        for what, real, imaginary, within in case["exact"]:
            names = re.findall(r"[^,()]+", what[1:])
            got = found.current(names[0]) if what[0] == "i" else found.voltage(*names)
            assert abs(got[0] - complex(real, imaginary)) <= within, (case["deck"], what)


def test_stability_of_random_networks() -> None:
    """Tanks that nothing damps, too: stable, marginal or unstable; where rounding decides, the result says so."""
    for case in EXACT["poles"]:
        if case["stability"] == "singular":
            with pytest.raises(CircuitError):
                poles(loads(case["deck"]))
            continue
        found = poles(loads(case["deck"]))
        assert found.values.size == case["poles"]
        assert found.stability == case["stability"], case["deck"]


def test_a_loop_of_inductors_beside_a_small_capacitor() -> None:
    """All of the 7 A flow in the loop: the capacitor has no current, whatever 7 A round to."""
    deck = loads("t\nC1 n1 0 1n\nL1 n2 n1 10n\nL2 n2 n1 2u\nI1 n2 n1 DC 0 AC 7\n.ac lin 1 1 1\n")
    found = ac(deck)
    assert found["n1"][0] == 0.0 and found.current("C1")[0] == 0.0
    expected = -7 * 2j * np.pi / (1 / 10e-9 + 1 / 2e-6)
    assert found["n2"][0] == pytest.approx(expected, rel=1e-14)
    assert found.current("L2")[0] == pytest.approx(-7 * 10e-9 / (10e-9 + 2e-6), rel=1e-14)
    assert found.errors[0] < 1e-12


def test_capacitors_around_a_part() -> None:
    """A part that femtofarads alone tie to ground, at a millihertz, beside a milliohm."""
    text = "t\nV1 in 0 0\nC1 in a 2f\nR1 a b 1m\nC2 b 0 1f\nC3 b c 1\nR2 c a 1G\n"
    found = ac(loads(text), [1e-3], {"V1": 3.0})
    assert found["a"][0] == pytest.approx(2.0, rel=1e-12)
    current = 2j * np.pi * 1e-3 * 1e-15 * 2.0
    assert found.current("C2")[0] == pytest.approx(current, rel=1e-12)
    assert found.current("R1")[0] == pytest.approx(current, rel=1e-9)


def test_a_small_voltage_between_large_ones() -> None:
    """1 V on both ends of 1 nΩ that carries 1 fA: the voltage between is 1e-24 V."""
    text = "t\nV1 a 0 0\nR1 a b 1n\nR2 b 0 1e15\n"
    found = ac(loads(text), [1.0], {"V1": 1.0})
    assert found.voltage("a", "b")[0] == pytest.approx(1e-24, rel=1e-7)
    assert found.current("R1")[0] == pytest.approx(1e-15, rel=1e-14)


def test_large_circuits_get_tree_branches_too() -> None:
    """A ladder of 400 nodes behind a loop of inductors, beyond what dense factors take."""
    cards = ["t", "I1 n1 b DC 0 AC 7", "L1 n1 b 10n", "L2 n1 b 2u", "C1 b 0 1n"]
    cards += [f"R{k} n{k} n{k + 1} 1k\nCx{k} n{k + 1} b 1p" for k in range(1, 400)]
    found = ac(loads("\n".join([*cards, ".ac lin 1 1 1", ""])))
    assert abs(found["b"][0]) <= 1e-9 * abs(found.voltage("n1", "b")[0])
    assert found.voltage("n1", "b")[0] == pytest.approx(-7 * 2j * np.pi / (1 / 10e-9 + 1 / 2e-6), rel=1e-9)
