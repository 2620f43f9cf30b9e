"""The topology-dependent data of a small circuit: coordinates, order of elimination, positions of all numbers.

A `Plan` consists of plain arrays; interpreted and compiled, `plan` agrees to 1e-12
(`circuitsim.engine.small.kernels`). It covers *regular* circuits, nearly all of them: without loops of voltage
constraints. All others are flagged, for the large driver.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, grow_forest
from circuitsim.circuit.elements import DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.engine.small.order import eliminate

UPDATES = 2_000_000
"""Maximum number of updates of one elimination (one to two milliseconds); beyond, the large driver's dense panels
win."""

NOWHERE = -1
"""Slot of a branch with both ends in the same tree of voltage sources."""


class Plan(NamedTuple):
    """Topology of a circuit, analysed; *coordinates* are super-nodes in order of elimination, ground is n.

    Attributes
    ----------
    n : int
        Number of unknown coordinates.
    regular : bool
        Whether there is no loop of voltage constraints, nor a branch across constraints alone that needs a special
        check.
    coordinate : (n_nodes,) int array
        Super-node of each node.
    tree_node, tree_parent, tree_edge : int arrays
        Voltage constraints from the roots outwards: node, its parent, the element between them.
    resistor, resistor_slot, resistor_first, resistor_second : int arrays
        Elements, the slot for each one's conductance (`NOWHERE`: inside a super-node), and the nodes it joins.
    diode, diode_slot, anode, cathode : int arrays
        The same for diodes.
    col_ptr, rows : int arrays
        Pattern of the factor by columns, rows ascending, without ground. Slots 0 … fill − 1 are its entries; slot
        fill + k joins coordinate k to ground.
    supernode_end : (n,) int array
        The coordinate after the last of each one's supernode: consecutive coordinates, each with the pattern of the
        previous one without its first row.
    row_ptr, row_col, row_slot : int arrays
        The same by rows: for each row its columns, ascending, and the slots.
    """

    n: int
    regular: bool
    coordinate: np.ndarray
    tree_node: np.ndarray
    tree_parent: np.ndarray
    tree_edge: np.ndarray
    resistor: np.ndarray
    resistor_slot: np.ndarray
    resistor_first: np.ndarray
    resistor_second: np.ndarray
    diode: np.ndarray
    diode_slot: np.ndarray
    anode: np.ndarray
    cathode: np.ndarray
    col_ptr: np.ndarray
    rows: np.ndarray
    supernode_end: np.ndarray
    row_ptr: np.ndarray
    row_col: np.ndarray
    row_slot: np.ndarray


def voltage_forest(n, first, second):
    """Nodes, parents, edges and roots of the forest of voltage constraints, grown from ground."""
    m = first.size
    tracks = Tracks(np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(2 * m, np.int64), np.empty(n, np.int64))
    node, parent, edge = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    root = np.empty(n, np.int64)
    found = grow_forest(n, m, first, second, 0, np.zeros(n), tracks, node, parent, edge, root)
    return node[:found], parent[:found], edge[:found], root


def arrange(n, position, ptr, members):
    """The pattern in elimination order: by columns (rows ascending), by rows (columns ascending), its supernodes."""
    rows = np.empty(members.size, np.uint32)
    row_ptr = np.zeros(n + 1, np.int64)
    for q in range(members.size):
        row_ptr[position[members[q]] + 1] += 1
    for k in range(n):
        row_ptr[k + 1] += row_ptr[k]
    put = row_ptr[:n].copy()
    row_col, row_slot = np.empty(members.size, np.uint32), np.empty(members.size, np.uint32)
    for k in range(n):
        for q in range(ptr[k], ptr[k + 1]):
            r = position[members[q]]
            row_col[put[r]] = k
            put[r] += 1
    put = ptr[:n].copy()
    for r in range(n):
        for t in range(row_ptr[r], row_ptr[r + 1]):
            k = row_col[t]
            rows[put[k]] = r
            row_slot[t] = put[k]
            put[k] += 1
    end = np.empty(n, np.int64)
    for k in range(n - 1, -1, -1):
        end[k] = k + 1
        size = ptr[k + 1] - ptr[k]
        if size > 0 and rows[ptr[k]] == k + 1 and ptr[k + 2] - ptr[k + 1] == size - 1:
            end[k] = end[k + 1]
    return rows, row_ptr, row_col, row_slot, end


def find_slots(n, a, b, ptr, rows):
    """Slot of each branch a–b between coordinates (see `Plan`)."""
    slot = np.empty(a.size, np.int64)
    for e in range(a.size):
        low, high = min(a[e], b[e]), max(a[e], b[e])
        if low == high:
            slot[e] = NOWHERE
        elif high == n:
            slot[e] = rows.size + low
        else:
            q, above = ptr[low], ptr[low + 1]
            while above - q > 1:  # its place is from q to before above
                middle = (q + above) // 2
                if rows[middle] <= high:
                    q = middle
                else:
                    above = middle
            slot[e] = q
    return slot


def taken(column, at):
    """``column[at]``, as a loop: numpy's array indexing would take seconds to compile."""
    found = np.empty(at.size, np.int64)
    for k in range(at.size):
        found[k] = column[at[k]]
    return found


