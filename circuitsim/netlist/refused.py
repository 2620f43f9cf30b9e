"""What the language refuses, by name and with the reason, and what it accepts without effect."""

from __future__ import annotations

LINE_HINT = "write sections of R, L and C; for the operating point alone a resistor between its ends (0 Ω without loss)"
"""What to write for a line."""

ELEMENTS: dict[str, tuple[str, str]] = {
    "o": ("a lossy transmission line", LINE_HINT),
    "p": ("a coupled transmission line", LINE_HINT),
    "t": ("a transmission line", LINE_HINT),
    "u": ("a distributed RC line", LINE_HINT),
    "y": ("a lossy transmission line", LINE_HINT),
}
"""First letter → (what it is, reason or hint)."""

FOREIGN: dict[str, str] = {
    "a": "XSPICE code model",
    "j": "transistor (JFET)",
    "m": "transistor (MOSFET)",
    "n": "Verilog-A device",
    "q": "transistor (bipolar)",
    "z": "transistor (MESFET)",
}
"""First letter → an element with a model of its own kind; those of a deck are refused together."""

FOREIGN_HINT = (
    "such a deck needs a program with models of them, as ngspice; or write each as what it is at its operating point: "
    "a resistor, an open, a diode and a source"
)
"""What a deck with such elements needs."""

NUMERICAL = ("NUMD", "NBJT", "NUMOS")
"""Types of the numerical models of ngspice (CIDER)."""

NUMERICAL_HINT = (
    "such a deck needs ngspice built with CIDER; or write the diode's law: .model NAME D(IS=… N=… RS=…), or points of "
    "its measured curve: .model NAME PWL(v1 i1 v2 i2 …)"
)
"""What an element with a numerical model needs."""

CARDS: dict[str, tuple[str, str]] = {
    ".macro": ("sub-circuits begin with .subckt", "write .subckt"),
    ".eom": ("sub-circuits end with .ends", "write .ends"),
    ".connect": ("it would join nodes", "write a resistor of 0 Ω"),
    ".alter": ("a deck is one circuit", "use .step param, or a deck for each"),
}

NO_EFFECT = frozenset(
    (
        ".nodeset",
        ".ic",
        ".width",
        ".probe",
        ".meas",
        ".measure",
        ".four",
        ".fourier",
        ".csparam",
        ".backanno",
        ".title",
        ".protect",
        ".unprotect",
        ".prot",
        ".unprot",
        ".graph",
        ".savebias",
        ".loadbias",
        ".wave",
        ".net",
        ".probe64",
        ".watch",
        ".autoconverge",
        ".text",
        ".stmlib",
        ".dcvolt",
        ".result",
        ".preprocess",
    )
)
"""Cards that cannot change the operating point."""

OVER_TIME = frozenset((".ic", ".meas", ".measure", ".four", ".fourier"))
"""Those of them that act over time."""

OPTIONS = frozenset((".option", ".options", ".opt"))
"""Spellings of the card of options."""

ADVICE: dict[str, str] = {
    ".mc": "circuitsim.sweep(deck, {NAME: values}) takes values drawn beforehand",
    ".wcase": "circuitsim sweep DECK --vary R1=0.95k,1.05k --vary R2=… takes all combinations of the limits",
}
"""What does instead, of the analyses that are functions of operating points."""

OTHER_ANALYSES: dict[str, str] = {
    ".noise": "noise",
    ".disto": "distortion",
    ".pz": "pole-zero",
    ".sp": "scattering-parameter",
    ".pss": "periodic-steady-state",
    ".hb": "harmonic-balance",
    ".mc": "Monte Carlo",
    ".wcase": "worst-case",
    ".sampling": "Monte Carlo",
    ".embeddedsampling": "Monte Carlo",
    ".pce": "polynomial-chaos",
}
"""Analyses that are not done; the operating point is solved instead."""

FORMULAS = {
    "q": ("a charge by a formula (Q=)", "write the capacitance near the operating point: C=1u"),
    "flux": ("a flux by a formula (FLUX=)", "write the inductance near the operating point: L=1m"),
}
"""Parameters of capacitors and inductors that LTspice and Xyce know: what they state, and what to write."""
