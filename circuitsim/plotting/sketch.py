"""A circuit to be drawn: vertices to place, and bundles of elements between them.

Ground is not a vertex: every node connected to it gets a ground symbol of its own, as in a hand-drawn schematic, so
that the many wires to ground cross no other wires. The four equal arms of a bridge are slanted, and share one ground
symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from circuitsim.circuit import GROUND, Circuit


class Bundle(NamedTuple):
    """Elements (positions in the circuit) that join the same two vertices, side by side."""

    start: int
    end: int
    elements: tuple[int, ...]
    slanted: bool = False


class Sketch(NamedTuple):
    """The vertices and bundles to place.

    Attributes
    ----------
    node : list of int
        The circuit's node at each vertex; ``GROUND`` at a ground symbol.
    parent : list of int
        The vertex of a ground symbol; −1 at other vertices, and at the ground symbol of a bridge.
    bundles : list of Bundle
        A ground symbol is always the end of its bundle.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    """

    node: list[int]
    parent: list[int]
    bundles: list[Bundle]
    loops: list[int]


SIDE = 3
"""Number of elements at each side of a bridge: two arms, and one between the sides."""

MOST = 200
"""Maximum number of nodes of a circuit searched for bridges; larger ones are drawn without symbols."""


def bridge_arms(first: Sequence[int], second: Sequence[int], kind: Sequence[int]) -> dict[int, int]:
    """Element → number of its bridge, for the arms of bridges, no two of which have a common node except ground.

    Two nodes are the sides of a bridge if each has three elements, and four of these, all of one kind, are arms: they
    lead to the same two nodes. The others lead from one side to the other.
    """
    incident: dict[int, dict[int, int]] = {}
    for k, (a, b) in enumerate(zip(first, second)):
        if a != b:
            incident.setdefault(a, {})[k] = b
            incident.setdefault(b, {})[k] = a
    found: dict[int, int] = {}
    used: set[int] = set()
    sides = [node for node in sorted(incident) if len(incident[node]) == SIDE and node != GROUND]
    for one, other in combinations(sides, 2):
        leads = [*incident[one].items(), *incident[other].items()]
        ends = {*incident[one].values()} & {*incident[other].values()}
        ends = {end for end in ends if len(ends) == 2 or len(incident[end]) >= SIDE}
        arms = [k for k, end in leads if end in ends]
        across = all(end in (*ends, one, other) or len(incident[end]) == 2 for _, end in leads)
        nodes = {one, other, *ends} - {GROUND}
        if across and len(ends) == 2 and len(arms) == 4 and len({kind[k] for k in arms}) == 1 and not nodes & used:
            found.update(dict.fromkeys(arms, len(used)))
            used |= nodes
    return found


def sketch(circuit: Circuit) -> Sketch:
    """The vertices and bundles of a circuit, in the order of its elements.

    Parameters
    ----------
    circuit : Circuit
    """
    kind, first, second = (column.tolist() for column in circuit.arrays()[:3])
    bridges = bridge_arms(first, second, kind) if len({*first, *second}) <= MOST else {}
    node: list[int] = []
    parent: list[int] = []
    number: dict[tuple[int, ...], int] = {}
    bundles: dict[tuple[int, int], list[int]] = {}
    loops: list[int] = []

    def vertex(key: tuple[int, ...], above: int = -1) -> int:
        """The vertex of a node, or of the ground symbol of a vertex or a bridge."""
        if key not in number:
            number[key] = len(node)
            node.append(key[0])
            parent.append(above)
        return number[key]

    for k, (a, b) in enumerate(zip(first, second)):
        if a == b:
            loops.append(k)
            continue
        if GROUND in (a, b):
            u = vertex((max(a, b),))
            v = vertex((GROUND, -1, bridges[k])) if k in bridges else vertex((GROUND, u), u)
        else:
            u, v = sorted((vertex((a,)), vertex((b,))))
        bundles.setdefault((u, v), []).append(k)
    made = [Bundle(*key, tuple(elements), elements[0] in bridges) for key, elements in bundles.items()]
    return Sketch(node, parent, made, loops)
