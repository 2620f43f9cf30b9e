"""`Deck`: a netlist after reading and elaboration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from circuitsim.circuit import Circuit
from circuitsim.errors import DeckWarning, Location, Problem, TopologyError, UsageError
from circuitsim.netlist.deviations import Deviations

if TYPE_CHECKING:
    from circuitsim.netlist.functional import FollowingSources

    Elaborate = Callable[[Mapping[str, float], float | None, bool], tuple[Circuit, FollowingSources]]


class Target(Enum):
    """What a range varies."""

    ELEMENT = "element"
    PARAMETER = "parameter"
    TEMPERATURE = "temperature"


class DcRange(NamedTuple):
    """Values that one source, element or parameter runs through.

    Attributes
    ----------
    name : str
        The element, the parameter of the deck, ``model:parameter``, or ``temp``.
    start, stop, step : float
        As written; the step is 0 for a list, decades and octaves.
    values : sequence of float
        The values themselves, the stop included where a step ends on it.
    location : Location
    target : Target
    elements : tuple of str
        The names that take the values together; empty for the one called ``name``.
    """

    name: str
    start: float
    stop: float
    step: float
    values: Sequence[float]
    location: Location
    target: Target = Target.ELEMENT
    elements: tuple[str, ...] = ()


class TableRange(NamedTuple):
    """A table (``.data``): several names that take the values of its rows together.

    Attributes
    ----------
    name : str
        The table.
    ranges : tuple of DcRange
        One a column, all of one length.
    location : Location
    """

    name: str
    ranges: tuple[DcRange, ...]
    location: Location


class OperatingPointRequest(NamedTuple):
    """``.op``."""

    location: Location


class DcSweep(NamedTuple):
    """``.dc``: one range or several; the first runs fastest, as in SPICE."""

    sweeps: tuple[DcRange | TableRange, ...]
    location: Location


class Step(NamedTuple):
    """``.step``: an outer loop around ``.dc`` and ``.tran``."""

    sweep: DcRange | TableRange
    location: Location


class Transient(NamedTuple):
    """``.tran``: output times from ``start`` to ``stop``, ``step`` apart (s); 0 where the card leaves it open; ``uic``
    begins at the initial values of the elements instead of the operating point, ``startup`` (LTspice) without constant
    sources, which rise within `STARTUP` s; ``longest``: step of the implicit method, s, 0 where it is left open."""

    step: float
    stop: float
    start: float
    location: Location
    uic: bool = False
    startup: bool = False
    longest: float = 0.0


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
        A decade, an octave, or in all.
    frequencies : tuple of float
        The first and the last, or all of a list, Hz.
    location : Location
    """

    spacing: Spacing
    points: int
    frequencies: tuple[float, ...]
    location: Location


class Temperature(NamedTuple):
    """``.temp``, °C: the temperature of the deck; several values are a sweep, the first is the operating point's."""

    values: tuple[float, ...]
    location: Location


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


class SensitivityRequest(NamedTuple):
    """``.sens``: quantities, as written."""

    outputs: tuple[str, ...]
    location: Location


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
    """``.ic v(a)=1 i(L1)=2``: potentials of nodes, V, and currents of inductors, A, at the beginning of ``.tran``."""

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


CARDS: dict[type, str] = {
    OperatingPointRequest: "op",
    DcSweep: "dc",
    Step: "step",
    Transient: "tran",
    SmallSignal: "ac",
    Temperature: "temp",
    TransferRequest: "tf",
    SensitivityRequest: "sens",
}
"""Kinds of analyses that have one card each."""


class Directive(NamedTuple):
    """A comment line ``*! …``: a comment of the language, with its text."""

    text: str
    location: Location


