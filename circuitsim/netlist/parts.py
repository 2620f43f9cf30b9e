"""Element cards: R, D, V, I, L, C and the sub-circuit call X, into the columns of a scope."""

from __future__ import annotations

import re
from array import array
from itertools import pairwise, takewhile
from typing import Any

from circuitsim.circuit.elements import (
    AMPLIFIER,
    BY_LETTER,
    CAPACITOR,
    CURRENT,
    DIODE,
    ELEMENTS,
    INDUCTOR,
    RESISTOR,
    VOLTAGE,
)
from circuitsim.netlist import dialect
from circuitsim.netlist.cards import (
    EXPRESSION,
    WORD,
    Card,
    CardError,
    Reporter,
    Source,
    Token,
    Words,
    fields,
    tokens,
)
from circuitsim.netlist.expression import Code
from circuitsim.netlist.functions import (
    ALIASES,
    EXTERNAL,
    MAY_BE_EMPTY,
    RANDOM,
    TIME_FUNCTIONS,
    Waveform,
    checked_waveform,
)
from circuitsim.netlist.scope import (
    IN_FILE,
    OWN,
    PARALLEL,
    PARASITIC,
    SERIES,
    Call,
    Count,
    ElementCard,
    Scope,
    SwitchControl,
    Value,
    checked,
    positive,
    tolerance,
    value_of,
)
from circuitsim.units import scale_of, short

SIZES = frozenset(("l", "w"))
"""Numbers without effect if the model has no sheet resistance."""


POINTS = "file"
OF_PWL = {"r": "repeat", "td": "delay", POINTS: "numbers"}
"""Parameters of PWL: start of repetition, delay, file of points; their fields of `Waveform`."""

KEYWORDS = {"dc": 1, "ac": 2, "distof1": 2, "distof2": 2, "load": 0, "noiseless": 0} | dict.fromkeys(TIME_FUNCTIONS)
"""Words of a source's card, and the maximum count of numbers after them; those of a time function are checked."""

NO_VALUES = frozenset((*KEYWORDS, *ALIASES, *RANDOM, "repeat", "endrepeat"))
"""Words of a source's card that are no names of parameters."""

FOREVER = ["repeat", "forever"]
"""LTspice's words between PWL and its points, which end with ENDREPEAT: they repeat from time 0."""


def valued(token: Token) -> bool:
    """Whether ``token`` is a number, an expression or the bare name of a parameter, not a keyword."""
    if token.kind != WORD:
        return token.kind == EXPRESSION
    return token.numeric or (token.text.isidentifier() and token.word not in NO_VALUES)


# By first character in either case; upper() would turn a dotless ı into I.
# X begins a call; the amplifier's is identified by the sub-circuit's name.
_OWN = {letter: code for letter, code in BY_LETTER.items() if code != AMPLIFIER}
CODES = {**_OWN, **{letter.lower(): code for letter, code in _OWN.items()}}
COUNTS = ("m", "n", "area")
"""For an element with a model: cells in parallel, cells in series, area."""

OWN_TEMPERATURE = ("temp", "dtemp")
"""For an element with a model: its temperature, or its excess over the deck's (°C)."""

SWITCHES = {
    "s": (4, "four nodes", "Sname n+ n- nc+ nc- model [ON|OFF]"),
    "w": (3, "two nodes, a source", "Wname n+ n- Vname model [ON|OFF]"),
}
"""Letter → number of words before the model, what they are, and the form of the card."""
STATES = {"on": 1.0, "off": 0.0}

_BAD_NAME = re.compile(r"[\s=(),{}'\"]|//")


_DIGITS = re.compile(r"^[-+.\d]*(?:e[-+\d]*)?", re.IGNORECASE)


def flaw(word: str) -> int:
    """The offset of the first character that no name of a node or an element may have; -1 if there is none."""
    if word.isalnum():
        return -1
    bad = _BAD_NAME.search(word)
    return next((k for k, c in enumerate(word) if not c.isprintable()), bad.start() if bad else -1)