def sort_elements(kind, value):
    """Voltage constraints (sources, inductors, resistors of zero ohm), resistors and diodes, ascending."""
    found = np.empty((3, kind.size), np.int64)
    count = np.zeros(3, np.int64)
    for e in range(kind.size):
        group = -1
        if kind[e] == DIODE:
            group = 2
        elif kind[e] == RESISTOR and value[e] != 0.0:
            group = 1
        elif kind[e] == VOLTAGE or kind[e] == INDUCTOR or kind[e] == RESISTOR:
            group = 0
        if group >= 0:
            found[group, count[group]] = e
            count[group] += 1
    return found[0, : count[0]].copy(), found[1, : count[1]].copy(), found[2, : count[2]].copy()


def plan(kind, first, second, value, n_nodes, late_node, limit):
    """The plan of a circuit given as columns (see `circuitsim.circuit.CircuitArrays`).

    Parameters
    ----------
    late_node : (n_nodes,) bool array
        Nodes whose coordinates are eliminated last (where negative conductances will be added).
    limit : int
        Maximum number of updates of a factorisation; the plan of a circuit that needs more is empty.
    """
    voltage, resistor, diode = sort_elements(kind, value)
    tree_node, tree_parent, edge, root = voltage_forest(n_nodes, taken(first, voltage), taken(second, voltage))
    regular = edge.size == voltage.size
    number = np.full(n_nodes, -1, np.int64)
    n = 0
    for k in range(n_nodes):
        if root[k] == k and k != 0:
            number[k] = n
            n += 1
    number[0] = n
    name = taken(number, root)
    late = np.zeros(n + 1, np.bool_)
    for k in range(n_nodes):
        if late_node[k]:
            late[name[k]] = True
    branch = np.empty(resistor.size + diode.size, np.int64)
    for k in range(resistor.size):
        branch[k] = resistor[k]
    for k in range(diode.size):
        branch[resistor.size + k] = diode[k]
    ends = taken(name, taken(first, branch)), taken(name, taken(second, branch))
    position, ptr, members = eliminate(n, ends[0], ends[1], late, limit)
    if position.size < n:
        none, pattern = position[:0], members[:0]
        return Plan(
            0,
            False,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            pattern,
            none,
            none,
            pattern,
            pattern,
        )
    rows, row_ptr, row_col, row_slot, supernode_end = arrange(n, position, ptr, members)
    coordinate = np.empty(n_nodes, np.int64)
    for k in range(n_nodes):
        coordinate[k] = position[name[k]] if name[k] < n else n
    joined = taken(first, resistor), taken(second, resistor)
    resistor_slot = find_slots(n, taken(coordinate, joined[0]), taken(coordinate, joined[1]), ptr, rows)
    anode, cathode = taken(first, diode), taken(second, diode)
    diode_slot = find_slots(n, taken(coordinate, anode), taken(coordinate, cathode), ptr, rows)
    return Plan(
        n,
        regular,
        coordinate,
        tree_node,
        tree_parent,
        taken(voltage, edge),
        resistor,
        resistor_slot,
        joined[0],
        joined[1],
        diode,
        diode_slot,
        anode,
        cathode,
        ptr,
        rows,
        supernode_end,
        row_ptr,
        row_col,
        row_slot,
    )
