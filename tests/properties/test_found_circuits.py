"""Circuits that random search found and an earlier solver got wrong, shrunk by hand; each stands for a cause."""

from __future__ import annotations

import numpy as np
import pytest
from branch_checks import examine
from circuits import Parts, sketch_of

import circuitsim


def d(anode: int, cathode: int) -> tuple[str, int, int, float]:
    return ("D", anode, cathode, 0.0)


FOUND: dict[str, Parts] = {
    # What a finite short leaves of 0 V was the whole scale of a resistor that dangles from it.
    "dangling resistor": [("I", 0, 1, 1.0), d(1, 0), ("R", 1, 2, 1.0), ("R", 1, 0, 2.0)],
    # Two nodes at exactly 0 V came out as rounding of what goes round next door.
    "balanced loop": [("R", 1, 2, 1.0), ("I", 1, 2, 1.0), ("R", 0, 1, 2.0)],
    "idle end of a source": [("R", 0, 2, 1.0), ("R", 1, 3, 160.0), ("V", 1, 2, -1.0)],
    # The unknown was 1 V away from the node that needs nine more digits.
    "stiff end of a source": [("R", 0, 2, 1e-9), ("I", 0, 2, 1.0), ("V", 1, 2, 1.0)],
    "lost digits at a stiff node": [
        ("R", 1, 2, 24.0),
        ("I", 1, 2, -2.0),
        ("R", 2, 3, 1e-9),
        ("R", 4, 5, 1867776.0),
        ("I", 4, 5, 2.0),
        ("R", 6, 2, 0.05859375),
        ("I", 6, 2, -2.0),
        ("V", 1, 6, 1.0),
        d(7, 6),
        ("R", 7, 0, 0.0),
        ("L", 4, 3, 1e-3),
    ],
    # A floating part was made exact in the frame of a node 14 kV away, and then moved.
    "floating part moved": [
        ("C", 1, 2, 1e-3),
        ("R", 3, 4, 1e-9),
        ("I", 3, 4, -3.0),
        ("R", 5, 1, 31.0),
        ("R", 4, 6, 0.1),
        d(6, 5),
        ("R", 7, 4, 4700.0),
        ("I", 7, 4, 3.0),
    ],
    # Potentials were made exact after the diodes had been judged.
    "judged too early": [("R", 1, 0, 46137344.0), ("R", 2, 1, 1e-9), d(3, 2), ("I", 2, 1, 1.0)],
    "attoampere through a diode": [
        d(1, 0),
        ("R", 2, 3, 2.0**-19),
        ("I", 2, 3, 1.0),
        ("R", 0, 2, 17179869184.0),
        ("R", 1, 3, 1.0),
    ],
    # Ends of dead resistors differed by more than a factor's usual error, and were not held equal.
    "dead parts over eighteen decades": [
        ("I", 1, 2, -2.0),
        ("V", 2, 3, 768.0),
        d(4, 3),
        d(5, 6),
        ("R", 7, 2, 1e-9),
        d(5, 8),
        d(7, 9),
        ("R", 7, 8, 88.0),
        ("R", 10, 5, 146.0),
        ("I", 10, 5, -3.0),
        ("R", 4, 7, 0.1),
        ("R", 1, 10, 2.125),
        ("I", 2, 10, -0.00048828125),
        ("R", 1, 2, 5368709120.0),
        ("I", 1, 2, -0.0546875),
        ("R", 0, 8, 5242880.0),
    ],
    # All diodes whose ends only look equal were closed in the end.
    "equal to the last digit": [
        ("R", 1, 2, 1.0),
        ("R", 2, 0, 0.00014495849609375),
        ("I", 2, 0, -0.015625),
        ("R", 0, 3, 52.0),
        ("I", 0, 3, 36.0),
        ("R", 0, 3, 1.0),
        d(2, 0),
        d(3, 2),
        d(0, 3),
        ("R", 0, 2, 98.0),
        ("I", 0, 2, 1.0),
        ("R", 3, 2, 87031808.0),
        ("R", 0, 1, 30.0),
    ],
    # A path without current beside a conducting diode hid the diode's own current.
    "idle path beside a diode": [
        d(1, 2),
        ("R", 3, 1, 2550136832.0),
        ("R", 4, 5, 0.00537109375),
        ("R", 6, 4, 136.0),
        d(2, 5),
        ("R", 1, 7, 128.0),
        ("I", 2, 5, 4.0),
        d(4, 2),
        ("R", 3, 2, 2.0),
        ("R", 6, 7, 4700.0),
        ("I", 6, 7, 5.0),
    ],
    # A loop that carries a megaampere feeds 10 fA; 4e11 A beside 11 µA.
    "loop with a small need": [
        ("R", 1, 0, 1e-9),
        ("R", 2, 0, 99857989632.0),
        ("I", 0, 3, 1048576.0),
        d(3, 4),
        d(4, 2),
        d(5, 2),
        d(6, 1),
        d(7, 8),
        d(9, 5),
        d(8, 6),
        d(5, 7),
        d(4, 9),
    ],
    "loop of shorts with a small need": [
        ("R", 1, 2, 0.0),
        ("I", 1, 3, -1.1444091796875e-05),
        d(3, 2),
        ("R", 4, 1, 0.0),
        ("R", 5, 1, 1.955777406692505e-08),
        ("R", 5, 6, 0.0),
        d(4, 3),
        ("V", 6, 4, 8192.0),
    ],
    # A loop between two nodes, at one of which kiloamperes or teraamperes meet: the sum at the other one is right.
    "loop at a node of large currents": [
        ("R", 0, 1, 9.1552734375e-05),
        ("R", 0, 2, 7.6),
        ("R", 0, 3, 6291456.0),
        ("R", 3, 4, 50000.0),
        ("R", 5, 6, 0.007628650159532572),
        d(6, 0),
        ("I", 0, 1, -1777.329813500284),
        d(6, 0),
        ("R", 5, 2, 8388608.0),
        d(7, 6),
        ("R", 2, 4, 1.1920928955078125e-07),
        ("I", 2, 4, -7.62939453125e-06),
    ],
    "loop beside a short circuit": [
        ("R", 0, 1, 8.3e-12),
        ("R", 1, 2, 1.2e-08),
        ("R", 2, 3, 1404.4788445808204),
        d(3, 4),
        ("R", 4, 5, 81920.0),
        ("R", 5, 0, 8.0),
        ("V", 1, 0, 5.0),
        ("I", 0, 5, 0.024788643140305912),
        d(2, 6),
        ("R", 6, 7, 3.637978807091713e-12),
        d(7, 1),
        ("R", 1, 2, 29.221472019099817),
        ("I", 2, 1, 0.061),
        d(1, 7),
        ("R", 3, 6, 80000.0),
        d(2, 3),
    ],
    # A nearly balanced bridge beside 65 kA: the kernel's residual of 5e-10 was 1.3e-9 of the bridge's voltage.
    "bridge beside a large current": [
        ("R", 0, 1, 31222.593197058355),
        ("R", 0, 2, 31222.593197058355),
        ("R", 1, 1, 31222.593197058355),
        ("R", 2, 1, 31222.593197058355),
        d(1, 2),
        ("R", 1, 3, 2.3e-09),
        ("R", 3, 0, 20.0),
        ("I", 1, 0, 0.012),
        ("R", 1, 4, 4900.0),
        ("R", 1, 5, 4900.0049),
        ("R", 4, 3, 4900.0),
        ("R", 5, 3, 4900.0),
        ("R", 4, 5, 0.002996495096102881),
        ("V", 1, 0, 0.011905894714538547),
        ("R", 2, 6, 131072.0),
        ("R", 2, 7, 131072.00000013108),
        ("R", 6, 2, 131072.0),
        ("R", 7, 2, 131072.0),
        ("R", 6, 7, 0.00390625),
        ("I", 2, 2, 0.74),
        ("R", 4, 8, 48.0),
        ("R", 4, 9, 48.0),
        ("R", 8, 7, 48.0),
        ("R", 9, 7, 48.0),
        d(8, 9),
        ("R", 8, 10, 1.7e-08),
        ("R", 10, 0, 700.0),
        ("I", 7, 4, 384.0),
        d(2, 11),
        ("R", 11, 0, 1.691986280778154),
        ("R", 11, 12, 1.52587890625e-05),
        ("R", 5, 13, 1.2446553240560626e-06),
        ("R", 4, 13, 3.8e-06),
        ("I", 4, 13, -65536.0),
        ("R", 13, 6, 0.25),
        ("I", 13, 6, 640.0),
    ],
    # Of needs of 6e-5 A and 3e-18 A, the largest one is rounded the most.
    "loop with needs of two sizes": [
        ("R", 0, 1, 100663296.0),
        ("R", 1, 2, 4.76837158203125e-06),
        ("R", 1, 3, 2.2822703323349254e-06),
        ("R", 0, 4, 134217728.0),
        ("R", 2, 5, 2.9599335509243325e-05),
        ("R", 1, 6, 8192.0),
        ("R", 4, 7, 3.3969402604072695e-06),
        ("R", 4, 8, 5.7220458984375e-06),
        ("R", 8, 9, 1.4e-08),
        ("R", 1, 10, 192.0),
        ("R", 9, 11, 7.127881482982172e-09),
        d(3, 12),
        ("R", 12, 0, 49152.0),
        d(11, 13),
        ("R", 13, 0, 2.0),
        ("V", 4, 10, 0.0),
        ("V", 6, 6, 0.0),
        ("L", 4, 4, 0.001),
        ("V", 3, 6, 0.0),
        ("V", 12, 12, 0.0),
        ("V", 10, 4, 0.0),
        ("L", 6, 6, 0.001),
        d(1, 4),
        ("R", 8, 10, 67108864.0),
        ("I", 8, 10, -6.103515625e-05),
        d(1, 4),
        ("R", 12, 0, 49152.0),
    ],
    # A part that hangs on ground by one blocking diode.
    "part behind a diode": [
        ("R", 1, 2, 0.0),
        ("R", 3, 4, 1e6),
        ("R", 3, 5, 1e6),
        ("I", 3, 5, 5.0),
        ("R", 2, 3, 1.0),
        d(1, 0),
        ("R", 0, 6, 1e9),
        ("I", 0, 6, 3.0),
        ("V", 1, 4, 3.0),
    ],
}


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


@pytest.mark.parametrize("name", [*FOUND, *DEFECTS])
def test_found_circuit(name: str) -> None:
    assert examine(sketch_of((FOUND | DEFECTS)[name])) == []


def test_a_voltage_between_larger_ones() -> None:
    """In rationals the bridge's voltage is −0.36328975983146095 V."""
    point = circuitsim.solve(sketch_of(FOUND["bridge beside a large current"]).circuit())
    assert point.drops[24] == pytest.approx(-0.36328975983146095, rel=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_cancelling_sources_in_any_order(seed: int) -> None:
    """As in the deck, and with its cards in other orders."""
    order = np.random.default_rng(seed).permutation(len(CARDS)) if seed else range(len(CARDS))
    assert examine(sketch_of([CARDS[k] for k in order])) == []
