"""The certificate of a solution, recomputed from elements, branch currents, branch drops and potentials.

Nothing here is shared with the program or the solvers. Branch currents and drops are independent of the printed node
voltages. Each equation is checked on its own scale: Kirchhoff's current law against the largest current at the node,
Kirchhoff's voltage law against the largest drop in the loop. A picoohm beside a kiloohm, or a nanoampere part beside a
kiloampere part, must therefore be accurate on its own scale.

Where the potentials do not resolve the drops, Kirchhoff's voltage law is checked by sums of drops around loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import least_at_nodes
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.formats import html_certificate, section
from circuitsim.kernels import SHORT, kernel

Tied = tuple[np.ndarray, np.ndarray]
"""Elements, and the elements whose currents control them (t,)."""


def largest_in_block(arrays: CircuitArrays, carried: np.ndarray, tied: Tied) -> np.ndarray:
    """Largest |current| in the biconnected component of each element (m,), A, and in the components ``tied`` to it.

    Currents inside a super-node, between nodes joined by voltage sources and shorts, count as zero, because no other
    current depends on them.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    joins = (arrays.kind == VOLTAGE) | (arrays.kind == INDUCTOR) | ((arrays.kind == RESISTOR) & (arrays.value == 0.0))
    edges = csr_array((np.ones(joins.sum()), (arrays.first[joins], arrays.second[joins])), shape=(arrays.n_nodes,) * 2)
    node = connected_components(edges, directed=False)[1]
    carried = np.where(node[arrays.first] == node[arrays.second], 0.0, carried)
    ends = arrays.first.tobytes(), arrays.second.tobytes()
    label = _blocks(arrays.n_nodes, *ends, *(elements.tobytes() for elements in tied))
    largest = np.zeros(label.max(initial=-1) + 2)
    np.maximum.at(largest, label[label >= 0], np.abs(carried)[label >= 0])
    return largest[label]


