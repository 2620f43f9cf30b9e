"""Plain element lines, many at once: a name, two nodes and a number or, of a diode, a model.

A regular expression finds how far such lines go; their words go to the columns of a scope. A line that needs a message,
or that the next one may continue, is left to the reader of cards.
"""

from __future__ import annotations

import math
import re
from array import array

from circuitsim.circuit.elements import DIODE
from circuitsim.netlist.cards import WINDOW, Card, Lines
from circuitsim.netlist.parts import CODES, MINIMUM, NO_EFFECT, USES_KEPT
from circuitsim.netlist.scope import ModelUse, Scope
from circuitsim.units import NumberError, parse

MOST = 1 << 18
"""Characters that are matched together, at most."""

DIGITS = 300
"""A number of fewer digits, without an exponent, neither overflows nor underflows."""

_NAME = r"[!#%&*+\-./0-9:<>?@A-Z\[\\\]^_`a-z|~]"
_NODES = rf"{_NAME}*+[ \t]++{_NAME}++[ \t]++{_NAME}++[ \t]++"
# No unit, no capital M (milli or mega?), no A (atto or ampere?): they need a warning.
_SIZE = r"(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+(?:[kKgGtTuUnNpPm]|[mM][eE][gG])?+"
_MODEL = rf"(?!(?i:{'|'.join(sorted(NO_EFFECT))})\s)[A-Za-z0-9_]++"
_LINE = rf"(?:[Rr]{_NODES}\+?+{_SIZE}|[CLVIclvi]{_NODES}[+-]?+{_SIZE}|[Dd]{_NODES}{_MODEL})"
_LINES = re.compile(rf"(?:[ \t]*+{_LINE}[ \t]*+\n(?=[A-Za-z.]))++")


class _Numbers(dict[str, float]):
    """Values by their text; nan where a double cannot hold one."""

    def __missing__(self, text: str) -> float:
        short = len(text) < DIGITS and text.replace(".", "", 1).isdecimal()
        try:
            value = self[text] = float(text) if short else parse(text) + 0.0
        except NumberError:
            value = self[text] = math.nan
        return value


def take(lines: Lines, scope: Scope) -> bool:
    """Read plain lines from the current one on into ``scope``; whether there was one."""
    found = _LINES.match(lines.text, lines.start, lines.start + lines.window)
    if found is None:
        return False
    comment = found[0].find("//")
    text = found[0] if comment < 0 else found[0][: found[0].rfind("\n", 0, comment) + 1]
    words, known = text.split(), _Numbers()
    names, position = words[::4], len(scope.kind)
    kinds = [CODES[name[0]] for name in names]
    values = [math.nan if kind == DIODE else known[word] for kind, word in zip(kinds, words[3::4])]
    index: dict[str, int] = {}
    for key, kind, value in zip(map(str.lower, names), kinds, values):
        if key in scope.index or key in index or not (value >= MINIMUM[kind] or kind == DIODE):
            break
        index[key] = position + len(index)
    count = len(index)
    lines.window = min(2 * lines.window, MOST) if count == len(names) else WINDOW
    if count == 0:
        return False
    nodes, node = scope.nodes, scope.node
    ends = [nodes[w] if w in nodes else node(w) for k in range(0, 4 * count, 4) for w in words[k + 1 : k + 3]]
    for k in range(count):
        if kinds[k] == DIODE:
            _note(scope, lines, k, names[k], words[4 * k + 3])
    scope.at(lines.source)
    scope.names.extend(names[:count])
    scope.index.update(index)
    scope.kind.extend(kinds[:count])
    scope.first.extend(ends[::2])
    scope.second.extend(ends[1::2])
    scope.value.extend(values[:count])
    scope.lines.extend(range(lines.number, lines.number + count))
    lines.skip(count - 1)  # the iteration goes to the next
    return True


def _note(scope: Scope, lines: Lines, k: int, name: str, model: str) -> None:
    """Keep the diode on the ``k``-th line from the current one as one that names a model."""
    uses = scope.uses.setdefault(model.lower(), [])
    if len(uses) < USES_KEPT:
        number = lines.number + k
        card = Card(lines.source, number, lines.source.line(number))
        uses.append(ModelUse(card, len(card.text.rstrip()) - len(model), name, model))
    scope.modelled.setdefault(model.lower(), array("q")).append(len(scope.kind) + k)
