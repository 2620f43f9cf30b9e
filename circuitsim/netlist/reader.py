"""Cards to scopes: dispatch of cards, bounds of sub-circuits, skipped and refused cards."""

from __future__ import annotations

from functools import partial

from circuitsim.netlist import bulk, conditions, controlled, couplings, definitions, includes, refused, switches
from circuitsim.netlist.amplifier import normal
from circuitsim.netlist.cards import Card, Lines, cards, joined
from circuitsim.netlist.control import Script
from circuitsim.netlist.deck import Directive
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.options import options
from circuitsim.netlist.parts import CODES, Parts
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Files, Source
from circuitsim.netlist.tables import Table, table
from circuitsim.netlist.tokens import CardError, Token, finish
from circuitsim.units import short

ANALYSES = frozenset((".op", ".dc", ".step", ".tran", ".ac", ".temp", ".print", ".plot", ".save", ".tf", ".sens"))


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
        self.parts = Parts(self.reporter, partial(includes.points, self))
        self.top = self.scope = Scope()
        self.requests: list[Card] = []
        self.tables: dict[str, Table] = {}
        self.directives: list[Directive] = []
        self.globals: dict[str, str] = {}
        self.foreign: dict[str, list[tuple[Card, int, str]]] = {}
        self.couplings: list[tuple[Scope, Card, list[Token]]] = []
        self.options: dict[str, tuple[Card, Token]] = {}
        self.open_files: list[str] = []
        self.conditions = conditions.Conditions()
        self.control: Card | None = None
        self.script = Script(self)
        self.section: includes.Section | None = None
        self.ended = False
        self.library = False
        self.missing: list[str] = []
        self.rows: list[Card] = []  # of a table that is open

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""
        for card in cards(source, first, self.take_plain):
            self.take(card)
            if self.ended:
                break
        if self.control is not None:
            self.reporter.error("syntax", ".control without its .endc", self.control, hint="close it with .endc")
            self.control = None

    def again(self, card: Card) -> Scope:
        """The sub-circuit that begins with ``card``, read once more."""
        outside, inside = self.scope, self.scope
        for one in cards(card.source, card.line, self.take_plain):
            self.take(one)
            if inside is outside:
                inside = self.scope
            if self.scope is outside:
                break
        return inside

    @property
    def outside(self) -> bool:
        """Whether a section of a library is looked for."""
        return self.section is not None and not self.section.inside

    def take_plain(self, lines: Lines) -> bool:
        """Plain elements from the current line on, where elements are read."""
        skipping = self.control is not None or self.outside or self.conditions.skipping or self.ended
        if skipping or (self.library and self.scope is self.top) or self.scope.cards is not None or self.rows:
            return False
        return bulk.take(lines, self.scope)

    def take(self, card: Card) -> None:
        """One card; its errors are reported, and reading continues."""
        start = card.start()
        head = card.text[start].lower()
        if not self.outside and self.conditions.skips(card, start):
            return
        if self.rows:
            if head.isdecimal() or head in "-{'" or (head == "." and card.text[start + 1 : start + 2].isdecimal()):
                self.rows.append(card)
                return
            self.close_table()
        try:
            if head == "*":
                self.directives.append(Directive(card.text[start + 2 :].strip(), card.place(start)))
                card.done()
            elif self.scope.cards is not None and not card.text[start:].lower().startswith(".ends"):
                self.scope.cards.append(normal(card.text))
                card.done()
            elif head == ".":
                self.dot(card, start)
            elif self.outside:
                return
            elif self.control is not None:
                self.script.command(card)
            elif self.library and self.scope is self.top:
                raise CardError("syntax", "a library holds definitions, not elements", start, "put it in .subckt")
            elif head == "x":
                self.parts.call(self.scope, card)
            elif head == "k":
                couplings.coupling(self, card)
            elif head in switches.LETTERS:
                switches.element(self, self.parts, self.scope, card)
            elif head in controlled.LETTERS:
                card = includes.with_tables(self, card)
                controlled.source(self.parts, self.scope, card)
            elif head in CODES:
                self.parts.element(self.scope, card)
            else:
                self.refuse(card, start, head)
            finish(card)
        except CardError as error:
            if error.kind == "unsupported" and card.source.callers and self.scope.parent is not None:
                self.scope.deferred.append((card, error))
                return
            self.reporter.failure(error, card)
        except ExpressionError as error:
            self.reporter.failure(error, card)

    def refuse(self, card: Card, start: int, head: str) -> None:
        """An element that is not read, or no card at all."""
        word = short(card.text[start : start + 200].split()[0])
        if card.text.strip() == ")":
            self.reporter.gather("no-effect", "a line that is only ')' ends the card before it", card, start, ")")
            card.done()
            return
        if head == "+":
            raise CardError("syntax", "a continuation line that continues nothing", start, "remove the +")
        if head in refused.FOREIGN and card.source.callers and self.scope.parent is not None:
            raise CardError(
                "unsupported",
                f"{word} is a {refused.FOREIGN[head]}, which is not supported",
                start,
                refused.FOREIGN_HINT,
            )
        if head in refused.FOREIGN:
            self.foreign.setdefault(head, []).append((card, start, word))
            card.done()
            return
        if head in refused.ELEMENTS:
            what, why = refused.ELEMENTS[head]
            raise CardError("unsupported", f"{word} is {what}, which is not supported", start, why)
        raise CardError(
            "unknown-card",
            f"{word!r} begins no card that is known",
            start,
            "a card begins with R, D, V, I, L, C, E, F, G, H, B, X, a dot, or * for a comment",
        )

    def dot(self, card: Card, start: int) -> None:
        """A card that begins with a dot."""
        text = card.text[start : start + 40]
        word = text.split()[0].split("=")[0].split("(")[0].lower()
        after = start + len(word)
        if self.control is not None:
            if word == ".endc":
                self.control = None
            else:
                self.script.idle(card, start, word)
            return
        if self.section is not None and includes.library_card(self, card, word, after):
            card.done()
            return
        if word in conditions.CARDS:
            self.conditions.take(self, card, word, after)
        elif word in definitions.CARDS:
            definitions.CARDS[word](self, card, after)
        elif word in includes.CARDS:
            includes.CARDS[word](self, card, after)
        elif word in ANALYSES:
            self.request(card)
        elif word in refused.OPTIONS:
            options(self, card, after)
        elif word == ".data":
            self.rows = [card]
            card.done()
        elif word == ".control":
            self.control = card
        elif word == ".end":
            self.ended = True
        elif word == ".enddata":
            pass  # the table ends with its card
        elif word in refused.NO_EFFECT:
            self.reporter.gather("no-effect", f"{word} has no effect at the operating point", card, start, word)
            card.done()
            if word in refused.OVER_TIME and self.scope is self.top:
                self.request(card)
        elif word in refused.OTHER_ANALYSES:
            what = refused.OTHER_ANALYSES[word]
            hint = refused.ADVICE.get(word, "")
            self.reporter.warning(
                "analysis", f"{word} is left out: there is no {what} analysis here", card, start, hint
            )
            card.done()
        elif word in refused.CARDS:
            message, hint = refused.CARDS[word]
            raise CardError("unsupported", f"{word}: {message}", start, hint)
        else:
            raise CardError(
                "unknown-card",
                f"{short(word)} is no card that is known",
                start,
                "see docs/netlist.md for those that are; a comment begins with *",
            )

    def request(self, card: Card) -> None:
        """Keep an analysis card, which is read after all parameters."""
        self.requests.append(card)
        card.done()

    def close_table(self) -> None:
        """A table of values, its rows behind a ``+`` (Xyce) or bare (HSPICE)."""
        card = joined(self.rows[0], [(row.line, row.text) for row in self.rows[1:]])
        self.rows = []
        try:
            found = table(card, card.start() + len(".data"))
            if found.name.text.lower() in self.tables:
                raise CardError(
                    "duplicate",
                    f"table {short(found.name.text)} is there already",
                    found.name.offset,
                    "names must differ",
                )
            self.tables[found.name.text.lower()] = found
        except CardError as error:
            self.reporter.failure(error, card)

    def close(self) -> None:
        """What may be missing at the end of the deck."""
        if self.rows:
            self.close_table()
        self.conditions.close(self)
        self.script.alter(self.top)
        couplings.check_couplings(self)
        self.refuse_foreign()
        for here in self.scope.outwards():
            if here.card is not None:
                message = f".subckt {short(here.name)} has no .ends"
                self.reporter.error("subcircuit", message, here.card, hint="close it with .ends")

    def refuse_foreign(self) -> None:
        """One error for all transistors and code models of the deck."""
        if not self.foreign:
            return
        found = [place for places in self.foreign.values() for place in places]
        card, start, _ = min(found, key=lambda p: (*p[0].source.order, *p[0].where(p[1])))
        parts = []
        for letter, places in self.foreign.items():
            names = [name for _, _, name in places]
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            parts.append(f"{len(names)} × {refused.FOREIGN[letter]}: {', '.join(names[:5])}{more}")
        message = f"elements that are not supported: {'; '.join(parts)}"
        if len(found) == 1:
            kind = refused.FOREIGN[next(iter(self.foreign))]
            message = f"{found[0][2]} is {'an' if kind[0] == 'X' else 'a'} {kind}, which is not supported"
        names = [name for _, _, name in found]
        self.reporter.error("unsupported", message, card, start, refused.FOREIGN_HINT, names[:20])
