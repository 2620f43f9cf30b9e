"""Axes of a sweep: elements, device parameters, a deck's parameters and temperature, time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.arguments import numbers, real
from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.parameters import parameter
from circuitsim.circuit.table import checked_value
from circuitsim.errors import UsageError, similar, some
from circuitsim.netlist.deck import PARAMETER, TEMPERATURE, TIME, Deck, OutputTimes

if TYPE_CHECKING:
    from circuitsim.netlist.functional import FollowingSources
    from circuitsim.netlist.waveform import Grid


class Sort(Enum):
    """What an axis varies: a circuit value, something that requires re-elaboration of the deck, or time."""

    VALUE = "value"
    PARAMETER = "parameter"
    TEMPERATURE = "temperature"
    TIME = "time"


class Axis(NamedTuple):
    """One varied name: heading, name, unit, kind, values; the grid of a time axis."""

    label: str
    name: str
    unit: str
    sort: Sort
    values: np.ndarray
    grid: Grid | None = None


class Combinations(NamedTuple):
    """All combinations of varied values: groups of axes that vary together, the first fastest."""

    groups: list[list[Axis]]

    @classmethod
    def of(cls, vary: Mapping[str | tuple[str, ...], Sequence[Any]], source: Circuit | Deck) -> Combinations:
        """From names and values, as in `circuitsim.sweep`."""
        found = cls([group(names, values, source) for names, values in vary.items()])
        labels = [axis.label for axis in found.axes]
        twice = [label for k, label in enumerate(labels) if label in labels[:k]]
        if twice:
            raise UsageError(f"{twice[0]} is varied twice")
        if not labels:
            raise UsageError("a sweep needs at least one name to vary")
        return found

    @property
    def axes(self) -> list[Axis]:
        """All axes."""
        return [axis for group in self.groups for axis in group]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each group."""
        return tuple(len(group[0].values) for group in self.groups)

    @property
    def points(self) -> int:
        """Number of combinations."""
        return math.prod(self.shape)

    def varied(self) -> np.ndarray:
        """The values (axes, points)."""
        grids = np.meshgrid(*(np.arange(n) for n in reversed(self.shape)), indexing="ij")
        rows = [grid.ravel() for grid in reversed(grids)]
        return np.array([axis.values[rows[k]] for k, group in enumerate(self.groups) for axis in group])


def group(names: str | tuple[str, ...], values: Sequence[Any], source: Circuit | Deck) -> list[Axis]:
    """Axes that vary together: one name, or several with rows of values."""
    if isinstance(names, str):
        return [_axis(names, values, source)]
    if any(len(row) != len(names) for row in values) or not names:
        raise UsageError(f"a table of {len(names)} names needs rows of {len(names)} values")
    return [_axis(name, [row[k] for row in values], source) for k, name in enumerate(names)]


def _axis(name: str, values: Sequence[float], source: Circuit | Deck) -> Axis:
    """The values of one name, checked in advance."""
    circuit, known = source, source.parameters if isinstance(source, Deck) else {}
    bare = name.removeprefix(PARAMETER)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name}: what varies takes several values, for instance [0, 5, 10], not {values!r}")
    column = numbers(real)(name, values)
    found = parameter(circuit, bare) if bare == name else None
    if bare == name and bare in circuit:
        index = circuit.element_index(name)
        code = int(circuit.arrays().kind[index])
        if not ELEMENTS[code].parameter:
            own = ", ".join(f"{circuit.names[index]}.{row.name}" for row in ELEMENTS[code].parameters)
            hint = f"; what can vary is {own}" if own else ""
            raise UsageError(f"{circuit.names[index]} is {_an(ELEMENTS[code].name)}: it has no value to vary{hint}")
        for value in column.tolist():
            checked_value(code, circuit.names[index], value)
    elif found is not None and found.plain:
        for value in column.tolist():
            circuit.with_values({found.name: value})
    if found is not None and found.plain:
        return Axis(found.name, found.name, found.unit, Sort.VALUE, column)
    parameters = {key.lower(): key for key in known}
    if bare.lower() in parameters:
        own = parameters[bare.lower()]
        return Axis(PARAMETER + own if own in circuit else own, own, "", Sort.PARAMETER, column)
    if ":" in bare and isinstance(source, Deck) and source.has_parameter(bare):
        return Axis(bare, bare, "", Sort.PARAMETER, column)
    if name.lower() == TEMPERATURE and isinstance(source, Deck):
        return Axis(TEMPERATURE, TEMPERATURE, "°C", Sort.TEMPERATURE, column)
    if name.lower() == TIME and isinstance(source, Deck):
        return Axis(TIME, TIME, "s", Sort.TIME, column, _grid(values, column))
    raise UsageError(_unknown(bare, [*circuit.names[:5000], *known]))


