"""`Deck`: a netlist after reading and elaboration."""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR
from circuitsim.errors import DeckWarning, Location, NetlistError, Problem, TopologyError, UsageError, some
from circuitsim.netlist import limits
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.functions import Deviations, Grid, Waveform
from circuitsim.units import exact

Followed = tuple[Circuit, FollowingSources]
Elaborate = Callable[[Mapping[str, float], float | None, bool], Followed]


class Range(NamedTuple):
    """Values that ``.dc`` or ``.step`` gives to an element, a parameter, the temperature, or several names together (a
    model's elements, the columns of a ``.data`` table).

    Attributes
    ----------
    name : str
        The element, the parameter of the deck, ``model:parameter``, ``temp``, or the table.
    vary : str or tuple of str
        The name or names for `circuitsim.sweep`.
    values : sequence
        The values, for several names as tuples; the stop is included if a step lands on it, within rounding.
    steps : tuple of float
        Start, stop and step as written; empty for a list, decades and octaves, and a table.
    """

    name: str
    vary: str | tuple[str, ...]
    values: Sequence[Any]
    steps: tuple[float, ...] = ()


class OperatingPointRequest(NamedTuple):
    """``.op``."""

    location: Location
    card: str = "op"


class DcSweep(NamedTuple):
    """``.dc``: one range or several; the first runs fastest, as in SPICE."""

    sweeps: tuple[Range, ...]
    location: Location
    card: str = "dc"


class Step(NamedTuple):
    """``.step``: an outer loop around ``.dc`` and ``.tran``."""

    sweep: Range
    location: Location
    card: str = "step"


class Transient(NamedTuple):
    """``.tran``: output times from ``start`` to ``stop`` every ``step`` s (0: unspecified).

    ``uic`` starts from the initial values of elements, not the operating point; ``startup`` (LTspice) ramps constant
    sources up from 0 within `STARTUP` s; ``longest`` is the maximum step of the implicit method, s (0: unspecified).
    """

    step: float
    stop: float
    start: float
    location: Location
    uic: bool = False
    startup: bool = False
    longest: float = 0.0
    card: str = "tran"


STARTUP = 20e-6
"""Time, s, in which LTspice's ``startup`` turns sources on."""


class Spacing(Enum):
    """How the frequencies of ``.ac`` follow each other."""

    LINEAR = "lin"
    DECADE = "dec"
    OCTAVE = "oct"
    LIST = "list"


class SmallSignal(NamedTuple):
    """``.ac``: a small-signal analysis.

    Attributes
    ----------
    spacing : Spacing
    points : int
        Per decade, per octave, or in total.
    frequencies : tuple of float
        The first and the last, or all of a list, Hz.
    location : Location
    """

    spacing: Spacing
    points: int
    frequencies: tuple[float, ...]
    location: Location
    card: str = "ac"


class Temperature(NamedTuple):
    """``.temp``, °C: the temperature of the deck; several values are a sweep, the first is for the operating point."""

    values: tuple[float, ...]
    location: Location
    card: str = "temp"


class Output(NamedTuple):
    """``.print``, ``.plot``, ``.probe`` or ``.save``.

    Attributes
    ----------
    card : str
        Its name without the dot.
    analysis : str
        The analysis it is for, in lower case: ``dc``, ``tran`` …; empty for all.
    requests : tuple of str
        Quantities, as written.
    location : Location
    """

    card: str
    analysis: str
    requests: tuple[str, ...]
    location: Location


class TransferRequest(NamedTuple):
    """``.tf``: output and input source, as written."""

    output: str
    source: str
    location: Location
    card: str = "tf"


class SensitivityRequest(NamedTuple):
    """``.sens``: quantities, as written."""

    outputs: tuple[str, ...]
    location: Location
    card: str = "sens"


class MeasurementRequest(NamedTuple):
    """``.meas tran``, ``ac`` or ``dc``: its text from the name on, as written, and the analysis."""

    text: str
    location: Location
    analysis: str = "tran"
    card: str = "meas"


class FourierCard(NamedTuple):
    """``.four``: its text from the frequency on, as written."""

    text: str
    location: Location
    card: str = "four"


