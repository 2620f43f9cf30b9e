"""The reserved sub-circuit ``bidiramp``: an element here, two controlled sources in other SPICE programs.

    Xname left right bidiramp gain=4      v(right) = 4 v(left), i(out of right) = 4 i(into left)

A deck may hold (or include) its definition, so that it runs in ngspice as it is; here the definition is not expanded,
and one that differs is refused rather than misread.
"""

from __future__ import annotations

from circuitsim.netlist.scope import Scope

NAME = "bidiramp"
GAIN = "gain"
DEFAULT_GAIN = 1.0

DEFINITION = f"""\
.subckt {NAME} left right {GAIN}=1
Eforward inside 0 left 0 {{{GAIN}}}
Vright inside right 0
Fback left 0 Vright {{1/{GAIN}}}
.ends {NAME}
"""
"""The definition for ngspice: voltage transfer forwards, current transfer backwards."""


def normal(card: str) -> str:
    """A card without regard to case and blanks."""
    return " ".join(card.lower().split())


CARDS = [normal(card) for card in DEFINITION.splitlines()]


class _BuiltIn(Scope):
    """The one scope of its kind, in every process."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "AMPLIFIER_SCOPE"


def _built_in() -> Scope:
    """A scope with the ports and the parameter of the amplifier, without elements."""
    scope = _BuiltIn(NAME)
    scope.ports = [scope.node("left"), scope.node("right")]
    scope.defaults[GAIN] = DEFAULT_GAIN
    return scope


AMPLIFIER_SCOPE = _built_in()
