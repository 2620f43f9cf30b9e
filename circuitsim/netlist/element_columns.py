"""The columns of a circuit while its elements are written down."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

from circuitsim.circuit.names import index_of
from circuitsim.models import Device
from circuitsim.netlist import controlled_laws
from circuitsim.netlist.scope import Scope


class Origins:
    """File and line of each element, stored as columns; ``get`` as in a dictionary."""

    def __init__(self, lines: array[int], starts: list[int], files: list[str]) -> None:
        self._lines, self._starts, self._files = lines, starts, files

    def get(self, k: int) -> tuple[str, int] | None:
        """Where element ``k`` was written."""
        if not 0 <= k < len(self._lines):
            return None
        return self._files[bisect_left(self._starts, k + 1) - 1], self._lines[k]


def bisected(places: list[int], start: int, stop: int) -> list[int]:
    """Those of the sorted ``places`` from ``start`` to before ``stop``."""
    return places[bisect_left(places, start) : bisect_left(places, stop)]


def extended(column: array[Any], piece: array[Any]) -> array[Any]:
    """``column`` with ``piece`` behind it; the piece itself where it is the first."""
    if not column:
        return piece
    column.extend(piece)
    return column


class ElementColumns:
    """The growing circuit."""

    def __init__(self, top: Scope, global_names: dict[str, str]) -> None:
        self.kind, self.value = array("b"), array("d")
        self.first, self.second, self.lines = array("q"), array("q"), array("q")
        self.names: list[str] = []
        self.devices: dict[int, Device] = {}
        self.pending: dict[int, controlled_laws.PendingLaw] = {}
        self.alternatives: dict[int, controlled_laws.Alternative] = {}
        self.factors: dict[int, float] = {}
        """Position → value over the value on the card, where they differ (``m=``, temperature)."""
        self.starts: list[int] = []
        self.files: list[str] = []
        self.node_names = top.node_names.copy()
        self.nodes = index_of(self.node_names, {"gnd": 0})
        for name in global_names.values():
            self.node(name)

    def node(self, name: str) -> int:
        """The node called ``name``, added if it is new (``x1.m`` written outside means the node m of x1)."""
        key = name.lower()
        found: int | None = self.nodes.get(key)
        if found is None:
            found = len(self.node_names)
            self.node_names.append(name)
            self.nodes[key] = found
        return found