@lru_cache(maxsize=4)
def _blocks(n: int, first: bytes, second: bytes, tied: bytes, controls: bytes) -> np.ndarray:
    """The biconnected component of each element (m,), −1 for an element between equal nodes, with one label for tied
    components; cached, as the steps of a run share it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from circuitsim.program.components import block_labels

    label = block_labels(n, *(np.frombuffer(nodes, dtype=np.int64) for nodes in (first, second)))
    count, (one, other) = int(label.max(initial=-1)) + 1, (label[np.frombuffer(k, np.int64)] for k in (tied, controls))
    inside = (one >= 0) & (other >= 0)
    links = csr_array((np.ones(inside.sum()), (one[inside], other[inside])), shape=(count, count))
    groups = np.append(connected_components(links, directed=False)[1], -1)
    found = np.asarray(groups[label], dtype=np.int64)
    found.setflags(write=False)
    return found


def loop_violations(
    arrays: CircuitArrays,
    resistor: np.ndarray,
    fixed: np.ndarray,
    voltages: np.ndarray,
    low: np.ndarray,
    currents: np.ndarray,
    drops: np.ndarray,
    size: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Kirchhoff's voltage law for all elements, with the scale ``size`` of each drop (m,), V: the sum of drops around
    each element's loop and the largest drop there (2, m), V; and where loops were summed, the difference between the
    drop and the printed potentials and the larger of them (2, k), V.

    A loop in which each drop agrees with its potential difference to a relative ``tolerance`` needs no sum, because the
    differences sum to zero. Drops are summed around all other fundamental loops of a spanning tree of fixed voltages,
    conducting diodes and resistors, minimum in the sizes of their drops: no loop closes through a larger drop than it
    needs to, in whose rounding its own drops would vanish.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    first, second = arrays.first, arrays.second
    difference = (voltages[first] - voltages[second]) + (low[first] - low[second])
    loops = np.array([np.abs(drops - difference), size])
    clear = loops[0] <= 1e-3 * tolerance * size
    if clear.all():
        return loops, np.zeros((2, 0))
    conducting = (arrays.kind == DIODE) & (currents > 0.0)
    candidates = np.flatnonzero(fixed | conducting | resistor)
    tree = _Tree(arrays.n_nodes, first, second, candidates[np.argsort(size[candidates], kind="stable")])
    resolved = tree.inside & clear
    edges = csr_array((np.ones(resolved.sum()), (first[resolved], second[resolved])), shape=(arrays.n_nodes,) * 2)
    together = connected_components(edges, directed=False)[1]
    unclear = np.flatnonzero(~clear | (together[first] != together[second]))
    kernel(loop_sums, int(tree.depth[[first[unclear], second[unclear]]].sum()), SHORT)(
        unclear,
        first,
        second,
        drops,
        size,
        tree.inside,
        tree.root,
        tree.depth,
        tree.parent,
        tree.edge,
        *loops,
    )
    reach = np.maximum(np.abs(voltages[first]), np.abs(voltages[second]))[unclear]
    return loops, np.array([np.abs(drops - difference)[unclear], np.maximum(reach, loops[1, unclear])])


class _Tree:
    """A spanning forest grown from edges in the order given, with paths between nodes."""

    def __init__(self, n: int, first: np.ndarray, second: np.ndarray, order: np.ndarray) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

        low, high = np.minimum(first, second)[order], np.maximum(first, second)[order]
        # Of parallel edges, the first in order; its position, from 1 on, is its weight.
        places = np.unique(low * n + high, return_index=True)[1]
        places = places[low[places] != high[places]]
        weights = csr_array((places + 1.0, (low[places], high[places])), shape=(n, n))
        grown = minimum_spanning_tree(weights).tocoo()
        taken = order[grown.data.astype(np.int64) - 1]
        self.inside = np.zeros(first.size, dtype=bool)
        self.inside[taken] = True
        component = connected_components(grown, directed=False)[1]
        # An extra node, connected to the first node of each component, starts the search.
        roots = np.unique(component, return_index=True)[1]
        ends = np.append(first[taken], np.full(roots.size, n)), np.append(second[taken], roots)
        above = breadth_first_order(csr_array((np.ones(ends[0].size), ends), shape=(n + 1, n + 1)), n, directed=False)
        parent, edge = above[1], np.full(n + 1, -1)
        below = np.where(parent[second[taken]] == first[taken], second[taken], first[taken])
        edge[below] = taken
        self.parent, self.edge, self.root = parent.astype(np.int64), edge, component.astype(np.int64)
        self.depth = np.zeros(n + 1, dtype=np.int64)
        kernel(depths, n)(above[0][1:].astype(np.int64), self.parent, self.depth)


def depths(order, parent, depth):
    """Fill in the depth of each node; ``order`` has each node after its parent."""
    for node in order:
        depth[node] = depth[parent[node]] + 1


def loop_sums(unclear, first, second, drops, size, inside, root, depth, parent, edge, violation, scale):
    """Fill in the |sum| of drops around the loop of each unclear element, V, and their largest scale; 0 if no loop
    closes. Sums are in double-double arithmetic.
    """
    for element in unclear:
        u, v = first[element], second[element]
        most = size[element]
        if inside[element] or root[u] != root[v]:
            violation[element], scale[element] = 0.0, most
            continue
        high, low = drops[element], 0.0
        while u != v:
            if depth[u] >= depth[v]:
                e, sign, end = edge[u], -1.0, u
                u = parent[u]
            else:
                e, sign, end = edge[v], 1.0, v
                v = parent[v]
            term = sign * drops[e] if first[e] == end else -sign * drops[e]
            total = high + term
            part = total - high
            low += (high - (total - part)) + (term - part)
            high = total
            most = max(most, size[e])
        violation[element], scale[element] = abs(high + low), most


__all__ = ["EQUATIONS", "TOLERANCE", "Certificate", "certify"]

TOLERANCE = 1e-9

EQUATIONS = ("kcl", "kvl", "source", "diode_drop", "diode_reverse", "complementarity", "energy_gap")
"""The equations that a certificate checks, in the order of their violations in kernels."""

CLEAR = 1e-9
"""Fraction of its scale above which rounding cannot change a voltage's sign."""

