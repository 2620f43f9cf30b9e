"""Time functions of sources as ngspice defines them: ``PULSE SIN EXP PWL SFFM AM``; at t = 0 the value at DC.

References
----------
ngspice user manual, version 39, chapter 4.1 (independent sources).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from circuitsim.circuit import waveforms
from circuitsim.netlist.cards import CardError, Place


class Grid(NamedTuple):
    """The step and the stop time of a time sweep (s), which are defaults of some functions."""

    step: float
    stop: float


STEADY = Grid(math.inf, math.inf)
"""For an operating point: no function reads it at t = 0."""


class Function(NamedTuple):
    """A time function.

    Attributes
    ----------
    waveform : str
        The class of `circuitsim.circuit.waveforms`, which takes all numbers.
    most : int or None
        Maximum count of numbers.
    delay : int or None
        Position of the delay among them.
    sizes : int
        Number of leading ones in V or A.
    others : callable
        Maps the step and the stop time, and a function for a number or its default, to the defaults of numbers that are
        omitted or zero.
    explicit : int
        Minimum count of numbers in an expression; 0: none has it.
    nonzero : tuple of int
        Positions of those that may not be zero there: on a card their defaults come from ``.tran``.
    """

    waveform: str
    most: int | None = None
    delay: int | None = None
    sizes: int = 0
    others: Callable[[float, float, Callable[[int, float], float]], Sequence[float]] = lambda *_: ()
    explicit: int = 0
    nonzero: tuple[int, ...] = ()


FEWEST = 2
"""Minimum count of numbers of a function."""
EXTERNAL = "external"
"""A function whose values another program supplies."""
FUNCTIONS = {
    "pulse": Function(
        "Pulse",
        8,
        2,
        2,
        lambda step, stop, x: (0.0, 0.0, 0.0, step, step, stop, stop or math.inf, math.inf),
        6,
        (3, 4, 5),
    ),
    "sin": Function("Sine", 7, 3, 2, lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 0.0, 0.0, math.inf), 3, (2,)),
    "exp": Function(
        "Exponential",
        6,
        2,
        2,
        lambda step, stop, x: (0.0, 0.0, step, step or math.inf, x(2, step) + step, step or math.inf),
        6,
        (3, 5),
    ),
    "pwl": Function("PiecewiseLinear"),
    "sffm": Function(
        "FrequencyModulation",
        7,
        None,
        2,
        lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 1.0 / stop, 0.0, 0.0),
        5,
        (2, 4),
    ),
    "am": Function("AmplitudeModulation", 7, 4, 1, lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 0.0)),
    EXTERNAL: Function(""),
}
"""By name; the last number of PULSE and SIN is LTspice's number of cycles."""
MAY_BE_EMPTY = FUNCTIONS.keys() - {"pwl", EXTERNAL}
"""Functions that old decks write without numbers next to AC: 0 at DC."""
ALIASES = {"sine": "sin"}
"""Aliases of functions; LTspice writes SINE."""


def in_expression(name: str, time: float, *numbers: float) -> waveforms.Waveform:
    """The waveform of ``spice_pulse(v1, v2, …)`` in an expression, whose first argument is the time, s (Xyce).

    Raises
    ------
    ValueError
        Required numbers are missing or zero.
    """
    fewest, nonzero = FUNCTIONS[name].explicit, FUNCTIONS[name].nonzero
    if len(numbers) < fewest or not all(numbers[k] for k in nonzero):
        raise ValueError(f"spice_{name} needs at least {fewest} numbers, with times that are not zero")
    return _made(Waveform(name, numbers), STEADY)


RANDOM = frozenset(("trnoise", "trrandom"))
"""Time functions that are refused, because each run would differ."""


class Waveform(NamedTuple):
    """The time function of one source.

    Attributes
    ----------
    name : str
        A key of `FUNCTIONS`.
    numbers : tuple of float
        As on the card, V or A and s; there they, and the next two, may be expressions.
    repeat : float or None
        Of PWL: the time on its own axis from which it repeats (``r=``), s.
    delay : float
        Of PWL: ``td=``, s.
    factor : float
        Sources in parallel.
    """

    name: str
    numbers: tuple[Any, ...]
    repeat: Any = None
    delay: Any = 0.0
    factor: float = 1.0

    @property
    def dc(self) -> float:
        """The value at the operating point, V or A.

        Raises
        ------
        ValueError
            Invalid numbers.
        """
        if self.name == "pulse":
            return self.factor * self.numbers[0]
        repeats = self.repeat is not None and self.repeat < self.numbers[-2]
        card = self._replace(factor=1.0, repeat=self.repeat if repeats else None)
        return self.factor * _made(card, STEADY).value(0.0)

    def over(self, grid: Grid) -> waveforms.Waveform:
        """The waveform, with defaults from a time sweep.

        Raises
        ------
        ValueError, UsageError
            Invalid numbers.
        """
        if self.name == "am" and any(self.numbers[5:]):
            raise ValueError("the phases of AM are not read")
        return _made(self, grid)


@lru_cache(1024)
def _made(card: Waveform, grid: Grid) -> waveforms.Waveform:
    """The waveform of a card; cached, since a sweep requests each time separately."""
    x, own = card.numbers, FUNCTIONS[card.name]
    if len(x) < FEWEST:
        raise ValueError(f"{card.name.upper()} needs at least {FEWEST} numbers")
    if card.name == "pwl":
        times, values = x[0::2], x[1::2]
        if len(times) != len(values):
            raise ValueError("PWL needs pairs of time and value")
        if any(b <= a for a, b in pairwise(times)):
            raise ValueError("the times of PWL must increase")
        repeat = None if card.repeat is None else card.repeat + card.delay
        return waveforms.PiecewiseLinear([t + card.delay for t in times], [card.factor * v for v in values], repeat)

    def number(k: int, other: float) -> float:
        return x[k] if k < len(x) and x[k] != 0.0 else other

    numbers = [number(k, other) for k, other in enumerate(own.others(*grid, number))]
    scaled = [card.factor * size for size in numbers[: own.sizes]]
    found: waveforms.Waveform = getattr(waveforms, own.waveform)(*scaled, *numbers[own.sizes :])
    return found


def checked_waveform(wave: Waveform, at: Place) -> float:
    """The value of ``wave`` at DC.

    Raises
    ------
    CardError
        Too few numbers, or a start before t = 0 (its value at the operating point would not simply be the first one).
    """
    shown = wave.name.upper()
    if wave.name == EXTERNAL:
        raise CardError(f"{shown} has no value at the operating point", at, "write its DC value", "unsupported")
    if len(wave.numbers) < FEWEST:
        raise CardError(f"{shown} needs at least {FEWEST} numbers", at, "or write DC and a value")
    delay = FUNCTIONS[wave.name].delay
    if delay is not None and min(wave.numbers[delay : delay + 1], default=0.0) < 0:
        raise CardError(f"{shown} begins before t = 0", at, "write its value at t = 0: DC …", "range")
    try:
        value = wave.dc
    except ValueError as error:
        raise CardError(str(error), at) from None
    if not math.isfinite(value):
        raise CardError(f"{shown} has no finite value at t = 0", at, kind="number")
    return value
