"""Of all currents that loops of diodes can have, those of least norm.

They are what wires of equal, vanishing resistance would carry: the operating point of a circuit in which each diode on
a loop is 1 Ω in series with an ideal diode. Such circuits are small as a rule; the kernels of `single` solve them.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.small.active_set import MAX_ITERATIONS, NOISE
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.outcome import REFINED
from circuitsim.engine.small.plan import UPDATES
from circuitsim.engine.small.single import ALL, NO_GUESS, NUMBERS, part

PASSES = 8
"""Most passes over the currents of loops; each resolves twelve decades more."""
ACCURATE = 1e-9
"""A pass counts if its certificate holds to this; what is left over is the next one's business."""


def carry_away(first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray) -> np.ndarray | None:
    """Currents of least norm that carry ``need`` away.

    Parameters
    ----------
    first, second : (m,) int arrays
        Ends of the edges.
    one_way : (m,) bool array
        Edges whose currents first → second must be ≥ 0.
    need : (nodes,) float array
        Current that leaves each node through the edges, A; node 0 (of every connected part) takes what is left.

    Returns
    -------
    (m,) float array or None
        A; None where they could not be found.
    """
    carried, count = np.zeros(first.size), need.size
    for _ in range(PASSES):
        leaves, enters = np.bincount(first, carried, count), np.bincount(second, carried, count)
        rest = need - leaves + enters
        through = np.bincount(first, np.abs(carried), count) + np.bincount(second, np.abs(carried), count)
        rest[np.abs(rest) <= 10.0 * NOISE * np.maximum(through, np.abs(need))] = 0.0
        if not rest[1:].any():
            return carried
        found = _least_norm(first, second, one_way & (carried <= 0.0), rest)
        if found is None:
            return None
        found[np.abs(found) <= NOISE * np.abs(found).max()] = 0.0
        carried += found
        carried[one_way] = np.maximum(carried[one_way], 0.0)
    return carried


def _least_norm(first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray) -> np.ndarray | None:
    """One pass of `carry_away`."""
    m, d, fed = first.size, np.flatnonzero(one_way), 1 + np.flatnonzero(need[1:])
    size = m + d.size + fed.size
    middle = need.size + np.arange(d.size)
    kind, value = np.empty(size, np.int8), np.ones(size)
    a, b = np.zeros((2, size), np.int64)
    kind[:m], a[:m], b[:m] = RESISTOR, first, second
    diodes, sources = slice(m, m + d.size), slice(m + d.size, size)
    kind[diodes], value[diodes], a[diodes], b[diodes] = DIODE, np.nan, middle, second[d]
    b[d] = middle
    kind[sources], value[sources], b[sources] = CURRENT, need[fed], fed
    n = need.size + d.size
    packed = small_kernel("prepare", n)(kind, a, b, value, n, np.zeros(n, np.bool_), UPDATES)
    if part(packed, 4).size != m:  # too much work
        return None
    memory, end = (packed, np.empty(packed[NUMBERS])), size + n
    out = np.empty(end + size + 15 + d.size)
    out[:size] = value
    status, worst = small_kernel("solve_once", n)(*memory, NO_GUESS, MAX_ITERATIONS, out)
    # Potentials may be open where only idle diodes hold a node, but with a resistor in each edge its current is unique.
    if not worst <= ACCURATE and status in REFINED:
        worst = small_kernel("refine_once", n)(*memory, out, np.empty(size), ALL, NO_GUESS)
    found: np.ndarray = out[end : end + m]
    return found if worst <= ACCURATE else None
