"""Circuits with wrong answers of an earlier solver, each branch against the exact oracle."""

from __future__ import annotations

import numpy as np
import pytest
from branch_checks import examine
from circuits import Parts, sketch_of


def d(anode: int, cathode: int) -> tuple[str, int, int, float]:
    return ("D", anode, cathode, 0.0)


# Seven cards with cancelling current sources; nodes 0, 3, 10, 15 as in the deck.
CARDS: Parts = [
    ("R", 3, 10, 1.0),
    ("R", 3, 10, 1.0),
    ("I", 10, 15, 2.0),
    ("I", 15, 10, 2.0),
    ("R", 10, 3, 1.0),
    ("I", 10, 3, 1.0),
    ("R", 0, 3, 4.0),
]

DEFECTS: dict[str, Parts] = {
    **{
        f"{ohms:g} ohm in series with 1k": [("V", 1, 0, 5.0), ("R", 1, 2, ohms), ("R", 2, 0, 1e3)]
        for ohms in (1e-11, 1e-13, 1e-15, 1e-18)
    },
    "48 V, 1 nΩ, diode, 10 MΩ": [("V", 1, 0, 48.0), ("R", 1, 2, 1e-9), d(2, 3), ("R", 3, 0, 1e7)],
    "800 V, 100 µΩ shunt": [("V", 1, 0, 800.0), ("R", 1, 2, 1e-4), ("R", 2, 0, 1e6)],
    "800 V, 100 µΩ shunt, load of 37.3 kΩ below": [
        ("V", 1, 0, 800.0),
        ("R", 1, 2, 100e-6),
        ("R", 2, 3, 37.3e3),
        ("R", 3, 0, 4.7e6),
        ("R", 1, 3, 2.2e6),
    ],
    "1 kV bridge with a 1 nΩ detector": [
        ("V", 1, 0, 1e3),
        ("R", 1, 2, 1e3),
        ("R", 1, 3, 1e3),
        ("R", 2, 0, 1e3),
        ("R", 3, 0, 1000.001),
        ("R", 2, 3, 1e-9),
    ],
    "equal sources in parallel far from ground": [
        ("V", 2, 0, 10.0),
        ("V", 1, 2, 41e-6),
        ("V", 1, 2, 41e-6),
        ("R", 1, 0, 1e3),
    ],
    "1.1 mV in parallel on 230 V": [
        ("V", 1, 0, 230.0),
        ("V", 2, 1, 1.1e-3),
        ("V", 2, 1, 1.1e-3),
        ("R", 2, 0, 50.0),
    ],
    "5 V over resistors of 103 decades": [
        ("V", 1, 0, 5.0),
        ("R", 1, 2, 1e3),
        ("R", 2, 3, 1e-13),
        ("R", 3, 4, 1e-50),
        ("R", 4, 5, 1e-100),
        ("R", 5, 0, 1e3),
    ],
    "two floating loops of 1 kA tied by two chains of 1 Ω": [
        ("I", 2, 1, 1e3),
        ("R", 1, 2, 1.0),
        ("R", 2, 3, 0.3),
        ("R", 3, 1, 0.7),
        ("I", 5, 4, 1e3),
        ("R", 4, 5, 1.0),
        ("R", 5, 6, 0.3),
        ("R", 6, 4, 0.7),
        ("R", 1, 7, 1.0),
        ("R", 7, 4, 1.0),
        ("R", 2, 8, 1.0),
        ("R", 8, 6, 1.0),
        ("R", 3, 0, 1.0),
    ],
    "parallel diodes at 0.1 µA beside 1 MA": [
        ("I", 2, 1, 1e6),
        ("R", 1, 2, 1e-3),
        ("R", 1, 0, 1.0),
        ("I", 0, 3, 1e-7),
        d(3, 4),
        d(3, 4),
        ("R", 4, 0, 1e3),
    ],
    "parallel diodes at 0.1 µA in one mesh with 1 MA": [
        ("I", 2, 1, 1e6),
        ("R", 1, 2, 1e-3),
        ("R", 1, 0, 1e-3),
        ("R", 2, 5, 1e16),
        d(5, 4),
        d(5, 4),
        ("R", 4, 0, 1.0),
    ],
    "loop of 0.1 + 0.2 − 0.3": [("V", 1, 0, 0.1), ("V", 2, 1, 0.2), ("V", 2, 0, 0.3), ("R", 2, 0, 1e3)],
    "loop of 0.1 + 0.2 − 0.3 far from ground": [
        ("V", 1, 0, 230.0),
        ("V", 2, 1, 0.1),
        ("V", 3, 2, 0.2),
        ("V", 3, 1, 0.3),
        ("R", 3, 0, 1e3),
        ("R", 2, 0, 47.0),
    ],
    "cut of 0.1 + 0.2 − 0.3": [
        ("I", 0, 1, 0.1),
        ("I", 0, 1, 0.2),
        ("I", 1, 0, 0.3),
        ("R", 1, 2, 1e3),
        ("I", 2, 1, 0.1),
        ("R", 3, 0, 1.0),
        ("I", 0, 3, 1.0),
    ],
    "balanced bridge with diodes": [
        ("V", 1, 0, 10.0),
        ("R", 1, 2, 3.3),
        ("R", 2, 0, 1.1),
        ("R", 1, 3, 9.9),
        ("R", 3, 0, 3.3),
        d(2, 3),
        d(3, 4),
        ("R", 4, 2, 1e-9),
    ],
    "nothing but zero": [("V", 1, 0, 0.0), ("R", 1, 2, 0.1), d(2, 3), ("R", 3, 0, 3.0), ("R", 3, 1, 1e-9)],
    "diodes that exactly block": [
        ("I", 0, 1, 1.0),
        ("R", 1, 0, 0.3),
        ("I", 0, 2, 1.0),
        ("R", 2, 0, 0.3),
        d(1, 2),
        ("R", 1, 3, 1e-9),
        d(3, 2),
    ],
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defect(name: str) -> None:
    assert examine(sketch_of(DEFECTS[name])) == []


@pytest.mark.parametrize("seed", range(20))
def test_cancelling_sources_in_any_order(seed: int) -> None:
    """As in the deck, and with its cards in other orders."""
    order = np.random.default_rng(seed).permutation(len(CARDS)) if seed else range(len(CARDS))
    assert examine(sketch_of([CARDS[k] for k in order])) == []
