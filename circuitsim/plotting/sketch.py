"""A circuit to be drawn: vertices to place, and bundles of elements between them.

Ground is not a vertex: every node connected to it gets a ground symbol of its own, as in a hand-drawn schematic, so
that the many wires to ground cross no other wires. Bridges, four equal arms between two sides and two ends, are drawn
as diamonds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from circuitsim.circuit import GROUND, Circuit

LONGEST = 4
"""Maximum number of elements in series between the two sides."""

Incident = Mapping[int, Sequence[tuple[int, int]]]
"""For each node its elements, and the node at the other end of each."""


class Diamond(NamedTuple):
    """The nodes of one bridge, or their vertices, and its arms.

    Attributes
    ----------
    left, right : int
        The sides: two arms and one further element at each.
    top, bottom : int
        The ends; a grounded one is the bottom.
    middle : tuple of int
        Nodes in series between the sides, from left to right.
    arms : tuple of int
        Its four elements.
    """

    left: int
    right: int
    top: int
    bottom: int
    middle: tuple[int, ...]
    arms: tuple[int, ...]


def bridges(first: Sequence[int], second: Sequence[int], kind: Sequence[int]) -> list[Diamond]:
    """The bridges of a circuit, no two with a common node except ground.

    Parameters
    ----------
    first, second : sequence of int
        Nodes of each element.
    kind : sequence of int
        Kind of each element; the arms of a bridge are of one kind.
    """
    incident: dict[int, list[tuple[int, int]]] = {}
    for k, (a, b) in enumerate(zip(first, second)):
        if a != b:
            incident.setdefault(a, []).append((k, b))
            incident.setdefault(b, []).append((k, a))
    found: list[Diamond] = []
    used: set[int] = set()
    for side in sorted(incident):
        bridge = None if side == GROUND or len(incident[side]) != 3 else _from(side, incident, kind)
        if bridge is not None:
            own = {bridge.left, bridge.right, bridge.top, bridge.bottom, *bridge.middle} - {GROUND}
            if not own & used:
                found.append(bridge)
                used |= own
    return found


def _from(side: int, incident: Incident, kind: Sequence[int]) -> Diamond | None:
    """The bridge with this node as its first side."""
    for start, onward in incident[side]:
        arms = {node: k for k, node in incident[side] if k != start}
        middle: list[int] = []
        last, node = start, onward
        while node != GROUND and len(incident[node]) == 2 and len(middle) < LONGEST - 1:
            middle.append(node)
            last, node = next((k, other) for k, other in incident[node] if k != last)
        if node <= side or len(incident[node]) != 3 or node == GROUND:
            continue
        others = {other: k for k, other in incident[node] if k != last}
        elements = (*arms.values(), *others.values())
        if len(arms) == 2 and arms.keys() == others.keys() and len({kind[k] for k in elements}) == 1:
            bottom, top = sorted(arms)
            return Diamond(side, node, top, bottom, tuple(middle), elements)
    return None


MOST = 200
"""Maximum number of nodes of a circuit searched for bridges; larger ones are drawn without symbols."""


class Bundle(NamedTuple):
    """Elements (positions in the circuit) that join the same two vertices, side by side."""

    start: int
    end: int
    elements: tuple[int, ...]


class Sketch(NamedTuple):
    """The vertices and bundles to place.

    Attributes
    ----------
    node : list of int
        The circuit's node at each vertex; ``GROUND`` at a ground symbol.
    parent : list of int
        The vertex of a ground symbol; −1 at other vertices.
    bundles : list of Bundle
        A ground symbol is always the end of its bundle.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    diamonds : list of Diamond
        Bridges; a grounded end is one ground symbol (without parent) for both arms.
    """

    node: list[int]
    parent: list[int]
    bundles: list[Bundle]
    loops: list[int]
    diamonds: list[Diamond]


def sketch(circuit: Circuit) -> Sketch:
    """The vertices and bundles of a circuit, in the order of its elements.

    Parameters
    ----------
    circuit : Circuit
    """
    kind, first, second = (column.tolist() for column in circuit.arrays()[:3])
    found = bridges(first, second, kind) if len({*first, *second}) <= MOST else []
    grounded = {k: number for number, bridge in enumerate(found) if bridge.bottom == GROUND for k in bridge.arms}
    corner: dict[int, int] = {}
    node: list[int] = []
    parent: list[int] = []
    vertex: dict[int, int] = {}
    symbol: dict[int, int] = {}
    bundles: dict[tuple[int, int], list[int]] = {}
    loops: list[int] = []

    def place(key: int) -> int:
        if key not in vertex:
            vertex[key] = len(node)
            node.append(key)
            parent.append(-1)
        return vertex[key]

    for k, (a, b) in enumerate(zip(first, second)):
        if a == b:
            loops.append(k)
            continue
        if GROUND in (a, b):
            end = place(max(a, b))
            if k in grounded:
                if grounded[k] not in corner:
                    corner[grounded[k]] = len(node)
                    node.append(GROUND)
                    parent.append(-1)
                bundles.setdefault((end, corner[grounded[k]]), []).append(k)
                continue
            if end not in symbol:
                symbol[end] = len(node)
                node.append(GROUND)
                parent.append(end)
            key = end, symbol[end]
        else:
            u, v = place(a), place(b)
            key = min(u, v), max(u, v)
        bundles.setdefault(key, []).append(k)
    diamonds = [
        own._replace(
            left=vertex[own.left],
            right=vertex[own.right],
            top=vertex[own.top],
            bottom=corner[number] if number in corner else vertex[own.bottom],
            middle=tuple(vertex[v] for v in own.middle),
        )
        for number, own in enumerate(found)
    ]
    return Sketch(node, parent, [Bundle(*key, tuple(elements)) for key, elements in bundles.items()], loops, diamonds)
