"""Currents of least norm in loops of sources, shorts and conducting diodes.

They are the currents for equal, vanishing wire resistances: the operating point of a circuit in which each element of
the loops is 1 Ω, each diode 1 Ω in series with an ideal diode.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.active_set import solve_active_set
from circuitsim.engine.network import network
from circuitsim.engine.small.active_set import CARRIES, CLEAN, IDLE, MAX_ITERATIONS, NOISE, ON_LOOP, memory
from circuitsim.engine.small.elimination import UPDATES, plan
from circuitsim.engine.small.pointers import Pinned
from circuitsim.engine.small.single import NO_GUESS, solve_once
from circuitsim.engine.tree import RESOLUTION, node_maxima
from circuitsim.kernels import MANY, NODE, kernel
from circuitsim.program.components import component_labels, on_cycles
from circuitsim.program.structure import analyse_arrays

SMALL = 1_000
"""Maximum number of elements on loops for the small driver; larger circuits are rarely sparse enough."""

LEAK = 1e30
"""Resistance to the reference of each node on loops, relative to an edge's: rounding of the net currents, 1e-33 of the
largest, drops no more there than this current in an edge, and other currents change by 1e-30 of it."""


class WireLoops(NamedTuple):
    """The loops of elements without resistance.

    Attributes
    ----------
    elements : (k,) int array
        Those on loops.
    nodes : (n,) int array
        Their nodes.
    ends : (2, k) int array
        Where they begin and end, as positions in ``nodes``.
    one_way : (k,) bool array
        Which are diodes.
    """

    elements: np.ndarray
    nodes: np.ndarray
    ends: np.ndarray
    one_way: np.ndarray

    @classmethod
    def of(cls, arrays: CircuitArrays, wires: np.ndarray) -> WireLoops:
        """Of the elements ``wires`` (w,)."""
        kind, first, second, _, n = arrays
        own = np.sort(wires[on_cycles(n, first[wires], second[wires])])
        ends, there = np.array((first[own], second[own])), np.zeros(n, dtype=bool)
        there[ends] = True
        return cls(own, np.flatnonzero(there), (np.cumsum(there) - 1)[ends], kind[own] == DIODE)

    def numbered(self, off: np.ndarray) -> np.ndarray:
        """Numbers of the nodes (n,) from 1; 0 for the node with the largest rounding ``off`` in each connected part,
        which takes the residual of the others."""
        number, largest = np.ones(self.nodes.size, dtype=np.int64), np.zeros(self.nodes.size, dtype=np.int64)
        order = np.argsort(-off, kind="stable")[::-1]
        part = component_labels(self.nodes.size, *self.ends)[order]
        largest[part] = order  # the last of each part is assigned
        number[largest[part]] = 0
        return number * np.cumsum(number)

    def need(self, current: np.ndarray) -> np.ndarray:
        """The net current that leaves each of their nodes (n,) with the currents (k,), A."""
        (first, second), n = self.ends, self.nodes.size
        return np.asarray(np.bincount(first, current, n) - np.bincount(second, current, n))

    def least_norm(self, current: np.ndarray) -> np.ndarray:
        """Their currents (k,), A, of least norm with the same sums at the nodes."""
        need = self.need(current)
        both = np.array((need, np.zeros(need.size)))
        return least_norm(self, self.numbered(np.abs(need)), both, current.size > MANY)


def unit_circuit(
    ends: np.ndarray, one_way: np.ndarray, fed: np.ndarray, need: np.ndarray, nodes: int
) -> tuple[np.ndarray, ...]:
    """Kinds, ends and values of the elements with 1 Ω in each edge: resistors, diodes from inner nodes (numbered after
    the ``nodes``), and the currents ``need``, A, out of the nodes ``fed``.

    Edges join the nodes ``ends`` (2, k); those that are ``one_way`` (k,) are diodes.
    """
    d = np.flatnonzero(one_way)
    kind = np.repeat(np.array([RESISTOR, DIODE, CURRENT], np.int8), (one_way.size, d.size, fed.size))
    inner = nodes + np.arange(d.size)
    first = np.concatenate([ends[0], inner, np.zeros_like(fed)])
    second = np.concatenate([ends[1], ends[1, d], fed])
    second[d] = inner
    return kind, first, second, np.concatenate([np.ones(one_way.size), np.full(d.size, np.nan), need])


def least_norm(loops: WireLoops, number: np.ndarray, need: np.ndarray, compiled: bool) -> np.ndarray:
    """Currents of least norm in the loops: by the small driver, or where that fails by the engine.

    Where diodes only lead out of a part, a sum rounded to below zero would be infeasible; so the sums are pairs of
    doubles, and `LEAK` takes their rounding.

    Parameters
    ----------
    loops : WireLoops
    number : (n,) int array
        From `WireLoops.numbered`.
    need : (2, n) float array
        Current that leaves each node through the loops, A, as a sum of two doubles.
    compiled : bool
        As in `circuitsim.solvers.linear.NodalPattern`.

    Returns
    -------
    (k,) float array
        A; those of diodes are ≥ 0 up to rounding.
    """
    (first, second), k, n, leaks = loops.ends, loops.elements.size, number.size, np.flatnonzero(number)
    small = small_least_norm(loops, number, need[0]) if k <= SMALL else None
    if small is not None:
        return small
    row, fed = np.nonzero((need != 0.0) & (number > 0))
    circuit = unit_circuit(number[loops.ends], loops.one_way, number[fed], need[row, fed], n + 1)
    kind, a, b, value = (
        np.append(column, np.full(leaks.size, more, column.dtype))
        for column, more in zip(circuit, (RESISTOR, 0, number[leaks], LEAK))
    )
    # Nodes merged into ground leave their numbers unused.
    used, ends = np.unique(np.concatenate([[0], a, b]), return_inverse=True)
    arrays = CircuitArrays(kind, ends[1 : a.size + 1], ends[a.size + 1 :], value, used.size)
    net, limit = network(analyse_arrays(arrays, compiled)), 40 + 4 * int(loops.one_way.sum())
    point, _ = solve_active_set(net, np.zeros(0, dtype=np.int64), np.zeros(kind.size), np.zeros(net.n_nodes), limit)
    found, part = point.current[:k].copy(), component_labels(n, first, second)
    largest, at_node = np.zeros((2, n))
    np.maximum.at(largest, part[first], np.abs(found))
    kernel(node_maxima, k)(first, second, found, at_node)
    # Rounding and leaks: against a diode, or all of the currents at a node.
    noise = RESOLUTION * largest[part]
    still = at_node <= noise
    found[still[first] | still[second] | (loops.one_way & (found <= noise[first]))] = 0.0
    return found


KEPT = 32
"""Maximum number of cached plans of loops, for repeated solves."""


def share_loops(
    arrays: CircuitArrays, diodes: np.ndarray, fixed: np.ndarray, current: np.ndarray, state: np.ndarray
) -> bool:
    """Choose the currents of diodes on loops in the result of `circuitsim.engine.small.single.solve_once`.

    Parameters
    ----------
    diodes : (d,) int array
        Elements.
    fixed : int array
        Those that fix a voltage.
    current : (m,) float array
        Of all elements, A, with those of some forest of the diodes on loops; overwritten.
    state : (d,) float array
        At least `ON_LOOP` for diodes that may be on loops; overwritten: for those that are.

    Returns
    -------
    bool
        Whether currents were found, and no loop holds a fixed voltage or is a diode from a node to itself.
    """
    first, second, equal, largest = *arrays[1:3], diodes[state >= ON_LOOP], np.empty(arrays.n_nodes)
    loops = WireLoops.of(arrays, np.concatenate([equal, fixed]))
    if not loops.one_way.all() or (first[equal] == second[equal]).any():
        return False
    kernel(node_maxima, current.size)(first, second, current, largest)
    scale, need = largest[loops.nodes], loops.need(current[loops.elements])
    carried = small_least_norm(loops, loops.numbered(scale), np.where(np.abs(need) <= NOISE * scale, 0.0, need))
    if carried is None:
        return False
    state[state >= ON_LOOP] -= ON_LOOP
    current[diodes[state == IDLE]] = 0.0
    noise = NOISE * np.maximum(*scale[loops.ends])
    carries = carried > noise
    current[loops.elements] = np.where(carries, carried, 0.0)
    state[np.searchsorted(diodes, loops.elements)] = np.where(carries, ON_LOOP + CARRIES, ON_LOOP + IDLE)
    return True


class _Unit(NamedTuple):
    """The circuit with 1 Ω in each edge, the needs being its last elements."""

    plan: np.ndarray  # its block
    spare: list[Pinned]  # memory that is not in use
    value: np.ndarray  # of its elements, those of the needs 0
    fed: np.ndarray  # the nodes that need them
    nodes: int
    diodes: int


@lru_cache(maxsize=KEPT)
def _unit(ends: bytes, one_way: bytes, fed: bytes) -> _Unit | None:
    """The circuit for edges with these ``ends`` and ``one_way``, and nodes with a current, ``fed``; None if it takes
    too much work."""
    places, f = np.frombuffer(ends, np.int64).reshape(2, -1), np.flatnonzero(np.frombuffer(fed, bool))
    columns = unit_circuit(places, np.frombuffer(one_way, bool), f, np.zeros(f.size), len(fed))
    diodes = one_way.count(1)
    n = len(fed) + diodes
    made = kernel(plan, n, NODE)(*columns, n, UPDATES)
    return _Unit(made, [], columns[3], f, n, diodes) if made.size else None


def small_least_norm(loops: WireLoops, number: np.ndarray, need: np.ndarray) -> np.ndarray | None:
    """`least_norm` for net currents ``need`` (n,), A; None where it fails, or these span more than `CLEAN`."""
    ends, one_way = number[loops.ends], loops.one_way
    left = np.zeros(int(number.max(initial=0)) + 1)
    left[number] = need
    left[0] = 0.0
    fed = left != 0.0  # a source of 0 A would hide that a node carries nothing
    unit = _unit(ends.tobytes(), one_way.tobytes(), fed.tobytes())
    if unit is None:
        return None
    n, size = unit.nodes, unit.value.size
    try:
        space = unit.spare.pop()
    except IndexError:  # all are in use
        space = memory(unit.plan, False)
    end = size + n
    out = np.empty(end + size + 15 + unit.diodes)
    out[:size] = unit.value
    out[size - unit.fed.size : size] = left[unit.fed]
    _, worst = kernel(solve_once, n, NODE)(unit.plan, space, NO_GUESS, MAX_ITERATIONS, True, out)
    unit.spare.append(space)
    found, nodes = out[end : end + one_way.size], fed.size
    through = np.bincount(ends[0], np.abs(found), nodes) + np.bincount(ends[1], np.abs(found), nodes)
    left += np.bincount(ends[1], found, nodes) - np.bincount(ends[0], found, nodes)
    whole = worst < np.inf and (np.abs(left) <= CLEAN * through)[1:].all()
    return found if whole else None
