"""The one error tree. Every error names what is wrong, where, and what to do next.

``exit_code`` is what the command line returns for the error: 2 for bad usage or a bad netlist, 3 where no steady
state exists or none was reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

V = TypeVar("V")


class CircuitError(Exception):
    """Base of every error circuitsim raises on purpose.

    Attributes
    ----------
    partial_result : object or None
        The certified `circuitsim.time_domain.TransientResult` of a transient analysis up to this error; None for all
        other errors.
    """

    exit_code = 2
    partial_result: object = None


class UsageError(CircuitError):
    """A wrong argument, option or file name."""


class RuleError(UsageError):
    """A learning rule that a block or a loss does not support."""


class NoEnergyError(UsageError):
    """A method that needs an energy function, applied to a circuit without one."""


class TopologyError(CircuitError, ValueError):
    """A circuit that cannot be built: unknown or repeated names, values out of range."""


class ArgumentError(UsageError, TopologyError):
    """An argument of a function that is of a wrong type or out of range; the message names it."""


class AmplifierError(TopologyError):
    """Amplifiers whose gains contradict each other around a loop.

    Attributes
    ----------
    element : int
        Position of the element that closes the loop.
    names : tuple of str
        The loop, that element first.
    """

    def __init__(self, message: str, element: int, names: Iterable[str]) -> None:
        super().__init__(message)
        self.element = element
        self.names = tuple(names)


class DownloadError(CircuitError):
    """A data set that could not be downloaded completely."""

    exit_code = 3


class WorkerError(CircuitError):
    """A worker process or machine was killed."""

    exit_code = 3


class Location(NamedTuple):
    """A place in a deck: file, true physical line (from 1), column (from 1), and the line's text for the caret.

    ``callers`` holds the chain of ``.include`` lines and sub-circuit calls that led here, innermost first.
    """

    file: str
    line: int
    column: int = 1
    text: str = ""
    callers: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Location({self})"


class Problem:
    """One thing wrong (or worth a warning) in a deck.

    Attributes
    ----------
    kind : str
        Short category, e.g. ``"syntax"``, ``"number"``, ``"unknown-card"``; tests pin it.
    message : str
        One sentence, naming the element or card.
    location : Location or None
        Its place; None for a problem of the whole circuit.
    hint : str
        The suggested next step; may be empty.
    names : tuple of str
        Names of the elements and nodes concerned, as first written.
    """

    __slots__ = ("hint", "kind", "location", "message", "names")

    def __init__(
        self, kind: str, message: str, location: Location | None = None, hint: str = "", names: Iterable[str] = ()
    ) -> None:
        self.kind = kind
        self.message = message
        self.location = location
        self.hint = hint
        self.names = tuple(names)

    def __str__(self) -> str:
        """The problem with its place, the line with a caret under the column, the callers and the hint."""
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}{self.message}"]
        if self.location:
            if self.location.text:
                shown, column = _window(self.location.text, self.location.column)
                lines += [f"    {shown}", "    " + " " * (column - 1) + "^"]
            lines += [f"    {caller}" for caller in self.location.callers]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain values for JSON."""
        place = self.location
        return {
            "kind": self.kind,
            "message": self.message,
            "file": place and place.file,
            "line": place and place.line,
            "column": place and place.column,
            "hint": self.hint,
            "names": list(self.names),
            "callers": list(place.callers) if place else [],
        }

    def __repr__(self) -> str:
        return f"Problem({self.kind!r}, {self.message!r}, {self.location})"


def _window(text: str, column: int, width: int = 100) -> tuple[str, int]:
    """The part of a long line around ``column``, with tabs and control characters as blanks, and the column within
    it."""
    start = max(0, column - 1 - width // 2) if len(text) > width else 0
    shown = "".join(c if c.isprintable() else " " for c in text[start : start + width])
    return shown, column - start


class NetlistError(CircuitError):
    """A deck that cannot be read. ``problems`` lists all of them, in the order of the deck."""

    SHOWN = 20

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        shown = "\n".join(str(problem) for problem in self.problems[: self.SHOWN])
        more = len(self.problems) - self.SHOWN
        return shown + (f"\n… and {more} more" if more > 0 else "")


class NoSteadyStateError(CircuitError):
    """The circuit has no steady state. ``elements`` and ``nodes`` are the witness, by name.

    Attributes
    ----------
    kind : {"cycle", "cut"}
        A cycle of elements with contradictory voltages, or a cut whose net current has no path.
    """

    exit_code = 3
    kind = ""

    def __init__(self, message: str, elements: Iterable[str] = (), nodes: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.elements = tuple(elements)
        self.nodes = tuple(nodes)

    @property
    def cause(self) -> dict[str, object]:
        """The witness as in the JSON output."""
        return {"kind": self.kind, "elements": list(self.elements), "nodes": list(self.nodes)}


class InfeasibleError(NoSteadyStateError):
    """A cycle of voltage sources and diodes that no potentials satisfy (Kirchhoff's voltage law)."""

    kind = "cycle"


class UnboundedError(NoSteadyStateError):
    """A set of nodes into which sources drive a net current without return path."""

    kind = "cut"


class NoOperatingPointError(NoSteadyStateError):
    """A circuit with controlled sources for which no operating point was found.

    Attributes
    ----------
    elements, nodes : tuple of str
        The smallest self-contained sub-circuit without an operating point.
    proven : bool
        Whether all states of its diodes were tried.
    """

    kind = "block"

    def __init__(
        self, message: str, elements: Iterable[str] = (), nodes: Iterable[str] = (), proven: bool = False
    ) -> None:
        super().__init__(message, elements, nodes)
        self.proven = proven

    @property
    def cause(self) -> dict[str, object]:
        """The witness, and whether the absence of an operating point is proven."""
        return {**super().cause, "proven": self.proven}


class ConvergenceError(CircuitError):
    """A method stopped without a certified solution (a frozen point, an iteration limit, a failed certificate)."""

    exit_code = 3


class DeckWarning(UserWarning):
    """Statements of a deck that may not have the intended meaning.

    Parameters
    ----------
    problems : sequence of Problem
        The warnings; a `Deck` has them as ``problems``, and cards without effect as ``notes``.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[DeckWarning], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class ResultWarning(DeckWarning):
    """A part of a result is missing, such as a measurement whose event does not happen."""


def look_up(name: str, known: Mapping[str, V], what: str) -> V:
    """The value of a name; case and blanks do not matter.

    Parameters
    ----------
    name : str
    known : mapping
        Values by name.
    what : str
        What has them, in the error.

    Raises
    ------
    UsageError
        It is not known: "the ``what`` has no …".
    """
    wanted = name.lower().replace(" ", "")
    for own, value in known.items():
        if own.lower() == wanted:
            return value
    raise UsageError(f"the {what} has no {name!r}; it has {', '.join(known)[:300]}")


def some(names: Sequence[str], most: int = 8) -> str:
    """The first names, and the number of further ones.

    Parameters
    ----------
    names : sequence of str
    most : int
        Number of names.
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def similar(name: str, known: Iterable[str], otherwise: str = "", least: float = 0.6) -> str:
    """A hint that names known names similar to an unknown one.

    Parameters
    ----------
    name : str
        The unknown one.
    known : iterable of str
    otherwise : str
        The hint without similar names.
    least : float
        The least similarity (`difflib.SequenceMatcher.ratio`).
    """
    import difflib

    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), 3, least)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