WEAK = 1e-7
"""A current below this fraction of the largest at its ends must be accurate on its own scale, because it may set a
voltage."""

PAIRS = 2.0**-104
"""Rounding of pairs of doubles, as potentials are: smaller fractions of the largest current count as zero."""

RESOLUTION = 1e-13
"""Fraction of the largest current in a biconnected component that is the scale of smaller ones (1e-22 at 1e-9)."""

ROUNDING = 4.0 * np.finfo(float).eps
"""Rounding error of the sum of a node's currents, as a fraction of the largest."""


class Certificate(NamedTuple):
    """Worst violations of the circuit's equations over nodes and branches, absolute and relative to their own scales.

    Attributes
    ----------
    kcl : float
        Largest net current at a node, A (Kirchhoff's current law); scale: the largest current there.
    kvl : float
        Largest sum of drops round a loop, V (Kirchhoff's voltage law, with Ohm's law in each resistor's drop R i);
        scale: the largest drop in the loop.
    source : float
        Largest |v − V| of a voltage source or short, V; scale |V|.
    diode_drop : float
        Largest forward voltage of a diode, V; scale: the largest drop in a loop through it.
    diode_reverse : float
        Largest reverse current of a diode, A; scale: the largest current at its ends.
    complementarity : float
        Largest |i v| of a diode, W; scale: the product of the two.
    energy_gap : float
        −Σ i v over the diodes, W: bound on E(v) above its minimum (THEORY §1).
    relative : dict of str to float
        Each of these relative to its scale.
    tolerance : float
        Largest allowed value of ``relative``.
    device_gap : float
        With smooth devices: Σ |v − v'| |i − i'|, W, over the nearest points (v', i') of their curves; ``relative`` then
        holds under ``devices`` the largest relative distance from these points.
    """

    kcl: float
    kvl: float
    source: float
    diode_drop: float
    diode_reverse: float
    complementarity: float
    energy_gap: float
    relative: dict[str, float]
    tolerance: float
    device_gap: float = 0.0

    @classmethod
    def of(cls, found: list[float], tolerance: float) -> Certificate:
        """From what a kernel filled in (`branch_violations`).

        Parameters
        ----------
        found : list of float
            Absolute, then relative violations, each in the order of `EQUATIONS`.
        tolerance : float
            The largest relative violation allowed.
        """
        return cls._make((*found[:7], dict(zip(EQUATIONS, found[7:])), tolerance, 0.0))

    @property
    def worst(self) -> float:
        """The largest relative violation."""
        return max(self.relative.values())

    @property
    def certified(self) -> bool:
        """Whether every relative violation is within the tolerance."""
        return self.worst <= self.tolerance

    def __repr__(self) -> str:
        verdict = "certified" if self.certified else "not certified"
        return f"Certificate({verdict}: worst relative violation {self.worst:.1e}, tolerance {self.tolerance:.0e})"

    def _repr_html_(self) -> str:
        return section("Certificate", html_certificate(self.to_dict()))

    def to_dict(self) -> dict[str, object]:
        """The certificate as in the JSON output."""
        return {**self._asdict(), "relative": dict(self.relative), "certified": self.certified}


def net_currents(first, second, i, at_node):
    """Fill in the net current of each node and the largest |current| there, A, in two rows.

    Returns the worst net current, A, the worst relative to the latter, and a bound on the sum of all net currents, A.
    """
    at_node[:] = 0.0
    for e in range(first.size):
        c = i[e]
        if c != 0.0:
            a, b = first[e], second[e]
            at_node[0, a] += c
            at_node[0, b] -= c
            # Branch-free: which current is larger is unpredictable.
            at_node[1, a] = max(at_node[1, a], abs(c))
            at_node[1, b] = max(at_node[1, b], abs(c))
    worst = share = total = 0.0
    for k in range(at_node.shape[1]):
        worst, share = update_maximum(worst, share, abs(at_node[0, k]), at_node[1, k])
        total += abs(at_node[0, k]) + ROUNDING * at_node[1, k]
    return worst, share, total


