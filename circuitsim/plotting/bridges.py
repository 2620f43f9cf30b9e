"""Bridges: four equal arms between two sides and two ends, which a schematic shows as a diamond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from circuitsim.circuit import GROUND

LONGEST = 4
"""Most elements in series between the two sides."""

Incident = Mapping[int, Sequence[tuple[int, int]]]
"""For each node its elements, and the node at the other end of each."""


class Bridge(NamedTuple):
    """The nodes of one bridge, and its arms.

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


def bridges(first: Sequence[int], second: Sequence[int], kind: Sequence[int]) -> list[Bridge]:
    """The bridges of a circuit, no two with a node in common but ground.

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
    found: list[Bridge] = []
    used: set[int] = set()
    for side in sorted(incident):
        bridge = None if side == GROUND or len(incident[side]) != 3 else _from(side, incident, kind)
        if bridge is not None:
            own = {bridge.left, bridge.right, bridge.top, bridge.bottom, *bridge.middle} - {GROUND}
            if not own & used:
                found.append(bridge)
                used |= own
    return found


def _from(side: int, incident: Incident, kind: Sequence[int]) -> Bridge | None:
    """The bridge whose first side this node is."""
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
            return Bridge(side, node, top, bottom, tuple(middle), elements)
    return None
