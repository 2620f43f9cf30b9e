"""What each deck of netlists/ must give, worked out by hand; the closed form stands beside each number.

``V`` holds node voltages (V), ``I`` branch currents (A), ``ON`` the conducting diodes (all others block), ``FREE`` the
nodes without a unique voltage with their intervals, ``NONUNIQUE`` the elements without a unique current, ``FLOATING``
the nodes without a path to ground. What is absent from an entry is absent from the solution, but for ``ON``. Larger
decks are checked against independent computations in ``test_bundled_larger.py``.
"""

from __future__ import annotations

from math import cos, log1p, pi, radians, sin
from typing import Any

PHI = (1 + 5**0.5) / 2  # golden ratio


def zeners() -> float:
    """Current left for the two Zener-like parts: 3.6 V over 330 Ω less 8.4 V over 1 kΩ."""
    return 3.6 / 330 - 8.4 / 1000


THERMAL = 1.38064852e-23 * 300.15 / 1.6021766208e-19  # k T / q at 27 °C

# Unbalanced bridge: Thévenin voltages of both arms, one loop through the meter.
ARM = 10 * 352 / 702
LOOP = (ARM - 5) / (175 + 350 * 352 / 702 + 100)

# Crossbar 2 × 2, v(r1) = 1 V, by hand: c2 and r2 are inner nodes of the chain 10 kΩ + 10 kΩ + 10 kΩ beside 1 MΩ.
SNEAK = 1 / (1 / 1e6 + 1 / 30e3)
READ = 1e3 / (1e3 + SNEAK)

# Star of the six-pulse bridge: phases at 20°, −100° and 140°; cos and sin only restate the deck's sines.
HIGH, LOW = 325 * sin(radians(140)), -325 * cos(radians(10))

