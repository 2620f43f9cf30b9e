"""Compiled reading of plain element lines: bytes of a deck to columns and name tables.

A plain line is a name with a known first letter, two nodes and a number, without anything that needs a message; the
first line that is not ends a run. What a run holds is what `circuitsim.netlist.parts.Parts.simple` makes of its lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.circuit.name_table import FREE, PRIME, NameArrays

TAB, NEWLINE, BLANK, STAR, PLUS, MINUS, POINT, SLASH = 9, 10, 32, 42, 43, 45, 46, 47
DIGIT_0, DIGIT_9 = 48, 57
LETTERS = (65, 90)
GND, MEG, LETTER_E = (103, 110, 100), (109, 101, 103), 101
COMMENT_MARKS = (59, 36, 47)
"""``;``, ``$`` and ``/``: a line that begins with one may be a comment."""

NO_TOKEN = frozenset(b"=(),{}'\";$")
"""Characters with a meaning, which no name of a plain line has; ``//`` begins a comment."""

EXACT = 1 << 53
"""Whole numbers up to here are doubles."""

POWERS = 22
"""Powers of ten up to here are doubles."""

DIGITS = 18
"""Digits that a whole number of 64 bits holds in any case."""

RANGE = 280
"""Numbers between 10^-280 and 10^280 neither overflow nor underflow."""

NOT_PLAIN, FULL, END = 0, 1, 2
"""Why a run ends: at a line that is not plain, without room for another, at the end of the text."""

BAD, ROUNDED, LONG = 0, 1, 2
"""Numbers: not plain, rounded correctly, with more digits or powers than two doubles hold exactly."""


class Columns(NamedTuple):
    """What a run fills, one entry an element, and where it stands.

    Attributes
    ----------
    kind, first, second, value, line : arrays
        As in a scope.
    start, stop : int64 arrays
        Where the digits of a `LONG` number lie in the text; stop 0 for others.
    state : (4,) int64 array
        Position in the text, number of the line there (from 1), elements filled, end of the run.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    value: np.ndarray
    line: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    state: np.ndarray


class Rules(NamedTuple):
    """Tables of the language: element code of a first letter (-1: none), least value of a code, bytes of names in lower
    case (0: no name has it), power of ten of a scale's letter (0: none), powers of ten.
    """

    code: np.ndarray
    minimum: np.ndarray
    in_name: np.ndarray
    scale: np.ndarray
    power: np.ndarray


@jit()
def lower(byte: Any) -> Any:
    """A letter of ASCII in lower case."""
    return byte + 32 if LETTERS[0] <= byte <= LETTERS[1] else byte


@jit()
def find(data: np.ndarray, start: int, stop: int, mark: int, names: NameArrays) -> tuple[int, int]:
    """Position of the name with this hash (-1: new), and the slot where it is or belongs."""
    slot = mark & (names.slots.size - 1)
    while names.slots[slot] != FREE:
        found = np.int64(names.slots[slot])
        begin = names.ends[found - 1] if found > 0 else 0
        if names.marks[found] == mark and names.ends[found] - begin == stop - start:
            same = True
            for j in range(stop - start):
                if lower(names.characters[begin + j]) != lower(data[start + j]):
                    same = False
                    break
            if same:
                return found, slot  # type: ignore[return-value]
        slot = (slot + 1) & (names.slots.size - 1)
    return -1, slot


@jit()
def add(data: np.ndarray, start: int, stop: int, mark: int, slot: int, names: NameArrays) -> int:
    """Add a name that `find` did not find; returns its position."""
    k = names.size[0]
    begin = names.ends[k - 1] if k > 0 else 0
    names.characters[begin : begin + stop - start] = data[start:stop]
    names.ends[k] = begin + stop - start
    names.marks[k] = mark
    names.slots[slot] = k
    names.size[0] = k + 1
    return k


@jit()
def spells(data: np.ndarray, at: int, word: tuple[int, int, int]) -> bool:
    """Whether three letters, in either case, stand at ``at``."""
    return bool(lower(data[at]) == word[0] and lower(data[at + 1]) == word[1] and lower(data[at + 2]) == word[2])


@jit()
def node(data: np.ndarray, start: int, stop: int, mark: int, nodes: NameArrays) -> int:
    """Number of a node, which is added if it is new; ``gnd`` is ground."""
    if stop - start == 3 and spells(data, start, GND):
        return 0
    found, slot = find(data, start, stop, mark, nodes)
    return found if found >= 0 else add(data, start, stop, mark, slot, nodes)


@jit()
def blank(data: np.ndarray, at: int) -> int:
    """The first byte from ``at`` on that is neither blank nor tab."""
    while at < data.size and (data[at] == BLANK or data[at] == TAB):
        at += 1
    return at


@jit()
def line_end(data: np.ndarray, at: int) -> int:
    while at < data.size and data[at] != NEWLINE:
        at += 1
    return at


@jit()
def word(data: np.ndarray, at: int, in_name: np.ndarray, base: int) -> tuple[int, int]:
    """End of the word at ``at`` (-1: it holds a byte that no plain name has) and its hash."""
    mark, last = 1, 0
    while at < data.size:
        byte: Any = np.int64(in_name[data[at]])
        if byte == 0 or (byte == SLASH and last == SLASH):
            break
        mark = mark * base + byte
        mark = (mark & PRIME) + (mark >> 31)
        last, at = byte, at + 1
    if at < data.size and data[at] != BLANK and data[at] != NEWLINE and data[at] != TAB:
        return -1, 0
    mark = (mark & PRIME) + (mark >> 31)
    return at, mark - PRIME if mark >= PRIME else mark


@jit()
def goes_on(data: np.ndarray, at: int) -> bool:
    """Whether the card before ``at``, a line's begin, may continue there: a ``+`` behind blank lines and comments."""
    while at < data.size:
        at = blank(data, at)
        if at == data.size:
            return False
        head = data[at]
        if head != STAR and head != NEWLINE:
            return head == PLUS or head < BLANK or head > 126 or head in COMMENT_MARKS
        at = line_end(data, at) + 1
    return False


