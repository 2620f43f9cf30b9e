"""Cards to scopes: dispatch of cards, bounds of sub-circuits, skipped and refused cards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from circuitsim.netlist import definitions, includes, refused
from circuitsim.netlist.amplifier import normal
from circuitsim.netlist.cards import Card, cards
from circuitsim.netlist.deck import Directive
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.options import options
from circuitsim.netlist.parts import CODES, Parts
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Files, Source
from circuitsim.netlist.tokens import CardError, Token
from circuitsim.units import short

ANALYSES = frozenset((".op", ".dc", ".step", ".temp", ".print", ".save"))


class DeckReader:
    """The state of the reading of a deck.

    Attributes
    ----------
    top, scope : Scope
        The deck, and the scope that cards go into now.
    requests : list of Card
        Analysis cards, to be evaluated after all parameters.
    globals : dict
        Names of ``.global`` nodes, lower case → as written.
    options : dict
        Options that act (``.options``): name → its card and the token of its value.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.reporter = Reporter()
        self.parts = Parts(self.reporter)
        self.top = self.scope = Scope()
        self.requests: list[Card] = []
        self.directives: list[Directive] = []
        self.globals: dict[str, str] = {}
        self.options: dict[str, tuple[Card, Token]] = {}
        self.open_files: list[str] = []
        self.control: Card | None = None
        self.section: includes.Section | None = None
        self.ended = False
        self.simple: Callable[[str, int], bool] = _closed

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""
        self.open_fast_path(source)
        for card in cards(source, first, self):
            self.take(card)
            if self.ended:
                break
            self.open_fast_path(source)
        if self.control is not None:
            self.reporter.error("syntax", ".control without its .endc", self.control, hint="close it with .endc")
            self.control = None

    def open_fast_path(self, source: Source) -> None:
        """Open the fast path for plain elements, until scope or source change."""
        skipping = self.control is not None or (self.section is not None and not self.section.inside)
        if skipping or self.scope.cards is not None:
            self.simple = _closed
        else:
            self.scope.at(source)
            self.simple = partial(self.parts.simple, self.scope)

    def take(self, card: Card) -> None:
        """One card; its errors are reported, and reading continues."""
        start = card.start()
        head = card.text[start].lower()
        try:
            if head == "*":
                self.directives.append(Directive(card.text[start + 2 :].strip(), card.place(start)))
            elif self.scope.cards is not None and not card.text[start:].lower().startswith(".ends"):
                self.scope.cards.append(normal(card.text))
            elif head == ".":
                self.dot(card, start)
            elif self.control is not None or (self.section is not None and not self.section.inside):
                return
            elif head == "x":
                self.parts.call(self.scope, card)
            elif head in CODES:
                self.parts.element(self.scope, card)
            else:
                self.refuse(card, start, head)
        except CardError as error:
            self.reporter.error(error.kind, error.message, card, error.offset, error.hint)
        except ExpressionError as error:
            self.reporter.expression(error, card, (), ())

    def refuse(self, card: Card, start: int, head: str) -> None:
        """An element that is not read, or no card at all."""
        word = short(card.text[start : start + 200].split()[0])
        if head == "+":
            raise CardError("syntax", "a continuation line that continues nothing", start, "remove the +")
        if head in refused.ELEMENTS:
            what, why = refused.ELEMENTS[head]
            raise CardError("unsupported", f"{word} is {what}, which is not supported", start, why)
        raise CardError("unknown-card", f"{word!r} begins no card that is known", start,
                        "a card begins with R, D, V, I, L, C, X, a dot, or * for a comment")  # fmt: skip

    def dot(self, card: Card, start: int) -> None:
        """A card that begins with a dot."""
        text = card.text[start : start + 40]
        word = text.split()[0].split("=")[0].split("(")[0].lower()
        after = start + len(word)
        if self.control is not None:
            if word == ".endc":
                self.control = None
            return
        if self.section is not None and includes.library_card(self, card, word, after):
            return
        if word in definitions.CARDS:
            definitions.CARDS[word](self, card, after)
        elif word in includes.CARDS:
            includes.CARDS[word](self, card, after)
        elif word in ANALYSES:
            self.requests.append(card)
        elif word in refused.OPTIONS:
            options(self, card, after)
        elif word == ".control":
            self.control = card
            self.reporter.gather("skipped", "a .control block is skipped", card, start, word)
        elif word == ".end":
            self.ended = True
        elif word in refused.NO_EFFECT:
            self.reporter.gather("no-effect", f"{word} has no effect at the operating point", card, start, word)
        elif word in refused.OTHER_ANALYSES:
            what = refused.OTHER_ANALYSES[word]
            self.reporter.warning("analysis", f"{word}: a {what} analysis is not done; the operating point is solved",
                                  card, start, "circuits are solved at DC only")  # fmt: skip
        elif word in refused.CARDS:
            message, hint = refused.CARDS[word]
            raise CardError("unsupported", f"{word}: {message}", start, hint)
        else:
            raise CardError("unknown-card", f"{short(word)} is no card that is known", start,
                            "see docs/netlist.md for those that are; a comment begins with *")  # fmt: skip

    def close(self) -> None:
        """What may be missing at the end of the deck."""
        here: Scope | None = self.scope
        while here is not None and here.card is not None:
            self.reporter.error("subcircuit", f".subckt {short(here.name)} has no .ends", here.card,
                                hint="close it with .ends")  # fmt: skip
            here = here.parent


def _closed(line: str, number: int) -> bool:
    """No line is a plain element: it lies in a block that is skipped."""
    return False
