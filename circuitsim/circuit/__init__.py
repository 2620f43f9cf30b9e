"""The circuit itself: nodes, elements, and the element table."""

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import BY_LETTER, ELEMENTS
from circuitsim.circuit.table import GROUND, CircuitArrays, Element
from circuitsim.models import ElementModel

__all__ = ["BY_LETTER", "ELEMENTS", "GROUND", "Circuit", "CircuitArrays", "Element", "ElementModel"]
