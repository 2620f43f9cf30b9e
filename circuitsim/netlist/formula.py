"""An expression of printed quantities, which stands in no deck."""

from __future__ import annotations

from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import Code
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Source
from circuitsim.netlist.values import expression


def parse_formula(text: str) -> Code:
    """The expression that ``text`` is; it may read ``v(a,b)``, ``i(R1)`` and ``p(R1)``.

    Raises
    ------
    ExpressionError
        It is no expression.
    """
    return expression(Card(Source("<columns>", "", text), 1, text), 0, len(text), Scope(), (), True)
