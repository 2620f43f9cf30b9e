"""The circuit itself: nodes, elements, and the element table."""

from circuitsim.circuit.circuit import GROUND, Circuit, CircuitArrays, Element
from circuitsim.circuit.elements import BY_LETTER, ELEMENTS
from circuitsim.models import ElementModel

__all__ = ["BY_LETTER", "ELEMENTS", "GROUND", "Circuit", "CircuitArrays", "Element", "ElementModel"]
