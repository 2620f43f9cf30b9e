"""Least-norm currents in loops of diodes.

They are the currents for equal, vanishing wire resistances: the operating point of a circuit in which each diode on a
loop is 1 Ω in series with an ideal diode. Such circuits are usually small; the kernels of `single` solve them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.small.active_set import CARRIES, IDLE, MAX_ITERATIONS, NOISE, ON_LOOP, REFINED, memory
from circuitsim.engine.small.elimination import UPDATES, plan
from circuitsim.engine.small.pointers import Pinned
from circuitsim.engine.small.single import ALL, NO_GUESS, refine_once, solve_once
from circuitsim.engine.tree import node_maxima
from circuitsim.kernels import NODE, kernel
from circuitsim.program.components import component_labels, on_cycles

PASSES = 8
"""Maximum number of passes over the currents of loops; each resolves twelve more decades."""
ROUNDING = 2.0**-44
"""Net currents that differ by less than this fraction of the largest may be equal but for rounding."""
KEPT = 32
"""Maximum number of cached plans of loops, for repeated solves."""
ACCURATE = 1e-9
"""A pass counts if its certificate holds to this; the next one corrects the residual."""


def carry_away(ends: np.ndarray, one_way: np.ndarray, need: np.ndarray) -> np.ndarray | None:
    """Currents of least norm with the given net currents ``need``.

    Parameters
    ----------
    ends : (2, m) int array
        The nodes where the edges begin, and where they end.
    one_way : (m,) bool array
        Edges whose currents first → second must be ≥ 0.
    need : (nodes,) float array
        Current that leaves each node through the edges, A; node 0 (of every connected part) takes the rest.

    Returns
    -------
    (m,) float array or None
        A; None if they were not found.
    """
    carried, rest, flat = np.zeros(ends.shape[1]), need.copy(), ends.ravel()
    idle, key = one_way, flat.tobytes()
    for _ in range(PASSES):
        fed = rest != 0.0  # a source of 0 A would hide that a node is pendant
        fed[0] = False
        marks = fed.tobytes()
        if 1 not in marks:
            break
        found = _least_norm(key, idle.tobytes(), marks, rest)
        if found is None:
            return None
        if not kernel(add_pass, need.size)(flat, one_way, need, found, carried, rest):
            break
        idle = one_way & (carried <= 0.0)
    return carried


def add_pass(ends, one_way, need, found, carried, rest):
    """Add the currents of one pass of `carry_away` to those carried, except
    rounding.

    Parameters
    ----------
    ends : (2 m,) int array
        The nodes where each edge begins, then those where it ends.
    one_way : (m,) bool array
        Edges whose currents must be ≥ 0.
    need : (nodes,) float array
        Current that leaves each node through the edges, A.
    found, carried : (m,) float arrays
        A.
    rest : (nodes,) float array
        Overwritten: the residual of ``need``, 0 where it is rounding.

    Returns
    -------
    bool
        Whether a residual remains, except at node 0.
    """
    m, most, through, left = one_way.size, 0.0, np.zeros(need.size), False
    for e in range(m):
        most = max(most, abs(found[e]))
    rest[:] = need
    for e in range(m):
        a, b = ends[e], ends[m + e]
        if abs(found[e]) > NOISE * most:
            carried[e] += found[e]
        if one_way[e] and carried[e] < 0.0:
            carried[e] = 0.0
        rest[a] -= carried[e]
        rest[b] += carried[e]
        through[a] += abs(carried[e])
        through[b] += abs(carried[e])
    for k in range(1, need.size):
        if abs(rest[k]) <= 10.0 * NOISE * max(through[k], abs(need[k])):
            rest[k] = 0.0
        left = left or rest[k] != 0.0
    return left


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

    def carried(self, number: np.ndarray, need: np.ndarray) -> np.ndarray | None:
        """`carry_away` for net currents ``need`` (n,) into the nodes with these numbers."""
        left = np.zeros(int(number.max(initial=0)) + 1)
        left[number] = need
        left[0] = 0.0
        return carry_away(number[self.ends], self.one_way, left)

    def need(self, current: np.ndarray) -> np.ndarray:
        """The net current that leaves each of their nodes (n,) with the currents (k,), A."""
        (first, second), n = self.ends, self.nodes.size
        return np.asarray(np.bincount(first, current, n) - np.bincount(second, current, n))

    def least_norm(self, current: np.ndarray) -> np.ndarray:
        """Their currents (k,), A, of least norm with the same sums at the nodes; those given if none are found."""
        need = self.need(current)
        number, grain = self.numbered(np.abs(need)), ROUNDING * float(np.abs(need).max(initial=0.0))
        found = self.carried(number, need)
        if found is None and grain > 0.0:  # needs that differ by rounding may want a current of that size
            found = self.carried(number, grain * np.round(need / grain))
        return current if found is None else found


def share_loops(
    arrays: CircuitArrays, diodes: np.ndarray, fixed: np.ndarray, current: np.ndarray, state: np.ndarray
) -> bool:
    """Choose the currents of diodes on loops in the result of `circuitsim.engine.small.single.solve_once` or
    `circuitsim.engine.small.single.refine_once`.

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
    need[np.abs(need) <= NOISE * scale] = 0.0
    carried = loops.carried(loops.numbered(scale), need)
    if carried is None:
        return False
    state[state >= ON_LOOP] -= ON_LOOP
    current[diodes[state == IDLE]] = 0.0
    current[loops.elements] = carried
    noise = NOISE * np.maximum(*scale[loops.ends])
    state[np.searchsorted(diodes, loops.elements)] = np.where(carried > noise, ON_LOOP + CARRIES, ON_LOOP + IDLE)
    return True


