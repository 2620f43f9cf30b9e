"""The certificate of a solution, recomputed from elements, branch currents, branch drops and potentials.

Nothing here is shared with the program or the solvers. Branch currents and drops are quantities of their own: node
potentials are what is printed for people. Each equation is held against its own size: Kirchhoff's current law against
the largest current at the node, Kirchhoff's voltage law against the largest drop in the loop. So a picoohm beside a
kiloohm, or a nanoampere part beside a kiloampere part, must be right by its own measure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE

TOLERANCE = 1e-9

EQUATIONS = ("kcl", "kvl", "source", "diode_drop", "diode_reverse", "complementarity", "energy_gap")
"""What a certificate measures, in the order of `worst_violations`."""

CLEAR = 1e-9
"""A current or voltage above this share of its scale has a sign that rounding cannot change."""

RESOLUTION = 1e-13
"""Share of the largest current in a biconnected component that counts as the scale of smaller ones: with a tolerance of
1e-9 they are resolved to 1e-22 of the largest."""

ROUNDING = 4.0 * np.finfo(float).eps
"""Share of the largest current at a node that the computed sum of its currents may be off by."""


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
        −Σ i v over the diodes, W: how far E(v) can lie above its minimum (THEORY §1).
    relative : dict of str to float
        Each of these against its scale.
    tolerance : float
        What ``relative`` is held to.
    device_gap : float
        With smooth devices: Σ |v − v'| |i − i'|, W, over the nearest points (v', i') of their curves; ``relative`` then
        holds under ``devices`` the largest distance from these, as a share of voltage and current.
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
    def of(cls, worst: np.ndarray, relative: np.ndarray, tolerance: float) -> Certificate:
        """From what `worst_violations` filled in."""
        ratios = dict(zip(EQUATIONS, relative.tolist()))
        return cls(**dict(zip(EQUATIONS, worst.tolist())), relative=ratios, tolerance=tolerance)

    @property
    def worst(self) -> float:
        """The largest relative violation."""
        return max(self.relative.values())

    @property
    def certified(self) -> bool:
        """Whether every relative violation is within the tolerance."""
        return self.worst <= self.tolerance

    def to_dict(self) -> dict[str, object]:
        """The certificate as it stands in the JSON output."""
        return {**self._asdict(), "relative": dict(self.relative), "certified": self.certified}


def worst_violations(kind, first, second, resistance_pattern, value, v, low, still, i, at_node, worst, relative):
    """The certificate of potentials and currents alone, where the potentials resolve every drop.

    Fills in the worst absolute and relative violations, in the order of `EQUATIONS`. The drop of each branch is the
    difference of its potentials, held against itself: a sufficient condition, with no loops to walk. Runs interpreted
    or compiled.

    Parameters
    ----------
    kind, first, second : (m,) int arrays
    resistance_pattern : (m,) float array
        Element values that tell which resistances are zero.
    value : (m,) float array
        Element values, Ω, V, A.
    v, low : (n_nodes,) float arrays
        Potentials, V, and what rounding them to doubles leaves over.
    still : (n_nodes,) bool array
        Nodes beyond which the circuit ends: a resistor there carries nothing whatever the values are.
    i : (m,) float array
        Branch currents, A.
    at_node : (2, n_nodes) float array
        Work space.
    worst, relative : (7,) float arrays
        Filled.

    Returns
    -------
    float
        Bound on the error of any current against the largest one at its ends: an error of a passive network's currents
        is at most the sum of what is left over at its nodes. Infinite where a sign is within `CLEAR` of rounding.
    """
    worst[0], relative[0], total = net_currents(first, second, i, at_node)
    return branch_violations(
        kind, first, second, resistance_pattern, value, v, low, still, i, at_node, total, worst, relative
    )


def net_currents(first, second, i, at_node):
    """Fill in the net current of each node and the largest |current| there, A, in two rows.

    Returns the worst net current, A, its largest share of the latter, and a bound on the sum of all net currents, A.
    """
    at_node[:] = 0.0
    for e in range(first.size):
        c = i[e]
        if c != 0.0:
            a, b = first[e], second[e]
            at_node[0, a] += c
            at_node[0, b] -= c
            c = abs(c)
            if c > at_node[1, a]:
                at_node[1, a] = c
            if c > at_node[1, b]:
                at_node[1, b] = c
    worst = share = total = 0.0
    for k in range(at_node.shape[1]):
        worst, share = update_maximum(worst, share, abs(at_node[0, k]), at_node[1, k])
        total += abs(at_node[0, k]) + ROUNDING * at_node[1, k]
    return worst, share, total


def least_scale(first, second, i, at_node):
    """The least that a branch with a current has as the largest |current| at its ends, A, after `net_currents`."""
    least = np.inf
    for e in range(first.size):
        if i[e] != 0.0:
            least = min(least, max(at_node[1, first[e]], at_node[1, second[e]]))
    return least


def branch_violations(
    kind, first, second, resistance_pattern, value, v, low, still, i, at_node, total, worst, relative
):  # fmt: skip
    """What `worst_violations` fills in for branches, after `net_currents`; returns the same."""
    # In scalars, not in the arrays: the next element need not wait for what the last one stored.
    kvl = source = forward = reverse = both = 0.0
    kvl_relative = source_relative = forward_relative = reverse_relative = both_relative = 0.0
    gap, gap_scale, least, clear = 0.0, 0.0, np.inf, True
    for e in range(kind.size):
        a, b, c = first[e], second[e], i[e]
        drop, local = (v[a] - v[b]) + (low[a] - low[b]), max(at_node[1, a], at_node[1, b])
        size = abs(c)
        if size > 0.0:
            least = min(least, local)
            if size < CLEAR * local:
                clear = False
        elif local == 0.0 and kind[e] != DIODE and resistance_pattern[e] != 0.0 and abs(resistance_pattern[e]) < np.inf:
            clear = clear and (still[a] or still[b])  # else by balance or by rounding: potentials do not tell
        if kind[e] == RESISTOR and resistance_pattern[e] != 0.0:
            if c != 0.0 or abs(value[e]) < np.inf:  # an open circuit has any drop
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
    """The largest amount so far, absolute and relative to its scale; without a scale any amount is infinite."""
    if not amount < np.inf:
        return np.inf, np.inf
    # Most are far from the worst, which a product tells faster than the quotient.
    if amount > 0.0 and not amount < 0.5 * relative * scale:
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
) -> Certificate:
    """The certificate of one operating point.

    Parameters
    ----------
    arrays : CircuitArrays
    value : (m,) float array
        Element values (Ω, V, A); zero ohms where, and only where, ``arrays`` has them.
    voltages : (n_nodes,) float array
        Node potentials, V.
    currents, drops : (m,) float arrays
        Branch currents in SPICE signs, A, and voltages first − second, V.
    tolerance : float
    low : (n_nodes,) float array, optional
        What rounding the potentials to doubles leaves over, V: where the sum of both resolves all drops, no loop needs
        to be walked.
    """
    low = np.zeros(voltages.size) if low is None else low
    carried = np.where(arrays.kind == CURRENT, value, currents)
    found = _certificate(arrays, value, voltages, currents, drops, carried, np.zeros(value.size), low, tolerance)
    if found.certified or not np.isfinite(carried).all():
        return found
    resolved = RESOLUTION * largest_in_block(arrays, carried)
    return _certificate(arrays, value, voltages, currents, drops, carried, resolved, low, tolerance)


def _certificate(
    arrays: CircuitArrays, value: np.ndarray, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray,
    carried: np.ndarray, resolved: np.ndarray, low: np.ndarray, tolerance: float,
) -> Certificate:  # fmt: skip
    """`certify` with the currents ``carried``, A, and the least scale ``resolved`` of each current (m,), A."""
    kind, first, second, resistance_pattern, n_nodes = arrays
    resistor = (kind == RESISTOR) & (resistance_pattern != 0.0)
    fixed = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & ~resistor)
    target = np.where(kind == VOLTAGE, value, 0.0)
    diode = kind == DIODE
    net = np.bincount(first, carried, n_nodes) - np.bincount(second, carried, n_nodes)
    size = np.maximum(np.abs(carried), resolved)
    largest = np.zeros(n_nodes)
    np.maximum.at(largest, first, size)
    np.maximum.at(largest, second, size)
    local = np.maximum(largest[first], largest[second])
    d, i = drops[diode], currents[diode]
    ohmic = np.abs(drops - value * currents)[resistor]
    reach = np.maximum(np.abs(drops), np.where(resistor, value * resolved, 0.0))
    loops = _loop_violations(arrays, resistor, fixed, voltages, low, currents, drops, reach, tolerance)
    reach = np.maximum(loops.scale, np.abs(drops))[diode]
    pairs = {
        "kcl": (
            np.append(np.abs(net), np.abs(carried - currents)),
            np.append(largest, np.abs(carried)),
        ),
        "kvl": (
            np.concatenate([loops.violation, ohmic, loops.printed]),
            np.concatenate([loops.scale, np.abs(drops[resistor]), loops.printed_scale]),
        ),
        "source": (np.abs(drops - target)[fixed], np.abs(target[fixed])),
        "diode_drop": (np.maximum(d, 0.0), reach),
        "diode_reverse": (np.maximum(-i, 0.0), local[diode]),
        "complementarity": (np.abs(i * d), local[diode] * reach),
    }
    relative = {name: _worst_ratio(*pair) for name, pair in pairs.items()}
    gap = 0.0 - float((i * d).sum())
    relative["energy_gap"] = _worst_ratio(np.array([abs(gap)]), np.array([(local[diode] * reach).sum()]))
    worst = {name: float(amount.max(initial=0.0)) for name, (amount, _) in pairs.items()}
    return Certificate(**worst, energy_gap=gap, relative=relative, tolerance=tolerance)


def largest_in_block(arrays: CircuitArrays, carried: np.ndarray) -> np.ndarray:
    """Largest |current| in the biconnected component of each element (m,), A."""
    import networkx

    graph = networkx.Graph()
    graph.add_edges_from(zip(arrays.first.tolist(), arrays.second.tolist()))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    block: dict[tuple[int, int], int] = {}
    for k, edges in enumerate(networkx.biconnected_component_edges(graph)):
        for a, b in edges:
            block[a, b] = block[b, a] = k
    ends = zip(arrays.first.tolist(), arrays.second.tolist())
    label = np.array([block.get(pair, -1) for pair in ends], dtype=np.int64)
    largest = np.zeros(label.max(initial=-1) + 2)
    np.maximum.at(largest, label[label >= 0], np.abs(carried)[label >= 0])
    return largest[label]


class _Loops(NamedTuple):
    """Per element: the sum of drops round its loop, V, and the largest drop there, V; where loops were walked, also
    what the drop and the printed potentials differ by, V, and the larger of them, V."""

    violation: np.ndarray
    scale: np.ndarray
    printed: np.ndarray
    printed_scale: np.ndarray


def _loop_violations(
    arrays: CircuitArrays, resistor: np.ndarray, fixed: np.ndarray, voltages: np.ndarray, low: np.ndarray,
    currents: np.ndarray, drops: np.ndarray, size: np.ndarray, tolerance: float,
) -> _Loops:  # fmt: skip
    """Kirchhoff's voltage law for all elements, with the scale ``size`` of each drop (m,), V.

    An element whose drop agrees with the difference of its potentials to ``tolerance`` of itself needs no loop: the
    differences add up to zero round every loop. Others are summed up round their fundamental loop of a spanning tree of
    fixed voltages, conducting diodes and the smallest resistances.
    """
    first, second = arrays.first, arrays.second
    difference = (voltages[first] - voltages[second]) + (low[first] - low[second])
    violation, scale = np.abs(drops - difference), size.copy()
    unclear = np.flatnonzero(~(violation <= 1e-3 * tolerance * scale))
    if not unclear.size:
        return _Loops(violation, scale, np.zeros(0), np.zeros(0))
    conducting = (arrays.kind == DIODE) & (currents > 0.0)
    rank = np.flatnonzero(resistor)
    rank = rank[np.argsort(arrays.value[rank], kind="stable")]
    order = np.concatenate([np.flatnonzero(fixed), np.flatnonzero(conducting), rank])
    tree = _Tree(arrays.n_nodes, first, second, order.tolist())
    for e in unclear.tolist():
        total, most = tree.loop(e, drops, size)
        violation[e], scale[e] = abs(total), most
    reach = np.maximum(np.abs(voltages[first]), np.abs(voltages[second]))[unclear]
    printed = np.abs(drops - difference)[unclear]
    return _Loops(violation, scale, printed, np.maximum(reach, scale[unclear]))


class _Tree:
    """A spanning forest grown from edges in the order given, with paths between nodes."""

    def __init__(self, n: int, first: np.ndarray, second: np.ndarray, order: list[int]) -> None:
        self.first, self.second = first, second
        leader = list(range(n))

        def find(u: int) -> int:
            while leader[u] != u:
                leader[u] = u = leader[leader[u]]
            return u

        around: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.inside: set[int] = set()
        for e in order:
            u, v = int(first[e]), int(second[e])
            ru, rv = find(u), find(v)
            if ru != rv:
                leader[ru] = rv
                around[u].append((v, e))
                around[v].append((u, e))
                self.inside.add(e)
        self.parent, self.edge, self.depth, self.root = [-1] * n, [-1] * n, [0] * n, list(range(n))
        seen = [False] * n
        for start in range(n):
            if seen[start]:
                continue
            seen[start], stack = True, [start]
            while stack:
                u = stack.pop()
                for v, e in around[u]:
                    if not seen[v]:
                        seen[v] = True
                        self.parent[v], self.edge[v], self.depth[v], self.root[v] = u, e, self.depth[u] + 1, start
                        stack.append(v)

    def loop(self, element: int, drops: np.ndarray, size: np.ndarray) -> tuple[float, float]:
        """The sum of drops round the loop of an element, V, and the largest scale of them; 0 where none closes."""
        u, v = int(self.first[element]), int(self.second[element])
        if element in self.inside or self.root[u] != self.root[v]:
            return 0.0, float(size[element])
        terms, most = [float(drops[element])], float(size[element])
        sign_u, sign_v = -1.0, 1.0
        while u != v:
            if self.depth[u] >= self.depth[v]:
                e, sign, low = self.edge[u], sign_u, u
                u = self.parent[u]
            else:
                e, sign, low = self.edge[v], sign_v, v
                v = self.parent[v]
            terms.append(sign * float(drops[e] if int(self.first[e]) == low else -drops[e]))
            most = max(most, float(size[e]))
        return math.fsum(terms), most


def _worst_ratio(amount: np.ndarray, scale: np.ndarray) -> float:
    """Largest amount / scale; an amount without a scale counts as infinite, nothing over nothing as zero."""
    wrong = amount > 0.0
    if not np.isfinite(amount).all():
        return float("inf")
    with np.errstate(divide="ignore", over="ignore"):
        return float((amount[wrong] / scale[wrong]).max(initial=0.0))
