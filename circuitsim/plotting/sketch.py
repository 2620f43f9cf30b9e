"""A circuit to be drawn: vertices to place, and edges of parallel elements between them.

Ground is not a vertex: every node connected to it gets a ground symbol of its own, as in a hand-drawn schematic, so
that the many wires to ground cross no other wires. The four equal arms of a bridge are slanted, and share one ground
symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import inner_parts
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import VOLTAGE


class Sketch(NamedTuple):
    """The vertices and edges to place.

    Attributes
    ----------
    node : (n,) int array
        The circuit's node at each vertex; ``GROUND`` at a ground symbol.
    parent : (n,) int array
        The vertex of a ground symbol; −1 at other vertices, and at the ground symbol of a bridge.
    edges : (m, 2) int array
        A ground symbol is always a second end.
    slanted : (m,) bool array
        Edges that are diagonal.
    left : int array
        Vertices preferably on the left: of voltage sources.
    elements : list of list of int
        The elements (positions in the circuit) side by side on each edge.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    """

    node: np.ndarray
    parent: np.ndarray
    edges: np.ndarray
    slanted: np.ndarray
    left: np.ndarray
    elements: list[list[int]]
    loops: list[int]

    def part(self, members: Sequence[int]) -> Sketch:
        """The vertices ``members``, renumbered, and the edges between them."""
        local = np.full(len(self.node) + 1, -1)  # the last one for −1
        local[list(members)] = np.arange(len(members))
        own = (local[self.edges] >= 0).all(1)
        kept = [elements for elements, inside in zip(self.elements, own.tolist()) if inside]
        left = local[self.left]
        vertices = self.node[list(members)], local[self.parent[list(members)]]
        return Sketch(*vertices, local[self.edges[own]], self.slanted[own], left[left >= 0], kept, [])


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
    """The vertices and edges of a circuit, in the order of its elements.

    Parameters
    ----------
    circuit : Circuit
    """
    kind, first, second = (column.tolist() for column in circuit.arrays()[:3])
    hidden = inner_parts(circuit)[1].tolist()
    bridges = bridge_arms(first, second, kind) if len({*first, *second}) <= MOST else {}
    vertices: dict[tuple[int, ...], int] = {}
    edges: dict[tuple[int, int], list[int]] = {}

    def vertex(*key: int) -> int:
        """The vertex of a node (node, −1), or of the ground symbol of a vertex or a bridge (ground, vertex, bridge)."""
        return vertices.setdefault(key, len(vertices))

    for k, (a, b) in enumerate(zip(first, second)):
        if a == b or hidden[k]:
            continue
        if GROUND in (a, b):
            above = vertex(max(a, b), -1)
            ends = above, vertex(GROUND, -1, bridges[k]) if k in bridges else vertex(GROUND, above)
        else:
            ends = min(vertex(a, -1), vertex(b, -1)), max(vertex(a, -1), vertex(b, -1))
        edges.setdefault(ends, []).append(k)
    node, parent = np.array([key[:2] for key in vertices], dtype=int).reshape(-1, 2).T
    joined = np.array([*edges], dtype=int).reshape(-1, 2)
    slanted = np.array([members[0] in bridges for members in edges.values()], dtype=bool)
    supplied = np.array([any(kind[k] == VOLTAGE for k in members) for members in edges.values()], dtype=bool)
    loops = [k for k, (a, b) in enumerate(zip(first, second)) if a == b]
    return Sketch(node, parent, joined, slanted, joined[supplied, 0], [*edges.values()], loops)
