"""Analysis cards, ``.print``, ``.plot``, ``.save``, ``.ic`` and ``.meas tran``, evaluated after parameters and
elements.

``.dc`` and ``.step`` in the forms of ngspice, LTspice, Xyce and PSpice:

    [LIN|DEC|OCT] [PARAM] NAME start stop step     NAME LIST v1 v2 …     DATA=table

``NAME`` is an element, its own parameter (``R1:r``), a parameter of the deck, of a model (``DMOD:ron``, ``DMOD(ron)``),
or ``TEMP``.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from itertools import pairwise

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.errors import TopologyError
from circuitsim.netlist import dialect, limits
from circuitsim.netlist.cards import MARK, WORD, Card, CardError, Token, delimited, fields, finish, tokens
from circuitsim.netlist.deck import (
    PARAMETER,
    TEMPERATURE,
    Analysis,
    DcSweep,
    FourierCard,
    InitialValues,
    MeasurementRequest,
    OperatingPointRequest,
    Output,
    Range,
    SensitivityRequest,
    SmallSignal,
    Spacing,
    Step,
    Temperature,
    TransferRequest,
    Transient,
    logarithmic,
    memory,
    points,
)
from circuitsim.netlist.elaborate import Elaborator
from circuitsim.netlist.expression import Code, Evaluator
from circuitsim.netlist.scope import CARD_MODELS, Model, checked_temperature, letter_of, value_of
from circuitsim.units import short

FORMS = "NAME start stop step, DEC NAME start stop points, NAME LIST v1 v2 …, or DATA=table"
PASSIVE = ("R", "L", "C")
"""Letters of the elements whose models' parameters may be stepped."""

PARAMETER_WORDS = ("param", "params")
TEMPERATURE_WORDS = ("temp", "temper", "temperature")


BASES = {"lin": 0.0, "dec": 10.0, "oct": 2.0}
"""Spacing keyword → factor between the ends of an interval of points (0: linear, with a step)."""

_OF_MODEL = re.compile(r"([^\W\d][^\s=(),{}'\"]*)\(([^\s=(),{}'\"]+)\)")
Varied = tuple[str, str | tuple[str, ...]]
"""`Range.name` and `Range.vary`."""


def merged(card: Card, after: int) -> list[Token]:
    """The words of a card from ``after`` on, without marks; ``DMOD(ron)`` is the word ``DMOD:ron``."""
    text = card.text[:after] + _OF_MODEL.sub(r"\1:\2 ", card.text[after:])
    words: list[Token] = []
    for token in tokens(Card(card.source, card.line, text, card.pieces), after):
        if token.kind != MARK:
            words.append(token)
        elif token.text == "=" and (not words or words[-1].word != "data"):
            raise CardError("'=' does not belong here", token)
    return words


def steps(model: Model, parameter: str) -> bool:
    """Whether the elements of a resistor's, capacitor's or inductor's model depend on this parameter."""
    letter = letter_of(model.type)
    return letter in PASSIVE and parameter.lower() in CARD_MODELS[letter].parameters


OPTIONS = ("format", "file", "width", "precision", "filter", "delimiter", "timescalefactor", "index")
"""Options of Xyce's ``.print`` for the format of its file; without effect here."""

_PIECE = re.compile(
    r"[\s,)]+|\([^()]*\)"
    r"|(?:par\s*\(\s*(?=['\"{])|(?=['{]))(?P<formula>.)"
    r"|(?P<option>[^\W\d]\w*)\s*=\s*(?:\"[^\"]*\"|[^\s,{}]+)"
    r"|(?P<word>[^\s,()]*\((?:[^()]|\([^()]*\))*\)|[^\s,()]+(?=[\s,)]|$))",
    re.IGNORECASE,
)
"""Of an output card: blanks, or the axis limits of ngspice's .plot; the mark of a formula; an option; a quantity."""


def output(card: Card, word: str, at: int) -> Output:
    """Parse the output card ``card``; ``at`` is the offset after its name.

    Raises
    ------
    CardError
        An unmatched parenthesis, brace or quote.
    """
    text, requests, analysis = card.text, list[str](), ""
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise CardError("unmatched '('", card.at(at), "close it on this card")
        if found["option"] and found["option"].lower() not in OPTIONS:
            known = f"known: {', '.join(OPTIONS)}"
            raise CardError(f"{word} has no option {short(found['option'])!r}", card.at(at), known)
        at = found.end()
        if found["formula"]:
            token = delimited(card, at - 1)
            requests.append("{" + token.text + "}")
            at = token.end
        elif found["word"]:
            requests.append(found["word"])
    if requests and requests[0].lower() in dialect.PRINTED:
        analysis = requests.pop(0).lower()
    return Output(word[1:], analysis, tuple(requests), card.place())


