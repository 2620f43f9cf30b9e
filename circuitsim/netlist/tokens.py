"""A card's words: names, marks, and expressions in braces or quotes, each with its offset."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from circuitsim.netlist.cards import Card
from circuitsim.units import short

WORD, MARK, EXPRESSION, STRING = "word", "mark", "expression", "string"

_NEXT = re.compile(r"\s*(?:([^\s=(),{}'\"]+)|([=(),])|(\S))")
LISTS = frozenset(("tc", "ic"))
"""Parameters whose value may be several numbers with commas."""

_BRACE = re.compile(r"[{}]")
_NAME = re.compile(r"\s*[^\s(]*")
_REST = re.compile(r"\s*(\S+)")


class CardError(Exception):
    """One thing wrong with a card, at an offset of its text."""

    code: Any = None
    """The expression at fault, which may stand on another card (`ExpressionError`)."""

    def __init__(self, kind: str, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.offset, self.hint = kind, message, offset, hint


class Token(NamedTuple):
    """A word, a mark (``= ( ) ,``), an expression or a string; ``text`` is without its braces or quotes."""

    text: str
    offset: int
    kind: str
    end: int

    @property
    def word(self) -> str:
        """Its text in lower case."""
        return self.text.lower()

    @property
    def numeric(self) -> bool:
        """Whether it begins as a number."""
        return self.text[:1].isdecimal() or self.text[:1] in ("+", "-", ".")


def tokens(card: Card, start: int = 0) -> list[Token]:
    """The tokens of ``card`` from ``start`` on.

    Raises
    ------
    CardError
        A brace or quote without its partner; an expression glued to a name.
    """
    text, found, length = card.text, [], len(card.text)
    position, glued = start, -1
    while position < length:
        match = _NEXT.match(text, position)
        if match is None:
            break
        at = match.start(match.lastindex or 0)
        if match.lastindex == 1:
            token = Token(match.group(1), at, WORD, match.end())
        elif match.lastindex == 2:
            token = Token(match.group(2), at, MARK, match.end())
        else:
            token = delimited(text, at)
        if token.kind != MARK:
            if at == glued:
                raise CardError(
                    "syntax",
                    "an expression is glued to a name",
                    at,
                    "put a blank between them; names cannot be computed",
                )
            glued = token.end
        found.append(token)
        position = token.end
    return found


def delimited(text: str, at: int) -> Token:
    """The expression or string that begins with the brace or quote at ``at``."""
    mark = text[at]
    if mark == "{":
        depth = 0
        for brace in _BRACE.finditer(text, at):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                return Token(text[at + 1 : brace.start()], at + 1, EXPRESSION, brace.end())
        raise CardError("syntax", "a '{' without its '}'", at, "close the expression on this card")
    if mark == "}":
        raise CardError("syntax", "a '}' without its '{'", at)
    close = text.find(mark, at + 1)
    if close < 0:
        raise CardError("syntax", f"a {mark} without its partner", at, "close the quote on this card")
    return Token(text[at + 1 : close], at + 1, EXPRESSION if mark == "'" else STRING, close + 1)


class Words:
    """The words of a card that nobody has read yet: those that stand alone, and the ``key=value`` pairs.

    Who reads some takes them; those that are left at the end of a card are refused (`finish`).
    """

    __slots__ = ("end", "pairs", "words")

    def __init__(self, words: list[Token], pairs: list[tuple[Token, Token]], end: int) -> None:
        self.words, self.pairs, self.end = words, pairs, end

    def take(self, count: int | None = None) -> list[Token]:
        """Take the first ``count`` of the words that stand alone (fewer, if there are no more), or all."""
        taken = self.words[:count]
        del self.words[:count]
        return taken

    def named(self, names: Collection[str] | None = None) -> list[tuple[Token, Token]]:
        """Take the pairs with these names (in lower case), or all."""
        taken = [pair for pair in self.pairs if names is None or pair[0].word in names]
        self.pairs[:] = [pair for pair in self.pairs if pair not in taken]
        return taken


def finish(card: Card) -> None:
    """Refuse what of a card nobody has read.

    Raises
    ------
    CardError
    """
    if card.words is not None:
        left = [(token.offset, token.text) for token in (*card.words.words, *(key for key, _ in card.words.pairs))]
    else:
        found = _REST.match(card.text, card.read or _NAME.match(card.text).end())  # type: ignore[union-attr]
        left = [(found.start(1), found[1])] if found is not None else []
    if left:
        at, word = min(left)
        name = card.text.split(None, 1)[0]
        raise CardError("syntax", f"{short(name)}: {short(word)!r} does not belong here", at)
    card.done()


def fields(card: Card, found: list[Token], repeated: bool = False) -> Words:
    """Sort tokens of a card into words and pairs; parentheses and commas count as blanks, as in ngspice.

    Raises
    ------
    CardError
        An ``=`` without a name before it or a value behind it; a name twice, unless it may be ``repeated``.
    """
    words: list[Token] = []
    pairs: list[tuple[Token, Token]] = []
    known: set[str] = set()
    plain = [t for t in found if t.kind != MARK or t.text == "="]
    commas = {t.end for t in found if t.text == "," and t.kind == MARK}
    k = 0
    while k < len(plain):
        token = plain[k]
        if token.kind == MARK:
            raise CardError("syntax", "an '=' without a name before it", token.offset)
        if k + 1 < len(plain) and plain[k + 1].kind == MARK:
            if token.kind != WORD:
                raise CardError("syntax", "an '=' without a name before it", plain[k + 1].offset)
            if k + 2 == len(plain) or plain[k + 2].kind == MARK:
                raise CardError("syntax", f"{short(token.text)}= without a value", plain[k + 1].offset)
            if not repeated and token.word in known:
                message = f"{short(token.text)}= stands on this card twice"
                raise CardError("duplicate", message, token.offset, "leave one out")
            known.add(token.word)
            pairs.append((token, plain[k + 2]))
            k += 3
            # ic=1,2 is one value of two numbers, tc=1,2 is tc1=1 tc2=2.
            order = 1
            while token.word in LISTS and k < len(plain) and plain[k - 1].end + 1 in commas:
                order += 1
                if token.word == "tc":
                    pairs.append((Token(f"tc{order}", plain[k].offset, WORD, plain[k].end), plain[k]))
                k += 1
        else:
            words.append(token)
            k += 1
    card.words = Words(words, pairs, len(card.text))
    return card.words
