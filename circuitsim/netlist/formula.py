"""An expression of printed quantities, which stands in no deck; values of many at once, where it has sums, products and
quotients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import CALL, NAME, NEGATE, PUSH, SIGNAL, Code, Signal
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


_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "sqr": np.square}


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
        None where the expression has other operations, or a value has no bounds: `circuitsim.netlist.evaluate` then
        says what is wrong.
    """
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for instruction, argument, _ in code.program:
            if instruction == PUSH:
                stack.append(argument)
            elif instruction == SIGNAL:
                stack.append(known[argument])
            elif instruction == NAME and argument in names:
                stack.append(names[argument])
            elif instruction == NEGATE:
                stack.append(-stack.pop())
            elif instruction == CALL and argument[1] == 1 and argument[0] in _FUNCTIONS:
                stack.append(_FUNCTIONS[argument[0]](stack.pop()))
            elif (operator := _operator(instruction, argument)) is not None:
                right = stack.pop()
                stack.append(operator(stack.pop(), right))
            else:
                return None
    found = np.zeros(np.broadcast_shapes(*(own.shape for own in known.values()))) + stack.pop()
    return found if np.isfinite(found).all() else None


def _operator(instruction: Any, argument: Any) -> Callable[[Any, Any], Any] | None:
    name, count = argument if instruction == CALL else (instruction, 2)
    return _OPERATORS.get(name) if count == 2 else None