class _Unit(NamedTuple):
    """The circuit with 1 Ω in each edge solved by `_least_norm`, the needs being its last elements."""

    plan: np.ndarray  # its block
    spare: list[Pinned]  # memory that is not in use
    value: np.ndarray  # of its elements, those of the needs 0
    fed: np.ndarray  # the nodes that need them
    nodes: int
    diodes: int


def unit_circuit(
    ends: np.ndarray, one_way: np.ndarray, fed: np.ndarray, need: np.ndarray, nodes: int
) -> tuple[np.ndarray, ...]:
    """Kinds, ends and values of the elements with 1 Ω in each edge (see `carry_away`): resistors, diodes from inner
    nodes, which come after the ``nodes``, and the currents ``need`` out of the nodes ``fed``."""
    d = np.flatnonzero(one_way)
    kind = np.repeat(np.array([RESISTOR, DIODE, CURRENT], np.int8), (one_way.size, d.size, fed.size))
    inner = nodes + np.arange(d.size)
    first = np.concatenate([ends[0], inner, np.zeros_like(fed)])
    second = np.concatenate([ends[1], ends[1, d], fed])
    second[d] = inner
    return kind, first, second, np.concatenate([np.ones(one_way.size), np.full(d.size, np.nan), need])


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


def _least_norm(ends: bytes, one_way: bytes, fed: bytes, need: np.ndarray) -> np.ndarray | None:
    """One pass of `carry_away`, for the nodes that are ``fed``."""
    unit = _unit(ends, one_way, fed)
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
    out[size - unit.fed.size : size] = need[unit.fed]
    status, worst = kernel(solve_once, n, NODE)(unit.plan, space, NO_GUESS, MAX_ITERATIONS, True, out)
    # Potentials may be open where only idle diodes fix a node, but with a resistor in each edge its current is unique.
    if not worst <= ACCURATE and status in REFINED:
        worst = kernel(refine_once, n, NODE)(unit.plan, space, out, np.empty(size), ALL)
    unit.spare.append(space)
    found: np.ndarray = out[end : end + len(one_way)]
    return found if worst <= ACCURATE else None
