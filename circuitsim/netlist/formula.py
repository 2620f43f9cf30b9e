"""Expressions of printed quantities, outside any deck; vectorised if they consist of sums, products and quotients."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from circuitsim.netlist.cards import Card, Source
from circuitsim.netlist.expression import Code, Domain, Environment, Evaluator, ExpressionError, Signal
from circuitsim.netlist.functions import FUNCTIONS, NEGATE
from circuitsim.netlist.scope import Scope, formula


def parse_formula(text: str) -> Code:
    """Parse an expression; it may read ``v(a,b)``, ``i(R1)`` and ``p(R1)``.

    Raises
    ------
    ExpressionError
        The text is not an expression.
    """
    return formula(Card(Source("<columns>", "", text), 1, text), 0, Scope(), signals=True)


class _Arrays(Domain):
    """Arrays of values of quantities."""

    symbols = (np.ndarray,)
    kinds = ("v", "i", "p")

    def __init__(self, known: Mapping[Signal, np.ndarray]) -> None:
        self.known = known

    def signal(self, signal: Signal) -> np.ndarray:
        """The values of a quantity."""
        return self.known[signal]

    def apply(self, name: Any, values: Sequence[Any]) -> Any:
        """A sign, an arithmetic operator, or one of a few functions."""
        if name not in _APPLIED or (name in ("min", "max") and len(values) != 2):
            raise self.refused(str(name))
        return _APPLIED[name](*values)

    def refused(self, what: str) -> ExpressionError:
        """The error for all other operations."""
        return ExpressionError(what, kind="unsupported")

    def whole(self, value: Any) -> np.ndarray:
        """The values, if all are finite."""
        found: np.ndarray = np.zeros(np.broadcast_shapes(*(own.shape for own in self.known.values()))) + value
        if not np.isfinite(found).all():
            raise self.refused("infinity")
        return found


_APPLIED: dict[Any, Callable[..., Any]] = {
    NEGATE: operator.neg,
    "abs": abs,
    **{name: FUNCTIONS[name].value for name in ("+", "-", "*", "/", "sqr")},
    "min": np.minimum,
    "max": np.maximum,
}


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
    environment = Environment(dict(names))
    try:
        with np.errstate(all="ignore"):
            found: np.ndarray = Evaluator().value(code, environment, _Arrays(known))
    except ExpressionError:
        return None
    return found
