"""The bidirectional amplifier (Scellier 2024, App. D).

It is no device of elementary parts: `circuitsim.circuit.amplifiers` takes all amplifiers of a circuit out at once, by a
change of coordinates that depends on the gains around every loop.
"""

from circuitsim.models.base import POSITIVE, ElementModel, Parameter
from circuitsim.models.shapes import Symbol

MODEL = ElementModel(
    "X",
    "bidirectional amplifier",
    ("left", "right"),
    "v_right = a v_left, i_right = a i_left",
    "",
    "v_right = a v_left",
    "{name} {first} {second} bidiramp gain={value}",
    Symbol(0.15, body=((-0.15, 0.16), (0.15, 0.0), (-0.15, -0.16))),
    Parameter("gain", "", POSITIVE),
    ("gain",),
)