class InitialValues(NamedTuple):
    """``.ic v(a)=1 i(L1)=2``: node voltages, V, and inductor currents, A, at the start of ``.tran``."""

    voltages: dict[str, float]
    currents: dict[str, float]
    location: Location
    card: str = "ic"


Analysis = (
    OperatingPointRequest
    | DcSweep
    | Step
    | Transient
    | SmallSignal
    | Temperature
    | Output
    | TransferRequest
    | SensitivityRequest
    | MeasurementRequest
    | FourierCard
    | InitialValues
)


Card = TypeVar("Card")


class Directive(NamedTuple):
    """A directive: a comment line ``*! …`` with its text."""

    text: str
    location: Location


class Deck(Circuit):
    """A netlist as read: a circuit together with everything else that its file states.

    As a circuit it uses the parameters as written. Sources given by affine formulas are controlled sources; time
    functions, switches and couplings take part in transient and AC analysis. Analyses take their settings from the
    deck's own cards.

    Attributes
    ----------
    operating_circuit : Circuit
        The circuit of the operating point: sources by formulas of independent sources have fixed values.
    problems : tuple of Problem
        Warnings, in the order of the deck.
    notes : tuple of Problem
        The warnings, and notes on statements without effect.
    analyses : tuple of Analysis
        The analyses of the deck, in its order.
    directives : tuple of Directive
        Its ``*!`` comments.
    parameters : dict of str to float
        The deck's own parameters (not those of sub-circuits), as written, with their values.
    temperature : float
        Circuit temperature, °C.
    following : FollowingSources
        The sources of ``operating_circuit`` whose values follow time or other sources.
    deviations : Deviations
        How the values of ``operating_circuit`` deviate by the deck's tolerances and random functions.
    """

    def __init__(
        self,
        circuit: Circuit,
        problems: tuple[Problem, ...],
        notes: tuple[Problem, ...],
        analyses: tuple[Analysis, ...],
        directives: tuple[Directive, ...],
        parameters: dict[str, float],
        elaborate: Elaborate,
        following: FollowingSources,
        temperature: float,
        deviations: Deviations,
    ) -> None:
        self._bare, self.following = circuit, following
        self._elaborate: Any = elaborate
        self.operating_circuit = circuit.carrying(following)
        whole, moving = self.with_sources()
        self._share(whole.carrying(moving))
        self.problems, self.notes = problems, (*problems, *notes)
        self.analyses, self.directives, self.parameters = analyses, directives, parameters
        self.temperature, self.deviations = temperature, deviations
        self._told: set[str] = set()

    def carrying(self, dynamics: Any) -> Circuit:
        """The circuit alone, with its data for transient and AC analysis; without them if ``dynamics`` is None."""
        return self.circuit.carrying(dynamics)

    def _keep_to_itself(self) -> NoReturn:
        raise TopologyError("a deck is immutable: add elements to deck.circuit, a copy, or to the netlist")

    def warn(self, problem: Problem) -> None:
        """Warn, once per kind, that an analysis ignores something, and add the warning to ``notes``."""
        if problem.kind not in self._told:
            self._told.add(problem.kind)
            self.notes = (*self.notes, problem)
            warnings.warn(DeckWarning([problem]), stacklevel=5)

    @property
    def circuit(self) -> Circuit:
        """A copy of the circuit alone, with its time functions, switches and couplings; elements can be added."""
        return self._sharing()

    def elaborate(self, parameters: Mapping[str, float] | None = None, temperature: float | None = None) -> Circuit:
        """The circuit for other parameter values; the text is not read again.

        Parameters
        ----------
        parameters : dict of str to float, optional
            New values by name.
        temperature : float, optional
            °C; by default the deck's own.

        Raises
        ------
        UsageError
            Unknown parameter, non-finite value, or temperature below absolute zero.
        NetlistError
            An element's value is out of range with these parameters.
        """
        circuit, following = self.with_sources(parameters, temperature)
        return circuit.carrying(following)

    def of_kind(self, kind: type[Card]) -> list[Card]:
        """Its analyses of one kind, in its order.

        Parameters
        ----------
        kind : type

        Returns
        -------
        list
        """
        return [analysis for analysis in self.analyses if isinstance(analysis, kind)]

    def cards(self) -> list[str]:
        """The words of its analysis cards (``tran``, ``meas`` …), each once, in the order of the deck."""
        return list(dict.fromkeys(analysis.card for analysis in self.analyses))

    def has_parameter(self, name: str) -> bool:
        """Whether the deck, or the model of a resistor, capacitor or inductor, has this parameter.

        Parameters
        ----------
        name : str
            ``r``, or ``RMOD:r`` for a model's.

        Returns
        -------
        bool
        """
        return bool(self._elaborate.has(name))

    def idle_parameters(self) -> dict[str, str]:
        """Diode model parameters besides the I–V curve (CJO, TT), as in a ``.model`` card, by lower-case model name.

        Raises
        ------
        UsageError
            Models of one name in different sub-circuits differ, or a value is not a number.
        """
        found: dict[str, str] = self._elaborate.idle()
        return found

    def with_sources(
        self,
        parameters: Mapping[str, float] | None = None,
        temperature: float | None = None,
        all_controlled: bool = True,
    ) -> Followed:
        """As `elaborate`, with the sources whose values follow time or other sources.

        Parameters
        ----------
        parameters, temperature
            See `elaborate`.
        all_controlled : bool
            Keep affine formulas as controlled sources even if sources fix their controls, for analyses in which these
            vary. Formulas that are not affine stay in the sources' ``formulas``.
        """
        if not (parameters or temperature is not None or (all_controlled and self.following.formulas)):
            return self._bare, self.following
        found: Followed = self._elaborate(parameters or {}, temperature, all_controlled)
        return found

    def unfrozen(
        self,
        found: Followed,
        names: Collection[str] | None,
        parameters: Mapping[str, float] | None = None,
        temperature: float | None = None,
        all_controlled: bool = True,
        over_time: bool = False,
    ) -> Followed:
        """What `with_sources` found, or the same with factors and conditions of controlled sources that follow the
        values of elements ``names`` (None: all).

        Parameters
        ----------
        found : (Circuit, FollowingSources)
        names : collection of str or None
        parameters, temperature, all_controlled
            Those of `with_sources`.
        over_time : bool
            Whether inductors are not shorts.

        Raises
        ------
        UsageError
            Such a source influences what it reads.
        """
        following = found[1].over_time() if over_time else found[1]
        try:
            following.check_frozen(names)
        except UsageError:
            with suppress(NetlistError):
                other: Followed = self._elaborate(parameters or {}, temperature, all_controlled, False)
                return other
            raise
        return found

    def where_change(self, names: Collection[str] | None, followed: bool = False) -> Followed:
        """The circuit for an analysis that changes element values: sources by formulas of these are controlled sources.

        Parameters
        ----------
        names : collection of str or None
            The elements; None for all, as in AC analysis, where inductors are not shorts.
        followed : bool
            Whether the caller evaluates other formulas anew, or takes their derivatives.

        Raises
        ------
        UsageError
            A non-affine formula reads one of them, and is not followed.
        """
        if not self.following.followers(names):
            return self._bare, self.following
        circuit, following = self.with_sources()
        if followed:
            return self.unfrozen((circuit, following), names)
        following.check_frozen(names)
        if left := following.followers(names):
            raise following.not_followed(left[0])
        return circuit, following

    def __repr__(self) -> str:
        cards = ", ".join(f".{card}" for card in self.cards())
        return f"{super().__repr__()[:-1]}{'; ' * bool(cards)}{cards})"


