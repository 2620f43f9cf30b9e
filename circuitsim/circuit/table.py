"""The table of a circuit: elements and nodes as compact columns, which grow and are read.

Columns are machine arrays, so that a circuit of millions of elements costs tens of bytes an element, and numpy is only
needed once somebody computes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from circuitsim.circuit.columns import CircuitArrays, Element
from circuitsim.circuit.elements import AMPLIFIER, ELEMENTS
from circuitsim.circuit.laws import Law
from circuitsim.circuit.names import GROUND, GROUND_NAMES, index_of, unknown_name
from circuitsim.errors import TopologyError
from circuitsim.models import Device, ElementModel


class ElementTable:
    """Elements by row, nodes by index; `circuitsim.circuit.Circuit` adds what builds and changes a circuit.

    Parameters
    ----------
    title : str
        First line of the deck.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.notes: tuple[Any, ...] = ()
        """`Problem` values noted while the deck was read (warnings, cards without effect)."""
        self._kind = array("b")
        self._first = array("q")
        self._second = array("q")
        self._value = array("d")
        self._names: list[str] | Sequence[str] = []
        self._index: dict[str, int] | None = {}
        self._node_names: list[str] | Sequence[str] = ["0"]
        self._node_index: dict[str, int] | None = {"0": GROUND, "gnd": GROUND}
        self._origins: dict[int, tuple[str, int]] = {}
        self._deck_origins: Any = None  # the same for whole columns: an object with get(k)
        self._devices: dict[int, Device] = {}  # by element
        self._laws: dict[int, Law] = {}  # of controlled elements
        self._lent = False  # whether columns and names belong to other circuits as well
        self._viewed = False  # whether numpy arrays share the memory of the columns
        self._arrays: CircuitArrays | None = None
        self.dynamics: Any = None
        """What a deck states for analyses over time and frequency: a `FollowingSources` of `circuitsim.netlist`."""

    def _append(
        self, code: int, name: str, first: str, second: str, number: float, origin: tuple[str, int] | None
    ) -> None:
        """One more element, its value checked."""
        key = name.lower()
        if key in self._element_index():
            raise TopologyError(f"{name}: the name is taken already")
        self._keep_to_itself()
        names = self._own_names()
        self._element_index()[key] = len(self._kind)
        if origin is not None:
            self._origins[len(self._kind)] = origin
        names.append(name)
        self._kind.append(code)
        self._first.append(self.node(first))
        self._second.append(self.node(second))
        self._value.append(number)
        self._arrays = None

    def node(self, name: str | int) -> int:
        """Index of the node called ``name`` (``0`` and ``gnd`` are ground), added if it is new; 1 is ``"1"``."""
        name = str(name)
        key = name.lower()
        found: int | None = self._index_of_nodes().get(key)
        if found is None:
            self._keep_to_itself()
            names = self._own_node_names()
            found = self._index_of_nodes()[key] = len(names)
            names.append(name)
            self._arrays = None
        return found

    def _keep_to_itself(self) -> None:
        """Before a circuit grows: columns and names that others have too become its own."""
        if self._lent:
            self._kind, self._first, self._second = self._kind[:], self._first[:], self._second[:]
            self._names, self._node_names = list(self._names), list(self._node_names)
            self._index = self._node_index = None
            self._origins, self._devices, self._laws = dict(self._origins), dict(self._devices), dict(self._laws)
            self.dynamics = None if self.dynamics is None else self.dynamics.copied()
            self._lent = False
        if self._viewed:
            self._kind, self._first, self._second = self._kind[:], self._first[:], self._second[:]
            self._value, self._viewed = self._value[:], False

    @property
    def names(self) -> Sequence[str]:
        """Element names, as first written, in the order they were added."""
        return self._names

    @property
    def node_names(self) -> Sequence[str]:
        """Node names, as first written; index 0 is ground."""
        return self._node_names

    @property
    def grounded(self) -> bool:
        """Whether any element touches ground."""
        return GROUND in self._first or GROUND in self._second

    @property
    def amplified(self) -> bool:
        """Whether there is a bidirectional amplifier among the elements."""
        return AMPLIFIER in self._kind.tobytes()

    @property
    def devices(self) -> Mapping[int, Device]:
        """Parameters of the elements that are devices, by position; for reading only."""
        return self._devices

    @property
    def laws(self) -> Mapping[int, Law]:
        """Laws of the controlled elements, by position; for reading only."""
        return self._laws

    def device_of(self, name: str) -> Device:
        """Parameters of the device called ``name``.

        Raises
        ------
        TopologyError
            No such element, or one that is no device.
        """
        found = self._devices.get(self.element_index(name))
        if found is None:
            raise TopologyError(f"{name} is a {self[name].kind}, which has no parameters but its value")
        return found

    def device_parameter(self, name: str) -> tuple[int, str] | None:
        """The element and the parameter that ``D1.vfwd`` names; None where it names an element, or none."""
        if not self._devices or name in self:
            return None
        element, dot, parameter = name.rpartition(".")
        k = self._element_index().get(element.lower()) if dot else None
        if k is None or k not in self._devices or self._devices[k].model.parameter_called(parameter) is None:
            return None
        return k, parameter.lower()

    def __len__(self) -> int:
        return len(self._kind)

    def __iter__(self) -> Iterator[Element]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: int | str) -> Element:
        k = self.element_index(key) if isinstance(key, str) else key
        code, value = self._kind[k], self._value[k]
        nodes = self._node_names
        return Element(
            self._names[k],
            ELEMENTS[code].name,
            nodes[self._first[k]],
            nodes[self._second[k]],
            None if math.isnan(value) else value,
        )

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._element_index()

    def element_index(self, name: str) -> int:
        """Position of the element called ``name`` (case does not matter).

        Raises
        ------
        TopologyError
            No such element; near names are offered.
        """
        found: int | None = self._element_index().get(name.lower())
        if found is None:
            raise TopologyError(unknown_name("element", name, self._element_index()))
        return found

    def node_index(self, name: str | int) -> int:
        """Index of the node called ``name``; 1 is the node ``"1"``.

        Raises
        ------
        TopologyError
            No such node; near names are offered.
        """
        name = str(name)
        if name.lower() in GROUND_NAMES:
            return GROUND
        found: int | None = self._index_of_nodes().get(name.lower())
        if found is None:
            raise TopologyError(unknown_name("node", name, self._index_of_nodes()))
        return found

    def origin(self, k: int) -> tuple[str, int] | None:
        """File and line where element ``k`` was written, if it came from a deck."""
        found = self._origins.get(k)
        return found if found is not None or self._deck_origins is None else self._deck_origins.get(k)

    def columns(self) -> tuple[array[int], array[int], array[int], array[float]]:
        """Kind, first node, second node and value of all elements, without numpy; for reading only."""
        return self._kind, self._first, self._second, self._value

    def arrays(self) -> CircuitArrays:
        """The circuit as read-only numpy arrays (cached until the circuit grows)."""
        if self._arrays is None:
            import numpy as np

            self._viewed = True
            types = np.int8, np.int64, np.int64, np.float64
            columns = [np.asarray(column).view(dtype) for column, dtype in zip(self.columns(), types)]
            for column in columns:
                column.flags.writeable = False
            self._arrays = CircuitArrays(columns[0], columns[1], columns[2], columns[3], len(self._node_names))
        return self._arrays

    def count(self) -> dict[str, int]:
        """Number of elements of each letter present, in the order of the element table."""
        found: dict[str, int] = {}
        for row, n in self.count_models():
            found[row.letter] = found.get(row.letter, 0) + n
        return found

    def count_models(self) -> list[tuple[ElementModel, int]]:
        """The models that occur, in the order of the element table, and how many elements each has."""
        codes = self._kind.tobytes()
        return [(row, n) for code, row in enumerate(ELEMENTS) if (n := codes.count(code))]

    def _element_index(self) -> dict[str, int]:
        if self._index is None:
            self._index = index_of(self._names)
        return self._index

    def _index_of_nodes(self) -> dict[str, int]:
        if self._node_index is None:
            self._node_index = index_of(self._node_names, dict.fromkeys(GROUND_NAMES, GROUND))
        return self._node_index

    def _own_names(self) -> list[str]:
        """Element names as a list that can grow; names in other forms become one the first time that is needed."""
        if not isinstance(self._names, list):
            self._names, self._index = list(self._names), None
        return self._names

    def _own_node_names(self) -> list[str]:
        """The same for nodes."""
        if not isinstance(self._node_names, list):
            self._node_names, self._node_index = list(self._node_names), None
        return self._node_names
