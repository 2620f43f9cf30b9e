"""The elementary elements, which devices consist of; the convex program and its kernels use their codes.

The bidirectional amplifier (Scellier 2024, App. D) is not a device of elementary parts: `circuitsim.circuit.amplifiers`
eliminates all amplifiers of a circuit by a change of coordinates that depends on the gains around every loop.
"""

from circuitsim.models.base import (
    DIODE,
    POSITIVE,
    RADIUS,
    ElementModel,
    Multiplier,
    Parameter,
    Symbol,
    arrow,
    circle,
    coil,
    zigzag,
)

MODELS = (
    ElementModel(
        "R",
        "resistor",
        ("first", "second"),
        "v = R i",
        Symbol(0.3, graded=zigzag(0.3, 0.085)),
        Parameter("resistance", "Ω", 0.0, trainable=True),
        ("r", "resistance"),
        Multiplier.DIVIDES,
    ),
    ElementModel(
        "D",
        "ideal diode",
        ("anode", "cathode"),
        "v ≤ 0, i ≥ 0, v i = 0",
        DIODE,
        spice="{name} {first} {second}",
    ),
    ElementModel(
        "V",
        "voltage source",
        ("positive", "negative"),
        "v = V",
        Symbol(
            RADIUS,
            (((-0.12, 0.0), (-0.05, 0.0)), *(((x, 0.035), (x, -0.035)) for x in (-0.085, 0.085))),
            circle(RADIUS),
        ),
        Parameter("voltage", "V"),
        ("dc",),
    ),
    ElementModel(
        "I",
        "current source",
        ("first", "second"),
        "i = I",
        Symbol(RADIUS, arrow(-0.1, 0.11), circle(RADIUS)),
        Parameter("current", "A", trainable=True),
        ("dc", "c"),
        Multiplier.MULTIPLIES,
    ),
    ElementModel(
        "L",
        "inductor",
        ("first", "second"),
        "v = 0 (a short at DC)",
        Symbol(0.28, graded=coil(0.28)),
        Parameter("inductance", "H"),
        ("l", "inductance"),
        Multiplier.DIVIDES,
    ),
    ElementModel(
        "C",
        "capacitor",
        ("first", "second"),
        "i = 0 (open at DC)",
        Symbol(0.04, tuple(((x, 0.14), (x, -0.14)) for x in (-0.04, 0.04))),
        Parameter("capacitance", "F"),
        ("c", "capacitance"),
        Multiplier.MULTIPLIES,
    ),
    ElementModel(
        "X",
        "bidirectional amplifier",
        ("left", "right"),
        "v_right = a v_left, i_right = a i_left",
        Symbol(0.15, body=((-0.15, 0.16), (0.15, 0.0), (-0.15, -0.16))),
        Parameter("gain", "", POSITIVE),
        ("gain",),
        spice="{name} {first} {second} bidiramp gain={value}",
    ),
)
