"""The table of a circuit: elements and nodes as compact columns, and their names.

Columns are machine arrays: circuits of millions of elements take tens of bytes per element besides their names, and
numpy is imported only for computations. Case of names does not matter.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim import arguments
from circuitsim.circuit.elements import AMPLIFIER, DIODE, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Law
from circuitsim.errors import Location, TopologyError, similar
from circuitsim.models import ELEMENTARY, Device, ElementModel

if TYPE_CHECKING:
    import numpy as np


class CircuitArrays(NamedTuple):
    """The circuit as read-only arrays (n_elements,), in the order the elements were added.

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

    @property
    def fixed_voltages(self) -> np.ndarray:
        """Which elements (m,) fix a voltage: sources, inductors and shorts."""
        short = (self.kind == RESISTOR) & (self.value == 0.0)
        return (self.kind == VOLTAGE) | (self.kind == INDUCTOR) | short

    @property
    def typical_resistance(self) -> float:
        """The geometric mean of the positive resistances, Ω; 1 without any."""
        import numpy as np

        ohms = self.value[(self.kind == RESISTOR) & (self.value > 0.0)]
        return float(np.exp(np.log(ohms).mean())) if ohms.size else 1.0


def read_only(column: np.ndarray) -> np.ndarray:
    """The column as a read-only array, so that kernels compile for one array type."""
    if not column.flags.writeable:
        return column
    view = column.view()
    view.flags.writeable = False
    return view


class Element(NamedTuple):
    """One element: name, kind (``"resistor"`` …), node names and value (None for a diode or a device)."""

    name: str
    kind: str
    first: str
    second: str
    value: float | None


def checked_value(code: int, name: str, value: float | str | None) -> float:
    """``value`` as a float within the range of the element table; nan for an element without a value.

    Raises
    ------
    TopologyError
        Missing, unexpected, not finite or out of range.
    """
    row = ELEMENTS[code]
    if not row.parameter:
        if value is not None and value == value:  # nan: none
            raise TopologyError(f"{name}: {row.name} takes no value")
        return math.nan
    if value is None:
        raise TopologyError(f"{name}: {row.name} needs its {row.parameter}{' in ' * bool(row.unit)}{row.unit}")
    found = value if isinstance(value, float) else arguments.real(f"{name}: {row.parameter}", value)
    wrong = row.value.wrong(found)
    if wrong:
        raise TopologyError(f"{name}: {wrong}")
    return found


def checked_columns(
    kind: np.ndarray, first: np.ndarray, second: np.ndarray, value: np.ndarray, n_nodes: int, laws: Collection[int] = ()
) -> CircuitArrays:
    """The columns with the types of `CircuitArrays`, their kinds and nodes in range; values of diodes are nan.

    Elements with ``laws`` may be controlled.

    Raises
    ------
    TopologyError
        Columns of unequal length, or a kind or node that does not exist.
    """
    import numpy as np

    kind = np.asarray(kind, dtype=np.int8)
    first, second = (np.ascontiguousarray(column, dtype=np.int64) for column in (first, second))
    value = np.where(kind == DIODE, np.nan, np.asarray(value, dtype=np.float64))
    if any(column.shape != kind.shape for column in (first, second, value)) or kind.ndim != 1:
        raise TopologyError("the columns kind, first, second and value must be vectors of one length")
    elementary = np.delete(kind, [*laws]) if laws else kind
    if elementary.size and (elementary.min() < 0 or elementary.max() >= ELEMENTARY):
        raise TopologyError(f"element kinds must lie in 0…{ELEMENTARY - 1}")
    if kind.size and (min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= n_nodes):
        raise TopologyError(f"node indices must lie in 0…{n_nodes - 1}")
    return CircuitArrays(kind, first, second, value, n_nodes)


def check_values(
    kind: np.ndarray, value: np.ndarray, names: Sequence[str], rows: np.ndarray | Sequence[int] | None = None
) -> None:
    """`checked_value` for all elements but diodes, or for some ``rows`` of the columns.

    Raises
    ------
    TopologyError
        The first value that is not finite or out of range.
    """
    import numpy as np

    rows = np.arange(kind.size) if rows is None else np.asarray(rows, dtype=np.int64)
    least = np.array([row.value.minimum for row in ELEMENTS])[kind[rows]]
    wrong = (kind[rows] != DIODE) & ~(np.isfinite(value[rows]) & (value[rows] >= least))
    for k in rows[wrong][:1].tolist():
        checked_value(int(kind[k]), names[k], float(value[k]))


GROUND = 0
"""Index of the ground node, in every circuit (whether or not an element touches it)."""

GROUND_NAMES = frozenset({"0", "gnd"})