TRANSIENT_FLAGS = dialect.words("uic noop startup steady nodiscard step")
"""Words of a ``.tran`` card besides its numbers."""
INITIAL = ".ic v(out)=2 v(x1.a)=0.5 i(L1)=1m"


def measurement(card: Card, after: int) -> MeasurementRequest | None:
    """Parse ``.meas tran NAME …``, ``.meas ac`` or ``.meas dc``; None for other analyses.

    LTspice may omit the analysis.
    """
    words = card.text[after:].split(None, 1)
    if len(words) < 2 or words[0].lower() in dialect.OTHER_MEASUREMENTS:
        return None
    analysis = words[0].lower() if words[0].lower() in ("tran", "ac", "dc") else ""
    text = words[1] if analysis else card.text[after:]
    return MeasurementRequest(text.strip(), card.place(), analysis or "tran")


OUTPUTS = (".print", ".plot", ".save")


class Analyses:
    """Evaluates analysis cards against the elaborated circuit.

    Attributes
    ----------
    card, word, words : Card, str, list of Token
        The current card, its name, and its words not yet read.
    formulas : list of (Token, Code)
        Numbers of ``.tran``, ``.ac`` and ``.dc`` that are formulas.
    """

    def __init__(self, elaborator: Elaborator, circuit: Circuit) -> None:
        self.reporter, self.environment, self.circuit = elaborator.reporter, elaborator.environment, circuit
        self.reader, self.scope = elaborator.reader, elaborator.top
        self.evaluator = Evaluator(elaborator.evaluator.constants)
        self.formulas = list[tuple[Token, Code]]()

    def read(self) -> tuple[Analysis, ...]:
        """Evaluate all requests of the deck and report their errors."""
        found: list[Analysis] = []
        for card in self.reader.requests:
            self.card = card
            with self.reporter.at(card):
                request = self.one()
                finish(card)
                found += [request] if request is not None else []
        steps = {str(step.sweep.vary).lower().removeprefix("param:") for step in found if isinstance(step, Step)}
        for token, formula in self.formulas:
            for name in sorted(steps & self.reached(formula)):
                message = f"{short(token.text)} keeps its value at the first value of {name}: .step does not change it"
                self.reporter.warning("analysis", message, token, "write a number that suits all values")
        return tuple(found)

    def reached(self, formula: Code) -> set[str]:
        """All names that a formula depends on."""
        found, left = set[str](), [*formula.names]
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                owner = self.environment.owner(name)
                bound = None if owner is None else owner.binding(name)
                left += bound[0].names if bound is not None and isinstance(bound[0], Code) else ()
        return found

    def one(self) -> Analysis | None:
        """The request on the current card; None if it is not supported."""
        card, start = self.card, self.card.offset
        word = self.word = card.text[start : start + 10].split()[0].split("(")[0].lower()
        place, after = card.place(start), start + len(word)
        if word == ".op":
            fields(card, after)
            return OperatingPointRequest(place)
        if word in OUTPUTS:
            return output(card, word, after)
        if word in (".tf", ".sens"):
            return self.small_signal(after)
        if word in (".meas", ".measure"):
            return measurement(card, after)
        if word in (".four", ".fourier"):
            return FourierCard(card.text[after:].strip(), place)
        if word == ".ic":
            return self.initial_values(after)
        words = self.words = merged(card, after)
        first = words[0] if words else card.last
        if word == ".temp":
            return Temperature(self.temperatures(), place)
        if word == ".tran":
            return self.transient()
        if word == ".ac":
            return self.ac()
        ranges = self.ranges()
        if word == ".dc":
            return DcSweep(ranges, place)
        if len(ranges) > 1:
            raise CardError(
                f".step varies {short(ranges[0].name)} and {short(ranges[1].name)}",
                first,
                "write a .step card for each",
            )
        return Step(ranges[0], place)

    def initial_values(self, after: int) -> InitialValues | None:
        """``.ic v(a)=1 i(L1)=2``; None, with a warning, for anything else."""
        circuit, card = self.circuit, self.card
        voltages: dict[str, float] = {}
        currents: dict[str, float] = {}
        given = fields(card, after, repeated=True)
        kinds, pairs = given.take(), given.named()
        if len(kinds) != len(pairs) or not {kind.word for kind in kinds} <= {"v", "i"}:
            self.reporter.warning(
                "analysis",
                ".ic takes node voltages and inductor currents; this entry is ignored",
                next(tokens(card, after)),
                INITIAL,
            )
            return None
        for kind, (name, value) in zip(kinds, pairs):
            try:
                if kind.word == "v":
                    voltages[circuit.node_names[circuit.node_index(name.text)]] = self.number(value)
                else:
                    currents[circuit.names[circuit.element_index(name.text)]] = self.number(value)
            except TopologyError:
                self.reporter.warning(
                    "analysis",
                    f".ic: the circuit has no {short(name.text)}; the entry is ignored",
                    name,
                    "circuitsim solve lists nodes and elements",
                )
        return InitialValues(voltages, currents, card.place())

    def small_signal(self, after: int) -> TransferRequest | SensitivityRequest:
        """``.tf v(out) V1`` or ``.sens v(out)``; words after ``AC`` are ignored with a warning."""
        card, word = self.card, self.word
        requests, place = output(card, word, after).requests, card.place()
        if word == ".tf":
            if len(requests) != 2:
                raise CardError(".tf needs an output and an input source", card.last, ".tf v(out) V1")
            return TransferRequest(*requests, place)
        words = [*map(str.lower, requests)]
        end = min((words.index(mode) for mode in ("ac", "dc") if mode in words), default=len(words))
        if words[end : end + 1] == ["dc"] and requests[end + 1 :]:
            at = card.at(card.text.find(requests[end + 1], card.offset + len(word)))
            raise CardError(f".sens: {short(requests[end + 1])!r} does not belong here", at)
        if not end or words[end : end + 1] == ["ac"]:
            self.reporter.warning(
                "analysis", ".sens: only sensitivities of the operating point are computed", card, ".sens v(out) i(V1)"
            )
        return SensitivityRequest(requests[:end], place)

    def number(self, token: Token) -> float:
        """The value of a token."""
        value = value_of(token, self.scope)
        if isinstance(value, Code) and self.word in (".tran", ".ac", ".dc"):
            self.formulas.append((token, value))
        return self.evaluator.value(value, self.environment)

    def temperatures(self) -> tuple[float, ...]:
        """The values of ``.temp``, °C."""
        if not self.words:
            raise CardError(".temp needs a temperature", self.card.last, ".temp 27")
        return tuple(checked_temperature(self.number(t), t) for t in self.words)

    # ------------------------------------------------------------------ .dc and .step
    def scale(self) -> str:
        """Take a word that names a scale."""
        found = bool(self.words) and self.words[0].kind == WORD and self.words[0].word in BASES
        return self.words.pop(0).word if found else ""

    def range(self) -> Range:
        """Take one name and its values."""
        scale, words = self.scale(), self.words
        parameter = bool(words) and words[0].word in PARAMETER_WORDS
        del words[:parameter]
        # PSpice and LTspice put the model's type before it: .step RES RMOD(R) 1 2 .1
        typed = not parameter and len(words) > 1 and ":" in words[1].text and ":" not in words[0].text
        kind = words.pop(0) if typed else None
        if not words or words[0].kind != WORD:
            raise CardError(f"{self.word} needs a name and values", self.card.last, f"{self.word} {FORMS}")
        token = words.pop(0)
        name, vary = self.meant(token, parameter, kind)
        at = words[0] if words else self.card.last
        second = self.scale()
        if scale and second:
            raise CardError(f"{self.word}: {second!r} is the second scale", at, "leave one of them out")
        if words and words[0].word == "list":
            values, steps = self.listed()
        else:
            values, steps = self.spaced(BASES[second or scale or "lin"], token.text.partition(":")[0])
        return Range(name, vary, values if isinstance(vary, str) else [(x,) * len(vary) for x in values], steps)

    def listed(self) -> tuple[Sequence[float], tuple[float, ...]]:
        """Take ``LIST v1 v2 …``."""
        words = self.words[1:]
        if not words:
            raise CardError(f"{self.word} list has no values", self.card.last, "list v1 v2 …")
        if len(words) > limits.SWEEP_POINTS:
            raise CardError(
                f"{self.word} has more than {limits.SWEEP_POINTS:,} points", words[0], "list fewer values", "limit"
            )
        self.words.clear()
        return array("d", [self.number(token) for token in words]), ()

    def spaced(self, base: float, name: str) -> tuple[Sequence[float], tuple[float, ...]]:
        """Take ``start stop step``, or for decades and octaves ``start stop points``."""
        words = self.words[:3]
        if len(words) < 3:
            last = "the number of points" if base else "step"
            raise CardError(
                f"{self.word} {short(name)} needs start, stop and {last}", self.card.last, f"{self.word} {FORMS}"
            )
        del self.words[:3]
        start, stop, step = (self.number(token) for token in words)
        try:
            if not base:
                return points(start, stop, step), (start, stop, step)
            return logarithmic(start, stop, step, base), ()
        except ValueError as error:
            hint = "write start, stop, points" if base else "the step must lead from start to stop"
            raise CardError(f"{short(name)}: {error}", words[2], hint, "analysis") from None

    def meant(self, token: Token, parameter: bool = False, kind: Token | None = None) -> Varied:
        """Resolve a name: ``R1``, ``R1:r``, ``D1:vfwd``, a parameter of the deck (marked by ``PARAM``) or of a model
        (its type may precede it), which varies in all its elements, or the temperature.

        Raises
        ------
        CardError
            Nothing that can vary has this name.
        """
        name, _, own = token.text.partition(":")
        scope, circuit, word, shown = self.scope, self.circuit, self.word, short(name)
        model = scope.found("models", name.lower())
        if kind is not None and (model is None or model.type != kind.text.upper()):
            message = f"{word}: {short(kind.text)!r} is not the type of a model {shown!r}"
            raise CardError(message, kind, f"{word} {FORMS}")
        if name in circuit and (own or not parameter):
            row = ELEMENTS[circuit.columns()[0][circuit.element_index(name)]]
            keywords = ("", *row.keywords, row.letter.lower(), row.parameter, "dc", "dcv0")
            if row.parameter and own.lower() in keywords:
                return name, name
            if circuit.device_parameter(f"{name}.{own}") is not None:
                return (f"{name}.{own}",) * 2
            message = f"{word}: {shown} has no parameter {short(own)!r} to vary"
            hint = f"vary its value: {word} {shown} …"
            if not own:
                message = f"{word} sweeps {shown}, which has no value to sweep"
                hint = "sweep a source, a resistor or a parameter"
            raise CardError(message, token, hint, "analysis")
        if own:
            if model is not None and steps(model, own):
                return token.text, PARAMETER + token.text
            elements = tuple(
                f"{circuit.names[k]}.{own}"
                for k, device in circuit.devices.items()
                if device.label.lower() == name.lower() and device.model.parameter_called(own) is not None
            )
            if not elements:
                message = f"{word}: no element takes {short(own)!r} from a model {shown!r}"
                raise CardError(message, token, "name an element or a parameter of the deck", "analysis")
            return token.text, elements
        if name.lower() in scope.parameters:
            return name, PARAMETER + name
        if parameter:
            message = f"{word}: no parameter is called {shown!r}"
            raise CardError(message, token, f"define it: .param {shown}=…", "parameter")
        if name.lower() in TEMPERATURE_WORDS:
            return TEMPERATURE, TEMPERATURE
        message = f"{word} sweeps {shown}, which is not in the circuit"
        raise CardError(message, token, "name a source, a resistor or a parameter", "analysis")

    def ranges(self) -> tuple[Range, ...]:
        """All ranges of a card, or the table it names."""
        card, word, words = self.card, self.word, self.words
        if not words and word == ".dc":
            raise CardError(
                ".dc needs a source, start, stop and step, for one source or two", card.last, f".dc {FORMS}"
            )
        if not words:
            raise CardError(".step names nothing to vary", card.last, f".step {FORMS}", "analysis")
        first = words[0]
        if first.word == "data":
            return (self.table(),)
        found: list[Range] = []
        while words:
            at = words[0]
            one = self.range()
            if one.vary == TEMPERATURE:
                checked_temperature(min(one.values), first)
            element = self.circuit[one.name] if one.vary == one.name and one.name in self.circuit else None
            if element is not None and element.kind == "resistor" and min(one.values) < 0:
                raise CardError(f"{word} sweeps a resistance below zero", first, "resistances are positive", "range")
            again = [o.name for o in found if str(o.vary).lower() == str(one.vary).lower()]
            if again:
                raise CardError(f"{word} sweeps {short(again[0])} twice", at, "name two sources", "analysis")
            found.append(one)
        if math.prod(len(one.values) for one in found) > limits.SWEEP_POINTS:
            raise CardError(
                f"{word} has more than {limits.SWEEP_POINTS:,} points", first, "take a larger step", "limit"
            )
        return tuple(found)

    def table(self) -> Range:
        """``DATA=name``."""
        words = self.words
        tables = self.reader.tables
        table = tables.get(words[1].word) if len(words) == 2 else None
        if table is None:
            known = ", ".join(short(t.name.text) for t in list(tables.values())[:8])
            hint = f"the deck has: {known}" if known else "write it: .data NAME r1 r2 …"
            raise CardError(f"{self.word}: there is no such table", words[:2][-1], hint, "analysis")
        varied = [self.meant(token)[1] for token in table.columns]
        names = [(name,) if isinstance(name, str) else name for name in varied]
        numbers = [self.number(token) for token in table.values]
        rows = (numbers[k : k + len(names)] for k in range(0, len(numbers), len(names)))
        values = [tuple(x for x, own in zip(row, names) for _ in own) for row in rows]
        return Range(table.name.text, tuple(name for own in names for name in own), values)

    # ------------------------------------------------------------------ .tran
    def transient(self) -> Transient:
        """``.tran step stop [start [largest step]] [UIC]``, or LTspice's ``.tran stop``."""
        card, words = self.card, self.words
        flags = [token for token in words if token.kind == WORD and token.word in TRANSIENT_FLAGS]
        numbers = [self.number(token) for token in words if token not in flags]
        for token in flags:
            if token.word not in ("uic", "startup"):
                self.reporter.gather("no-effect", ".tran: %s has no effect", token, token.word)
        if not 1 <= len(numbers) <= 4:
            raise CardError(".tran needs a step and a stop time", card.last, ".tran step stop [start]")
        step, stop, start, longest = (*[0.0] * (len(numbers) == 1), *numbers, 0.0, 0.0)[:4]
        start = max(start, 0.0)  # as LTspice
        if step < 0 or stop <= start or longest < 0:
            raise CardError(
                ".tran needs 0 ≤ start < stop and non-negative steps", words[0], ".tran step stop [start]", "range"
            )
        if memory(self.circuit):
            self.reporter.warning("tran", ".tran: only the operating point is computed; circuitsim tran runs it", card)
        given = {token.word for token in flags}
        return Transient(step, stop, start, card.place(), "uic" in given, "startup" in given, longest)

    # ------------------------------------------------------------------ .ac
    def ac(self) -> SmallSignal | OperatingPointRequest:
        """``.ac dec|oct|lin points first last``, or ``.ac list f1 f2 …``."""
        card, words = self.card, self.words
        if words and words[0].word == "data":
            self.reporter.warning("ac", ".ac data=… is not supported; the operating point is solved", card)
            return OperatingPointRequest(card.place())
        example = ".ac dec 10 1 1MEG, or .ac list 50 1k"
        at = words[0] if words else card.last
        spacing = next((one for one in Spacing if one.value == at.word), None)
        if spacing is None:
            raise CardError(".ac needs dec, oct, lin or list, and frequencies", at, example)
        numbers = [self.number(token) for token in words[1:]]
        points = 1
        if spacing is not Spacing.LIST:
            if len(numbers) != 3 or not 1 <= numbers[0] == round(numbers[0]):
                raise CardError(".ac needs a whole number of points, the first and the last frequency", at, example)
            points, numbers = round(numbers[0]), numbers[1:]
        ascending = len(numbers) > 0 and all(a <= b for a, b in pairwise(numbers))
        if not ascending or numbers[0] < 0.0 or (numbers[0] == 0.0 and spacing in (Spacing.DECADE, Spacing.OCTAVE)):
            raise CardError(
                ".ac needs frequencies in ascending order, above 0 for decades and octaves", at, example, "range"
            )
        self.reporter.warning("ac", ".ac: only the operating point is computed; circuitsim ac runs it", card)
        return SmallSignal(spacing, points, tuple(numbers), card.place())
