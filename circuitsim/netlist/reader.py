"""Cards to scopes: dispatch of cards, bounds of sub-circuits, skipped and refused cards, ``.if``, ``.options``, ``K``
cards, ``.control`` blocks, and plain element lines, many at once.

``.if`` conditions are evaluated once, in place, from parameters of the deck; a parameter that decides one cannot change
after it or in a sweep. If a sub-circuit's own parameter decides, the sub-circuit is read once for each outcome, and
every call uses the variant for its values.

A regular expression finds runs of plain lines (a name, two nodes and a number or, for a diode, a model); their words go
to the columns of a scope. A line that needs a message, or may be continued, is read as a card.

In a ``.control`` block ``op dc tran ac print plot`` act as cards of these names; ``alter``, ``set temp`` and numeric
``let`` apply up to the first analysis, which fixes the circuit. Other commands get a note, or a warning if they would
change the circuit.
"""

from __future__ import annotations

import math
import re
from array import array
from itertools import combinations

from circuitsim.circuit.elements import DIODE, ELEMENTS
from circuitsim.errors import some
from circuitsim.netlist import controlled, definitions, dialect, limits
from circuitsim.netlist.cards import (
    MARK,
    WORD,
    Card,
    CardError,
    Files,
    Piece,
    Source,
    Token,
    cards,
    fields,
    finish,
    joined,
    order,
    tokens,
)
from circuitsim.netlist.deck import Directive
from circuitsim.netlist.definitions import Table, normal, table
from circuitsim.netlist.expression import Code, Environment, Evaluator, outwards
from circuitsim.netlist.parts import CODES, SWITCHES, ElementReader, Reader
from circuitsim.netlist.scope import Coupling, ElementCard, Scope, formula, value_of
from circuitsim.units import exact, parse, short

_HEAD = re.compile(r"\.(?:if|elseif|else|endif)\b", re.I)
_EQUALS = re.compile(r"(?<![=<>!])=(?!=)")


class _Branch:
    """An open ``.if``: its card and scope; whether one of its branches was read before or none may be, and whether the
    current one is read."""

    def __init__(self, card: Card, scope: Scope, done: bool) -> None:
        self.card, self.scope, self.active, self.done = card, scope, False, done