def index_of(names: Iterable[str], others: Mapping[str, int] | None = None) -> dict[str, int]:
    """Positions by name in lower case; ``others`` are positions of further names."""
    found = {str(name).lower(): k for k, name in enumerate(names)}
    found.update(others or {})
    return found


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The error message for an unknown name, with the nearest known ones."""
    hint = similar(name.lower(), islice(known, 5000))
    return f"no {what} is called {name!r}" + (f"; {hint}" if hint else "")


class ElementTable:
    """Elements by row, nodes by index; `circuitsim.circuit.Circuit` adds construction and changes.

    Parameters
    ----------
    title : str
        First line of the deck.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.notes: tuple[Any, ...] = ()
        """Warnings and notes (`Problem`) of the deck."""
        self._kind = array("b")
        self._first = array("q")
        self._second = array("q")
        self._value = array("d")
        self._names: list[str] = []
        self._index: dict[str, int] | None = {}
        self._node_names: list[str] = ["0"]
        self._node_index: dict[str, int] | None = {"0": GROUND, "gnd": GROUND}
        self._origins: dict[int, Location] = {}
        self._deck_origins: Any = None  # the same for whole columns: an object with get(k)
        self._devices: dict[int, Device] = {}  # by element
        self._laws: dict[int, Law] = {}  # of controlled elements
        self._lent = False  # whether columns and names are shared with other circuits
        self._arrays: CircuitArrays | None = None
        self.dynamics: Any = None
        """A deck's data for transient and AC analysis: a `FollowingSources` of `circuitsim.netlist`."""

    def _append(
        self, code: int, name: str, first: str, second: str, number: float, origin: Location | None = None
    ) -> None:
        """Append an element with a checked value."""
        key = arguments.name("element name", name).lower()
        if key in self._element_index():
            raise TopologyError(f"{name}: the name is taken already")
        self._keep_to_itself()
        self._element_index()[key] = len(self._kind)
        if origin is not None:
            self._origins[len(self._kind)] = origin
        self._names.append(name)
        self._kind.append(code)
        self._first.append(self.node(first))
        self._second.append(self.node(second))
        self._value.append(number)
        self._arrays = None

    def node(self, name: str | int) -> int:
        """Index of the node called ``name`` (``0`` and ``gnd`` are ground), added if it is new; 1 is ``"1"``."""
        key = str(name).lower()
        found: int | None = self._index_of_nodes().get(key)
        if found is None:
            new = arguments.node("node name", name)
            self._keep_to_itself()
            found = self._index_of_nodes()[key] = len(self._node_names)
            self._node_names.append(new)
            self._arrays = None
        return found

    def _keep_to_itself(self) -> None:
        """Copy shared columns and names before the circuit grows."""
        if self._lent:
            self._kind, self._first, self._second = self._kind[:], self._first[:], self._second[:]
            self._value = self._value[:]
            self._names, self._node_names = self._names[:], self._node_names[:]
            self._index = self._node_index = None
            self._origins, self._devices, self._laws = dict(self._origins), dict(self._devices), dict(self._laws)
            self.dynamics = None if self.dynamics is None else self.dynamics.copied()
            self._lent = False

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
            No such element, or one that is not a device.
        """
        found = self._devices.get(self.element_index(name))
        if found is None:
            raise TopologyError(f"{name} is a {self[name].kind}, which has no parameters but its value")
        return found

    def device_parameter(self, name: str) -> tuple[int, str] | None:
        """The element and the parameter of a name like ``D1.vfwd``; None for any other name."""
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
        name = str(name)
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

    def origin(self, k: int) -> Location | None:
        """Where element ``k`` was written, if it came from a deck."""
        found = self._origins.get(k)
        return found if found is not None or self._deck_origins is None else self._deck_origins.get(k)

    def columns(self) -> tuple[array[int], array[int], array[int], array[float]]:
        """Kind, first node, second node and value of all elements, without numpy; for reading only."""
        return self._kind, self._first, self._second, self._value

    def arrays(self) -> CircuitArrays:
        """The circuit as read-only numpy arrays (cached until the circuit grows)."""
        if self._arrays is None:
            import numpy as np

            types = np.int8, np.int64, np.int64, np.float64
            kind, first, second, value = (np.array(column, dtype) for column, dtype in zip(self.columns(), types))
            for column in (kind, first, second, value):
                column.flags.writeable = False
            self._arrays = CircuitArrays(kind, first, second, value, len(self._node_names))
        return self._arrays

    def count(self) -> dict[str, int]:
        """Number of elements of each letter present, in the order of the element table."""
        found: dict[str, int] = {}
        for row, n in self.count_models():
            found[row.letter] = found.get(row.letter, 0) + n
        return found

    def count_models(self) -> list[tuple[ElementModel, int]]:
        """Number of elements of each model present, in the order of the element table."""
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
