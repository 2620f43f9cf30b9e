"""The capacitor: open at DC."""

from circuitsim.models.base import ElementModel, Multiplier, Parameter
from circuitsim.models.shapes import Symbol

MODEL = ElementModel(
    "C",
    "capacitor",
    ("first", "second"),
    "i = 0 (open at DC)",
    "",
    "",
    "{name} {first} {second} {value}",
    Symbol(0.04, tuple(((x, 0.14), (x, -0.14)) for x in (-0.04, 0.04))),
    Parameter("capacitance", "F"),
    ("c", "capacitance"),
    Multiplier.MULTIPLIES,
)
