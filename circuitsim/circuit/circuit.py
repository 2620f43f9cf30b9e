"""`Circuit`: nodes and two-terminal elements (amplifiers: ground is their third), as a table of columns.

A circuit only ever grows (``circuit.resistor(…)``) or is copied with other values (`Circuit.with_values`); the views
that solvers read (`Circuit.arrays`) are immutable snapshots. Columns are compact machine arrays, so that a circuit of
millions of elements costs tens of bytes an element, and numpy is only needed once somebody computes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.circuit.elements import (
    AMPLIFIER,
    BY_LETTER,
    CAPACITOR,
    CURRENT,
    DIODE,
    ELEMENTS,
    INDUCTOR,
    RESISTOR,
    VOLTAGE,
    device_code,
)
from circuitsim.circuit.laws import Law
from circuitsim.errors import TopologyError
from circuitsim.models import ELEMENTARY, Device, ElementModel

if TYPE_CHECKING:
    import networkx
    import numpy as np

    from circuitsim.notebook import Picture

GROUND = 0
"""Index of the ground node, in every circuit (whether or not an element touches it)."""

GROUND_NAMES = frozenset({"0", "gnd"})


class CircuitArrays(NamedTuple):
    """The circuit as read-only arrays, one entry an element (n_elements,) in the order they were added.

    Attributes
    ----------
    kind : int8 array
        Row of the element table (`circuitsim.circuit.elements`).
    first, second : int64 arrays
        Node indices of the terminals; 0 is ground.
    value : float64 array
        Ω, V, A, H, F or a gain; nan for diodes and devices.
    n_nodes : int
        Number of nodes, ground included.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    value: np.ndarray
    n_nodes: int


class Element(NamedTuple):
    """One element, for people: name, kind (``"resistor"`` …), node names and value (None for a diode or a device)."""

    name: str
    kind: str
    first: str
    second: str
    value: float | None


class _Numbered(Sequence[str]):
    """Names made on demand (``R1``, ``R2`` …), so that circuits from arrays need not store millions of strings."""

    def __init__(self, prefixes: Sequence[str] | str, count: int, start: int) -> None:
        self._prefixes, self._count, self._start = prefixes, count, start

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(self._count))]
        k = range(self._count)[item]
        prefix = self._prefixes if isinstance(self._prefixes, str) else self._prefixes[k]
        return f"{prefix}{k + self._start}"


