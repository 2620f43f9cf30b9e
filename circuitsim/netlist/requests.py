"""What a deck's cards ask for: the ranges of its sweeps, the columns of its output cards, the outputs of ``.sens`` and
``.tf``.

``.tran`` of a circuit without capacitors and inductors: operating points at output times and breakpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR
from circuitsim.errors import UsageError
from circuitsim.netlist import limits
from circuitsim.netlist.deck import (
    DcRange,
    DcSweep,
    Deck,
    MeasurementRequest,
    Output,
    SensitivityRequest,
    Step,
    TableRange,
    Target,
    Temperature,
    TransferRequest,
    Transient,
)
from circuitsim.netlist.points import points
from circuitsim.netlist.waveform import Grid, Waveform

DEFAULT_POINTS = 200
"""Output times of a ``.tran`` card that states no step."""
MOST_POINTS = 100_000
"""Most of one that states the longest step alone, as LTspice's do."""


class OutputTimes(tuple[float, ...]):
    """Times in growing order (s), with the step and the stop time that time functions refer to."""

    grid: Grid


def memory(circuit: Circuit) -> list[str]:
    """The first of the elements that store energy; without any, every time has an operating point of its own."""
    kinds = circuit.columns()[0]
    return [circuit.names[k] for k, code in enumerate(kinds) if code in (CAPACITOR, INDUCTOR)][:1]


def grid_of(card: Transient) -> Grid:
    """Step and stop time of a ``.tran`` card; a step of zero becomes the longest step, else a share of the range."""
    span = card.stop - card.start
    usual = max(card.longest, span / MOST_POINTS) if card.longest else span / DEFAULT_POINTS
    return Grid(card.step or usual, card.stop)


def output_times(card: Transient, waves: Iterable[Waveform]) -> OutputTimes:
    """The output times of ``card`` and the breakpoints of ``waves`` between them.

    Raises
    ------
    UsageError
        More than `limits.SWEEP_POINTS` times.
    """
    grid = grid_of(card)
    try:
        found = list(points(card.start, card.stop, grid.step))
        for wave in waves:
            found += _breakpoints(wave, card, grid)
            if len(found) > limits.SWEEP_POINTS:
                raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    except ValueError as error:
        raise UsageError(f".tran: {error}; take a larger step or a shorter time") from None
    found.sort()
    times = OutputTimes([found[0], *(b for a, b in pairwise(found) if b - a > 1e-9 * grid.step)])
    times.grid = grid
    return times


def _breakpoints(wave: Waveform, card: Transient, grid: Grid) -> list[float]:
    """Those within the times of ``card``; of numbers that make no function none: solving says so."""
    try:
        return wave.over(grid).breakpoints(card.start, card.stop, limits.SWEEP_POINTS).tolist()
    except (ValueError, UsageError):
        return []


Vary = dict[str | tuple[str, ...], Sequence[Any]]
Card = TypeVar("Card", DcSweep, Transient)

PARAMETER = "param:"
"""Prefix of a swept name that is a parameter of the deck although an element is called the same."""
TEMPERATURE = "temp"
"""Swept name of a deck's temperature (°C), where no parameter and no element is called the same."""
TIME = "time"
"""Swept name of the time (s) at which the sources of a deck are taken, likewise."""
STEADY, OVER_TIME = ("", "dc", "op"), ("", "tran")
"""Analyses that output cards may name."""


def ranges_of(deck: Deck) -> Vary:
    """What the deck's ``.dc``, else its ``.tran``, varies inside its ``.step`` cards.

    Raises
    ------
    UsageError
        None of them, or several of one kind.
    """
    dc, tran = _single(deck, DcSweep, ".dc"), _single(deck, Transient, ".tran")
    asked: Vary = dict(_varied(r) for card in dc for r in card.sweeps)
    if tran and not dc:
        asked[TIME] = output_times(tran[0], deck.following.waves.values())
    steps = steps_of(deck)
    if not asked and not steps:
        raise UsageError(
            "the deck has no .dc, no .tran, no .step and no .temp list; give --vary, for instance --vary V1=0:5:0.1"
        )
    return asked | steps


def analyses_of(deck: Deck) -> list[str]:
    """The analyses that a deck asks for by the words of their cards, in its order; ``op`` where it asks for none.

    ``.step`` and a ``.temp`` of several values belong to ``.dc``, ``.tran`` and ``.ac``; alone they are a ``dc`` sweep.
    """
    words = [word for word in deck.cards() if word in ("op", "dc", "tran", "ac", "tf", "sens")]
    if steps_of(deck) and not {"dc", "tran", "ac"} & set(words):
        words.append("dc")
    return words or ["op"]


def steps_of(deck: Deck) -> Vary:
    """What the deck's ``.step`` cards vary, and a ``.temp`` of several values."""
    steps = [_varied(analysis.sweep) for analysis in deck.analyses if isinstance(analysis, Step)]
    steps += [(TEMPERATURE, a.values) for a in deck.analyses if isinstance(a, Temperature) and len(a.values) > 1]
    return dict(steps)


def _single(deck: Deck, kind: type[Card], word: str) -> list[Card]:
    """The card of a kind, if there is one."""
    found = [card for card in deck.analyses if isinstance(card, kind)]
    if len(found) > 1:
        lines = " and ".join(str(card.location.line) for card in found)
        raise UsageError(f"the deck has {len(found)} {word} cards (lines {lines}); leave one, or give --vary")
    return found


def _varied(found: DcRange | TableRange) -> tuple[str | tuple[str, ...], Sequence[Any]]:
    """The name or names that a range varies, and their values."""
    if isinstance(found, TableRange):
        columns = [_varied(column) for column in found.ranges]
        names = [(name,) if isinstance(name, str) else name for name, _ in columns]
        rows = zip(*(values if isinstance(name, tuple) else [(v,) for v in values] for name, values in columns))
        return tuple(n for own in names for n in own), [tuple(v for own in row for v in own) for row in rows]
    if found.elements:
        return found.elements, [(value,) * len(found.elements) for value in found.values]
    name = {Target.PARAMETER: PARAMETER + found.name, Target.TEMPERATURE: TEMPERATURE}.get(found.target, found.name)
    return name, found.values


def columns_of(deck: Deck, kinds: tuple[str, ...]) -> str | None:
    """The columns that ``.print``, ``.plot`` and ``.save`` name for analyses of these kinds; None for all."""
    cards = [card for card in deck.analyses if isinstance(card, Output) and card.requests]
    words = [word for card in cards if card.analysis in kinds for word in card.requests]
    return None if any(word.lower() in ("all", "allv", "alli") for word in words) else " ".join(words) or None


def measurements_of(deck: Deck, analysis: str) -> list[str]:
    """The deck's ``.meas`` cards of an analysis (``tran``, ``ac``, ``dc``), from their names on."""
    return [c.text for c in deck.analyses if isinstance(c, MeasurementRequest) and c.analysis == analysis]


def outputs_of(deck: Deck) -> str:
    """The quantities that ``.sens`` cards name."""
    return " ".join(word for card in deck.analyses if isinstance(card, SensitivityRequest) for word in card.outputs)


def transfers_of(deck: Deck) -> list[tuple[str, str]]:
    """The outputs and sources that ``.tf`` cards name."""
    return [(card.output, card.source) for card in deck.analyses if isinstance(card, TransferRequest)]
