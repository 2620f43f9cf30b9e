"""The resistor."""

from circuitsim.models.base import ElementModel, Multiplier, Parameter
from circuitsim.models.shapes import Symbol, zigzag

MODEL = ElementModel(
    "R",
    "resistor",
    ("first", "second"),
    "v = R i",
    "v²/(2R)",
    "v = 0 where R = 0",
    "{name} {first} {second} {value}",
    Symbol(0.3, graded=zigzag(0.3, 0.085)),
    Parameter("resistance", "Ω", 0.0, trainable=True),
    ("r", "resistance"),
    Multiplier.DIVIDES,
)
