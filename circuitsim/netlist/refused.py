"""What the language refuses, by name and with the reason, and what it accepts without effect."""

from __future__ import annotations

_ENERGY = "a controlled source has no energy function in general"
_TRANSISTOR = "only R, D, V, I, L, C and X are known"

ELEMENTS: dict[str, tuple[str, str]] = {
    "a": ("an XSPICE code model", _TRANSISTOR),
    "b": ("a behavioural source", _ENERGY),
    "e": ("a voltage-controlled voltage source", _ENERGY),
    "f": ("a current-controlled current source", _ENERGY),
    "g": ("a voltage-controlled current source", _ENERGY),
    "h": ("a current-controlled voltage source", _ENERGY),
    "j": ("a transistor (JFET)", _TRANSISTOR),
    "k": ("a coupling of inductors", "inductors are shorts at the operating point: leave it out"),
    "m": ("a transistor (MOSFET)", _TRANSISTOR),
    "n": ("a Verilog-A device", _TRANSISTOR),
    "o": ("a lossy transmission line", "at DC it is a resistor: write it as one"),
    "p": ("a coupled transmission line", "at DC its conductors are resistors: write them"),
    "q": ("a transistor (bipolar)", _TRANSISTOR),
    "s": ("a voltage-controlled switch", "write a resistor or a short for the state it is in"),
    "t": ("a transmission line", "at DC it is two wires: write them as 0 Ω resistors"),
    "u": ("a uniform RC line", "at DC it is a resistor: write it as one"),
    "w": ("a current-controlled switch", "write a resistor or a short for the state it is in"),
    "y": ("a single lossy transmission line", "at DC it is a resistor: write it as one"),
    "z": ("a transistor (MESFET)", _TRANSISTOR),
}
"""First letter → (what it is, reason or hint)."""

CARDS: dict[str, tuple[str, str]] = {
    ".if": ("conditional cards are not read", "write the branch that is meant, or use {a ? b : c}"),
    ".elseif": ("conditional cards are not read", "write the branch that is meant, or use {a ? b : c}"),
    ".else": ("conditional cards are not read", "write the branch that is meant, or use {a ? b : c}"),
    ".endif": ("conditional cards are not read", "write the branch that is meant, or use {a ? b : c}"),
    ".macro": ("sub-circuits begin with .subckt", "write .subckt"),
    ".eom": ("sub-circuits end with .ends", "write .ends"),
    ".connect": ("it would join nodes", "write a resistor of 0 Ω"),
    ".alter": ("a deck is one circuit", "use .step param, or a deck for each"),
    ".data": ("tables of values are not read", "use .step param NAME list …"),
}

NO_EFFECT = frozenset(
    (
        ".nodeset", ".ic", ".width", ".plot", ".probe", ".meas", ".measure", ".four", ".fourier", ".csparam",
        ".backanno", ".title", ".protect", ".unprotect", ".prot", ".unprot", ".graph",
    )
)  # fmt: skip
"""Cards that cannot change the operating point."""

OPTIONS = frozenset((".option", ".options", ".opt"))
"""Spellings of the card of options."""

OTHER_ANALYSES: dict[str, str] = {
    ".tran": "transient", ".ac": "small-signal", ".noise": "noise", ".tf": "transfer-function",
    ".disto": "distortion", ".pz": "pole-zero", ".sens": "sensitivity", ".sp": "scattering-parameter",
    ".pss": "periodic-steady-state", ".hb": "harmonic-balance",
}  # fmt: skip
"""Analyses that are not done; the operating point is solved instead."""
