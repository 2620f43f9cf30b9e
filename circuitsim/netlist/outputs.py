"""``.print``, ``.plot`` and ``.save``: the quantities they name, without the options of how they are written."""

from __future__ import annotations

import re

from circuitsim.netlist.cards import Card
from circuitsim.netlist.deck import Output
from circuitsim.netlist.tokens import CardError, delimited
from circuitsim.units import short

ANALYSES = frozenset(
    ("dc", "op", "tran", "ac", "noise", "disto", "tf", "pz", "sp", "hb", "sens", "es", "pce", "homotopy", "ac_ic")
)
"""The word behind ``.print`` that says for which analysis it is."""

OPTIONS = ("format", "file", "width", "precision", "filter", "delimiter", "timescalefactor", "index")
"""Of Xyce's ``.print``: how its file is written; they have no effect."""

_OPTION = re.compile(r"([^\W\d]\w*)\s*=\s*(?:\"[^\"]*\"|[^\s,{}]+)")
_FORMULA = re.compile(r"par\s*\(\s*(['\"{])", re.IGNORECASE)
_WIDTH = re.compile(r"\([^()]*\)")


def output(card: Card, word: str, at: int) -> Output:
    """The request that ``card`` is; ``at`` is the offset behind its name.

    Raises
    ------
    CardError
        A parenthesis, brace or quote without its partner.
    """
    text, requests = card.text, []
    analysis = ""
    while at < len(text):
        if text[at].isspace() or text[at] == ",":
            at += 1
        elif formula := _FORMULA.match(text, at):
            token = delimited(text, formula.end() - 1)
            requests.append("{" + token.text + "}")
            at = text.find(")", token.end) + 1 or len(text)
        elif text[at] in "{'":
            token = delimited(text, at)
            requests.append("{" + token.text + "}")
            at = token.end
        elif found := _OPTION.match(text, at):
            if found[1].lower() not in OPTIONS:
                raise CardError(
                    "syntax", f"{word} has no option {short(found[1])!r}", at, f"known: {', '.join(OPTIONS)}"
                )
            at = found.end()
        elif found := _WIDTH.match(text, at):
            at = found.end()  # the limits of ngspice's .plot
        else:
            end = _end_of_word(text, at)
            requests.append(text[at:end])
            at = end
    if requests and requests[0].lower() in ANALYSES:
        analysis = requests.pop(0).lower()
    return Output(word[1:], analysis, tuple(requests), card.place(card.start()))


def _end_of_word(text: str, at: int) -> int:
    """Where the word at ``at`` ends: at a blank or comma outside its parentheses."""
    depth, start = 0, at
    while at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0 and (text[at].isspace() or text[at] == ","):
            return at
        if depth == 0 and text[at] == ")":
            return at + 1
        at += 1
    if depth > 0:
        raise CardError("syntax", "a '(' without its ')'", start, "close it on this card")
    return at
