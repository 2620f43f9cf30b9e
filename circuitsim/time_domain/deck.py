"""A deck's ``.tran`` analysis: its card, the time functions of its sources, its initial values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeVar

from circuitsim.analysis.switching import Switch, switches_of
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.waveforms import Waveform, check_cycles
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import STARTUP, Deck, InitialValues, Transient, grid_of, single
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.functions import Grid
from circuitsim.netlist.functions import Waveform as Card
from circuitsim.time_domain.formula_sources import MOST_SAMPLES, FormulaOfSolution, FormulaOfTime

T = TypeVar("T")


class DeckSetting(NamedTuple):
    """A deck's settings for a transient analysis.

    Attributes
    ----------
    circuit : Circuit
        With all sources that others are controlled by.
    stop, begin, step : float
        End of the run, first output time, distance of the output times, s.
    waveforms, initial, switches, couplings, held, max_step
        As `circuitsim.time_domain.transient` takes them.
    """

    circuit: Circuit
    stop: float
    begin: float
    step: float
    waveforms: dict[str, Waveform]
    initial: dict[str, float] | None
    switches: dict[str, Switch]
    couplings: Mapping[tuple[str, str], float]
    held: dict[str, float]
    max_step: float


def beside(own: Mapping[str, T], given: Mapping[str, T]) -> dict[str, T]:
    """``given``, and a deck's ``own`` values for other elements."""
    names = {name.lower() for name in given}
    return {**{name: value for name, value in own.items() if name.lower() not in names}, **given}


def setting(
    deck: Deck,
    step: float | None = None,
    stop: float | None = None,
    initial: Mapping[str, float] | None = None,
    elaborated: tuple[Circuit, FollowingSources] | None = None,
) -> DeckSetting:
    """The settings of a deck's ``.tran`` and related cards.

    Parameters
    ----------
    deck, step, stop, initial
        See `circuitsim.time_domain.transient`.
    elaborated : tuple of Circuit and FollowingSources, optional
        The deck's circuit with other values; by default `Deck.all_controlled`.

    Raises
    ------
    UsageError
        Neither a card nor ``stop``.
    """
    card = single(deck, Transient)
    if card is None and stop is None:
        raise UsageError("the deck has no .tran card; add one (.tran 1u 1m), or give --stop (stop= in Python)")
    grid = grid_of(card) if card else Grid((stop or 0.0) / 1000.0, stop or 0.0)
    grid = Grid(step or (grid.step if stop is None else stop / 1000.0), stop or grid.stop)
    circuit, following = found = deck.with_sources() if elaborated is None else elaborated
    if card and card.uic:
        initial = _stated(circuit, following) | dict(initial or {})
    startup = card is not None and card.startup
    waves = _moving(circuit, following, grid, startup=startup)
    if elaborated is not None:
        following.over_time().check_frozen(waves)
    elif (other := deck.unfrozen(found, waves, over_time=True)) is not found:
        circuit, following = other
        waves = _moving(circuit, following, grid, startup=startup)
    switches = abrupt(circuit, following)
    begin = card.start if card and card.start < grid.stop else 0.0
    start = None if initial is None else dict(initial)
    longest = (card and card.longest) or math.inf
    couplings, held = following.couplings, _held(deck)
    return DeckSetting(circuit, grid.stop, begin, grid.step, waves, start, switches, couplings, held, longest)


def steady_setting(
    deck: Deck, period: float | None, initial: Mapping[str, float] | None
) -> tuple[Grid, Mapping[str, float] | None]:
    """Defaults of time functions' parameters, and initial values of the search for a periodic state: with UIC the
    deck's own."""
    cards = deck.of_kind(Transient)
    grid = grid_of(cards[0]) if cards else steady_grid(deck.following.waves.values(), period or 1.0)
    if any(card.uic for card in cards):
        initial = _stated(deck.operating_circuit, deck.following) | dict(initial or {})
    return grid, initial


