"""`Deck`: a netlist after reading and elaboration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.errors import Location, Problem

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit


TEMPERATURE = "temp"
"""Name of what ``.dc temp`` and ``.step temp`` vary."""


class DcRange(NamedTuple):
    """Values that one source or parameter runs through.

    Attributes
    ----------
    name : str
        The element or the parameter.
    start, stop, step : float
        As written; for a list the first, the last and 0.
    values : sequence of float
        The values themselves, the stop included where a step ends on it.
    location : Location
    """

    name: str
    start: float
    stop: float
    step: float
    values: Sequence[float]
    location: Location


class OperatingPointRequest(NamedTuple):
    """``.op``."""

    location: Location


class DcSweep(NamedTuple):
    """``.dc``: one source, or two; the first runs fastest, as in SPICE."""

    sweeps: tuple[DcRange, ...]
    location: Location


class ParameterStep(NamedTuple):
    """``.step param``."""

    sweep: DcRange
    location: Location


class TemperatureStep(NamedTuple):
    """``.step temp``, °C."""

    sweep: DcRange
    location: Location


class Temperature(NamedTuple):
    """``.temp``, °C: the temperature of the deck; several values are a sweep, the first is the operating point's."""

    values: tuple[float, ...]
    location: Location


class Output(NamedTuple):
    """``.print`` or ``.save``: the words behind it, as written."""

    card: str
    requests: tuple[str, ...]
    location: Location


Analysis = OperatingPointRequest | DcSweep | ParameterStep | TemperatureStep | Temperature | Output


class Directive(NamedTuple):
    """A comment line ``*! …``: a comment of the language, with its text."""

    text: str
    location: Location


class Deck:
    """A deck that was read without an error.

    Attributes
    ----------
    title : str
        Its first line.
    circuit : Circuit
        Elaborated with the parameters as written.
    problems : tuple of Problem
        Warnings, in the order of the deck.
    notes : tuple of Problem
        What was accepted and has no effect.
    analyses : tuple of Analysis
        The analyses of the deck, in its order.
    directives : tuple of Directive
        Its ``*!`` comments.
    parameters : dict of str to float
        The deck's own parameters (not those of sub-circuits), as written, with their values.
    temperature : float
        Of the circuit, °C.
    """

    __slots__ = (
        "_elaborate", "analyses", "circuit", "directives", "notes", "parameters", "problems", "temperature", "title",
    )  # fmt: skip

    circuit: Circuit
    title: str
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    analyses: tuple[Analysis, ...]
    directives: tuple[Directive, ...]
    parameters: dict[str, float]
    temperature: float

    def __init__(
        self, circuit: Circuit, problems: tuple[Problem, ...], notes: tuple[Problem, ...],
        analyses: tuple[Analysis, ...], directives: tuple[Directive, ...], parameters: dict[str, float],
        elaborate: Callable[[Mapping[str, float], float | None], Circuit], temperature: float = 27.0,
    ) -> None:  # fmt: skip
        set_ = object.__setattr__
        set_(self, "title", circuit.title)
        set_(self, "circuit", circuit)
        set_(self, "problems", problems)
        set_(self, "notes", notes)
        set_(self, "analyses", analyses)
        set_(self, "directives", directives)
        set_(self, "parameters", parameters)
        set_(self, "temperature", temperature)
        set_(self, "_elaborate", elaborate)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Deck does not change; {name} was set when it was read")

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
        elaborate: Callable[[Mapping[str, float], float | None], Circuit] = self._elaborate  # type: ignore[attr-defined]
        return elaborate(parameters or {}, temperature)

    def __repr__(self) -> str:
        return f"Deck({self.circuit!r}, {len(self.analyses)} analyses)"
