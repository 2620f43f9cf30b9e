"""Kirchhoff's laws along a rooted spanning tree, in pairs of doubles.

The tree holds sources and shorts first, conducting diodes next, then resistors in ascending order of resistance. Branch
currents outside the tree (*chords*) are free variables: tree currents follow by leaf elimination, so that Kirchhoff's
current law holds to 2⁻¹⁰⁴, potentials from the drops along the tree. The voltage law of each chord remains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import choose_forest, find, grow_forest, new_tracks
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.kernels import kernel
from circuitsim.program.precise import add, multiply

CLOSES = 2.0**-52
"""A sum of n source values below n times this fraction of the largest of them is zero."""
COARSE = 1e-18
"""A relative difference of potentials below this is computed as a sum of drops instead."""
ROUNDED = 2.0**-96
"""Error of sums of pairs of doubles relative to the largest current or potential."""
RESOLUTION = 1e-28
"""A sum of currents below this fraction of the largest among them is rounding of pairs of doubles."""


class Branches(NamedTuple):
    """Elements as branches.

    Attributes
    ----------
    first, second : (m,) int arrays
        Terminals.
    ohms : (m,) float array
        Resistances, Ω; 0 for all other elements.
    emf : (m,) float array
        Voltages of voltage sources, V; 0 for all other elements.
    """

    first: np.ndarray
    second: np.ndarray
    ohms: np.ndarray
    emf: np.ndarray


class Tree(NamedTuple):
    """A rooted spanning forest of all nodes.

    Attributes
    ----------
    order, edge, parent : int arrays
        Nodes from the roots outwards, the element to each one's parent (−1 at a root), the parent.
    edge_of, parent_of, depth : (n_nodes,) int arrays
        The same by node.
    root_of : (n_nodes,) int array
        Root of each node's component.
    inside : (m,) bool array
        Elements of the forest.
    """

    order: np.ndarray
    edge: np.ndarray
    parent: np.ndarray
    edge_of: np.ndarray
    parent_of: np.ndarray
    depth: np.ndarray
    root_of: np.ndarray
    inside: np.ndarray


def blank(n, m):
    """A `Tree` to be filled in by `grow_tree`, for n nodes and m elements."""
    of = np.empty((7, n), np.int64)
    return Tree(of[0], of[1], of[2], of[3], of[4], of[5], of[6], np.zeros(m, np.bool_))


def grow_tree(first, second, start, preferred, edges, tree):
    """Fill in the forest of ``edges``, taken in the given order, with roots chosen by
    `circuitsim._graphs.grow_forest`. Returns the number of nodes with edges, to which ``order``, ``edge`` and
    ``parent`` refer."""
    order, edge, parent, edge_of, parent_of, depth, root_of, inside = tree
    n = edge_of.size
    kept = np.empty(n, np.int64)
    count = choose_forest(n, first, second, edges, kept)
    kept = kept[:count]
    a, b = np.empty(count, np.int64), np.empty(count, np.int64)
    for k in range(count):
        a[k], b[k] = first[kept[k]], second[kept[k]]
        inside[kept[k]] = True
    node, above, by = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    grow_forest(n, count, a, b, start, preferred, new_tracks(n, count), node, above, by, root_of)
    for k in range(n):
        edge_of[k], parent_of[k], depth[k] = -1, k, 0
    found, root = 0, -1
    for k in range(count):
        u, p, e = node[k], above[k], kept[by[k]]
        if root_of[u] != root:
            root = root_of[u]
            order[found], edge[found], parent[found] = root, -1, root
            found += 1
        order[found], edge[found], parent[found] = u, e, p
        edge_of[u], parent_of[u], depth[u] = e, p, depth[p] + 1
        found += 1
    return found


def tree_currents(
    tree, branches, chords, block, above, base, base_low, current, current_low, need, need_low, most, share
):
    """Fill in the currents of the tree edges, A, for given currents of all other elements.

    A fundamental loop lies in one biconnected component. So the currents of a component add up to zero at its node
    closest to the root and are omitted there: they leave no rounding in the components above.

    Parameters
    ----------
    tree : Tree
    branches : Branches
    chords : int array
        Elements outside the tree that carry current.
    block : (m,) int array
        Biconnected component of each element; the same for all where chords join two trees.
    above : (n_nodes,) int array
        ``block`` of the tree edge to each node's parent; that of no element at roots, or of all to get ``need`` there.
    base, base_low : (m,) float arrays
        Tree currents to add, A, or empty.
    current, current_low : (m,) float arrays
        Branch currents; those of tree edges are filled in.
    need, need_low : (n_nodes,) float arrays
        Overwritten: zero, except at each root the net current into its component, A, if requested by ``above``.
    most : (n_nodes,) float array
        Workspace.
    share : float
        A tree current below this fraction of the largest current in its subtree is zero.

    Returns
    -------
    bool
        Whether a nonzero current is below `RESOLUTION` of that largest current.
    """
    found, order, first, second = False, tree.order, branches.first, branches.second
    need[:] = 0.0
    need_low[:] = 0.0
    most[:] = 0.0
    for e in chords:
        c, c_low = current[e], current_low[e]
        if c != 0.0:
            a, b = first[e], second[e]
            if block[e] == above[a]:
                need[a], need_low[a] = add(need[a], need_low[a], -c, -c_low)
                most[a] = max(most[a], abs(c))
            if block[e] == above[b]:
                need[b], need_low[b] = add(need[b], need_low[b], c, c_low)
                most[b] = max(most[b], abs(c))
    for k in range(order.size - 1, -1, -1):
        e = tree.edge[k]
        if e < 0:
            continue
        u, p = order[k], tree.parent[k]
        h, low = need[u], need_low[u]
        if h != 0.0 and abs(h) < RESOLUTION * most[u]:
            found = True
        if abs(h) < share * most[u]:
            h, low = 0.0, 0.0
        if first[e] == u:
            current[e], current_low[e] = h, low
        else:
            current[e], current_low[e] = -h, -low
        if base.size > 0:
            current[e], current_low[e] = add(current[e], current_low[e], base[e], base_low[e])
        if block[e] == above[p]:
            if h != 0.0:
                need[p], need_low[p] = add(need[p], need_low[p], h, low)
            most[p] = max(most[p], most[u])
        need[u], need_low[u] = 0.0, 0.0
    return found


def drop_of(branches, e, current, current_low):
    """The voltage first − second of an element of the tree, V."""
    if branches.ohms[e] != 0.0:
        return multiply(branches.ohms[e], current[e], current_low[e])
    return branches.emf[e], 0.0


def tree_potentials(tree, branches, current, current_low, v, v_low):
    """Fill in node voltages, V, from the drops along the tree; those of the roots are given."""
    for u, e, p in zip(tree.order, tree.edge, tree.parent):
        if e < 0:
            continue
        d, d_low = drop_of(branches, e, current, current_low)
        if branches.first[e] != u:
            d, d_low = -d, -d_low
        v[u], v_low[u] = add(v[p], v_low[p], d, d_low)


def follow(
    tree,
    branches,
    carriers,
    block,
    above,
    base,
    base_low,
    current,
    current_low,
    need,
    need_low,
    most,
    share,
    v,
    v_low,
    in_block,
):
    """`tree_currents` and `tree_potentials`, and the largest |current| in each block; returns the result of the
    first."""
    found = tree_currents(
        tree, branches, carriers, block, above, base, base_low, current, current_low, need, need_low, most, share
    )
    tree_potentials(tree, branches, current, current_low, v, v_low)
    block_maxima(block, current, in_block)
    return found


def path_voltage(tree, branches, current, current_low, a, b):
    """v(a) − v(b) as the sum of the drops between two nodes, V, and whether a path joins them.

    So a microvolt between two nodes at a teravolt keeps its digits.
    """
    high, low = 0.0, 0.0
    while a != b:
        down = tree.depth[a] < tree.depth[b]
        x = b if down else a
        e = tree.edge_of[x]
        if e < 0:
            return 0.0, 0.0, False
        d, d_low = drop_of(branches, e, current, current_low)
        if (branches.first[e] == x) == down:
            d, d_low = -d, -d_low
        high, low = add(high, low, d, d_low)
        if down:
            b = tree.parent_of[b]
        else:
            a = tree.parent_of[a]
    return high, low, True


def path_voltages(tree, branches, current, current_low, a, b, voltage):
    """Fill in `path_voltage` for pairs of nodes, V; unchanged without a path."""
    for j in range(a.size):
        high, _, joined = path_voltage(tree, branches, current, current_low, a[j], b[j])
        if joined:
            voltage[j] = high


def level_nodes(tree, branches, current):
    """Labels (n_nodes,) that are equal for nodes joined by tree edges without a drop."""
    level = np.arange(tree.parent_of.size)
    for u, e, p in zip(tree.order, tree.edge, tree.parent):
        if e >= 0 and (branches.emf[e] if branches.ohms[e] == 0.0 else current[e]) == 0.0:
            level[u] = level[p]
    return level


def loop_residuals(chords, tree, branches, coordinate, current, current_low, v, v_low, residual, injected):
    """Residual of Kirchhoff's voltage law in the fundamental loop of each resistive chord.

    Where potentials in pairs of doubles do not resolve the drop between its ends (`COARSE`), the drops along the path
    are summed. Fills in ``residual`` (chords,): R i − (v_first − v_second), V; and ``injected`` (n + 1,): the currents
    into the coordinates whose potentials are the correction, A. Returns the power Σ s²/R of the residuals, W.
    """
    power, level = 0.0, np.empty(0, np.int64)
    injected[:] = 0.0
    for j, e in enumerate(chords):
        a, b = branches.first[e], branches.second[e]
        d, d_low = multiply(branches.ohms[e], current[e], current_low[e])
        w, w_low = add(v[a], v_low[a], -v[b], -v_low[b])
        if abs(w) < COARSE * abs(v[a]):
            if level.size == 0:
                level = level_nodes(tree, branches, current)
            w, w_low = 0.0, 0.0
            if level[a] != level[b]:
                w, w_low, _ = path_voltage(tree, branches, current, current_low, a, b)
        s = add(d, d_low, -w, -w_low)[0]
        residual[j] = s
        if s != 0.0:
            c = s / branches.ohms[e]
            injected[coordinate[a]] += c
            injected[coordinate[b]] -= c
            power += s * c
    return power


def differences(a, b, v, v_low, difference):
    """Fill in v(a) − v(b) for pairs of nodes, V."""
    for k in range(a.size):
        difference[k] = add(v[a[k]], v_low[a[k]], -v[b[k]], -v_low[b[k]])[0]


def correct_chords(chords, branches, coordinate, residual, x, current, current_low):
    """Add the correction from potentials ``x`` (n + 1,), V, and residuals to the chord currents."""
    for j, e in enumerate(chords):
        along = x[coordinate[branches.first[e]]] - x[coordinate[branches.second[e]]]
        c = (along - residual[j]) / branches.ohms[e]
        current[e], current_low[e] = add(current[e], current_low[e], c, 0.0)


def node_maxima(first, second, current, at_node):
    """Fill in the largest |current| at each node, A."""
    at_node[:] = 0.0
    for a, b, c in zip(first, second, current):
        at_node[a] = max(at_node[a], abs(c))
        at_node[b] = max(at_node[b], abs(c))


def block_maxima(block, current, largest):
    """Fill in the largest |current| in each block, A; elements of block −1 have none."""
    largest[:] = 0.0
    for k, c in zip(block, current):
        if k >= 0:
            largest[k] = max(largest[k], abs(c))


def largest_correction(first, second, block, correction, at_node, in_block, local, overall):
    """The largest change of a current relative to its scale: ``local`` of the largest at either of its ends, or
    ``overall`` of the largest in its block."""
    worst = 0.0
    for e in range(first.size):
        change = correction[e]
        if change == 0.0:
            continue
        if not change < np.inf:
            return np.inf
        scale = local * max(at_node[first[e]], at_node[second[e]])
        if block[e] >= 0:
            scale = max(scale, overall * in_block[block[e]])
        if scale == 0.0:
            return np.inf
        if change > worst * scale:
            worst = change / scale
    return worst


def bounded(branches, carries, block, current, in_block, power, overall, local, bound):
    """Whether residuals of a power, W, prove the currents of all elements that carry any.

    Fills in ``bound`` (m,): the error bound of each current, A. It must be within ``local`` of the current itself, or
    for a current of exactly zero within ``overall`` of the largest in the block.
    """
    if not power < np.inf:
        return False
    total = 0.0
    for e in range(current.size):
        if branches.ohms[e] > 0.0 and carries[e]:
            total += 1.0 / branches.ohms[e]
    root, through = np.sqrt(power), np.sqrt(power * total)
    for e in range(current.size):
        if carries[e]:
            largest, ohms = in_block[block[e]] if block[e] >= 0 else 0.0, branches.ohms[e]
            error = through if ohms == 0.0 else min(through, root / np.sqrt(ohms))
            bound[e] = error + ROUNDED * largest
            if bound[e] > (overall * largest if current[e] == 0.0 else local * abs(current[e])):
                return False
    return True


def resolved(tree, branches, diodes, on, v, v_low, power, local, reach):
    """Whether residuals of a power, W, prove every blocking diode's voltage to ``local`` of itself, or it is zero.

    Fills in ``reach`` (n_nodes,): the resistance of the tree path from each node to its root, Ω.
    """
    for u, e, p in zip(tree.order, tree.edge, tree.parent):
        reach[u] = 0.0 if e < 0 else reach[p] + branches.ohms[e]
    root = np.sqrt(power)
    for e in diodes:
        a, b = branches.first[e], branches.second[e]
        if not on[e] and tree.root_of[a] == tree.root_of[b]:
            size = abs(add(v[a], v_low[a], -v[b], -v_low[b])[0])
            error = root * (np.sqrt(reach[a]) + np.sqrt(reach[b])) + ROUNDED * max(abs(v[a]), abs(v[b]))
            if size > 0.0 and error > local * size:
                return False
    return True


def join(depth, leader, top, a, b):
    """Merge the classes of the tree edges in the loop of a chord a–b; returns the class.

    A class is named by the lower node of one of its edges; ``top`` is the highest node that it reaches.
    """
    name = -1
    while a != b:
        if depth[a] < depth[b]:
            a, b = b, a
        k = find(leader, a)
        a = top[k]
        if name < 0:
            name = k
        elif k != name:
            leader[k] = name
            if depth[top[k]] < depth[top[name]]:
                top[name] = top[k]
    return name


def mark_live(tree, branches, chords, sources, active):
    """Clear in ``active`` (m,) the resistors and voltage sources that are on no loop with a source when shorts and
    conducting diodes merge nodes: they carry nothing. The tree joins the ends of all ``chords`` and ``sources``."""
    (first, second, ohms, emf), n = branches, tree.depth.size
    node, top, leader = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    depth = np.zeros(n, np.int64)
    looped, fed = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for k in range(n):
        node[k] = top[k] = leader[k] = k
    for u, e, above in zip(tree.order, tree.edge, tree.parent):
        if e >= 0:
            p = node[above]
            if ohms[e] == 0.0 and emf[e] == 0.0:
                node[u] = p
            else:
                top[u], depth[u], fed[u] = p, depth[p] + 1, emf[e] != 0.0
    for e in chords:
        a, b = node[first[e]], node[second[e]]
        if a != b:
            looped[join(depth, leader, top, a, b)] = True
    for e in sources:
        a, b = node[first[e]], node[second[e]]
        if a != b:
            name = join(depth, leader, top, a, b)
            looped[name] = fed[name] = True
    for k in range(n):  # marks of classes that were joined later
        name = find(leader, k)
        looped[name] = looped[name] or looped[k]
        fed[name] = fed[name] or fed[k]
    for e in chords:
        a, b = node[first[e]], node[second[e]]
        active[e] = a != b and fed[find(leader, a if depth[a] >= depth[b] else b)]
    for u, e in zip(tree.order, tree.edge):
        if e >= 0 and (ohms[e] != 0.0 or emf[e] != 0.0):
            name = find(leader, u)
            active[e] = active[e] and looped[name] and fed[name]


def measure_loops(tree, branches, current, a, b, largest, members):
    """Measure the tree path between each pair of nodes ``a``, ``b``.

    Fills in ``largest``: the largest |drop| on the path, V, 0 without a path; and ``members``: the number of its
    elements if none of them is a resistor, otherwise 0.
    """
    for j in range(a.size):
        u, w, most, count, resistive = a[j], b[j], 0.0, 0, False
        while u != w:
            if tree.depth[u] < tree.depth[w]:
                u, w = w, u
            e = tree.edge_of[u]
            if e < 0:
                most, resistive = 0.0, True
                break
            count += 1
            if branches.ohms[e] != 0.0:
                resistive = True
                most = max(most, abs(branches.ohms[e] * current[e]))
            else:
                most = max(most, abs(branches.emf[e]))
            u = tree.parent_of[u]
        largest[j] = most
        members[j] = 0 if resistive else count


def spanning_forest(n: int, first: np.ndarray, second: np.ndarray, roots: np.ndarray, edges: np.ndarray) -> Tree:
    """The spanning forest on n nodes of ``edges``, positions in first–second, taken in the given order."""
    preferred = np.zeros(n)
    preferred[roots] = 1.0
    made, ends = blank(n, first.size), map(read_only, (first, second))
    found = kernel(grow_tree, max(n, edges.size))(*ends, int(roots[0]), preferred, edges, made)
    return made._replace(order=made.order[:found], edge=made.edge[:found], parent=made.parent[:found])


def resistive_tree(arrays: CircuitArrays, conducting: np.ndarray) -> tuple[Tree, Branches]:
    """The spanning tree of fixed voltages, the diodes ``conducting`` and the smallest resistances."""
    kind, first, second, value, n_nodes = arrays
    resistive = (kind == RESISTOR) & (value != 0.0) & np.isfinite(value)
    ohms, emf = np.where(resistive, value, 0.0), np.where(kind == VOLTAGE, value, 0.0)
    fixed = np.flatnonzero(arrays.fixed_voltages)
    ascending = np.flatnonzero(resistive)
    ascending = ascending[np.argsort(value[ascending], kind="stable")]
    made = spanning_forest(n_nodes, first, second, np.zeros(1, int), np.concatenate([fixed, conducting, ascending]))
    return made, Branches(first, second, ohms, emf)


def loop_scales(
    made: Tree, branches: Branches, current: np.ndarray, elements: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See `circuitsim.engine.measure_loops`: of the path between the ends of each of ``elements``."""
    largest, members = np.zeros(elements.size), np.zeros(elements.size, np.int64)
    a, b = branches.first[elements], branches.second[elements]
    kernel(measure_loops, current.size)(made, branches, current, a, b, largest, members)
    return largest, members
