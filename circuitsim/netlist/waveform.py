"""The value of a source card at DC: ``5``, ``DC 5``, ``DC 5 AC 1``, or its time function at t = 0, as SPICE does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from circuitsim.netlist.tokens import CardError


def _sine(name: str, x: Sequence[float]) -> float:
    offset, amplitude, phase = _get(x, 0), _get(x, 1), _get(x, 5)
    return offset + (amplitude * math.sin(math.radians(phase)) if phase else 0.0)


def _fm(name: str, x: Sequence[float]) -> float:
    offset, amplitude, index = _get(x, 0), _get(x, 1), _get(x, 3)
    carrier, signal = math.radians(_get(x, 5)), math.radians(_get(x, 6))
    return offset + amplitude * math.sin(carrier + index * math.sin(signal))


def _points(name: str, x: Sequence[float]) -> float:
    times, values = x[0::2], x[1::2]
    if len(times) != len(values):
        raise ValueError("PWL needs pairs of time and value")
    if any(b <= a for a, b in pairwise(times)):
        raise ValueError("the times of PWL must grow")
    if times[0] >= 0 or len(times) == 1:
        return values[0]
    for k in range(1, len(times)):
        if times[k] >= 0:
            return values[k - 1] + (values[k] - values[k - 1]) * (0 - times[k - 1]) / (times[k] - times[k - 1])
    return values[-1]


def _get(x: Sequence[float], k: int) -> float:
    return x[k] if k < len(x) else 0.0


# Name → (fewest numbers, place of the delay among them or None, value at t = 0).
FUNCTIONS: dict[str, tuple[int, int | None, Callable[[str, Sequence[float]], float]]] = {
    "pulse": (2, 2, lambda _, x: x[0]),
    "sin": (2, 3, _sine),
    "exp": (2, 2, lambda _, x: x[0]),
    "pwl": (2, None, _points),
    "sffm": (2, None, _fm),
    "am": (2, 4, lambda _, x: 0.0),
    # Noise begins after t = 0: there TRNOISE is 0, TRRANDOM(type, step, delay, p1, p2) its mean p2.
    "trnoise": (1, None, lambda _, x: 0.0),
    "trrandom": (2, None, lambda _, x: _get(x, 4)),
}
UNSETTLED = frozenset(("external",))
MAY_BE_EMPTY = frozenset(("sin", "pulse", "exp", "sffm", "am"))
"""Functions that old decks name without numbers beside AC: they are 0 at DC."""


def dc_value(name: str, numbers: Sequence[float], offset: int) -> float:
    """The value of the time function ``name`` with these numbers at the operating point.

    Raises
    ------
    CardError
        Too few numbers, or a start before t = 0 (whose value at the operating point is not simply the first one).
    """
    fewest, delay, function = FUNCTIONS[name]
    if len(numbers) < fewest:
        raise CardError("syntax", f"{name.upper()} needs at least {fewest} numbers", offset, "or write DC and a value")
    if delay is not None and _get(numbers, delay) < 0:
        raise CardError("range", f"{name.upper()} begins before t = 0", offset, "write its value at t = 0: DC …")
    try:
        value = function(name, numbers)
    except ValueError as error:
        raise CardError("syntax", str(error), offset, "") from None
    if not math.isfinite(value):
        raise CardError("number", f"{name.upper()} has no finite value at t = 0", offset)
    return value
