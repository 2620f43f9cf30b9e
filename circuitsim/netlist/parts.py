"""Element cards: R, D, V, I, L, C and the sub-circuit call X, into the columns of a scope."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable

from circuitsim.circuit.elements import AMPLIFIER, BY_LETTER, CURRENT, DIODE, ELEMENTS, RESISTOR, VOLTAGE
from circuitsim.netlist import attributes, refused
from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import Code
from circuitsim.netlist.passive import passive
from circuitsim.netlist.physical import OWN
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.ranges import checked, positive
from circuitsim.netlist.scope import Call, Count, ModelUse, Scope, Special, Value, Wave
from circuitsim.netlist.sources import OF_PWL, phasor, source_value
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token, Words, fields, tokens
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import scale_of, short

NO_EFFECT = frozenset(("pj", "off", "ic", "scale", "ac", "noisy", "noiseless", "nt", "bv_max"))
"""Instance parameters without effect on the operating point of an ideal circuit."""

# By first character in either case; no upper(), which would turn a dotless ı into I.
# X begins a call; the amplifier's is identified by the sub-circuit's name.
_OWN = {letter: code for letter, code in BY_LETTER.items() if code != AMPLIFIER}
CODES = {**_OWN, **{letter.lower(): code for letter, code in _OWN.items()}}
MINIMUM = [row.minimum for row in ELEMENTS]
_NAN = float("nan")
COUNTS = ("m", "n", "area")
"""Of an element with a model: cells in parallel, cells in series, area."""

OWN_TEMPERATURE = ("temp", "dtemp")
"""Of an element with a model: its temperature, or how far that is above the deck's (°C)."""

USES_KEPT = 100
"""Elements remembered for each model of a scope, for the errors of a model that is missing."""

_BAD_NAME = re.compile(r"[\s=(),{}'\"]|//")


def good_name(word: str) -> bool:
    """Whether ``word`` can name a node or an element: printable, without the characters that have a meaning."""
    return word.isalnum() or (word.isprintable() and not _BAD_NAME.search(word))


