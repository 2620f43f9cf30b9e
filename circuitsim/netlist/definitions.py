"""Cards of definitions: ``.param .func .model .global .subckt .ends``, tables of values (``.data``), and ``.include``,
``.lib`` and sections of library files, with a stack of open files; files named by ``--lib``, and named files that do
not exist.

``.data load r1 r2 1k 2k 4k 8k .enddata`` has two names and two rows, which ``.dc DATA=`` and ``.step DATA=`` step
through.

The reserved sub-circuit ``bidiramp``: an element here, two controlled sources in other SPICE programs.

    Xname left right bidiramp gain=4      v(right) = 4 v(left), i(out of right) = 4 i(into left)

A deck may contain (or include) its definition, so that ngspice runs it unchanged; here the definition is not expanded,
and a different one is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from circuitsim.errors import NetlistError, Problem
from circuitsim.netlist import limits
from circuitsim.netlist.cards import (
    ELSEWHERE,
    EXPRESSION,
    STRING,
    WORD,
    Card,
    CardError,
    Files,
    PathName,
    Source,
    Token,
    decode,
    delimited,
    fields,
    finish,
    given,
    order,
    uncommented,
)
from circuitsim.netlist.functions import Row
from circuitsim.netlist.parts import Reader, flaw
from circuitsim.netlist.scope import Model, Scope, constant, formula, value_of
from circuitsim.units import NumberError, short
from circuitsim.units import parse as parse_number

_DEFINITION = re.compile(r"[\s,]*([^\W\d]\w*)\s*(?:\(([^()]*)\)\s*)?(=(?!=)\s*)?")
"""A name, the arguments of a function, and the sign before the value."""
_FILE = re.compile(r"['\"]|\S+")
AMPLIFIER_NAME = "bidiramp"
GAIN = "gain"
DEFAULT_GAIN = 1.0

AMPLIFIER_DEFINITION = f"""\
.subckt {AMPLIFIER_NAME} left right {GAIN}=1
Eforward inside 0 left 0 {{{GAIN}}}
Vright inside right 0
Fback left 0 Vright {{1/{GAIN}}}
.ends {AMPLIFIER_NAME}
"""
"""The definition for ngspice: voltage transfer forwards, current transfer backwards."""


def normal(card: str) -> str:
    """A card normalised in case and blanks."""
    return " ".join(card.lower().split())


AMPLIFIER_CARDS = [normal(card) for card in AMPLIFIER_DEFINITION.splitlines()]


DIFFER = "names must differ within one scope"
IDEAL_MODEL = "circuitsim_ideal"
"""The near-ideal diode model that `dumps` writes for ngspice; reading it back gives no note."""


def parameters(reader: Reader, card: Card, position: int) -> None:
    """``.param a=1 b={2*a} f(x)={x*x}``: forward references are allowed, the last definition counts, as in ngspice."""
    start = position
    while (found := _DEFINITION.match(card.text, position)) is not None:
        if found[3] is None:
            raise CardError(f".param {short(found[1])} needs =value", card.at(found.start(1)), ".param name=value")
        position = definition(reader, card, found)
    rest = card.text[position:].lstrip(" \t,")
    if rest or position == start:
        wrong = card.at(len(card.text) - len(rest)) if rest else card.last
        raise CardError(".param needs name=value", wrong, ".param r=1k g={1/r}")


def definition(reader: Reader, card: Card, found: re.Match[str]) -> int:
    """Take one parameter or function; returns the end of its value."""
    word, at, begin, scope = found[1].lower(), card.at(found.start(1)), found.end(), reader.scope
    function = found[2] is not None
    names = tuple(name.strip().lower() for name in found[2].split(",")) if function and found[2].strip() else ()
    if any(not re.fullmatch(r"[^\W\d]\w*", name) for name in names) or len(set(names)) != len(names):
        wrong = card.at(found.start(2))
        raise CardError("arguments must be distinct names with commas", wrong, ".func f(x,y) {x*y}", "function")
    if card.text[begin : begin + 1] == '"':
        wrong = card.at(begin)
        raise CardError("a parameter cannot be a string", wrong, "only numbers and expressions", "expression")
    body = formula(card, begin, scope, names, whole=False)
    known: dict[str, Any] = scope.functions if function else scope.parameters
    if word in known and reader.library and (function or scope is reader.top):
        return body.end
    if word in known and function:
        raise CardError(f"function {short(word)!r} is defined already", at, DIFFER, "duplicate")
    if word in known:
        reader.reporter.warning(
            "redefined",
            f"parameter {short(word)!r} is redefined; the last value is used",
            at,
            "remove the other definition",
        )
    known[word] = Row(body, len(names)) if function else constant(body)
    return body.end


def func(reader: Reader, card: Card, position: int) -> None:
    """``.func f(x,y) {x*y}``, also with ``=`` or without braces."""
    found = _DEFINITION.match(card.text, position)
    if found is None or found[2] is None:
        at = card.at(max(min(position, len(card.text) - 1), 0))
        raise CardError(".func needs a name and its arguments", at, ".func f(x,y) {x*y}", "function")
    rest = card.text[definition(reader, card, found) :].lstrip()
    if rest:
        raise CardError(
            f"{short(rest[:99])!r} does not belong to the function",
            card.at(len(card.text) - len(rest)),
            "put its body in braces",
            "function",
        )


def model(reader: Reader, card: Card, position: int) -> None:
    """``.model name type (parameter=value …)``."""
    sorted_ = fields(card, position, repeated=True)
    words, pairs = sorted_.take(), sorted_.named()
    if len(words) < 2:
        raise CardError(".model needs a name and a type", card.last, ".model name D", "model")
    name, key = words[0], words[0].word
    if key in reader.scope.models:
        first = reader.scope.models[key].card
        if not reader.library and normal(first.text) != normal(card.text):
            reader.reporter.warning(
                "redefined",
                f"model {short(name.text)} is redefined; the first one (line {first.line}) is used, as in ngspice",
                name,
                "leave one of them out",
                [name.text],
            )
        return
    reader.scope.models[key] = Model(card, reader.scope, name.text, words[1].text.upper(), pairs, words[2:])


def global_nodes(reader: Reader, card: Card, position: int) -> None:
    """``.global a b``: nodes shared by all sub-circuits."""
    found = fields(card, position).take()
    if not found:
        raise CardError(".global names no node", card.last, ".global vdd vss")
    for token in found:
        if token.kind != WORD or flaw(token.text) >= 0:
            raise CardError(f"{short(token.text)!r} cannot name a node", token)
        reader.globals.setdefault(token.word, token.text)


def subckt(reader: Reader, card: Card, position: int) -> None:
    """``.subckt name port … PARAMS: a=1``: a new scope, until ``.ends``."""
    scope = reader.scope
    inner = Scope("", card, scope)
    if normal(card.text[position:]).split(" ", 1)[0] == AMPLIFIER_NAME:
        inner.cards, inner.name = [normal(card.text)], AMPLIFIER_NAME
        reader.scope = inner
        return
    # Open the scope even if its card is wrong, so that its .ends and elements are read correctly.
    reader.scope = inner
    sorted_ = fields(card, position)
    words = sorted_.take()
    if words and words[-1].word in ("params:", "params"):
        words.pop()
    if not words:
        raise CardError(".subckt has no name", card.last, ".subckt name port port …", "subcircuit")
    name = words[0]
    inner.name = name.text
    seen: set[int] = set()
    for port in words[1:]:
        node = reader.node(port)
        if node in seen:
            raise CardError(
                f"port {short(port.text)} of {short(name.text)} is named twice", port, "ports must differ", "duplicate"
            )
        seen.add(node)
        inner.ports.append(node)
    for word, value in sorted_.named():
        inner.defaults[word.word] = value_of(value, inner)
    key = name.word
    if key in scope.subcircuits:
        other = scope.subcircuits[key].card
        if reader.library or (other.source is card.source and other.line == card.line):  # or it is read again
            return
        raise CardError(
            f"sub-circuit {short(name.text)} is defined already (line {other.line})",
            name,
            DIFFER,
            "duplicate",
        )
    scope.subcircuits[key] = inner


def ends(reader: Reader, card: Card, position: int) -> None:
    """``.ends [name]``: return to the enclosing scope."""
    scope = reader.scope
    words = fields(card, position).take(1)
    if scope.parent is None:
        raise CardError(".ends without its .subckt", card, "remove it", "subcircuit")
    reader.scope = scope.parent
    if scope.cards not in (None, AMPLIFIER_CARDS[:-1]):  # the reserved sub-circuit is not read
        message = f"{AMPLIFIER_NAME} is the bidirectional amplifier and cannot be redefined"
        hint = "its definition is: " + " | ".join(AMPLIFIER_DEFINITION.splitlines())
        reader.reporter.error("subcircuit", message, scope.card, hint, [AMPLIFIER_NAME])
    if words and words[0].word != scope.name.lower():
        reader.reporter.warning(
            "subcircuit",
            f".ends {short(words[0].text)} ends the sub-circuit {short(scope.name)}",
            words[0],
            f"write .ends {short(scope.name)}",
        )


class Table(NamedTuple):
    """A ``.data`` card: its name, the names of its columns, and its values, row by row."""

    name: Token
    columns: list[Token]
    values: list[Token]


def table(card: Card, position: int) -> Table:
    """The table of a ``.data`` card.

    Raises
    ------
    CardError
        No name, no columns, or an incomplete row.
    """
    words = fields(card, position).take()
    finish(card)
    words = [t for t in words if t.word != ".enddata"]
    form = ".data NAME r1 r2 … then one value for each name in every row"
    if len(words) < 3 or words[0].kind != WORD:
        raise CardError(".data needs a name, columns and values", card.last, form)
    first = next((k for k, token in enumerate(words) if k and (token.kind == EXPRESSION or token.numeric)), len(words))
    columns, values = words[1:first], words[first:]
    if not columns or not values:
        raise CardError(f".data {short(words[0].text)} needs names of columns, then values", words[0], form)
    if len(values) % len(columns):
        raise CardError(
            f".data {short(words[0].text)}: {len(values)} values do not fill rows of {len(columns)}", values[-1], form
        )
    return Table(words[0], columns, values)


ADVICE = "--lib FILE reads a library, -I DIR or CIRCUITSIM_LIB_PATH name folders to search"


_TABLE = re.compile(r'\b(?:table|tablefile|fasttable)\s*\(\s*"([^"]*)"\s*\)', re.I)
"""A function of time with its points in a file, linear in between."""


class MissingFile(CardError):
    """An included file that does not exist or may not be read; ``why`` in short."""

    def __init__(self, message: str, at: Token, hint: str, why: str) -> None:
        super().__init__(message, at, hint, "include")
        self.why = why


def cut(source: Source, section: str, at: Token) -> int:
    """End a library's text with a section, named in lower case; returns the section's first line.

    Raises
    ------
    CardError
        There is none, or another begins in it.
    """
    lines, seen, first = source.text.split("\n"), list[str](), 0
    for number, line in enumerate(lines, 1):
        words = uncommented(line).split()
        word = words[0].lower() if words else ""
        if word == ".lib" and len(words) == 2:
            if first:
                wrong = Card(source, number, line)
                raise CardError(".lib section inside a section", wrong, "close it with .endl", "include")
            seen.append(words[1].strip("'\""))
            first = number + 1 if seen[-1].lower() == section else 0
        elif word == ".endl" and first:
            source.text = "\n".join(lines[: number - 1])
            break
    if not first:
        listed = ", ".join(short(name) for name in seen[:8])
        hint = f"it has: {listed}" if listed else "a section begins with .lib name and ends with .endl"
        raise CardError(f"{short(at.text)} has no section {short(section)!r}", at, hint, "include")
    return first


def words_of(card: Card, position: int) -> list[Token]:
    """File names and words after the card's name, quoted with ' or \" or bare; case and signs are kept."""
    found: list[Token] = []
    while len(found) < 3 and (begin := _FILE.search(card.text, position)) is not None:
        token = Token(begin[0], begin.start(), STRING, begin.end(), card)
        found.append(delimited(card, token.offset) if token.text in "'\"" else token)
        position = found[-1].end
    return found


