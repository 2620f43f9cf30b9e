"""Circuits whose sets of conducting diodes leave voltages or currents open, against enumeration in exact arithmetic."""

from __future__ import annotations

import pytest
from judge import Answer, judged

import circuitsim

BRIDGE = """a winding behind four diodes
V1 in 0 {volts}
Rp in a 5
E1 x t a 0 0.5
F1 a 0 E1 -0.5
Rs x b 0.1
D1 b o
D2 t o
D3 0 b
D4 0 t
V2 p 0 {load}
R2 o p 1
.end
"""
LOOPS = """diodes beside each other and beside sources
V1 in 0 {volts}
R1 in a 2
E1 e 0 in 0 2
R2 e a 3
D1 a b
D2 a b
D3 b c
V2 d c 0
D4 a d
I1 f 0 {load}
D5 f c
D6 f b
R3 c 0 1
.end
"""


MEASURED = {
    "a floating winding": BRIDGE.format(volts=3.0, load=5.0).replace("R2 o p 1", "R2 o p 1\nE2 q 0 b 0 2\nV3 q 0 4"),
    "a loop of diodes": LOOPS.format(volts=3.0, load=0.0).replace("D4 a d", "D4 a g\nV4 g d 0\nF2 0 h V4 1\nR4 h 0 1"),
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (BRIDGE.format(volts=3.0, load=5.0), Answer.SEVERAL),
        (BRIDGE.format(volts=0.0, load=0.0), Answer.UNIQUE),
        (BRIDGE.format(volts=-2.0, load=0.0), Answer.UNIQUE),
        (LOOPS.format(volts=3.0, load=0.0), Answer.UNKNOWN),
        (LOOPS.format(volts=-1.0, load=2.0), Answer.NONE),
        (MEASURED["a floating winding"], Answer.SINGULAR),
        (MEASURED["a loop of diodes"], Answer.UNKNOWN),
    ],
)
def test_what_is_left_open_is_chosen_but_where_a_source_measures_it(text: str, answer: Answer) -> None:
    assert judged(circuitsim.loads(text)) is answer