class Deck(Circuit):
    """A netlist as it was read: a circuit, and everything else that its file says.

    As a circuit it has the parameters as written. Sources by affine formulas are controlled sources, which follow what
    they read; time functions, switches and couplings take part in analyses over time and frequency. Analyses take what
    they need from the deck's own cards.

    Attributes
    ----------
    operating_circuit : Circuit
        The circuit of the operating point: sources by formulas of what independent sources fix have the values of their
        formulas.
    problems : tuple of Problem
        Warnings, in the order of the deck.
    notes : tuple of Problem
        The warnings, and what was accepted and has no effect.
    analyses : tuple of Analysis
        The analyses of the deck, in its order.
    directives : tuple of Directive
        Its ``*!`` comments.
    parameters : dict of str to float
        The deck's own parameters (not those of sub-circuits), as written, with their values.
    temperature : float
        Of the circuit, °C.
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
        temperature: float = 27.0,
        deviations: Deviations | None = None,
    ) -> None:
        self._bare, self.following = circuit, following
        self._elaborate: Any = elaborate
        self.operating_circuit = circuit.carrying(following)
        whole, moving = self.all_controlled()
        self._share(whole.carrying(moving))
        self.problems, self.notes = problems, (*problems, *notes)
        self.analyses, self.directives, self.parameters = analyses, directives, parameters
        self.temperature = temperature
        self.deviations = Deviations() if deviations is None else deviations
        self._told: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        notes = self.notes[len(self.problems) :]
        parts = (self._bare, self.problems, notes, self.analyses, self.directives, self.parameters)
        return Deck, (*parts, self._elaborate, self.following, self.temperature, self.deviations)

    def carrying(self, dynamics: Any) -> Circuit:
        """The circuit alone with what is stated for analyses over time and frequency; None: without it."""
        return self.circuit.carrying(dynamics)

    def _keep_to_itself(self) -> NoReturn:
        raise TopologyError("a deck does not change: add elements to deck.circuit, a copy, or to the netlist")

    def warn(self, problem: Problem) -> None:
        """Warn of something that an analysis does not use, once a kind; it is in ``notes`` from then on."""
        if problem.kind not in self._told:
            self._told.add(problem.kind)
            self.notes = (*self.notes, problem)
            warnings.warn(DeckWarning([problem]), stacklevel=4)

    @property
    def circuit(self) -> Circuit:
        """The circuit alone, with its time functions, switches and couplings; it may grow."""
        return self._sharing()

    def elaborate(self, parameters: Mapping[str, float] | None = None, temperature: float | None = None) -> Circuit:
        """The circuit with other values for some of the deck's parameters; the text is not read again.

        Parameters
        ----------
        parameters : dict of str to float, optional
            Other values by name.
        temperature : float, optional
            °C; the deck's own if it is not given.

        Raises
        ------
        UsageError
            No such parameter, a value that is not finite, a temperature below absolute zero.
        NetlistError
            An element's value is out of range with these parameters.
        """
        circuit, following = self.all_controlled(parameters, temperature)
        return circuit.carrying(following)

    def cards(self) -> list[str]:
        """The words of its analysis cards (``tran``, ``meas`` …), each once, in the order of the deck."""
        words = (CARDS.get(type(analysis)) or analysis.card for analysis in self.analyses)  # type: ignore[union-attr]
        return list(dict.fromkeys(words))

    def has_parameter(self, name: str) -> bool:
        """Whether a parameter of the deck, or of the model of a resistor, capacitor or inductor, is called so.

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
        """What the deck's models of diodes state beside their law (CJO, TT), as in a ``.model`` card, by the models'
        names in lower case.

        Raises
        ------
        UsageError
            Two models of one name in different sub-circuits state different things, or one that is no number.
        """
        found: dict[str, str] = self._elaborate.idle()
        return found

    def elaborate_with_sources(
        self, parameters: Mapping[str, float] | None = None, temperature: float | None = None
    ) -> tuple[Circuit, FollowingSources]:
        """As `elaborate`, with the sources whose values follow time or other sources.

        Parameters
        ----------
        parameters, temperature
            See `elaborate`.
        """
        if not parameters and temperature is None:
            return self._bare, self.following
        found: tuple[Circuit, FollowingSources] = self._elaborate(parameters or {}, temperature, False)
        return found

    def all_controlled(
        self, parameters: Mapping[str, float] | None = None, temperature: float | None = None
    ) -> tuple[Circuit, FollowingSources]:
        """The circuit with affine formulas as controlled sources, also where sources fix their controls: for analyses
        in which these move. Formulas that are not affine stay in the sources' ``formulas``.

        Parameters
        ----------
        parameters, temperature
            See `elaborate`.
        """
        if not (self.following.formulas or parameters or temperature is not None):
            return self._bare, self.following
        found: tuple[Circuit, FollowingSources] = self._elaborate(parameters or {}, temperature, True)
        return found

    def where_change(self, names: Collection[str] | None) -> tuple[Circuit, FollowingSources]:
        """The circuit for an analysis that changes the values of elements: sources by a formula that read these are
        controlled sources.

        Parameters
        ----------
        names : collection of str or None
            The elements; None: all, at frequencies, where inductors are no shorts.

        Raises
        ------
        UsageError
            A formula that is not affine and reads one of them.
        """
        if not (self.following.over_time() if names is None else self.following).followers(names):
            return self._bare, self.following
        circuit, following = self.all_controlled()
        at = following.over_time() if names is None else following
        at.check_frozen(names)
        left = at.followers(names)
        if left:
            raise UsageError(
                f"{circuit.names[left[0]]} is a formula that is not affine in what voltage and current sources fix: it "
                "would not follow their changes here; circuitsim sweep gives it a new value at each point"
            )
        return circuit, following

    def __repr__(self) -> str:
        cards = ", ".join(f".{card}" for card in self.cards())
        return f"{super().__repr__()[:-1]}{'; ' * bool(cards)}{cards})"


def warn_of_time(source: object) -> None:
    """Warn, once a deck, of time functions that an operating point does not use."""
    if isinstance(source, Deck) and source.following.waves:
        names = [source.operating_circuit.names[k] for k in source.following.waves]
        message = f"an operating point takes the DC values of {_listed(names)}, which vary over time"
        source.warn(Problem("time", message, hint="circuitsim.transient runs the deck over time", names=names[:20]))


def warn_of_switches(circuit: Circuit) -> None:
    """Warn, of a deck once, of switches that an analysis leaves in the states of their cards."""
    if circuit.dynamics is None or not circuit.dynamics.switches:
        return
    names = [circuit.names[k] for k in circuit.dynamics.switches]
    message = f"{_listed(names)}: switches keep the states of their cards here"
    problem = Problem("switch", message, hint="circuitsim.solve finds their states", names=names[:20])
    if isinstance(circuit, Deck):
        circuit.warn(problem)
    else:
        warnings.warn(DeckWarning([problem]), stacklevel=3)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + ", …" * (len(names) > 8)
