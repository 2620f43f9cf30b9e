"""Subtraction-free elimination of a small circuit: order, positions of all numbers, factor, solves.

A `Plan` holds what depends on the topology: coordinates, an approximate minimum-degree order, the pattern of the
factor. It covers *regular* circuits, nearly all of them: without loops of voltage constraints. All others are flagged,
for the large driver. The factor is that of a weighted graph Laplacian; weights are conductances between coordinates and
to ground. Each pivot is the *sum* of the weights at its coordinate, so there is no cancellation, and an ideal short is
just a weight larger than all others (Grassmann, Taksar & Heyman 1985).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import voltage_forest
from circuitsim.circuit.elements import DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.engine.steps import copy
from circuitsim.solvers.minimum_degree import adjacency, minimum_degree

FASTER = 3
"""Updates of a fully connected block count less by this factor, since they are faster."""


def eliminate(n, a, b, limit):
    """Minimum-degree order of a graph (edges a–b over 0 … n, n is ground) and the factor's pattern.

    Gives up where a factorisation takes more than ``limit`` updates (`FASTER`).

    Returns
    -------
    position : (n,) int array
        Step at which each coordinate is eliminated; empty if it gave up.
    ptr, members : int arrays
        For each step the coordinates adjacent to the eliminated one.
    """
    at, near = adjacency(n, a, b)
    order, position = minimum_degree(at, near), np.empty(n, np.int64)
    for k in range(n):
        position[order[k]] = k
    # A coordinate is adjacent to its own neighbours, and to those of coordinates eliminated into it.
    ptr, members, used, updates = np.zeros(n + 1, np.int64), np.empty(2 * a.size + n, np.uint32), 0, 0
    child, sibling, mark = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for step in range(n):
        k, begin, above = order[step], used, n
        mark[k] = step
        members = lengthened(members, used, used + n)
        for q in range(at[k], at[k + 1]):
            i = near[q]
            if position[i] > step:
                mark[i] = step
                members[used] = i
                used += 1
                above = min(above, position[i])
        c = child[step]
        while c >= 0:
            for q in range(ptr[c], ptr[c + 1]):
                i = members[q]
                if mark[i] != step:
                    mark[i] = step
                    members[used] = i
                    used += 1
                    above = min(above, position[i])
            c = sibling[c]
        ptr[step + 1] = used
        size = used - begin
        updates += size * size if size < n - step - 1 else size * size // FASTER
        if updates > limit:
            return position[:0], ptr, members[:0]
        if above < n:
            sibling[step] = child[above]
            child[above] = step
    return position, ptr, members[:used]


def lengthened(array, used, size):
    """The array, or a longer one with the same first ``used`` numbers if it has no more than ``size``."""
    if size < array.size:
        return array
    longer = np.empty(array.size + size + 1, array.dtype)
    for q in range(used):
        longer[q] = array[q]
    return longer


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
    kind, first, second : (m,) int arrays
        The circuit's columns.

    All arrays are views of one block of memory (`plan_in`).
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
    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray


HEAD = 8
"""Numbers before a plan's arrays in its block: of nodes, elements, voltage constraints in trees, resistors, diodes,
coordinates and entries of the factor; whether it is regular."""


def plan_in(block):
    """The `Plan` in a block of memory: views of its parts, by equal lengths."""
    nodes, m, t, r, d, n, fill = block[0], block[1], block[2], block[3], block[4], block[5], block[6]
    of_element = HEAD + nodes
    of_tree = of_element + 3 * m
    of_resistor = of_tree + 3 * t
    of_diode = of_resistor + 4 * r
    of_column = of_diode + 4 * d
    of_entry = of_column + 3 * (n + 1)
    element, tree = block[of_element:of_tree].reshape(3, m), block[of_tree:of_resistor].reshape(3, t)
    resistor, diode = block[of_resistor:of_diode].reshape(4, r), block[of_diode:of_column].reshape(4, d)
    column = block[of_column:of_entry].reshape(3, n + 1)
    entry = block[of_entry:].view(np.uint32)[: 3 * fill].reshape(3, fill)
    return Plan(
        n,
        block[7] != 0,
        block[HEAD:of_element],
        tree[0],
        tree[1],
        tree[2],
        resistor[0],
        resistor[1],
        resistor[2],
        resistor[3],
        diode[0],
        diode[1],
        diode[2],
        diode[3],
        column[0],
        entry[0],
        column[1],
        column[2],
        entry[1],
        entry[2],
        element[0],
        element[1],
        element[2],
    )


def arrange(made, position, ptr, members):
    """Fill in the pattern in elimination order: by columns (rows ascending), by rows (columns ascending), its
    supernodes."""
    n, rows, row_ptr, row_col = made.n, made.rows, made.row_ptr, made.row_col
    row_ptr[:] = 0
    for q in range(members.size):
        row_ptr[position[members[q]] + 1] += 1
    for k in range(n):
        row_ptr[k + 1] += row_ptr[k]
    put = row_ptr[:n].copy()
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
            made.row_slot[t] = put[k]
            put[k] += 1
    end = made.supernode_end
    for k in range(n - 1, -1, -1):
        end[k] = k + 1
        size = ptr[k + 1] - ptr[k]
        if size > 0 and rows[ptr[k]] == k + 1 and ptr[k + 2] - ptr[k + 1] == size - 1:
            end[k] = end[k + 1]


def find_slots(made, element, first, second, slot):
    """Fill in the nodes that each element joins, and its slot (see `Plan`)."""
    n, ptr, rows = made.n, made.col_ptr, made.rows
    for e in range(slot.size):
        first[e], second[e] = made.first[element[e]], made.second[element[e]]
        a, b = made.coordinate[first[e]], made.coordinate[second[e]]
        low, high = min(a, b), max(a, b)
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


def plan(kind, first, second, value, n_nodes, limit):
    """The block of the plan of a circuit given as columns (see `circuitsim.circuit.CircuitArrays`).

    Parameters
    ----------
    limit : int
        Maximum number of updates of a factorisation; the block of a circuit that needs more is empty.
    """
    voltage, resistor, diode = sort_elements(kind, value)
    tree_node, tree_parent, edge, root = voltage_forest(
        n_nodes, taken(first, voltage), taken(second, voltage), np.zeros(n_nodes)
    )
    number = np.full(n_nodes, -1, np.int64)
    n = 0
    for k in range(n_nodes):
        if root[k] == k and k != 0:
            number[k] = n
            n += 1
    number[0] = n
    name = taken(number, root)
    branch = np.empty(resistor.size + diode.size, np.int64)
    copy(resistor, branch[: resistor.size])
    copy(diode, branch[resistor.size :])
    ends = taken(name, taken(first, branch)), taken(name, taken(second, branch))
    position, ptr, members = eliminate(n, ends[0], ends[1], limit)
    if position.size < n:
        return np.zeros(0, np.int64)
    sizes = n_nodes, kind.size, edge.size, resistor.size, diode.size, n, members.size, int(edge.size == voltage.size)
    length = n_nodes + 3 * (kind.size + edge.size + n + 1) + 4 * branch.size + (3 * members.size + 1) // 2
    block = np.empty(HEAD + length, np.int64)
    for k in range(HEAD):
        block[k] = sizes[k]
    made = plan_in(block)
    copy(kind, made.kind)
    copy(first, made.first)
    copy(second, made.second)
    for k in range(n_nodes):
        made.coordinate[k] = position[name[k]] if name[k] < n else n
    copy(tree_node, made.tree_node)
    copy(tree_parent, made.tree_parent)
    copy(taken(voltage, edge), made.tree_edge)
    copy(resistor, made.resistor)
    copy(diode, made.diode)
    copy(ptr, made.col_ptr)
    arrange(made, position, ptr, members)
    find_slots(made, made.resistor, made.resistor_first, made.resistor_second, made.resistor_slot)
    find_slots(made, made.diode, made.anode, made.cathode, made.diode_slot)
    return block


SHORT = 1e120
"""Weight of a conducting diode, S: absorbs every conductance, and its square is still a double."""


def lower(plan, e):
    """The end of diode ``e`` that is eliminated first: the column of its slot."""
    return min(plan.coordinate[plan.anode[e]], plan.coordinate[plan.cathode[e]])


def factorise(plan, base, closed, dirty, weight, multiplier, pivot, work):
    """Eliminate in order every marked coordinate and all that this affects; the others keep their factors.

    Parameters
    ----------
    base : (fill + n,) float array
        Conductances of the slots without diodes, S.
    closed : (d,) bool array
        Which of ``plan.diode`` are shorts.
    dirty : (n + 1,) bool array
        The coordinates to start from, all of them for a first factor; on return those eliminated.
    weight : (fill + n,) float array
        Overwritten: weights from each coordinate to later ones and to ground when it is eliminated, S.
    multiplier : (fill,) float array
        Overwritten: each entry's weight over its column's pivot.
    pivot : (n,) float array
        Overwritten, S; zero where nothing joins a coordinate to later ones or to ground.
    work : (n + 1,) float array
        Workspace.

    Returns
    -------
    bool
        Whether all pivots are ≥ 0 (negative conductances may make the energy concave).
    """
    fill = plan.rows.size
    for j in range(plan.n):
        if dirty[j]:
            begin, end = plan.col_ptr[j], plan.col_ptr[j + 1]
            for q in range(begin, end):
                weight[q] = base[q]
            weight[fill + j] = base[fill + j]
            if begin < end:
                dirty[plan.rows[begin]] = True  # the first of its rows: all others follow from it
    for e in range(closed.size):
        if closed[e] and plan.diode_slot[e] != NOWHERE and dirty[lower(plan, e)]:
            weight[plan.diode_slot[e]] = SHORT
    for j in range(plan.n):
        if not dirty[j]:
            continue
        ground, before = weight[fill + j], plan.row_ptr[j]
        begin, end, last = plan.col_ptr[j], plan.col_ptr[j + 1], plan.row_ptr[j + 1]
        for q in range(begin, end):
            work[plan.rows[q]] = weight[q]
        while before < last:  # four columns of one supernode at a time, to read each number of ``work`` only once
            k, p = plan.row_col[before], np.int64(plan.row_slot[before])
            g, first, stop = fill + k, p + 1, plan.col_ptr[k + 1]
            m = multiplier[p]
            if min(plan.supernode_end[k], j) >= k + 4:
                p1, p2 = plan.row_slot[before + 1] - p, plan.row_slot[before + 2] - p
                p3 = plan.row_slot[before + 3] - p
                m1, m2, m3 = multiplier[p + p1], multiplier[p + p2], multiplier[p + p3]
                ground += (m * weight[g] + m1 * weight[g + 1]) + (m2 * weight[g + 2] + m3 * weight[g + 3])
                for q in range(first, stop):
                    work[plan.rows[q]] += (m * weight[q] + m1 * weight[q + p1]) + (
                        m2 * weight[q + p2] + m3 * weight[q + p3]
                    )
                before += 4
            else:
                ground += m * weight[g]
                for q in range(first, stop):
                    work[plan.rows[q]] += m * weight[q]
                before += 1
        weight[fill + j] = ground
        total = ground
        for q in range(begin, end):
            weight[q] = work[plan.rows[q]]
            total += weight[q]
        pivot[j] = total
        if total < 0.0:
            return False
        for q in range(begin, end):
            multiplier[q] = weight[q] / total if weight[q] != 0.0 else 0.0
    return True


def substitute(plan, multiplier, pivot, x, floating_current):
    """Solve in place: currents into the coordinates become potentials.

    Parameters
    ----------
    floating_current : (n,) float array
        Overwritten: net current of each part without a path to ground, A, at the part's last coordinate, whose
        potential is 0.
    """
    n = plan.n
    floating_current[:] = 0.0
    for k in range(n):
        current = x[k]
        if current != 0.0:
            for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
                x[plan.rows[q]] += multiplier[q] * current
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0.0:
            v = x[k] / pivot[k]
        else:
            floating_current[k] = x[k]
            v = 0.0
        for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
            v += multiplier[q] * x[plan.rows[q]]
        x[k] = v
