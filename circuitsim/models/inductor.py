"""The inductor: a short at DC."""

from circuitsim.models.base import ElementModel, Multiplier, Parameter
from circuitsim.models.shapes import Symbol, coil

MODEL = ElementModel(
    "L",
    "inductor",
    ("first", "second"),
    "v = 0 (a short at DC)",
    "",
    "v = 0",
    "{name} {first} {second} {value}",
    Symbol(0.28, graded=coil(0.28)),
    Parameter("inductance", "H"),
    ("l", "inductance"),
    Multiplier.DIVIDES,
)
