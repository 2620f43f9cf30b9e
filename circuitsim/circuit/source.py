"""The circuit of an argument: a circuit, or a deck, operating point or result that holds one."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from circuitsim.arguments import checked, converted
from circuitsim.circuit.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.formats import Picture


class OfCircuit(Protocol):
    """A deck, an operating point: anything with a circuit."""

    @property
    def circuit(self) -> Circuit: ...


def circuit_of(source: Circuit | OfCircuit) -> Circuit:
    """The circuit of ``source``; of a deck, that of its operating point.

    Raises
    ------
    UsageError
        A text, a path or anything else without a circuit.
    """
    circuit = getattr(source, "operating_circuit", source)
    circuit = circuit if isinstance(circuit, Circuit) else getattr(source, "circuit", None)
    if not isinstance(circuit, Circuit):
        raise UsageError(
            f"a circuit or a deck is needed, not {type(source).__name__}: circuitsim.load(path) reads a file, "
            "circuitsim.loads(text) a text"
        )
    return circuit


CIRCUIT = converted(Circuit, circuit_of)
"""The rule of circuits and decks; an operating point or a result counts as its circuit."""

analysis = partial(checked, circuit=CIRCUIT, source=CIRCUIT)
"""`checked` for functions of a circuit or a deck."""


def draw(source: Circuit | OfCircuit) -> Picture:
    """Draw a circuit, a deck or an operating point.

    Parameters
    ----------
    source : Circuit, Deck or OperatingPoint
        With voltages and currents where it is solved.

    Returns
    -------
    Picture
        A notebook shows it; ``save(path)`` writes PNG, SVG or PDF.

    Raises
    ------
    UsageError
        Anything else.
    """
    circuit_of(source)
    return Picture(source)