def current_scale(size, local):
    """The scale of the error of a current, A: the largest at its ends ``local``, or its own ``size``
    (`WEAK`)."""
    return local if size >= WEAK * local else size


def branch_violations(kind, first, second, value, v, low, live, i, at_node, total, worst, relative):
    """The certificate from potentials and currents alone, if the potentials resolve every drop.

    The drop of each branch is the difference of its potentials, on its own scale: a sufficient condition, with no loops
    to sum. Runs interpreted or compiled.

    Parameters
    ----------
    kind, first, second : (m,) int arrays
    value : (m,) float array
        Element values, Ω, V, A.
    v, low : (n_nodes,) float arrays
        Potentials, V, and their low-order parts.
    live : (m,) bool array
        False for elements that carry no current, whatever the resistances are.
    i : (m,) float array
        Branch currents, A.
    at_node, total
        From `net_currents`, which also gives the first violation.
    worst, relative : (7,) float arrays
        Filled from the second on: the worst absolute and relative violations, in the order of `EQUATIONS`.

    Returns
    -------
    float
        Bound on the error of any current relative to its `current_scale`: in a passive network, at most the sum of the
        residuals at its nodes. Infinite if rounding may change the sign of a voltage (`CLEAR`).
    """
    # Scalars, not arrays: the next element need not wait for the last one's stores.
    kvl = source = forward = reverse = both = 0.0
    kvl_relative = source_relative = forward_relative = reverse_relative = both_relative = 0.0
    gap, gap_scale, least, clear = 0.0, 0.0, np.inf, True
    for e in range(kind.size):
        a, b, c = first[e], second[e], i[e]
        drop, local = (v[a] - v[b]) + (low[a] - low[b]), max(at_node[1, a], at_node[1, b])
        size = abs(c)
        if size > 0.0:
            least = min(least, current_scale(size, local))
        elif local == 0.0 and kind[e] != DIODE and value[e] != 0.0 and abs(value[e]) < np.inf:
            clear = clear and not live[e]  # else from Kirchhoff's current law or rounding
        if kind[e] == RESISTOR and value[e] != 0.0:
            if c != 0.0 or abs(value[e]) < np.inf:  # an open circuit may have any drop
                kvl, kvl_relative = update_maximum(kvl, kvl_relative, abs(value[e] * c - drop), abs(drop))
        elif kind[e] == VOLTAGE or kind[e] == INDUCTOR or kind[e] == RESISTOR:
            target = value[e] if kind[e] == VOLTAGE else 0.0
            source, source_relative = update_maximum(source, source_relative, abs(drop - target), abs(target))
        elif kind[e] == DIODE:
            reach = max(abs(v[a]), abs(v[b]))
            forward, forward_relative = update_maximum(forward, forward_relative, max(drop, 0.0), reach)
            reverse, reverse_relative = update_maximum(reverse, reverse_relative, max(-c, 0.0), local)
            both, both_relative = update_maximum(both, both_relative, abs(c * drop), local * reach)
            gap -= c * drop
            gap_scale += local * reach
            if drop != 0.0 and abs(drop) < CLEAR * reach:
                clear = False
    worst[1], worst[2], worst[3], worst[4], worst[5] = kvl, source, forward, reverse, both
    worst[6] = gap + 0.0
    relative[1], relative[2] = kvl_relative, source_relative
    relative[3], relative[4], relative[5] = forward_relative, reverse_relative, both_relative
    relative[6] = update_maximum(0.0, 0.0, abs(gap), gap_scale)[1]
    if not clear or not total < np.inf:
        return np.inf
    return total / least if least < np.inf else total


