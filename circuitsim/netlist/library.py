"""Sub-circuits that need no definition: amplifiers and a transformer, in the words of the language itself.

A deck's own sub-circuit of the same name takes precedence.
"""

from __future__ import annotations

from functools import cache

from circuitsim.netlist.reader import DeckReader
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Files, Source

TEXT = """\
* v(plus) = v(minus); the output supplies what that needs (nullor)
.subckt ideal_opamp plus minus out
Eout out 0 OPAMP plus minus
.ends
* v(out) = gain (v(plus) - v(minus)), between low and high
.subckt limited_opamp plus minus out gain=1e5 low=-15 high=15
Egain inside 0 plus minus {gain}
Rlimit inside limited 1meg
Dhigh limited top
Vhigh top 0 {high}
Dlow bottom limited
Vlow bottom 0 {low}
Eout out 0 limited 0 1
.ends
* v(c,d) = ratio v(a,b), the current into a is -ratio times the current into c
.subckt ideal_transformer a b c d ratio=1
Esecond c d a b {ratio}
Ffirst a b Esecond {-ratio}
.ends
"""


@cache
def _scopes() -> dict[str, Scope]:
    reader = DeckReader(Files(None, ()))
    reader.read(Source("<library>", "", TEXT), 1)
    reader.close()
    return reader.top.subcircuits


def scope(name: str) -> Scope | None:
    """The sub-circuit called ``name`` (case does not matter), or None."""
    return _scopes().get(name.lower())