def warn_of_time(source: object) -> None:
    """Warn, once per deck, of time functions that an operating point ignores."""
    if isinstance(source, Deck) and source.following.waves:
        names = [source.operating_circuit.names[k] for k in source.following.waves]
        message = f"the operating point uses the DC values of {some(names)}, which vary over time"
        source.warn(Problem("time", message, hint="circuitsim.transient runs a transient analysis", names=names[:20]))


def warn_of_switches(circuit: Circuit) -> None:
    """Warn, once per deck, of switches that an analysis keeps in the states on their cards."""
    if circuit.dynamics is None or not circuit.dynamics.switches:
        return
    names = [circuit.names[k] for k in circuit.dynamics.switches]
    message = f"{some(names)}: switches keep the states on their cards here"
    problem = Problem("switch", message, hint="circuitsim.solve finds their states", names=names[:20])
    if isinstance(circuit, Deck):
        circuit.warn(problem)
    else:
        warnings.warn(DeckWarning([problem]), stacklevel=4)


EXACT = 22
"""Largest exponent of a power of ten that is exact in a double."""


def equidistant(start: float, stop: float, step: float, count: int) -> array[float]:
    """``count`` values from ``start`` on, the last one ``stop`` if a step lands on it."""
    import numpy as np

    digits = 14 - math.floor(math.log10(max(abs(start), abs(stop))))
    # Rounded to 15 digits of the larger end: 3 × 0.1 is 0.3, and −0.9 + 9 × 0.1 is 0. In quarters, which are exact, to
    # avoid overflow in a sweep over the whole range of doubles.
    rounded = np.round if abs(digits) <= EXACT else np.vectorize(round)
    values = rounded(4 * (start / 4 + np.arange(count) * (step / 4)), digits) + 0.0
    values[0] = start
    if abs(values[-1] - stop) <= 1e-9 * abs(step):
        values[-1] = stop
    return array("d", values.tobytes())


