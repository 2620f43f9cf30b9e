"""Values of V and I cards: the DC value, and the time function."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from circuitsim.circuit.elements import VOLTAGE
from circuitsim.netlist.cards import Card
from circuitsim.netlist.scope import Phasor, Scope, Value, Wave
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Token, Words
from circuitsim.netlist.values import constant, value_of
from circuitsim.netlist.waveform import (
    ALIASES,
    EXTERNAL,
    FUNCTIONS,
    MAY_BE_EMPTY,
    MOST,
    RANDOM,
    Waveform,
    checked_waveform,
)
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import Parts

POINTS = "file"
OF_PWL = ("r", "td", POINTS)
"""Of PWL: where it repeats from, its delay, and the file of its points."""

KEYWORDS = RANDOM | frozenset(
    ("dc", "ac", "distof1", "distof2", "load", "noiseless", "repeat", "endrepeat", *FUNCTIONS, *ALIASES, *EXTERNAL)
)
"""Words of a source's card that are no names of parameters."""

_ONCE = ("dc", "ac", "distof1", "distof2")
"""Words that a card states once."""

FOREVER = ["repeat", "forever"]
"""Between PWL and its points in LTspice, which end with ENDREPEAT: they repeat from the time 0."""

SourceValue = tuple[int, Value | Wave, Wave | None]


def source_value(parts: Parts, scope: Scope, card: Card, name: Token, sorted_: Words) -> SourceValue:
    """The DC value of a V or I card with its offset, and the time function.

    Raises
    ------
    CardError, ExpressionError
        A word that does not belong there, a function without a value at DC.
    """
    offset = max(sorted_.end - 1, 0)
    value: Value | Wave | None = None
    again = {}
    words = sorted_.take()
    named = next((k for k, word in enumerate(words[:-1]) if word.text.lower() == POINTS), None)
    points = None if named is None else words[named + 1]
    if named is not None:
        del words[named : named + 2]
    pairs = sorted_.named()
    for key, token in pairs:
        if key.text.lower() == POINTS:
            points = token
        elif key.text.lower() in OF_PWL:
            again[key.text.lower()] = constant(value_of(token, card, scope))
        else:
            offset, value = token.offset, _number(parts, scope, card, name, token)
    offset, value, wave = _words(parts, scope, card, name, words, (offset, value))
    for key, _ in pairs:
        if key.text.lower() in again and (wave is None or wave.name != "pwl"):
            message = f"{short(name.text)}: {short(key.text)}= belongs to PWL"
            raise CardError("syntax", message, key.offset, "leave it out, or write PWL(…)")
    if points is not None:
        wave = _from_file(parts, card, name, points, wave)
    if wave is not None:
        wave = wave._replace(repeat=again.get("r", wave.repeat), delay=again.get("td", 0.0))
    if value is None and wave is not None and not wave.numbers and wave.name in MAY_BE_EMPTY:
        message = f"{wave.name.upper()} without numbers is 0 at the operating point (%s)"
        parts.reporter.gather("no-effect", message, card, wave.offset, name.text)
        value = 0.0
    if value is None and wave is not None:
        known = tuple(v for v in wave.numbers if isinstance(v, float))
        if wave.name in EXTERNAL or len(known) == len(wave.numbers):
            checked_waveform(Waveform(wave.name, known), wave.offset)
        return wave.offset, wave, wave
    if value is None:
        parts.reporter.gather("no-value", "no DC value is given: 0 is taken (%s)", card, offset, name.text)
        value = 0.0
    varies = wave is not None and wave.name not in EXTERNAL and wave.numbers
    return offset, value, wave if varies else None


def _from_file(parts: Parts, card: Card, name: Token, points: Token, wave: Wave | None) -> Wave:
    """PWL with the points of a file."""
    if wave is None or wave.name != "pwl" or wave.numbers:
        raise CardError(
            "syntax",
            f"{short(name.text)}: file= belongs to PWL without other points",
            points.offset,
            "PWL file=points.txt",
        )
    return wave._replace(numbers=list(parts.points(card, points)))


