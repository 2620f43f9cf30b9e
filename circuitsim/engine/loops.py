"""Currents in loops of sources, shorts and conducting diodes: the choice of least norm, and which are unique.

Potentials do not determine such currents: any circulation of positive diode currents is a steady state too. The choice
shown is what wires of equal, vanishing resistance carry: the steady state of a circuit in which each element of the
loops is 1 Ω, each diode 1 Ω in series with an ideal diode. The small driver solves it. Where it cannot, or the loops
are many, Newton's method on the dual problem finds the signs, the engine the currents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.double_double import add
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network, network
from circuitsim.engine.refinement import LinearPoint
from circuitsim.engine.small.active_set import NOISE
from circuitsim.engine.small.least_norm import carry_away
from circuitsim.engine.tree import RESOLUTION
from circuitsim.kernels import COMPILED
from circuitsim.program.components import block_labels, component_labels, unchangeable
from circuitsim.program.structure import analyse_arrays
from circuitsim.solvers.linear import NodalPattern

STEPS = 200
"""Most steps of Newton's method for the signs of loop currents."""
ROUGH = 1e-9
"""Share of the largest current that these steps leave over."""
SHORTEST = 1e-3
"""Least share of a Newton step."""
PROXIMAL = 1e-8
"""Weight of the proximal term beside conductances of 1 S."""
SMALL = 1_000
"""Most elements on loops that the small driver takes: beyond, few are sparse enough for it."""
SMALLEST = 1e-290
"""Least current in a loop, A."""


class Loops(NamedTuple):
    """Elements of no resistance on loops.

    Attributes
    ----------
    elements : int array
    current : float array
        Their currents of least norm, A.
    unique : bool array
        Whether each is the only one possible.
    """

    elements: np.ndarray
    current: np.ndarray
    unique: np.ndarray


class Carried(NamedTuple):
    """Branch currents, whatever those in loops of no resistance are.

    Attributes
    ----------
    current, current_low : (m,) float arrays
        A, as sums of two doubles.
    least : float or (m,) float array
        The least scale of each, A.
    """

    current: np.ndarray
    current_low: np.ndarray
    least: float | np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """A sum of currents below `RESOLUTION` of the largest of these, A, is rounding (m,)."""
        return np.maximum(np.abs(self.current), self.least)

    @classmethod
    def of(cls, point: LinearPoint) -> Carried:
        """Those of a refined point: pairs of doubles resolve them against the largest in their blocks."""
        return cls(point.current, point.current_low, np.append(point.in_block, 0.0)[point.block])


def loop_currents(net: Network, carried: Carried, tight: np.ndarray) -> Loops:
    """The currents in loops of fixed voltages and the diodes ``tight``, whose ends are equal."""
    edges = np.concatenate([net.fixed, tight])
    edges = np.sort(edges[net.first[edges] != net.second[edges]])
    label = block_labels(net.n_nodes, net.first[edges], net.second[edges]) if edges.size else edges
    elements = edges[np.bincount(label)[label] > 1] if edges.size else edges
    if not elements.size:
        return Loops(elements, np.zeros(0), np.ones(0, dtype=bool))
    need = _missing(net, carried, elements)
    nodes, ends = np.unique(np.concatenate([net.first[elements], net.second[elements]]), return_inverse=True)
    first, second = ends[: elements.size], ends[elements.size :]
    one_way = np.zeros(net.first.size, dtype=bool)
    one_way[net.diodes] = True
    one_way = one_way[elements]
    need = need[:, nodes]
    found = _rounded(nodes.size, first, second, one_way, need[0])
    if found is None:
        found = _least_norm(nodes.size, first, second, one_way, need, net.first.size > COMPILED)
    # What rounding leaves a diode is nothing: its current can only grow.
    size = np.abs(need[0])
    np.maximum.at(size, first, np.abs(found))
    np.maximum.at(size, second, np.abs(found))
    found[one_way & (found <= NOISE * np.minimum(size[first], size[second]))] = 0.0
    unique = unchangeable(nodes.size, first, second, ~one_way | (found > 0.0))
    return Loops(elements, found, unique)


def _missing(net: Network, carried: Carried, elements: np.ndarray) -> np.ndarray:
    """Net current into each node of ``elements`` from all others, A, as sums of two doubles (2, n_nodes); zero where it
    is rounding."""
    at_loops = np.zeros(net.n_nodes, dtype=bool)
    at_loops[net.first[elements]] = at_loops[net.second[elements]] = True
    others = (at_loops[net.first] | at_loops[net.second]) & (carried.current != 0.0)
    others[elements] = False
    high, low, largest = np.zeros((3, net.n_nodes))
    e = np.flatnonzero(others)
    kernel(_gather, net.first.size)(
        e, net.first, net.second, carried.current, carried.current_low, carried.scale, high, low, largest
    )
    return np.where(np.abs(high) < RESOLUTION * largest, 0.0, (high, low))


def _gather(elements, first, second, current, current_low, scale, high, low, largest):
    """Add up the currents of ``elements`` into each node, A, in pairs of doubles; the ``largest`` of their scales."""
    for k in range(elements.size):
        e = elements[k]
        a, b, size = first[e], second[e], scale[e]
        high[a], low[a] = add(high[a], low[a], -current[e], -current_low[e])
        high[b], low[b] = add(high[b], low[b], current[e], current_low[e])
        largest[a] = max(largest[a], size)
        largest[b] = max(largest[b], size)