def stated(
    circuit: Circuit,
    grid: Grid,
    waveforms: Mapping[str, Waveform],
    switches: Mapping[str, Switch],
    couplings: Mapping[tuple[str, str], float],
    straight: bool = True,
) -> tuple[Circuit, dict[str, Waveform], dict[str, Switch], dict[tuple[str, str], float]]:
    """The bare circuit of a deck with its waveforms, switches and couplings, overridden by those given.

    Raises
    ------
    UsageError
        A formula that reads a source with a given waveform.
    """
    following = circuit.dynamics
    following.check_changes(waveforms)
    waves = beside(_moving(circuit, following, grid, straight), waveforms)
    if isinstance(following, FollowingSources):
        following.over_time().check_frozen(waves)
    operated = beside(abrupt(circuit, following), switches)
    return circuit.carrying(None), waves, operated, following.coupled(couplings)


def steady_grid(waves: Iterable[Card], stop: float) -> Grid:
    """Defaults of time functions' parameters without a ``.tran`` card: a thousandth of the shortest period as the
    step."""
    periods = [stop]
    for wave in waves:
        numbers = wave.numbers if isinstance(wave, Card) else ()
        if wave.name == "pulse" and len(numbers) > 6:
            periods.append(numbers[6])
        elif wave.name in ("sin", "am") and len(numbers) > 2 and numbers[2] != 0.0:
            periods.append(1.0 / abs(numbers[2]))
        elif wave.name == "pwl":
            periods.append(numbers[-2])
    return Grid(min(time for time in periods if time > 0.0) / 1000.0, stop)


def _stated(circuit: Circuit, following: FollowingSources) -> dict[str, float]:
    """The initial values of elements (``ic=``)."""
    return {circuit.names[k]: value for k, value in following.initials.items()}


def _moving(
    circuit: Circuit, following: FollowingSources, grid: Grid, straight: bool = True, startup: bool = False
) -> dict[str, Waveform]:
    """Waveforms of sources; ``straight``: formulas become piecewise linear up to the end of the run where they are;
    ``startup``: those without time functions ramp up.

    Raises
    ------
    UsageError, NetlistError
        Formulas without a value at time 0.
    """
    names, following = circuit.names, _turned_on(circuit, following) if startup else following
    waves: dict[int, Waveform] = {
        k: from_card(names[k], wave, grid) if isinstance(wave, Card) else wave for k, wave in following.waves.items()
    }
    for k, wave in waves.items():
        if following.formulas:
            check_cycles(names[k], wave, grid.stop, MOST_SAMPLES)
    sources = following.over_time() if isinstance(following, FollowingSources) else None
    formulas: dict[int, Waveform] = {}
    if sources is not None:
        for k in sorted(sources.fixed):
            formula = FormulaOfTime(names[k], sources, k, grid, waves)
            formulas[k] = (straight and formula.straight()) or formula
        for k in chain(*sources.in_order()):
            formulas[k] = FormulaOfSolution(names[k], sources, k, grid, waves)
    return {names[k]: wave for k, wave in (waves | formulas).items()}


def _turned_on(circuit: Circuit, following: FollowingSources) -> FollowingSources:
    """The sources with those without time functions ramped up as by LTspice's ``startup``."""
    code, _, _, values = circuit.columns()
    found = following.of(circuit)
    sources = {k for k in range(len(circuit)) if code[k] in (VOLTAGE, CURRENT)} - {*circuit.laws, *following.formulas}
    found.waves = {k: Card("pwl", (0.0, 0.0, STARTUP, values[k])) for k in sources} | following.waves
    return found


def abrupt(circuit: Circuit, following: FollowingSources) -> dict[str, Switch]:
    """Switches by name; a negative hysteresis (in LTspice a gradual change of resistance) is taken as zero."""
    return {
        name: switch._replace(hysteresis=max(switch.hysteresis, 0.0))
        for name, switch in switches_of(circuit, following).items()
    }


def _held(deck: Deck) -> dict[str, float]:
    """Values held by the deck's ``.ic`` cards."""
    found: dict[str, float] = {}
    for card in deck.of_kind(InitialValues):
        found |= {**card.voltages, **card.currents}
    return found


def from_card(name: str, card: Card, grid: Grid) -> Waveform:
    """The time function of a source, with ngspice's defaults.

    Raises
    ------
    UsageError
        Invalid parameters.
    """
    try:
        return card.over(grid)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