def _words(
    parts: Parts, scope: Scope, card: Card, name: Token, words: list[Token], stated: tuple[int, Value | Wave | None]
) -> tuple[int, Value | Wave | None, Wave | None]:
    """The DC value and the time function among the words of a card."""
    offset, value = stated
    wave = None
    k, seen = 0, set()
    while k < len(words):
        token = words[k]
        word = token.text.lower() if token.kind == WORD else ""
        word = ALIASES.get(word, word)
        k += 1
        sort = "time function" if word in FUNCTIONS or word in EXTERNAL else word.upper() if word in _ONCE else ""
        if sort in seen or (sort == "DC" and value is not None):
            message = (
                f"{short(name.text)}: {short(token.text)!r} is the second {'value at DC' if sort == 'DC' else sort}"
            )
            raise CardError("syntax", message, token.offset, "leave one of them out")
        seen |= {sort} - {""}
        if word == "dc":
            if k < len(words) and valued(words[k]):
                offset, value = words[k].offset, _number(parts, scope, card, name, words[k])
                k += 1
        elif word in ("ac", "distof1", "distof2"):
            k += len(list(takewhile(valued, words[k : k + 2])))
            parts.no_effect(word, card, token.offset, name.text, "amplitude" if word == "ac" else "no-effect")
        elif word in ("load", "noiseless"):
            parts.no_effect(word, card, token.offset, name.text)
        elif word in FUNCTIONS or word in EXTERNAL:
            forever = word == "pwl" and [w.text.lower() for w in words[k : k + 2]] == FOREVER
            k += 2 * forever
            stop = next((j for j in range(k, len(words)) if not valued(words[j])), len(words))
            most = MOST.get(word, stop)
            if stop - k > most:
                message = f"{short(name.text)}: {word.upper()} has at most {most} numbers"
                raise CardError("syntax", message, words[k + most].offset, "leave the others out")
            wave = Wave(word, [constant(value_of(number, card, scope)) for number in words[k:stop]], token.offset)
            if word == "pwl":
                wave = _relative(parts, card, name, words[k:stop:2], wave)
            k = stop
            if forever:
                wave = wave._replace(repeat=0.0)
                k += k < len(words) and words[k].text.lower() == "endrepeat"
        elif word in RANDOM:
            raise CardError(
                "unsupported",
                f"{short(name.text)}: random waveforms ({word.upper()}) are not simulated",
                token.offset,
                "write its DC value; over time a PWL of values drawn beforehand",
            )
        elif value is None and k == 1:
            offset, value = token.offset, _number(parts, scope, card, name, token)
        else:
            raise CardError(
                "syntax",
                f"{short(name.text)}: {short(token.text)!r} does not belong here",
                token.offset,
                "a source reads: DC value AC magnitude phase FUNCTION(…)",
            )
    return offset, value, wave


def _relative(parts: Parts, card: Card, name: Token, times: list[Token], wave: Wave) -> Wave:
    """Programs differ on ``+1u`` among the times of PWL: counted from 0, as in ngspice, where the times then grow, else
    from the time before, as in LTspice."""
    signed = [token.text[:1] == "+" for token in times]
    if not any(signed):
        return wave
    numbers, counted = list(wave.numbers), "0, as in ngspice; LTspice counts it from the time before"
    stated = [time for time in numbers[::2] if isinstance(time, float)]
    if len(stated) == len(signed) and any(b <= a for a, b in pairwise(stated)):
        counted, last = "the time before, as in LTspice", 0.0
        for k, (time, after) in enumerate(zip(stated, signed)):
            numbers[2 * k] = last = time + (last if after else 0.0)
    first = times[signed.index(True)]
    parts.reporter.warning(
        "pwl",
        f"{short(name.text)}: the time {short(first.text)} is counted from {counted}",
        card,
        first.offset,
        "write the time without a sign",
        [name.text],
    )
    return wave._replace(numbers=numbers)


def valued(token: Token) -> bool:
    """Whether ``token`` is a number, an expression or the bare name of a parameter, not a keyword."""
    if token.kind != WORD:
        return token.kind == EXPRESSION
    number = token.text[:1].isdecimal() or token.text[:1] in ("+", "-", ".")
    return number or (token.text.isidentifier() and token.text.lower() not in KEYWORDS)


def _number(parts: Parts, scope: Scope, card: Card, name: Token, token: Token) -> Value:
    """A value on a source card."""
    value = constant(value_of(token, card, scope))
    parts.warn_letters(card, name, token, value, VOLTAGE)
    return value


def phasor(scope: Scope, card: Card, words: list[Token]) -> Phasor | None:
    """Magnitude and phase of ``AC [magnitude [phase]]`` among the words of a card: 1 and 0 where they are left out."""
    place = next((k for k, token in enumerate(words) if token.kind == WORD and token.text.lower() == "ac"), None)
    if place is None:
        return None
    given = [constant(value_of(t, card, scope)) for t in takewhile(valued, words[place + 1 : place + 3])]
    return given[0] if given else 1.0, given[1] if len(given) > 1 else 0.0
