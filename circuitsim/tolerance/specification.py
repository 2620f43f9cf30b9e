"""Specifications: allowed ranges of quantities."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.units import NumberError, parse

_SPLIT = re.compile(r"\s*(<=|>=|<|>)\s*")
FORM = "write LOW<QUANTITY<HIGH, QUANTITY<HIGH or QUANTITY>LOW, for instance '4.9<v(out)<5.1'"


class Specification(NamedTuple):
    """low ≤ quantity ≤ high, in V, A or W."""

    quantity: str
    low: float
    high: float

    def met(self, values: np.ndarray) -> np.ndarray:
        """Which values lie in the range."""
        return (values >= self.low) & (values <= self.high)

    def __str__(self) -> str:
        low = "" if self.low == -math.inf else f"{self.low:g}<"
        high = "" if self.high == math.inf else f"<{self.high:g}"
        return f"{low}{self.quantity}{high}"


def parse_specification(text: str) -> Specification:
    """Parse a specification in the syntax of ``--spec``.

    Raises
    ------
    UsageError
        Invalid text, or an empty range.

    Examples
    --------
    >>> parse_specification("4.9<v(out)<5.1")
    Specification(quantity='v(out)', low=4.9, high=5.1)
    """
    words = _SPLIT.split(text.strip())
    signs, parts = [sign[0] for sign in words[1::2]], words[0::2]
    low, high, quantity = -math.inf, math.inf, ""
    if len(parts) == 3 and len(set(signs)) == 1:
        ends = [_number(parts[0], text), _number(parts[2], text)]
        low, high = ends if signs[0] == "<" else ends[::-1]
        quantity = parts[1]
    elif len(parts) == 2:
        left = _is_number(parts[0])
        quantity = parts[1] if left else parts[0]
        number = _number(parts[0] if left else parts[1], text)
        if (signs[0] == "<") == left:
            low = number
        else:
            high = number
    else:
        raise UsageError(f"--spec {text!r}: {FORM}")
    if not low <= high:
        raise UsageError(f"--spec {text!r}: no value lies between {low:g} and {high:g}")
    return Specification(quantity, low, high)


def _is_number(text: str) -> bool:
    try:
        parse(text)
    except NumberError:
        return False
    return True


def _number(text: str, whole: str) -> float:
    try:
        return parse(text)
    except NumberError as error:
        raise UsageError(f"--spec {whole!r}: {error}; {FORM}") from None
