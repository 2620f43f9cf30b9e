"""Voltage drops of power grids: supply nets, their worst nodes, and the currents of their pads.

A net is a set of nodes joined by resistors, inductors and sources of 0 V, without ground. Its pads are the voltage
sources between one of its nodes and ground; its nominal voltage is the largest of theirs in magnitude. The drop of a
node is the nominal voltage minus its own, in magnitude; a rise of a ground net counts as positive, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.errors import TopologyError
from circuitsim.formats import Result, Table, plain, quantity
from circuitsim.netlist.deck import Deck
from circuitsim.program.components import component_labels

_PLACE = re.compile(r"_(-?\d{1,15})_(-?\d{1,15})$")


class Pad(NamedTuple):
    """A voltage source that supplies a net.

    Attributes
    ----------
    name : str
        The source.
    node : str
        Its node in the net.
    net : int
        Position of its net.
    voltage : float
        Its voltage, V.
    current : float
        Current it delivers into the net, A; negative if it draws current.
    """

    name: str
    node: str
    net: int
    voltage: float
    current: float


class Net(NamedTuple):
    """A supply net.

    Attributes
    ----------
    nominal : float
        Voltage without load, V.
    nodes, pads : int
        Their numbers.
    current : float
        Sum of its pads' currents, A.
    worst : float
        Largest drop, V.
    worst_node : str
    mean : float
        Mean drop of its nodes, V.
    """

    nominal: float
    nodes: int
    pads: int
    current: float
    worst: float
    worst_node: str
    mean: float


@dataclass(frozen=True, eq=False, repr=False)
class IrDrop(Result):
    """Drops of a power grid.

    Attributes
    ----------
    point : OperatingPoint
        With its certificate.
    nets : tuple of Net
        In descending order of size.
    pads : tuple of Pad
        In descending order of current.
    net : (n_nodes,) int64 array
        Position of each node's net; -1 for nodes outside all nets.
    drop : (n_nodes,) float array
        V; nan for nodes outside all nets.
    """

    point: OperatingPoint
    nets: tuple[Net, ...]
    pads: tuple[Pad, ...]
    net: np.ndarray
    drop: np.ndarray

    def worst(self, count: int = 10) -> list[tuple[str, int, float, float]]:
        """The nodes with the largest drops.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        list of (str, int, float, float)
            Name, position of the net, node voltage and drop, V; the largest drop first.
        """
        inside = np.flatnonzero(self.net >= 0)
        order = inside[np.lexsort((inside, -self.drop[inside]))][:count]
        names = self.point.circuit.node_names
        return [(names[k], int(self.net[k]), float(self.point.voltages[k]), float(self.drop[k])) for k in order]

    @cached_property
    def places(self) -> np.ndarray:
        """Coordinates x, y of each node (n_nodes, 2): the last two numbers of names such as ``n1_12_35``; else nan."""
        found = np.full((len(self.net), 2), np.nan)
        for k, name in enumerate(self.point.circuit.node_names):
            match = _PLACE.search(name)
            if match is not None:
                found[k] = float(match.group(1)), float(match.group(2))
        return found

    def tables(self) -> dict[str, Table]:
        """``nodes`` of nets: net, voltage, drop; ``nets``: nominal, nodes, pads, current, worst drop, at node, mean
        drop; ``pads``: node, net, voltage, current. Nets are numbered from 0.
        """
        at = np.flatnonzero(self.net >= 0)
        names = self.point.circuit.node_names
        nodes = [names[k] for k in at.tolist()], self.net[at], self.point.voltages[at], self.drop[at]
        nets = [(str(k), *net) for k, net in enumerate(self.nets)]
        pads = [(pad.name, pad.node, str(pad.net), pad.voltage, pad.current) for pad in self.pads]
        heads = "net, nominal, nodes, pads, current, worst drop, at node, mean drop"
        return {
            "nodes": Table(("node", "net", "voltage", "drop"), ("", "", "V", "V"), nodes, True),
            "nets": Table.of(heads, nets, ("", "V", "", "", "A", "V", "", "V"), True),
            "pads": Table.of("pad, node, net, voltage, current", pads, ("", "", "", "V", "A"), True),
        }

    def _figure(self) -> Any:
        if not np.isfinite(self.places).any():
            from circuitsim.plotting.charts import plot_worst_drops

            return plot_worst_drops(self.point.circuit.title, [(name, drop) for name, _, _, drop in self.worst(20)])
        from circuitsim.plotting.charts import plot_drops

        return plot_drops(self)

    def _heading(self) -> tuple[str, str]:
        name, _, _, drop = self.worst(1)[0]
        return self.point.circuit.title, f"largest drop {quantity(drop, 'V')} at {name}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: nets, pads, the ten worst nodes, and the certificate.

        Returns
        -------
        dict
        """
        keys = ("node", "net", "voltage", "drop")
        return {
            "title": self.point.circuit.title,
            "nets": plain(self.nets),
            "pads": plain(self.pads),
            "worst": [dict(zip(keys, row)) for row in self.worst()],
            "certificate": self.point.certificate.to_dict(),
        }