EXPECTED: dict[str, dict[str, Any]] = {
    "divider": {"V": {"in": 6, "out": 4}, "I": {"R1": 6 / 3000, "V1": -6 / 3000}},
    # Both branches halve 1 V; the diode between them sees nothing.
    "learn-filter": {"V": {"in": 0, "a": 0, "b": 0}, "I": {"L1": 0, "R2": 0}, "ON": set()},
    "learn-ripple": {
        "V": {"a": 0, "b": 0, "s": 0},
        "I": {"D1": 0, "R1": 0, "V1": 0},
        "ON": set(),
        "FREE": {"p": (-0.7, 0.7), "m": (-0.7, 0.7), "o": (-0.7, 0.7)},
    },
    "learn-divider": {"V": {"out": 1 / 2, "b": 1 / 2}, "I": {"R5": 0, "D1": 0, "V1": -1e-3}, "ON": set()},
    "wheatstone-balanced": {"V": {"a": 20 / 3, "b": 20 / 3}, "I": {"Rmeter": 0}},
    "wheatstone-unbalanced": {
        "V": {"a": 5 + 175 * LOOP, "b": ARM - 350 * 352 / 702 * LOOP},
        "I": {"Rmeter": -LOOP},
    },
    "superposition": {"V": {"out": 12 * 4 / 6 + 1.5e-3 * (4e3 / 3)}},  # 8 V + 2 V
    "r2r-dac": {"V": {"out": 5.12 * 178 / 256}},
    "rectifier-half-wave": {"V": {"1": 1, "2": 1 / 2, "3": 1 / 2}, "I": {"D1": 1 / 2, "V1": -1 / 2}, "ON": {"D1"}},
    # At time 0; over time: tests/transient.
    "half-wave-smoothed": {"V": {"in": 0, "out": 0}, "I": {"D1": 0}, "ON": set()},
    "buck-converter": {"V": {"sw": -1, "a": 0, "out": 0}, "I": {"L1": 0}, "ON": set()},
    "rectifier-bridge-smoothed": {"V": {"a": 0, "b": 0, "out": 0}, "I": {"R1": 0}, "ON": set()},
    "voltage-doubler": {"V": {"in": 0, "out": 0}, "I": {"R1": 0}, "ON": set()},
    "cockcroft-walton": {"V": {"in": 0, "b3": 0}, "I": {"R1": 0}, "ON": set()},
    "clamp-capacitor": {"V": {"in": 0, "out": 0}, "I": {"R1": 0}, "ON": set()},
    "peak-detector": {"V": {"in": 0, "out": 0}, "I": {"R1": 0}, "ON": set()},
    "clipper-1n4148": {"V": {"in": 0, "out": 0}, "I": {"R1": 0}, "ON": set()},
    "rectifier-six-pulse-smoothed": {
        "V": {"out": 50 * 3**0.5, "n": -50 * 3**0.5},
        "I": {"L1": 5 * 3**0.5},
        "ON": {"D3", "D5"},
    },
    # An open switch of 10 MΩ; a closed one of 10 mΩ beside the coil's 100 Ω.
    "buck-boost-converter": {"V": {"in": 12, "a": 0, "out": 0, "g": 0}, "I": {"S1": 12 / 10e6}, "ON": set()},
    "flyback-converter": {"V": {"in": 24, "d": 24, "out": 0}, "I": {"S1": 24 / 10e6, "L2": 0}, "ON": set()},
    "relay-flyback": {"V": {"d": 12 * 0.01 / 100.01, "g": 5}, "I": {"L1": 12 / 100.01}, "ON": set()},
    "charge-sharing": {"V": {"g": 0}, "I": {"S1": 0}, "FLOATING": {"a", "b"}},
    # Over frequency: tests/small_signal.
    "lowpass-butterworth": {"V": {"in": 1, "a": 1 / 2, "out": 1 / 2}, "I": {"L1": 1 / 1200, "C1": 0}},
    "coupled-resonators": {"V": {"a": 0, "out": 0}, "I": {"L1": 1e-3, "L2": 0}},
    # The open switch is 10 MΩ beside the load.
    "boost-converter": {"V": {"in": 5, "a": 5, "out": 5, "g": 0}, "I": {"D1": 5 / 20, "S1": 5 / 10e6}, "ON": {"D1"}},
    # Gains of 101 and 2; 1.01 V - 1 V.
    "amplifier-instrumentation": {"V": {"out": 2 * 101 * 0.01, "x": 1 - 5e3 * 1e-4}, "I": {"Rg": -1e-4}},
    # N k T / q times the logarithm of 1 mA / 1 pA; constants as in ngspice.
    "amplifier-logarithm": {"V": {"n": 0, "out": -1.5 * THERMAL * log1p(1e9)}, "I": {"D1": 1e-3}, "ON": set()},
    "negative-resistance": {"V": {"a": 1, "m": 1, "out": 2}, "I": {"RA": 2e-3, "R1": 1e-3}},
    "rectifier-precision": {"V": {"out": 1.5, "x": 0}, "I": {"R4": -75e-6, "D1": 150e-6}, "ON": {"D1"}},
    "schmitt-trigger": {"V": {"out": -10, "p": -5}, "I": {"R1": -5e-3}, "ON": {"X1.Dlow"}},
    "frozen-descent": {"V": {"up": 1, "down": -1, "a": 0, "b": 0}, "I": {"D1": 1}, "ON": {"D1"}},
    "rectifier-bridge": {  # 10.1 V over 1 Ω + 100 Ω; the negative half wave uses D2 and D3
        "V": {"p": 0, "cold": 10, "plus": 10, "hot": -0.1},
        "I": {"Rload": 0.1, "D2": 0.1, "D3": 0.1, "V1": 0.1},
        "ON": {"D2", "D3"},
    },
    "rectifier-centre-tapped": {"V": {"a": 12, "b": -12, "out": 12}, "I": {"D1": 12 / 47}, "ON": {"D1"}},
    "rectifier-six-pulse": {
        "V": {"plus": HIGH, "minus": LOW, "a": 325 * sin(pi / 9)},
        "I": {"Rload": (HIGH - LOW) / 100, "Va": 0},
        "ON": {"D3", "D5"},
    },
    "logic-or": {"V": {"out": 5}, "I": {"D1": 5 / 10e3}, "ON": {"D1"}},
    "logic-and": {"V": {"out": 0}, "I": {"D2": 5 / 10e3}, "ON": {"D2"}},
    "logic-sum-of-products": {  # A B is high: 5 V over 1 kΩ and 100 kΩ; C D is low through D's diode
        "V": {"ab": 500 / 101, "out": 500 / 101, "cd": 0},
        "I": {"D1": 5 / 101e3, "Dd": 5 / 1e3},
        "ON": {"D1", "Dd"},
    },
    "logic-decoder": {  # code 2; y1 may be pulled down by either of its diodes, both lines being at 0 V
        "V": {"y0": 0, "y1": 0, "y2": 5, "y3": 0},
        "I": {"D00": 5 / 10e3, "D31": 5 / 10e3, "D10": 2.5 / 10e3, "D11": 2.5 / 10e3},
        "ON": {"D00", "D10", "D11", "D31"},
        "NONUNIQUE": {"D10", "D11", "V1n", "V0"},
    },
    "clipper-shunt": {"V": {"out": 3}, "I": {"D1": 5 / 1e3 - 3 / 3e3}, "ON": {"D1"}},
    "limiter-two-sided": {"V": {"out": -4}, "I": {"D2": 3 / 1e3, "D1": 0}, "ON": {"D2"}},
    "clamp-dc": {"V": {"out": 2, "in": 5}, "I": {"D1": 2 / 1e6, "C1": 0}, "ON": {"D1"}},
    "function-generator": {  # (5 − v)/1 = (v − 1)/2 + (v − 2)/1 + (v − 2.5)/0.5, all in mA: v = 12.5/4.5
        "V": {"out": 25 / 9},
        "I": {"D1": 16 / 18 / 1e3, "D2": 7 / 9 / 1e3, "D3": (25 / 9 - 2.5) / 500},
        "ON": {"D1", "D2", "D3"},
    },
    "selector-maximum": {"V": {"out": 7}, "I": {"D2": 17 / 10e3}, "ON": {"D2"}},
    "selector-minimum": {"V": {"out": -2}, "I": {"D3": 12 / 10e3}, "ON": {"D3"}},
    "current-steering": {  # (2 − 1.5)/100 = 5 mA fit into branch b, the rest goes to the 2 V branch
        "V": {"x": 2, "b": 2},
        "I": {"D1": 5e-3, "D2": 5e-3, "D3": 0},
        "ON": {"D1", "D2"},
    },
    "antiparallel-pair": {"V": {"a": 1 / 2, "b": 1 / 2}, "I": {"R1": 0.5e-3}, "ON": {"D1"}, "NONUNIQUE": {"D1", "D2"}},
    "power-oring": {  # (12 − v)/0.1 + (11 − v)/0.1 = 15
        "V": {"bus": 10.75, "m1": 10.75, "b1": 10.75},
        "I": {"D1": 12.5, "D2": 2.5},
        "ON": {"D1", "D2"},
    },
    "zener-stack": {
        "V": {"mid": 3.3, "out": 8.4},
        "I": {"X1.Dreverse": zeners(), "X2.Vz": zeners(), "X1.Dforward": 0},
        "ON": {"X1.Dreverse", "X2.Dreverse"},
    },
    "cube-of-resistors": {
        "V": {"n000": 5 / 6, "n100": 1 / 2, "n010": 1 / 2, "n001": 1 / 2, "n110": 1 / 3, "n101": 1 / 3, "n011": 1 / 3}
    },
    "ladder-infinite": {  # every section divides by PHI²; the open end is felt at 1e-20 there
        "V": {"X1.Xa.Xa.Xa.m": PHI**-2, "X1.Xa.Xa.m": PHI**-4, "X1.Xa.m": PHI**-8, "X1.m": PHI**-16},
        "I": {"V1": -1 / PHI},
    },
    "crossbar-sneak": {"V": {"c1": READ, "c2": 1 - (1 - READ) / 3, "r2": 1 - 2 * (1 - READ) / 3}},
    "crossbar-sneak-diodes": {  # one loop: 1 V over 1 MΩ and 1 kΩ; c2 may rise and r2 may fall for ever
        "V": {"c1": 1 / 1001, "d11": 1, "d21": 1 / 1001},
        "I": {"D11": 1 / 1001e3, "R22": 0},
        "ON": {"D11"},
        "FREE": {"c2": (1, None), "d12": (1, None), "d22": (1, None), "r2": (None, 1 / 1001)},
    },
    "drn-xor": {  # h1 = (2 + out/2)/2.5 and out = (h1/2 − 1/8)/1.5; the other hidden node is held at 0 V
        "V": {"h1": 47 / 56, "h2": 0, "out": 11 / 56},
        "ON": {"D2"},
    },
    "drn-xor-amplified": {  # drn-xor, times 4 behind the first amplifiers and 8 behind both
        "V": {"left1": 47 / 56, "h1": 4 * 47 / 56, "h2": 0, "lefto": 4 * 11 / 56, "out": 8 * 11 / 56},
        "I": {"Xo": 0},
        "ON": {"D2"},
    },
    "bidirectional-amplifier": {  # 2 V over 1 kΩ on the right, a quarter of that current on the left
        "V": {"left": 1 / 2, "right": 2},
        "I": {"XA": 0.5e-3, "R2": 2e-3, "V1": -0.5e-3},
    },
    "nested-subcircuits": {"V": {"in": 8, "X1.mid": 4, "out": 1}, "I": {"V1": -8 / 50}},
    "floating-bridge": {  # 10 mA divide as 4 : 2 between the arms of 2 kΩ and 4 kΩ
        "V": {"p": 20 / 3, "n": -20 / 3, "b": 10 / 3},
        "I": {"R1": 20 / 3e3, "R4": 10 / 3e3},
    },
    "floating-reference": {"V": {"a": 0, "b": -9, "c": -3}, "I": {"V1": -3e-3}, "FLOATING": {"a", "b", "c"}},
    "nanoampere-beside-kiloampere": {  # node a with both 1 MΩ: i = 1 nA + (1000 − v)/1 TΩ = 2 v/1 MΩ
        "V": {"bus": 1000, "a": 2e-9 / (2e-6 + 1e-12), "b": 2e-9 / (2e-6 + 1e-12)},
        "I": {"Rheavy": 1000, "D1": 2e-15 / (2e-6 + 1e-12)},
        "ON": {"D1"},
    },
    "gate-teraohm": {"V": {"gate": 10 / 3}, "I": {"Rload": 100, "Rupper": 10 / 3e12, "D1": 0}, "ON": set()},
    "parallel-sources": {"V": {"a": 5}, "I": {"V1": -2.5, "V2": -2.5}, "NONUNIQUE": {"V1", "V2"}},
    "diode-loop": {  # 2 A come in at a, 1 A leaves at b and at c: 2 + i, 1 + i and i, least at i = 0
        "V": {"a": 1, "b": 1, "c": 1},
        "I": {"R1": 2, "R2": 1, "R3": 1, "D1": 2, "D2": 1, "D3": 0},
        "NONUNIQUE": {"D1", "D2", "D3"},
        "ON": {"D1", "D2"},
    },
    "photovoltaic-string": {  # 40 V over 8 Ω; each good module shunts 8 − 5 A, the shaded one is bypassed by 5 − 3 A
        "V": {"a": 20, "b": 20, "out": 40},
        "I": {"Rload": 5, "X1.Djunction": 3, "X2.Dbypass": 2, "X3.Djunction": 3},
        "ON": {"X1.Djunction", "X2.Dbypass", "X3.Djunction"},
    },
    "shortest-path": {  # b–c: 9 + 2 = 11 beats 14; a–d: 7 + 15 = 22 loses against b–d: 20; t: 11 + 9 = 20
        "V": {"s": 0, "a": 7, "b": 9, "c": 11, "d": 20, "t": 20},
        "I": {"X8.Dway": 1e-3, "X7.Dway": 2e-3, "X2.Dway": 4e-3, "X1.Dway": 1e-3, "X6.Dway": 1e-3},
    },
    "max-flow": {  # the cut {s, v1, v2, v4} costs 12 + 7 + 4 = 23
        "V": {"s": 1, "v1": 1, "v2": 1, "v4": 1, "v3": 0},
        "I": {"V1": -23, "X4.Dway": 12, "X7.Dway": 7, "X9.Dway": 4, "X8.Dway": 19, "X6.Dway": 11, "X5.Dway": 0},
        # 12 A reach v1 from s, straight or by way of v2.
        "NONUNIQUE": {f"X{k}.{d}" for k in (1, 2, 3) for d in ("Dway", "Drest")},
    },
    "sweep-dead-zone": {"V": {"out": 3 - 1}, "I": {"D1": 2 / 1e3, "D4": 2 / 1e3}, "ON": {"D1", "D4"}},
    "step-load": {"V": {"out": 5}, "I": {"Rload": 5e-3}},
    "lc-filter-dc": {"V": {"a": 13.05, "out": 13.05 * 10 / 10.5}, "I": {"L1": 13.05 / 10.5, "C2": 0}},
    # 1 + 1 kΩ beside 4 + 2 kΩ are 1.5 kΩ: the star's centre is at 6 · 3/4.5 = 4 V, a 1 V above it, b 2/3 V.
    "y-delta": {
        "V": {"a1": 5, "b1": 14 / 3, "X1.m": 4, "a2": 5, "b2": 14 / 3},
    },
}