def update_maximum(worst, relative, amount, scale):
    """The running maximum, absolute and relative to its scale; any amount without a scale counts as infinite."""
    if not amount < np.inf:
        return np.inf, np.inf
    # Most are far from the worst; a product decides that faster than the quotient.
    if not amount < 0.5 * relative * scale and amount > 0.0:
        relative = max(relative, amount / scale if scale > 0.0 else np.inf)
    return max(worst, amount), relative


def certify(
    arrays: CircuitArrays,
    value: np.ndarray,
    voltages: np.ndarray,
    currents: np.ndarray,
    drops: np.ndarray,
    tolerance: float = TOLERANCE,
    low: np.ndarray | None = None,
    tied: Callable[[], Tied] | None = None,
) -> Certificate:
    """The certificate of one operating point.

    Parameters
    ----------
    arrays : CircuitArrays
    value : (m,) float array
        Element values (Ω, V, A); zero ohms exactly where ``arrays`` has them.
    voltages : (n_nodes,) float array
        Node voltages, V.
    currents, drops : (m,) float arrays
        Branch currents in SPICE signs, A, and voltages first − second, V.
    tolerance : float
    low : (n_nodes,) float array, optional
        Low-order parts of the potentials, V: if the sum of both resolves all drops, no loops need to be summed.
    tied : callable, optional
        Returns two (t,) int arrays: elements and the elements whose currents control them. Their components share the
        scale of small currents.
    """
    low = np.zeros(voltages.size) if low is None else low
    kind, first, second, zeroable, value = map(read_only, (*arrays[:4], value))
    resistor = (kind == RESISTOR) & (zeroable != 0.0)
    fixed = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & ~resistor)
    loops, at_node = np.empty((2, kind.size)), np.zeros((2, arrays.n_nodes))

    @np.errstate(invalid="ignore")  # a violation without a scale is infinite, and infinity times zero would warn
    def measured(loops: np.ndarray, least: np.ndarray, printed: np.ndarray) -> Certificate:
        worst, relative = np.zeros(7), np.zeros(7)
        kernel(violations, kind.size)(
            kind, first, second, zeroable, value, currents, drops, loops, least, printed, at_node, worst, relative
        )
        return Certificate.of([*worst.tolist(), *relative.tolist()], tolerance)

    def summed(least: np.ndarray, resolution: float) -> Certificate:
        """With sums of drops around loops, the ``least`` scales of currents, A, and of printed potentials, V."""
        reach = np.maximum(np.abs(drops), np.where(resistor, value * least, 0.0))
        loops, printed = loop_violations(arrays, resistor, fixed, voltages, low, currents, drops, reach, tolerance)
        return measured(loops, least, np.maximum(printed, [[0.0], [resolution]]))

    nothing = np.zeros(kind.size)
    if kernel(resolved_drops, kind.size)(first, second, voltages, low, drops, 1e-3 * tolerance, loops):
        found = measured(loops, nothing, np.zeros((2, 0)))
        if found.certified:
            return found
    found, carried = summed(nothing, 0.0), np.where(kind == CURRENT, value, currents)
    if found.certified or not np.isfinite(carried).all():
        return found
    none = np.zeros(0, np.int64)
    least = RESOLUTION * largest_in_block(arrays, carried, (none, none) if tied is None else tied())
    return summed(least, RESOLUTION * float(np.abs(voltages).max()))


def resolved_violations(kind, first, second, zeroable, value, v, low, i, drops, resolution, at_node, worst, relative):
    """The certificate of potentials that resolve every drop to a relative ``resolution``; False if they do not.

    Fills in the worst absolute and relative violations, in the order of `EQUATIONS`; see `certify` for the arguments.
    """
    loops = np.empty((2, kind.size))
    if not resolved_drops(first, second, v, low, drops, resolution, loops):
        return False
    least, printed = np.full(kind.size, PAIRS * np.abs(i).max()), np.zeros((2, 0))
    violations(kind, first, second, zeroable, value, i, drops, loops, least, printed, at_node, worst, relative)
    return True


