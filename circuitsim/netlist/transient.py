"""``.tran`` of a circuit without capacitors and inductors: operating points at output times and breakpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR
from circuitsim.errors import UsageError
from circuitsim.netlist import limits
from circuitsim.netlist.deck import Transient
from circuitsim.netlist.points import points
from circuitsim.netlist.waveform import Grid, Waveform

DEFAULT_POINTS = 200
"""Output times of a ``.tran`` card that states no step."""
MOST_POINTS = 100_000
"""Most of one that states the longest step alone, as LTspice's do."""


class OutputTimes(Sequence[float]):
    """Times in growing order (s), with the step and the stop time that time functions refer to."""

    def __init__(self, times: Sequence[float], grid: Grid) -> None:
        self._times, self.grid = tuple(times), grid

    def __len__(self) -> int:
        return len(self._times)

    def __getitem__(self, item: Any) -> Any:
        return self._times[item]


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
            for time in wave.breakpoints(grid):
                if card.start < time < card.stop:
                    found.append(time)
                if len(found) > limits.SWEEP_POINTS:
                    raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    except ValueError as error:
        raise UsageError(f".tran: {error}; take a larger step or a shorter time") from None
    return OutputTimes(_distinct(sorted(found), 1e-9 * grid.step), grid)


def _distinct(times: Sequence[float], least: float) -> list[float]:
    """``times`` without those that are nearly the one before."""
    kept = [times[0]]
    for time in times[1:]:
        if time - kept[-1] > least:
            kept.append(time)
    return kept
