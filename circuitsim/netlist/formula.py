"""Expressions of printed quantities, outside any deck; vectorised if they consist of sums, products and quotients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.netlist.cards import Card, Source
from circuitsim.netlist.expression import Code, Environment, Evaluator, ExpressionError, Signal
from circuitsim.netlist.scope import Scope, formula


def parse_formula(text: str) -> Code:
    """Parse an expression; it may read ``v(a,b)``, ``i(R1)`` and ``p(R1)``.

    Raises
    ------
    ExpressionError
        The text is not an expression.
    """
    return formula(Card(Source("<columns>", "", text), 1, text), 0, Scope(), signals=True)


def values_at_once(code: Code, known: Mapping[Signal, np.ndarray], names: Mapping[str, float]) -> np.ndarray | None:
    """The values (n,) of an expression.

    Parameters
    ----------
    code : Code
        Without functions of a deck.
    known : mapping of Signal to (n,) float array
    names : mapping of str to float
        Values of parameters, by names in lower case.

    Returns
    -------
    (n,) float array or None
        None where the expression has other operations, or a value is infinite: `circuitsim.netlist.expression` then
        reports the error.
    """
    evaluator = Evaluator(signals=known.__getitem__, check=lambda name, result, values: result)
    found: np.ndarray = np.zeros(np.broadcast_shapes(*(own.shape for own in known.values())))
    if found.shape == (1,):  # functions of the module math would take it for a number
        return None
    try:
        with np.errstate(all="ignore"):
            found = found + evaluator.value(code, Environment(dict(names)))
    except (ExpressionError, TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None
