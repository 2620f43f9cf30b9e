"""Cards of resistors, inductors and capacitors: a value, a model, or both, and the numbers beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.elements import ELEMENTS, RESISTOR
from circuitsim.netlist.cards import Card
from circuitsim.netlist.scope import Count, Details, ModelUse, Scope, Value
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Token, Words
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import Parts

SIZES = frozenset(("l", "w"))
"""Numbers without effect where no model has a sheet resistance."""


class Stated(NamedTuple):
    """What the card of a resistor, inductor or capacitor states.

    Attributes
    ----------
    offset : int
        Of the value in the card.
    value : Value or None
        None: its model states it.
    details : Details or None
        Where the value is not all.
    """

    offset: int
    value: Value | None
    details: Details | None


def passive(parts: Parts, scope: Scope, card: Card, name: Token, sorted_: Words, code: int) -> Stated:
    """The value of R, L or C: ``1k``, ``R=1k``, ``model``, ``1k model`` or ``model 1k``, and what stands beside it.

    Raises
    ------
    CardError, ExpressionError
    """
    row = ELEMENTS[code]
    all_words, pairs = sorted_.take(), sorted_.named()
    if len(all_words) == 1 and not pairs and all_words[0].kind == EXPRESSION:
        only = all_words[0]
        formula = constant(value_of(only, card, scope))
        parts.warn_letters(card, name, only, formula, code)
        return Stated(only.offset, formula, None)
    keyed = [value for key, value in pairs if key.text.lower() in row.keywords]
    named = code == RESISTOR  # its model may have any name but LTspice's "noiseless"
    words = [w for w in all_words if (named and w.text.lower() != "noiseless") or not parts.flag(w, card, name)]
    token, model = value_and_model(card, name, words, keyed, sorted_, code)
    numbers = {
        key.text.lower(): Count(card, value.offset, constant(value_of(value, card, scope)))
        for key, value in pairs
        if key.text.lower() not in row.keywords
    }
    idle = SIZES if code == RESISTOR else SIZES | {"tce"}
    for word in [w for w in numbers if model is None and w in idle]:
        parts.no_effect(word, card, numbers.pop(word).offset, name.text)
    value = constant(value_of(token, card, scope)) if token is not None else None
    if token is not None and value is not None:
        parts.warn_letters(card, name, token, value, code)
    use = ModelUse(card, model.offset, name.text, model.text) if model is not None else None
    offset = token.offset if token is not None else (model.offset if model is not None else 0)
    if use is None and not numbers:
        return Stated(offset, value, None)
    details = Details(row.letter, numbers, use, model is not None and model is token)
    return Stated(offset, value, details)


def value_and_model(
    card: Card, name: Token, words: list[Token], keyed: list[Token], sorted_: Words, code: int
) -> tuple[Token | None, Token | None]:
    """The tokens of value and model; one bare name is both, for a parameter may be called so.

    Raises
    ------
    CardError
        Neither, or too many words.
    """
    row = ELEMENTS[code]
    values = [*words, *keyed]
    if not values:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs its {row.parameter} in {row.unit}",
            max(sorted_.end - 1, 0),
            f"{row.letter}name first second value",
        )
    models = [w for w in words if w.kind == WORD and (w.text[0].isalpha() or w.text[0] == "_")]
    if len(values) == 1:
        return values[0], values[0] if models and values[0].text.isidentifier() else None
    if len(values) == 2 and models:
        model = models[-1]
        return next(v for v in values if v is not model), model
    extra = max(values, key=lambda token: token.offset)
    hint = "write a decimal point" if card.text[extra.offset - 1] == "," else ""
    raise CardError(
        "syntax",
        f"{short(name.text)}: {short(extra.text)!r} is one value too many",
        extra.offset,
        hint or "an expression goes in braces: {…}",
    )
