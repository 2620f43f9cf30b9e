"""The ideal diode: no forward drop, no reverse current."""

from circuitsim.models.base import ElementModel
from circuitsim.models.shapes import TRIANGLE, Symbol

MODEL = ElementModel(
    "D",
    "ideal diode",
    ("anode", "cathode"),
    "v ≤ 0, i ≥ 0, v i = 0",
    "",
    "v ≤ 0",
    "{name} {first} {second}",
    Symbol(0.12, (((0.12, 0.13), (0.12, -0.13)),), body=TRIANGLE),
)