def ir_drop(source: Deck | Circuit | OperatingPoint) -> IrDrop:
    """Drops of the nodes of a power grid, and the currents of its pads.

    Parameters
    ----------
    source : Deck, Circuit or OperatingPoint
        A deck or circuit is solved.

    Returns
    -------
    IrDrop

    Raises
    ------
    TopologyError
        No voltage source lies between a node and ground.
    CircuitError
        As for `circuitsim.solve`.

    Examples
    --------
    >>> import circuitsim
    >>> grid = circuitsim.loads('''two rails
    ... V1 pad 0 1.8
    ... R1 pad a 0.1
    ... R2 a b 0.2
    ... I1 b 0 0.5
    ... ''')
    >>> found = circuitsim.ir_drop(grid)
    >>> [(node, round(drop, 12)) for node, _, _, drop in found.worst(2)]
    [('b', 0.15), ('a', 0.05)]
    >>> round(found.pads[0].current, 12)
    0.5
    """
    from circuitsim.analysis.solve import solve

    if isinstance(source, OperatingPoint):
        point = source
    else:
        point = solve(source)
    kind, first, second, value, n_nodes = point.circuit.arrays()
    ends = (first == GROUND) | (second == GROUND)
    short = (kind == RESISTOR) | (kind == INDUCTOR) | ((kind == VOLTAGE) & (value == 0.0))
    label = component_labels(n_nodes, first[short & ~ends], second[short & ~ends])
    sources = np.flatnonzero((kind == VOLTAGE) & ends & (first != second))
    if not sources.size:
        raise TopologyError("a power grid needs pads: voltage sources between a node and ground")
    pad_node = np.where(first[sources] == GROUND, second[sources], first[sources])
    sign = np.where(first[sources] == GROUND, -1.0, 1.0)
    roots, pad_net = np.unique(label[pad_node], return_inverse=True)
    held, current = sign * value[sources] + 0.0, -sign * point.currents[sources] + 0.0
    nominal = np.zeros(roots.size)
    np.maximum.at(nominal, pad_net, np.abs(held))
    for k in np.flatnonzero(np.abs(held) == nominal[pad_net])[::-1].tolist():
        nominal[pad_net[k]] = held[k]
    size = np.bincount(label, minlength=n_nodes)[roots]
    rank = np.lexsort((roots, -size))
    place = np.empty(roots.size, np.int64)
    place[rank] = np.arange(roots.size)
    net = np.full(n_nodes, -1)
    net[roots] = place
    net = net[label]
    net[GROUND] = -1
    level = nominal[rank]
    drop = np.where(net >= 0, np.where(level > 0.0, 1.0, -1.0)[net] * (level[net] - point.voltages), np.nan)
    columns, order = (sources, pad_node, place[pad_net], held, current), np.lexsort((sources, -np.abs(current)))
    names, nodes = point.circuit.names, point.circuit.node_names
    rows = zip(*(column[order].tolist() for column in columns))
    pads = tuple(Pad(names[k], nodes[node], *numbers) for k, node, *numbers in rows)
    return IrDrop(point, _nets(point, level, net, drop, pads), pads, net, drop)


def _nets(
    point: OperatingPoint, nominal: np.ndarray, net: np.ndarray, drop: np.ndarray, pads: tuple[Pad, ...]
) -> tuple[Net, ...]:
    order = np.argsort(net, kind="stable")
    groups = np.split(order, np.searchsorted(net[order], np.arange(nominal.size)))[1:]
    own: list[list[float]] = [[] for _ in groups]
    for pad in pads:
        own[pad.net].append(pad.current)
    found = []
    for level, inside, currents in zip(nominal.tolist(), groups, own):
        worst = inside[np.argmax(drop[inside])]
        name, largest, mean = point.circuit.node_names[worst], float(drop[worst]), float(drop[inside].mean())
        found.append(Net(level, inside.size, len(currents), float(np.sum(currents)), largest, name, mean))
    return tuple(found)