class Conditions:
    """The open conditions of a deck, and those decided.

    Attributes
    ----------
    outcomes : dict
        Source and line of a sub-circuit being reread → outcomes of its conditions, in order.
    names : dict of str to int
        Parameters that decide a condition, directly or through others → its line.
    """

    def __init__(self) -> None:
        self.open: list[_Branch] = []
        self.decided: list[tuple[Card, Code, Scope, bool]] = []
        self.names: dict[str, int] = {}
        self.outcomes: dict[tuple[Source, int], list[bool]] = {}

    @property
    def skipping(self) -> bool:
        """Whether cards are being skipped."""
        return bool(self.open) and not self.open[-1].active

    def take(self, reader: DeckReader, card: Card, word: str, after: int) -> None:
        """One of the four cards.

        Raises
        ------
        CardError, ExpressionError
            A condition without a value, or cards out of order.
        """
        if word == ".if":
            self.open.append(_Branch(card, reader.scope, self.skipping))
        elif not self.open:
            raise CardError(f"{word} without its .if", card, "a condition begins with .if (a > b)")
        branch = self.open[-1]
        if branch.scope is not reader.scope or word == ".endif":
            self.open.pop()
        if branch.scope is not reader.scope:
            raise CardError(
                f"{word} and its .if (line {branch.card.line}) are in different sub-circuits",
                card,
                "close .if and .subckt in the opposite order",
            )
        branch.active = False
        if not branch.done and word != ".endif":
            branch.done = True  # also if its condition has no value
            branch.active = branch.done = word == ".else" or self.holds(reader, card, after)

    def holds(self, reader: DeckReader, card: Card, after: int) -> bool:
        """Whether the condition on ``card`` holds; a single ``=`` compares, as in ngspice."""
        text = card.text[:after] + _EQUALS.sub("==", card.text[after:])
        code = formula(Card(card.source, card.line, text, card.pieces), after, reader.top)
        own = _owner(reader.scope, code)
        if own is not None:
            return self.outcome(own, code)
        found = _holds(reader, code)
        self.decided.append((card, code, reader.scope, found))
        waiting = list(code.names)
        while waiting:
            name = waiting.pop()
            if name not in self.names:
                self.names[name] = card.line
                value = reader.top.parameters.get(name)
                waiting += list(value.names) if isinstance(value, Code) else []
        return found

    def outcome(self, own: Scope, code: Code) -> bool:
        """The outcome of a condition in the current variant of a sub-circuit."""
        asked = self.outcomes.get((own.card.source, own.card.line), [])
        holds = asked[len(own.choices)] if len(own.choices) < len(asked) else True
        own.choices.append((code, holds))
        return holds

    def read_variants(self, reader: DeckReader, first: Scope) -> None:
        """Read a sub-circuit, which has just ended, for all other outcomes of its conditions.

        Raises
        ------
        CardError
            There are too many.
        """
        place = (first.card.source, first.card.line)
        if place in self.outcomes:
            return
        found = [(first, 0)]
        for scope, fixed in found:  # which grows: each free outcome is inverted once
            for k in range(fixed, len(scope.choices)):
                if len(found) == limits.VARIANTS:
                    raise CardError(
                        f"the conditions of {short(first.name)} have more than {limits.VARIANTS} outcomes",
                        hint="define a sub-circuit for each case",
                        kind="limit",
                    )
                self.outcomes[place] = [*(holds for _, holds in scope.choices[:k]), False]
                found.append((reader.again(first.card), k + 1))
        first.variants = [scope for scope, _ in found]
        self.outcomes.pop(place, None)

    def close(self, reader: DeckReader) -> None:
        """Check conditions at the end of the deck."""
        for branch in self.open:
            reader.reporter.error("syntax", ".if without its .endif", branch.card, hint="close it with .endif")
        for card, code, scope, found in self.decided:
            with reader.reporter.at(card):
                wrong = "a parameter of the sub-circuit is defined after its condition"
                if _owner(scope, code) is None:
                    changes = _holds(reader, code) is not found
                    wrong = (
                        f"the condition changes by the end of the deck ({', '.join(map(short, code.names))})" * changes
                    )
                if wrong:
                    raise CardError(wrong, card, "put .param before .if", "parameter")


def _owner(scope: Scope, code: Code) -> Scope | None:
    """The innermost sub-circuit whose own parameter a condition reads."""
    inner = (one for one in outwards(scope) if one.parent is not None)
    return next((one for one in inner if any(map(one.is_parameter, code.names))), None)


def _holds(reader: DeckReader, code: Code) -> bool:
    return bool(Evaluator().value(code, Environment(reader.top.parameters)))


_WITHOUT_MODEL = re.compile(r"(\w+)\s(?:.*\s)?__\1\s*")
"""Line of KiCad for a part without a model: ``J1 __J1``, ``J1 a b __J1``."""
ACTING = frozenset(("temp", "tnom", "diodes"))
"""Options that affect the operating point."""


def options(reader: DeckReader, card: Card, position: int) -> None:
    """``.options name=value flag …``: the last value of a name counts.

    Raises
    ------
    CardError, ExpressionError
        A temperature that is not a value, or an invalid option.
    """
    word, given = card.text[card.offset : position].lower(), fields(card, position, repeated=True)
    flags, pairs = given.take(), given.named()
    for flag in flags:
        if flag.kind != WORD or not flag.text[0].isalpha():
            raise CardError(f"{short(flag.text)!r} is not an option", flag, ".options name=value …")
    for key, token in pairs:
        if key.word in ACTING:
            if key.word != "diodes":
                value_of(token, reader.top)
            reader.options[key.word] = token
    idle = [flag for flag in flags if flag.word not in ("device", "parser")]  # Xyce's packages of options
    idle += [key for key, _ in pairs if key.word not in ACTING]
    names = [key.word for key in sorted(idle, key=lambda key: key.offset)]
    for name in names if flags or pairs else [word]:
        reader.reporter.gather("no-effect", f"{word} has no effect at the operating point (%s)", card, name)