class Circuit:
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
        self._arrays: CircuitArrays | None = None

    # ------------------------------------------------------------------ building
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

    def _append(
        self, code: int, name: str, first: str, second: str, number: float, origin: tuple[str, int] | None
    ) -> None:
        """One more element, its value checked."""
        index = self._element_index()
        key = name.lower()
        if key in index:
            raise TopologyError(f"{name}: the name is taken already")
        self._keep_to_itself()
        index[key] = len(self._kind)
        if origin is not None:
            self._origins[len(self._kind)] = origin
        self._own(self._names).append(name)
        self._kind.append(code)
        self._first.append(self.node(first))
        self._second.append(self.node(second))
        self._value.append(number)
        self._arrays = None

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
        circuit._names = _Numbered(_Letters(letters, kind), kind.size, 1) if names is None else list(names)
        if wrong.any():
            k = int(np.argmax(wrong))
            checked_value(int(kind[k]), circuit._names[k], float(value[k]))
        circuit._node_names = _Nodes(n_nodes) if node_names is None else list(node_names)
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

    def _keep_to_itself(self) -> None:
        """Before a circuit grows: columns and names that others have too become its own."""
        if self._lent:
            self._kind, self._first, self._second = self._kind[:], self._first[:], self._second[:]
            self._names, self._node_names = list(self._names), list(self._node_names)
            self._origins, self._devices, self._laws = dict(self._origins), dict(self._devices), dict(self._laws)
            self._lent = False

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

    def node(self, name: str | int) -> int:
        """Index of the node called ``name`` (``0`` and ``gnd`` are ground), added if it is new; 1 is ``"1"``."""
        name = str(name)
        if self._node_index is None:
            self._node_index = {str(n).lower(): k for k, n in enumerate(self._node_names)}
            self._node_index.update(dict.fromkeys(GROUND_NAMES, GROUND))
        key = name.lower()
        found = self._node_index.get(key)
        if found is None:
            self._keep_to_itself()
            found = self._node_index[key] = len(self._node_names)
            self._own(self._node_names).append(name)
            self._arrays = None
        return found

    # ------------------------------------------------------------------ reading
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
        return AMPLIFIER in self._kind

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

    def _changed(self, k: int, parameter: str, value: float) -> Device:
        """Device ``k`` with another value of one parameter."""
        try:
            return self._devices[k].with_value(parameter, float(value))
        except ValueError as error:
            raise TopologyError(f"{self._names[k]}: {error}") from None

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
        found = self._element_index().get(name.lower())
        if found is None:
            raise TopologyError(_unknown("element", name, self._element_index()))
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
        if self._node_index is None:
            self.node("0")
        assert self._node_index is not None
        found = self._node_index.get(name.lower())
        if found is None:
            raise TopologyError(_unknown("node", name, self._node_index))
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

            columns = [
                np.array(column, dtype=dtype)
                for column, dtype in (
                    (self._kind, np.int8),
                    (self._first, np.int64),
                    (self._second, np.int64),
                    (self._value, np.float64),
                )
            ]
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
        return [(row, n) for code, row in enumerate(ELEMENTS) if (n := self._kind.count(code))]

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

    # ------------------------------------------------------------------ inside
    def _element_index(self) -> dict[str, int]:
        if self._index is None:
            self._index = {name.lower(): k for k, name in enumerate(self._names)}
        return self._index

    def _own(self, names: Sequence[str]) -> list[str]:
        """``names`` as a list that can grow; numbered names become real ones the first time that is needed."""
        if isinstance(names, list):
            return names
        if names is self._names:
            self._names = list(names)
            return self._names
        self._node_names = list(names)
        return self._node_names


class _Letters(Sequence[str]):
    """The letter of each element, looked up in its kind column."""

    def __init__(self, letters: Sequence[str], kind: np.ndarray) -> None:
        self._letters, self._kind = letters, kind

    def __len__(self) -> int:
        return len(self._kind)

    def __getitem__(self, item: Any) -> Any:
        return self._letters[self._kind[item]]


class _Nodes(_Numbered):
    """Node names ``0``, ``n1``, ``n2`` …"""

    def __init__(self, count: int) -> None:
        super().__init__("n", count, 0)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(len(self)))]
        return "0" if range(len(self))[item] == GROUND else super().__getitem__(item)


def checked_value(code: int, name: str, value: float | None) -> float:
    """``value`` as a float in the range the element table allows; nan for an element without a value.

    Raises
    ------
    TopologyError
        Missing, unexpected, not finite or out of range.
    """
    row = ELEMENTS[code]
    if not row.parameter:
        if value is not None and not math.isnan(value):
            raise TopologyError(f"{name}: {row.name} takes no value")
        return math.nan
    if value is None:
        raise TopologyError(f"{name}: {row.name} needs its {row.parameter}{' in ' * bool(row.unit)}{row.unit}")
    number = float(value)
    if not math.isfinite(number):
        raise TopologyError(f"{name}: the {row.parameter} must be finite, not {number}")
    if number < row.minimum:
        wrong = "must be positive" if row.minimum > 0.0 else "must not be negative"
        raise TopologyError(f"{name}: the {row.parameter} {wrong} ({f'{number:g} {row.unit}'.strip()})")
    return number


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    """A message for a name that does not exist, with the nearest ones that do."""
    import difflib
    from itertools import islice

    near = difflib.get_close_matches(name.lower(), list(islice(known, 5000)), n=3)
    return f"no {what} is called {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "")


__all__ = [
    "CAPACITOR",
    "CURRENT",
    "DIODE",
    "GROUND",
    "INDUCTOR",
    "RESISTOR",
    "VOLTAGE",
    "Circuit",
    "CircuitArrays",
    "Element",
    "checked_value",
]