UNITS = {"ohm": "Ω", "ohms": "Ω", "f": "F", "farad": "F", "h": "H", "henry": "H", "v": "V", "volt": "V", "volts": "V"}
"""Units that a number may end with."""


class Reader:
    """A deck being read: names of elements and nodes, and calls of sub-circuits, into scopes.

    Attributes
    ----------
    top, scope : Scope
        The deck, and the current scope.
    requests : list of Card
        Analysis cards, to be evaluated after all parameters.
    globals : dict
        Names of ``.global`` nodes, lower case → as written.
    options : dict
        Effective options (``.options``), by name.
    open_files, missing : list of str
        Files being read, and missing libraries.
    sources : dict of int to Source
        The texts read, by number.
    """

    def __init__(self) -> None:
        self.reporter = Reporter()
        self.top = self.scope = Scope()
        self.requests: list[Card] = []
        self.globals: dict[str, str] = {}
        self.options: dict[str, Token] = {}
        self.open_files: list[str] = []
        self.ended = self.library = False
        self.missing: list[str] = []
        self.sources: dict[int, Source] = {}

    def check_name(self, name: Token) -> None:
        """Check that a name is new to its scope and can be written."""
        if (at := flaw(name.text)) >= 0:
            raise CardError(
                f"the name {short(name.text)!r} contains invisible or reserved characters",
                name.card.at(name.offset + at),
                "use letters, digits and signs such as _ . : [ ]",
            )
        key = name.word
        if key in self.scope.index:
            scope, at = self.scope, self.scope.index[key]
            line = scope.lines[at] % IN_FILE if at >= 0 else scope.calls[-1 - at].card.line
            raise CardError(
                f"{short(name.text)} is already defined (line {line})",
                name,
                "names must differ within one scope",
                "duplicate",
            )

    def node(self, token: Token) -> int:
        """The local number of the node that ``token`` names."""
        if token.kind != WORD:
            raise CardError("a node name is expected here", token, "node names cannot be computed")
        known = self.scope.nodes.get(token.text)
        if known is not None:
            return known
        if (at := flaw(token.text)) >= 0:
            hint = "ngspice reads // as a comment" if "//" in token.text else "it contains an invisible character"
            raise CardError(f"{short(token.text)!r} cannot name a node", token.card.at(token.offset + at), hint)
        return self.scope.node(token.text)


