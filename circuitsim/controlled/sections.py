"""Passive sections of a circuit whose control graph is acyclic: each is a convex circuit, given those before it.

Voltage sources, shorts and controlled voltages connected to ground hold their nodes; the rest falls into components. A
component depends on the controls of its own controlled sources, and on those of the held nodes it touches. If these
dependences are acyclic, every component is a circuit of independent sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.controlled.blocks import ordered
from circuitsim.controlled.equations import references


class Section(NamedTuple):
    """A component: its nodes, and its elements (with an end among them)."""

    nodes: np.ndarray
    elements: np.ndarray


class Hold(NamedTuple):
    """A held node: the element that holds it, that element's other node, +1 if the held node is the first terminal."""

    node: int
    element: int
    other: int
    sign: float


class Sections(NamedTuple):
    """Sections and held nodes in topological order; the references of parts not connected to ground."""

    steps: tuple[Section | Hold, ...]
    references: tuple[int, ...]


def sections(arrays: CircuitArrays, laws: Mapping[int, Law]) -> Sections | None:
    """The sections; None where controls form a loop (or the current of a holding source is a control)."""
    from circuitsim.program.components import component_labels

    kind, first, second, _, n = arrays
    holds = _holds(arrays, laws)
    if holds is None:
        return None
    held = np.zeros(n, dtype=bool)
    held[[GROUND, *holds]] = True
    joins = ~(held[first] | held[second]) & (kind != CAPACITOR)
    label = component_labels(n, first[joins], second[joins])
    owner = {int(k): -1 if held[k] else int(label[k]) for k in range(n)}

    def of_node(node: int) -> list[tuple[str, int]]:
        if node == GROUND:
            return []
        return [("held", node)] if held[node] else [("part", owner[node])]

    holder = {hold.element: node for node, hold in holds.items()}
    needs: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for k, law in laws.items():
        users = _users(k, holder, first, second, of_node)
        for c in law.currents:
            ends = {owner[int(first[c.element])], owner[int(second[c.element])]} - {-1}
            if not ends:
                return None
            for user in users:
                needs.setdefault(user, set()).update(("part", p) for p in ends)
        for _, plus, minus in law.voltages:
            for user in users:
                needs.setdefault(user, set()).update(of_node(plus) + of_node(minus))
    for node, hold in holds.items():
        needs.setdefault(("held", node), set()).update(of_node(hold.other))
    members = {p: np.flatnonzero(label == p) for p in sorted({p for p in owner.values() if p >= 0})}
    for p in members:
        needs.setdefault(("part", p), set())
    for e in np.flatnonzero(kind != CAPACITOR).tolist():
        a, b = int(first[e]), int(second[e])
        for one, other in ((a, b), (b, a)):
            if owner[one] >= 0 and held[other]:
                needs["part", owner[one]].update(of_node(other))
    keys = list(needs)
    place = {key: k for k, key in enumerate(keys)}
    pairs = [(place[user], place[used]) for user, every in needs.items() for used in every]
    order = ordered(len(keys), *np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    if len(order) < len(keys) or any(user == used for user, used in pairs):
        return None
    steps: list[Section | Hold] = []
    for what, which in (keys[k] for k in order):
        if what == "held":
            steps.append(holds[which])
        else:
            inside = np.isin(first, members[which]) | np.isin(second, members[which])
            steps.append(Section(members[which], np.flatnonzero(inside)))
    return Sections(tuple(steps), tuple(references(arrays, laws).tolist()))


def sensors(laws: Mapping[int, Law]) -> list[int]:
    """Elements with controlling currents, in order."""
    return sorted({control.element for law in laws.values() for control in law.currents})


def _users(
    k: int,
    holder: Mapping[int, int],
    first: np.ndarray,
    second: np.ndarray,
    of_node: Callable[[int], list[tuple[str, int]]],
) -> list[tuple[str, int]]:
    """Targets of controlled element ``k``."""
    if k in holder:
        return [("held", holder[k])]
    return [what for node in (int(first[k]), int(second[k])) for what in of_node(node) if what[0] == "part"]


def _holds(arrays: CircuitArrays, laws: Mapping[int, Law]) -> dict[int, Hold] | None:
    """Nodes held relative to ground by voltages; None where these close a loop, or there is a nullor.

    A voltage source with a controlling current belongs to its section, where the current is computed.
    """
    kind, first, second, value, _ = arrays
    fixes = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & (value == 0.0))
    for k, law in laws.items():
        if law.quantity is Quantity.NEITHER:
            return None
        fixes[k] = law.quantity is Quantity.VOLTAGE
    for k in sensors(laws):
        fixes[k] &= k in laws or kind[k] != VOLTAGE
    around: dict[int, list[int]] = {}
    for e in np.flatnonzero(fixes).tolist():
        around.setdefault(int(first[e]), []).append(e)
        around.setdefault(int(second[e]), []).append(e)
    found: dict[int, Hold] = {}
    stack, used = [GROUND], set()
    while stack:
        node = stack.pop()
        for e in around.get(node, ()):
            if e in used:
                continue
            used.add(e)
            forward = int(second[e]) == node
            new = int(first[e]) if forward else int(second[e])
            if new in found or new == GROUND:
                return None
            found[new] = Hold(new, e, node, 1.0 if forward else -1.0)
            stack.append(new)
    return found
