"""The ideal current source."""

from circuitsim.models.base import ElementModel, Multiplier, Parameter
from circuitsim.models.shapes import RADIUS, Symbol, arrow, circle

MODEL = ElementModel(
    "I",
    "current source",
    ("first", "second"),
    "i = I",
    "I v",
    "",
    "{name} {first} {second} {value}",
    Symbol(RADIUS, arrow(-0.1, 0.11), circle(RADIUS)),
    Parameter("current", "A", trainable=True),
    ("dc", "c"),
    Multiplier.MULTIPLIES,
)
