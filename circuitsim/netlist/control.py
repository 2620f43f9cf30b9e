"""``.control`` blocks of ngspice: analyses, outputs and changes of the circuit before the first analysis.

``op dc tran ac print plot`` act as cards of these names; ``alter``, ``set temp`` and numeric ``let`` apply up to the
first analysis, which fixes the circuit. Other commands get a note, or a warning if they would change the circuit.
"""

from __future__ import annotations

import re

from circuitsim.circuit.elements import ELEMENTS
from circuitsim.netlist import dialect
from circuitsim.netlist.cards import WORD, Card, CardError, Piece, Token
from circuitsim.netlist.expression import Environment, Evaluator
from circuitsim.netlist.parts import Reader
from circuitsim.netlist.scope import ElementCard, Scope, formula
from circuitsim.units import exact, short

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