def _grid(values: Sequence[float], column: np.ndarray) -> Grid:
    """Step and stop time, the defaults of time functions."""
    from circuitsim.netlist.waveform import Grid

    if isinstance(values, OutputTimes):
        return values.grid
    if column.size and column.min() < 0:
        raise UsageError("the time must not be negative")
    last = float(column.max()) if column.size else 0.0
    return Grid(last / max(column.size - 1, 1), last)


def _an(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _unknown(name: str, names: Sequence[str]) -> str:
    hint = similar(name.lower(), map(str.lower, names), f"there are {some(names)}") if names else ""
    what = f"nothing that can vary is called {name!r}: no element, no parameter of the deck"
    return f"{what}; {hint}" if hint else what


def elaborated(
    source: Circuit | Deck, axes: Sequence[Axis], setting: Sequence[float], varied: Sequence[str] = ()
) -> tuple[Circuit, FollowingSources | None]:
    """The circuit of a deck with these parameters and this temperature where the elements ``varied`` vary, and the
    sources that depend on others."""
    if not isinstance(source, Deck):
        return source, None
    stated = of_deck(axes, setting)
    circuit, following = source.with_sources(*stated, False)
    return source.unfrozen(following, varied, *stated, False) or (circuit, following)


def of_deck(axes: Sequence[Axis], setting: Sequence[float]) -> tuple[dict[str, float], float | None]:
    """The deck's parameters and its temperature, °C (None: its own), among varied values."""
    chosen = list(zip(axes, setting))
    temperature = next((value for axis, value in chosen if axis.sort is Sort.TEMPERATURE), None)
    return {axis.name: value for axis, value in chosen if axis.sort is Sort.PARAMETER}, temperature


def moving_at(
    deck: Deck, axes: Sequence[Axis], setting: Sequence[float], all_vary: bool = False
) -> tuple[Circuit, FollowingSources]:
    """The circuit of a deck at these values where sources vary over time (``all_vary``: all elements, as at
    frequencies), and the sources that depend on others."""
    stated = of_deck(axes, setting)
    circuit, following = deck.with_sources(*stated)
    given = {axis.name: value for axis, value in zip(axes, setting) if axis.sort is Sort.VALUE}
    moving = [*given, *(circuit.names[k] for k in (*following.waves, *following.formulas))]
    circuit, following = deck.unfrozen(following.over_time(), None if all_vary else moving, *stated) or (
        circuit,
        following,
    )
    circuit = circuit.with_values(following.of_cards(given))
    return circuit, following.of(circuit)


def values_at(axes: Sequence[Axis], values: Sequence[float], following: FollowingSources | None) -> dict[str, float]:
    """The element values of one row, including those of sources that depend on time or on other sources."""
    given = {axis.name: value for axis, value in zip(axes, values) if axis.sort is Sort.VALUE}
    if following is None:
        return given
    given = following.of_cards(given)
    if not following:
        return given
    for axis, value in zip(axes, values):
        if axis.sort is Sort.TIME and axis.grid is not None:
            return given | following.values(given, value, axis.grid)
    return given | following.values(given)
