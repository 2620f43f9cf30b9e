"""Least-norm currents in loops of diodes (`circuitsim.engine.loops`): the small driver solves the circuit with 1 Ω in
each diode."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.engine.loops import WireLoops, unit_circuit
from circuitsim.engine.small.active_set import CARRIES, CLEAN, IDLE, MAX_ITERATIONS, NOISE, ON_LOOP, memory
from circuitsim.engine.small.elimination import UPDATES, plan
from circuitsim.engine.small.pointers import Pinned
from circuitsim.engine.small.single import NO_GUESS, solve_once
from circuitsim.engine.tree import node_maxima
from circuitsim.kernels import NODE, kernel

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
    """`circuitsim.engine.loops.least_norm` for net currents ``need`` (n,), A; None where it fails, or these span more
    than `CLEAN`."""
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