@jit()
def number(data: np.ndarray, start: int, stop: int, rules: Rules) -> tuple[int, float]:
    """What sort of number the word is, and its value where it is rounded."""
    at, negative = start, data[start] == MINUS
    at += data[at] == PLUS or negative
    mantissa, digits, seen, fraction, exponent, point = 0, 0, 0, 0, 0, False
    while at < stop:
        byte: Any = np.int64(data[at])
        if byte == POINT and not point:
            point = True
        elif DIGIT_0 <= byte <= DIGIT_9:
            seen += 1
            fraction += point
            digits += digits > 0 or byte != DIGIT_0
            if digits <= DIGITS:
                mantissa = 10 * mantissa + byte - DIGIT_0
        else:
            break
        at += 1
    if seen == 0 or seen > RANGE:
        return BAD, 0.0
    if at < stop and lower(data[at]) == LETTER_E:
        at, down, count = at + 1, False, 0
        if at < stop and (data[at] == MINUS or data[at] == PLUS):
            down = data[at] == MINUS
            at += 1
        while at < stop and DIGIT_0 <= data[at] <= DIGIT_9 and count <= 4:
            exponent, count, at = 10 * exponent + int(data[at]) - DIGIT_0, count + 1, at + 1
        if count == 0 or count > 4:
            return BAD, 0.0
        exponent = -exponent if down else exponent
    if at + 3 == stop and spells(data, at, MEG):
        exponent += 6
    elif at + 1 == stop and rules.scale[data[at]] != 0:
        exponent += rules.scale[data[at]]
    elif at != stop:
        return BAD, 0.0
    exponent -= fraction
    if mantissa == 0:
        return ROUNDED, 0.0
    if digits <= DIGITS and mantissa <= EXACT and -POWERS <= exponent <= POWERS:
        size = mantissa * rules.power[exponent] if exponent >= 0 else mantissa / rules.power[-exponent]
        return ROUNDED, -size if negative else size
    return (LONG if exponent > -RANGE and exponent + digits < RANGE else BAD), -1.0 if negative else 1.0


@jit()
def card(data: np.ndarray, at: int, base: int, rules: Rules, places: np.ndarray) -> tuple[int, float]:
    """Read the line at ``at`` into ``places``: begin and end of its four words, end of the line, hashes of its words.

    Returns the sort of its number (`BAD`: the line is not plain) and the value.
    """
    end = at
    for k in range(4):
        places[2 * k] = blank(data, end)
        end, places[9 + k] = word(data, places[2 * k], rules.in_name, base)
        if end <= places[2 * k]:
            return BAD, 0.0
        places[2 * k + 1] = end
    places[8] = blank(data, end)
    if places[8] < data.size and data[places[8]] != NEWLINE:
        return BAD, 0.0
    code = rules.code[data[places[0]]]
    if code < 0:
        return BAD, 0.0
    sort, value = number(data, places[6], places[7], rules)
    return (BAD if value < rules.minimum[code] or goes_on(data, places[8] + 1) else sort), value


@jit()
def fits(places: np.ndarray, names: NameArrays, nodes: NameArrays, count: int, columns: Columns) -> bool:
    """Whether there is room for one more element and two more nodes."""
    if count == columns.kind.size or names.size[0] == names.ends.size or nodes.size[0] + 2 > nodes.ends.size:
        return False
    size, other = names.size[0], nodes.size[0]
    left = names.characters.size - (names.ends[size - 1] if size else 0)
    right = nodes.characters.size - (nodes.ends[other - 1] if other else 0)
    return places[1] - places[0] <= left and places[5] - places[2] <= right


@jit()
def run(data: np.ndarray, columns: Columns, names: NameArrays, nodes: NameArrays, rules: Rules) -> None:
    """Read lines from where ``columns.state`` stands, as long as they are plain and there is room."""
    at, line, count = columns.state[0], columns.state[1], 0
    places = np.empty(13, np.int64)
    reason = END
    while at < data.size:
        start = blank(data, at)
        if start == data.size or data[start] == NEWLINE or data[start] == STAR:
            if start + 1 < data.size and data[start] == STAR and data[start + 1] == 33:  # *!
                reason = NOT_PLAIN
                break
            at, line = line_end(data, start) + 1, line + 1
            continue
        sort, value = card(data, start, names.base, rules, places)
        reason = NOT_PLAIN
        if sort == BAD:
            break
        reason = FULL
        if not fits(places, names, nodes, count, columns):
            break
        found, slot = find(data, places[0], places[1], places[9], names)
        reason = NOT_PLAIN
        if found >= 0:
            break
        add(data, places[0], places[1], places[9], slot, names)
        columns.kind[count] = rules.code[data[places[0]]]
        columns.first[count] = node(data, places[2], places[3], places[10], nodes)
        columns.second[count] = node(data, places[4], places[5], places[11], nodes)
        columns.value[count] = value
        columns.line[count] = line
        columns.start[count], columns.stop[count] = places[6], places[7] if sort == LONG else 0
        count, at, line, reason = count + 1, places[8] + 1, line + 1, END
    columns.state[0], columns.state[1], columns.state[2], columns.state[3] = min(at, data.size), line, count, reason
