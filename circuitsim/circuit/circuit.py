"""`Circuit`: nodes and two-terminal elements (amplifiers: ground is their third), as a table of columns.

A circuit only ever grows (``circuit.resistor(…)``) or is copied with other values (`Circuit.with_values`); the views
that solvers read (`Circuit.arrays`) are immutable snapshots.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.circuit.columns import CircuitArrays, Element, checked_value
from circuitsim.circuit.elements import BY_LETTER, DIODE, ELEMENTS, device_code
from circuitsim.circuit.laws import Law
from circuitsim.circuit.names import GROUND, Letters, NodeNames, NumberedNames
from circuitsim.circuit.table import ElementTable
from circuitsim.errors import TopologyError
from circuitsim.models import ELEMENTARY, Device

if TYPE_CHECKING:
    import networkx
    import numpy as np

    from circuitsim.notebook import Picture

__all__ = ["GROUND", "Circuit", "CircuitArrays", "Element", "checked_value"]


class Circuit(ElementTable):
    """A resistive circuit: resistors, ideal diodes, voltage and current sources (L: short, C: open), amplifiers, and
    devices that consist of these (`circuitsim.models`).

    Parameters
    ----------
    title : str
        First line of the deck.

    Examples
    --------
    >>> from circuitsim import Circuit
    >>> c = Circuit("divider")
    >>> c.voltage_source("V1", "in", "0", 6.0)
    >>> c.resistor("R1", "in", "out", 1e3)
    >>> c.resistor("R2", "out", "0", 2e3)
    >>> c
    Circuit('divider': 3 nodes, 3 elements: 2 R, 1 V)
    """

    def resistor(self, name: str, first: str, second: str, resistance: float) -> None:
        """Add a resistor.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes; its current counts from ``first`` through it to ``second``.
        resistance : float
            Ω, not negative; zero is an ideal short.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is negative or not finite.
        """
        self.add("R", name, first, second, resistance)

    def diode(self, name: str, anode: str, cathode: str) -> None:
        """Add an ideal diode: no reverse current, no forward drop.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        anode, cathode : str
            Names of its nodes; its current flows from ``anode`` through it to ``cathode``.

        Raises
        ------
        TopologyError
            A repeated name.
        """
        self.add("D", name, anode, cathode)

    def voltage_source(self, name: str, positive: str, negative: str, voltage: float) -> None:
        """Add an ideal source that holds v(positive) − v(negative) = ``voltage``.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        positive, negative : str
            Names of its nodes; its current counts from ``positive`` through it to ``negative``.
        voltage : float
            V; a source that delivers power has a negative current.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is not finite.
        """
        self.add("V", name, positive, negative, voltage)

    def current_source(self, name: str, first: str, second: str, current: float) -> None:
        """Add a source whose current flows from ``first`` through it to ``second``.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes.
        current : float
            A.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is not finite.
        """
        self.add("I", name, first, second, current)

    def amplifier(self, name: str, left: str, right: str, gain: float) -> None:
        """Add a bidirectional amplifier: v(right) = ``gain`` v(left), and the current that leaves it on the right is
        ``gain`` times the one that enters it on the left (> 0; Scellier 2024, App. D). Ground is its third terminal.
        """
        self.add("X", name, left, right, gain)

    def add(
        self,
        letter: str,
        name: str,
        first: str,
        second: str,
        value: float | None = None,
        origin: tuple[str, int] | None = None,
    ) -> None:
        """Add an element of any kind by its letter in the element table.

        Raises
        ------
        TopologyError
            Unknown kind, repeated name, a value that is missing, not finite or out of range.
        """
        code = BY_LETTER.get(letter.upper())
        if code is None:
            raise TopologyError(f"{name}: no element kind {letter!r}; known: {', '.join(BY_LETTER)}")
        self._append(code, name, first, second, checked_value(code, name, value), origin)

    def device(self, name: str, first: str, second: str, device: Device) -> None:
        """Add an element that consists of others, by the parameters of its model (`circuitsim.models`).

        Raises
        ------
        TopologyError
            A repeated name.
        """
        self._append(device_code(device), name, first, second, math.nan, None)
        self._devices[len(self) - 1] = device

    def controlled(self, code: int, name: str, first: str, second: str, law: Law, value: float | None = None) -> None:
        """Add a controlled element; `circuitsim.controlled.elements` makes the laws of the usual ones.

        Raises
        ------
        TopologyError
            A repeated name; a value that is missing, unexpected or not finite.
        """
        self._append(code, name, first, second, checked_value(code, name, value), None)
        self._laws[len(self) - 1] = law

    @classmethod
    def from_arrays(
        cls,
        kind: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        value: np.ndarray,
        n_nodes: int,
        title: str = "",
        names: Sequence[str] | None = None,
        node_names: Sequence[str] | None = None,
    ) -> Circuit:
        """A circuit from whole columns (see `CircuitArrays`); names are numbered on demand where not given.

        Parameters
        ----------
        kind : (m,) integer array
            Codes of `circuitsim.circuit.elements`.
        first, second : (m,) integer arrays
            Node indices in ``range(n_nodes)``; 0 is ground.
        value : (m,) float array
            Ω, V, A, H, F; ignored for diodes.
        n_nodes : int
            Number of nodes, ground included.

        Raises
        ------
        TopologyError
            Columns of unequal length, indices or values out of range, repeated names.
        """
        import numpy as np

        kind = np.asarray(kind, dtype=np.int8)
        columns = [np.ascontiguousarray(column, dtype=np.int64) for column in (first, second)]
        value = np.where(kind == DIODE, np.nan, np.asarray(value, dtype=np.float64))
        if any(column.shape != kind.shape for column in (*columns, value)) or kind.ndim != 1:
            raise TopologyError("the columns kind, first, second and value must be vectors of one length")
        if kind.size and (kind.min() < 0 or kind.max() >= ELEMENTARY):
            raise TopologyError(f"element kinds must lie in 0…{ELEMENTARY - 1}")
        if kind.size and (min(c.min() for c in columns) < 0 or max(c.max() for c in columns) >= n_nodes):
            raise TopologyError(f"node indices must lie in 0…{n_nodes - 1}")
        minimum = np.array([row.minimum for row in ELEMENTS])[kind]
        wrong = (kind != DIODE) & ~(np.isfinite(value) & (value >= minimum))
        circuit = cls(title)
        letters = [row.letter for row in ELEMENTS]
        circuit._names = NumberedNames(Letters(letters, kind), kind.size, 1) if names is None else list(names)
        if wrong.any():
            k = int(np.argmax(wrong))
            checked_value(int(kind[k]), circuit._names[k], float(value[k]))
        circuit._node_names = NodeNames(n_nodes) if node_names is None else list(node_names)
        if len(circuit._names) != kind.size or len(circuit._node_names) != n_nodes:
            raise TopologyError("as many names as elements and as many node names as nodes are needed")
        circuit._index = circuit._node_index = None
        for column, data in zip(("_kind", "_first", "_second", "_value"), (kind, *columns, value)):
            getattr(circuit, column).frombytes(data.tobytes())
        if names is not None and len(circuit._element_index()) != kind.size:
            raise TopologyError("element names are repeated")
        return circuit

    @classmethod
    def from_columns(
        cls,
        title: str,
        columns: tuple[array[int], array[int], array[int], array[float]],
        names: list[str],
        node_names: list[str],
        origins: Any = None,
        devices: Mapping[int, Device] | None = None,
        laws: Mapping[int, Law] | None = None,
    ) -> Circuit:
        """A circuit that takes over columns already checked (for the netlist reader: no numpy, no copies).

        Parameters
        ----------
        columns : tuple of array.array
            ``kind`` ("b"), ``first``, ``second`` ("q"), ``value`` ("d"), as `CircuitArrays` has them.
        names, node_names : list of str
            All names; node 0 is ground. Names are unique in either case.
        origins : object, optional
            Its ``get(k)`` gives file and line of element ``k``.
        devices : mapping of int to Device, optional
            Parameters of the elements that are devices.
        laws : mapping of int to Law, optional
            Laws of the elements that are controlled.
        """
        circuit = cls(title)
        circuit._kind, circuit._first, circuit._second, circuit._value = columns
        circuit._names, circuit._node_names = names, node_names
        circuit._index = circuit._node_index = None
        circuit._deck_origins = origins
        circuit._devices, circuit._laws = dict(devices or {}), dict(laws or {})
        return circuit

    def with_values(self, values: Mapping[str, float]) -> Circuit:
        """A copy of this circuit with other element values (Ω, V, A), by element name; the topology is shared.

        ``D1.vfwd`` is the parameter ``vfwd`` of the device ``D1``.

        Raises
        ------
        TopologyError
            An unknown name, an element without a value, or a value out of range.
        """
        copy = self._sharing()
        copy._value = self._value[:]
        for name, value in values.items():
            found = self.device_parameter(name)
            if found is not None:
                copy._devices = {**copy._devices, found[0]: copy._changed(*found, value)}
                continue
            k = self.element_index(name)
            copy._value[k] = checked_value(self._kind[k], name, value)
        if self._arrays is not None:
            import numpy as np

            value_column = np.array(copy._value, dtype=np.float64)
            value_column.flags.writeable = False
            copy._arrays = self._arrays._replace(value=value_column)
        return copy

    def _sharing(self) -> Circuit:
        """A copy of this circuit that has yet to get its values."""
        copy = Circuit(self.title)
        self._lent = True
        copy.__dict__.update(self.__dict__)
        copy._arrays = copy._index = copy._node_index = None
        return copy

    def column(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Values of all elements as a float array (m,).

        Raises
        ------
        TopologyError
            An array of another shape.
        """
        import numpy as np

        value = np.asarray(values, dtype=np.float64)
        if value.shape != (len(self._kind),):
            raise TopologyError(f"{len(self)} element values are needed, not an array of shape {value.shape}")
        return value

    def changes(self, value: np.ndarray) -> dict[str, float]:
        """What of the values of all elements (m,) is not this circuit's own, by name; entries of diodes are ignored."""
        return {self._names[k]: float(value[k]) for k in self._differs(value).nonzero()[0].tolist()}

    def _differs(self, value: np.ndarray) -> np.ndarray:
        """Which of the values of all elements (m,) are not this circuit's own; entries without a value are ignored."""
        arrays = self.arrays()
        return (value != arrays.value) & (arrays.value == arrays.value)  # nan: no value

    def with_column(self, value: np.ndarray) -> Circuit:
        """The circuit itself if it has these values (m,), else a copy that has; see `with_values`.

        Entries of diodes are ignored.
        """
        import numpy as np

        arrays = self.arrays()
        changed = self._differs(value).nonzero()[0]
        if not changed.size:
            return self
        new, least = value[changed], np.array([row.minimum for row in ELEMENTS])
        wrong = ~(np.isfinite(new) & (new >= least[arrays.kind[changed]]))
        for k in changed[wrong].tolist():
            checked_value(int(arrays.kind[k]), self._names[k], float(value[k]))
        copy, column = self._sharing(), arrays.value.copy()
        column[changed] = new
        column.flags.writeable = False
        copy._value = array("d", column.tobytes())
        copy._arrays = arrays._replace(value=column)
        return copy

    def _changed(self, k: int, parameter: str, value: float) -> Device:
        """Device ``k`` with another value of one parameter."""
        try:
            return self._devices[k].with_value(parameter, float(value))
        except ValueError as error:
            raise TopologyError(f"{self._names[k]}: {error}") from None

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The circuit as a directed multigraph: nodes by name, an edge first→second an element, keyed by its name.

        Edge attributes: ``kind``, ``value`` (None for diodes).
        """
        import networkx

        graph = networkx.MultiDiGraph(title=self.title)
        graph.add_nodes_from(str(name) for k, name in enumerate(self._node_names) if k or self.grounded)
        for element in self:
            graph.add_edge(element.first, element.second, key=element.name, kind=element.kind, value=element.value)
        return graph

    def draw(self) -> Picture:
        """A drawing without voltages and currents; a notebook shows it, `Picture.save` writes it."""
        from circuitsim.notebook import Picture

        return Picture(self)

    def _repr_html_(self) -> str:
        from circuitsim.notebook import of_circuit

        return of_circuit(self)

    def __repr__(self) -> str:
        nodes = len(self._node_names) - (not self.grounded)
        kinds = ", ".join(f"{n} {letter}" for letter, n in self.count().items())
        return f"Circuit({self.title!r}: {nodes} nodes, {len(self)} elements" + (f": {kinds})" if kinds else ")")