def points(start: float, stop: float, step: float) -> array[float]:
    """``start``, ``start + step`` … up to ``stop``, which is included if a step lands on it, within rounding.

    Raises
    ------
    ValueError
        A step of zero or of the wrong sign, or too many points; the message names the cause.
    """
    if step == 0:
        raise ValueError("the step is zero")
    if start == stop:
        return array("d", [start])
    steps = stop / step - start / step  # the difference stop − start may overflow
    if steps < 0:
        raise ValueError(f"a step of {exact(step)} never leads from {exact(start)} to {exact(stop)}")
    if not steps < limits.SWEEP_POINTS:
        raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    return equidistant(start, stop, step, math.floor(steps + 1e-9) + 1)


def logarithmic(start: float, stop: float, per_interval: float, factor: float) -> array[float]:
    """``start``, and ``per_interval`` points in each ``factor`` (10: decade, 2: octave) up to ``stop``.

    Raises
    ------
    ValueError
        A bound of zero, bounds of different sign, fewer than one point per interval, or too many points.
    """
    if per_interval < 1 or per_interval != math.floor(per_interval):
        raise ValueError(f"the number of points must be 1, 2, 3 …, not {exact(per_interval)}")
    if start == 0 or stop / start <= 0:
        raise ValueError("both bounds must be nonzero and of the same sign")
    ratio = math.log(stop / start, factor)
    found = points(0.0, ratio, math.copysign(1.0 / per_interval, ratio))
    found = array("d", [float(f"{start * factor**exponent:.15g}") for exponent in found])
    found[0] = start
    if abs(found[-1] - stop) <= 1e-9 * abs(stop):
        found[-1] = stop
    return found


DEFAULT_POINTS = 200
"""Number of output times of a ``.tran`` card without a step."""
MOST_POINTS = 100_000
"""Maximum number of output times of one that states only the longest step, as in LTspice."""


class OutputTimes(tuple[float, ...]):
    """Increasing times, s, with the step and stop time for defaults of time functions."""

    grid: Grid


def memory(circuit: Circuit) -> list[str]:
    """The first of the energy-storing elements; without any, the operating points at different times are
    independent."""
    return [name for name, code in zip(circuit.names, circuit.columns()[0]) if code in (CAPACITOR, INDUCTOR)][:1]


def grid_of(card: Transient) -> Grid:
    """Step and stop time of a ``.tran`` card; a step of zero becomes the longest step, or a fraction of the range."""
    span = card.stop - card.start
    return Grid(card.step or max(card.longest or span / DEFAULT_POINTS, span / MOST_POINTS), card.stop)


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
    """Breakpoints within the times of ``card``; none for invalid numbers, which are reported when solving."""
    try:
        return wave.over(grid).breakpoints(card.start, card.stop, limits.SWEEP_POINTS).tolist()
    except (ValueError, UsageError):
        return []


