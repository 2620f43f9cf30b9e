"""The ideal voltage source."""

from circuitsim.models.base import ElementModel, Parameter
from circuitsim.models.shapes import RADIUS, Symbol, circle

MODEL = ElementModel(
    "V",
    "voltage source",
    ("positive", "negative"),
    "v = V",
    "",
    "v = V",
    "{name} {first} {second} {value}",
    Symbol(
        RADIUS, (((-0.12, 0.0), (-0.05, 0.0)), *(((x, 0.035), (x, -0.035)) for x in (-0.085, 0.085))), circle(RADIUS)
    ),
    Parameter("voltage", "V"),
    ("dc",),
)
