"""Circuits whose control graph is acyclic: each of their sections is a convex circuit, given those before it.

Voltage sources, shorts and controlled voltages connected to ground hold their nodes; the rest falls into sections. A
section depends on the controls of its own controlled sources, and on the held nodes it touches. If these dependences
are acyclic, every element has a level: elements up to a level are a circuit of independent sources, whose values follow
from voltages and currents below that level.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, DIODE, VOLTAGE
from circuitsim.circuit.expansion import stand_in
from circuitsim.controlled.certificate import LawArrays
from circuitsim.controlled.search import ordered


def levels(arrays: CircuitArrays, laws: LawArrays) -> np.ndarray | None:
    """The level of each element (m,); None where controls form a loop or are currents of holding sources.

    A voltage source with a controlling current belongs to its section, where the current is computed. Diodes between
    held nodes are in no section: −1.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    from circuitsim.program.components import component_labels

    kind, first, second, value, n = arrays
    if laws.nullor.any():
        return None
    fixes = arrays.fixed_voltages
    fixes[laws.control] &= kind[laws.control] != VOLTAGE
    fixes[laws.element] = ~laws.current
    a, b = first[fixes], second[fixes]
    nodes, before = breadth_first_order(csr_array((np.ones(a.size), (a, b)), (n, n)), GROUND, directed=False)
    held = np.isin(np.arange(n), nodes)
    if held[a].sum() >= nodes.size:
        return None  # holding sources in a loop
    joins = ~(held[first] | held[second]) & (kind != CAPACITOR)
    section = component_labels(n, first[joins], second[joins])
    controlled, control = laws.controls(value, n).tocoo().coords
    ends = np.array([np.append(np.arange(n), end)[control] for end in (first, second)])
    if held[ends[:, control >= n]].all(axis=0).any():
        return None
    holds, found = fixes & held[first], list[tuple[np.ndarray, np.ndarray, int]]()
    for one, other in ((first, second), (second, first)):
        follows = ~held[one] | (holds & (before[one] == other))
        touches, own = follows & held[other] & (kind != CAPACITOR), follows[controlled]
        found.append((one[touches], other[touches], 0))
        found += [(one[controlled[own]], end[own], 1) for end in ends]
    user, used = (section[np.concatenate(part)] for part in list(zip(*found))[:2])
    step = np.repeat([step for _, _, step in found], [users.size for users, _, _ in found])
    order = ordered(n, user, used)
    if len(order) < n or (user == used).any():
        return None
    rank, level = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    rank[order] = np.arange(n)
    for k in np.argsort(rank[user]).tolist():
        level[user[k]] = max(level[user[k]], level[used[k]] + step[k])
    level = level[section]
    own_level = np.maximum(level[first], level[second])
    for end in ends:
        np.maximum.at(own_level, controlled, level[end] + 1)
    return np.where((kind == DIODE) & held[first] & held[second], -1, own_level)


def stages(circuit: Circuit, level: np.ndarray) -> list[tuple[np.ndarray, Circuit]]:
    """Of each level the elements up to it, and their circuit with independent sources in place of controlled ones; with
    all nodes. The last one has all elements with a level."""
    kind, first, second, value, n = stand_in(circuit).arrays()
    found = []
    for top in np.unique(level[level >= 0]).tolist():
        own = np.flatnonzero((level >= 0) & (level <= top))
        names = [circuit.names[k] for k in own.tolist()]
        columns = kind[own], first[own], second[own], value[own], n
        found.append((own, Circuit.from_arrays(*columns, "", names, [*circuit.node_names])))
    return found