Vary = Mapping[str | tuple[str, ...], Sequence[Any]]
PARAMETER = "param:"
"""Prefix of a swept name for a parameter of the deck that has the name of an element."""
TEMPERATURE = "temp"
"""Swept name of a deck's temperature (°C), unless a parameter or element has this name."""
TIME = "time"
"""Swept name of the time (s) at which the sources of a deck are evaluated, likewise."""
STEADY, OVER_TIME = ("", "dc", "op"), ("", "tran")
"""Analyses that output cards may name."""


def ranges_of(deck: Deck) -> Vary:
    """The ranges of the deck's ``.dc`` card, or its ``.tran`` card, and its ``.step`` cards.

    Raises
    ------
    UsageError
        None of them, or several of one kind.
    """
    dc, tran = single(deck, DcSweep, VARY), single(deck, Transient, VARY)
    asked: dict[Any, Sequence[Any]] = {one.vary: one.values for one in (dc.sweeps if dc else ())}
    if tran and not dc:
        asked[TIME] = output_times(tran, deck.following.waves.values())
    steps = steps_of(deck)
    if not asked and not steps:
        raise UsageError(
            "the deck has no .dc, no .tran, no .step and no .temp list; give --vary, for instance --vary V1=0:5:0.1"
        )
    return {**asked, **steps}


def analyses_of(deck: Deck) -> list[str]:
    """The analyses requested by a deck's cards, in order, by the words of their cards; ``op`` if there are none.

    ``.step`` and a ``.temp`` of several values belong to ``.dc``, ``.tran`` and ``.ac``; alone they are a ``dc`` sweep.
    """
    words = [word for word in deck.cards() if word in ("op", "dc", "tran", "ac", "tf", "sens")]
    if steps_of(deck) and not {"dc", "tran", "ac"} & set(words):
        words.append("dc")
    return words or ["op"]


def steps_of(deck: Deck) -> Vary:
    """The ranges of the deck's ``.step`` cards, and of a ``.temp`` card with several values."""
    steps: dict[Any, Sequence[Any]] = {a.sweep.vary: a.sweep.values for a in deck.of_kind(Step)}
    steps |= [(TEMPERATURE, a.values) for a in deck.of_kind(Temperature) if len(a.values) > 1]
    return steps


VARY = ", or give --vary"
"""What else to do where a deck has several cards of a kind."""


def single(source: Circuit, kind: type[Card], instead: str = "") -> Card | None:
    """The card of a kind of a deck, if there is one; ``instead`` is what else to do where there are several.

    Raises
    ------
    UsageError
        There are several.
    """
    found = source.of_kind(kind) if isinstance(source, Deck) else []
    if len(found) > 1:
        cards: list[Any] = [*found]
        lines = " and ".join(str(card.location.line) for card in cards)
        raise UsageError(f"the deck has {len(found)} .{cards[0].card} cards (lines {lines}); keep one{instead}")
    return next(iter(found), None)


def columns_of(deck: Deck, kinds: tuple[str, ...]) -> str | None:
    """The columns that ``.print``, ``.plot`` and ``.save`` name for analyses of these kinds; None for all."""
    cards = [card for card in deck.of_kind(Output) if card.requests]
    words = [word for card in cards if card.analysis in kinds for word in card.requests]
    return None if any(word.lower() in ("all", "allv", "alli") for word in words) else " ".join(words) or None


def measurements_of(deck: Deck, analysis: str) -> list[str]:
    """The deck's ``.meas`` cards of an analysis (``tran``, ``ac``, ``dc``), from their names on."""
    return [card.text for card in deck.of_kind(MeasurementRequest) if card.analysis == analysis]


def lowered(deck: Deck) -> dict[str, float]:
    """Values of the deck's parameters by their names in lower case."""
    return {name.lower(): value for name, value in deck.parameters.items()}


def outputs_of(deck: Deck) -> str:
    """The quantities that ``.sens`` cards name."""
    return " ".join(word for card in deck.of_kind(SensitivityRequest) for word in card.outputs)


def transfers_of(deck: Deck) -> list[tuple[str, str]]:
    """The outputs and sources that ``.tf`` cards name."""
    return [(card.output, card.source) for card in deck.of_kind(TransferRequest)]
