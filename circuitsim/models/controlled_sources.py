"""Controlled sources, whose branch depends on voltages and currents elsewhere (`circuitsim.circuit.laws`).

They have no energy function in general and are outside the convex program (`circuitsim.controlled`).
"""

from circuitsim.models.base import ElementModel, Multiplier, Parameter, Symbol, arrow

_DIAMOND = ((-0.2, 0.0), (0.0, 0.17), (0.2, 0.0), (0.0, -0.17), (-0.2, 0.0))
_VOLTAGE = Symbol(0.2, (((-0.15, 0.0), (-0.07, 0.0)), *(((x, 0.04), (x, -0.04)) for x in (-0.11, 0.11))), _DIAMOND)
_CURRENT = Symbol(0.2, arrow(-0.1, 0.11), _DIAMOND)
_NULLOR = Symbol(0.2, (), ((-0.2, 0.0), (0.17, 0.2), (0.17, -0.2), (-0.2, 0.0)))
_ENDS = ("positive", "negative")

VOLTAGE_BY_VOLTAGE = ElementModel(
    "E",
    "voltage-controlled voltage source",
    _ENDS,
    "v = E v_control",
    _VOLTAGE,
    Parameter("gain"),
    ("gain",),
)
CURRENT_BY_CURRENT = ElementModel(
    "F",
    "current-controlled current source",
    ("first", "second"),
    "i = F i_control",
    _CURRENT,
    Parameter("gain"),
    ("gain",),
    Multiplier.MULTIPLIES,
)
CURRENT_BY_VOLTAGE = ElementModel(
    "G",
    "voltage-controlled current source",
    ("first", "second"),
    "i = G v_control",
    _CURRENT,
    Parameter("transconductance", "S"),
    ("gain",),
    Multiplier.MULTIPLIES,
)
VOLTAGE_BY_CURRENT = ElementModel(
    "H",
    "current-controlled voltage source",
    _ENDS,
    "v = H i_control",
    _VOLTAGE,
    Parameter("transresistance", "Ω"),
    ("gain",),
)
AFFINE_VOLTAGE = ElementModel(
    "B",
    "behavioural voltage source",
    _ENDS,
    "v = V + Σ a v_control + Σ r i_control",
    _VOLTAGE,
)
AFFINE_CURRENT = ElementModel(
    "B",
    "behavioural current source",
    ("first", "second"),
    "i = I + Σ g v_control + Σ b i_control",
    _CURRENT,
)
IDEAL_AMPLIFIER = ElementModel(
    "E",
    "ideal operational amplifier",
    _ENDS,
    "v_control = 0, any v and i",
    _NULLOR,
)

CONTROLLED = (
    VOLTAGE_BY_VOLTAGE,
    CURRENT_BY_CURRENT,
    CURRENT_BY_VOLTAGE,
    VOLTAGE_BY_CURRENT,
    AFFINE_VOLTAGE,
    AFFINE_CURRENT,
    IDEAL_AMPLIFIER,
)