class Parts:
    """Reads element cards into scopes.

    Attributes
    ----------
    points : callable
        The numbers of the file of points that a token of a card names.
    """

    def __init__(self, reporter: Reporter, points: Callable[[Card, Token], list[float]]) -> None:
        self.reporter, self.points = reporter, points

    def element(self, scope: Scope, card: Card) -> None:
        """Take an element card of any form.

        Raises
        ------
        CardError, ExpressionError
            Something is wrong with it.
        """
        found = tokens(card)
        name = found[0]
        code = CODES[name.text[0]]
        row = ELEMENTS[code]
        self.check_name(scope, name, card)
        if len(found) > 1 and found[1].kind == MARK and found[1].text == "=":
            raise CardError(
                "syntax",
                f"{short(name.text)} is assigned to, outside .param",
                found[1].offset,
                "parameters are set with .param",
            )
        sorted_ = fields(card, found[1:])
        first, second = self.two_nodes(scope, name, sorted_, row.terminals)
        if code == DIODE:
            self.diode(scope, card, name, first, second, sorted_)
            return
        extra = attributes.parasitics(scope, card, code, sorted_)
        initial = attributes.initial(scope, card, code, sorted_)
        share = attributes.tolerance(sorted_)
        ignored = NO_EFFECT | attributes.NO_EFFECT.get(code, frozenset())
        own = OF_PWL if code in (VOLTAGE, CURRENT) else OWN
        multiplier, details = self.pairs(scope, card, name, sorted_, (*row.keywords, *own), ignored), None
        value: Value | Wave | None
        wave = amplitude = None
        if code in (VOLTAGE, CURRENT):
            words = list(sorted_.words)
            offset, value, wave = source_value(self, scope, card, name, sorted_)
            amplitude = phasor(scope, card, words)
        else:
            offset, value, details = passive(self, scope, card, name, sorted_, code)
        if extra:
            first, second = attributes.attach(scope, card, name.text, (first, second), extra, multiplier)
        if code == VOLTAGE:
            multiplier = 1.0
        negative = code == RESISTOR and isinstance(value, float) and value < 0.0
        if isinstance(value, float) and multiplier == 1.0 and details is None and not negative:
            checked(code, name.text, value, offset)
            position = scope.element(code, name.text, first, second, value, card)
        else:
            position = scope.element(code, name.text, first, second, 0.0, card)
            scope.specials[position] = Special(card, offset, value, multiplier, details)
        if share is not None:
            scope.tolerances[position] = share
            self.reporter.gather(
                "nominal",
                "values are nominal in spite of tol= (%s): circuitsim montecarlo and worst-case take it",
                card,
                name.offset,
                name.text,
            )
        if wave is not None:
            scope.waves[position] = wave
        if initial is not None:
            scope.initials[position] = initial
        if amplitude is not None:
            scope.phasors[position] = amplitude

    def check_name(self, scope: Scope, name: Token, card: Card) -> None:
        """A name that is new to its scope and can be written."""
        if not good_name(name.text):
            at = next((k for k, c in enumerate(name.text) if not c.isprintable()), 0)
            raise CardError(
                "syntax",
                f"the name {short(name.text)!r} holds characters that cannot be seen or have a meaning",
                name.offset + at,
                "use letters, digits and signs such as _ . : [ ]",
            )
        key = name.text.lower()
        if key in scope.index:
            line = self.line_of(scope, scope.index[key])
            raise CardError(
                "duplicate",
                f"{short(name.text)} is there already (line {line})",
                name.offset,
                "names must differ within one scope",
            )

    @staticmethod
    def line_of(scope: Scope, position: int) -> int:
        """The line on which the element (or, as −1 − its position, the call) was written."""
        return scope.lines[position] if position >= 0 else scope.calls[-1 - position].card.line

    def two_nodes(self, scope: Scope, name: Token, sorted_: Words, terminals: tuple[str, str]) -> tuple[int, int]:
        """The two nodes that begin the card's words."""
        nodes = [self.node(scope, token) for token in sorted_.words[:2]]
        if len(nodes) < 2:
            missing = terminals[len(nodes)]
            raise CardError(
                "syntax",
                f"{short(name.text)} needs two nodes; the {missing} one is missing",
                max(sorted_.end - 1, 0),
                f"{name.text[0]}name {terminals[0]} {terminals[1]} …",
            )
        del sorted_.words[:2]
        return nodes[0], nodes[1]

    def node(self, scope: Scope, token: Token) -> int:
        """The local number of the node that ``token`` names."""
        if token.kind != WORD:
            raise CardError("syntax", "a node name is expected here", token.offset, "node names cannot be computed")
        known = scope.nodes.get(token.text)
        if known is not None:
            return known
        if not good_name(token.text):
            bad = next((k for k, c in enumerate(token.text) if not c.isprintable()), token.text.find("//"))
            hint = "ngspice reads // as a comment" if "//" in token.text else "it holds a character that cannot be seen"
            raise CardError("syntax", f"{short(token.text)!r} cannot name a node", token.offset + max(bad, 0), hint)
        return scope.node(token.text)

    def pairs(
        self,
        scope: Scope,
        card: Card,
        name: Token,
        sorted_: Words,
        own: tuple[str, ...],
        ignored: frozenset[str] = NO_EFFECT,
    ) -> Value:
        """Take ``m=``, note what has no effect, leave the value's own pairs; returns the multiplier."""
        multiplier: Value = 1.0
        kept = [pair for pair in sorted_.pairs if pair[0].text.lower() in own]
        for key, value in [pair for pair in sorted_.named() if pair not in kept]:
            word = key.text.lower()
            if word == "m":
                multiplier = constant(value_of(value, card, scope))
                if isinstance(multiplier, float):
                    positive(name.text, word, multiplier, value.offset)
            elif word in ignored:
                self.no_effect(word, card, key.offset, name.text)
            else:
                if word == "wavefile":
                    raise CardError(
                        "unsupported",
                        f"{short(name.text)}: sound files are not read",
                        key.offset,
                        "write times and values to a text file: PWL file=points.txt",
                    )
                if word in refused.FORMULAS:
                    what, instead = refused.FORMULAS[word]
                    raise CardError("unsupported", f"{short(name.text)}: {what} is not supported", key.offset, instead)
                raise CardError(
                    "syntax",
                    f"{short(name.text)} has no parameter {short(key.text)!r}",
                    key.offset,
                    f"known: {', '.join((*own, 'm'))}",
                )
        sorted_.pairs[:] = kept
        return multiplier

    def no_effect(self, word: str, card: Card, offset: int, name: str, kind: str = "no-effect") -> None:
        """Note an instance parameter without effect."""
        self.reporter.gather(kind, f"{word} has no effect at the operating point (%s)", card, offset, name)

    def flag(self, token: Token, card: Card, name: Token) -> bool:
        """Whether ``token`` is a bare word without effect (``off``)."""
        if token.kind == WORD and token.text.lower() in NO_EFFECT:
            self.no_effect(token.text.lower(), card, token.offset, name.text)
            return True
        return False

    def warn_letters(self, card: Card, name: Token, token: Token, value: Value, code: int) -> None:
        """Warn of a capital M (milli, not mega) on a resistance and of A (atto, not ampere), which sources refuse."""
        if isinstance(value, Code):
            letters, number = ("M", value.mega) if value.mega else ("", "")
        else:
            number = token.text
            letters = number.lstrip("+-0123456789.")
            letters = letters[1:].lstrip("+-0123456789") if letters[:1] in ("e", "E") else letters
        if code == RESISTOR and letters[:1] == "M" and scale_of(letters) == "m":
            digits = number[: len(number) - len(letters)] if isinstance(value, float) else number.split("M")[0]
            self.reporter.warning(
                "mega",
                f"{short(name.text)}: {short(number)} is {short(digits)} milliohm: M is milli in SPICE",
                card,
                token.offset,
                f"write {short(digits)}MEG for mega, {short(digits)}m if milli is meant",
                [name.text],
            )
        if letters[:1] in ("a", "A") and code == VOLTAGE:
            digits = number[: len(number) - len(letters)]
            raise CardError(
                "atto",
                f"{short(name.text)}: {short(number)} is {short(digits)} ampere to its writer, "
                f"{short(digits)}e-18 to SPICE, where A is atto",
                token.offset,
                f"write {short(digits)} for the one, {short(digits)}e-18 for the other",
            )
        if letters[:1] in ("a", "A"):
            self.reporter.warning(
                "atto",
                f"{short(name.text)}: {short(number)} is atto (1e-18) in SPICE, not ampere",
                card,
                token.offset,
                "leave the unit out",
                [name.text],
            )

    def diode(self, scope: Scope, card: Card, name: Token, first: int, second: int, sorted_: Words) -> None:
        """A diode: the model name is optional, switches have no effect, an area where its model has one."""
        counts = self.counts(scope, card, name, sorted_)
        position = len(scope.kind)
        words = [w for w in sorted_.take() if not self.flag(w, card, name)]
        if words and words[0].kind == WORD:
            # A model (1N4148) or a bare area: decided after all models are read.
            model = words.pop(0)
            uses = scope.uses.setdefault(model.text.lower(), [])
            if len(uses) < USES_KEPT:
                uses.append(ModelUse(card, model.offset, name.text, model.text))
            scope.modelled.setdefault(model.text.lower(), array("q")).append(position)
        if words:
            area = value_of(words[0], card, scope)
            if len(words) > 1 or (isinstance(area, float) and area < 0):
                raise CardError(
                    "syntax",
                    f"{short(name.text)}: {short(words[-1].text)!r} does not belong here",
                    words[-1].offset,
                    "Dname anode cathode model",
                )
            counts["area"] = Count(card, words[0].offset, constant(area))
        scope.element(DIODE, name.text, first, second, _NAN, card)
        if counts:
            scope.counts[position] = counts

    def counts(self, scope: Scope, card: Card, name: Token, sorted_: Words) -> dict[str, Count]:
        """``m= n= temp= dtemp=`` of an element with a model, which decides whether they apply."""
        found = {}
        for key, value in sorted_.named((*COUNTS, *OWN_TEMPERATURE)):
            word = key.text.lower()
            number = constant(value_of(value, card, scope))
            if isinstance(number, float) and word in COUNTS:
                positive(name.text, word, number, value.offset)
            found[word] = Count(card, key.offset, number)
        self.pairs(scope, card, name, sorted_, ())
        return found

    # ------------------------------------------------------------------ sub-circuit calls
    def call(self, scope: Scope, card: Card) -> None:
        """Take an ``X`` card: nodes, the sub-circuit's name, ``PARAMS:`` or not, and its parameters."""
        found = tokens(card)
        name = found[0]
        self.check_name(scope, name, card)
        sorted_ = fields(card, found[1:])
        words = sorted_.take()
        if words and words[-1].text.lower() in ("params:", "params"):
            words.pop()
        if not words:
            raise CardError(
                "syntax",
                f"{short(name.text)} names no sub-circuit",
                max(len(card.text) - 1, 0),
                "Xname node … subcircuit parameter=value …",
            )
        target = words.pop()
        if target.kind != WORD:
            raise CardError("syntax", "the name of a sub-circuit is expected here", target.offset)
        nodes = array("q", [self.node(scope, token) for token in words])
        passed: dict[str, Value] = {}
        offsets: dict[str, int] = {}
        for key, value in sorted_.named():
            word = key.text.lower()
            passed[word], offsets[word] = value_of(value, card, scope), key.offset
        scope.index[name.text.lower()] = -1 - len(scope.calls)
        scope.calls.append(Call(card, name.text, nodes, target.text, target.offset, passed, offsets, len(scope.kind)))