def coupling(reader: DeckReader, card: Card) -> None:
    """Take a ``K`` card: coupled inductors are shorts at DC like others; names are checked at the end.

    Raises
    ------
    CardError
    """
    name = next(tokens(card))
    words = fields(card, name.end).take()
    if len(words) < 3:
        raise CardError(f"{short(name.text)} needs two inductors and a coefficient", card.last, "Kname L1 L2 0.99")
    factor = value_of(words[-1], reader.scope)
    reader.scope.couplings.append(Coupling(words[:-1], factor))
    reader.couplings.append((reader.scope, words[:-1]))
    reader.reporter.gather(
        "coupled", "a coupling of inductors has no effect at the operating point (%s)", name, name.text
    )


WINDOW = 1 << 18
"""Maximum number of characters matched together."""

_NAME = r"[!#%&*+\-./0-9:<>?@A-Z\[\\\]^_`a-z|~]"
_ENDS = rf"{_NAME}*+[ \t]++{_NAME}++[ \t]++{_NAME}++"
_NODES = rf"{_ENDS}[ \t]++"
# No unit, no capital M (milli or mega?), no A (atto or ampere?): these need a warning; all are in a double's range.
_DIGITS = r"(?:[0-9]{1,99}+\.?+[0-9]{0,99}+|\.[0-9]{1,99}+)(?:[eE][+-]?+[0-9]{1,2}+)?+"
_SIZE = rf"{_DIGITS}(?:[kKgGtTuUnNpPm]|[mM][eE][gG])?+"
_MODEL = rf"(?!(?i:{'|'.join(sorted(dialect.INSTANCE))})\s)[A-Za-z0-9_]++"
_LINE = rf"(?:[Rr]{_NODES}\+?+{_SIZE}|[CLVIclvi]{_NODES}[+-]?+{_SIZE}|[Dd]{_NODES}{_MODEL})"
_NEXT = r"[ \t]*+\n(?=[A-Za-z.])"
_LINES = re.compile(rf"(?:[ \t]*+{_LINE}{_NEXT})++|(?P<ideal>(?:[ \t]*+[Dd]{_ENDS}{_NEXT})++)")
"""Lines of four words, or of ideal diodes, of three."""


class _Numbers(dict[str, float]):
    """Values of plain lines by their text."""

    def __missing__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = parse(text)
        self[text] = value + 0.0  # no negative zero
        return self[text]