class ElementReader:
    """Parser of an element's card: R, D, V, I, L, C.

    For R, L and C: a value, a model, or both, and further numbers. For V and I: the DC value and the time function.

    Attributes
    ----------
    name : Token
    shown : str
        The name for messages.
    words : Words
        Words not yet read.
    """

    def __init__(self, reader: Any, card: Card) -> None:
        self.reader, self.scope, self.card, self.reporter = reader, reader.scope, card, reader.reporter
        self.name = next(tokens(card))
        self.shown = short(self.name.text)
        reader.check_name(self.name)
        self.words = Words([], {})

    def take(self) -> None:
        """Take an element card of any form.

        Raises
        ------
        CardError, ExpressionError
            Something is wrong with it.
        """
        code = CODES[self.name.text[0]]
        row = ELEMENTS[code]
        behind = next(tokens(self.card, self.name.end), self.name)
        if behind.text == "=":
            raise CardError(f"{self.shown} is assigned to, outside .param", behind, "parameters are set with .param")
        self.words = fields(self.card, self.name.end)
        first, second = self.two_nodes(row.terminals)
        if code == DIODE:
            self.diode(first, second)
            return
        source = code in (VOLTAGE, CURRENT)
        parasitic = self.words.named(PARASITIC.get(code, ()))
        initial = self.words.named(("ic",)) if code in (CAPACITOR, INDUCTOR) else []
        at_first = next((self.value(token) for _, token in initial), None)
        share = next((tolerance(token) for _, token in self.words.named(("tol",))), None)
        ignored = dialect.INSTANCE | dialect.RATINGS | ({"v"} if code == CAPACITOR else set())
        multiplier = self.pairs((*row.keywords, *(OF_PWL if source else OWN)), ignored)
        stated = self.source() if source else self.passive(code)
        if parasitic:
            first = self.parasitic(parasitic, (first, second), multiplier)
        multiplier = 1.0 if code == VOLTAGE else multiplier
        stated = stated._replace(multiplier=multiplier, tolerance=share, initial=at_first)
        self.scope.state(code, self.name.text, first, second, stated)
        if share is not None:
            self.reporter.gather(
                "nominal", "tol= is ignored here (%s); montecarlo and worst-case use it", self.name, self.name.text
            )

    def parasitic(self, pairs: list[tuple[Token, Token]], ends: tuple[int, int], multiplier: Value) -> int:
        """Add the parasitic elements of the element; zeros are left out, except for a parallel resistor. Returns the
        first node of the element itself."""
        found: dict[str, ElementCard] = {}
        for key, token in pairs:
            value = self.value(token)
            if value != 0.0 or key.word == "rpar":
                if isinstance(value, float):
                    checked((SERIES | PARALLEL)[key.word][1], key.text, value, token)
                found[key.word] = ElementCard(token, value, multiplier=multiplier)
        name, (first, _) = self.name.text, ends
        series = [word for word in SERIES if word in found]
        for word, end in zip(series, ("middle", "inner")[2 - len(series) :]):
            suffix, code = SERIES[word]
            inner = self.scope.node(f"{name}.{end}")
            self.scope.state(code, f"{name}.{suffix}", first, inner, found[word])
            first = inner
        for word, (suffix, code) in PARALLEL.items():
            if word in found:
                self.scope.state(code, f"{name}.{suffix}", *ends, found[word])
        return first

    def two_nodes(self, terminals: tuple[str, str]) -> tuple[int, int]:
        """The two nodes that begin the card's words."""
        nodes = [self.reader.node(token) for token in self.words.take(2)]
        if len(nodes) < 2:
            missing = terminals[len(nodes)]
            raise CardError(
                f"{self.shown} needs two nodes; the {missing} one is missing",
                self.card.last,
                f"{self.name.text[0]}name {terminals[0]} {terminals[1]} …",
            )
        return nodes[0], nodes[1]

    def pairs(self, own: tuple[str, ...], ignored: frozenset[str] = dialect.INSTANCE) -> Value:
        """Take ``m=``, note parameters without effect, leave the value's own pairs; returns the multiplier."""
        multiplier: Value = 1.0
        for key, value in self.words.named(self.words.pairs.keys() - {*own}):
            word = key.word
            if word == "m":
                multiplier = self.value(value)
                if isinstance(multiplier, float):
                    positive(self.name.text, word, multiplier, value)
            elif word in ignored:
                self.no_effect(word, key)
            elif word in dialect.FORMULAS:
                what, instead = dialect.FORMULAS[word]
                raise CardError(f"{self.shown}: {what} is not supported", key, instead, "unsupported")
            else:
                raise CardError(
                    f"{self.shown} has no parameter {short(key.text)!r}", key, f"known: {', '.join((*own, 'm'))}"
                )
        return multiplier

    def no_effect(self, word: str, at: Token, kind: str = "no-effect") -> None:
        """Note an instance parameter without effect."""
        self.reporter.gather(kind, f"{word} has no effect at the operating point (%s)", at, self.name.text)

    def flag(self, token: Token) -> bool:
        """Whether ``token`` is a bare word without effect (``off``)."""
        if token.kind == WORD and token.word in dialect.INSTANCE:
            self.no_effect(token.word, token)
            return True
        return False

    def value(self, token: Token) -> Value:
        """The value of a token of the card."""
        return value_of(token, self.scope)

    def number(self, token: Token) -> Value:
        """A value on the card of a source."""
        value = self.value(token)
        self.warn_letters(token, value, VOLTAGE)
        return value

    def warn_letters(self, token: Token, value: Value, code: int) -> None:
        """Warn of a capital M (milli, not mega) on a resistance, of A (atto, not ampere), which sources refuse, and of
        the unit of another quantity on R, L and C."""
        number = value.mega if isinstance(value, Code) else token.text
        letters = _DIGITS.sub("", number, 1)
        digits = short(number[: len(number) - len(letters)])
        if code == RESISTOR and letters[:1] == "M" and scale_of(letters) == "m" and not letters[1:2].isdigit():
            self.reporter.warning(
                "mega",
                f"{self.shown}: {short(number)} is {digits} milliohm: M is milli in SPICE",
                token,
                f"write {digits}MEG for mega, {digits}m if milli is meant",
                [self.name.text],
            )
        unit, row = letters[len(scale_of(letters)) :], ELEMENTS[code]
        if code != VOLTAGE and UNITS.get(unit.lower(), row.unit) != row.unit:
            self.reporter.warning(
                "unit",
                f"{self.shown}: {unit} after the value is ignored: the {row.parameter} is in {row.unit}",
                token,
                names=[self.name.text],
            )
        if letters[:1] == "a" and code == VOLTAGE:
            raise CardError(
                f"{self.shown}: {short(number)} is {digits}e-18 in SPICE, where A is atto, not ampere",
                token,
                f"write {digits} for ampere, {digits}e-18 for atto",
                "atto",
            )
        if letters[:1] == "a":
            self.reporter.warning(
                "atto",
                f"{self.shown}: {short(number)} is atto (1e-18) in SPICE, not ampere",
                token,
                "remove the unit",
                [self.name.text],
            )

    def passive(self, code: int) -> ElementCard:
        """The value of R, L or C: ``1k``, ``R=1k``, ``model``, ``1k model`` or ``model 1k``, and its further numbers; a
        single bare name is both value and model, since it may be a parameter.

        Raises
        ------
        CardError, ExpressionError
        """
        row = ELEMENTS[code]
        keyed = [value for _, value in self.words.named(row.keywords)]
        # A resistor's model may have any name except LTspice's "noiseless".
        words = [w for w in self.words.take() if (code == RESISTOR and w.word != "noiseless") or not self.flag(w)]
        values = [*words, *keyed]
        if not values:
            raise CardError(
                f"{self.shown} needs its {row.parameter} in {row.unit}",
                self.card.last,
                f"{row.letter}name first second value",
            )
        models = [w for w in words if w.kind == WORD and (w.text[0].isalpha() or w.text[0] == "_")]
        model = models[-1] if models and (len(values) > 1 or models[0].text.isidentifier()) else None
        stated = [value for value in values if value is not model] or values
        if len(stated) > 1:
            extra = max(values, key=lambda token: token.offset)
            raise CardError(
                f"{self.shown}: {short(extra.text)!r} is one value too many",
                extra,
                "use a decimal point"
                if self.card.text[extra.offset - 1] == ","
                else "an expression goes in braces: {…}",
            )
        numbers = {key.word: Count(value, self.value(value)) for key, value in self.words.named()}
        idle = SIZES if code == RESISTOR else SIZES | {"tce"}
        for word in [w for w in numbers if model is None and w in idle]:
            self.no_effect(word, numbers.pop(word).at)
        value = self.value(stated[0])
        self.warn_letters(stated[0], value, code)
        return ElementCard(stated[0], value, numbers, model, model is stated[0])

    def source(self) -> ElementCard:
        """The DC value of a V or I card, its amplitude and its time function.

        Raises
        ------
        CardError, ExpressionError
            An invalid word, a function without a DC value.
        """
        words, own = self.words.take(), self.words.named(OF_PWL)
        named = next((k for k, word in enumerate(words[:-1]) if word.word == POINTS), None)
        if named is not None:
            own.append((words.pop(named), words.pop(named)))
        found = {"value at DC": [token for _, token in pairs]} if (pairs := self.words.named()) else {}
        first, function, wave = words[:1], self.card.last, None
        while words:
            token = words.pop(0)
            word = ALIASES.get(token.word, token.word) if token.kind == WORD else ""
            if word not in KEYWORDS and (word in RANDOM or [token] != first or found):
                kind, message = "syntax", f"{short(token.text)!r} does not belong here"
                hint = "a source reads: DC value AC magnitude phase FUNCTION(…)"
                if word in RANDOM:
                    kind, message = "unsupported", f"random waveforms ({word.upper()}) are not simulated"
                    hint = "write its DC value, or for a transient a PWL of precomputed values"
                raise CardError(f"{self.shown}: {message}", token, hint, kind)
            constant = word == "dc" or word not in KEYWORDS
            sort = "value at DC" if constant else "time function" if word in TIME_FUNCTIONS else word.upper()
            if sort in found:
                message = f"{self.shown}: {short(token.text)!r} is the second {sort}"
                raise CardError(message, token, "leave one of them out")
            forever = word == "pwl" and [w.word for w in words[:2]] == FOREVER
            del words[: 2 * forever]
            given = list(takewhile(valued, words[: KEYWORDS.get(word, 0)]))
            del words[: len(given)]
            found[sort] = given if word in KEYWORDS else [token]
            if word in TIME_FUNCTIONS:
                function, most = token, TIME_FUNCTIONS[word].most or len(given)
                for extra in given[most:]:
                    message = f"{self.shown}: {word.upper()} has at most {most} numbers"
                    raise CardError(message, extra, "leave the others out")
                wave = Waveform(word, (*map(self.value, given),), 0.0 if forever else None)
                wave = self.relative(given[::2], wave) if word == "pwl" else wave
                del words[: forever and [w.word for w in words[:1]] == ["endrepeat"]]
            elif not constant:
                self.no_effect(word, token, "amplitude" if word == "ac" else "no-effect")
        for key, token in own:
            points = key.word == POINTS
            if wave is None or wave.name != "pwl" or (points and wave.numbers):
                message, hint = f"{short(key.text)}= belongs to PWL", "leave it out, or write PWL(…)"
                if points:
                    message, hint = "file= belongs to PWL without other points", "PWL file=points.txt"
                raise CardError(f"{self.shown}: {message}", token if points else key, hint)
            value: Any = self.reader.points(token) if points else self.value(token)
            wave = wave._replace(**{OF_PWL[key.word]: value})
        at, value, amplitude = self.card.last, None, [*map(self.value, found.get("AC", ()))]
        for at in found.get("value at DC", ()):
            value = self.number(at)
        phasor = ((amplitude or [1.0])[0], (amplitude[1:] or [0.0])[0]) if "AC" in found else None
        if value is None and wave is not None and (wave.numbers or wave.name not in MAY_BE_EMPTY):
            known = tuple(v for v in wave.numbers if isinstance(v, float))
            if wave.name == EXTERNAL or len(known) == len(wave.numbers):
                checked_waveform(wave._replace(numbers=known), function)
            return ElementCard(function, wave=wave, phasor=phasor)
        if value is None and wave is not None:
            message = f"{wave.name.upper()} without numbers is 0 at the operating point (%s)"
            self.reporter.gather("no-effect", message, function, self.name.text)
        elif value is None and phasor is None:
            self.reporter.gather("no-value", "no DC value is given; 0 is used (%s)", at, self.name.text)
        if wave is not None and (wave.name == EXTERNAL or not wave.numbers):
            wave = None
        return ElementCard(at, value or 0.0, wave=wave, phasor=phasor)

    def relative(self, times: list[Token], wave: Waveform) -> Waveform:
        """Convert ``+1u`` among the times of PWL: from 0 if the times then increase, as in ngspice, else from the
        preceding time, as in LTspice."""
        signed = [token.text[:1] == "+" for token in times]
        if not any(signed):
            return wave
        numbers, counted = list(wave.numbers), "0, as in ngspice; LTspice counts it from the preceding time"
        stated = [time for time in numbers[::2] if isinstance(time, float)]
        if len(stated) == len(signed) and any(b <= a for a, b in pairwise(stated)):
            counted = "the preceding time, as in LTspice"
            last = 0.0
            for k, after in enumerate(signed):
                numbers[2 * k] = last = stated[k] + last * after
        first = times[signed.index(True)]
        self.reporter.warning(
            "pwl",
            f"{self.shown}: the time {short(first.text)} is counted from {counted}",
            first,
            "write the time without a sign",
            [self.name.text],
        )
        return wave._replace(numbers=tuple(numbers))

    def diode(self, first: int, second: int) -> None:
        """Parse a diode: optional model name, flags without effect, an area if its model has one."""
        counts: dict[str, Count] = {}  # the model decides whether they apply
        for key, token in self.words.named((*COUNTS, *OWN_TEMPERATURE, "pj")):
            number = self.value(token)
            if isinstance(number, float) and key.word in COUNTS:
                positive(self.name.text, key.word, number, token)
            counts[key.word] = Count(key, number)
        initial = [self.value(token) for _, token in self.words.named(("ic",))]
        self.pairs(())
        words, model = [w for w in self.words.take() if not self.flag(w)], None
        if words and words[0].kind == WORD:
            # A model (1N4148) or a bare area: decided after all models are read.
            model = words.pop(0)
        if words:
            area = self.value(words[0])
            if len(words) > 1 or (isinstance(area, float) and area < 0):
                raise CardError(
                    f"{self.shown}: {short(words[-1].text)!r} does not belong here",
                    words[-1],
                    "Dname anode cathode model",
                )
            counts["area"] = Count(words[0], area)
        if model is not None:
            self.scope.modelled.setdefault(model.word, array("q")).append(len(self.scope.kind))
        stated = ElementCard(self.name, numbers=counts, model=model, initial=next(iter(initial), None))
        self.scope.state(DIODE, self.name.text, first, second, stated)

    def call(self) -> None:
        """Take an ``X`` card: nodes, the sub-circuit's name, ``PARAMS:`` or not, and its parameters."""
        self.words, name, scope = fields(self.card, self.name.end), self.name, self.scope
        words = self.words.take()
        if words and words[-1].word in ("params:", "params"):
            words.pop()
        if not words:
            raise CardError(
                f"{self.shown} names no sub-circuit", self.card.last, "Xname node … subcircuit parameter=value …"
            )
        target = words.pop()
        if target.kind != WORD:
            raise CardError("the name of a sub-circuit is expected here", target)
        nodes, pairs = array("q", map(self.reader.node, words)), self.words.named()
        passed = {key.word: self.value(value) for key, value in pairs}
        scope.index[name.word] = -1 - len(scope.calls)
        keys = {key.word: key for key, _ in pairs}
        scope.calls.append(Call(self.card, name.text, nodes, target, passed, keys, len(scope.kind)))

    def switch(self) -> None:
        """Take a card of a switch.

        Raises
        ------
        CardError
        """
        letter = self.name.text[0].lower()
        before, what, form = SWITCHES[letter]
        words = fields(self.card, self.name.end).take()
        if not before < len(words) <= before + 2:
            raise CardError(f"{self.shown} needs {what} and a model", self.card.last, form)
        model, last = words[before], words[-1]
        state = last.word if last is not model else "off"
        if state not in STATES:
            raise CardError(f"{self.shown}: {short(last.text)!r} is neither ON nor OFF", last, form)
        first, second, *control = (self.reader.node(token) for token in words[: 4 if letter == "s" else 2])
        law = SwitchControl(tuple(control), None if control else words[2], STATES[state] > 0.0)
        own = {"closed": Count(last, STATES[state])}
        self.scope.state(RESISTOR, self.name.text, first, second, ElementCard(model, None, own, model, switch=law))