class Includes(Reader):
    """A deck being read, with the files that it names.

    Attributes
    ----------
    files : Files
    """

    def __init__(self, files: Files) -> None:
        super().__init__()
        self.files = files

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""

    def read_libraries(self, paths: Iterable[PathName]) -> None:
        """Read the definitions in ``paths``; the deck's own take precedence.

        Raises
        ------
        UsageError
            A file that cannot be read.
        """
        self.library = True
        for path in [os.fspath(one) for one in paths]:
            text, warning = decode(given(path, "--lib "), path)
            real = os.path.realpath(path)
            self.files.roots.append(os.path.dirname(real))
            if warning is not None:
                self.reporter.add(warning)
            self.ended = False
            self.read(Source(path, real, text, (), ("a library of --lib",)), 1)
        self.library = False

    def include(self, card: Card, position: int) -> None:
        """``.include file``."""
        words = words_of(card, position)
        if len(words) != 1:
            at = words[1] if words else card.last
            message = ".include takes one file" if words else ".include names no file"
            raise CardError(message, at, "put a name with blanks in quotes" if words else '.include "file"', "include")
        self.enter(words[0], None)

    def library_or_section(self, card: Card, position: int) -> None:
        """``.lib file section``, or ``.lib file`` for the whole file."""
        words = words_of(card, position)
        if len(words) not in (1, 2):
            at = words[2] if words else card.last
            raise CardError(".lib takes a file and a section", at, ".lib file section", "include")
        section = words[1].word if len(words) == 2 else None
        try:
            self.enter(words[0], section)
        except MissingFile as error:
            path = words[0].text
            # LTspice and PSpice look a bare name up in their own folders.
            base = re.split(r"[\\/]", path)[-1]
            if section is not None or not (ELSEWHERE.match(path) or base == path):
                raise
            self.missing.append(base)
            self.reporter.gather("skipped", f"{short(path)} {error.why}; the card is ignored", words[0], path, ADVICE)

    def stray_endl(self, card: Card, position: int) -> None:
        """An ``.endl`` outside of a library."""
        raise CardError(".endl without its .lib section", card, "remove it", "include")

    def text_of(self, token: Token, section: str | None = None) -> tuple[str, str, str, Problem | None] | None:
        """Real path, key among the open files, text and warning of the file that ``token`` names; None if the text is
        damaged, which is reported.

        Raises
        ------
        CardError
            It does not exist, may not be read, or includes itself.
        """
        path = token.text
        try:
            real = self.files.find(path, token.card.source)
            key = real if section is None else f"{real}\0{section}"
            if ELSEWHERE.match(path) and not os.path.lexists(path) and os.path.isfile(real):
                self.reporter.gather(
                    "assumed", "files missing at the deck's path were found elsewhere by name (%s)", token, path
                )
            if key in self.open_files:
                raise CardError(f"{short(path)} includes itself", token, "break the loop of .include", "include")
            return real, key, *self.files.read(real)
        except OSError as error:
            reason = error.strerror or "cannot be read"
            hint = ADVICE if ELSEWHERE.match(path) else f"the path is relative to the file it is written in; {ADVICE}"
            raise MissingFile(
                f"{short(path)}: {reason[0].lower()}{reason[1:]}", token, hint, "does not exist"
            ) from None
        except ValueError as error:
            if "outside" not in str(error):
                raise CardError(f"{short(path)} {error}", token, kind="include") from None
            hint = f"--allow-include DIR allows a folder; {ADVICE}" if ELSEWHERE.match(path) else ""
            raise MissingFile(
                f"{short(path)} {error}", token, hint or "--allow-include DIR allows a folder", str(error)
            ) from None
        except NetlistError as error:
            self.reporter.add(error.problems[0], order(token.card), error=True)
            return None

    def points(self, token: Token) -> list[float]:
        """The numbers of a file of points (``PWL file=``): times (s) and values, separated by blanks, commas or line
        ends.

        Raises
        ------
        CardError
            The file cannot be read, or does not contain pairs of numbers.
        """
        found = self.text_of(token)
        numbers: list[float] = []
        for count, line in enumerate(found[2].split("\n") if found is not None else (), 1):
            for word in re.split(r"[\s,;()]+", re.split(r"[*#]|//", line)[0].strip()):
                try:
                    numbers += [parse_number(word)] if word else []
                except NumberError as error:
                    if numbers:
                        raise CardError(
                            f"{short(token.text)}:{count}: {error}",
                            token,
                            "a file of points holds times and values",
                            "number",
                        ) from None
                    break  # a heading
        if found is not None and (len(numbers) < 2 or len(numbers) % 2):
            raise CardError(
                f"{short(token.text)} holds no pairs of time and value", token, "write a time and a value on each line"
            )
        return numbers

    def with_tables(self, card: Card) -> Card:
        """The card with the points of its files inserted: ``table("f")`` of Xyce becomes ``table(time, t1, v1, …)``.

        Raises
        ------
        CardError
            As `points`.
        """
        while (found := _TABLE.search(card.text)) is not None:
            token = Token(found[1], found.start(1), STRING, found.end(1), card)
            given = self.points(token)
            pairs = sorted(zip(given[0::2], given[1::2]))
            numbers = ", ".join(repr(number) for pair in pairs for number in pair)
            text = f"{card.text[: found.start()]}table(time, {numbers}){card.text[found.end() :]}"
            card = Card(card.source, card.line, text, card.pieces)
        return card

    def enter(self, token: Token, section: str | None) -> None:
        """Read the file named by ``token`` in place of its card."""
        path, card = token.text, token.card
        if len(self.open_files) > limits.INCLUDE_DEPTH:
            raise CardError(f"includes nest deeper than {limits.INCLUDE_DEPTH}", token, kind="include")
        found = self.text_of(token, section)
        if found is None:
            return
        real, key, text, warning = found
        line, column = card.where()
        name = os.path.normpath(os.path.join(os.path.dirname(card.source.name), path))
        callers = (f"included at {card.source.name}:{line}:{column}", *card.source.callers)
        source = Source(name, real, text, (*card.source.order, line, column), callers)
        if warning is not None:
            self.reporter.add(warning, source.order)
        first = 1 if section is None else cut(source, section, token)
        self.open_files.append(key)
        self.read(source, first)
        self.open_files.pop()
        # An .end ends its own file; the deck continues after the .include.
        self.ended = False


CARDS: dict[str, Callable[[Any, Card, int], None]] = {
    ".param": parameters,
    ".params": parameters,
    ".parameters": parameters,
    ".global_param": parameters,
    ".func": func,
    ".function": func,
    ".model": model,
    ".global": global_nodes,
    ".subckt": subckt,
    ".ends": ends,
    ".include": Includes.include,
    ".inc": Includes.include,
    ".lib": Includes.library_or_section,
    ".endl": Includes.stray_endl,
}