class DeckReader(definitions.Includes):
    """The state of reading a deck."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.tables: dict[str, Table] = {}
        self.directives: list[Directive] = []
        self.without_model: list[tuple[Token, Scope]] = []
        self.foreign: dict[str, list[Token]] = {}
        self.couplings: list[tuple[Scope, list[Token]]] = []
        self.conditions = Conditions()
        self.control: Card | None = None
        self.script = Script(self)
        self.rows: list[Card] = []  # of an open table

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""
        source.number = source.number or 1 + len(self.sources)
        self.sources[source.number] = source
        for card in cards(source, first, self.take_plain):
            self.take(card)
            if self.ended:
                break
        if self.control is not None:
            self.reporter.error("syntax", ".control without its .endc", self.control, hint="close it with .endc")
            self.control = None

    def again(self, card: Card) -> Scope:
        """Read the sub-circuit that begins with ``card`` once more."""
        outside, inside = self.scope, self.scope
        for one in cards(card.source, card.line, self.take_plain):
            self.take(one)
            if inside is outside:
                inside = self.scope
            if self.scope is outside:
                break
        return inside

    def take_plain(self, source: Source, number: int, start: int) -> int:
        """Read plain elements from a line of a text on, if elements are being read; returns the offset after them."""
        scope, text = self.scope, source.text
        skipping = self.control is not None or self.conditions.skipping or self.ended
        if skipping or (self.library and scope is self.top) or scope.cards is not None or self.rows:
            return start
        found = _LINES.match(text, start, start + WINDOW) if start >= source.as_cards else None
        comment = -1 if found is None else text.find("//", start, found.end())
        stop = start if found is None else found.end() if comment < 0 else text.rfind("\n", start, comment) + 1
        if stop <= start:
            return start
        words, known, position = text[start:stop].split(), _Numbers(), len(scope.kind)
        each = 3 if found is not None and found.lastgroup else 4
        names = words[::each]
        last = words[3::4] if each == 4 else [""] * len(names)
        keys, kinds = [name.lower() for name in names], [CODES[name[0]] for name in names]
        values = [math.nan if kind == DIODE else known[word] for kind, word in zip(kinds, last)]
        if len({*keys}) < len(keys) or not scope.index.keys().isdisjoint(keys):
            source.as_cards = stop
            return start
        nodes, node = scope.nodes, scope.node
        ends = [nodes[w] if w in nodes else node(w) for pair in zip(words[1::each], words[2::each]) for w in pair]
        for k, model in enumerate(last, position):
            if model and kinds[k - position] == DIODE:
                scope.modelled.setdefault(model.lower(), array("q")).append(k)
        scope.names.extend(names)
        scope.index.update(zip(keys, range(position, position + len(keys))))
        scope.kind.extend(kinds)
        scope.first.extend(ends[::2])
        scope.second.extend(ends[1::2])
        scope.value.extend(values)
        line = scope.line(source, number)
        scope.lines.extend(range(line, line + len(names)))
        return stop

    def take(self, card: Card) -> None:
        """Read one card; its errors are reported, and reading continues."""
        start = card.offset
        head = card.text[start].lower()
        if self.conditions.skipping and not _HEAD.match(card.text, start):
            return
        if self.rows:
            if head.isdecimal() or head in "-{'" or (head == "." and card.text[start + 1 : start + 2].isdecimal()):
                self.rows.append(card)
                return
            self.close_table()
        try:
            if head == "*":
                self.directives.append(Directive(card.text[start + 2 :].strip(), card.place(start)))
            elif self.scope.cards is not None and not card.text[start:].lower().startswith(".ends"):
                self.scope.cards.append(normal(card.text))
            elif head == ".":
                self.dot(card, start)
            elif self.control is not None:
                self.script.command(card)
            elif self.library and self.scope is self.top:
                raise CardError("a library holds definitions, not elements", card, "put it in .subckt")
            elif head == "x":
                ElementReader(self, card).call()
            elif head == "k":
                coupling(self, card)
            elif head in SWITCHES:
                ElementReader(self, card).switch()
            elif head in controlled.LETTERS:
                card = self.with_tables(card)
                controlled.SourceCard(self, card).take()
            elif head in CODES:
                ElementReader(self, card).take()
            else:
                self.refuse(card, start, head)
            finish(card)
        except CardError as error:
            if error.kind == "unsupported" and card.source.callers and self.scope.parent is not None:
                self.scope.deferred.append((card, error))
            elif error.kind == "unsupported" and head in dialect.FOREIGN:
                self.foreign.setdefault(dialect.FOREIGN[head], []).append(_name(card))
            else:
                self.reporter.failure(error, card)

    def refuse(self, card: Card, start: int, head: str) -> None:
        """Report an unsupported element, or a line that is not a card."""
        name = _name(card)
        if card.text.strip() == ")":
            self.reporter.gather("no-effect", "a line that is only ')' ends the card before it", card, ")")
        elif head == "+":
            raise CardError("a continuation line without a card before it", card, "remove the +")
        elif _WITHOUT_MODEL.fullmatch(card.text, start):
            self.without_model.append((name, self.scope))
        elif head in dialect.ELEMENTS:
            message = f"{name.text} is {dialect.ELEMENTS[head]}, which is not supported"
            hint = dialect.FOREIGN_HINT if head in dialect.FOREIGN else dialect.LINE_HINT
            raise CardError(message, card, hint, "unsupported")
        else:
            raise CardError(
                f"{name.text!r} does not begin a known card",
                card,
                "a card begins with R, D, V, I, L, C, E, F, G, H, B, X, a dot, or * for a comment",
                "unknown-card",
            )

    def dot(self, card: Card, start: int) -> None:
        """Read a dot card."""
        word = re.split(r"[\s=(]", card.text[start : start + 40], maxsplit=1)[0].lower()
        after = start + len(word)
        if word in dialect.BARE:
            fields(card, after)
        if self.control is not None:
            if word == ".endc":
                self.control = None
            else:
                self.script.idle(card, word)
            return
        if _HEAD.fullmatch(word):
            self.conditions.take(self, card, word, after)
        elif word in definitions.CARDS:
            inside = self.scope
            definitions.CARDS[word](self, card, after)
            if inside.choices and word == ".ends":
                self.conditions.read_variants(self, inside)
        elif word in dialect.ANALYSES:
            self.requests.append(card)
            if word == ".temp" and (first := next((t for t in tokens(card, after) if t.kind != MARK), None)):
                self.options[word] = first
        elif word in dialect.OPTIONS:
            options(self, card, after)
        elif word == ".data":
            self.rows = [card]
        elif word == ".control":
            self.control = card
        elif word == ".end":
            self.ended = True
        elif word == ".enddata":
            pass  # the table ends with its card
        elif word in dialect.NO_EFFECT:
            what, of = f"{word} has no effect at the operating point", card.text[after:].lower().split(None, 1)[:1]
            if word in (".meas", ".measure") and of and of[0] in dialect.OTHER_MEASUREMENTS:
                what = f"{word} {of[0]} is ignored: tran, ac and dc can be measured"
            self.reporter.gather("no-effect", what, card, what.partition(" has ")[0])
            if word in dialect.OVER_TIME and self.scope is self.top:
                self.requests.append(card)
        elif word in dialect.OTHER_ANALYSES:
            what = dialect.OTHER_ANALYSES[word]
            hint = dialect.ADVICE.get(word, "")
            self.reporter.warning("analysis", f"{word} is ignored: {what} analysis is not supported", card, hint)
        elif word in dialect.CARDS:
            message, hint = dialect.CARDS[word]
            raise CardError(f"{word}: {message}", card, hint, "unsupported")
        else:
            raise CardError(
                f"{short(word)} is not a known card",
                card,
                "docs/netlist.md lists the known cards; a comment begins with *",
                "unknown-card",
            )

    def close_table(self) -> None:
        """Read a table of values, its rows after a ``+`` (Xyce) or bare (HSPICE)."""
        card = joined(self.rows[0], [(row.line, row.text) for row in self.rows[1:]])
        self.rows = []
        with self.reporter.at(card):
            found = table(card, card.offset + len(".data"))
            if found.name.word in self.tables:
                raise CardError(
                    f"table {short(found.name.text)} is already defined", found.name, "names must differ", "duplicate"
                )
            self.tables[found.name.word] = found

    def close(self) -> None:
        """Report what is missing at the end of the deck."""
        if self.rows:
            self.close_table()
        self.conditions.close(self)
        self.script.alter(self.top)
        coupled = set[tuple[int, frozenset[str]]]()
        for scope, words in self.couplings:
            for token in words:
                if token.word not in scope.index:
                    message = f"no inductor is called {short(token.text)!r}"
                    hint = "a coupling names inductors of its own sub-circuit"
                    self.reporter.error("coupling", message, token, hint)
            for first, second in combinations(words, 2):
                pair = id(scope), frozenset((first.word, second.word))
                if first.word == second.word:
                    message = f"{short(first.text)} is coupled with itself"
                    self.reporter.error("coupling", message, second, hint="name two inductors")
                elif pair in coupled:
                    message = f"{short(first.text)} and {short(second.text)} are coupled already"
                    self.reporter.error("coupling", message, second, hint="remove one of the two K cards")
                coupled.add(pair)
        self.refuse_foreign()
        for here in outwards(self.scope):
            if here.card is not None:
                self.reporter.error(
                    "subcircuit", f".subckt {short(here.name)} has no .ends", here.card, hint="close it with .ends"
                )

    def refuse_foreign(self) -> None:
        """Report all transistors and code models of the deck as one error; parts without a model are open."""
        for name, scope in self.without_model:
            if scope.found("models", f"__{name.word}") is not None:
                self.foreign.setdefault(dialect.FOREIGN.get(name.word[0], "a part with a model"), []).append(name)
            else:
                message = "parts without a simulation model are left open (%s)"
                self.reporter.gather("no-model", message, name, name.text)
        if not self.foreign:
            return
        found = [name for places in self.foreign.values() for name in places]
        names, parts = [name.text for name in found], list[str]()
        for what, places in self.foreign.items():
            parts.append(f"{len(places)} × {what.split(' ', 1)[1]}: {some([name.text for name in places], 5)}")
        message = f"elements that are not supported: {'; '.join(parts)}"
        if len(names) == 1:
            message = f"{names[0]} is {next(iter(self.foreign))}, which is not supported"
        self.reporter.error("unsupported", message, min(found, key=order), dialect.FOREIGN_HINT, names[:20])


def _name(card: Card) -> Token:
    """The first word of a card."""
    return card.at(card.offset)._replace(text=short(card.text[card.offset :][:200].split()[0]))


CARDS = dialect.words("op dc tran ac")
"""Commands equivalent to the card of that name."""

ANALYSES = CARDS | dialect.words("run noise tf disto pz sens sp pss")
"""Commands that solve the circuit; later changes are not applied."""

OUTPUTS = dialect.words("print plot")
LOOPS = dialect.words("foreach while dowhile repeat if")
CHANGES = dialect.words("alter altermod alterparam reset source")
"""Commands that change the circuit."""

QUANTITY = re.compile(r"[vip]\([^()]+\)|@[^\s\[\]]+\[\w+\]|[^\s#]+#branch|all", re.IGNORECASE)
_ALTER = re.compile(r"\s*@?([^\s=\[\],]+)(?:\[\s*(\w+)\s*\]|\s+([a-z_]\w*)(?=[\s=]))?[\s=]+(\S.*?)\s*$", re.IGNORECASE)
_LET = re.compile(r"\s*([a-z_]\w*)\s*=(?!=)\s*(\S.*?)\s*$", re.IGNORECASE)
_TEMPERATURE = re.compile(r"\s*temp\s*=\s*(\S+)\s*$", re.IGNORECASE)


class Script:
    """The commands of a deck's ``.control`` blocks.

    Attributes
    ----------
    solved : bool
        Whether an analysis has occurred.
    depth : int
        Nesting depth of open loops and conditions.
    alterations : list of tuple
        Place, element, parameter and value of each ``alter name parameter = value``.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.solved, self.depth = False, 0
        self.values: dict[str, float] = {}
        self.alterations: list[tuple[Token, str, str, float]] = []

    def command(self, card: Card) -> None:
        """Take one line of a block.

        Raises
        ------
        CardError
            An error that its card would raise.
        """
        start = card.offset
        word = card.text[start : start + 40].split(None, 1)[0].lower()
        after = start + len(word)
        if word == "end" and self.depth:
            self.depth -= 1
            return
        if word in LOOPS:
            self.depth += 1
            self.idle(card, word)
        elif self.depth:
            self.warn_or_note(card, word, "in a loop or condition")
        elif word in ANALYSES:
            self.solved = True
            text = "." + card.text[start:]
            if word in CARDS:
                known = {" ".join(other.text.lower().split()) for other in self.reader.requests}
                if " ".join(text.lower().split()) not in known:
                    self.reader.requests.append(dotted(card, start, text))
            elif word != "run":
                self.idle(card, word)
        elif word in OUTPUTS:
            self.output(card, start, after, word)
        elif self.solved or not self.changed(card, after, word):
            self.warn_or_note(card, word, "after the first analysis" * self.solved)

    def changed(self, card: Card, after: int, word: str) -> bool:
        """Take ``alter``, ``let`` of a number and ``set temp``; returns whether the command was one of these."""
        text = card.text
        if word == "alter" and (found := _ALTER.match(text, after)):
            value = self.number(card, found.start(4), found[4])
            if value is None:
                return False
            at, parameter = card.at(found.start(4)), (found[2] or found[3] or "").lower()
            self.alterations.append((at, found[1], parameter, value))
            return True
        if word == "let" and (found := _LET.match(text, after)):
            value = self.number(card, found.start(2), found[2])
            if value is not None:
                self.values[found[1].lower()] = value
            return value is not None
        if word in ("set", "option") and (found := _TEMPERATURE.match(text, after)):
            self.reader.options["set temp"] = Token(found[1], found.start(1), WORD, found.end(1), card)
            return True
        return False

    def number(self, card: Card, at: int, text: str) -> float | None:
        """The value of a number, an expression or a variable; None for anything else."""
        inner = text.rstrip("}'")
        stop = at + len(inner)
        try:
            code = formula(card, stop - len(inner.lstrip("{'$&")), Scope(), stop=stop)
            return float(Evaluator({}).value(code, Environment(self.values)))
        except CardError:
            return None  # a note names the command

    def output(self, card: Card, start: int, after: int, word: str) -> None:
        """``print`` and ``plot``: the quantities among their words."""
        words = card.text[after:].split(">", 1)[0].replace(",", " , ").split()
        text = re.sub(r"\(\s*([^()\s]+)\s*,\s*([^()\s]+)\s*\)", r"(\1,\2)", " ".join(words))
        text = text.removeprefix("col ").removeprefix("line ")
        wanted = [w for w in text.split() if QUANTITY.fullmatch(w)]
        if wanted:
            self.reader.requests.append(dotted(card, start, f".{word} {' '.join(wanted)}"))
        if len(wanted) < len(text.split()) or not wanted:
            self.idle(card, word, " of anything but v(), i(), @name[]")

    def warn_or_note(self, card: Card, word: str, where: str) -> None:
        """Report a command that is not executed."""
        if word not in CHANGES:
            self.idle(card, word)
            return
        message = f"{short(card.text.strip())} of .control is not executed" + f": it is {where}" * bool(where)
        self.reader.reporter.warning(
            "control", message, card, "the circuit keeps its earlier values; write the value on the element's card"
        )

    def idle(self, card: Card, word: str, what: str = "") -> None:
        """Note a command without effect."""
        self.reader.reporter.gather("skipped", f"{short(word)}{what} in .control is not executed", card, word)

    def alter(self, top: Scope) -> None:
        """Apply the values of ``alter`` to the deck's elements."""
        for at, name, parameter, value in self.alterations:
            position = top.index.get(name.lower(), -1)
            stated = top.stated.get(position, ElementCard(at))
            words = ELEMENTS[top.kind[position]].keywords if position >= 0 and stated.source is None else ()
            if (parameter or "".join(words[:1])) not in words:
                self.warn_or_note(at.card, "alter", "")
                continue
            top.stated[position] = stated._replace(at=at, value=value, bare=False)
            self.reader.reporter.gather(
                "altered",
                "%s: alter in .control sets the value before the first analysis",
                at.card,
                f"{short(name)} = {exact(value)}",
            )


def dotted(card: Card, start: int, text: str) -> Card:
    """The card with ``text``: a dot and the command at ``start`` of ``card``."""
    line, column = card.where(start)
    return Card(card.source, line, text, (Piece(0, line, column - 1), Piece(1, line, column - 1)))