def _rounded(n: int, first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray) -> np.ndarray | None:
    """`_least_norm` by the small driver, in doubles; None where that fails or the loops are too many."""
    if first.size > SMALL:
        return None
    number, _ = _numbered(n, first, second, need)
    left = np.zeros(int(number.max(initial=0)) + 1)
    left[number] = need
    left[0] = 0.0
    return carry_away(np.array((number[first], number[second])), one_way, left)


def _numbered(n: int, first: np.ndarray, second: np.ndarray, need: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the nodes from 1, 0 for the node of the largest need in each connected part, which takes what rounding
    leaves over; and these nodes."""
    part = component_labels(n, first, second)
    order = np.lexsort((-np.abs(need), part))
    roots = order[np.append(True, part[order[1:]] != part[order[:-1]])]
    number = np.ones(n, dtype=np.int64)
    number[roots] = 0
    return number * np.cumsum(number), roots


def _least_norm(
    n: int, first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray, compiled: bool
) -> np.ndarray:
    """Currents of least norm that carry the sums ``need`` (2, n) away, one-way edges ≥ 0; ``compiled`` as in
    `NodalPattern`.

    Of two doubles: where one-way edges only lead out of a part, a sum rounded to less than zero could not be carried
    away.
    """
    from circuitsim.engine.active_set import solve_active_set

    number, roots = _numbered(n, first, second, need[0])
    d = np.flatnonzero(one_way)
    middle = np.arange(d.size) + n + 1
    row, given = np.nonzero((need != 0.0) & (number > 0))
    m = first.size
    kind = np.concatenate([np.full(m, RESISTOR), np.full(d.size, DIODE), np.full(given.size, CURRENT)]).astype(np.int8)
    a = np.concatenate([number[first], middle, np.zeros(given.size, dtype=np.int64)])
    b = np.concatenate([number[second], number[second[d]], number[given]])
    b[d] = middle
    value = np.concatenate([np.ones(m), np.full(d.size, np.nan), need[row, given]])
    # Nodes merged into ground leave their numbers unused.
    used, ends = np.unique(np.concatenate([[0], a, b]), return_inverse=True)
    arrays = CircuitArrays(kind, ends[1 : a.size + 1], ends[a.size + 1 :], value, used.size)
    net = network(analyse_arrays(arrays), compiled=compiled)
    carried, u = _dual_newton(n, first, second, one_way, need[0], roots, compiled)
    conducting = m + np.flatnonzero(carried[d] > ROUGH * np.abs(carried).max(initial=0.0))
    # Components that balance by themselves stay at the potentials of the dual problem.
    anchor = np.zeros(n + 1 + d.size)
    anchor[number] = u
    anchor[middle] = u[first[d]]
    anchor[0] = 0.0
    guess = np.zeros(kind.size)
    guess[:m] = carried
    point, _ = solve_active_set(net, conducting, guess, anchor[used], 40 + 4 * d.size)
    found = point.current[:m].copy()
    found[d] = np.maximum(found[d], 0.0)
    return found


def _dual_newton(
    n: int,
    first: np.ndarray,
    second: np.ndarray,
    one_way: np.ndarray,
    need: np.ndarray,
    roots: np.ndarray,
    compiled: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Currents of least norm (m,), A, and the potentials u (n,) whose differences they are, roughly.

    Newton's method on the dual problem: the currents are u_first − u_second, or 0 where that is negative and the edge
    is one-way; u minimises a convex, piecewise quadratic function. A small proximal term keeps the matrix regular.
    """
    free = np.ones(n, dtype=bool)
    free[roots] = False
    count = int(free.sum())
    row = np.full(n, count)
    row[free] = np.arange(count)
    a, b, alone = row[first], row[second], np.arange(count)
    # The proximal term is a small conductance from every node to ground.
    ends = np.concatenate([a, alone]), np.concatenate([b, np.full(count, count)])
    pattern = NodalPattern(count, *ends, first.size + count, grounded=False, compiled=compiled)
    scale = max(float(np.abs(need).max(initial=0.0)), SMALLEST)
    demand = need[free] / scale

    def clipped(u: np.ndarray) -> np.ndarray:
        drop = u[a] - u[b]
        return np.where(one_way, np.maximum(drop, 0.0), drop)

    def net(u: np.ndarray) -> np.ndarray:
        carried = clipped(u)
        return np.bincount(a, carried, count + 1)[:-1] - np.bincount(b, carried, count + 1)[:-1] - demand

    u, factored = np.zeros(count + 1), None
    for _ in range(STEPS):
        slope = net(u)
        if np.abs(slope).max(initial=0.0) <= ROUGH:
            break
        weight = np.where(one_way & (u[a] < u[b]), 0.0, 1.0)
        solver = pattern.solver(np.append(weight, np.full(count, PROXIMAL)), direct=True)
        factored = solver.factor(alone[:0], factored)
        step = -factored.solve(slope)
        # The function is convex: its slope along the step rises from a negative value, without cancellation.
        steepest, length = float(slope @ step[:-1]), 1.0
        while length > SHORTEST and net(u + length * step) @ step[:-1] > -0.5 * steepest:
            length *= 0.5
        u = u + length * step
    return scale * clipped(u), scale * u[row]