def resolved_drops(first, second, v, low, drops, resolution, loops):
    """Whether the potentials resolve every drop to a relative ``resolution`` of itself or of its loop's largest one.
    Fills in their differences and these scales (2, m), V."""
    least, holder, looked = np.empty((2, v.size)), np.empty(v.size, np.int64), False
    for e in range(drops.size):
        a, b = first[e], second[e]
        off, reach = abs(drops[e] - ((v[a] - v[b]) + (low[a] - low[b]))), abs(drops[e])
        if not off <= resolution * reach:
            # A loop through it has other elements at both ends: its largest drop is at least the smallest of these.
            if not looked:
                least_at_nodes(first, second, drops, least, holder)
                looked = True
            reach = max(least[int(holder[a] == e), a], least[int(holder[b] == e), b])
            if a == b or not (reach < np.inf and off <= resolution * reach):
                return False
        loops[0, e], loops[1, e] = off, reach
    return True


def violations(kind, first, second, zeroable, value, i, drops, loops, least, printed, at_node, worst, relative):
    """The certificate, given the violations of Kirchhoff's voltage law.

    Parameters
    ----------
    kind, first, second, zeroable, value, i, drops
        As of `certify`; resistors of zero ohms are those of ``zeroable``.
    loops, printed
        See `loop_violations`.
    least : (m,) float array
        The least scale of each current, A.
    at_node : (2, n_nodes) float array
        Overwritten.
    worst, relative : (7,) float arrays
        Overwritten: absolute and relative violations, in the order of `EQUATIONS`.
    """
    worst[:], relative[:], at_node[:] = 0.0, 0.0, 0.0
    for e in range(kind.size):
        a, b, c = first[e], second[e], value[e] if kind[e] == CURRENT else i[e]
        at_node[0, a] += c
        at_node[0, b] -= c
        for end in (a, b):
            at_node[1, end] = max(at_node[1, end], abs(c), least[e])
    for k in range(at_node.shape[1]):
        worst[0], relative[0] = update_maximum(worst[0], relative[0], abs(at_node[0, k]), at_node[1, k])
    gap_scale = 0.0
    for k in range(printed.shape[1]):
        worst[1], relative[1] = update_maximum(worst[1], relative[1], printed[0, k], printed[1, k])
    for e in range(kind.size):
        c, drop, size = i[e], drops[e], abs(drops[e])
        worst[1], relative[1] = update_maximum(worst[1], relative[1], loops[0, e], loops[1, e])
        which, amount, scale = 0, 0.0, 0.0
        if kind[e] == RESISTOR and zeroable[e] != 0.0:
            which, amount, scale = 1, abs(drop - value[e] * c), max(size, value[e] * least[e])
        elif kind[e] == DIODE:
            local, reach = max(at_node[1, first[e]], at_node[1, second[e]]), max(loops[1, e], size)
            which, amount, scale = 3, max(drop, 0.0), reach
            worst[4], relative[4] = update_maximum(worst[4], relative[4], max(-c, 0.0), local)
            worst[5], relative[5] = update_maximum(worst[5], relative[5], abs(c * drop), local * reach)
            worst[6] -= c * drop
            gap_scale += local * reach
        elif kind[e] == CURRENT:
            amount, scale = abs(value[e] - c), abs(value[e])
        elif kind[e] != CAPACITOR:
            target = value[e] if kind[e] == VOLTAGE else 0.0
            which, amount, scale = 2, abs(drop - target), abs(target)
        worst[which], relative[which] = update_maximum(worst[which], relative[which], amount, scale)
    worst[6] += 0.0
    relative[6] = update_maximum(0.0, 0.0, abs(worst[6]), gap_scale)[1]


def largest_at_nodes(arrays: CircuitArrays, size: np.ndarray) -> np.ndarray:
    """The largest ``size`` (m,) of the elements at each node (n_nodes,)."""
    largest = np.zeros(arrays.n_nodes)
    for ends in (arrays.first, arrays.second):
        np.maximum.at(largest, ends, size)
    return largest
